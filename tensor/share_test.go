package tensor

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// sized is a task that only has a size.
type sized int64

func (sized) do(*worker) {}

func (s sized) size() int64 { return int64(s) }

func TestSharesAreDealtOnceAndEvenly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		tasks, workers := make([]task, 1+rng.IntN(40)), 1+rng.IntN(5)
		total, largest := int64(0), int64(0)
		for i := range tasks {
			n := 1 + rng.Int64N(1000)
			tasks[i] = sized(n)
			total, largest = total+n, max(largest, n)
		}
		for i, s := range newShares(tasks, workers).left {
			if fair := total/int64(workers) + largest; s.bytes > fair {
				t.Fatalf("worker %d of %d has %d of %d bytes, the largest task %d", i, workers, s.bytes, total, largest)
			}
		}
		if got := deal(newShares(tasks, workers), workers, rng); !sameTasks(got, tasks) {
			t.Fatalf("%v dealt, want %v", got, tasks)
		}
	}
}

// deal lets the workers ask in any order and returns all that they got.
func deal(s *shares, workers int, rng *rand.Rand) (got []task) {
	for {
		next := s.next(rng.IntN(workers))
		if next == nil {
			return got
		}
		got = append(got, next)
	}
}

func sameTasks(a, b []task) bool {
	bySize := func(x, y task) int { return int(x.size() - y.size()) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), bySize), slices.SortedFunc(slices.Values(b), bySize))
}

// TestWhoIsDoneHelpsWhereMostIsLeft holds that the end of the longest share is taken.
func TestWhoIsDoneHelpsWhereMostIsLeft(t *testing.T) {
	s := newShares([]task{sized(1), sized(30), sized(29), sized(20), sized(21), sized(19)}, 3)
	s.left = []share{{0, 1, 1}, {1, 3, 59}, {3, 6, 60}}
	for _, want := range []sized{1, 19, 29, 21} {
		if got := s.next(0); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestAWorkerKeepsToItsNeighbours(t *testing.T) {
	s := newShares([]task{sized(4), sized(5), sized(6), sized(7)}, 2)
	for _, want := range []struct {
		worker int
		size   sized
	}{{1, 6}, {0, 4}, {1, 7}, {1, 5}} { // the last was the other's
		if got := s.next(want.worker); got != want.size {
			t.Errorf("worker %d got %v, want %v", want.worker, got, want.size)
		}
	}
	if got := s.next(0); got != nil {
		t.Errorf("one task too many: %v", got)
	}
}
