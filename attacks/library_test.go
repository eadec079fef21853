package attacks

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/serde"
)

// TestSharedListsInTheLibrary loads kilobytes with up to 2^60 ways to one value
// into a struct: all that is allocated, whether or not it is freed, stays below
// what a process may hold.
func TestSharedListsInTheLibrary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shared.pt")
	for _, c := range sharedLists() {
		if err := os.WriteFile(file, c.Files()[""], 0o600); err != nil {
			t.Fatal(err)
		}
		var model struct{ W []float32 }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wick.Load(t.Context(), file, &model, serde.AllowMissing(), serde.AllowUnexpected())
		runtime.ReadMemStats(&after)
		if err != nil && !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: %v", c.Name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > mostMemory {
			t.Errorf("%s: %d MiB were allocated", c.Name, n>>20)
		}
	}
}
