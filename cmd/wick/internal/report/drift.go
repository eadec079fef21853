package report

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/numbers"
	"github.com/wick-ml/wick/tensor"
)

// OfPair makes the page of two checkpoints: what is missing, added and changed, and
// how far values have drifted. Both must have been hashed. It reads the tensors
// that differ again, and all of both for their statistics.
func OfPair(ctx context.Context, a, b *listing.Listing, opts Options) (*Page, error) {
	p, err := Of(ctx, a, false, opts)
	if err != nil {
		return nil, err
	}
	second, _ := largest(b.Tensors)
	stats, err := describe(ctx, b, second, opts)
	if err != nil {
		return nil, err
	}
	p.Pair, p.Title = true, clean(a.File)+" and "+clean(b.File)
	_, differences := listing.Compare(a, b)
	of := map[*listing.Tensor]*listing.Difference{}
	for i := range differences {
		of[differences[i].RowA] = &differences[i]
	}
	first, _ := largest(a.Tensors)
	for i, t := range first { // in the order of p.Rows
		if err := p.Rows[i].compare(ctx, of[t], stats); err != nil {
			return nil, listing.Locate(err, a.File, t.Name())
		}
	}
	added := listing.Added(a, b)
	p.added = len(added)
	for _, d := range added {
		r := row(d.RowB)
		r.Kind, r.Other = "added", stats[d.RowB.Tensor()]
		p.addRow(r, nil)
	}
	p.charts = nil
	if c := driftChart(p.Rows); len(c.values) > 0 {
		p.charts = []chart{c}
	}
	return p, nil
}

// compare notes what is different in a row.
func (r *Row) compare(ctx context.Context, d *listing.Difference, stats map[*tensor.Tensor]*Stats) error {
	if d == nil {
		r.Kind, r.Other = "same", r.Stats
		return nil
	}
	r.Kind = d.Kind
	if d.RowB != nil {
		r.Other = stats[d.RowB.Tensor()]
	}
	if d.Kind != "values" && d.Kind != "missing" {
		r.Note = clean(d.A + " became " + d.B)
	}
	if !d.Measurable() {
		return nil
	}
	distance, err := numbers.Between(ctx, d.RowA.Tensor(), d.RowB.Tensor())
	if err != nil {
		return err
	}
	r.Drift = &Drift{MaxAbs: finite(distance.MaxAbs), MaxRel: finite(distance.MaxRel), L2: finite(distance.L2()), Differ: distance.Differ}
	return nil
}

// driftChart shows the tensors that drifted farthest for their size.
func driftChart(rows []Row) chart {
	var far []*Row
	for i := range rows {
		if d := rows[i].Drift; d != nil && d.L2 != nil && *d.L2 > 0 {
			far = append(far, &rows[i])
		}
	}
	slices.SortStableFunc(far, func(a, b *Row) int { return cmp.Compare(*b.Drift.L2, *a.Drift.L2) })
	c := chart{title: "Relative drift, |B - A| / |A|, largest first", format: driftText}
	for _, r := range far[:min(len(far), 2*maxBars)] {
		c.add(short(r.Name), *r.Drift.L2)
	}
	return c
}

func driftText(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
