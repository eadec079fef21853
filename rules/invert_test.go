package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/tensor"
)

// drawPart draws a first operation on a tensor of the given shape, which takes the
// indices from lo up to hi of a dimension; "" takes all.
func drawPart(t *rapid.T, shape []int) (op string, axis, lo, hi int) {
	axis = rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
	n := shape[axis]
	lo = rapid.IntRange(0, n-1).Draw(t, "lo")
	switch rapid.SampledFrom([]string{"", "narrow", "narrow to the end", "select", "chunk"}).Draw(t, "part") {
	case "narrow":
		hi = rapid.IntRange(lo, n).Draw(t, "hi")
		return fmt.Sprintf("narrow %d %d:%d", axis, lo, hi), axis, lo, hi
	case "narrow to the end":
		return fmt.Sprintf("narrow %d %d:", axis-len(shape), lo), axis, lo, n
	case "select":
		return fmt.Sprintf("select %d %d", axis-len(shape), lo), axis, lo, lo + 1
	case "chunk":
		parts := rapid.SampledFrom(slices.DeleteFunc([]int{1, 2, 3, 4}, func(k int) bool { return n%k != 0 })).Draw(t, "parts")
		i := lo * parts / n
		return fmt.Sprintf("chunk %d %d of %d", axis, i, parts), axis, i * n / parts, (i + 1) * n / parts
	default:
		return "", axis, 0, n
	}
}

// drawWay draws an operation that has a way back.
func drawWay(t *rapid.T, dims int) string {
	a := rapid.IntRange(-dims-1, dims).Draw(t, "a")
	switch op := rapid.SampledFrom([]string{"transpose", "permute", "squeeze", "unsqueeze", "unflatten", "cast"}).Draw(t, "operation"); op {
	case "transpose":
		return fmt.Sprintf("transpose %d %d", a, rapid.IntRange(-dims, dims).Draw(t, "b"))
	case "permute":
		axes := make([]int, dims)
		for i := range axes {
			axes[i] = i
		}
		return strings.Trim(fmt.Sprint("permute ", rapid.Permutation(axes).Draw(t, "axes")), "]")
	case "unflatten":
		return fmt.Sprintf("unflatten %d %d -1", a, rapid.IntRange(1, 3).Draw(t, "size"))
	case "cast":
		return "cast int64"
	default:
		return fmt.Sprintf("%s %d", op, a)
	}
}

// TestInvertIsTheWayBack evaluates random expressions and takes what they give back.
func TestInvertIsTheWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "shape")
		n := 1
		for _, s := range shape {
			n *= s
		}
		data := make([]int32, n)
		for i := range data {
			data[i] = int32(i)
		}
		source := tensor.Of(data, shape...)
		text, given := "x", source
		step := func(op string) {
			e, err := ParseExpr("x | " + strings.ReplaceAll(op, "[", ""))
			if err != nil {
				t.Skip(err) // a permute of a scalar
			}
			if next, err := e.Ops[0].Apply(given, nil); err == nil { // else it does not fit the tensor
				text, given = text+" | "+e.Ops[0].String(), next
			}
		}
		op, axis, lo, hi := drawPart(t, shape)
		if op != "" {
			step(op)
		}
		for range rapid.IntRange(0, 5).Draw(t, "operations") {
			step(drawWay(t, given.Dims()))
		}
		e, err := ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		part, err := e.Invert(given, nil)
		if err != nil || part.whole != (op == "") || op != "" && (part.axis != axis || part.lo != lo || part.hi != hi) {
			t.Fatalf("%s of %v: %+v, %v; want %d:%d of %d", text, shape, part, err, lo, hi, axis)
		}
		want, err := source.Narrow(axis, lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := elements(t, part.Tensor), elements(t, want); got != want {
			t.Fatalf("%s of %v: %s, want %s", text, shape, got, want)
		}
	})
}

func elements(t *rapid.T, x *tensor.Tensor) string {
	values, err := tensor.Values[int64](t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x.Shape(), values)
}
