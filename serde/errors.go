package serde

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// FitError says that a tree and a Go value do not fit: it has the whole plan,
// and names the first of each sort in its text. [errors.Is] finds
// [fault.ErrMismatch] in it, and [fault.ErrNotFound] when something is missing.
type FitError struct {
	Plan       *Plan
	Missing    []Row // those that no option allows
	Unexpected []Row
	Mismatched []Row

	fault *fault.Error
}

func newFitError(p *Plan, missing, unexpected []Row) *FitError {
	e := &FitError{Plan: p, Missing: missing, Unexpected: unexpected, Mismatched: p.Mismatched}
	parts := []string{}
	for _, group := range []struct {
		rows []Row
		what string
	}{{p.Mismatched, "mismatched"}, {missing, "missing"}, {unexpected, "unexpected"}} {
		if len(group.rows) > 0 {
			parts = append(parts, strconv.Itoa(len(group.rows))+" "+group.what+" ("+first(group.rows)+")")
		}
	}
	e.fault = fault.New(fault.Mismatch, strings.Join(parts, ", ")).Needs("a value for every field and a field for every tensor", cure(p, missing))
	return e
}

// first names the first rows with what is known of each.
func first(rows []Row) string {
	var texts []string
	for _, r := range rows[:min(len(rows), 3)] {
		text := r.Name
		if r.Near != "" {
			text += ", near " + r.Near
		}
		if r.Note != "" {
			text += ": " + r.From + ", " + r.Note
		}
		texts = append(texts, text)
	}
	if len(rows) > 3 {
		texts = append(texts, "…")
	}
	return strings.Join(texts, "; ")
}

// cure guesses what went wrong from how the names differ.
func cure(p *Plan, missing []Row) string {
	if len(missing) > 0 && len(p.Unexpected) > 0 {
		if prefix, ok := commonPrefix(missing, p.Unexpected); ok {
			return "the names of the file have " + strconv.Quote(prefix) + " before them: give that as the prefix or key"
		}
	}
	return "allow missing or unexpected ones, rename or exclude; the plan lists all"
}

// commonPrefix finds a text that, put before the first missing name, makes it
// one that is unexpected.
func commonPrefix(missing, unexpected []Row) (string, bool) {
	for _, r := range unexpected[:min(len(unexpected), maxCandidates)] {
		if prefix, ok := strings.CutSuffix(r.Name, "."+missing[0].Name); ok {
			return prefix + ".", true
		}
	}
	return "", false
}

// Error is one line.
func (e *FitError) Error() string { return e.fault.Error() }

// Unwrap returns the [*fault.Error] of kind mismatch.
func (e *FitError) Unwrap() error { return e.fault }

// Is reports whether target is [fault.ErrNotFound] and something is missing.
func (e *FitError) Is(target error) bool {
	return target == fault.ErrNotFound && len(e.Missing) > 0
}
