package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/numbers"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// MaxRows is how many tensors a page holds; of more, it holds the largest.
const MaxRows = 20_000

// Of makes the page of one checkpoint. It reads all values once, unless quick
// asks for a page of metadata alone. A tensor whose bytes cannot be had is a row
// that says so. It fails as the run does.
func Of(ctx context.Context, l *listing.Listing, quick bool, opts Options) (*Page, error) {
	p := &Page{Title: clean(l.File), Rows: []Row{}, Warnings: []Warning{}, Values: []Named{}, Opaque: []Named{}, Findings: []Finding{}}
	shown, left := largest(l.Tensors)
	p.Left, p.tensors = left, len(l.Tensors)
	var stats map[*tensor.Tensor]*Stats
	if !quick {
		var err error
		if stats, err = describe(ctx, l, shown, opts); err != nil {
			return nil, err
		}
	}
	for _, t := range shown {
		p.addRow(row(t), stats[t.Tensor()])
	}
	p.addOthers(l)
	p.addCharts(l)
	return p, nil
}

// Options returns the options of a run that reads so many bytes of tensors, as
// they are stored: what a run delivers is more, since it converts to float64. Nil
// is none.
type Options func(bytes int64) []tensor.RunOption

func (o Options) of(moved []*tensor.Tensor) []tensor.RunOption {
	if o == nil {
		return nil
	}
	bytes := int64(0)
	for _, t := range moved {
		bytes += t.Bytes()
	}
	return o(bytes)
}

// Count says how many tensors there are, and how many of them the page shows.
func (p *Page) Count() string {
	text := human.Plural(p.tensors, "tensor")
	if p.Pair && p.added > 0 {
		text += " of the first and " + human.Count(p.added) + " added by the second"
	}
	if n := len(p.Rows); n < p.tensors+p.added {
		text += ", " + human.Count(n) + " shown"
	}
	return text
}

// largest returns the tensors that a page shows, in the order of the file.
func largest(tensors []listing.Tensor) (shown []*listing.Tensor, left int) {
	for i := range tensors {
		shown = append(shown, &tensors[i])
	}
	if len(shown) <= MaxRows {
		return shown, 0
	}
	slices.SortStableFunc(shown, func(a, b *listing.Tensor) int { return cmp.Compare(b.Tensor().Bytes(), a.Tensor().Bytes()) })
	left = len(shown) - MaxRows
	shown = shown[:MaxRows]
	slices.SortFunc(shown, func(a, b *listing.Tensor) int { return a.Seq - b.Seq })
	return shown, left
}

func row(t *listing.Tensor) Row {
	x := t.Tensor()
	r := Row{Name: clean(t.Name()), DType: x.DType().String(), Shape: tensor.ShapeString(x.Shape()), Bytes: x.Bytes(), Count: x.Len()}
	switch {
	case t.NoData():
		r.Note = "no data"
	case t.Err != nil:
		r.Note = clean(t.Err.Error())
	}
	return r
}

// addRow adds a tensor and what is to be warned of.
func (p *Page) addRow(r Row, s *Stats) {
	r.Stats = s
	p.Rows = append(p.Rows, r)
	for _, text := range r.warnings() {
		p.Warnings = append(p.Warnings, Warning{Row: len(p.Rows) - 1, Text: text})
	}
}

func (p *Page) addOthers(l *listing.Listing) {
	for v := range l.Values.All() {
		if len(p.Values) == maxOthers {
			break
		}
		name, _ := v.Path.Text()
		p.addValue(name, v.Value)
	}
	for i := range l.Sets {
		name, _ := l.Sets[i].Path.Text()
		p.addValue(name, l.Sets[i].List)
	}
	for i := range l.Opaque {
		if len(p.Opaque) == maxOthers {
			return
		}
		o := &l.Opaque[i]
		name, _ := o.Path.Text()
		p.Opaque = append(p.Opaque, Named{clean(name), clean(o.Class) + " (" + clean(o.Reason) + ")"})
	}
}

// maxOthers is how many plain values, and how many opaque objects, a page holds.
const maxOthers = 5000

