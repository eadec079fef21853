package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	model, err := filepath.Abs("../../../../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	page := "demo-resnet-torch2.15.html"
	if got := runFiles(t, "report", model); got.code != 0 || got.out != "" || !strings.HasPrefix(got.err, page+": 122 tensors, 0 warnings") {
		t.Fatalf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") {
		t.Fatalf("%.40q, %v", text, err)
	}
	for _, want := range []string{"state_dict.layer4.1.conv1.weight", `"h":[`, "4 allowed"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if got := runFiles(t, "report", model); got.code != exitEnvironment || !strings.Contains(got.err, "--force") {
		t.Errorf("over a page that exists: exit %d, %s", got.code, got.err)
	}
	if got := runFiles(t, "report", "--force", "--quick", model); got.code != 0 {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	if text, err = os.ReadFile(page); err != nil || strings.Contains(string(text), `"h":[`) {
		t.Errorf("--quick read values, %v", err)
	}
}

// What a plain torch.load would run is said on the line and at the page's top.
func TestReportSaysWhatIsDangerous(t *testing.T) {
	model, err := filepath.Abs(fixture("odd-objects/hostile-torch2.15.pt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	got := runFiles(t, "report", model)
	if got.code != 0 || !strings.Contains(got.err, " 0 warnings, 1 dangerous name, ") {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	text, err := os.ReadFile("hostile-torch2.15.html")
	if err != nil || !strings.Contains(string(text), `"alert":"1 dangerous name"`) {
		t.Errorf("no alert on the page, %v", err)
	}
}

func TestReportToStdout(t *testing.T) {
	model := "../../../../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"
	if got := runFiles(t, "report", "-o", "-", model, model); got.code != 0 || !strings.Contains(got.out, `"pair":true`) || got.err != "" {
		t.Errorf("exit %d, %.40q, %s", got.code, got.out, got.err)
	}
	if got := runFiles(t, "report", "--quick", model, model); got.code != exitEnvironment {
		t.Errorf("--quick of two: exit %d, %s", got.code, got.err)
	}
}
