package serde

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// How says what becomes of a value that a plan applies.
type How string

// The ways from a tree to a field.
const (
	Copy    How = "copy"    // its elements are read into memory of the field's own
	Convert How = "convert" // the same, converted to another dtype on the way
	View    How = "view"    // the field is the source's memory
	Share   How = "share"   // the field is the slice of another field, see [Shared]
	Lazy    How = "lazy"    // the field is the tensor itself or a part of the tree, not read
	Value   How = "value"   // a scalar or a text, known already
	Call    How = "call"    // the type's own function gets it while the plan runs
	Default How = "default" // absent; the tag's default
)

// Row is one line of a plan. Empty fields are unknown or do not apply.
type Row struct {
	Name  string `json:"name"`            // in the tree, after the rules
	Field string `json:"field,omitempty"` // in the Go value: Layer1[0].Conv1.Weight
	From  string `json:"from,omitempty"`  // what the tree has: "float32 [64, 3, 7, 7]"
	To    string `json:"to,omitempty"`    // what the field is: "[]float32"
	How   How    `json:"how,omitempty"`
	Bytes int64  `json:"bytes"`          // that the field takes, 0 for what is not in memory
	Near  string `json:"near,omitempty"` // for a missing or unexpected name, the one it may have been meant to be
	Note  string `json:"note,omitempty"` // why: the reason of a mismatch or of a copy
}

// Plan is what will become of every value of a tree and every field of a Go
// value, known before a byte of a tensor is read. Rows are in the order of the
// fields, unexpected ones in the order of the file. A Plan is not safe for
// concurrent use; its rows must not be changed.
type Plan struct {
	Applied    []Row `json:"applied"`
	Missing    []Row `json:"missing"`    // fields that find nothing
	Unexpected []Row `json:"unexpected"` // tensors that no field takes
	Mismatched []Row `json:"mismatched"` // fields that do not fit what they find
	Ignored    []Row `json:"ignored"`    // other values that no field takes; never an error

	// PeakBytes is the most memory that the run will hold beyond what is held
	// now: the fields' slices, staging for Go arrays, and the mover's buffers.
	PeakBytes int64 `json:"peak_bytes"`
	// FieldBytes is the memory of the fields' own slices among it.
	FieldBytes int64 `json:"field_bytes"`
	// AliasBytes is the memory of the source that fields will alias.
	AliasBytes int64 `json:"alias_bytes"`

	// Rules is what the rules did to the tree.
	Rules *rules.Report `json:"-"`

	cfg    *config
	loads  []load
	calls  []func(context.Context) error // after the bytes are there, before anything is assigned
	commit []func()                      // assignments, which cannot fail
}

// load is one tensor that goes into memory.
type load struct {
	t       *tensor.Tensor
	el      element
	row     int32 // in Applied
	tied    int32 // the load of the same tensor that is read for this one, -1 if none
	data    any   // the []T, once it is made
	lent    bool  // data is the source's memory
	share   bool  // data is the slice of tied, else a copy of what was read for it
	staged  bool  // data is copied on into a place that is no slice
	mutable bool

	how holder        // how dst holds the data
	dst reflect.Value // the field

	verify func(data any) error // that set will not fail; may be nil
	set    func(data any)       // assigns, if how does not say it all; it cannot fail
}

// bytes is the memory of the load's elements.
func (l *load) bytes() int64 { return l.t.Len() * int64(l.el.dtype().Size()) }

// len is the number of elements, which fits an int.
func (l *load) len() int { return int(l.t.Len()) }

// commit assigns the data. It cannot fail.
func (l *load) commit() {
	if l.set != nil {
		l.set(l.data)
		return
	}
	var shape []int // for a field that has one
	if l.how == inArray || l.how == inNested {
		shape = l.t.Shape()
	}
	l.el.store(l.dst, l.how, shape, l.data)
}

// own reports whether the load needs memory of its own.
func (l *load) own() bool { return !l.lent && !l.share }

// NewPlan matches the tree below root to the value that v points to, from
// metadata alone. It returns a plan even when that does not fit: [Plan.Err]
// tells. It fails when there is no plan at all: v is no pointer, a tag or an
// option is wrong ([fault.ErrUsage]), a key is absent ([fault.ErrNotFound]),
// rules collide ([fault.ErrCollision]), the tree is over a limit.
//
// v is not changed before [Plan.Run] has read everything.
func NewPlan(root nested.Value, v any, opts ...Option) (*Plan, error) {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return nil, fault.New(fault.Usage, "a destination that is no pointer").Needs("a pointer to what is to be filled", "")
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	root, report, err := cfg.rules.Apply(root)
	if err != nil {
		return nil, err
	}
	index, err := rules.NewIndex(root)
	if err != nil {
		return nil, err
	}
	m := &matcher{cfg: cfg, index: index, plan: &Plan{cfg: cfg, Rules: report}, used: make([]bool, len(index.Entries)),
		log: make([]int, 0, min(len(index.Entries), 1024)), within: make([]inlining, 0, 2)}
	if err := m.value(target.Elem(), place{prefix: cfg.prefix, name: trimDot(cfg.prefix)}, rules.Flags{}); err != nil {
		return nil, err
	}
	m.finish()
	return m.plan, nil
}

