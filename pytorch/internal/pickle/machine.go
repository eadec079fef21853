package pickle

import (
	"math"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// How says which sort of opcode asks for an object.
type How uint8

// The ways to make an object.
const (
	Reduce   How = iota // REDUCE: callee(*args)
	New                 // NEWOBJ, NEWOBJ_EX: callee.__new__(callee, *args)
	Instance            // INST, OBJ: an instance of a class of Python 2
	Constant            // REDUCE: callee(), of which nothing but an item of a tuple becomes, so that it stays as it is
)

// Host gives meaning to what a pickle names. The machine itself knows Python's
// plain values only and never runs anything. Errors of a Host end the run; what
// it does not know it must answer with a value that says so.
type Host interface {
	// Global returns the value of module.name. It is asked once for each name;
	// offset is that of the first opcode that names it.
	Global(module, name string, offset int64) (nested.Value, error)
	// Persistent returns what a persistent id stands for. A tuple is only valid
	// during the call.
	Persistent(id nested.Value) (nested.Value, error)
	// PersistentText does the same for the text form of protocol 0.
	PersistentText(id string) (nested.Value, error)
	// Call returns what callee makes of args. It may keep args, unless it said
	// of the callee that it borrows them.
	Call(how How, callee nested.Value, args *nested.List) (nested.Value, error)
	// Borrows reports whether a REDUCE of callee keeps neither its tuple of
	// arguments nor the slice in it. Then they are only valid during the call.
	Borrows(callee nested.Value) bool
	// Build gives state to object, and returns object or what replaces it.
	Build(object, state nested.Value) (nested.Value, error)
	// Extend adds items to an object that is no list or set. The slice is only
	// valid during the call.
	Extend(object nested.Value, items []nested.Value) error
	// Store sets keys and values, which alternate in pairs, in an object that is
	// no map. The slice is only valid during the call.
	Store(object nested.Value, pairs []nested.Value) error
}

// Load carries out one pickle, up to its STOP opcode, and returns its value.
// Whatever the pickle refers to twice is one node of the tree. Present is how
// many bytes the pickle takes where it is kept, which is less than its length when
// it is compressed; zero says that it is as long as it is. With it the size of
// the tree is bounded by limits.Expand and limits.ExpandFloor. Slots is what a
// [Skim] of the same bytes returned; nil keeps the whole memo. Errors carry the
// offset and the opcode.
func Load(c *Cursor, host Host, limits checkpoint.Limits, present int64, slots *Slots) (nested.Value, error) {
	m := newMachine(c, host, limits, present)
	m.slots = slots
	if p, ok := host.(Payer); ok {
		p.Pay(m.pay)
	}
	var op Op
	for !m.done {
		if err := m.quick(&op); err != nil {
			return nil, locate(err, &op)
		}
		if m.done {
			break
		}
		if err := m.scanner.next(&op); err != nil {
			return nil, locate(err, &op)
		}
		if err := instructions[op.Code].run(m, &op); err != nil {
			return nil, locate(err, &op)
		}
	}
	return m.result, nil
}

// machine is Python's pickle machine.
//
//	stack   v v v v v v v      values
//	marks       ^   ^          where each open MARK cut it; nothing below the
//	                           last one can be reached before it is closed
//	memo    0:v 1:v …          what PUT remembered; entries alias the values
type machine struct {
	scanner *Scanner
	host    Host
	limits  checkpoint.Limits
	stack   []nested.Value
	high    int // the most values that were on it
	marks   []int
	memo    memo
	slots   *Slots                        // what of the memo is read; nil for all
	lent    nested.List                   // the tuple that a call is about to borrow
	items   []nested.Value                // what is in it
	forward map[nested.Value]nested.Value // what BUILD replaced, for the memo
	globals map[string]nested.Value
	sets    map[*nested.List]*nested.Map // what is in each set that was added to
	name    []byte                       // scratch for keys of globals
	pool    pool
	present int64
	room    int64 // bytes that the tree may still take
	most    int64
	framed  int64 // where the frames end that were announced
	result  nested.Value
	done    bool
}

func newMachine(c *Cursor, host Host, limits checkpoint.Limits, present int64) *machine {
	limits = limits.Default()
	most := room(limits, present)
	return &machine{
		scanner: NewScanner(c, limits), host: host, limits: limits,
		globals: map[string]nested.Value{}, present: present, room: most, most: most,
	}
}

// room is how many bytes a tree may take: a quarter of what may be materialised
// whatever is present, and half of what each byte may become. The densest sound
// pickles, a million empty dicts, stay under it; compressed bombs do not.
func room(l checkpoint.Limits, present int64) int64 {
	floor, each := l.ExpandFloor/4, max(l.Expand/2, 1)
	if present > (math.MaxInt64-floor)/each {
		return math.MaxInt64
	}
	return floor + present*each
}

// spend takes n bytes of the tree's room.
func (m *machine) spend(n int) error {
	if m.room -= int64(n); m.room < 0 {
		return m.overspent()
	}
	return nil
}

// overspent is the limit's error, unless the size of the input was unknown and
// more of it has come.
func (m *machine) overspent() error {
	if m.present == 0 {
		most := room(m.limits, m.scanner.cursor.came())
		m.room, m.most = m.room+most-m.most, most
	}
	if m.room < 0 {
		return m.tooLarge()
	}
	return nil
}

// tooLarge says how far the limit would have to be raised for what was read.
func (m *machine) tooLarge() error {
	present := m.present
	if present == 0 {
		present = m.scanner.cursor.came()
	}
	return tooLarge(m.limits, m.most-m.room, present)
}

func tooLarge(l checkpoint.Limits, used, present int64) error {
	e := fault.NewLimit("expand", max(2*used/max(present, 1), l.Expand+1), l.Expand)
	e.Found = "a tree of more than " + strconv.FormatInt(room(l, present), 10) + " bytes from a pickle of " + strconv.FormatInt(present, 10)
	return e
}

// What values take in memory, about.
const (
	wordCost = 16 // an interface
	slotCost = 32 // of the stack, which is copied when it grows
	listCost = 48
	mapCost  = 80
	pairCost = 100 // an entry of a map and its index
	callCost = 160 // an opaque object
)

// floor is the lowest index of the stack that can be reached.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) push(v nested.Value) error {
	m.stack = append(m.stack, v)
	if len(m.stack) > m.high {
		return m.grown()
	}
	return nil
}

