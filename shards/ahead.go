package shards

import (
	"context"
	"errors"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
)

// parallel is how many shards are opened at a time where each is a round trip
// away or more. A model can have a hundred.
const parallel = 8

// ahead opens shards before they are asked for. They are taken in any order;
// those that nobody takes are closed by stop.
type ahead struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	coming map[string]chan opened // one for each shard that nobody took yet
}

// opened is what came of opening one shard.
type opened struct {
	c    *checkpoint.Checkpoint
	size int64
	err  error
}

// newAhead starts to open the shards with the given names, in their order.
func newAhead(ctx context.Context, names []string, open func(context.Context, string) opened) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{cancel: cancel, coming: map[string]chan opened{}}
	queue := make(chan string, len(names))
	for _, name := range names {
		if a.coming[name] == nil {
			a.coming[name] = make(chan opened, 1)
			queue <- name
		}
	}
	close(queue)
	results := make(map[string]chan opened, len(a.coming)) // a.coming is changed by who takes
	for name, ch := range a.coming {
		results[name] = ch
	}
	for range parallel {
		a.wg.Go(func() {
			for name := range queue {
				if err := ctx.Err(); err != nil {
					results[name] <- opened{err: err}
					continue
				}
				results[name] <- open(ctx, name)
			}
		})
	}
	return a
}

// take returns a shard and whether it was one of those named before.
func (a *ahead) take(name string) (opened, bool) {
	ch, ok := a.coming[name]
	if !ok {
		return opened{}, false
	}
	delete(a.coming, name)
	return <-ch, true
}

// stop ends the opening and closes what nobody took.
func (a *ahead) stop() error {
	a.cancel()
	a.wg.Wait()
	var errs []error
	for _, ch := range a.coming {
		if o := <-ch; o.c != nil {
			errs = append(errs, o.c.Close())
		}
	}
	a.coming = nil
	return errors.Join(errs...)
}
