package shards_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/shards"
)

// TestListedKeepsOthers: what is no index, or has no folder around it, stays what it
// is, and a broken index says so.
func TestListedKeepsOthers(t *testing.T) {
	dir := t.TempDir()
	const index = `{"weight_map": {"w": "a.bin"}}`
	for name, text := range map[string]string{"plain.json": `{"a": 1}`, "empty": "", "m.index.json": index[:len(index)-2]} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	keep := func(src checkpoint.Source, want error) {
		t.Helper()
		got, err := shards.Listed(src, checkpoint.Limits{})
		var e *fault.Error
		if got != src || !errors.Is(err, want) || want != nil && (!errors.As(err, &e) || e.File != src.Name()) {
			t.Errorf("%s: %v, %v", src.Name(), got, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]error{"plain.json": nil, "empty": nil, "m.index.json": fault.ErrMalformed} {
		keep(try(checkpoint.OpenFile(filepath.Join(dir, name))), want)
	}
	keep(try(checkpoint.OpenDir(dir, checkpoint.Options{})), nil)
	keep(checkpoint.NewBytes("memory", []byte(index)), nil)
}
