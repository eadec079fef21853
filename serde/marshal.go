package serde

import (
	"cmp"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// Marshal returns the tree that [Unmarshal] would fill v from, with the same
// tags: structs and maps become dicts, slices of what is no element lists,
// packed slices leaves that alias them. The slices must not change while the
// tree is in use. Expressions are read backwards: parts of one tensor in
// several fields are joined, a transposed field is transposed back; it fails
// with [fault.ErrUnsupported] where an expression has no way back (see
// [rules.Expr.Invert]), where the shape before it is not known (a plain slice
// without the flag shape), on a map's key with a dot above a struct, a map or a
// list, and on Go values that no tree holds.
//
// What is nil and optional, and nil pointers in structs, are left out; nil
// items of lists and maps are None. Other nil slices are empty tensors. Of the
// options, Prefix, Precision and Encode count.
func Marshal(v any, opts ...Option) (nested.Value, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	src := reflect.ValueOf(v)
	if !src.IsValid() {
		return nil, fault.New(fault.Usage, "nil to marshal").Needs("a Go value", "")
	}
	e := &marshaler{cfg: cfg}
	out, err := e.value(addressable(src), rules.Flags{})
	if err != nil || cfg.prefix == "" {
		return none(out), err
	}
	return prefixed(out, cfg.prefix)
}

// addressable returns v itself if it has an address or is one, else a copy
// that has.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() || v.Kind() == reflect.Pointer && !v.IsNil() {
		return v
	}
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

// none makes a value of nothing.
func none(v nested.Value) nested.Value {
	if v == nil {
		return nested.None{}
	}
	return v
}

