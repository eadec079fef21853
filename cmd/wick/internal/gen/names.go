package gen

import (
	"go/token"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/rules"
)

// uniquer gives every name once.
type uniquer map[string]bool

// take returns name, or name with a number behind it if it is taken.
func (u uniquer) take(name string) string {
	out := name
	for i := 2; u[out]; i++ {
		sep := ""
		if c := name[len(name)-1]; c >= '0' && c <= '9' {
			sep = "_"
		}
		out = name + sep + strconv.Itoa(i)
	}
	u[out] = true
	return out
}

// initialisms are written in capitals.
var initialisms = map[string]bool{
	"bn": true, "cls": true, "cnn": true, "ema": true, "fc": true, "ff": true, "ffn": true, "fpn": true, "gn": true, "gpt": true, "gru": true,
	"hh": true, "hr": true, "id": true, "ih": true, "ids": true, "k": true, "kv": true, "lm": true, "ln": true, "lr": true, "lstm": true,
	"mha": true, "mlp": true, "moe": true, "q": true, "qk": true, "qkv": true, "rms": true, "rnn": true, "rpn": true, "roi": true, "v": true, "vae": true,
}

// maxIdent bounds an identifier; the whole name is in the tag.
const maxIdent = 48

// pascal makes an exported identifier of a name: the letters and digits of
// ASCII, each word with a capital. It returns "X" where there is none.
func pascal(name string) string {
	var b strings.Builder
	isWord := func(r rune) bool { return r < 0x80 && (isDigit(byte(r)) || isLetter(byte(r))) }
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !isWord(r) }) {
		if b.Len() >= maxIdent {
			break
		}
		word = word[:min(len(word), maxIdent)]
		letters := strings.TrimRight(word, "0123456789")
		digit := b.Len() > 0 && isDigit(word[0]) && isDigit(b.String()[b.Len()-1])
		switch {
		case digit:
			b.WriteString("_" + word) // 1.2 is not 12
		case initialisms[letters]:
			b.WriteString(strings.ToUpper(letters) + word[len(letters):])
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	out := b.String()
	if out == "" || isDigit(out[0]) {
		return "X" + out
	}
	return out
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fieldName is the Go name of a member, before it is made unique.
func (f *field) fieldName() string {
	if _, err := strconv.ParseUint(f.key, 10, 31); err != nil {
		return pascal(f.key)
	}
	return f.typ.word() + f.key
}

// word is what a member is called that has nothing but a number.
func (t *typ) word() string {
	if t.kind != moduleKind {
		return "Item"
	}
	switch {
	case strings.HasPrefix(t.mod, "BatchNorm"):
		return "BN"
	case strings.HasPrefix(t.mod, "Conv"):
		return "Conv"
	case strings.HasSuffix(t.mod, "Norm"):
		return "Norm"
	}
	return strings.TrimRight(t.mod, "123d")
}

// singular is what one of many is called: layers.0 is a Layer.
func singular(s string) string {
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "ches") || strings.HasSuffix(s, "sses"):
		return s[:len(s)-2]
	case strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && len(s) > 3:
		return s[:len(s)-1]
	}
	return s
}

// typeWords are the names that a struct at a place may get after the outermost
// type's own: that of its last step, then those with the steps before.
func typeWords(place string) []string {
	steps := strings.Split(place, ".")
	one := isNumber(steps[len(steps)-1])
	var words []string
	var name string
	for i := len(steps) - 1; i >= 0 && len(words) < 3; i-- {
		if isNumber(steps[i]) {
			continue
		}
		word := steps[i]
		if s := stem(word); s != "" {
			word = s
		}
		if one && name == "" {
			word = singular(word)
		}
		name = pascal(word) + name
		words = append(words, name)
	}
	if len(words) == 0 {
		return []string{"Item"}
	}
	return words
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// nameTypes names the struct types and their fields, from the outermost to the
// innermost.
func (p *plan) nameTypes() {
	for _, taken := range []string{p.o.Type, "Load" + p.o.Type, "Open" + p.o.Type} {
		p.names.take(taken)
	}
	p.root.name = p.o.Type
	if p.root.kind == structKind {
		p.types = append(p.types, p.root)
		p.nameFields(p.root)
		return
	}
	p.nameBelow(p.root.of)
}

// nameBelow names what a type refers to.
func (p *plan) nameBelow(t *typ) {
	switch {
	case t.kind == listKind || t.kind == mapKind:
		p.nameBelow(t.of)
	case t.kind == structKind && t.name == "":
		t.name = p.typeName(t.place)
		p.types = append(p.types, t)
		p.nameFields(t)
	}
}

func (p *plan) typeName(place string) string {
	words := typeWords(place)
	for _, w := range words {
		if name := p.o.Type + w; !p.names[name] {
			return p.names.take(name)
		}
	}
	return p.names.take(p.o.Type + words[0])
}

func (p *plan) nameFields(t *typ) {
	ids := uniquer{}
	for _, f := range t.fields {
		f.id = ids.take(f.fieldName())
	}
	for _, f := range t.fields {
		p.nameBelow(f.typ)
	}
}

// tagName writes a name so that a tag takes it literally.
func tagName(name string) string {
	text := rules.NameOf(name).String()
	parsed, err := rules.ParseField(text)
	if text == "-" || err != nil || parsed.Expr == nil || !parsed.Expr.Plain() || parsed.Expr.Name.Text != name {
		return strconv.QuoteToASCII(name)
	}
	return text
}

// TypeName returns the name of the outermost type for a checkpoint's file.
func TypeName(file string) string {
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	base, _, _ = strings.Cut(base, ".")
	if pascal(base) == "X" {
		return "Model"
	}
	return pascal(base)
}

// PackageName returns the package name for a folder.
func PackageName(folder string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r < 0x80 && isLetter(byte(r)):
			return r | 0x20
		case r < 0x80 && isDigit(byte(r)):
			return r
		default:
			return -1
		}
	}, folder)
	if name = strings.TrimLeft(name, "0123456789"); !token.IsIdentifier(name) {
		return "model"
	}
	return name
}
