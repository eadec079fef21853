package checkpoint

import (
	"sync"

	"github.com/wick-ml/wick/fault"
)

// pin counts the runs that use a source, so that Close can wait for them. A
// read-write lock would not do: a run that acquires twice must not wait for a
// Close that waits for the run.
type pin struct {
	mu     sync.Mutex
	users  int
	closed bool
	idle   chan struct{} // closed when the last user of a closed source leaves
	end    sync.Once
	err    error
}

func (p *pin) acquire(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return closedError(name)
	}
	p.users++
	return nil
}

func (p *pin) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 && p.idle != nil {
		close(p.idle)
	}
}

func (p *pin) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// close refuses new users, waits for those there are, and calls last once.
// Every call returns what last returned.
func (p *pin) close(last func() error) error {
	p.end.Do(func() {
		p.shut()
		p.err = last()
	})
	return p.err
}

func (p *pin) shut() {
	p.mu.Lock()
	p.closed = true
	busy := p.users > 0
	if busy {
		p.idle = make(chan struct{})
	}
	p.mu.Unlock()
	if busy {
		<-p.idle
	}
}

func closedError(name string) error {
	return fault.New(fault.Closed, "a read after Close").In(name)
}
