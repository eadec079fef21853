package pytorch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// farReader is a reader whose reads are round trips. It counts what it serves.
type farReader struct {
	io.ReaderAt
	mu    sync.Mutex
	reads int
	bytes int64
	fails error // of every read, once set
}

func (f *farReader) Distant() bool { return true }

func (f *farReader) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return 0, f.fails
	}
	f.reads++
	n, err := f.ReaderAt.ReadAt(p, off)
	f.bytes += int64(n)
	return n, err
}

func openFarArchive(b []byte, limits checkpoint.Limits) (*archive, error) {
	a, err := readArchive(checkpoint.NewReaderAt("test.zip", &farReader{ReaderAt: bytes.NewReader(b)}, int64(len(b))), limits)
	if err != nil {
		return nil, err
	}
	return a, a.prove()
}

// TestFarFixturesAreTheSame opens every file that real torch wrote as if it were
// far away, and compares all that there is to see with the file opened nearby.
func TestFarFixturesAreTheSame(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../pytorch-tests", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !(zipFormat{}).Sniff(data, nil) {
			return err
		}
		files++
		near, nearErr := OpenBytes(t.Context(), path, data)
		far, farErr := OpenReaderAt(t.Context(), path, &farReader{ReaderAt: bytes.NewReader(data)}, int64(len(data)))
		if nearErr != nil || farErr != nil {
			if !sameError(nearErr, farErr) {
				t.Errorf("%s: near %v, far %v", path, nearErr, farErr)
			}
			return nil
		}
		sameCheckpoints(t, path, near, far)
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

func sameCheckpoints(t *testing.T, path string, near, far *checkpoint.Checkpoint) {
	t.Helper()
	if !reflect.DeepEqual(near.Names(), far.Names()) {
		t.Fatalf("%s: near %q, far %q", path, near.Names(), far.Names())
	}
	if !reflect.DeepEqual(near.Info.Records, far.Info.Records) {
		t.Errorf("%s: records near\n%v, far\n%v", path, near.Info.Records, far.Info.Records)
	}
	bytesOf := func(c *checkpoint.Checkpoint) (all []string) {
		for _, tn := range c.Tensors() {
			var b bytes.Buffer
			if _, err := tn.WriteTo(&b); err != nil {
				b.WriteString(err.Error())
			}
			all = append(all, b.String())
		}
		return all
	}
	if !reflect.DeepEqual(bytesOf(near), bytesOf(far)) {
		t.Errorf("%s: tensors differ", path)
	}
}

// farCheckpoint is a checkpoint of two storages with something changed.
func farCheckpoint(change func(files []zipRecord)) (*farReader, int64) {
	files := unpacked()
	records := []zipRecord{
		{name: "m/data.pkl", data: files["data.pkl"], flags: flagDescriptor, pad: 7},
		{name: "m/data/0", data: files["data/0"], flags: flagDescriptor, pad: 23},
		{name: "m/data/1", data: files["data/1"], flags: flagDescriptor, pad: 9},
	}
	if change != nil {
		change(records)
	}
	b := zipLayout{records: records}.bytes()
	return &farReader{ReaderAt: bytes.NewReader(b)}, int64(len(b))
}

// TestFarLieCostsItsStorage holds that a lying local header is found out before
// a byte of its record is handed out, in a run of all tensors and one by one.
func TestFarLieCostsItsStorage(t *testing.T) {
	r, size := farCheckpoint(func(records []zipRecord) {
		records[2].local = func(b []byte) { b[lenLocal]++ }
	})
	c, err := OpenReaderAt(t.Context(), "test", r, size)
	if err != nil {
		t.Fatal(err)
	}
	good, bad := 0, 0
	for name, tn := range c.Tensors() {
		buf := bytes.NewBuffer(nil)
		_, err := tn.WriteTo(buf)
		switch {
		case err == nil:
			good++
		case errors.Is(err, fault.ErrMalformed) && buf.Len() == 0:
			bad++
		default:
			t.Errorf("%s: %v after %d bytes", name, err, buf.Len())
		}
	}
	if good == 0 || bad == 0 {
		t.Fatalf("%d tensors can be read, %d cannot", good, bad)
	}
	var moves []tensor.Move
	for _, tn := range c.Tensors() {
		moves = append(moves, tensor.Move{From: tn.Tensor, To: tensor.Stream(new(bytes.Buffer))})
	}
	if _, err := tensor.Run(context.Background(), moves); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a run over all: %v", err)
	}
}

// TestFarReadsThatFailAreNoVerdict holds that a header which could not be read
// is read again.
func TestFarReadsThatFailAreNoVerdict(t *testing.T) {
	r, size := farCheckpoint(nil)
	c, err := OpenReaderAt(t.Context(), "test", r, size)
	if err != nil {
		t.Fatal(err)
	}
	r.fails = errors.New("the line is dead")
	for name, tn := range c.Tensors() {
		if _, err := tn.WriteTo(io.Discard); !errors.Is(err, fault.ErrIO) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.fails = nil
	for name, tn := range c.Tensors() {
		if _, err := tn.WriteTo(io.Discard); err != nil {
			t.Errorf("%s, when the line is back: %v", name, err)
		}
	}
}

// TestFarOpeningReadsNoHeader holds that a thousand storages do not mean a
// thousand reads.
func TestFarOpeningReadsNoHeader(t *testing.T) {
	var records []zipRecord
	files := unpacked()
	for name, data := range files {
		records = append(records, zipRecord{name: "m/" + name, data: data})
	}
	opened := func() int {
		b := zipLayout{records: records}.bytes()
		r := &farReader{ReaderAt: bytes.NewReader(b)}
		if _, err := OpenReaderAt(t.Context(), "test", r, int64(len(b))); err != nil {
			t.Fatal(err)
		}
		return r.reads
	}
	few := opened()
	for i := range 1000 {
		records = append(records, zipRecord{name: "m/data/more" + string(rune('a'+i%26)) + string(rune('a'+i/26)), data: "0123456789"})
	}
	if many := opened(); many > few+5 { // the directory is longer
		t.Errorf("%d reads, and %d with a thousand records more", few, many)
	}
}

// TestExpectedPlaces holds that the places which the directory lets expect are
// those where torch put the data.
func TestExpectedPlaces(t *testing.T) {
	storages := 0
	files, err := filepath.Glob("../pytorch-tests/state-dict/*.pt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := checkpoint.OpenFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a, err := readArchive(src, defaults)
		if err != nil {
			src.Close()
			continue // a legacy file
		}
		if err := a.prove(); err != nil {
			t.Fatal(err)
		}
		for k, i := range a.byPlace {
			if got, want := a.expected(k), a.entries[i].data; got != want {
				t.Errorf("%s: %s is expected at %d and lies at %d", file, a.entries[i].name, got, want)
			}
			storages++
		}
		src.Close()
	}
	if storages < 20 {
		t.Errorf("%d records were looked at", storages)
	}
}