// Err returns nil if the plan can run, else a [*FitError] that lists what is
// missing, unexpected and mismatched, unless options allow it.
func (p *Plan) Err() error {
	missing, unexpected := p.Missing, p.Unexpected
	if p.cfg.allowMissing {
		missing = nil
	}
	if p.cfg.allowUnexpected {
		unexpected = nil
	}
	if len(missing)+len(unexpected)+len(p.Mismatched) == 0 {
		return nil
	}
	return newFitError(p, missing, unexpected)
}

// moves makes the memory that the plan needs and returns the moves into it.
func (p *Plan) moves() ([]tensor.Move, error) {
	sizes, err := p.sizes()
	if err != nil {
		return nil, err
	}
	var slab *tensor.Slab
	if sizes != nil && !p.cfg.separate {
		slab = tensor.NewSlab(sizes)
	}
	moves := make([]tensor.Move, 0, len(sizes))
	for i := range p.loads {
		l := &p.loads[i]
		switch {
		case l.lent:
			continue
		case l.share:
			l.data = p.loads[l.tied].data
			continue
		case slab == nil:
			l.data = l.el.fresh(l.len())
		default:
			l.data = l.el.carve(slab, i, l.len())
		}
		if l.tied < 0 {
			moves = append(moves, tensor.Move{From: l.t, To: l.el.sink(l.data)})
		}
	}
	return moves, nil
}

// sizes returns the bytes of each load's own memory, nil if none has any. It
// refuses what zero strides make of few bytes.
func (p *Plan) sizes() ([]int64, error) {
	if !slices.ContainsFunc(p.loads, func(l load) bool { return l.own() }) {
		return nil, nil //nolint:nilnil // no memory to make, which is no fault
	}
	sizes, total := make([]int64, len(p.loads)), int64(0)
	ts := make([]*tensor.Tensor, 0, len(p.loads))
	for i := range p.loads {
		l := &p.loads[i]
		if !l.own() {
			continue
		}
		ts = append(ts, l.t)
		total += l.bytes()
		if l.el.dtype() != tensor.Bool { // a []bool is never cut from a slab
			sizes[i] = l.bytes()
		}
	}
	return sizes, tensor.Room(ts, total, p.cfg.mover...)
}

// finish lists what no field takes, finds near misses and adds up the memory.
func (m *matcher) finish() {
	p := m.plan
	for i := range m.index.Entries {
		e := &m.index.Entries[i]
		if m.used[i] || e.Inside() || !strings.HasPrefix(e.Name, m.cfg.prefix) {
			continue
		}
		row := Row{Name: e.Name, From: describe(e.Value)}
		if e.Tensor() != nil {
			p.Unexpected = append(p.Unexpected, row)
		} else {
			p.Ignored = append(p.Ignored, row)
		}
	}
	nearMisses(p.Missing, p.Unexpected)
	m.tie()
	m.sum()
}

// maxNear bounds how many rows get a near miss, and maxCandidates among how
// many names it is looked for.
const (
	maxNear       = 64
	maxCandidates = 4096
)

func nearMisses(missing, unexpected []Row) {
	find := func(rows, among []Row) {
		var names []string
		for _, r := range among[:min(len(among), maxCandidates)] {
			names = append(names, r.Name)
		}
		for i := range rows[:min(len(rows), maxNear)] {
			rows[i].Near = nested.Nearest(rows[i].Name, names)
		}
	}
	find(missing, unexpected)
	find(unexpected, missing)
}

// sum adds up the memory.
func (m *matcher) sum() {
	p := m.plan
	staged, converted := int64(0), int64(0)
	for i := range p.loads {
		l := &p.loads[i]
		row := &p.Applied[l.row]
		size := l.bytes()
		switch {
		case l.lent:
			p.AliasBytes += size
		case l.share:
		case l.staged:
			staged += size
		default:
			p.FieldBytes += size
		}
		if row.How == Convert || row.How == Copy && !l.t.Contiguous() {
			converted += size
		}
	}
	p.PeakBytes = p.FieldBytes + staged + min(converted, tensor.DefaultMemory)
}

// tie finds loads of the same tensor into the same element type: it is read
// once, and the others get a copy, or share its slice.
func (m *matcher) tie() {
	loads := m.plan.loads
	own := 0
	for i := range loads {
		if !loads[i].lent {
			own++
		}
	}
	if own < 2 || len(loads) > math.MaxInt32 {
		return
	}
	first := make(map[origin]int32, own) // one more than the last load that begins there
	before := make([]int32, len(loads))  // the same, for the one before it
	for i := range loads {
		l := &loads[i]
		s, offset, ok := l.t.Origin()
		if l.lent || !ok {
			continue
		}
		at := origin{s, offset}
		k, met := first[at], 0
		for k != 0 && met < maxTied && !(loads[k-1].el == l.el && loads[k-1].t.Same(l.t)) {
			k, met = before[k-1], met+1
		}
		switch {
		case met == maxTied:
		case k != 0:
			m.tieTo(l, int(k-1))
		default:
			before[i], first[at] = first[at], int32(i+1)
		}
	}
}

// origin is where the first element of a tensor is.
type origin struct {
	storage *tensor.Storage
	offset  int64
}

// maxTied bounds how many different views that begin at one element are
// compared with another.
const maxTied = 32

func (m *matcher) tieTo(l *load, k int) {
	other := &m.plan.loads[k]
	l.tied = int32(k)
	l.share = m.cfg.shared && !l.staged && !other.staged && !l.mutable && !other.mutable
	row := &m.plan.Applied[l.row]
	row.Note = "tied to " + m.plan.Applied[other.row].Field
	if l.share {
		row.How = Share
	}
}
