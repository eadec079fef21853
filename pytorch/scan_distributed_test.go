package pytorch

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

const distributedFixtures = "../pytorch-tests/distributed/"

const evilPickle = "\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."

func readPart(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(distributedFixtures, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func scanPart(t *testing.T, data []byte) (*ScanReport, error) {
	t.Helper()
	return Scan(t.Context(), checkpoint.NewBytes("__0_0.distcp", data))
}

// Every archive of every file of torch.distributed.checkpoint is scanned, with
// its folder and without.
func TestScanDistributedParts(t *testing.T) {
	files, err := filepath.Glob(distributedFixtures + "*/*.distcp")
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		report, err := scanPart(t, data)
		want := bytes.Count(data, []byte("PK\x05\x06"))
		if err != nil || report.Found() || report.Pickles != want || report.Format != "zip" {
			t.Errorf("%s: %v, found %v, %d pickles of %d", name, err, report.Found(), report.Pickles, want)
		}
		pickles := map[int]bool{}
		err = Disassemble(t.Context(), checkpoint.NewBytes("__0_0.distcp", data), func(in *Instruction) error {
			pickles[in.Pickle] = true
			return nil
		})
		if err != nil || len(pickles) != want {
			t.Errorf("%s: %v, %d pickles disassembled of %d", name, err, len(pickles), want)
		}
	}
}

// wholeDirectory rewrites the last archive of several so that it counts its
// offsets from the beginning of the file, and so hides those before it.
func wholeDirectory(t *testing.T, data []byte) []byte {
	t.Helper()
	chain, err := archiveChain(checkpoint.NewBytes("x", data), checkpoint.Limits{}.Default())
	if err != nil || len(chain) < 2 {
		t.Fatal(len(chain), err)
	}
	b, start := bytes.Clone(data), uint64(chain[0].from)
	add := func(at int, wide bool) {
		if wide {
			binary.LittleEndian.PutUint64(b[at:], binary.LittleEndian.Uint64(b[at:])+start)
		} else {
			binary.LittleEndian.PutUint32(b[at:], binary.LittleEndian.Uint32(b[at:])+uint32(start))
		}
	}
	end := len(b) - lenEnd
	locator, end64 := end-lenEnd64Locator, end-lenEnd64Locator-lenEnd64
	directory := int(start + binary.LittleEndian.Uint64(b[end64+48:]))
	add(locator+8, true)
	add(end64+48, true)
	if binary.LittleEndian.Uint32(b[end+16:]) != max32 {
		add(end+16, false)
	}
	for at := directory; at < end64; {
		next := bytes.Index(b[at:end64], []byte("PK\x01\x02"))
		if next < 0 {
			break
		}
		add(at+next+42, false)
		at += next + 4
	}
	return b
}

func TestScanDistributedHides(t *testing.T) {
	whole := readPart(t, "single-torch2.15/__0_0.distcp")
	odd := bytes.ReplaceAll(whole, []byte("argparse\nNamespace"), []byte("argparsX\nNamespace"))
	if bytes.Equal(odd, whole) {
		t.Fatal("the fixture has no Namespace")
	}
	chain, err := archiveChain(checkpoint.NewBytes("x", whole), checkpoint.Limits{}.Default())
	if err != nil {
		t.Fatal(err)
	}
	second := chain[len(chain)-2].from
	for name, c := range map[string]struct {
		data  []byte
		kind  fault.Kind
		found bool
	}{
		"an unknown class in some archive": {odd, "", true},
		"a pickle between two":             {bytes.Join([][]byte{whole[:second], []byte(evilPickle), whole[second:]}, nil), fault.Malformed, false},
		"a pickle in front":                {append([]byte(evilPickle), odd...), "", true},
		"a pickle behind":                  {append(bytes.Clone(odd), evilPickle...), fault.Malformed, true},
		"a directory over all":             {wholeDirectory(t, odd), fault.Malformed, true},
		"cut":                              {odd[:len(odd)-1], fault.Malformed, true},
		"a record between":                 {bytes.Join([][]byte{whole[:second], odd[:second-lenEnd], whole[second:]}, nil), fault.Malformed, false},
	} {
		report, err := scanPart(t, c.data)
		if fault.KindOf(err) != c.kind || report.Found() != c.found {
			t.Errorf("%s: %v, found %v: %v", name, err, report.Found(), report.Globals)
		}
	}
}

// What .metadata points at is what a loader reads, also where the file's own
// directories show something else.
func TestScanDistributedRanges(t *testing.T) {
	meta := readPart(t, "single-torch2.15/.metadata")
	whole := readPart(t, "single-torch2.15/__0_0.distcp")
	scanMeta := func(part []byte) (*ScanReport, error) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{".metadata": meta, "__0_0.distcp": part} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		src, err := checkpoint.OpenFile(filepath.Join(dir, ".metadata"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = src.Close() }() // only read from
		return Scan(t.Context(), src)
	}
	if report, err := scanMeta(whole); fault.KindOf(err) != fault.Unsupported || report.Found() || report.Pickles != 1 {
		t.Errorf("sound: %v, %v", err, report)
	}
	hidden := wholeDirectory(t, bytes.ReplaceAll(whole, []byte("argparse\nNamespace"), []byte("argparsX\nNamespace")))
	report, err := scanMeta(hidden)
	named := false
	for _, g := range report.Globals {
		named = named || g.Module == "argparsX" && strings.HasPrefix(g.Record, "__0_0.distcp › range at 0x")
	}
	if fault.KindOf(err) != fault.Malformed || !named {
		t.Errorf("hidden: %v, %v", err, report.Globals)
	}
	if _, err := scanMeta(whole[:len(whole)/2]); fault.KindOf(err) != fault.Malformed {
		t.Errorf("cut: %v", err)
	}
}
