package embedded_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/embedded"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/serde/serdetest"
	"github.com/wick-ml/wick/tensor"
)

// net has fields of all sorts; only the first two can be aliases.
type net struct {
	FC     nn.Linear[float32]
	Halfs  []tensor.Float16
	Wide   []float64           `torch:"halfs"`
	Back   tensor.Array[int32] `torch:"ids | transpose"`
	Flags  []bool
	Own    []float32 `torch:"fc.bias, mutable"`
	Epoch  int
	Labels []string
}

func array[T tensor.Element](shape []int, data ...T) tensor.Array[T] {
	return tensor.Array[T]{Shape: shape, Data: data}
}

// source is what the records of the tests are made of.
type source struct {
	FC     nn.Linear[float32]
	Halfs  []tensor.Float16
	IDs    tensor.Array[int32] `torch:"ids"`
	Flags  []bool
	Epoch  int
	Labels []string
}

func record(t testing.TB, h checkpoint.RecordHeader) []byte {
	t.Helper()
	root, err := serde.Marshal(&source{
		FC:    nn.Linear[float32]{Weight: array([]int{2, 2}, float32(1), 2, 3, 4), Bias: array([]int{2}, float32(5), 6)},
		Halfs: []tensor.Float16{0x3c00, 0x4000}, IDs: array([]int{1, 2}, int32(7), 8), Flags: []bool{true, false},
		Epoch: 3, Labels: []string{"a", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := safetensors.Target{}.Plan(root, checkpoint.TargetOptions{Record: &h, Align: 64})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := checkpoint.WriteStream(t.Context(), &b, out.Files[0].Layout); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// at returns a copy of b whose first byte lies so many bytes behind a multiple of
// 64 in memory.
func at(b []byte, behind int) []byte {
	room := make([]byte, len(b)+128)
	first := 0
	for ; first < 64; first++ {
		if _, err := tensor.View[complex128](over(room[first : first+16])); err == nil {
			break
		}
	}
	out := room[first+behind : first+behind+len(b)]
	copy(out, b)
	return out
}

// over is one complex number in the memory of b.
func over(b []byte) *tensor.Tensor {
	t, err := tensor.New(tensor.Spec{Storage: tensor.NewStorage(tensor.StorageSpec{Size: 16, Memory: b, Order: tensor.NativeOrder()}), DType: tensor.C128})
	if err != nil {
		panic(err)
	}
	return t
}

// viewable reports whether this build sees memory as other types.
func viewable() bool {
	_, err := tensor.View[float32](tensor.Of([]float32{1}))
	return err == nil && tensor.NativeOrder() == tensor.LittleEndian
}

func check(t *testing.T, v *net) {
	t.Helper()
	want := "[1 2 3 4] [5 6] [15360 16384] [1 2] [7 8] [2 1] [true false] [5 6] 3 [a b]"
	if got := fmt.Sprint(v.FC.Weight.Data, v.FC.Bias.Data, v.Halfs, v.Wide, v.Back.Data, v.Back.Shape, v.Flags, v.Own, v.Epoch, v.Labels); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLoadInPlace(t *testing.T) {
	b := at(record(t, checkpoint.RecordHeader{}), 0)
	before := slices.Clone(b)
	var v net
	report, err := embedded.Load(t.Context(), b, &v)
	if err != nil {
		t.Fatal(err)
	}
	check(t, &v)
	if !viewable() {
		t.Skip("this build copies instead of viewing")
	}
	notes := map[string]string{}
	for _, row := range report.Plan.Applied {
		notes[row.Field] = row.Note
	}
	for field, why := range map[string]string{
		"FC.Weight": "", "FC.Bias": "", "Halfs": "", "Wide": "not float64", "Back": "", "Flags": "bool", "Own": "mutable",
	} {
		if got := notes[field]; why == "" && got != "" || !strings.Contains(got, why) {
			t.Errorf("%s: note %q, want %q", field, got, why)
		}
	}
	if report.Aliased != 16+8+4+8 || report.Copied != 16+2+8 || report.Checks.Verified != 5 {
		t.Errorf("aliased %d, copied %d, %+v", report.Aliased, report.Copied, report.Checks)
	}
	v.Own[0] = 9
	if !bytes.Equal(b, before) {
		t.Error("a mutable field is the record's own memory")
	}
	v.FC.Bias.Data[0] = 9
	if bytes.Equal(b, before) {
		t.Error("FC.Bias is a copy")
	}
}

// A record that is not aligned costs one copy of what needs alignment, and the
// report says so.
func TestMisalignedRecordIsCopiedOnce(t *testing.T) {
	if !viewable() {
		t.Skip("this build copies instead of viewing")
	}
	for behind, aliased := range map[int]int64{1: 0, 2: 4, 4: 36} { // halfs need 2, the others 4
		var v net
		report, err := embedded.Load(t.Context(), at(record(t, checkpoint.RecordHeader{}), behind), &v)
		if err != nil {
			t.Fatal(err)
		}
		check(t, &v)
		if report.Aliased != aliased || report.Aliased+report.Copied != 36+26 || report.Allocated != report.Copied {
			t.Errorf("%d bytes off: %d aliased, %d copied, %d allocated\n%s", behind, report.Aliased, report.Copied, report.Allocated, report.Plan)
		}
		if behind == 1 && !strings.Contains(report.Plan.String(), "copied: its memory is not aligned") {
			t.Errorf("the report does not say why:\n%s", report.Plan)
		}
	}
}

func TestLoadString(t *testing.T) {
	var v net
	if _, err := embedded.LoadString(t.Context(), string(record(t, checkpoint.RecordHeader{})), &v); err != nil {
		t.Fatal(err)
	}
	check(t, &v)
}

// Every byte counts: one that is cut off or changed is an error, and the value
// stays as it was.
func TestDamagedRecords(t *testing.T) {
	b := at(record(t, checkpoint.RecordHeader{Type: "embedded_test.net", Writer: "w"}), 0)
	for n := range b {
		v := net{Epoch: 77}
		if _, err := embedded.Load(t.Context(), b[:n], &v); !errors.Is(err, fault.ErrMalformed) || v.Epoch != 77 {
			t.Fatalf("%d of %d bytes: %v, %+v", n, len(b), err, v)
		}
	}
	for i := range b {
		b[i] ^= 1
		v := net{Epoch: 77}
		if _, err := embedded.Load(t.Context(), b, &v); err == nil || v.Epoch != 77 || v.FC.Weight.Data != nil {
			t.Fatalf("byte %d of %d changed: %v, %+v", i, len(b), err, v)
		}
		b[i] ^= 1
	}
}

type other struct{}

func (other) RecordHeader() checkpoint.RecordHeader {
	return checkpoint.RecordHeader{Type: "embedded_test.net", Precision: "full"}
}

func TestMismatches(t *testing.T) {
	names := func(v any, h checkpoint.RecordHeader, sides ...string) {
		t.Helper()
		_, err := embedded.Load(t.Context(), record(t, h), v)
		if !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%v, want a mismatch", err)
			return
		}
		for _, side := range append(sides, "embedded record") {
			if !strings.Contains(err.Error(), side) {
				t.Errorf("%q does not name %q", err, side)
			}
		}
	}
	names(&net{}, checkpoint.RecordHeader{Type: "p.Q"}, "p.Q", "embedded_test.net")
	names(&other{}, checkpoint.RecordHeader{Type: "embedded_test.net", Precision: "half"}, "half precision", "full precision")
	names(&struct{ X []float32 }{}, checkpoint.RecordHeader{}, "missing (x)", "unexpected (")
}

// allocated is the least of several [serdetest.Allocated]: the runtime's own
// goroutines allocate too, and can only add.
func allocated(f func()) int64 {
	f() // what is made once
	n := serdetest.Allocated(f)
	for range 4 {
		n = min(n, serdetest.Allocated(f))
	}
	return n
}

// What is wrong with a record costs no memory in proportion to what it claims, and
// none for tensors: neither a wrong version, a length that lies, nor another type.
func TestErrorsAllocateLittle(t *testing.T) {
	const claim, size = 758_360_262, 4096
	pad := func(text string) []byte {
		return append([]byte(text), bytes.Repeat([]byte{' '}, size-len(text))...)
	}
	head := func(text string) string { // a header of the file's whole length
		return string(binary.LittleEndian.AppendUint64(nil, size-8)) + text
	}
	big := record(t, checkpoint.RecordHeader{Type: "p.Q"})
	cases := map[string]struct {
		b    []byte
		want error
		says []string
	}{
		"a length":        {pad(string(binary.LittleEndian.AppendUint64(nil, claim)) + "{}"), fault.ErrMalformed, nil},
		"a shape":         {pad(head(fmt.Sprintf(`{"fc.weight":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, claim, int64(claim)*4))), fault.ErrMalformed, nil},
		"another type":    {big, fault.ErrMismatch, []string{"p.Q", "embedded_test.net"}},
		"another length":  {big[:len(big)/2], fault.ErrMalformed, nil},
		"a later version": {later(big), fault.ErrUnsupported, []string{"version 9", fmt.Sprintf("version %d", meta.Version)}},
	}
	for name, c := range cases {
		n := allocated(func() {
			_, err := embedded.Load(context.Background(), c.b, &net{})
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want kind %v", name, err, c.want)
				return
			}
			for _, side := range append(c.says, "embedded record") {
				if !strings.Contains(err.Error(), side) {
					t.Errorf("%s: %q does not name %q", name, err, side)
				}
			}
		})
		if n > 3*size {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, n, len(c.b))
		}
	}
}

// later is the record under a version that is not there yet, with the checksum of
// the header that it would have.
func later(b []byte) []byte {
	b = bytes.Replace(b, fmt.Appendf(nil, `\"version\":%d`, meta.Version), []byte(`\"version\":9`), 1)
	const key, none = `"wick.header_crc32":"`, "00000000"
	at := bytes.Index(b, []byte(key)) + len(key)
	copy(b[at:], none)
	header := b[8 : 8+binary.LittleEndian.Uint64(b)]
	copy(b[at:], fmt.Sprintf("%08x", crc32.ChecksumIEEE(header)))
	return b
}

func Example() {
	b := exampleRecord() // in a program: //go:embed net.safetensors
	var layer nn.Linear[float32]
	report, err := embedded.Load(context.Background(), b, &layer, serde.Key("fc"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(layer.Weight.Shape, layer.Weight.Data, report.Aliased+report.Copied, "bytes")
	// Output: [2 2] [1 2 3 4] 24 bytes
}

// exampleRecord is what wick pack would have written.
func exampleRecord() []byte {
	root, err := serde.Marshal(&struct {
		FC nn.Linear[float32]
	}{nn.Linear[float32]{Weight: array([]int{2, 2}, float32(1), 2, 3, 4), Bias: array([]int{2}, float32(5), 6)}})
	if err != nil {
		panic(err)
	}
	out, err := safetensors.Target{}.Plan(root, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{}, Align: 64})
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if _, err := checkpoint.WriteStream(context.Background(), &b, out.Files[0].Layout); err != nil {
		panic(err)
	}
	return at(b.Bytes(), 0)
}
