package cli

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// changeFlags are the flags that choose and change tensors. Each is a statement
// of the rules' grammar; they apply in the order of the fields.
type changeFlags struct {
	key     string
	include []string
	exclude []string
	rename  []string
	rules   []string
	dtype   string
}

func (f *changeFlags) register(flags *pflag.FlagSet) {
	f.registerKey(flags)
	flags.StringArrayVar(&f.include, "include", nil, "keep only the tensors that match `pattern`, or lie below a match")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "leave out the tensors that match `pattern`, or lie below a match")
	flags.StringArrayVar(&f.rename, "rename", nil, "name tensors anew, as `'OLD -> NEW'` says: OLD is a pattern with {captures}, or a /regular expression/")
	flags.StringArrayVar(&f.rules, "rules", nil, "apply a rule `file`, or the set of rules of that name")
	flags.StringVar(&f.dtype, "dtype", "", "convert tensors of floats to this `dtype`, such as float16")
}

// registerKey is register for what takes no other change.
func (f *changeFlags) registerKey(flags *pflag.FlagSet) {
	flags.StringVar(&f.key, "key", "", "take only what is below this `name`")
}

// changes reports whether the flags ask for anything.
func (f *changeFlags) changes() bool {
	return f.key != "" || len(f.include)+len(f.exclude)+len(f.rename)+len(f.rules) > 0 || precision(f.dtype) != ""
}

// sets returns the rules that the flags are.
func (f *changeFlags) sets() ([]*rules.Set, error) {
	flags := &rules.Set{}
	if err := errors.Join(f.addKey(flags), addFilter(flags, f.include, false), addFilter(flags, f.exclude, true)); err != nil {
		return nil, err
	}
	sets := []*rules.Set{flags}
	for _, text := range f.rename {
		set, err := rules.Parse("--rename", "rename "+text)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	for _, name := range f.rules {
		set, err := ruleFile(name)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return f.addCast(sets)
}

// spelled is a statement as the flag says it that it comes from, and as it is if it is
// from a rule file.
func (f *changeFlags) spelled(statement string) string {
	for _, filter := range []struct {
		flag  string
		texts []string
		drop  bool
	}{{"--include", f.include, false}, {"--exclude", f.exclude, true}} {
		var set rules.Set
		if err := addFilter(&set, filter.texts, filter.drop); err == nil && isOnly(&set, statement) {
			return filter.flag + " " + strings.Join(quoted(filter.texts), " "+filter.flag+" ")
		}
	}
	for _, text := range f.rename {
		if set, err := rules.Parse("--rename", "rename "+text); err == nil && isOnly(set, statement) {
			return "--rename " + quoted([]string{text})[0]
		}
	}
	return statement
}

func isOnly(set *rules.Set, statement string) bool {
	return len(set.Statements) == 1 && set.Statements[0].String() == statement
}

// quoted are texts as a shell takes them.
func quoted(texts []string) []string {
	out := slices.Clone(texts)
	for i, text := range out {
		if strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("._/-", r) && !isWordRune(r) }) || text == "" {
			out[i] = "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		}
	}
	return out
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// addKey takes a flat name as it is, or an exact path.
func (f *changeFlags) addKey(set *rules.Set) error {
	if f.key == "" {
		return nil
	}
	name := rules.NameOf(f.key)
	if strings.HasPrefix(f.key, "[") {
		e, err := rules.ParseExpr(f.key)
		if err != nil {
			return err
		}
		if !e.Plain() {
			return fault.New(fault.Usage, "--key "+f.key).Needs("", "give a name, or an exact path")
		}
		name = e.Name
	}
	set.Statements = append(set.Statements, &rules.Key{Name: name})
	return nil
}

func addFilter(set *rules.Set, texts []string, drop bool) error {
	if len(texts) == 0 {
		return nil
	}
	filter := &rules.Filter{Drop: drop}
	for _, text := range texts {
		p, err := rules.ParsePattern(text)
		if err != nil {
			return err
		}
		filter.Patterns = append(filter.Patterns, p)
	}
	set.Statements = append(set.Statements, filter)
	return nil
}

// precision takes the words that records have for precisions: keep is none to
// convert to, full is float32. Half, bfloat16 and double are dtypes of torch; fp16
// and its like are what people call them.
func precision(name string) string {
	switch name {
	case "keep":
		return ""
	case "full", "fp32":
		return "float32"
	case "fp16":
		return "float16"
	case "bf16":
		return "bfloat16"
	case "fp64":
		return "float64"
	default:
		return name
	}
}

// addCast converts tensors of floats, whatever they are called by now.
func (f *changeFlags) addCast(sets []*rules.Set) ([]*rules.Set, error) {
	name := precision(f.dtype)
	if name == "" {
		return sets, nil
	}
	d, ok := tensor.ParseDType(name)
	if !ok {
		return nil, fault.New(fault.Usage, "no dtype is called "+f.dtype).Needs("", "such as float32, float16, bfloat16")
	}
	set, err := rules.Floats(d)
	return append(sets, set), err
}

// maxRuleFile bounds a rule file, bytes.
const maxRuleFile = rules.MaxBytes

// ruleFile reads a rule file, or a set that wick knows by name.
func ruleFile(name string) (*rules.Set, error) {
	if set, err := rules.Named(name); err == nil {
		return set, nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		cure := "the sets are " + strings.Join(rules.Names(), ", ")
		if near := nested.Nearest(name, rules.Names()); near != "" {
			cure = "did you mean " + near + "? " + cure
		}
		return nil, fault.New(fault.NotFound, "no rule file and no set of rules has this name").In(name).Needs("", cure)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRuleFile {
		return nil, fault.NewLimit("rule file bytes", info.Size(), maxRuleFile).In(name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return rules.Parse(name, string(text))
}
