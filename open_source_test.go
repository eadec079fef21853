package wick_test

import (
	"errors"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// counted counts how often it is closed.
type counted struct {
	checkpoint.Source
	closed int
}

func (c *counted) Close() error {
	c.closed++
	return c.Source.Close()
}

// TestOpenSourceOwnsItsSource holds that a source is closed once, whatever opening it
// ends with.
func TestOpenSourceOwnsItsSource(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		opts []wick.Option
		want error
	}{
		"sound":       {text: "\x02\x00\x00\x00\x00\x00\x00\x00{}"},
		"no format":   {text: "a text that is no checkpoint, and long enough to be seen as one\n", want: fault.ErrUnsupported},
		"cut":         {text: "\x09\x00\x00\x00\x00\x00\x00\x00{}", want: fault.ErrMalformed},
		"wrong limit": {text: "\x02\x00\x00\x00\x00\x00\x00\x00{}", opts: []wick.Option{wick.WithLimits(wick.Limits{Depth: -1})}, want: fault.ErrUsage},
	} {
		src := &counted{Source: checkpoint.NewBytes(name, []byte(tt.text))}
		c, err := wick.OpenSource(t.Context(), src, tt.opts...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if c != nil {
			if src.closed > 0 {
				t.Errorf("%s: closed while open", name)
			}
			c.Close()
		}
		if src.closed != 1 {
			t.Errorf("%s: closed %d times", name, src.closed)
		}
	}
}
