package attacks_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/tensor"
)

// mutants are checkpoints that torch saved, of every sort of content, in
// containers that hold checksums of everything. Legacy ones, which hold none, are left out.
var mutants = []string{
	"demo-resnet/*torch2.15.pt", "state-dict/*torch2.15.pt", "dtypes/*torch2.15.pt", "views/*torch2.15.pt", "shared/*torch2.15.pt", "quantized/*torch2.15.pt",
	"byte-order/*torch2.15.pt",
}

// values reads every tensor of a file in one run, and
// returns the names and the SHA-256 of the values, "" of those that fail.
func values(ctx context.Context, file []byte, opts ...tensor.RunOption) (names []string, sums []string, err error) {
	c, err := wick.OpenBytes(ctx, "mutant", file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = closed(c, err) }()
	var moves []tensor.Move
	var hashes []hash.Hash
	for name, t := range c.Tensors() {
		h := sha256.New()
		names, hashes = append(names, name+" "+t.DType().String()), append(hashes, h)
		moves = append(moves, tensor.Move{From: t.Tensor, To: tensor.Stream(h)})
	}
	failed := make([]error, len(moves))
	_, err = tensor.Run(ctx, moves, append(opts, tensor.Each(func(i int, err error) { failed[i] = err }))...)
	for i, h := range hashes {
		sum := ""
		if failed[i] == nil {
			sum = string(h.Sum(nil))
		}
		sums = append(sums, sum)
	}
	if slices.ContainsFunc(failed, func(err error) bool { return err != nil }) {
		err = nil // told one by one
	}
	return names, sums, err
}

func closed(c *wick.Checkpoint, err error) error {
	if closeErr := c.Close(); err == nil {
		return closeErr
	}
	return err
}

// mutate changes a copy of a file: it flips a bit, changes a byte, cuts, takes
// out, repeats or swaps a piece.
func mutate(file []byte, r *rand.Rand) (what string, mutant []byte) {
	m := bytes.Clone(file)
	at, n := r.IntN(len(m)), 1+r.IntN(min(300, len(m)/3))
	end := min(at+n, len(m))
	switch r.IntN(7) {
	case 0, 1:
		m[at] ^= 1 << r.IntN(8)
		return "a bit", m
	case 2:
		m[at] = byte(r.Uint32())
		return "a byte", m
	case 3:
		return "a cut", m[:at]
	case 4:
		return "a piece taken out", slices.Delete(m, at, end)
	case 5:
		return "a piece twice", slices.Insert(m, at, file[at:end]...)
	default:
		to := r.IntN(len(m) - (end - at) + 1)
		copy(m[to:], file[at:end])
		copy(m[at:end], file[to:to+end-at])
		return "two pieces swapped", m
	}
}

// A damaged checkpoint gives the values that torch saved, or an error, and
// never other values: whatever opens has the same tensors, and each is as it was or
// fails.
func TestMutationsNeverGiveOtherValues(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	files, refused, partly, whole := 0, 0, 0, 0
	for _, pattern := range mutants {
		found, err := filepath.Glob("../pytorch-tests/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range slices.DeleteFunc(found, func(name string) bool { return strings.Contains(name, "legacy") }) {
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			names, sums, err := values(t.Context(), file, tensor.Verify())
			if err != nil {
				t.Fatal(name, err)
			}
			files++
			for i := range rounds {
				what, m := mutate(file, rand.New(rand.NewPCG(uint64(i), uint64(files))))
				gotNames, gotSums, err := values(t.Context(), m, tensor.Verify())
				switch {
				case err != nil:
					refused++
					continue
				case !slices.Equal(gotNames, names):
					t.Errorf("%s, round %d, %s: other tensors %q", name, i, what, gotNames)
					continue
				case slices.Contains(gotSums, ""):
					partly++
				default:
					whole++
				}
				for k, sum := range gotSums {
					if sum != "" && sum != sums[k] {
						t.Errorf("%s, round %d, %s: %s has other values", name, i, what, strings.Fields(names[k]))
					}
				}
			}
		}
	}
	t.Logf("%d files, %d mutants: %d refused, %d with tensors that fail, %d whole", files, files*rounds, refused, partly, whole)
}
