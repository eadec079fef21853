package record_test

import (
	"runtime"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/record"
)

// fuzz opens a file and reads its tensors. Nothing may panic, every refusal is
// a fault, memory stays in proportion to the file, and what opens can be
// written and opened again as the same tree.
func fuzz(f *testing.F, target checkpoint.Target) {
	f.Add(save(f, target, everything(), checkpoint.RecordHeader{Type: "T"}))
	f.Add(save(f, target, small(), checkpoint.RecordHeader{}))
	f.Fuzz(func(t *testing.T, file []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := open(t.Context(), file)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+uint64(len(file))*2000 {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(file))
		}
		if err != nil {
			if fault.KindOf(err) == "" {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		if err := readAll(c); err != nil {
			return // a wrong checksum
		}
		again(t, target, file)
	})
}

func again(t *testing.T, target checkpoint.Target, file []byte) {
	t.Helper()
	c, err := open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := target.Plan(c.Root, checkpoint.TargetOptions{})
	if err != nil || out.Report.Bytes > 1<<20 {
		return
	}
	second, err := open(t.Context(), save(t, target, c.Root, checkpoint.RecordHeader{}))
	if err != nil {
		t.Fatalf("written again it does not open: %v", err)
	}
	if a, b := describe(t, c.Root), describe(t, second.Root); a != b {
		t.Fatalf("was\n%s\nand is\n%s", a, b)
	}
}

// FuzzCBOR is fuzz for CBOR. Seen to catch: fits without its comparison of a
// claimed length with the bytes that are left.
func FuzzCBOR(f *testing.F) {
	f.Add([]byte(cborTag + "\xa1\x61a\xd8\x28\x82\x81\x02\xd8\x51\x48abcdefgh"))
	fuzz(f, record.CBORTarget{})
}

// FuzzJSON is fuzz for JSON. Seen to catch: a writer of floats with six digits.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"wick":{"version":1},"root":[0.1,1.0000000000000002,5e-324,-0.0,123456789.125]}`))
	f.Add([]byte(`{"wick":{"version":1},"root":{"a":[1,2.5,{"$dict":[[1,2]]}]}}`))
	fuzz(f, record.JSONTarget{})
}
