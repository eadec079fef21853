package wick_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/attacks"
	"github.com/wick-ml/wick/fault"
)

// Whoever meets an error of a file gets to know which file, what is wrong and what
// to do about it.
func TestErrorsHelp(t *testing.T) {
	met := 0
	for _, c := range slices.Concat(attacks.Opcodes(), attacks.Lengths(), attacks.Objects(), attacks.Geometry(), attacks.Zips(),
		attacks.Legacies(), attacks.Tars(), attacks.Headers()) {
		if strings.Contains(c.Name, "bomb") { // they take their time
			continue
		}
		file, single := c.Files()[""]
		if !single || len(file) > 20_000 {
			continue
		}
		for _, err := range refusals(t, file) {
			met++
			var e *fault.Error
			switch {
			case !errors.As(err, &e):
				t.Errorf("%s: no fault.Error: %v", c.Name, err)
			case e.Found == "" || e.Need == "" || e.Cure == "":
				t.Errorf("%s: found %q, need %q, cure %q", c.Name, e.Found, e.Need, e.Cure)
			}
		}
	}
	if met < 1000 {
		t.Errorf("only %d errors", met)
	}
}

// refusals are the error of opening a file, or those of its tensors.
func refusals(t *testing.T, file []byte) (errs []error) {
	c, err := wick.OpenBytes(t.Context(), "file", file)
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) && !strings.HasPrefix(e.File, "file") {
			t.Errorf("no file in %v", err)
		}
		return []error{err}
	}
	for _, x := range c.Tensors() {
		if err := x.Err(); err != nil && !errors.Is(err, fault.ErrNoData) {
			errs = append(errs, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return errs
}
