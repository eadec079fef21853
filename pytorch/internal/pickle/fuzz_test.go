package pickle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// seeds adds the pickles that Python wrote, and hostile ones.
func seeds(f *testing.F) {
	f.Helper()
	data, err := os.ReadFile("../../testdata/pickles.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []struct{ Pickles []string }
	if err := json.Unmarshal(data, &all); err != nil {
		f.Fatal(err)
	}
	for _, p := range all {
		for _, text := range p.Pickles {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	for _, s := range []string{
		"", "\x80\x02\xff", "(((((.", "]q\x00h\x00a.", "\x95\xff\xff\xff\xff\xff\xff\xff\x7f.", "\x8b\xff\xff\xff\x7f.",
		")q\x00h\x00\x86q\x00h\x00\x86.", "r\xff\xff\xff\xffN.", "cos\nsystem\nU\x02id\x85R.", "ca\nB\n)\x81}(U\x01aK\x01ub.", "L99999999999999999999L\n.",
		"}(K\x01NU\x01aNNN)Nu.", "\x8f(K\x01\x90.", "P('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 2)\n.",
	} {
		f.Add([]byte(s))
	}
}

// FuzzMachine holds the machine to its promises: it never panics; its memory
// is bounded by the input; an error is a fault with a place; and a reader that
// gives single bytes, for which nothing is quick, leads to the same tree and the
// same error as memory does, and so does a memo without what nobody reads.
// It has caught a FRAME beyond the end that only memory refused, a cursor
// that was made to forget a byte when it refills, and a skim that was made to
// overlook LONG_BINGET.
func FuzzMachine(f *testing.F) {
	seeds(f)
	limits := checkpoint.Limits{ExpandFloor: 64 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := Load(NewCursor(data), &plainHost{}, limits, int64(len(data)), nil)
		runtime.ReadMemStats(&after)
		if n := int64(after.TotalAlloc - before.TotalAlloc); n > 128<<20+int64(len(data))*1024 {
			t.Errorf("%d bytes were allocated for %d", n, len(data))
		}
		slow, slowErr := Load(NewStream(iotest.OneByteReader(bytes.NewReader(data))), &plainHost{}, limits, int64(len(data)), nil)
		skimmed, skimErr := Load(NewCursor(data), &plainHost{}, limits, int64(len(data)), Skim(NewCursor(data), limits))
		if (err == nil) != (skimErr == nil) || err != nil && err.Error() != skimErr.Error() {
			t.Errorf("%v, with a skimmed memo %v", err, skimErr)
		}
		if err == nil {
			checkSame(t, v, slow, slowErr)
			checkSame(t, v, skimmed, skimErr)
			return
		}
		var e *fault.Error
		if !errors.As(err, &e) || !e.HasOffset || e.Offset < 0 || e.Offset > int64(len(data)) || len(err.Error()) > 2000 {
			t.Errorf("an error without its place: %v", err)
		}
		if slowErr == nil {
			t.Errorf("memory gives %v, a reader nothing", err)
		}
	})
}

func checkSame(t *testing.T, v, slow nested.Value, slowErr error) {
	t.Helper()
	if slowErr != nil || nested.Repr(v) != nested.Repr(slow) {
		t.Errorf("memory gives %v, a reader %v, %v", nested.Repr(v), slow, slowErr)
	}
}

// FuzzScanner holds the scanner to the machine: what the machine carries out
// the scanner lists, opcode after opcode without a gap, up to the same end.
// It has caught a scanner that was made to skip FRAME's length in its sizes.
func FuzzScanner(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := NewCursor(data)
		s := NewScanner(c, checkpoint.Limits{})
		var op Op
		next := int64(0)
		var scanErr error
		for {
			ok, err := s.Next(&op)
			if !ok {
				scanErr = err
				break
			}
			if op.Offset != next || op.Size < 1 {
				t.Fatalf("an opcode of %d bytes at %d, want one at %d", op.Size, op.Offset, next)
			}
			next += op.Size
		}
		if next > int64(len(data)) || s.Count() > int64(len(data))+1 {
			t.Errorf("%d opcodes up to %d in %d bytes", s.Count(), next, len(data))
		}
		m := NewCursor(data)
		if _, err := Load(m, &plainHost{}, checkpoint.Limits{}, int64(len(data)), nil); err == nil && (scanErr != nil || m.Offset() != next) {
			t.Errorf("the machine ends at %d, the scanner at %d with %v", m.Offset(), next, scanErr)
		}
	})
}