func (p *Page) addValue(name string, v nested.Value) {
	if len(p.Values) < maxOthers {
		p.Values = append(p.Values, Named{clean(name), clean(nested.Repr(v))})
	}
}

// warnings says what looks wrong with a row's values.
func (r *Row) warnings() []string {
	var list []string
	if r.Note != "" && r.Note != "no data" {
		list = append(list, r.Note)
	}
	s := r.Stats
	if s == nil {
		return list
	}
	if s.NaN > 0 {
		list = append(list, human.Count(s.NaN)+" NaN")
	}
	if s.Inf > 0 {
		list = append(list, human.Plural(int(s.Inf), "infinite value"))
	}
	switch {
	case s.Dead > 0 && s.Zero == r.Count:
		list = append(list, "all zeros")
	case s.Dead > 0:
		list = append(list, human.Plural(int(s.Dead), "output channel")+" of "+human.Count(s.Channels)+" all zeros")
	}
	return list
}

// describe reads the values of tensors that have some, each tensor once, and
// notes in their rows which could not be read.
func describe(ctx context.Context, l *listing.Listing, rows []*listing.Tensor, opts Options) (map[*tensor.Tensor]*Stats, error) {
	var (
		moves []tensor.Move
		of    []*tensor.Tensor
		seen  = map[*tensor.Tensor]*meter{}
	)
	for _, r := range rows {
		t := r.Tensor()
		if r.Err != nil || seen[t] != nil {
			continue
		}
		real, err := numbers.Real(t)
		if err != nil {
			continue // complex: it has no minimum
		}
		m := newMeter(t)
		seen[t], of = m, append(of, t)
		moves = append(moves, tensor.Move{From: real, To: tensor.Stream(numbers.Writer(m.add))})
	}
	errs := make([]error, len(moves))
	each := tensor.Each(func(move int, err error) { errs[move] = err })
	_, err := tensor.Run(ctx, moves, append(opts.of(of), each)...)
	if err := listing.Fatal(ctx, err, errs); err != nil {
		return nil, err
	}
	return settle(l, rows, of, seen, errs), nil
}

// settle gives the statistics of what could be read and notes the rest.
func settle(l *listing.Listing, rows []*listing.Tensor, of []*tensor.Tensor, seen map[*tensor.Tensor]*meter, errs []error) map[*tensor.Tensor]*Stats {
	stats := map[*tensor.Tensor]*Stats{}
	failed := map[*tensor.Tensor]error{}
	for i, t := range of {
		if errs[i] != nil {
			failed[t] = errs[i]
			continue
		}
		stats[t] = seen[t].stats()
	}
	for _, r := range rows {
		if err := failed[r.Tensor()]; err != nil {
			r.Err = listing.Locate(err, l.File, r.Name())
		}
	}
	return stats
}

// meter measures the values of one tensor in one pass.
type meter struct {
	numbers.Stats
	hist histogram
	rows int64 // elements in a channel, 0 where there are no channels
	left int64 // of the current one
	zero bool  // it had nothing but zeros so far
	dead int64

	channelCount int64
}

func newMeter(t *tensor.Tensor) *meter {
	m := &meter{}
	if class := t.DType().Class(); t.Dims() >= 2 && t.Len() > 0 && class == tensor.FloatClass {
		m.channelCount = int64(t.Shape()[0])
		m.rows = t.Len() / m.channelCount
	}
	m.left, m.zero = m.rows, true
	return m
}

func (m *meter) add(values []float64) error {
	m.Add(values)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m.hist.add(v)
		}
	}
	if m.rows > 0 {
		m.channels(values)
	}
	return nil
}

// channels counts those that are all zeros; a channel's elements lie together.
func (m *meter) channels(values []float64) {
	for len(values) > 0 {
		n := min(m.left, int64(len(values)))
		m.zero = m.zero && !slices.ContainsFunc(values[:n], func(v float64) bool { return v != 0 })
		values = values[n:]
		if m.left -= n; m.left == 0 {
			if m.zero {
				m.dead++
			}
			m.left, m.zero = m.rows, true
		}
	}
}