// grown pays for a stack that is higher than it ever was.
func (m *machine) grown() error {
	m.high = len(m.stack)
	if int64(m.high) > m.limits.Stack {
		return fault.NewLimit("stack", int64(m.high), m.limits.Stack)
	}
	if m.high == cap(m.stack) { // append alone would copy a million values forty times
		m.stack = slices.Grow(m.stack, m.high)
	}
	return m.spend(slotCost)
}

// top returns the last n values of the stack, which alias it.
func (m *machine) top(n int) ([]nested.Value, error) {
	if len(m.stack)-m.floor() < n {
		return nil, fault.New(fault.Malformed, plural(len(m.stack)-m.floor(), "value")+" on the stack").
			Needs("at least "+plural(n, "value"), fault.MadeToDeceive)
	}
	return m.stack[len(m.stack)-n:], nil
}

// pop takes n values off the stack; the slice is valid until the next push.
func (m *machine) pop(n int) ([]nested.Value, error) {
	v, err := m.top(n)
	if err == nil {
		m.stack = m.stack[:len(m.stack)-n]
	}
	return v, err
}

// popMark takes all values above the last mark off the stack, and the mark; the
// slice is valid until the next push.
func (m *machine) popMark() ([]nested.Value, error) {
	if len(m.marks) == 0 {
		return nil, fault.New(fault.Malformed, "no mark on the stack").Needs("a MARK before it", fault.MadeToDeceive)
	}
	at := m.floor()
	v := m.stack[at:]
	m.stack, m.marks = m.stack[:at], m.marks[:len(m.marks)-1]
	return v, nil
}

// wrongType is the error for an operand that cannot be what it has to.
func wrongType(found nested.Value, need string) error {
	return fault.New(fault.Malformed, "a "+nested.TypeName(found)).Needs(need, fault.MadeToDeceive)
}

// memo is what PUT remembered. Writers count from zero, so it is an array, in
// pages that never move, as far as the number of entries justifies one, and a
// map beyond.
type memo struct {
	pages []*[memoPage]nested.Value
	far   map[int64]nested.Value
	count int64
}

const memoPage = 1 << 10

func (m *memo) put(i int64, v nested.Value) {
	if _, ok := m.get(i); !ok {
		m.count++
	}
	page := i / memoPage
	if page > 4*m.count/memoPage+1 {
		if m.far == nil {
			m.far = map[int64]nested.Value{}
		}
		m.far[i] = v
		return
	}
	for page >= int64(len(m.pages)) {
		m.pages = append(m.pages, nil)
	}
	if m.pages[page] == nil {
		m.pages[page] = new([memoPage]nested.Value)
	}
	m.pages[page][i%memoPage] = v
}

func (m *memo) get(i int64) (nested.Value, bool) {
	if page := i / memoPage; page < int64(len(m.pages)) && m.pages[page] != nil {
		if v := m.pages[page][i%memoPage]; v != nil {
			return v, true
		}
	}
	v, ok := m.far[i]
	return v, ok
}
