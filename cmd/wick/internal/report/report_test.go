package report

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// listed lists a tree.
func listed(t *testing.T, root nested.Value) *listing.Listing {
	t.Helper()
	c, err := checkpoint.New(root, checkpoint.Info{Name: "model.pt", Format: "zip"}, &checkpoint.Env{Limits: checkpoint.Limits{}.Default()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := listing.Of(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func leaf(shape []int, values ...float32) nested.Value {
	return &nested.Tensor{Tensor: tensor.Array[float32]{Shape: shape, Data: values}.Tensor()}
}

func dict(t *testing.T, pairs ...any) *nested.Map {
	t.Helper()
	m := nested.NewMap("dict")
	for i := 0; i < len(pairs); i += 2 {
		if err := m.Set(nested.String(pairs[i].(string)), pairs[i+1].(nested.Value)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestStatisticsAndWarnings(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	l := listed(t, dict(t,
		"conv.weight", leaf([]int{3, 2}, 1, 2, 0, 0, -4, 3),
		"conv.bias", leaf([]int{4}, nan, inf, 1, 3),
		"zero.weight", leaf([]int{2, 2}, 0, 0, 0, 0),
	))
	p, err := Of(context.Background(), l, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, b := p.Rows[0].Stats, p.Rows[1].Stats
	// torch: t = tensor([1., 2, 0, 0, -4, 3]); t.min(), t.max(), t.mean(), t.std()
	if *w.Min != -4 || *w.Max != 3 || math.Abs(*w.Mean-0.3333333) > 1e-6 || math.Abs(*w.Std-2.4221203) > 1e-6 || w.Zero != 2 || w.Dead != 1 || w.Channels != 3 {
		t.Errorf("conv.weight: %s", text(w))
	}
	if *b.Min != 1 || *b.Max != 3 || b.NaN != 1 || b.Inf != 1 || b.Dead != 0 {
		t.Errorf("conv.bias: %s", text(b))
	}
	want := []Warning{{0, "1 output channel of 3 all zeros"}, {1, "1 NaN"}, {1, "1 infinite value"}, {2, "all zeros"}}
	if text(p.Warnings) != text(want) {
		t.Errorf("warnings %s, want %s", text(p.Warnings), text(want))
	}
}

func TestDriftOfAPair(t *testing.T) {
	a := listed(t, dict(t, "w", leaf([]int{2}, 3, 4), "same", leaf([]int{1}, 1), "gone", leaf([]int{1}, 1), "shape", leaf([]int{2}, 1, 1)))
	b := listed(t, dict(t, "w", leaf([]int{2}, 3, 5), "same", leaf([]int{1}, 1), "new", leaf([]int{1}, 1), "shape", leaf([]int{2, 1}, 1, 1)))
	for _, l := range []*listing.Listing{a, b} {
		if _, err := l.Hash(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OfPair(context.Background(), a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.HTML(); err != nil {
		t.Error(err)
	}
	kinds := map[string]string{}
	for _, r := range p.Rows {
		kinds[r.Name] = r.Kind
	}
	want := map[string]string{"w": "values", "same": "same", "gone": "missing", "shape": "shape", "new": "added"}
	if got := p.Count(); got != "4 tensors of the first and 1 added by the second" {
		t.Errorf("count %q", got)
	}
	if text(kinds) != text(want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	for _, r := range p.Rows {
		// The difference (0, 1) is one long, (3, 4) is five long.
		if r.Name == "w" && (*r.Drift.L2 != 0.2 || *r.Drift.MaxAbs != 1 || *r.Drift.MaxRel != 0.2 || r.Drift.Differ != 1) {
			t.Errorf("drift %s", text(r.Drift))
		}
	}
}

func TestAPairWithoutDrift(t *testing.T) {
	a, b := listed(t, dict(t, "w", leaf([]int{1}, 1))), listed(t, dict(t, "w", leaf([]int{1}, 1)))
	for _, l := range []*listing.Listing{a, b} {
		if _, err := l.Hash(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OfPair(context.Background(), a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.HTML(); err != nil || p.Rows[0].Kind != "same" {
		t.Errorf("%s, %v", p.Rows[0].Kind, err)
	}
}

func TestTextFromAFileIsNeverMarkup(t *testing.T) {
	evil := `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'&{{js}}`
	l := listed(t, dict(t, evil, leaf([]int{2}, 1, 2), "s", nested.String(evil)))
	l.File = evil
	p, err := Of(context.Background(), l, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Findings = append(p.Findings, Finding{Grade: evil, Name: evil, Place: evil})
	html, err := p.HTML()
	if err != nil {
		t.Fatal(err)
	}
	body := string(html)
	if n := strings.Count(body, "<script"); n != 2 {
		t.Errorf("%d scripts, want the data and the page's own", n)
	}
	if strings.Contains(body, "<img") {
		t.Error("a tag from the file reached the page")
	}
	var back Page
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(body)
	if err := json.Unmarshal([]byte(data[1]), &back); err != nil || back.Rows[0].Name != evil {
		t.Errorf("the name became %q, %v", back.Rows[0].Name, err)
	}
}

func TestThePolicyNamesTheScript(t *testing.T) {
	html, err := (&Page{}).HTML()
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindStringSubmatch(string(html))
	if !strings.Contains(string(html), "script-src '"+hash(script[1])+"'") {
		t.Error("the browser would not run the page's script")
	}
	for _, far := range []string{"http:", "https:", "url(", "@import"} {
		if strings.Contains(strings.ReplaceAll(string(html), "http://www.w3.org/", ""), far) {
			t.Errorf("the page mentions %s", far)
		}
	}
}

func TestManyTensorsKeepTheLargest(t *testing.T) {
	tensors := make([]listing.Tensor, MaxRows+2)
	small, large := leaf([]int{1}, 1).(nested.Leaf), leaf([]int{2}, 1, 2).(nested.Leaf)
	for i := range tensors {
		tensors[i] = listing.Tensor{Seq: i, Leaf: large}
	}
	tensors[5].Leaf, tensors[7].Leaf = small, small
	shown, left := largest(tensors)
	if left != 2 || len(shown) != MaxRows || shown[5].Seq != 6 || shown[6].Seq != 8 {
		t.Errorf("%d left, %d shown, 5th is %d, 6th is %d", left, len(shown), shown[5].Seq, shown[6].Seq)
	}
}

func TestRealCheckpoints(t *testing.T) {
	for _, kind := range []string{"nested-tree", "quantized", "sparse", "lightning", "odd-objects", "views", "numpy-values", "meta", "torchscript"} {
		files, err := filepath.Glob("../../../../pytorch-tests/" + kind + "/*.pt*")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s, %v", kind, err)
		}
		for _, name := range files {
			realCheckpoint(t, name)
		}
	}
}

func realCheckpoint(t *testing.T, name string) {
	c, err := wick.Open(context.Background(), name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer func() { _ = c.Close() }()
	l, err := listing.Of(c)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	p, err := Of(context.Background(), l, false, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if len(p.Rows) != len(l.Tensors) || len(p.Opaque) != len(l.Opaque) {
		t.Errorf("%s: %d of %d tensors, %d of %d objects", name, len(p.Rows), len(l.Tensors), len(p.Opaque), len(l.Opaque))
	}
	if _, err := p.HTML(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// A page of very many tensors holds the largest, and says of how many.
func TestCountOfVeryMany(t *testing.T) {
	m, one := nested.NewMap("dict"), leaf([]int{1}, 1)
	for i := range MaxRows + 5 {
		if err := m.Set(nested.String(strconv.Itoa(i)), one); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Of(context.Background(), listed(t, m), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Count(); got != "20,005 tensors, 20,000 shown" || p.Left != 5 {
		t.Errorf("count %q, left %d", got, p.Left)
	}
}

// Modules are those two steps below what all tensors lie in.
func TestLargestModules(t *testing.T) {
	x := leaf([]int{2}, 1, 2)
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{[]string{"layer1.0.conv.weight", "layer1.1.conv.weight", "fc.weight", "w"}, []string{"layer1.0", "layer1.1", "fc", "w"}},
		{[]string{"model.layers.0.q.weight", "model.layers.0.k.weight", "model.layers.1.q.weight"}, []string{"model.layers.0.q", "model.layers.0.k", "model.layers.1.q"}},
		{[]string{"model.layers.0.q.weight", "model.layers.0.q.bias", "model.norm.weight", "model.norm.bias"}, []string{"model.layers.0", "model.norm"}},
		{[]string{"a.b.c.w"}, []string{"a.b.c.w"}},
		{[]string{"", "."}, []string{""}},
		{nil, nil},
	} {
		root := nested.NewMap("dict")
		for _, name := range c.names {
			if err := root.Set(nested.String(name), x); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, m := range heaviest(listed(t, root)) {
			got = append(got, m.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
	}
}