func (m *meter) stats() *Stats {
	s := &Stats{NaN: m.NaN, Inf: m.PosInf + m.NegInf, Zero: m.Zero, Dead: m.dead, Channels: m.channelCount}
	if m.Finite() > 0 {
		s.Min, s.Max, s.Mean, s.Std = finite(m.Min), finite(m.Max), finite(m.Mean), finite(m.Std())
		s.Hist, s.From, s.To = m.hist.trimmed()
	}
	return s
}

// addCharts draws bytes by dtype, and how many tensors are how large.
func (p *Page) addCharts(l *listing.Listing) {
	sum := l.Summarize()
	types := chart{title: "Bytes by dtype", format: bytesText}
	slices.SortStableFunc(sum.DTypes, func(a, b listing.DTypeTotal) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, d := range sum.DTypes {
		types.add(d.DType.String(), float64(d.Bytes))
	}
	sizes := chart{title: "Tensors by size", format: countText}
	counts := make([]int, len(sizeClasses))
	for i := range l.Tensors {
		counts[sizeClass(l.Tensors[i].Tensor().Bytes())]++
	}
	for i, n := range counts {
		if n > 0 {
			sizes.add(sizeClasses[i].name, float64(n))
		}
	}
	modules := chart{title: "Largest modules", format: bytesText}
	for _, m := range heaviest(l) {
		modules.add(short(m.name), float64(m.bytes))
	}
	for _, c := range []chart{types, sizes, modules} {
		if len(c.values) > 0 {
			p.charts = append(p.charts, c)
		}
	}
}

func (c *chart) add(label string, value float64) {
	c.labels, c.values = append(c.labels, label), append(c.values, value)
}

// sizeClasses are powers of sixteen, in bytes.
var sizeClasses = []struct {
	below int64
	name  string
}{
	{1 << 8, "< 256 B"}, {1 << 12, "< 4 KiB"}, {1 << 16, "< 64 KiB"}, {1 << 20, "< 1 MiB"}, {1 << 24, "< 16 MiB"},
	{1 << 28, "< 256 MiB"}, {math.MaxInt64, "256 MiB and more"},
}

func sizeClass(bytes int64) int {
	for i, c := range sizeClasses {
		if bytes < c.below {
			return i
		}
	}
	return len(sizeClasses) - 1
}

// module is what lies two steps below the module that holds all tensors.
type module struct {
	name  string
	bytes int64
}

// heaviest returns the modules with the most bytes.
func heaviest(l *listing.Listing) []module {
	at := map[string]int{}
	var list []module
	above := len(commonModule(l))
	for i := range l.Tensors {
		name := moduleOf(l.Tensors[i].Name(), above)
		j, known := at[name]
		if !known {
			j = len(list)
			at[name] = j
			list = append(list, module{name: name})
		}
		list[j].bytes += l.Tensors[i].Tensor().Bytes()
	}
	slices.SortStableFunc(list, func(a, b module) int { return cmp.Compare(b.bytes, a.bytes) })
	return list[:min(len(list), maxBars)]
}

// maxBars is how many bars a chart has at most.
const maxBars = 12

// commonModule is what all names begin with, up to a dot.
func commonModule(l *listing.Listing) string {
	if len(l.Tensors) == 0 {
		return ""
	}
	common := l.Tensors[0].Name()
	for i := range l.Tensors {
		name := l.Tensors[i].Name()
		common = common[:strings.LastIndexByte(common, '.')+1]
		for !strings.HasPrefix(name, common) {
			common = common[:strings.LastIndexByte(common[:len(common)-1], '.')+1]
		}
	}
	return common
}

// moduleOf is a name's steps up to two below what is above all tensors, without the
// tensor's own.
func moduleOf(name string, above int) string {
	parts := strings.Split(name[above:], ".")
	return name[:above] + strings.Join(parts[:max(1, min(len(parts)-1, 2))], ".")
}

// short cuts a label to what a chart has room for; the end of a name says most.
func short(name string) string {
	const room = 30
	runes := []rune(clean(name))
	if len(runes) <= room {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-room+1:])
}

func bytesText(f float64) string { return human.Bytes(int64(f)) }
func countText(f float64) string { return human.Count(int64(f)) }
