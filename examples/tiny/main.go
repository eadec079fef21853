// Tiny reads a digit of 3 by 5 pixels with a neural network of 4 KB that is
// embedded in the program. The weights are used where they lie in the program: no
// byte of them is copied, on an amd64 machine or in a WebAssembly runtime alike.
//
//	go run ./tiny 111101101101111
//
// # How it was made
//
// generate.py trained digits.pt with PyTorch, and wick packed it:
//
//	wick pack --type Net digits.pt weights.go
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/wick-ml/wick/nn"
)

//go:generate go run -C ../.. ./cmd/wick pack --force --type Net examples/tiny/digits.pt examples/tiny/weights.go

// Net has 15 pixels, 32 hidden units and 10 digits.
type Net struct {
	FC1, FC2 nn.Linear[float32]
}

// pixels of a glyph: three columns, five rows.
const pixels = 15

func main() {
	memory := flag.Bool("memory", false, "say as JSON what loading the weights allocated and copied")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: tiny [-memory] PIXELS\n\nPIXELS are 15 times 0 or 1, row by row, such as 010110010010111")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), *memory); err != nil {
		fmt.Fprintln(os.Stderr, "tiny:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, text string, memory bool) error {
	if len(text) != pixels || strings.Trim(text, "01") != "" {
		return fmt.Errorf("%q is no glyph: need 15 times 0 or 1", text)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	net, report, err := LoadNet(ctx)
	runtime.ReadMemStats(&after)
	if err != nil {
		return err
	}
	if memory {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"allocated": after.TotalAlloc - before.TotalAlloc, "copied": report.Copied, "aliased": report.Aliased,
			"logits": net.Logits(glyph(text)),
		})
	}
	for row := range pixels / 3 {
		fmt.Println(strings.NewReplacer("0", "·", "1", "█").Replace(text[3*row : 3*row+3]))
	}
	fmt.Println("is a", best(net.Logits(glyph(text))))
	return nil
}

// glyph is the text of pixels as numbers.
func glyph(text string) []float32 {
	numbers := make([]float32, pixels)
	for i := range numbers {
		numbers[i] = float32(text[i] - '0')
	}
	return numbers
}

// best is the digit with the highest score.
func best(logits []float32) int {
	digit := 0
	for i, score := range logits {
		if score > logits[digit] {
			digit = i
		}
	}
	return digit
}

// Logits returns the score of each digit.
func (n *Net) Logits(glyph []float32) []float32 {
	hidden := apply(&n.FC1, glyph)
	for i := range hidden {
		hidden[i] = max(hidden[i], 0)
	}
	return apply(&n.FC2, hidden)
}

// apply computes weight·x + bias.
func apply(layer *nn.Linear[float32], x []float32) []float32 {
	y := make([]float32, layer.Weight.Shape[0])
	for i := range y {
		y[i] = layer.Bias.Data[i]
		for j, w := range layer.Weight.Data[i*len(x) : (i+1)*len(x)] {
			y[i] += w * x[j]
		}
	}
	return y
}
