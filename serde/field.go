package serde

import (
	"reflect"
	"strings"
	"sync"
	"unicode"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/rules"
)

// TagKey is the key of struct tags that serde reads.
const TagKey = "torch"

// field is what is known of one struct field.
type field struct {
	index  int
	goName string
	name   string // in the tree, if the tag gives no expression
	expr   *rules.Expr
	flags  *rules.Flags // of the tag; the fields without one share theirs
	typ    reflect.Type
}

// structType is what is known of a struct type; err is what is wrong with one
// of its tags.
type structType struct {
	fields []field
	err    error
}

// structTypes keeps what is known. A record's few types take less memory here
// than a sync.Map would begin with.
var structTypes = struct {
	sync.Mutex
	known map[reflect.Type]*structType
}{known: map[reflect.Type]*structType{}}

// fieldsOf returns the fields of a struct type that take part, in order. The
// answer is kept for each type.
func fieldsOf(t reflect.Type) ([]field, error) {
	structTypes.Lock()
	defer structTypes.Unlock()
	st, ok := structTypes.known[t]
	if !ok {
		st = parseStruct(t)
		structTypes.known[t] = st
	}
	return st.fields, st.err
}

func parseStruct(t reflect.Type) *structType {
	st := &structType{fields: make([]field, 0, t.NumField())}
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get(TagKey)
		if tag == "-" || !sf.IsExported() && !(sf.Anonymous && sf.Type.Kind() == reflect.Struct) {
			continue
		}
		name, named := snake(sf.Name), bareName(tag)
		if named {
			name, tag = tag, ""
		}
		parsed, err := parseTag(tag)
		if err != nil {
			st.err = fault.Wrap(fault.Usage, "the tag of "+t.String()+"."+sf.Name, err)
			return st
		}
		f := field{index: i, goName: sf.Name, name: name, expr: parsed.Expr, flags: &parsed.Flags, typ: sf.Type}
		if sf.Anonymous && !named && parsed.Expr == nil && isStruct(sf.Type) && !f.flags.Inline {
			inline := parsed.Flags
			inline.Inline = true
			f.flags = &inline
		}
		if !sf.IsExported() && !f.flags.Inline {
			continue // reflection may not set it, only what it holds
		}
		if st.err = f.check(t); st.err != nil {
			return st
		}
		st.fields = append(st.fields, f)
	}
	return st
}

// noTag is what most fields have.
var noTag = &rules.Field{}

// optionalTag is what many of the others have.
var optionalTag = &rules.Field{Flags: rules.Flags{Optional: true}}

func parseTag(tag string) (*rules.Field, error) {
	switch tag {
	case "":
		return noTag, nil
	case ", optional":
		return optionalTag, nil
	}
	return rules.ParseField(tag)
}

// bareName reports whether a tag is a name of the tree and nothing else, which the
// grammar would only repeat.
func bareName(tag string) bool {
	for i := range len(tag) {
		switch c := tag[i]; {
		case c == '_' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z':
		default:
			return false
		}
	}
	return tag != ""
}

// isStruct reports whether t is a plain struct or a pointer to one.
func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, packed := packedTypes[t]
	return t.Kind() == reflect.Struct && !packed
}

// check refuses flags that mean nothing on the field.
func (f *field) check(t reflect.Type) error {
	wrong := ""
	switch fl := f.flags; {
	case fl.HasDims || fl.Floats || len(fl.Except) > 0:
		wrong = "a flag of assignments"
	case fl.Inline && !isStruct(f.typ):
		wrong = "inline on what is no struct"
	case fl.Inline && f.expr != nil:
		wrong = "inline beside a name"
	case fl.Mutable && fl.Alias:
		wrong = "mutable and alias together"
	}
	if wrong == "" {
		return nil
	}
	return fault.New(fault.Usage, "the tag of "+t.String()+"."+f.goName+": "+wrong)
}

// plainName returns the name that the field has in the tree relative to its
// struct, and whether it has one: an expression has not.
func (f *field) plainName() (string, bool) {
	if f.expr == nil {
		return f.name, true
	}
	if f.expr.Plain() && f.expr.Name.Path == nil && f.expr.Name.Pattern().IsLiteral() {
		return f.expr.Name.Text, true
	}
	return "", false
}

// snake returns a Go name as PyTorch would write it: RunningMean is
// running_mean, WeightIH weight_ih, QProj q_proj, Conv2D conv2d.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && startsWord(runes, i) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// startsWord reports whether the upper-case letter at i begins a word: after a
// lower-case letter, or, after a digit or another capital, before a lower-case
// one.
func startsWord(runes []rune, i int) bool {
	before, nextLower := runes[i-1], i+1 < len(runes) && unicode.IsLower(runes[i+1])
	switch {
	case before == '_':
		return false
	case unicode.IsLower(before):
		return true
	default:
		return nextLower
	}
}
