package serde

import (
	"context"
	"reflect"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// Option changes how a tree is matched to a Go value, or back. An option that
// is wrong in itself makes [NewPlan] and [Marshal] fail with [fault.ErrUsage].
type Option func(*config) error

type config struct {
	rules           *rules.Set
	prefix          string
	allowMissing    bool
	allowUnexpected bool
	alias           bool
	separate        bool
	shared          bool
	verify          bool
	gaps            string
	mover           []tensor.RunOption
	variants        map[reflect.Type][]reflect.Type
	decoders        map[reflect.Type]decoder
	encoders        map[reflect.Type]encoder
	precision       tensor.DType
}

type (
	decoder func(ctx context.Context, v nested.Value, dst reflect.Value) error
	encoder func(src reflect.Value) (nested.Value, error)
)

func newConfig(opts []Option) (*config, error) {
	c := &config{rules: &rules.Set{}}
	for _, o := range opts {
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *config) addRule(st rules.Statement) {
	c.rules = rules.Merge(c.rules, &rules.Set{Statements: []rules.Statement{st}})
}

// Rules applies the statements of a set to the tree before it is matched. Sets
// and the other options that change names apply in the order in which they are
// given.
func Rules(set *rules.Set) Option {
	return func(c *config) error {
		c.rules = rules.Merge(c.rules, set)
		return nil
	}
}

// Key goes on with what lies below a flat name, such as "state_dict".
func Key(name string) Option {
	return func(c *config) error {
		c.addRule(&rules.Key{Name: rules.NameOf(name)})
		return nil
	}
}

// Rename replaces, in every name, what the regular expression matches; $1 and
// ${name} in the replacement are its groups, as in package regexp.
func Rename(re, replacement string) Option {
	return func(c *config) error {
		st, err := rules.NewRename(re, replacement)
		if err == nil {
			c.addRule(st)
		}
		return err
	}
}

// Include keeps only the names that one of the patterns matches, and those
// below such a name. The patterns are those of package rules: "encoder",
// "layers.*.weight", "/regular expression/".
func Include(patterns ...string) Option { return filter(false, patterns) }

// Exclude leaves out the names that one of the patterns matches, and those
// below such a name.
func Exclude(patterns ...string) Option { return filter(true, patterns) }

func filter(drop bool, patterns []string) Option {
	return func(c *config) error {
		st := &rules.Filter{Drop: drop}
		for _, text := range patterns {
			p, err := rules.ParsePattern(text)
			if err != nil {
				return err
			}
			st.Patterns = append(st.Patterns, p)
		}
		c.addRule(st)
		return nil
	}
}

// Prefix is what stands before every name that belongs to the Go value, such
// as "module." or "encoder."; other names are not looked at. [Marshal] puts it
// before every name.
func Prefix(text string) Option {
	return func(c *config) error {
		c.prefix = text
		return nil
	}
}

// AllowMissing lets a plan run when fields find nothing; they stay as they
// are.
func AllowMissing() Option {
	return func(c *config) error {
		c.allowMissing = true
		return nil
	}
}

// AllowUnexpected lets a plan run when tensors of the tree have no field.
func AllowUnexpected() Option {
	return func(c *config) error {
		c.allowUnexpected = true
		return nil
	}
}

// Alias lets slices be the memory that the source lends (a map, embedded bytes,
// a []byte) where dtype, byte order, layout and alignment allow it; the plan
// says why the others are copies. Such a slice is valid until the source is
// closed, and must not be written unless the source allows it: writing to an
// embedded string ends the program. Fields tagged mutable are copied even then.
func Alias() Option {
	return func(c *config) error {
		c.alias = true
		return nil
	}
}

// Separate gives every slice an allocation of its own. By default slices are
// cut from few large ones, which is faster, and one slice that is kept keeps
// its neighbours' memory.
func Separate() Option {
	return func(c *config) error {
		c.separate = true
		return nil
	}
}

// Shared gives fields that are filled from the same tensor (tied weights) one
// and the same slice. By default each has its own, from one read.
func Shared() Option {
	return func(c *config) error {
		c.shared = true
		return nil
	}
}

// Verify compares every checksum that the source has with the bytes: also those
// of memory that fields alias, which nothing else would look at. It fails with
// [fault.ErrChecksum].
func Verify() Option {
	return func(c *config) error {
		c.verify = true
		c.mover = append(c.mover, tensor.Verify())
		return nil
	}
}

// Gaps says what becomes of indexes that a module list leaves out, where the
// tag does not: "keep" leaves zero values at them, "close" moves the later
// ones up, "" is the default, an error.
func Gaps(how string) Option {
	return func(c *config) error {
		if how != "" && how != "keep" && how != "close" {
			return fault.New(fault.Usage, "gaps "+how).Needs(`"keep", "close" or ""`, "")
		}
		c.gaps = how
		return nil
	}
}

// Progress calls f now and then with the bytes moved and the bytes in all,
// from one goroutine at a time.
func Progress(f func(done, total int64)) Option {
	return func(c *config) error {
		c.mover = append(c.mover, tensor.Progress(f))
		return nil
	}
}

// Mover passes options to [tensor.Run]: workers, memory, verification of
// checksums.
func Mover(opts ...tensor.RunOption) Option {
	return func(c *config) error {
		c.mover = append(c.mover, opts...)
		return nil
	}
}

// Precision converts tensors of floats that [Marshal] writes, while they are
// read: to [tensor.F16], [tensor.BF16], [tensor.F32] or [tensor.F64]. The zero
// DType keeps them.
func Precision(d tensor.DType) Option {
	return func(c *config) error {
		if d != tensor.Invalid && d.Class() != tensor.FloatClass {
			return fault.New(fault.Usage, "precision "+d.String()).Needs("a dtype of floats", "")
		}
		c.precision = d
		return nil
	}
}

// Variants registers the types that a field of the interface type I can hold,
// each given by a value of it: a struct, or a pointer to one. A field takes the
// variant whose names are all there; of several, the one that uses most of
// them.
func Variants[I any](variants ...I) Option {
	return func(c *config) error {
		iface := reflect.TypeFor[I]()
		if iface.Kind() != reflect.Interface {
			return fault.New(fault.Usage, "variants of "+iface.String()).Needs("an interface type", "")
		}
		for _, v := range variants {
			t := reflect.TypeOf(v)
			if t == nil || !isStruct(t) {
				return fault.New(fault.Usage, "a variant of "+iface.String()+" that is no struct").Needs("values of struct types or pointers to them", "")
			}
			if c.variants == nil {
				c.variants = map[reflect.Type][]reflect.Type{}
			}
			c.variants[iface] = append(c.variants[iface], t)
		}
		return nil
	}
}

// Decode makes f fill every value of type T from what lies at or below its
// name. It is called while the plan runs, with a zero T.
func Decode[T any](f func(ctx context.Context, v nested.Value, dst *T) error) Option {
	return func(c *config) error {
		if c.decoders == nil {
			c.decoders = map[reflect.Type]decoder{}
		}
		c.decoders[reflect.TypeFor[T]()] = func(ctx context.Context, v nested.Value, dst reflect.Value) error {
			p, ok := dst.Addr().Interface().(*T)
			if !ok {
				panic("BUG: wick/serde: a decoder for another type")
			}
			return f(ctx, v, p)
		}
		return nil
	}
}

// Encode makes [Marshal] write every value of type T as f says.
func Encode[T any](f func(v T) (nested.Value, error)) Option {
	return func(c *config) error {
		if c.encoders == nil {
			c.encoders = map[reflect.Type]encoder{}
		}
		c.encoders[reflect.TypeFor[T]()] = func(src reflect.Value) (nested.Value, error) {
			v, ok := src.Interface().(T)
			if !ok {
				panic("BUG: wick/serde: an encoder for another type")
			}
			return f(v)
		}
		return nil
	}
}

// Unmarshaler is a type that fills itself from what lies at or below its name.
// UnmarshalNested is called on a zero value while the plan runs; an error fails
// the run. The tensors of v have not been read; they are valid as long as the
// checkpoint is open.
type Unmarshaler interface {
	UnmarshalNested(ctx context.Context, v nested.Value) error
}

// Marshaler is a type that says itself what it is in a tree.
type Marshaler interface {
	MarshalNested() (nested.Value, error)
}

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	marshalerType   = reflect.TypeFor[Marshaler]()
)
