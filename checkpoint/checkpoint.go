package checkpoint

import (
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Checkpoint is an opened file or folder: a tree whose tensors have not been
// read. It is safe for concurrent use.
type Checkpoint struct {
	Root nested.Value
	Info Info

	limits  Limits
	names   []string         // flat names in the order of the file
	tensors []*nested.Tensor // beside names
	near    Siblings         // where the files beside the weights are, nil where nobody knows
	closer  func() error
	once    sync.Once
	err     error
}

// Info is what a container says of itself.
type Info struct {
	Name     string            // the source's name
	Format   string            // "zip", "legacy", "tar", "torchscript", "safetensors", "index" …
	Producer string            // what is known of the writer, "" if nothing: "torch 2.15.0", "safetensors" …
	Order    tensor.ByteOrder  // of the storages
	Storages []*tensor.Storage // every storage in the order of the pickle; Extent gives its place in the file
	Rest     []*tensor.Storage // what else has a checksum and was not read: code, notes, what somebody added; for those who verify all
	Globals  []Global          // every name the pickle asked for, in its order, each once
	Records  []Record          // the container's entries, in file order
	Metadata map[string]string // free text of the container: safetensors' __metadata__, zip's version …
}

// Global is a class or function that a pickle names. Nothing of it was
// imported or called.
type Global struct {
	Module, Name string
	Record       string // the pickle that named it
	Offset       int64  // of the opcode in the pickle, bytes
	Called       bool   // whether the pickle would call it
}

// Record is one entry of a container.
type Record struct {
	Name   string
	Offset int64 // of its first byte in the file; of a [Distant] source as its directory lets expect
	Size   int64 // bytes, uncompressed
	Stored int64 // bytes in the file
}

// New returns a checkpoint over a tree and lists its tensors, so that iterating
// cannot fail later; it fails with [fault.ErrLimit] on a tree that is over the
// limits of env. close is called once, by Close; it may be nil.
func New(root nested.Value, info Info, env *Env, closer func() error) (*Checkpoint, error) {
	c := &Checkpoint{Root: root, Info: info, limits: env.Limits.Default(), closer: closer}
	if err := c.list(env.present); err != nil {
		return nil, err
	}
	return c, nil
}

// WithRoot returns a checkpoint of the same files with another tree, made of
// views of c's tensors, and another name for its format. It takes the place of c
// and owns what c owned: closing either closes both. It fails with
// [fault.ErrLimit] on a tree over the limits of c.
func (c *Checkpoint) WithRoot(root nested.Value, format string) (*Checkpoint, error) {
	out := &Checkpoint{Root: root, Info: c.Info, limits: c.limits, near: c.near, closer: c.Close}
	out.Info.Format = format
	if err := out.list(0); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Checkpoint) list(present int64) error {
	text := textRoom(c.limits, present)
	if m, ok := c.Root.(*nested.Map); ok { // a flat state dict has one for each key
		c.names, c.tensors = make([]string, 0, m.Len()), make([]*nested.Tensor, 0, m.Len())
	}
	return c.Walk(func(p nested.Path, v nested.Value) error {
		if text -= textBytes(p, v); text < 0 {
			return tooMuchText(c.limits, present)
		}
		t, ok := v.(*nested.Tensor)
		if !ok {
			return nil
		}
		if err := At("ndim", int64(t.Dims()), c.limits.NDim); err != nil {
			return err
		}
		c.names, c.tensors = append(c.names, p.String()), append(c.tensors, t)
		return At("tensors", int64(len(c.tensors)), c.limits.Tensors)
	})
}

// textRoom is how many bytes names and texts may have together, each counted for
// every path to it: a quarter of what may be materialised whatever is present,
// and half of what each byte may become. A name of a megabyte over a list of
// short numbers would be written once for each of them. Where the size of what is
// there is not known, names and texts stand in it one by one.
func textRoom(l Limits, present int64) int64 {
	if each := max(l.Expand/2, 1); present > 0 && present < math.MaxInt64/each-l.ExpandFloor {
		return l.ExpandFloor/4 + present*each
	}
	return math.MaxInt64
}

// textBytes is how much text a value and the path to it have.
func textBytes(p nested.Path, v nested.Value) int64 {
	n := int64(0)
	for _, key := range p {
		n += textLength(key)
	}
	return n + textLength(v)
}

// textLength is how many bytes are written for a value of one name, or the time
// of so many.
func textLength(v nested.Value) int64 {
	switch v := v.(type) {
	case nested.String:
		return int64(len(v))
	case nested.Bytes:
		return int64(len(v))
	case nested.ByteArray:
		return int64(len(v))
	case nested.BigInt: // digits, each of which takes the longer the more there are
		digits := v.Int.BitLen()/3 + 1
		return int64(digits) * int64(bits.Len(uint(digits)))
	case nested.Symbol:
		return int64(len(v.Class) + len(v.Text))
	case *nested.Opaque:
		return int64(len(v.Class) + len(v.Reason))
	case *nested.List: // a tuple as a key
		return int64(len(nested.Repr(v)))
	case *nested.Tensor:
		return tensorText(v)
	}
	return 1
}

// tensorText is what a row of a tensor spells beside its name: where it lies.
func tensorText(t *nested.Tensor) int64 {
	n := 1 + len(t.Class) + len(t.Device)
	if s, _, ok := t.Origin(); ok {
		n += len(s.Name())
	}
	return int64(n)
}

func tooMuchText(l Limits, present int64) error {
	e := fault.NewLimit("expand", l.Expand+1, l.Expand)
	e.Found = "names and texts that are too long, each counted for every path to it"
	e.Need = "at most " + strconv.FormatInt(textRoom(l, present), 10) + " bytes of them"
	return e
}

// Close waits for running reads, ends the life of lent memory, and closes the
// source if the checkpoint owns it. Later reads of its tensors return
// [fault.ErrClosed]. Calling it again returns the same result.
func (c *Checkpoint) Close() error {
	c.once.Do(func() {
		if c.closer != nil {
			c.err = c.closer()
		}
	})
	return c.err
}

// Limits returns the limits that the checkpoint was opened with.
func (c *Checkpoint) Limits() Limits { return c.limits }

// Walk visits the tree as [nested.Walk] does, under the checkpoint's limits.
func (c *Checkpoint) Walk(visit nested.Visitor) error {
	return nested.Walk(c.Root, nested.WalkLimits{Paths: c.limits.Paths, Depth: int(c.limits.Depth)}, visit)
}

// Len returns the number of tensors, each counted once for each path to it.
func (c *Checkpoint) Len() int { return len(c.tensors) }

// Names returns the flat names of the tensors in the order of the file. The
// slice is a copy; names can repeat.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Tensors yields the flat name and the tensor of every path to one, in the
// order of the file. Names can repeat; [Checkpoint.Walk] gives exact paths.
func (c *Checkpoint) Tensors() iter.Seq2[string, *nested.Tensor] {
	return func(yield func(string, *nested.Tensor) bool) {
		for i, name := range c.names {
			if !yield(name, c.tensors[i]) {
				return
			}
		}
	}
}

// Lookup returns the tensor with the given flat name. It fails with
// [fault.ErrNotFound], naming the near miss, or with [fault.ErrAmbiguous] when
// several tensors have the name.
func (c *Checkpoint) Lookup(name string) (*nested.Tensor, error) {
	i := slices.Index(c.names, name)
	if i < 0 {
		return nil, c.missing(name)
	}
	for j := i + 1; j < len(c.names); j++ {
		if c.names[j] == name && c.tensors[j] != c.tensors[i] {
			return nil, fault.New(fault.Ambiguous, "several tensors are called "+name).In(c.Info.Name).
				Needs("one", "give the exact path")
		}
	}
	return c.tensors[i], nil
}

func (c *Checkpoint) missing(name string) error {
	e := fault.New(fault.NotFound, "no tensor is called "+name).In(c.Info.Name)
	if near := nested.Nearest(name, c.names); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}
