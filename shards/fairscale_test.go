package shards_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
)

// TestRanksRefuse holds what shards of fairscale must not lack.
func TestRanksRefuse(t *testing.T) {
	const leftovers = "../pytorch-tests/leftovers/"
	other := filepath.Join("..", "pytorch-tests", "leftovers", "compiled-ddp-torch2.15.pt")
	for name, c := range map[string]struct {
		rename map[string]string
		extra  string // a file of another kind under the name of the last rank
		want   error
		text   string
	}{
		"the first rank is missing":   {map[string]string{"checkpoint_last-shard0.pt": ""}, "", fault.ErrMalformed, "checkpoint_last-shard0.pt is missing"},
		"a rank between is missing":   {map[string]string{"checkpoint_last-shard1.pt": ""}, "", fault.ErrMalformed, "checkpoint_last-shard1.pt is missing"},
		"the last rank is missing":    {map[string]string{"checkpoint_last-shard2.pt": ""}, "", fault.ErrMalformed, "of fewer elements"},
		"a rank twice":                {map[string]string{"checkpoint_last-shard2.pt": ""}, leftovers + "fairscale-r2-torch2.15/checkpoint_last-shard0.pt", fault.ErrMalformed, "elements in the shapes"},
		"a file without its metadata": {map[string]string{"checkpoint_last-shard2.pt": ""}, other, fault.ErrUnsupported, "without shard_metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyFolder(t, leftovers+"fairscale-r3-torch2.15", c.rename)
			if c.extra != "" {
				b, err := os.ReadFile(c.extra)
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "checkpoint_last-shard2.pt"), b)
			}
			_, err := wick.Open(t.Context(), dir)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}
