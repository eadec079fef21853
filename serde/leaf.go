package serde

import (
	"context"
	"reflect"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// describe says what a value of the tree is: "float32 [64, 3]", "int 3".
func describe(v nested.Value) string {
	if leaf, ok := v.(nested.Leaf); ok {
		return leaf.AsTensor().String()
	}
	return nested.TypeName(v) + " " + fault.Clean(nested.Repr(v), 40)
}

// missing notes a field that finds nothing.
func (m *matcher) missing(p place, t reflect.Type) {
	m.plan.Missing = append(m.plan.Missing, Row{Name: p.name, Field: p.field, To: t.String()})
}

// absent notes a field that finds nothing, unless it is optional, or finds
// something that is not what it needs.
func (m *matcher) absent(p place, t reflect.Type, need string) {
	if found := m.index.Lookup(p.name); len(found) > 0 {
		e := &m.index.Entries[found[0]]
		m.use(found[0])
		m.mismatch(p, describe(e.Value), t, "need "+need)
	} else if !p.optional {
		m.missing(p, t)
	}
}

// mismatch notes a field that does not fit what it finds.
func (m *matcher) mismatch(p place, from string, t reflect.Type, why string) {
	m.plan.Mismatched = append(m.plan.Mismatched, Row{Name: p.name, Field: p.field, From: from, To: t.String(), Note: why})
}

// apply notes a field that takes what it finds.
func (m *matcher) apply(p place, from string, t reflect.Type, how How) *Row {
	m.plan.Applied = append(room(m.plan.Applied, m.index), Row{Name: p.name, Field: p.field, From: from, To: t.String(), How: how})
	return &m.plan.Applied[len(m.plan.Applied)-1]
}

// room makes a list that is still empty as long as a small tree will fill it,
// instead of letting it grow.
func room[T any](list []T, index *rules.Index) []T {
	if list != nil {
		return list
	}
	return make([]T, 0, min(len(index.Entries), 1024))
}

// entry returns the one value called p.name, nil if there is none or, noted as
// a mismatch, several.
func (m *matcher) entry(p place, t reflect.Type) (e *rules.Entry, several bool) {
	found := m.index.Lookup(p.name)
	for k, i := range found {
		if m.index.Entries[i].Inside() {
			continue
		}
		if e != nil {
			for _, other := range found[k:] {
				m.use(other)
			}
			m.mismatch(p, "several values of this name", t, `name the one by its exact path, as in ["a.b", 0]`)
			return nil, true
		}
		e = &m.index.Entries[i]
		m.use(i)
	}
	return e, false
}

// tensor returns the tensor for p: the one of its name, or the one that its
// expression makes. When there is none it has noted why, and returns nil. A
// name that holds something else gives that value instead.
func (m *matcher) tensor(p place, t reflect.Type) (*tensor.Tensor, nested.Value) {
	if p.expr != nil {
		return m.expression(p, t), nil
	}
	e, several := m.entry(p, t)
	if e == nil {
		if !several && !p.optional {
			m.missing(p, t)
		}
		return nil, nil
	}
	if ts := e.Tensor(); ts != nil {
		return ts, e.Value
	}
	return nil, e.Value
}

// expression evaluates p's expression.
func (m *matcher) expression(p place, t reflect.Type) *tensor.Tensor {
	var used []int
	out, err := p.expr.Tensor(func(n *rules.Name) ([]*tensor.Tensor, error) {
		found, err := m.index.Tensors(n)
		ts := make([]*tensor.Tensor, len(found))
		for k, i := range found {
			ts[k] = m.index.Entries[i].Tensor()
		}
		used = append(used, found...)
		return ts, err
	}, m.cfg.rules.Params)
	for _, i := range used {
		m.use(i)
	}
	switch {
	case err == nil:
		return out
	case fault.KindOf(err) == fault.NotFound && len(used) == 0 && p.optional:
	case fault.KindOf(err) == fault.NotFound:
		m.missing(p, t)
		m.plan.Missing[len(m.plan.Missing)-1].Note = err.Error()
	default:
		m.mismatch(p, "", t, err.Error())
	}
	return nil
}

// packed matches a slice or an array of elements to a tensor, or to a list of
// scalars.
func (m *matcher) packed(dst reflect.Value, p place, flags rules.Flags, pk packedType) error {
	t := dst.Type()
	if p.expr == nil && !m.hasValue(p.name) && len(m.indexes(p)) > 0 && pk.how == inSlice {
		return m.list(dst, p, flags)
	}
	ts, v := m.tensor(p, t)
	if ts == nil {
		m.packedValue(dst, p, v, pk)
		return nil
	}
	l, row := m.load(ts, p, t, flags, pk.el)
	if l == nil {
		return nil
	}
	l.dst, l.how = dst, pk.how
	row.Bytes = l.bytes()
	m.lend(l, row, flags)
	return nil
}

// hasValue reports whether a name is that of a value, and not only of an object
// whose members have names of their own.
func (m *matcher) hasValue(name string) bool {
	return slices.ContainsFunc(m.index.Lookup(name), func(i int) bool { return !m.index.Entries[i].Inside() })
}

// packedValue matches a packed field to what is no tensor: bytes, an empty
// list, or None.
func (m *matcher) packedValue(dst reflect.Value, p place, v nested.Value, pk packedType) {
	t := dst.Type()
	set := func(data any) {
		m.apply(p, describe(v), t, Value)
		m.plan.commit = append(m.plan.commit, func() { pk.el.store(dst, pk.how, []int{reflect.ValueOf(data).Len()}, data) })
	}
	switch v := v.(type) {
	case nil:
	case nested.None:
		m.apply(p, "None", t, Value)
	case nested.Bytes:
		if pk.el.dtype() == tensor.U8 {
			set([]byte(v))
			return
		}
		m.mismatch(p, describe(v), t, "need []byte")
	case nested.ByteArray:
		if pk.el.dtype() == tensor.U8 {
			set([]byte(v))
			return
		}
		m.mismatch(p, describe(v), t, "need []byte")
	case *nested.List:
		if len(v.Items) == 0 {
			set(pk.el.fresh(0))
			return
		}
		m.mismatch(p, describe(v), t, "need a tensor")
	default:
		m.mismatch(p, describe(v), t, "need a tensor")
	}
}

// load plans to read ts into memory of element el, or notes why that cannot
// be.
func (m *matcher) load(ts *tensor.Tensor, p place, t reflect.Type, flags rules.Flags, el element) (*load, *Row) {
	from := ts.String()
	how := Copy
	if flags.Bits || ts.DType() == tensor.Bool && el.dtype() == tensor.U8 {
		raw, err := ts.Bits()
		if err != nil || raw.DType() != el.dtype() {
			m.mismatch(p, from, t, "bits needs unsigned integers of "+strconv.Itoa(ts.DType().Size())+" bytes")
			return nil, nil
		}
		ts = raw
	} else if ts.DType() != el.dtype() {
		how = Convert
		if why := cannotConvert(ts.DType(), el.dtype()); why != "" {
			m.mismatch(p, from, t, why)
			return nil, nil
		}
	}
	if why := m.wrongShape(ts, flags); why != "" {
		m.mismatch(p, from, t, why)
		return nil, nil
	}
	n := ts.Len()
	if int64(int(n)) != n {
		m.mismatch(p, from, t, "more elements than a slice can have on this machine")
		return nil, nil
	}
	if err := ts.Err(); err != nil {
		m.mismatch(p, from, t, err.Error())
		return nil, nil
	}
	row := m.apply(p, from, t, how)
	m.plan.loads = append(room(m.plan.loads, m.index), load{t: ts, el: el, row: int32(len(m.plan.Applied) - 1), tied: -1, mutable: flags.Mutable})
	return &m.plan.loads[len(m.plan.loads)-1], row
}

// cannotConvert says why elements do not convert, or would not without a
// doubt: a half in an integer field is most often meant to be its bits.
func cannotConvert(from, to tensor.DType) string {
	switch {
	case !tensor.Convertible(from, to):
		return "no conversion from " + from.String() + " to " + to.String()
	case from.Class() == tensor.FloatClass && from.Size() < 4 && to.Class() == tensor.UintClass && to.Size() == from.Size():
		return "a " + to.String() + " field means integers; the tag option bits takes the raw " + from.String()
	case to == tensor.Bool && from != tensor.Bool:
		return "need bool"
	default:
		return ""
	}
}

// wrongShape compares with the shape that the tag asks for.
func (m *matcher) wrongShape(ts *tensor.Tensor, flags rules.Flags) string {
	want, err := flags.WantShape(ts.Shape(), m.cfg.rules.Params)
	switch {
	case err != nil:
		return err.Error()
	case want != "":
		return "need shape " + want
	default:
		return ""
	}
}

// lend makes the field the source's own memory where that is wanted and
// possible; else the row says why not.
func (m *matcher) lend(l *load, row *Row, flags rules.Flags) {
	if !m.cfg.alias && !flags.Alias {
		return
	}
	if flags.Mutable {
		row.Note = "copied: mutable"
		return
	}
	view, err := l.el.view(l.t)
	if err != nil {
		row.Note = "copied: " + why(err)
		return
	}
	l.data, l.lent, row.How = view, true, View
}

// why is the shortest text of an error.
func why(err error) string {
	if e, ok := err.(*fault.Error); ok && e.Found != "" { //nolint:errorlint // only the outermost one is short
		return e.Found
	}
	return err.Error()
}

// fixed matches a Go array of elements to a tensor of the same shape. Its
// elements are read into a slice first and copied when all is well.
func (m *matcher) fixed(dst reflect.Value, p place, flags rules.Flags, dims []int, el element) error {
	t := dst.Type()
	ts, v := m.tensor(p, t)
	if ts == nil {
		if v != nil {
			m.mismatch(p, describe(v), t, "need a tensor")
		}
		return nil
	}
	if flags.Shape == nil {
		flags.Shape = []rules.Number{}
		for _, n := range dims {
			flags.Shape = append(flags.Shape, rules.Size(n))
		}
	}
	l, row := m.load(ts, p, t, flags, el)
	if l == nil {
		return nil
	}
	row.Bytes, l.staged = l.bytes(), true
	if len(flags.Shape) != len(dims) && int64(t.Size()) != l.bytes() {
		m.plan.loads = m.plan.loads[:len(m.plan.loads)-1]
		m.plan.Applied = m.plan.Applied[:len(m.plan.Applied)-1]
		m.mismatch(p, ts.String(), t, "need as many elements as the array has")
		return nil
	}
	l.set = func(data any) { fill(dst, reflect.ValueOf(data), len(dims)) }
	return nil
}

// lazy gives the field the tensor itself, not read.
func (m *matcher) lazy(dst reflect.Value, p place, flags rules.Flags) error {
	t := dst.Type()
	ts, v := m.tensor(p, t)
	if ts == nil {
		if _, none := v.(nested.None); v != nil && !none {
			m.mismatch(p, describe(v), t, "need a tensor")
		}
		return nil
	}
	if why := m.wrongShape(ts, flags); why != "" {
		m.mismatch(p, ts.String(), t, why)
		return nil
	}
	out := reflect.ValueOf(ts)
	if t == nestedTensorType {
		leaf, ok := v.(*nested.Tensor)
		if !ok {
			leaf = &nested.Tensor{Tensor: ts, Class: "torch.Tensor"}
		}
		out = reflect.ValueOf(leaf)
	}
	m.apply(p, ts.String(), t, Lazy)
	m.plan.commit = append(m.plan.commit, func() { dst.Set(out) })
	return nil
}

// raw gives the field a part of the tree as it is.
func (m *matcher) raw(dst reflect.Value, p place) error {
	t := dst.Type()
	var v nested.Value
	if p.expr != nil {
		ts := m.expression(p, t)
		if ts == nil {
			return nil
		}
		v = &nested.Tensor{Tensor: ts, Class: "torch.Tensor"}
	} else if v = m.subtree(p); v == nil {
		if !p.optional {
			m.missing(p, t)
		}
		return nil
	}
	if !reflect.TypeOf(v).AssignableTo(t) {
		m.mismatch(p, describe(v), t, "need a "+t.String())
		return nil
	}
	m.apply(p, describe(v), t, Lazy)
	m.plan.commit = append(m.plan.commit, func() { dst.Set(reflect.ValueOf(v)) })
	return nil
}

// subtree returns what lies at or below p and uses all of it; nil if there is
// nothing.
func (m *matcher) subtree(p place) nested.Value {
	v, ok := m.index.Below(p.name)
	if !ok {
		return nil
	}
	for _, i := range m.index.Lookup(p.name) {
		m.use(i)
	}
	m.useBelow(p)
	return v
}

// own matches a type that fills itself, or that an option's function fills;
// ok is false for other types.
func (m *matcher) own(dst reflect.Value, p place, flags rules.Flags) (ok bool, err error) {
	t := dst.Type()
	decode, known := m.cfg.decoders[t]
	if !known && hasMethods(t) {
		if known = reflect.PointerTo(t).Implements(unmarshalerType); known {
			decode = unmarshal
		} else if _, other := reflect.PointerTo(t).MethodByName("UnmarshalNested"); other {
			return true, fault.New(fault.Usage, "an UnmarshalNested of "+t.String()+" that nobody would call").OnPath(p.field).
				Needs("UnmarshalNested(context.Context, nested.Value) error", "")
		}
	}
	if !known {
		return false, nil
	}
	var v nested.Value
	switch {
	case flags.Inline:
		return true, fault.New(fault.Usage, "inline on a "+t.String()+" that fills itself").OnPath(p.field)
	case p.expr != nil:
		ts := m.expression(p, t)
		if ts == nil {
			return true, nil
		}
		v = &nested.Tensor{Tensor: ts, Class: "torch.Tensor"}
	default:
		if v = m.subtree(p); v == nil {
			if !p.optional {
				m.missing(p, t)
			}
			return true, nil
		}
	}
	m.call(dst, p, v, decode)
	return true, nil
}

// hasMethods reports whether a pointer to t may have methods: reflection makes
// that type, and keeps it, when it is asked about.
func hasMethods(t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.Interface:
		return false
	case t.Name() != "" || t.Kind() != reflect.Struct:
		return t.PkgPath() != ""
	}
	for i := range t.NumField() {
		if t.Field(i).Anonymous { // brings its own
			return true
		}
	}
	return false
}

// call plans to let a function fill a fresh value.
func (m *matcher) call(dst reflect.Value, p place, v nested.Value, decode decoder) {
	fresh := reflect.New(dst.Type()).Elem()
	m.apply(p, describe(v), dst.Type(), Call)
	m.plan.calls = append(m.plan.calls, func(ctx context.Context) error {
		if err := decode(ctx, v, fresh); err != nil {
			return fault.Wrap(kindOr(err, fault.Mismatch), "the "+fresh.Type().String()+" in "+p.field, err).OnPath(p.name)
		}
		return nil
	})
	m.plan.commit = append(m.plan.commit, func() { dst.Set(fresh) })
}

func kindOr(err error, other fault.Kind) fault.Kind {
	if k := fault.KindOf(err); k != "" {
		return k
	}
	return other
}

// unmarshal is the decoder of types that fill themselves.
func unmarshal(ctx context.Context, v nested.Value, dst reflect.Value) error {
	u, ok := dst.Addr().Interface().(Unmarshaler)
	if !ok {
		panic("BUG: wick/serde: not an Unmarshaler")
	}
	return u.UnmarshalNested(ctx, v)
}
