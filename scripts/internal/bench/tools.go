//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is a program that was built or found, or the reason why not.
type tool struct {
	path    string
	missing string
}

// tools are what the tasks are made of.
type tools struct {
	wick, load, save      tool
	floor, touch          tool
	gopickle              tool
	candle, burn          tool
	python, pythonConvert tool
}

// buildTools builds Go's programs into dir.
func buildTools(dir, checkpoints string, rust bool) tools {
	t := tools{
		wick:          buildGo(dir, "./cmd/wick"),
		load:          buildGo(dir, "./scripts/internal/load"),
		save:          buildGo(dir, "./scripts/internal/save"),
		floor:         buildGo(dir, "./scripts/internal/floor"),
		touch:         buildGo(dir, "./scripts/internal/touch"),
		gopickle:      buildGo(dir, "./scripts/internal/gopickle"),
		python:        findPython("numpy"),
		pythonConvert: findPython("numpy", "safetensors"),
	}
	t.candle, t.burn = buildRust(rust, checkpoints, "candle"), buildRust(rust, checkpoints, "pytorch-reader")
	return t
}

// buildGo builds a main package of the tree.
func buildGo(dir, pkg string) tool {
	path := filepath.Join(dir, filepath.Base(pkg))
	command := exec.Command("go", "build", "-o", path, pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return built(command, path)
}

// buildRust builds one of the programs of scripts/bench-peers/rust. Each is a crate of its own, so that one that
// does not compile leaves the other. Compiling takes minutes, so the results are kept beside the checkpoints.
func buildRust(wanted bool, checkpoints, name string) tool {
	if !wanted {
		return tool{missing: "left out by -rust=false"}
	}
	target, err := filepath.Abs(filepath.Join(checkpoints, "rust-target"))
	if err != nil {
		return tool{missing: err.Error()}
	}
	command := exec.Command("cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target)
	command.Dir = filepath.Join("scripts", "bench-peers", "rust", name)
	return built(command, filepath.Join(target, "release", "peer-"+name))
}

func built(command *exec.Cmd, path string) tool {
	if out, err := command.CombinedOutput(); err != nil {
		return tool{missing: "does not build: " + firstLine(out, err)}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return tool{missing: err.Error()}
	}
	return tool{path: absolute}
}

func findPython(modules ...string) tool {
	out, err := exec.Command("scripts/find-torch", modules...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			out = failed.Stderr
		}
		return tool{missing: firstLine(out, err)}
	}
	return tool{path: strings.TrimSpace(string(out))}
}

// firstLine returns the first line that says something of a command that failed.
func firstLine(out []byte, err error) string {
	for line := range bytes.Lines(out) {
		if text := strings.TrimSpace(string(line)); text != "" && !strings.HasPrefix(text, "# ") {
			return text
		}
	}
	return err.Error()
}

func (tools) program(name string, with tool, args ...string) program {
	return program{name: name, args: append([]string{with.path}, args...), missing: with.missing}
}

// torch returns a run of torch_load.py.
func (t tools) torch(name, kind string, files ...string) program {
	python := t.python
	if kind == "safetensors" {
		python = t.pythonConvert
	}
	return t.program(name, python, append([]string{"scripts/bench-peers/torch_load.py", kind}, files...)...)
}
