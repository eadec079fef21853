package pytorch

import (
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// loadsInner is a pickle of a list that calls _load_from_bytes on the same bytes
// again and again.
func loadsInner(data string, times int) string {
	call := "h\x00h\x01\x85R"
	return "\x80\x03ctorch.storage\n_load_from_bytes\nq\x00" + strings.TrimSuffix(inBytes(data)[2:], ".") + "q\x0100](" + strings.Repeat(call, times) + "e."
}

// Bytes that stand in a pickle once are opened once, whatever calls ask for.
func TestInnerCheckpointsAreBounded(t *testing.T) {
	file := string(soundLegacy().bytes())
	data := loadsInner(file, 10_000)
	l := newLoader(1)
	l.present = int64(len(data))
	root, err := l.load(pickle.NewCursor([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	opened, left := 0, 0
	for _, v := range root.(*nested.List).Items {
		switch v.(type) {
		case *nested.Map:
			opened++
		case *nested.Opaque:
			left++
		}
	}
	if most := max(innerShare*len(data), minInner) / max(len(file), leastInner); opened == 0 || opened > most || opened+left != 10_000 {
		t.Errorf("%d opened, %d left, at most %d", opened, left, most)
	}
}

// A damaged checkpoint in a byte string costs nothing but itself.
func TestDamagedInnerCheckpoint(t *testing.T) {
	file := string(soundLegacy().bytes())
	for n := range len(file) {
		data := loadsInner(file[:n], 1)
		l := newLoader(1)
		root, err := l.load(pickle.NewCursor([]byte(data)))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if _, ok := root.(*nested.List).Items[0].(*nested.Opaque); !ok {
			t.Errorf("cut at %d it opens", n)
		}
	}
}

// Checkpoints inside of checkpoints open as far as their bytes are worth; what is
// deeper is an opaque object.
func TestInnerCheckpointsNest(t *testing.T) {
	data := string(soundLegacy().bytes())
	for range 500 {
		f := soundLegacy()
		f.object, f.keys, f.storages = loadsInner(data, 1), pickleOf(pickleList()), ""
		data = string(f.bytes())
	}
	c, err := OpenBytes(t.Context(), "test", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	levels := 0
	for v := c.Root; ; levels++ {
		list, ok := v.(*nested.List)
		if !ok {
			if _, ok := v.(*nested.Opaque); !ok {
				t.Errorf("a %s at the end", nested.TypeName(v))
			}
			break
		}
		v = list.Items[0]
	}
	if levels < 4 || levels > 100 {
		t.Errorf("%d levels of %d bytes", levels, len(data))
	}
}
