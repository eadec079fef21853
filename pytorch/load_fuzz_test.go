package pytorch

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// FuzzLoad holds the loader to its promises: it never panics, errors are faults
// with a record and an offset, every tensor of the tree is laid out, a tensor
// without an error gives exactly its bytes, and a loader that skims the pickle
// first makes the same tree. It has caught a loader that was made to forget the
// storages that stand in lists, and one that kept arguments that it had borrowed.
func FuzzLoad(f *testing.F) {
	addPickles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLoader(64)
		l.limits = checkpoint.Limits{ExpandFloor: 64 << 20, Paths: 1 << 16, Depth: 1000}.Default()
		l.present = int64(len(data))
		v, err := l.load(pickle.NewCursor(data))
		checkSkimmed(t, data, v, err)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || !e.HasOffset || e.Record == "" {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		err = nested.Walk(v, nested.WalkLimits{Paths: 1 << 16, Depth: 1000}, func(_ nested.Path, v nested.Value) error {
			if tn, ok := v.(*nested.Tensor); ok {
				checkLaidOut(t, tn)
			}
			return nil
		})
		if err != nil && fault.KindOf(err) != fault.Limit {
			t.Errorf("the walk fails: %v", err)
		}
	})
}

// checkSkimmed loads data again with all that is saved where bytes can be read
// twice.
func checkSkimmed(t *testing.T, data []byte, want nested.Value, wantErr error) {
	t.Helper()
	l := newLoader(64)
	l.limits = checkpoint.Limits{ExpandFloor: 64 << 20, Paths: 1 << 16, Depth: 1000}.Default()
	l.present = int64(len(data))
	l.again = func() io.Reader { return bytes.NewReader(data) }
	v, err := l.load(pickle.NewCursor(data))
	switch {
	case (err == nil) != (wantErr == nil), err != nil && err.Error() != wantErr.Error():
		t.Errorf("%v, skimmed %v", wantErr, err)
	case err == nil:
		if a, b := outline(want), outline(v); a != b {
			t.Errorf("%s\nskimmed %s", a, b)
		}
	}
}

// outline shows what a walk finds, with what it says of tensors and objects.
func outline(root nested.Value) string {
	var b strings.Builder
	err := nested.Walk(root, nested.WalkLimits{Paths: 1 << 10, Depth: 1000}, func(p nested.Path, v nested.Value) error {
		b.WriteString(nested.Repr(nested.NewList("tuple", p...)) + " " + nested.TypeName(v) + " ")
		switch v := v.(type) {
		case *nested.Tensor:
			_, strides, offset, _ := v.Strided()
			fmt.Fprintln(&b, v.DType(), v.Shape(), strides, offset, v.Err(), v.RequiresGrad)
		case *nested.Opaque:
			fmt.Fprintln(&b, v.Class, v.Reason, v.Args != nil && len(v.Args.Items) > 0)
		default:
			fmt.Fprintln(&b, nested.Repr(v))
		}
		return nil
	})
	return b.String() + fmt.Sprint(err)
}

func checkLaidOut(t *testing.T, tn *nested.Tensor) {
	t.Helper()
	if tn.Tensor == nil {
		t.Fatalf("a %s was not laid out", tn.Class)
	}
	if tn.Err() != nil || tn.Bytes() > 1<<20 {
		return
	}
	n, err := tn.WriteTo(io.Discard)
	if err != nil || n != tn.Bytes() {
		t.Errorf("%s %v gives %d bytes, want %d: %v", tn.DType(), tn.Shape(), n, tn.Bytes(), err)
	}
	for s := range tn.Storages() {
		_, _, inner := s.Extent() // of a checkpoint in a byte string; ours are memory alone
		if s.Size() != 4*64 && !strings.HasPrefix(s.Name(), "array") && s.Name() != "memory" && !inner {
			t.Errorf("a tensor over the storage %s of %d bytes", s.Name(), s.Size())
		}
	}
}

// addPickles seeds with the pickles of the fixtures, with those of Python, and
// with one of everything that the tests assemble.
func addPickles(f *testing.F) {
	f.Helper()
	for _, p := range pythonPickles(f) {
		b, err := base64.StdEncoding.DecodeString(p.Pickles[2])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	files, err := filepath.Glob("../pytorch-tests/*/*-torch2.15.pt")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range files {
		if r, err := zip.OpenReader(name); err == nil { // some are of other kinds
			addRecords(f, r)
		}
	}
	view := persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 64, tup{"1", 8, 8}}}
	odd := func(n int) any { return reduce{cls("torch._utils _rebuild_tensor_v2"), tup{n, n, n, n, n, n}} }
	for _, v := range []any{
		lst{odd(1000), odd(2000)}, whole, tensorV2(view, 1, tup{7}, tup{1}), lst{storage(64), storage(8)}, reduce{cls("torch._utils _rebuild_qtensor"), tup{view, 0, tup{2}, tup{1}, tup{cls("torch per_tensor_affine"), 0.5, 1}, false, nil}},
		module("Linear", dct{"weight", whole}, nil, nil, nil), reduce{cls("datetime datetime"), tup{[]byte("\x07\xe8\x02\x1d\x01\x02\x03\x00\x00\x04")}},
	} {
		f.Add(assemble(v))
	}
}

func addRecords(f *testing.F, r *zip.ReadCloser) {
	f.Helper()
	defer r.Close()
	for _, entry := range r.File {
		if !strings.HasSuffix(entry.Name, "/data.pkl") {
			continue
		}
		in, err := entry.Open()
		if err != nil {
			continue // of a broken one
		}
		data, err := io.ReadAll(in)
		if err == nil { // some are broken on purpose
			f.Add(data)
		}
	}
}
