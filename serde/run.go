package serde

import (
	"context"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Report is what a run did.
type Report struct {
	Plan *Plan `json:"plan"`

	Read      int64 `json:"read"`      // bytes read from storages
	Copied    int64 `json:"copied"`    // bytes delivered into memory of the fields' own
	Aliased   int64 `json:"aliased"`   // bytes of the source that fields now are
	Allocated int64 `json:"allocated"` // bytes of the fields' own memory and of staging

	Overflow int64 `json:"overflow"` // floats that the field's dtype is too small for, as [tensor.Loss] says: they became infinite, ±448 in F8E4M3FN, or NaN

	// Checks counts the tensors by what became of the checksums behind them.
	Checks Checks `json:"checks"`
}

// Checks counts tensors by what became of the checksums behind them. Those that
// are aliased are only looked at with [Verify].
type Checks struct {
	Verified   int `json:"verified"`
	Unverified int `json:"unverified"` // there is one, but not all of its bytes passed by
	Absent     int `json:"absent"`     // the source has none
	Failed     int `json:"failed"`     // wrong, and passed over as asked
}

// Unmarshal fills what v points to from the tree below root: [NewPlan], then
// [Plan.Run].
func Unmarshal(ctx context.Context, root nested.Value, v any, opts ...Option) (*Report, error) {
	p, err := NewPlan(root, v, opts...)
	if err != nil {
		return nil, err
	}
	return p.Run(ctx)
}

// Run reads the tensors and then assigns all fields. On any error, also when
// ctx ends, the Go value is as it was before, and the error is a [*FitError] if
// the plan does not fit.
func (p *Plan) Run(ctx context.Context) (*Report, error) {
	return p.RunWith(ctx, func(ctx context.Context, moves []tensor.Move) (tensor.Stats, error) {
		if len(moves) == 0 { // all is known, or aliased
			return tensor.Stats{}, ctx.Err()
		}
		return tensor.Run(ctx, moves, p.cfg.mover...)
	})
}

// RunWith is Run with another mover than [tensor.Run], such as a
// [tensor.Feed] whose storages arrive in one pass. The moves' destinations are
// made before move is called; it must have filled all of them when it returns
// nil.
func (p *Plan) RunWith(ctx context.Context, move func(context.Context, []tensor.Move) (tensor.Stats, error)) (*Report, error) {
	if err := p.Err(); err != nil {
		return nil, err
	}
	lent, err := p.checkLent()
	if err != nil {
		return nil, err
	}
	moves, err := p.moves()
	if err != nil {
		return nil, err
	}
	stats, err := move(ctx, moves)
	if err == nil {
		err = p.complete(ctx)
	}
	if err != nil {
		p.forget()
		return nil, err
	}
	report := p.report(stats, lent)
	for i := range p.loads {
		p.loads[i].commit()
	}
	for _, f := range p.commit {
		f()
	}
	p.forget()
	return report, nil
}

// complete does all that can still fail.
func (p *Plan) complete(ctx context.Context) error {
	for i := range p.loads {
		l := &p.loads[i]
		if l.tied >= 0 && !l.share {
			l.el.copy(l.data, p.loads[l.tied].data)
		}
		if l.verify == nil {
			continue
		}
		if err := l.verify(l.data); err != nil {
			return err
		}
	}
	for _, call := range p.calls {
		if err := call(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// forget drops the memory, which is the fields' now or nobody's.
func (p *Plan) forget() {
	for i := range p.loads {
		if l := &p.loads[i]; !l.lent {
			l.data = nil
		}
	}
}

// checks counts tensors by what became of their checksums.
type checks [tensor.Failed + 1]int

// checkLent judges the checksums behind the fields that alias memory, before
// any memory is made for the others.
func (p *Plan) checkLent() (n checks, err error) {
	var last *tensor.Storage
	for i := range p.loads {
		s, _, ok := p.loads[i].t.Origin()
		if !p.loads[i].lent || !ok {
			continue
		}
		want, has := s.CRC32()
		switch {
		case !has:
			n[tensor.Absent]++
			continue
		case !p.cfg.verify:
			n[tensor.Unverified]++
			continue
		case s != last:
			if got := crc.Update(0, s.Lent()); got != want {
				return n, fault.OnPath(tensor.Wrong{Storage: s, Got: got, Want: want}.Err(), p.Applied[p.loads[i].row].Name)
			}
		}
		last = s // neighbours often share one
		n[tensor.Verified]++
	}
	return n, nil
}

func (p *Plan) report(stats tensor.Stats, lent checks) *Report {
	r := &Report{Plan: p, Read: stats.Read, Aliased: p.AliasBytes, Overflow: stats.Loss.Overflow}
	for i := range p.loads {
		if l := &p.loads[i]; l.own() {
			r.Copied += l.bytes()
			r.Allocated += l.bytes()
		}
	}
	for _, c := range stats.Checks {
		lent[c]++
	}
	r.Checks = Checks{lent[tensor.Verified], lent[tensor.Unverified], lent[tensor.Absent], lent[tensor.Failed]}
	return r
}
