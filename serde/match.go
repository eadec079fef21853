package serde

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// maxDepth bounds structs in structs, which a recursive type and a hostile
// tree could otherwise make endless.
const maxDepth = 500

// matcher walks a Go value beside the names of a tree and writes the plan.
// Nothing that the caller can see changes meanwhile: new structs, slices and
// maps are made, and the plan's commits put them into place.
type matcher struct {
	cfg    *config
	index  *rules.Index
	plan   *Plan
	used   []bool // beside the index's entries
	log    []int  // the entries in the order in which they were used
	depth  int
	within []inlining // the structs that are being matched, outermost first
}

// inlining is a struct type whose fields stand at a prefix.
type inlining struct {
	t      reflect.Type
	prefix string
}

// place is where in the tree a Go value is looked for.
type place struct {
	name     string      // the flat name of the value itself
	prefix   string      // of the names below it: name and a dot, "" for the root or if lazy; see below
	lazy     bool        // prefix is made when it is needed
	field    string      // where in the Go value
	expr     *rules.Expr // how to get it, nil for the name itself
	optional bool        // absent is no error
	listed   bool        // an item of a list: flags of the list's tag do not count
}

// at returns the place called key below p.
func (p place) at(key string) place {
	prefix := p.below() + key + "."
	return place{name: prefix[:len(prefix)-1], prefix: prefix}
}

// below returns the prefix of the names below p.
func (p place) below() string {
	if p.lazy {
		return p.name + "."
	}
	return p.prefix
}

// at returns the place called key below p. Where the tree has something of that name
// the name is not made again.
func (m *matcher) at(p place, key string) place {
	if name, ok := m.index.Named(p.below(), key); ok {
		return place{name: name, lazy: true}
	}
	return p.at(key)
}

func trimDot(prefix string) string { return strings.TrimSuffix(prefix, ".") }

func (m *matcher) use(i int) {
	if !m.used[i] {
		m.used[i] = true
		m.log = append(m.log, i)
	}
}

// exists reports whether the tree has anything at or below p.
func (m *matcher) exists(p place) bool {
	if p.name == "" && p.below() == "" {
		return true
	}
	return len(m.index.Lookup(p.name)) > 0 || len(m.index.Under(p.below())) > 0
}

// value matches one Go value. The error ends the plan: the type or a tag is
// wrong, not the tree.
func (m *matcher) value(dst reflect.Value, p place, flags rules.Flags) error {
	if m.depth++; m.depth > maxDepth {
		return fault.NewBound("depth of the Go value", int64(m.depth), maxDepth).OnPath(p.name)
	}
	defer func() { m.depth-- }()
	t := dst.Type()
	if ok, err := m.own(dst, p, flags); ok || err != nil {
		return err
	}
	if pk, ok := packedOf(t); ok {
		return m.packed(dst, p, flags, pk)
	}
	switch t {
	case tensorType, nestedTensorType:
		return m.lazy(dst, p, flags)
	}
	if t.Kind() == reflect.Interface && (t.NumMethod() == 0 || t == valueType) || t.Implements(valueType) {
		return m.raw(dst, p)
	}
	return m.kind(dst, p, flags)
}

var (
	tensorType       = reflect.TypeFor[*tensor.Tensor]()
	nestedTensorType = reflect.TypeFor[*nested.Tensor]()
	valueType        = reflect.TypeFor[nested.Value]()
)

// kind matches by the kind of Go type.
func (m *matcher) kind(dst reflect.Value, p place, flags rules.Flags) error {
	if isScalar(dst.Type()) {
		return m.scalar(dst, p, flags)
	}
	switch dst.Kind() {
	case reflect.Pointer:
		return m.pointer(dst, p, flags)
	case reflect.Struct:
		return m.structure(dst, p)
	case reflect.Array:
		return m.array(dst, p, flags)
	case reflect.Slice:
		return m.list(dst, p, flags)
	case reflect.Map:
		return m.dict(dst, p, flags)
	case reflect.Interface:
		return m.variant(dst, p, flags)
	default:
		return fault.New(fault.Usage, "a field of type "+dst.Type().String()).OnPath(p.field).
			Needs("a packed slice, an array, a struct, a slice or map of them, a scalar, a string or a tensor", `leave it out with the tag torch:"-"`)
	}
}

