package pytorch

import (
	"bytes"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/tensor"
)

// taken is what one run over all tensors of a checkpoint gives: the bytes of
// each, nil where it fails.
func taken(t *testing.T, c *checkpoint.Checkpoint) [][]byte {
	t.Helper()
	var moves []tensor.Move
	var outs []*bytes.Buffer
	for _, tn := range c.Tensors() {
		outs = append(outs, new(bytes.Buffer))
		moves = append(moves, tensor.Move{From: tn.Tensor, To: tensor.Stream(outs[len(outs)-1])})
	}
	failed := make([]error, len(moves))
	_, err := tensor.Run(t.Context(), moves, tensor.Verify(), tensor.Expansion(16, 1<<20), tensor.Each(func(i int, err error) { failed[i] = err }))
	all := make([][]byte, len(moves))
	for i, out := range outs {
		if failed[i] == nil && err == nil {
			all[i] = append([]byte{}, out.Bytes()...)
		}
	}
	return all
}

// FuzzStream reads a file once from front to back, and at any place: what the
// pass gives without an error is what random access gives. Seen to catch: a pass
// that was made to believe in the sizes of local headers and not to compare the
// directory at the end.
func FuzzStream(f *testing.F) {
	addFiles(f, "zip-layouts/*.pt", "legacy/*.pt*", "views/*.pt", "zip-layouts/*.gz")
	f.Fuzz(func(t *testing.T, data []byte) {
		pass, err := OpenStream(t.Context(), "pass", iotest.HalfReader(bytes.NewReader(data)), Formats(), fuzzLimits)
		if err != nil {
			checkFault(t, err)
			return
		}
		defer func() {
			if err := pass.Close(); err != nil {
				t.Error(err)
			}
		}()
		once := taken(t, pass)
		if !slices.ContainsFunc(once, func(b []byte) bool { return b != nil }) {
			return
		}
		whole, err := checkpoint.Open(t.Context(), checkpoint.NewBytes("whole", data), Formats(), fuzzLimits)
		if err != nil {
			t.Fatalf("the pass gives tensors, random access gives %v", err)
		}
		if !slices.Equal(pass.Names(), whole.Names()) {
			t.Fatalf("the pass gives %q, random access %q", pass.Names(), whole.Names())
		}
		for i, want := range taken(t, whole) {
			if once[i] != nil && want != nil && !bytes.Equal(once[i], want) {
				t.Errorf("%q is %x in the pass and %x at random access", whole.Names()[i], once[i], want)
			}
		}
	})
}
