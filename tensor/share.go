package tensor

import "sync"

// shares deals tasks out to workers. Each has a run of neighbours of about the
// same number of bytes, and who is done helps from the end of the longest that
// is left. Workers that took turns on one list would come to the same huge page
// of a destination at the same time; the kernel then zeroes one for each of
// them, which cost a third more than all zeroing that is needed.
type shares struct {
	mu    sync.Mutex
	tasks []task
	left  []share // one for each worker
}

// share is the tasks [lo, hi), which are bytes together.
type share struct {
	lo, hi int
	bytes  int64
}

func newShares(tasks []task, workers int) *shares {
	s := &shares{tasks: tasks, left: make([]share, workers)}
	total, dealt := int64(0), int64(0)
	for _, t := range tasks {
		total += t.size()
	}
	at := 0
	for i := range s.left {
		mine := share{lo: at, hi: at}
		for end := total / int64(workers) * int64(i+1); mine.hi < len(tasks); mine.hi++ {
			n := tasks[mine.hi].size()
			if i < workers-1 && dealt+n/2 >= end {
				break
			}
			mine.bytes += n
			dealt += n
		}
		s.left[i], at = mine, mine.hi
	}
	return s
}

// next returns the worker's next task, nil when there is no more.
func (s *shares) next(worker int) task {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine := &s.left[worker]; mine.lo < mine.hi {
		mine.lo++
		mine.bytes -= s.tasks[mine.lo-1].size()
		return s.tasks[mine.lo-1]
	}
	most := &s.left[0]
	for i := range s.left {
		if s.left[i].bytes > most.bytes || most.lo == most.hi {
			most = &s.left[i]
		}
	}
	if most.lo == most.hi {
		return nil
	}
	most.hi--
	most.bytes -= s.tasks[most.hi].size()
	return s.tasks[most.hi]
}