// containerExpr refuses an expression on what is no tensor.
func containerExpr(dst reflect.Value, p place) error {
	if p.expr == nil {
		return nil
	}
	return fault.New(fault.Usage, "the expression "+p.expr.String()+" for a "+dst.Type().String()).OnPath(p.field).
		Needs("a plain name", "expressions make tensors")
}

// structure matches the fields of a struct to the names below p.
func (m *matcher) structure(dst reflect.Value, p place) error {
	if err := containerExpr(dst, p); err != nil {
		return err
	}
	here := inlining{dst.Type(), p.below()}
	if slices.Contains(m.within, here) {
		return fault.New(fault.Usage, "a "+here.t.String()+" that stands inside of itself at the same names").OnPath(p.field)
	}
	m.within = append(m.within, here)
	defer func() { m.within = m.within[:len(m.within)-1] }()
	fields, err := fieldsOf(dst.Type())
	if err != nil {
		return err
	}
	for i := range fields {
		if err := m.field(dst, p, &fields[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *matcher) field(dst reflect.Value, p place, f *field) error {
	child := place{name: p.name, prefix: p.below() + f.flags.Prefix}
	if name, ok := f.plainName(); !f.flags.Inline && ok {
		child = m.at(p, name)
	} else if !f.flags.Inline {
		expr, err := f.expr.Under(p.below())
		if err != nil {
			return err
		}
		child.expr, child.name, child.prefix = expr, expr.String(), ""
	}
	child.field = joinField(p.field, f.goName)
	child.optional = f.flags.Optional || f.flags.Default != nil
	return m.value(dst.Field(f.index), child, *f.flags)
}

func joinField(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// pointer matches what it points to; it is optional, and stays as it is when
// the tree has nothing for it.
func (m *matcher) pointer(dst reflect.Value, p place, flags rules.Flags) error {
	if p.expr == nil && !flags.Inline && (!m.exists(p) || m.isNone(p)) {
		return nil
	}
	p.optional = true
	before := m.mark()
	fresh := dst
	if dst.IsNil() {
		fresh = reflect.New(dst.Type().Elem())
	}
	if err := m.value(fresh.Elem(), p, flags); err != nil {
		return err
	}
	if flags.Inline && len(m.log) == before.log { // none of the inlined names was there
		m.rollback(before)
	}
	if after := m.mark(); dst.IsNil() && (p.expr == nil && !flags.Inline && m.useEmpty(p) || after.commit > before.commit || after.loads > before.loads || after.calls > before.calls) {
		m.plan.commit = append(m.plan.commit, func() { dst.Set(fresh) })
	}
	return nil
}

// isNone reports whether the tree has None at p, and uses it.
func (m *matcher) isNone(p place) bool {
	for _, i := range m.index.Lookup(p.name) {
		if _, ok := m.index.Entries[i].Value.(nested.None); ok {
			m.use(i)
			return true
		}
	}
	return false
}

// array matches a Go array: of elements, to a tensor of the same shape, else
// item by item.
func (m *matcher) array(dst reflect.Value, p place, flags rules.Flags) error {
	if dims, el, ok := fixedOf(dst.Type()); ok && (p.expr != nil || len(m.index.Under(p.below())) == 0) {
		return m.fixed(dst, p, flags, dims, el)
	}
	if err := containerExpr(dst, p); err != nil {
		return err
	}
	if p.optional && !m.exists(p) {
		return nil
	}
	for i := range dst.Len() {
		if err := m.item(dst.Index(i), p, strconv.Itoa(i), flags); err != nil {
			return err
		}
	}
	return nil
}

// item matches one item of a list or a map.
func (m *matcher) item(dst reflect.Value, p place, key string, flags rules.Flags) error {
	child := m.at(p, key)
	child.field, child.listed = p.field+"["+key+"]", true
	flags.Shape, flags.Gaps, flags.Inline, flags.Prefix, flags.Default = nil, "", false, "", nil
	return m.value(dst, child, flags)
}

// dict matches a map: of structs, lists and maps to the keys directly below p,
// of all else to whole names below p.
func (m *matcher) dict(dst reflect.Value, p place, flags rules.Flags) error {
	if err := containerExpr(dst, p); err != nil {
		return err
	}
	t := dst.Type()
	if !isKey(t.Key()) {
		return fault.New(fault.Usage, "a map with keys of type "+t.Key().String()).OnPath(p.field).Needs("strings or integers", "")
	}
	if p.optional && !m.exists(p) {
		return nil
	}
	fresh := reflect.MakeMap(t)
	for _, key := range m.keys(p, t.Elem()) {
		k, ok := mapKey(t.Key(), key)
		if !ok {
			continue
		}
		elem := reflect.New(t.Elem()).Elem()
		if err := m.item(elem, p, key, flags); err != nil {
			return err
		}
		m.plan.commit = append(m.plan.commit, func() { fresh.SetMapIndex(k, elem) })
	}
	m.useEmpty(p)
	if !m.exists(p) {
		m.missing(p, t)
		return nil
	}
	m.plan.commit = append(m.plan.commit, func() { dst.Set(fresh) })
	return nil
}

// keys are the keys of a map with values of type t.
func (m *matcher) keys(p place, t reflect.Type) []string {
	if m.isContainer(t) {
		return m.index.Children(p.below())
	}
	var keys []string
	for _, i := range m.index.Under(p.below()) {
		if e := &m.index.Entries[i]; !e.Inside() {
			keys = append(keys, e.Name[len(p.below()):])
		}
	}
	return keys
}

// isContainer reports whether values of type t have names below their own.
func (m *matcher) isContainer(t reflect.Type) bool {
	_, packed := packedOf(t)
	_, _, fixed := fixedOf(t)
	switch {
	case packed || fixed || isScalar(t) || t == tensorType || t == nestedTensorType:
		return false
	case t.Kind() == reflect.Pointer:
		return m.isContainer(t.Elem())
	default:
		return !t.Implements(valueType) && !(t.Kind() == reflect.Interface && t.NumMethod() == 0)
	}
}

func isInt(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64
}

// isKey reports whether a map's keys can be those of a tree.
func isKey(t reflect.Type) bool {
	return t.Kind() == reflect.String || isInt(t) || isUint(t.Kind()) && !smallFloat(t)
}

// mapKey returns the key of a Go map that is spelled so in a tree; ok is false when
// the type has none. Only one spelling of a number is its key.
func mapKey(t reflect.Type, key string) (k reflect.Value, ok bool) {
	k = reflect.New(t).Elem()
	switch {
	case t.Kind() == reflect.String:
		k.SetString(key)
	case isInt(t):
		n, err := strconv.ParseInt(key, 10, t.Bits())
		if err != nil {
			return k, false
		}
		k.SetInt(n)
	default:
		n, err := strconv.ParseUint(key, 10, t.Bits())
		if err != nil {
			return k, false
		}
		k.SetUint(n)
	}
	return k, keyText(k) == key
}

// keyText is how the key of a Go map is spelled in a tree.
func keyText(k reflect.Value) string {
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10)
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10)
	default:
		return k.String()
	}
}

// useEmpty uses an empty container at p, and reports whether there is one.
func (m *matcher) useEmpty(p place) bool {
	found := false
	for _, i := range m.index.Lookup(p.name) {
		switch m.index.Entries[i].Value.(type) {
		case *nested.Map, *nested.List:
			m.use(i)
			found = true
		}
	}
	return found
}

// list matches a slice to the indexes below p: a module list, a list of
// tensors or of scalars.
func (m *matcher) list(dst reflect.Value, p place, flags rules.Flags) error {
	if err := containerExpr(dst, p); err != nil {
		return err
	}
	t := dst.Type()
	indexes := m.indexes(p)
	if len(indexes) == 0 && !m.useEmpty(p) {
		if !m.isNone(p) {
			m.absent(p, t, need(t))
		}
		return nil
	}
	at, n, wrong := placeIndexes(indexes, m.gaps(flags))
	if wrong != "" {
		m.mismatch(p, "indexes "+listed(indexes), t, wrong)
		m.useBelow(p)
		return nil
	}
	fresh := reflect.MakeSlice(t, n, n)
	for i, k := range indexes {
		if err := m.item(fresh.Index(at[i]), p, k.text, flags); err != nil {
			return err
		}
	}
	m.plan.commit = append(m.plan.commit, func() { dst.Set(fresh) })
	return nil
}

// need says what a slice of type t is filled from.
func need(t reflect.Type) string {
	if t.Elem().Kind() == reflect.Int || t.Elem().Kind() == reflect.Uint {
		return "a list; a tensor of integers goes into a []" + t.Elem().Kind().String() + "64"
	}
	return "a list"
}

func (m *matcher) gaps(flags rules.Flags) string {
	if flags.Gaps != "" {
		return flags.Gaps
	}
	return m.cfg.gaps
}

func (m *matcher) useBelow(p place) {
	for _, i := range m.index.Under(p.below()) {
		m.use(i)
	}
}

// index is a decimal key.
type index struct {
	text string
	n    int
}

// indexes returns the decimal keys below p in order.
func (m *matcher) indexes(p place) []index {
	var out []index
	for _, key := range m.index.Children(p.below()) {
		n, err := strconv.ParseInt(key, 10, 32)
		if err == nil && n >= 0 && strconv.FormatInt(n, 10) == key {
			out = append(out, index{key, int(n)})
		}
	}
	return out
}

// maxSparse bounds a list that keeps its gaps: at most so many places for each
// item that is there.
const maxSparse = 64

// placeIndexes returns where each index goes in a slice of n, or what is wrong.
func placeIndexes(indexes []index, gaps string) (at []int, n int, wrong string) {
	at = make([]int, len(indexes))
	for i, k := range indexes {
		at[i] = i
		if gaps == "keep" {
			at[i] = k.n
		} else if gaps != "close" && k.n != i {
			return nil, 0, "index " + strconv.Itoa(i) + " is absent; gaps=close moves the later ones up, gaps=keep leaves zero values"
		}
	}
	if len(at) > 0 {
		n = at[len(at)-1] + 1
	}
	if n > (len(at)+1)*maxSparse {
		return nil, 0, "too wide a gap to keep"
	}
	return at, n, ""
}

// listed prints indexes, the first few.
func listed(indexes []index) string {
	var parts []string
	for _, k := range indexes[:min(len(indexes), 8)] {
		parts = append(parts, k.text)
	}
	if len(indexes) > 8 {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// mark is a point to which the matcher can go back.
type mark struct{ applied, missing, mismatched, loads, calls, commit, log int }

func (m *matcher) mark() mark {
	p := m.plan
	return mark{len(p.Applied), len(p.Missing), len(p.Mismatched), len(p.loads), len(p.calls), len(p.commit), len(m.log)}
}

func (m *matcher) rollback(to mark) {
	p := m.plan
	p.Applied, p.Missing, p.Mismatched = p.Applied[:to.applied], p.Missing[:to.missing], p.Mismatched[:to.mismatched]
	p.loads, p.calls, p.commit = p.loads[:to.loads], p.calls[:to.calls], p.commit[:to.commit]
	for _, i := range m.log[to.log:] {
		m.used[i] = false
	}
	m.log = m.log[:to.log]
}
