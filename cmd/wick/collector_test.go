package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlySmall(t *testing.T) {
	dir := t.TempDir()
	little, large := filepath.Join(dir, "little"), filepath.Join(dir, "large")
	for name, size := range map[string]int64{little: small, large: small + 1} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"ls", little}, true},
		{[]string{"convert", little, filepath.Join(dir, "out")}, true},
		{[]string{"ls", large}, false},
		{[]string{"diff", little, large}, false},
		{[]string{"ls", dir}, false},
		{[]string{"ls", "-"}, false},
	} {
		if got := onlySmall(c.args); got != c.want {
			t.Errorf("%v: %t", c.args, got)
		}
	}
}

// A limit that lies below what is in use is worse than none.
func TestAbove(t *testing.T) {
	for _, inUse := range []uint64{0, 1, 100 << 20, 200 << 20, 1 << 40} {
		if got := above(inUse); got <= int64(inUse)+int64(inUse)/10 || got > int64(inUse)/4*5+smallLimit {
			t.Errorf("%d for %d", got, inUse)
		}
	}
}
