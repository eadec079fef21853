package record_test

import (
	"bytes"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/record/meta"
)

// told checks what a record says of itself.
func told(t *testing.T, c *checkpoint.Checkpoint, want checkpoint.RecordHeader) {
	t.Helper()
	want.Version = meta.Version
	if got, ok := meta.Told(c.Info); !ok || got != want {
		t.Errorf("the record says %+v (%v), want %+v", got, ok, want)
	}
}

// A conversion that asks for no record gets one from a format that has nothing
// else, and it says who wrote it.
func TestHeaderWithoutRequest(t *testing.T) {
	for _, target := range record.Targets() {
		out, err := target.Plan(small(), checkpoint.TargetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := checkpoint.WriteStream(t.Context(), &file, out.Files[0].Layout); err != nil {
			t.Fatal(err)
		}
		c, err := open(t.Context(), unpack(t, file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		told(t, c, checkpoint.RecordHeader{Writer: "wick"})
	}
}

// The formats' names and endings are what the command line takes.
func TestNames(t *testing.T) {
	want := map[string]string{"cbor": ".cbor", "cbor.gz": ".cbor.gz", "cbor.zst": ".cbor.zst", "json": ".json"}
	for _, target := range record.Targets() {
		if got := target.Extensions(); len(got) != 1 || got[0] != want[target.Name()] {
			t.Errorf("%s: %v", target.Name(), got)
		}
		if _, err := target.Plan(small(), checkpoint.TargetOptions{ShardBytes: 1}); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s in shards: %v", target.Name(), err)
		}
		if _, err := target.Plan(small(), checkpoint.TargetOptions{Align: 64}); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s aligned: %v", target.Name(), err)
		}
	}
}
