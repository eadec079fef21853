//go:build !weights

package main

import (
	"io"
	"strings"
	"testing"
)

// The program says on one line how weights come into it.
func TestWithoutWeights(t *testing.T) {
	err := run(t.Context(), []string{"-image", "testdata/picture.png"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "wick pack ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without weights the program says %v", err)
	}
}
