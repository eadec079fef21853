package pytorch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// drip is a stream that gives few bytes a call, and none from hold on before it
// is let go.
type drip struct {
	b    []byte
	at   int
	hold int
	t    *testing.T
}

func (d *drip) Read(p []byte) (int, error) {
	if d.at == len(d.b) {
		return 0, io.EOF
	}
	end := min(d.at+4096, len(d.b))
	if d.hold >= 0 && d.at < d.hold {
		end = min(end, d.hold)
	}
	if d.hold >= 0 && d.at >= d.hold {
		d.t.Fatal("a tensor's byte was asked for before the plan was there")
	}
	n := copy(p, d.b[d.at:end])
	d.at += n
	return n, nil
}

// sums moves all tensors of a checkpoint and returns the SHA-256 of each.
func sums(t *testing.T, c *checkpoint.Checkpoint, opts ...tensor.RunOption) ([]string, tensor.Stats, error) {
	t.Helper()
	var moves []tensor.Move
	hash := map[int]*bytes.Buffer{}
	for _, x := range c.Tensors() {
		if x.Err() == nil {
			hash[len(moves)] = &bytes.Buffer{}
			moves = append(moves, tensor.Move{From: x.Tensor, To: tensor.Stream(hash[len(moves)])})
		}
	}
	stats, err := tensor.Run(context.Background(), moves, opts...)
	var list []string
	for i := range moves {
		sum := sha256.Sum256(hash[i].Bytes())
		list = append(list, string(sum[:]))
	}
	return list, stats, err
}

// fixtures are files of real torch that lie in the tree.
func streamFixtures(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("../pytorch-tests", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(name, ".pt") || strings.HasSuffix(name, ".pth")) {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%d fixtures: %v", len(names), err)
	}
	return names
}

