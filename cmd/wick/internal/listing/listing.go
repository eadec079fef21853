// Package listing turns an opened checkpoint into the rows that commands
// print: tensors, plain values and opaque objects, in the order of the file.
package listing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Listing is everything that can be named in a checkpoint.
type Listing struct {
	File    string
	Format  string
	Tensors []Tensor
	Values  Values
	Sets    []Set
	Opaque  []Opaque
	Empty   Values // containers that hold nothing; an empty set is one too
	Sharded bool   // whether the tensors lie in more than one file

	file    string // of the first storage whose file is known
	sets    setFinder
	owners  map[string]*tensor.Storage // the first storage of each name
	renamed map[*tensor.Storage]string // names of the others
	repeats map[string]int             // how many others there are, by name
	last    *tensor.Storage            // named last: many tensors lie in one
	seq     int
	keys    []nested.Value // a block that paths are cut from
}

// Tensor is one way to one tensor. Two rows with the same Leaf are one tensor
// under two names.
type Tensor struct {
	Seq  int // its place among all rows of the file
	Path nested.Path
	Leaf nested.Leaf
	// Err says why the bytes cannot be had, nil when they can or were not asked for.
	Err error
	// Sum is the SHA-256 of the packed little-endian bytes, nil if it was not
	// computed.
	Sum *[sha256.Size]byte

	channels *channels // of a per-channel quantized tensor, once read
}

// Value is a plain value.
type Value struct {
	Seq   int
	Path  nested.Path
	Value nested.Value
}

// Opaque is an object that was not built.
type Opaque struct {
	Seq           int
	Path          nested.Path
	Class, Reason string
}

// Of lists a checkpoint. It fails only on a tree over the checkpoint's limits.
func Of(c *checkpoint.Checkpoint) (*Listing, error) {
	l := &Listing{File: c.Info.Name, Format: c.Info.Format, sets: setFinder{root: c.Root}}
	l.owners = make(map[string]*tensor.Storage, len(c.Info.Storages))
	l.Tensors = make([]Tensor, 0, c.Len())
	err := c.Walk(func(p nested.Path, v nested.Value) error {
		l.add(l.keep(p), v)
		return nil
	})
	return l, err
}

// keep returns a copy of a path that is cut from a block of keys.
func (l *Listing) keep(p nested.Path) nested.Path {
	const block = 1 << 10
	if len(l.keys) < len(p) {
		l.keys = make([]nested.Value, max(min(block, 8*(l.seq+1)), len(p)))
	}
	kept := nested.Path(l.keys[:len(p):len(p)])
	l.keys = l.keys[len(p):]
	copy(kept, p)
	return kept
}

// nameStorages gives every storage of a tensor a name that no other storage of
// the listing has: its record's, with #2, #3 … where several lie in one record.
func (l *Listing) nameStorages(t *tensor.Tensor) {
	for s := range t.Storages() {
		if s == l.last {
			continue
		}
		l.last = s
		l.noteFile(s.File())
		owner, known := l.owners[s.Name()]
		switch {
		case !known:
			l.owners[s.Name()] = s
		case owner != s && l.renamed[s] == "":
			l.rename(s)
		}
	}
}

// noteFile notes that a storage lies in a file.
func (l *Listing) noteFile(file string) {
	switch {
	case file == "":
	case l.file == "":
		l.file = file
	case file != l.file:
		l.Sharded = true
	}
}

// FileName returns the name, without folders, of the file that a storage lies in,
// where the tensors of the listing lie in more than one; else "".
func (l *Listing) FileName(s *tensor.Storage) string {
	if file := s.File(); l.Sharded && file != "" {
		return path.Base(filepath.ToSlash(file))
	}
	return ""
}

// rename gives a name to a storage whose own is taken.
func (l *Listing) rename(s *tensor.Storage) {
	if l.renamed == nil {
		l.renamed, l.repeats = map[*tensor.Storage]string{}, map[string]int{}
	}
	l.repeats[s.Name()]++
	l.renamed[s] = s.Name() + "#" + strconv.Itoa(l.repeats[s.Name()]+1)
}

// StorageName returns the name of a storage, which no other storage of the
// listing has.
func (l *Listing) StorageName(s *tensor.Storage) string {
	if name, ok := l.renamed[s]; ok {
		return name
	}
	return s.Name()
}

func (l *Listing) add(p nested.Path, v nested.Value) {
	l.seq++
	switch v := v.(type) {
	case nested.Leaf:
		l.nameStorages(v.AsTensor())
		l.Tensors = append(l.Tensors, Tensor{Seq: l.seq, Path: p, Leaf: v, Err: v.AsTensor().Err()})
	case *nested.Opaque:
		l.Opaque = append(l.Opaque, Opaque{Seq: l.seq, Path: p, Class: v.Class, Reason: v.Reason})
	case *nested.Map, *nested.List: // empty: a walk names no others
		if !l.isMembers(p) {
			l.addValue(&l.Empty, p, v)
		}
	default:
		l.addValue(&l.Values, p, v)
	}
}

