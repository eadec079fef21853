package imagenet

import (
	"math"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// What torchvision makes of the files is in the .pt files beside them, at every eighth pixel.
func TestPreprocess(t *testing.T) {
	const step, first = 8, 3
	for _, test := range []struct {
		file        string
		worst, mean float64 // how far a value may be off, in 256ths of a colour's range
	}{
		// Pillow rounds to 8 bits after each direction, this package once.
		{"upright.png", 1, 0.1},
		// And the decoders of JPEG round differently.
		{"flat.jpg", 2, 0.4},
	} {
		t.Run(test.file, func(t *testing.T) {
			got, err := Open("testdata/" + test.file)
			if err != nil {
				t.Fatal(err)
			}
			want := pixels(t, "testdata/"+test.file+".pt")
			side := Size / step
			if len(want) != 3*side*side {
				t.Fatalf("torchvision's sample has %d values", len(want))
			}
			var worst, sum float64
			for i, w := range want {
				c, y, x := i/side/side, i/side%side, i%side
				g := got[(c*Size+first+step*y)*Size+first+step*x]
				d := math.Abs(float64(g-w)) * float64(std[c]) * 255
				worst, sum = max(worst, d), sum+d
			}
			t.Logf("off by %.2f at most and %.3f on average", worst, sum/float64(len(want)))
			if worst > test.worst+1e-3 || sum/float64(len(want)) > test.mean {
				t.Errorf("off by %.2f at most and %.3f on average, more than %v and %v", worst, sum/float64(len(want)), test.worst, test.mean)
			}
		})
	}
}

func pixels(t *testing.T, name string) []float32 {
	ckpt, err := wick.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	leaf, ok := ckpt.Root.(nested.Leaf)
	if !ok {
		t.Fatalf("%s holds a %s", name, nested.TypeName(ckpt.Root))
	}
	values, err := tensor.Values[float32](t.Context(), leaf.AsTensor())
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestPrint(t *testing.T) {
	logits := make([]float32, 1000)
	logits[281], logits[282] = 10, 9
	var out strings.Builder
	if err := Print(&out, logits, 2); err != nil {
		t.Fatal(err)
	}
	// softmax: e^10 / (e^10 + e^9 + 998)
	if want := " 70.76 %  tabby\n 26.03 %  tiger cat\n"; out.String() != want {
		t.Errorf("printed %q, not %q", out.String(), want)
	}
	if got := Label(3, 20); got != "class 3" {
		t.Errorf("a class of other data is called %q", got)
	}
}
