package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/cmd/wick/internal/demo"
)

func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	got := runFiles(t, "demo")
	if got.code != 0 || got.err != "" {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	for _, want := range []string{
		"122 tensors of float32 and int64, 11,980 elements",
		"epoch = 90, arch = 'resnet18', best_acc1 = 69.25",
		"type ResNet struct {",
		"state_dict.fc.bias           float32 [10]",
		"124 applied, 0 missing, 0 unexpected, 0 mismatched",
		"122 checksums verified",
		"all 122 tensors are the same bit for bit",
		"wick demo --save",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	for line := range strings.Lines(got.out) {
		if w := textWidth(strings.TrimRight(line, "\n")); w > 118 {
			t.Errorf("a line of %d columns: %s", w, line)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoSave(t *testing.T) {
	name := filepath.Join(t.TempDir(), "resnet.pt")
	if got := runFiles(t, "demo", "--save", name); got.code != 0 || got.out != "" {
		t.Fatalf("exit %d, %s%s", got.code, got.out, got.err)
	}
	want, err := demo.File()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if got := runFiles(t, "demo", "--save", name); got.code != 2 || !strings.Contains(got.err, "exists") {
		t.Errorf("over a file: exit %d, %s", got.code, got.err)
	}
}