// isMembers reports whether a path is the last opaque object's own: what lies
// there holds its members.
func (l *Listing) isMembers(p nested.Path) bool {
	n := len(l.Opaque)
	return n > 0 && l.Opaque[n-1].Seq == l.seq-1 && SamePath(l.Opaque[n-1].Path, p)
}

// addValue adds a plain value or an empty container to rows, or, in the place of
// the first of its elements, the set that it is an element of.
func (l *Listing) addValue(rows *Values, p nested.Path, v nested.Value) {
	set, depth := l.sets.find(p)
	if set == nil {
		rows.add(Value{Seq: l.seq, Path: p, Value: v})
		return
	}
	p = p[:depth]
	if n := len(l.Sets); n == 0 || l.Sets[n-1].List != set || !SamePath(l.Sets[n-1].Path, p) {
		l.Sets = append(l.Sets, Set{Seq: l.seq, Path: p, List: set})
	}
}

// Filter keeps the rows whose flat names and paths keep accepts.
func (l *Listing) Filter(keep func(name string, path nested.Path) bool) {
	drop := func(p nested.Path) bool {
		name, _ := p.Text()
		return !keep(name, p)
	}
	l.Tensors = slices.DeleteFunc(l.Tensors, func(t Tensor) bool { return drop(t.Path) })
	l.Values.drop(drop)
	l.Empty.drop(drop)
	l.Sets = slices.DeleteFunc(l.Sets, func(s Set) bool { return drop(s.Path) })
	l.Opaque = slices.DeleteFunc(l.Opaque, func(o Opaque) bool { return drop(o.Path) })
}

// Names returns the flat names of all rows, and their paths.
func (l *Listing) Names() (names []string, paths []nested.Path) {
	add := func(p nested.Path) {
		name, _ := p.Text()
		names, paths = append(names, name), append(paths, p)
	}
	for i := range l.Tensors {
		add(l.Tensors[i].Path)
	}
	for v := range l.Values.All() {
		add(v.Path)
	}
	for i := range l.Sets {
		add(l.Sets[i].Path)
	}
	for i := range l.Opaque {
		add(l.Opaque[i].Path)
	}
	for v := range l.Empty.All() {
		add(v.Path)
	}
	return names, paths
}

// Err returns the error that decides the exit code of a listing: the first of
// the rows whose bytes break their format, else the first that is over a limit
// or not supported, else nil. A tensor that by nature has no bytes is no fault.
func (l *Listing) Err() error {
	var lesser error
	for i := range l.Tensors {
		err := l.Tensors[i].Err
		switch RowKind(err) {
		case "":
		case fault.Malformed, fault.Checksum:
			return l.Tensors[i].located(l.File)
		default:
			if lesser == nil {
				lesser = l.Tensors[i].located(l.File)
			}
		}
	}
	return lesser
}

// located returns the row's error with its file and path filled in.
func (t *Tensor) located(file string) error { return Locate(t.Err, file, t.Name()) }

// Locate returns err with its file and path filled in where they are not yet
// known. It changes a copy: a tensor gives the same error to everybody.
func Locate(err error, file, path string) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		e = fault.Wrap(fault.IO, "", err)
	}
	at := *e
	return at.In(file).OnPath(path)
}

// RowKind returns the kind that a row states for an error: one of "malformed",
// "checksum", "limit" and "unsupported"; "" for no fault.
func RowKind(err error) fault.Kind {
	if err == nil {
		return ""
	}
	switch k := fault.KindOf(err); k {
	case fault.NoData:
		return ""
	case fault.Checksum, fault.Limit, fault.Unsupported:
		return k
	default: // a record that is not there breaks the container that names it
		return fault.Malformed
	}
}

// NoData reports whether the tensor by nature has no bytes.
func (t *Tensor) NoData() bool { return fault.KindOf(t.Err) == fault.NoData }

// Tensor returns the lazy tensor.
func (t *Tensor) Tensor() *tensor.Tensor { return t.Leaf.AsTensor() }

// Name returns the flat name as text.
func (t *Tensor) Name() string {
	name, _ := t.Path.Text()
	return name
}

// Hex returns the SHA-256 in hexadecimal, "" when it was not computed.
func (t *Tensor) Hex() string {
	if t.Sum == nil {
		return ""
	}
	return hex.EncodeToString(t.Sum[:])
}

// KeyText returns one key's part of a flat name, as [nested.Path.Text] does.
func KeyText(key nested.Value) (text, encoding string) {
	return nested.String(nested.KeyName(key)).Text()
}
