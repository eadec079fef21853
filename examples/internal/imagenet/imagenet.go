// Package imagenet is what networks trained on ImageNet have in common around them: how a picture becomes their input,
// and what the numbers that come out are called.
package imagenet

import (
	"cmp"
	_ "embed" // the labels
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // pictures are JPEG
	_ "image/png"  // or PNG files
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/image/draw"
)

//go:embed labels.txt
var labels string

// The statistics of ImageNet's training pictures, by channel, as torchvision.transforms._presets has them.
var (
	mean = [3]float32{0.485, 0.456, 0.406}
	std  = [3]float32{0.229, 0.224, 0.225}
)

// What torchvision's weights were trained and tried with: the shorter side of a picture, and the square cut out of it.
const (
	resized = 256
	Size    = 224 // pixels on each side of what Preprocess returns
)

// Open decodes the JPEG or PNG file and preprocesses it.
func Open(name string) ([]float32, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return Preprocess(picture)
}

// Preprocess returns the input of a network, [3, Size, Size] in row-major order: the picture with its shorter side
// resized to 256 pixels, the square of Size in its centre, normalised. It does what torchvision's ImageClassification
// preset does (torchvision/transforms/_presets.py).
func Preprocess(picture image.Image) ([]float32, error) {
	width, height := picture.Bounds().Dx(), picture.Bounds().Dy()
	if width == 0 || height == 0 {
		return nil, fmt.Errorf("the picture is empty: %d × %d pixels", width, height)
	}
	shorter := min(width, height)
	width, height = width*resized/shorter, height*resized/shorter
	// 16 bits a channel, so that rounding to 8 happens once. Like Pillow's, this scaler widens its filter with the
	// scale: it averages all pixels that become one.
	scaled := image.NewRGBA64(image.Rect(0, 0, width, height))
	draw.BiLinear.Scale(scaled, scaled.Bounds(), opaque(picture), picture.Bounds(), draw.Src, nil)
	corner := image.Pt(half(width-Size), half(height-Size))
	return Normalize(scaled.SubImage(image.Rectangle{corner, corner.Add(image.Pt(Size, Size))})), nil
}

// half is n/2 rounded as Python rounds, to even.
func half(n int) int { return int(math.RoundToEven(float64(n) / 2)) }

// opaque drops a picture's transparency as Pillow's convert("RGB") does: the colours below it stay.
func opaque(picture image.Image) image.Image {
	if o, ok := picture.(interface{ Opaque() bool }); ok && o.Opaque() {
		return picture
	}
	b := picture.Bounds()
	solid := image.NewNRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA) //nolint:errcheck // the model's own colour
			c.A = 255
			solid.SetNRGBA(x, y, c)
		}
	}
	return solid
}

// Normalize returns the pixels of an opaque picture, [3, height, width] in row-major order: rounded to 8 bits, scaled to
// 0…1, with ImageNet's mean taken off and divided by its standard deviation.
func Normalize(picture image.Image) []float32 {
	b := picture.Bounds()
	pixels := b.Dx() * b.Dy()
	out := make([]float32, 3*pixels)
	i := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := picture.At(x, y).RGBA()
			for c, v := range [3]uint32{r, g, bl} {
				out[c*pixels+i] = (float32((v+128)/257)/255 - mean[c]) / std[c]
			}
			i++
		}
	}
	return out
}

// Label returns the name of a class, if there are as many classes as ImageNet has, else its number.
func Label(class, classes int) string {
	names := strings.Split(strings.TrimSuffix(labels, "\n"), "\n")
	if len(names) != classes {
		return fmt.Sprint("class ", class)
	}
	return names[class]
}

// Top returns the classes of the n largest logits, largest first.
func Top(logits []float32, n int) []int {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	return order[:max(min(n, len(order)), 0)]
}

// Print writes the n likeliest classes with their scores, the softmax of the logits, in percent. There is a logit at
// least.
func Print(w io.Writer, logits []float32, n int) error {
	var sum float64
	largest := slices.Max(logits)
	for _, v := range logits {
		sum += math.Exp(float64(v - largest))
	}
	for _, class := range Top(logits, n) {
		score := math.Exp(float64(logits[class]-largest)) / sum
		if _, err := fmt.Fprintf(w, "%6.2f %%  %s\n", 100*score, Label(class, len(logits))); err != nil {
			return err
		}
	}
	return nil
}
