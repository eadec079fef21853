package listing

import (
	"context"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// channels is what a per-channel quantized tensor keeps in tensors of its own.
type channels struct {
	scales []float64
	zeros  []float64
}

// ReadQuant reads the scales and zero points of per-channel quantized tensors,
// which are tensors themselves. A fault of one is noted in its row. [Listing.Hash]
// reads them too: what comes in one pass is read once.
func (l *Listing) ReadQuant(ctx context.Context) error {
	r := reading{ctx: ctx}
	l.addQuant(&r)
	if len(r.moves) == 0 {
		return nil
	}
	_, err := r.run()
	return err
}

// reading is one run that many rows wait for.
type reading struct {
	ctx   context.Context
	moves []tensor.Move
	done  []func(error) // for each move, what it is told in the end
}

func (r *reading) add(m tensor.Move, done func(error)) {
	r.moves, r.done = append(r.moves, m), append(r.done, done)
}

// run moves all and tells each row; it fails as [Fatal] says.
func (r *reading) run(opts ...tensor.RunOption) (tensor.Stats, error) {
	errs := make([]error, len(r.moves))
	opts = append(opts, tensor.Each(func(move int, err error) { errs[move] = err }))
	stats, err := tensor.Run(r.ctx, r.moves, opts...)
	for i, done := range r.done {
		done(errs[i])
	}
	return stats, Fatal(r.ctx, err, errs)
}

// addQuant adds the scales and zero points of every row.
func (l *Listing) addQuant(r *reading) {
	for i := range l.Tensors {
		row := &l.Tensors[i]
		leaf, ok := row.Leaf.(*nested.Tensor)
		if !ok || leaf.Quant == nil || leaf.Quant.Scales == nil {
			continue
		}
		c := &channels{}
		var err error
		if c.scales, err = room(leaf.Quant.Scales); err == nil {
			c.zeros, err = room(leaf.Quant.ZeroPoints)
		}
		if err != nil {
			row.fail(err)
			continue
		}
		row.channels = c
		r.add(tensor.Move{From: leaf.Quant.Scales.AsTensor(), To: tensor.Into(c.scales)}, row.failChannels)
		r.add(tensor.Move{From: leaf.Quant.ZeroPoints.AsTensor(), To: tensor.Into(c.zeros)}, row.failChannels)
	}
}

// fail notes the first fault of a row.
func (t *Tensor) fail(err error) {
	if t.Err == nil {
		t.Err = err
	}
}

func (t *Tensor) failChannels(err error) {
	if err != nil {
		t.channels = nil
		t.fail(err)
	}
}

// room allocates for the elements of a small tensor, and no more of them than
// there are bytes in the tensor's storages.
func room(t *nested.Tensor) ([]float64, error) {
	if t == nil {
		return nil, fault.New(fault.Malformed, "a per-channel quantized tensor without zero points")
	}
	if err := t.AsTensor().Err(); err != nil {
		return nil, err
	}
	var present int64
	for s := range t.Storages() {
		present += s.Size()
	}
	if t.Len() > present {
		return nil, fault.NewLimit("expansion", t.Len(), present)
	}
	return make([]float64, t.Len()), nil
}

func (t *Tensor) quantJSON(q *nested.Quant) []byte {
	var o jsonout.Object
	o.String("scheme", q.Scheme)
	if q.Scales == nil {
		o.Float("scale", q.Scale)
		o.Int("zero_point", q.ZeroPoint)
		o.Null("axis")
		return o.Bytes()
	}
	if c := t.channels; c != nil {
		o.Raw("scale", appendFloats(nil, c.scales))
		if q.ZeroPoints.DType().Class() == tensor.FloatClass {
			o.Raw("zero_point", appendFloats(nil, c.zeros))
		} else {
			o.Raw("zero_point", appendWhole(nil, c.zeros))
		}
	}
	o.Int("axis", int64(q.Axis))
	return o.Bytes()
}

func appendFloats(b []byte, list []float64) []byte {
	return jsonout.AppendList(b, list, jsonout.AppendFloat)
}

func appendWhole(b []byte, list []float64) []byte {
	whole := make([]int64, len(list))
	for i, f := range list {
		whole[i] = int64(f)
	}
	return jsonout.AppendInts(b, whole)
}
