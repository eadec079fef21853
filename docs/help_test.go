//go:build !js && !wasip1 && !windows

package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exampleFiles are the files that the examples in help name, and which files of this
// tree stand for them.
var exampleFiles = map[string]string{
	"model.pt": "model-families/resnet50-torch2.15.pt", "resnet18.pt": "model-families/resnet50-torch2.15.pt",
	"epoch10.pt": "model-families/resnet50-torch2.15.pt", "epoch20.pt": "model-families/resnet50-torch2.15.pt",
	"full.pt": "model-families/resnet50-torch2.15.pt", "half.pt": "model-families/resnet50-torch2.15.pt",
	"model.ckpt": "lightning/lightning-torch2.15.ckpt", "last.ckpt": "lightning/lightning-torch2.15.ckpt",
	"Llama-2-13b": "llama/meta-2shards", "downloads": "folders/index_bin-torch2.15",
}

// examplesBefore are what an example needs that another command makes.
var examplesBefore = map[string]string{
	"half.safetensors":  "wick convert --dtype float16 full.pt half.safetensors",
	"model.safetensors": "wick convert model.pt model.safetensors",
	"llama.safetensors": "wick convert Llama-2-13b llama.safetensors",
	"resnet18.go":       "wick gen --package p --type ResNet18 -o resnet18.go resnet18.pt",
	"my.rules":          "echo 'drop **.num_batches_tracked' > my.rules",
}

// strangers stand for programs that examples pipe into or from, which a machine may not have.
var strangers = map[string]string{"jq": "cat >/dev/null", "xxd": "cat", "less": "cat", "curl": "cat model.pt"}

// Every example in help runs. The answer of a comparison may be no.
func TestHelpExamplesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a shell for each")
	}
	k := newKitchen(t)
	c := newCommand(t)
	ran := 0
	for name := range c.flags {
		args := []string{"help"}
		if name != "" {
			args = append(args, name)
		}
		for _, line := range examplesOf(c.run(t, args...)) {
			if strings.Contains(line, "hf://") {
				continue // a hub is not on this machine
			}
			k.example(t, line)
			ran++
		}
	}
	if ran < 45 {
		t.Errorf("only %d examples", ran)
	}
}

// examplesOf cuts the examples out of a help text, without what stands beside them.
func examplesOf(help string) []string {
	_, text, _ := strings.Cut(help, "\nExamples\n")
	text, _, _ = strings.Cut(text, "\n\n")
	text = regexp.MustCompile(`\s*\\\n\s*`).ReplaceAllString(text, " ")
	about := regexp.MustCompile(`(\S) {2,}[a-z].*`)
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Contains(line, "wick ") {
			lines = append(lines, about.ReplaceAllString(line, "$1"))
		}
	}
	return lines
}

// example runs an example in a folder of its own.
func (k *kitchen) example(t *testing.T, line string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work") // a folder that can be a package
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := func(from, to string) {
		from, err := filepath.Abs(from)
		if err = errors.Join(err, os.Symlink(from, filepath.Join(dir, to))); err != nil {
			t.Fatal(err)
		}
	}
	for name, fixture := range exampleFiles {
		if name == "model.pt" && strings.Contains(line, "disasm") {
			fixture = "demo-resnet/demo-resnet-torch2.15.pt" // a zip
		}
		link(filepath.Join("../pytorch-tests", fixture), name)
	}
	script := "set -e -o pipefail; mkdir net\n"
	for name, body := range strangers {
		script += name + "() { " + body + "; }\n"
	}
	words := strings.Fields(line)
	for name, command := range examplesBefore {
		if at := slices.Index(words, name); at > 0 && words[at-1] != "-o" && !strings.Contains(line, "convert") {
			script += command + "\n"
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script+line)
	cmd.Dir, cmd.Env = dir, k.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	answer := errors.As(err, &exit) && exit.ExitCode() == 1 && regexp.MustCompile(`wick (diff|plan|verify|scan) `).MatchString(line)
	if err != nil && !answer {
		t.Errorf("%s\n%v: %s", line, err, out)
	}
}
