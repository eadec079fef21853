package attacks

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/serde"
	tensors "github.com/wick-ml/wick/tensor"
)

// TestRuleFiles converts a sound checkpoint by every hostile rule file, and plans
// with it: both end in time and memory, with a code that fits and one line.
func TestRuleFiles(t *testing.T) {
	dir := t.TempDir()
	sound := single("sound", Any, func() []byte {
		return Checkpoint("\x80\x02}(" + text("w") + tensor(storage("0", 16), 0, []int64{16}, []int64{1}) + text("a.b") + tensor(storage("0", 16), 0, []int64{4, 4}, []int64{4, 1}) + "u.")
	})
	for i, r := range RuleFiles() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			rules := filepath.Join(dir, strconv.Itoa(i)+".rules")
			if err := os.WriteFile(rules, []byte(r.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			file := write(t, filepath.Join(dir, strconv.Itoa(i)), sound)
			for _, got := range runAll(t, file, dir, []command{line("convert --rules " + rules + " IN OUT.safetensors"), line("plan --rules " + rules + " IN")}) {
				check(t, Case{Name: r.Name, Exits: []int{0, 1, 2, 3, 4}}, got)
			}
		})
	}
}

// TestTags plans into structs whose tag is each of the hostile rules: an error of
// one line, or a plan.
func TestTags(t *testing.T) {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("w"), &nested.Tensor{Tensor: tensors.Of(make([]float32, 16))}); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range RuleFiles() {
		tag := reflect.StructTag(`torch:` + strconv.Quote(r.Text))
		s := reflect.StructOf([]reflect.StructField{{Name: "W", Type: reflect.TypeFor[[]float32](), Tag: tag}})
		_, err := serde.NewPlan(root, reflect.New(s).Interface())
		if err != nil {
			refused++
			if text := err.Error(); len(text) > 8192 || fault.KindOf(err) == "" {
				t.Errorf("%s: an error of %d bytes, kind %q", r.Name, len(text), fault.KindOf(err))
			}
		}
	}
	if refused == 0 {
		t.Error("no tag was refused")
	}
}

// TestStreamsThatClaim loads pipes into a struct whose pickles claim more than any
// machine has, and more than this one may have: an error, before or after memory
// is asked for, and no death.
func TestStreamsThatClaim(t *testing.T) {
	for _, n := range []int64{1 << 62, 99_999_999_999_999_999, 1 << 45, 25_000_000_000} {
		file := Checkpoint(dict("w", tensor(storage("0", n), 0, []int64{n}, []int64{1})))
		d, err := pytorch.NewDecoder(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var model struct {
			W []float32 `torch:"w"`
		}
		plan, err := serde.NewPlan(d.Checkpoint().Root, &model)
		if err == nil {
			_, err = plan.Run(t.Context())
		}
		if kind := fault.KindOf(err); kind != fault.Limit && kind != fault.Malformed && kind != fault.Mismatch || model.W != nil {
			t.Errorf("%d elements: %d values, %v", n, len(model.W), err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
