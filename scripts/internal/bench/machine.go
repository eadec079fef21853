//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is what the figures depend on.
type machine struct {
	CPU          string `json:"cpu"`
	Cores        int    `json:"cores"`
	Memory       string `json:"memory"`
	Kernel       string `json:"kernel"`
	HugePages    string `json:"transparent_huge_pages"`
	Defrag       string `json:"transparent_huge_pages_defrag"`
	FileSystem   string `json:"file_system"`
	Go           string `json:"go"`
	Torch        string `json:"torch"`
	Coreutils    string `json:"coreutils"`
	Rust         string `json:"rust"`
	OwnPeak      string `json:"own_peak_rss"`
	Architecture string `json:"architecture"`
}

func describeMachine(dir string, python tool) machine {
	const hugePages = "/sys/kernel/mm/transparent_hugepage/"
	return machine{
		CPU:          field("/proc/cpuinfo", "model name"),
		Cores:        runtime.NumCPU(),
		Memory:       field("/proc/meminfo", "MemTotal"),
		Kernel:       read("/proc/sys/kernel/osrelease"),
		HugePages:    read(hugePages + "enabled"),
		Defrag:       read(hugePages + "defrag"),
		FileSystem:   output("stat", "--file-system", "--format=%T", dir),
		Go:           runtime.Version(),
		Torch:        torchVersion(python),
		Coreutils:    output("cat", "--version"),
		Rust:         output("rustc", "--version"),
		OwnPeak:      field("/proc/self/status", "VmHWM"),
		Architecture: runtime.GOARCH,
	}
}

func torchVersion(python tool) string {
	if python.missing != "" {
		return "missing: " + python.missing
	}
	return output(python.path, "-c", "import sys, torch; print(torch.__version__, 'on Python', sys.version.split()[0])")
}

func (m machine) markdown() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, Linux %s, %s. Transparent huge pages: %s, defrag: %s.\n"+
		"%s; torch %s; %s; %s. No child's peak RSS can be less than the measuring program's own, %s.\n",
		m.CPU, m.Cores, m.Memory, m.Architecture, m.Kernel, m.FileSystem, m.HugePages, m.Defrag,
		m.Go, m.Torch, m.Coreutils, m.Rust, m.OwnPeak)
}

// field returns the value of the first line "name : value" of a file of /proc.
func field(name, key string) string {
	file, err := os.Open(name)
	if err != nil {
		return unknown(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown: no " + key
}

func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return unknown(err)
	}
	return strings.TrimSpace(string(b))
}

// output returns the first line that a command prints.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return unknown(err)
	}
	return firstLine(out, nil)
}

func unknown(err error) string { return "unknown: " + err.Error() }
