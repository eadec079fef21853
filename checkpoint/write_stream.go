package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"hash/crc32"
	"io"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// WriteStream writes a layout to w in order, for pipes and for forms whose size
// nobody knows ahead. A [Layout.Late] part in front of tensors whose sums are
// not known costs a second reading of these.
func WriteStream(ctx context.Context, w io.Writer, l *Layout, opts ...tensor.RunOption) (tensor.Stats, error) {
	buffered := bufio.NewWriterSize(w, 1<<16)
	s := streamer{ctx: ctx, opts: opts, layout: l, sums: newSummer(nil, l)}
	if err := s.presum(); err != nil {
		return s.stats, err
	}
	if err := s.through(buffered); err != nil {
		return s.stats, err
	}
	return s.stats, writeFailed(buffered.Flush())
}

// writeFailed makes a fault of an error of the writer that is none yet.
func writeFailed(err error) error {
	if err == nil || fault.KindOf(err) != "" {
		return err
	}
	return fault.Wrap(fault.IO, "write failed", err)
}

type streamer struct {
	ctx    context.Context
	opts   []tensor.RunOption
	layout *Layout
	sums   *summer
	stats  tensor.Stats
	out    io.Writer
}

// through writes all parts through the layout's filter, if it has one.
func (s *streamer) through(w io.Writer) error {
	if s.layout.filter == nil {
		s.out = w
		return s.write()
	}
	f, err := s.layout.filter(w)
	if err != nil {
		return writeFailed(err)
	}
	s.out = f
	if err := s.write(); err != nil {
		return errors.Join(err, f.Close())
	}
	return writeFailed(f.Close())
}

// presum reads the tensors whose sums a part in front of them asks for.
func (s *streamer) presum() error {
	if !s.asksAhead() {
		return nil
	}
	var moves []tensor.Move
	for _, p := range s.sums.parts {
		to := &sumStream{s: s.sums, at: p.offset, to: io.Discard}
		moves = append(moves, tensor.Move{From: p.tensor, To: tensor.Stream(to)})
	}
	if _, err := tensor.Run(s.ctx, moves, s.opts...); err != nil {
		return err
	}
	return s.sums.finish(s.layout.size)
}

func (s *streamer) asksAhead() bool {
	late := false
	for i := range s.layout.parts {
		p := &s.layout.parts[i]
		late = late || p.late != nil
		if late && p.sum != nil && !p.sum.known {
			return true
		}
	}
	return false
}

// write writes the parts, those that need nothing of one another in one run.
func (s *streamer) write() error {
	parts := s.layout.parts
	to := &sumStream{s: s.sums, to: s.out}
	var moves []tensor.Move
	for i := range parts {
		p := &parts[i]
		if p.late == nil && p.text == nil {
			moves = append(moves, tensor.Move{From: p.asTensor(), To: tensor.Stream(to)})
			continue
		}
		if err := s.run(moves, p.offset); err != nil {
			return err
		}
		moves = nil
		if err := s.special(p, to); err != nil {
			return err
		}
	}
	return s.run(moves, s.layout.size)
}

// asTensor returns the part's bytes as a tensor, so that one run can write
// tensors and what stands between them.
func (p *part) asTensor() *tensor.Tensor {
	if p.tensor != nil {
		return p.tensor
	}
	return tensor.Of(p.literal)
}

// run writes a batch and settles the sums of the tensors before the offset.
func (s *streamer) run(moves []tensor.Move, end int64) error {
	if len(moves) == 0 {
		return s.ctx.Err()
	}
	stats, err := tensor.Run(s.ctx, moves, s.opts...)
	s.stats = addStats(s.stats, stats)
	if err != nil {
		return err
	}
	return s.sums.finish(end)
}

func (s *streamer) special(p *part, to *sumStream) error {
	if p.text != nil {
		return s.text(p)
	}
	b, err := p.bytes()
	if err != nil {
		return err
	}
	_, err = to.Write(b)
	return writeFailed(err)
}

// text writes a tensor in its own spelling and sums its packed bytes.
func (s *streamer) text(p *part) error {
	hash := crc32.NewIEEE()
	spell := p.text(s.out)
	move := tensor.Move{From: p.tensor, To: tensor.Stream(io.MultiWriter(hash, spell))}
	if err := s.run([]tensor.Move{move}, p.offset); err != nil {
		return err
	}
	p.sum.value, p.sum.known = hash.Sum32(), true
	return writeFailed(spell.Close())
}
