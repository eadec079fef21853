package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// maxPause bounds the pause before a retry, whatever the server asks for.
const maxPause = 30 * time.Second

// temporary is an error that another try may not meet.
type temporary struct {
	err   error
	after time.Duration // what the server asked for, 0 if nothing
}

// Error is the text of the error within.
func (t *temporary) Error() string { return t.err.Error() }

// Unwrap returns the error within.
func (t *temporary) Unwrap() error { return t.err }

// Temporary marks an error of [Ranges] that another try may not meet, so that a
// source tries again. nil stays nil.
func Temporary(err error) error { return after(err, 0) }

func after(err error, pause time.Duration) error {
	if err == nil {
		return nil
	}
	return &temporary{err, pause}
}

// plain takes the mark off again.
func plain(err error) error {
	var t *temporary
	if errors.As(err, &t) {
		return t.err
	}
	return err
}

// again calls f until it succeeds, fails for good, or failed once more than
// there are retries.
func (o *options) again(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		var t *temporary
		if !errors.As(err, &t) || try >= o.retries {
			return plain(err)
		}
		if err := o.wait(ctx, try, t.after); err != nil {
			return err
		}
	}
}

// wait pauses before the try after the try-th, twice as long each time and
// somewhat at random, so that many readers do not come back at once.
func (o *options) wait(ctx context.Context, try int, asked time.Duration) error {
	pause := o.pause << min(try, 10)
	pause += time.Duration(rand.Int64N(int64(pause)/4 + 1))
	timer := time.NewTimer(min(max(pause, asked), maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