func prefixed(v nested.Value, prefix string) (nested.Value, error) {
	out := nested.NewMap("dict")
	m, ok := v.(*nested.Map)
	if !ok {
		return out, out.Set(nested.String(trimDot(prefix)), none(v))
	}
	for key, value := range m.All() {
		if err := out.Set(nested.String(prefix+nested.KeyName(key)), value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// marshaler makes a tree of a Go value.
type marshaler struct {
	cfg   *config
	depth int
}

// value returns the tree of one Go value, nil for what is nil.
func (e *marshaler) value(src reflect.Value, flags rules.Flags) (nested.Value, error) {
	if e.depth++; e.depth > maxDepth {
		return nil, fault.NewBound("depth of the Go value", int64(e.depth), maxDepth)
	}
	defer func() { e.depth-- }()
	t := src.Type()
	if v, ok, err := e.own(src); ok {
		return v, err
	}
	if pk, ok := packedOf(t); ok {
		return e.packed(src, flags, pk)
	}
	if dims, el, ok := fixedOf(t); ok {
		return e.leaf(fixedLeaf(src, dims, el))
	}
	if t == tensorType || t == nestedTensorType || t.Implements(valueType) || t.Kind() == reflect.Interface {
		return e.held(src, flags)
	}
	if isScalar(t) {
		return scalarValue(src)
	}
	return e.kind(src, flags)
}

func (e *marshaler) kind(src reflect.Value, flags rules.Flags) (nested.Value, error) {
	switch src.Kind() {
	case reflect.Pointer:
		if src.IsNil() {
			return nil, nil //nolint:nilnil // nothing, which is no fault
		}
		return e.value(src.Elem(), flags)
	case reflect.Struct:
		return e.structure(src)
	case reflect.Slice:
		if src.IsNil() && flags.Optional {
			return nil, nil //nolint:nilnil // nothing, which is no fault
		}
		return e.list(src)
	case reflect.Array:
		return e.list(src)
	case reflect.Map:
		if src.IsNil() && flags.Optional {
			return nil, nil //nolint:nilnil // nothing, which is no fault
		}
		return e.dict(src)
	default:
		return nil, unwritable(src.Type())
	}
}

func unwritable(t reflect.Type) error {
	return fault.New(fault.Unsupported, "a "+t.String()+" in a tree").Needs("a packed slice, an array, a struct, a slice or map of them, a scalar, a string or a tensor", "")
}

// own lets a type, or an option's function, say what it is.
func (e *marshaler) own(src reflect.Value) (v nested.Value, ok bool, err error) {
	t := src.Type()
	if f, known := e.cfg.encoders[t]; known {
		v, err = f(src)
		return v, true, err
	}
	if t.Kind() == reflect.Interface || !src.CanInterface() {
		return nil, false, nil
	}
	switch {
	case t.Implements(marshalerType) && !(t.Kind() == reflect.Pointer && src.IsNil()):
	case t.Kind() != reflect.Pointer && src.CanAddr() && reflect.PointerTo(t).Implements(marshalerType):
		src = src.Addr()
	default:
		if _, other := t.MethodByName("MarshalNested"); other && t.Kind() != reflect.Pointer {
			return nil, true, fault.New(fault.Usage, "a MarshalNested of "+t.String()+" that nobody would call").
				Needs("MarshalNested() (nested.Value, error)", "")
		}
		return nil, false, nil
	}
	m, ok := src.Interface().(Marshaler)
	if !ok {
		return nil, false, nil
	}
	v, err = m.MarshalNested()
	return v, true, err
}

// held returns what an interface or a field of the tree's own types holds.
func (e *marshaler) held(src reflect.Value, flags rules.Flags) (nested.Value, error) {
	if src.Kind() == reflect.Pointer || src.Kind() == reflect.Interface {
		if src.IsNil() {
			return nil, nil //nolint:nilnil // nothing, which is no fault
		}
	}
	switch v := src.Interface().(type) {
	case *tensor.Tensor:
		return e.leaf(&nested.Tensor{Tensor: v, Class: "torch.Tensor"})
	case nested.Leaf:
		return e.leaf(v)
	case nested.Value:
		return v, nil
	}
	if src.Kind() == reflect.Interface && src.NumMethod() > 0 {
		return e.value(addressable(src.Elem()), flags)
	}
	return nil, unwritable(src.Elem().Type())
}

// packed returns the leaf over a slice or an array.
func (e *marshaler) packed(src reflect.Value, flags rules.Flags, pk packedType) (nested.Value, error) {
	var shape []int
	var data any
	if pk.how == inSlice {
		if src.IsNil() && flags.Optional {
			return nil, nil //nolint:nilnil // nothing, which is no fault
		}
		data = src.Convert(reflect.TypeOf(pk.el.fresh(0))).Interface()
		var err error
		if shape, err = e.sliceShape(src.Len(), flags); err != nil {
			return nil, err
		}
	} else if shape, data = pk.el.parts(src.Interface()); shape == nil && reflect.ValueOf(data).IsNil() && flags.Optional {
		return nil, nil //nolint:nilnil // nothing, which is no fault
	}
	if shape == nil {
		shape = []int{reflect.ValueOf(data).Len()}
	}
	if n := reflect.ValueOf(data).Len(); !holds(shape, n) {
		return nil, fault.New(fault.Mismatch, "shape "+tensor.ShapeString(shape)+" over "+strconv.Itoa(n)+" elements").Needs("as many as the shape has", "")
	}
	return e.leaf(pk.el.leaf(slices.Clone(shape), data))
}

// holds reports whether the sizes of shape multiply to n.
func holds(shape []int, n int) bool {
	if slices.Contains(shape, 0) {
		return n == 0
	}
	for _, s := range shape {
		if s < 0 || n%s != 0 {
			return false
		}
		n /= s
	}
	return n == 1
}

// sliceShape is the shape that the flag gives to a slice of n elements, nil if
// there is no flag. One size may be open.
func (e *marshaler) sliceShape(n int, flags rules.Flags) ([]int, error) {
	if flags.Shape == nil {
		return nil, nil //nolint:nilnil // no shape, which is no fault
	}
	shape, open, known := make([]int, len(flags.Shape)), -1, 1
	for i, s := range flags.Shape {
		if s.IsAny() && open < 0 {
			open = i
			continue
		}
		v, err := s.Value(e.cfg.rules.Params)
		if err != nil {
			return nil, err
		}
		if s.IsAny() || v < 0 || v > 0 && known > math.MaxInt/v {
			return nil, shapeUnknown(flags, n)
		}
		shape[i], known = v, known*v
	}
	if open >= 0 && known > 0 && n%known == 0 {
		shape[open], known = n/known, n
	}
	if known != n {
		return nil, shapeUnknown(flags, n)
	}
	return shape, nil
}

func shapeUnknown(flags rules.Flags, n int) error {
	return fault.New(fault.Mismatch, "a slice of "+strconv.Itoa(n)+" elements for"+strings.TrimPrefix(flags.String(), ",")).
		Needs("a shape of as many elements, with one open size at most", "")
}

// fixedLeaf returns the leaf over a Go array; only one of one dimension is not
// copied.
func fixedLeaf(src reflect.Value, dims []int, el element) nested.Leaf {
	src = addressable(src)
	if len(dims) == 1 {
		return el.leaf(dims, src.Slice(0, dims[0]).Interface())
	}
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := reflect.ValueOf(el.fresh(n))
	gather(data, src, len(dims))
	return el.leaf(dims, data.Interface())
}

// leaf checks a leaf and converts it to the wanted precision.
func (e *marshaler) leaf(v nested.Leaf) (nested.Value, error) {
	t := v.AsTensor()
	if _, lazy := v.(*nested.Tensor); !lazy && t.Err() != nil {
		return nil, t.Err()
	}
	if e.cfg.precision == tensor.Invalid || t.DType().Class() != tensor.FloatClass || t.DType() == e.cfg.precision {
		return v, nil
	}
	cast, err := t.Cast(e.cfg.precision)
	if err != nil {
		return nil, err
	}
	return &nested.Tensor{Tensor: cast, Class: "torch.Tensor"}, nil
}

// scalarValue returns one number, bool or text.
func scalarValue(src reflect.Value) (nested.Value, error) {
	t := src.Type()
	el, isElement := elements[t]
	switch {
	case t == bigIntType:
		return bigValue(src), nil
	case isElement && (smallFloat(t) || t.Kind() == reflect.Array):
		one := reflect.ValueOf(el.fresh(1))
		one.Index(0).Set(src)
		return el.leaf([]int{}, one.Interface()), nil
	case src.CanInt():
		return nested.Int(src.Int()), nil
	case src.CanUint() && src.Uint() <= math.MaxInt64:
		return nested.Int(src.Uint()), nil
	case src.CanUint():
		return nested.BigInt{Int: new(big.Int).SetUint64(src.Uint())}, nil
	case src.CanFloat():
		return nested.Float(src.Float()), nil
	case src.CanComplex():
		return nested.Complex(src.Complex()), nil
	case src.Kind() == reflect.Bool:
		return nested.Bool(src.Bool()), nil
	default:
		return nested.String(src.String()), nil
	}
}

func bigValue(src reflect.Value) nested.Value {
	n, ok := src.Interface().(*big.Int)
	switch {
	case !ok || n == nil:
		return nil
	case n.IsInt64():
		return nested.Int(n.Int64())
	default:
		return nested.BigInt{Int: new(big.Int).Set(n)}
	}
}

func (e *marshaler) list(src reflect.Value) (nested.Value, error) {
	out := &nested.List{Class: "list", Items: make([]nested.Value, src.Len())}
	for i := range out.Items {
		v, err := e.value(src.Index(i), rules.Flags{})
		if err != nil {
			return nil, inField(err, "["+strconv.Itoa(i)+"]")
		}
		out.Items[i] = none(v)
	}
	return out, nil
}

// dict writes a map in the order of its keys.
func (e *marshaler) dict(src reflect.Value) (nested.Value, error) {
	keys := src.MapKeys()
	if !isKey(src.Type().Key()) {
		return nil, unwritable(src.Type())
	}
	slices.SortFunc(keys, compareKeys)
	out := nested.NewMap("dict")
	for _, k := range keys {
		v, err := e.value(addressable(src.MapIndex(k)), rules.Flags{})
		if err != nil {
			return nil, inField(err, "["+keyText(k)+"]")
		}
		if err := dotted(k, v); err != nil {
			return nil, inField(err, "["+strconv.Quote(keyText(k))+"]")
		}
		key, err := scalarValue(k)
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, none(v)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compareKeys orders the keys of a map: numbers by their size, texts naturally.
func compareKeys(a, b reflect.Value) int {
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	default:
		return rules.Natural(a.String(), b.String())
	}
}

// dotted refuses a key with a dot above a map or a list: files and names know no
// other step, so what is below would come back below other keys.
func dotted(key reflect.Value, v nested.Value) error {
	switch v.(type) {
	case *nested.Map, *nested.List:
		if key.Kind() == reflect.String && strings.Contains(key.String(), ".") {
			return fault.New(fault.Unsupported, "a key with a dot above a struct, a map or a list").Needs("a key without one", "name it otherwise, or nest another map")
		}
	}
	return nil
}

// inField puts a step of the Go path before an error's.
func inField(err error, step string) error {
	e, ok := err.(*fault.Error) //nolint:errorlint // only the outermost error has the path
	if !ok {
		return err
	}
	if e.Path != "" && e.Path[0] != '[' {
		step += "."
	}
	e.Path = step + e.Path
	return e
}

// dictOf is a struct on its way into a dict.
type dictOf struct {
	out   *nested.Map
	parts map[string][]rules.Part // of tensors that several fields make
	order []string
}

func (e *marshaler) structure(src reflect.Value) (nested.Value, error) {
	d := &dictOf{out: nested.NewMap("dict"), parts: map[string][]rules.Part{}}
	if err := e.fields(d, src, ""); err != nil {
		return nil, err
	}
	for _, name := range d.order {
		t, err := rules.JoinParts(d.parts[name])
		if err != nil {
			return nil, err
		}
		if err := d.set(name, &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
			return nil, err
		}
	}
	return d.out, nil
}

func (e *marshaler) fields(d *dictOf, src reflect.Value, prefix string) error {
	fields, err := fieldsOf(src.Type())
	if err != nil {
		return err
	}
	for i := range fields {
		if err := e.field(d, src.Field(fields[i].index), prefix, &fields[i]); err != nil {
			return inField(err, fields[i].goName)
		}
	}
	return nil
}

func (e *marshaler) field(d *dictOf, src reflect.Value, prefix string, f *field) error {
	if f.flags.Inline {
		if src.Kind() == reflect.Pointer {
			if src.IsNil() {
				return nil
			}
			src = src.Elem()
		}
		return e.fields(d, src, prefix+f.flags.Prefix)
	}
	v, err := e.value(src, *f.flags)
	if err != nil || v == nil && (f.flags.Optional || src.Kind() == reflect.Pointer) {
		return err
	}
	if name, ok := f.plainName(); ok {
		return d.set(prefix+name, none(v))
	}
	return e.backwards(d, v, prefix, f)
}

// backwards takes a field's leaf back through its expression.
func (e *marshaler) backwards(d *dictOf, v nested.Value, prefix string, f *field) error {
	leaf, ok := v.(nested.Leaf)
	if !ok {
		return fault.New(fault.Unsupported, "writing back through "+f.expr.String()+" what is no tensor")
	}
	if pk, packed := packedOf(f.typ); packed && pk.how == inSlice && f.flags.Shape == nil && len(f.expr.Ops) > 0 && !castsOnly(f.expr) {
		return fault.New(fault.Unsupported, "writing back through "+f.expr.String()+" a slice without a shape").
			Needs("a tensor.Array, or the flag shape", "")
	}
	part, err := f.expr.Invert(leaf.AsTensor(), e.cfg.rules.Params)
	if err != nil {
		return err
	}
	name := prefix + part.Name
	if d.parts[name] == nil {
		d.order = append(d.order, name)
	}
	d.parts[name] = append(d.parts[name], part)
	return nil
}

// castsOnly reports whether the expression keeps the shape, whatever it is.
func castsOnly(e *rules.Expr) bool {
	return !slices.ContainsFunc(e.Ops, func(op rules.Op) bool { return op.Verb != "cast" })
}

func (d *dictOf) set(name string, v nested.Value) error {
	if _, taken := d.out.Lookup(name); taken {
		return fault.New(fault.Collision, "two fields called "+name)
	}
	return d.out.Set(nested.String(name), v)
}
