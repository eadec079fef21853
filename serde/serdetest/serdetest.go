// Package serdetest asserts in tests what loading a model does to memory.
package serdetest

import (
	"runtime"
	"testing"

	"github.com/wick-ml/wick/serde"
)

// Memory is what a load is expected to have done, in bytes, as [serde.Report] has
// it.
type Memory struct {
	Read      int64 // read from storages
	Copied    int64 // delivered into memory of the fields' own
	Aliased   int64 // of the source, that fields now are
	Allocated int64 // of the fields' own memory and of staging
}

// Assert fails the test unless the report tells exactly this, and lists then how
// each field was filled and why.
func Assert(tb testing.TB, report *serde.Report, want Memory) {
	tb.Helper()
	got := Memory{report.Read, report.Copied, report.Aliased, report.Allocated}
	if got != want {
		tb.Errorf("the load did %+v, want %+v\n%s", got, want, report.Plan)
	}
}

// InPlace fails the test if the load copied a byte of a tensor, and says which
// fields it copied and why.
func InPlace(tb testing.TB, report *serde.Report) {
	tb.Helper()
	if report.Copied == 0 && report.Allocated == 0 {
		return
	}
	for i := range report.Plan.Applied {
		if row := &report.Plan.Applied[i]; row.How != serde.View && row.Bytes > 0 {
			tb.Errorf("%s: %d bytes, %s (%s %s)", row.Field, row.Bytes, row.How, row.From, row.Note)
		}
	}
	tb.Errorf("%d bytes copied, %d allocated", report.Copied, report.Allocated)
}

// Allocated calls f and returns the bytes that the program allocated meanwhile, all
// together, also those that were garbage before f returned: more than the heap ever
// grew by. What other goroutines allocate counts too, so the test must not be parallel.
func Allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC() // nothing that waits for a collection is counted
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// AllocatesAtMost fails the test if f allocates more bytes than most, see
// [Allocated].
func AllocatesAtMost(tb testing.TB, most int64, f func()) {
	tb.Helper()
	if n := Allocated(f); n > most {
		tb.Errorf("%d bytes allocated, want at most %d", n, most)
	}
}
