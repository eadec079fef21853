package serde

import (
	"math"
	"math/big"
	"reflect"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

var bigIntType = reflect.TypeFor[*big.Int]()

// isScalar reports whether t holds one number, one bool or one text.
func isScalar(t reflect.Type) bool {
	if _, element := elements[t]; element || t == bigIntType {
		return true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

// scalar matches one number, bool or text to a scalar of the tree or to a
// tensor of one element.
func (m *matcher) scalar(dst reflect.Value, p place, flags rules.Flags) error {
	t := dst.Type()
	if t == bigIntType && m.isNone(p) {
		return nil
	}
	p.optional = p.optional || t == bigIntType
	before := m.mark()
	ts, v := m.tensor(p, t)
	switch {
	case ts != nil:
		return m.oneElement(dst, p, flags, ts)
	case v != nil:
		m.known(dst, p, v)
		return nil
	case flags.Default == nil || m.mark() != before:
		return nil
	}
	return m.byDefault(dst, p, flags.Default)
}

// known assigns a scalar of the tree.
func (m *matcher) known(dst reflect.Value, p place, v nested.Value) {
	t := dst.Type()
	out := reflect.New(t).Elem()
	if why := setScalar(out, v); why != "" {
		m.mismatch(p, describe(v), t, why)
		return
	}
	m.apply(p, describe(v), t, Value)
	m.plan.commit = append(m.plan.commit, func() { dst.Set(out) })
}

// setScalar stores v in dst, or says why it does not fit.
func setScalar(dst reflect.Value, v nested.Value) (wrong string) {
	if dst.Type() == bigIntType {
		return setBig(dst, v)
	}
	switch v := v.(type) {
	case nested.Int:
		return setInt(dst, int64(v))
	case nested.BigInt:
		if v.Int.IsUint64() && isUint(dst.Kind()) && !dst.OverflowUint(v.Int.Uint64()) {
			dst.SetUint(v.Int.Uint64())
			return ""
		}
		return "an integer beyond the type's range"
	case nested.Float:
		return setFloat(dst, float64(v))
	case nested.Complex:
		return setComplex(dst, complex128(v))
	case nested.Bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(bool(v))
			return ""
		}
	default:
		return setText(dst, v)
	}
	return "need a value of another type"
}

func setText(dst reflect.Value, v nested.Value) string {
	if dst.Kind() != reflect.String {
		return "need a number, a bool or a tensor of one element"
	}
	switch v := v.(type) {
	case nested.String:
		dst.SetString(string(v))
	case nested.Symbol:
		dst.SetString(v.Text)
	case nested.Bytes:
		dst.SetString(string(v))
	default:
		return "need a text"
	}
	return ""
}

func setBig(dst reflect.Value, v nested.Value) string {
	switch v := v.(type) {
	case nested.Int:
		dst.Set(reflect.ValueOf(big.NewInt(int64(v))))
	case nested.BigInt:
		dst.Set(reflect.ValueOf(new(big.Int).Set(v.Int)))
	default:
		return "need an integer"
	}
	return ""
}

func isUint(k reflect.Kind) bool { return k >= reflect.Uint && k <= reflect.Uint64 }

// smallFloat reports whether t is a defined type over the bits of a float,
// which no plain number may be stored in as it is.
func smallFloat(t reflect.Type) bool {
	el, ok := elements[t]
	return ok && (el.dtype().Class() == tensor.FloatClass || el.dtype().Class() == tensor.QuantClass) && t.PkgPath() != ""
}

func setInt(dst reflect.Value, n int64) string {
	switch {
	case smallFloat(dst.Type()):
		return "need a tensor of one element"
	case dst.CanInt() && !dst.OverflowInt(n):
		dst.SetInt(n)
	case dst.CanUint() && n >= 0 && !dst.OverflowUint(uint64(n)):
		dst.SetUint(uint64(n))
	case dst.CanFloat():
		dst.SetFloat(float64(n))
	case dst.CanInt() || dst.CanUint():
		return "an integer beyond the type's range"
	default:
		return "need a value of another type"
	}
	return ""
}

func setFloat(dst reflect.Value, f float64) string {
	switch {
	case smallFloat(dst.Type()):
		return "need a tensor of one element"
	case dst.Kind() == reflect.Float32 && overflows(f):
		return "a number beyond the type's range"
	case dst.CanFloat():
		dst.SetFloat(f)
		return ""
	case !dst.CanInt() && !dst.CanUint():
		return "need a value of another type"
	case f != math.Trunc(f) || math.Abs(f) > 1<<53:
		return "a float that is no exact integer"
	default:
		return setInt(dst, int64(f))
	}
}

// overflows reports whether a finite number becomes infinite in 32 bits.
func overflows(f float64) bool { return math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0) }

func setComplex(dst reflect.Value, c complex128) string {
	switch {
	case !dst.CanComplex():
		return "need a value of another type"
	case dst.Kind() == reflect.Complex64 && (overflows(real(c)) || overflows(imag(c))):
		return "a number beyond the type's range"
	default:
		dst.SetComplex(c)
		return ""
	}
}

// oneElement plans to read a tensor of one element into a scalar.
func (m *matcher) oneElement(dst reflect.Value, p place, flags rules.Flags, ts *tensor.Tensor) error {
	t := dst.Type()
	el := scalarElement(t)
	switch {
	case ts.Len() != 1:
		m.mismatch(p, ts.String(), t, "need a tensor of one element")
		return nil
	case el == nil:
		m.mismatch(p, ts.String(), t, "need a "+t.String())
		return nil
	}
	l, row := m.load(ts, p, t, flags, el)
	if l == nil {
		return nil
	}
	row.Bytes, l.staged = int64(t.Size()), true
	if ts.DType() == tensor.I64 && t.Kind() == reflect.Int {
		row.How = Copy
	}
	if t.Kind() != el.kind() {
		l.verify = func(data any) error { return fits(reflect.ValueOf(data).Index(0), t, p) }
	}
	l.dst, l.how = dst, asOneValue
	return nil
}

// scalarElement is the element that a scalar of type t is read as, nil if a
// tensor has no such element.
func scalarElement(t reflect.Type) element {
	if el, ok := elements[t]; ok {
		return el
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return of[bool]{}
	case k == reflect.Float32:
		return of[float32]{}
	case k == reflect.Float64:
		return of[float64]{}
	case k == reflect.Complex64:
		return of[complex64]{}
	case k == reflect.Complex128:
		return of[complex128]{}
	case isInt(t):
		return of[int64]{}
	case isUint(k):
		return of[uint64]{}
	default:
		return nil
	}
}

// fits reports an integer that the field's type cannot hold.
func fits(v reflect.Value, t reflect.Type, p place) error {
	if v.CanInt() && t.OverflowInt(v.Int()) || v.CanUint() && t.OverflowUint(v.Uint()) {
		return fault.New(fault.Mismatch, "a number beyond "+t.String()+" for "+p.field).OnPath(p.name)
	}
	return nil
}

// byDefault assigns what the tag says when the tree has nothing.
func (m *matcher) byDefault(dst reflect.Value, p place, lit *rules.Literal) error {
	t := dst.Type()
	out := reflect.New(t).Elem()
	if !parseDefault(out, lit.Text) {
		return fault.New(fault.Usage, "the default "+strconv.Quote(lit.Text)+" of a "+t.String()).OnPath(p.field)
	}
	m.apply(p, "", t, Default).Note = lit.Text
	m.plan.commit = append(m.plan.commit, func() { dst.Set(out) })
	return nil
}

func parseDefault(dst reflect.Value, text string) bool {
	switch k := dst.Kind(); {
	case smallFloat(dst.Type()):
		return false
	case k == reflect.String:
		dst.SetString(text)
		return true
	case k == reflect.Bool:
		b, err := strconv.ParseBool(text)
		dst.SetBool(b)
		return err == nil
	case dst.CanInt():
		n, err := strconv.ParseInt(text, 0, dst.Type().Bits())
		return err == nil && setInt(dst, n) == ""
	case dst.CanUint():
		n, err := strconv.ParseUint(text, 0, dst.Type().Bits())
		if err == nil {
			dst.SetUint(n)
		}
		return err == nil
	case dst.CanFloat():
		f, err := strconv.ParseFloat(text, dst.Type().Bits())
		dst.SetFloat(f)
		return err == nil
	default:
		return false
	}
}