// firstByte is where the first tensor's bytes begin in a file that lies in order.
func firstByte(c *checkpoint.Checkpoint) int {
	first := int64(-1)
	for _, s := range c.Info.Storages {
		if _, at, ok := s.Extent(); ok && s.Size() > 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return int(first)
}

// TestStreamEqualsFile reads every fixture as a file and as a stream that gives
// 4 KiB a call and none of the tensors before the tree was returned.
func TestStreamEqualsFile(t *testing.T) {
	inOrder := 0
	for _, name := range streamFixtures(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := OpenBytes(context.Background(), name, b)
		if err != nil {
			continue // what is no checkpoint is tested where its error is
		}
		in := &drip{b: b, hold: -1, t: t}
		isScript := bytes.Contains(b[:min(len(b), 512)], []byte(scriptStart)) // constants behind the pickle
		if z := (zipFormat{}); z.Sniff(b, nil) && isMainPickle(string(b[30:30+int(le16(b, 26))])) && !isScript {
			in.hold = firstByte(file)
			inOrder++
		}
		d, err := NewDecoder(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in.hold = -1
		compareStream(t, name, file, d)
	}
	if inOrder < 20 {
		t.Errorf("only %d files were read in order", inOrder)
	}
}

func compareStream(t *testing.T, name string, file *checkpoint.Checkpoint, d *Decoder) {
	t.Helper()
	c := d.Checkpoint()
	if got, want := strings.Join(c.Names(), "\n"), strings.Join(file.Names(), "\n"); got != want {
		t.Errorf("%s: names\n%s\nwant\n%s", name, got, want)
	}
	want, wantStats, wantErr := sums(t, file)
	got, stats, err := sums(t, c)
	if fault.KindOf(err) == fault.Malformed && anyFault(file) {
		return // a file has rows without bytes; a stream that lacks a record is no whole one
	}
	if fault.KindOf(err) != fault.KindOf(wantErr) {
		t.Errorf("%s: %v, want %v", name, err, wantErr)
	}
	if err != nil {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: %s: other bytes", name, c.Names()[i])
		}
		if wantStats.Checks[i] == tensor.Verified && stats.Checks[i] != tensor.Verified {
			t.Errorf("%s: %s: %v", name, c.Names()[i], stats.Checks[i])
		}
	}
	if err := errors.Join(d.Close(), file.Close()); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func anyFault(c *checkpoint.Checkpoint) bool {
	for _, x := range c.Tensors() {
		if fault.KindOf(x.Err()) == fault.Malformed {
			return true
		}
	}
	return false
}

// streamCase returns a file in order of a real torch.
func streamCase(t *testing.T) []byte {
	t.Helper()
	for _, name := range streamFixtures(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !hasPrefix(b, "PK\x03\x04") || !isMainPickle(string(b[30:30+int(le16(b, 26))])) {
			continue
		}
		if c, err := OpenBytes(context.Background(), name, b); err == nil && c.Len() > 2 && firstByte(c) > 0 && len(b) < 6000 {
			return b
		}
	}
	t.Fatal("no file")
	return nil
}

func runStream(t *testing.T, b []byte) error {
	t.Helper()
	d, err := NewDecoder(bytes.NewReader(b))
	if err != nil {
		return err
	}
	_, _, err = sums(t, d.Checkpoint())
	return err
}

// TestStreamEndings cuts a stream everywhere and changes its directory: it never
// ends well.
func TestStreamEndings(t *testing.T) {
	b := streamCase(t)
	if err := runStream(t, b); err != nil {
		t.Fatal(err)
	}
	step := max(len(b)/400, 1)
	for n := 0; n < len(b); n += step {
		if err := runStream(t, b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a whole", n, len(b))
		}
	}
	c, err := OpenBytes(context.Background(), "", b)
	if err != nil {
		t.Fatal(err)
	}
	directory := bytes.Index(b, []byte("PK\x01\x02"))
	for at := directory; at < len(b); at++ {
		bad := bytes.Clone(b)
		bad[at] ^= 0x40
		err := runStream(t, bad)
		if _, fileErr := OpenBytes(context.Background(), "", bad); fileErr != nil && err == nil {
			t.Errorf("byte %d of the directory: %v to a file and nothing to a stream", at-directory, fileErr)
		}
	}
	bad := bytes.Clone(b)
	bad[firstByte(c)] ^= 1
	if err := runStream(t, bad); !errors.Is(err, fault.ErrChecksum) {
		t.Errorf("a changed byte of a tensor: %v", err)
	}
	bad = bytes.Clone(b)
	copy(bad[bytes.LastIndex(b, []byte("PK\x01\x02")):], "PK\x01\x03")
	if err := runStream(t, bad); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a broken directory: %v", err)
	}
}

// TestStreamOnce holds that the bytes of a stream can be had once.
func TestStreamOnce(t *testing.T) {
	d, err := NewDecoder(bytes.NewReader(streamCase(t)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(context.Background(), nil); err != nil {
		t.Errorf("nothing wanted: %v", err)
	}
	if _, _, err := sums(t, d.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sums(t, d.Checkpoint()); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a second run: %v", err)
	}
}

// TestStreamInGzip reads a stream that is compressed as a whole.
func TestStreamInGzip(t *testing.T) {
	b := streamCase(t)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := NewDecoder(&drip{b: z.Bytes(), hold: -1, t: t})
	if err != nil {
		t.Fatal(err)
	}
	file, err := OpenBytes(context.Background(), "", b)
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Checkpoint(); c.Info.Format != "gzip" {
		t.Errorf("format %s", c.Info.Format)
	}
	compareStream(t, "gzip", file, d)
	if err := runStream(t, z.Bytes()[:z.Len()-4]); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("without the end of the gzip: %v", err)
	}
}

// TestSpool reads what has its bytes in another order.
func TestSpool(t *testing.T) {
	b := append(bytes.Repeat([]byte("x"), 3<<20), 0)
	dir := t.TempDir()
	_, err := NewDecoder(bytes.NewReader(b), SpoolMemory(1<<20))
	if !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more than the memory: %v", err)
	}
	_, err = NewDecoder(bytes.NewReader(b), SpoolMemory(1<<20), Spool(dir))
	if !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("no checkpoint: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
