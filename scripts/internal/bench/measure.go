//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wick-ml/wick/scripts/internal/tally"
)

// sample is one run of one program, the whole process with those that it started and waited for.
type sample struct {
	Wall    float64 `json:"wall_seconds"`
	User    float64 `json:"user_seconds"`
	System  float64 `json:"system_seconds"`
	PeakKiB int64   `json:"peak_rss_kib"`
	Faults  int64   `json:"page_faults"`
	tally.Result
}

// measurement is a program with its samples, or the reason why there are none.
type measurement struct {
	Name    string   `json:"name"`
	Missing string   `json:"missing,omitempty"`
	Written string   `json:"written_checksum,omitempty"` // of the values in the file that a converter wrote
	Samples []sample `json:"samples,omitempty"`
	args    []string
}

// run measures the task's programs in alternation. The first round is not counted.
func (t task) run(o config, tools tools) (result measuredTask) {
	result = measuredTask{Name: t.name, About: t.about, Series: t.series, Measurements: t.chosen(o), LoadBefore: loadAverage()}
	defer func() { result.LoadAfter = loadAverage() }()
	if err := warm(t.input); err != nil {
		result.missing("no input: " + err.Error())
		return result
	}
	if t.output != "" {
		result.Expected = sumOf(tools.load, t.input)
	}
	for round := range o.rounds + 1 {
		for i := range result.Measurements {
			if err := warmMemory(tools.touch, o.touchMiB); err != nil {
				result.missing("no memory: " + err.Error())
				return result
			}
			m := &result.Measurements[i]
			t.measure(m, round > 0, o.limit)
			if round == 0 && t.output != "" && m.Missing == "" && m.reads(t.input) {
				m.Written = sumOf(tools.load, t.output)
			}
			if err := t.clean(); err != nil {
				result.missing("cannot be removed: " + err.Error())
				return result
			}
		}
		fmt.Fprintf(os.Stderr, "bench: %s: round %d of %d\n", t.name, round, o.rounds)
	}
	return result
}

// reads reports whether a program was given the task's input; a copy may be of another file, of the output's size.
func (m *measurement) reads(input string) bool {
	return strings.Contains(strings.Join(m.args, " "), input)
}

// chosen returns empty measurements of the programs that the flags select.
func (t task) chosen(o config) []measurement {
	var list []measurement
	for i, p := range t.programs {
		if i == 0 || o.only.MatchString(p.name) {
			list = append(list, measurement{Name: p.name, Missing: p.missing, args: p.args})
		}
	}
	return list
}

// measure adds a sample to m. A program that fails once counts as missing: its other samples cannot be trusted.
func (t task) measure(m *measurement, counts bool, limit time.Duration) {
	if m.Missing != "" {
		return
	}
	s, err := t.once(m.args, limit)
	if err != nil {
		m.Missing, m.Samples = "failed: "+err.Error(), nil
	} else if counts {
		m.Samples = append(m.Samples, s)
	}
}

// warm reads the file, so that the first program finds it in the page cache like the others.
func warm(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, file)
	return errors.Join(err, file.Close())
}

// warmMemory brings the memory that the next program will get into the state it has for all of them.
func warmMemory(touch tool, mib uint) error {
	if touch.missing != "" {
		return errors.New(touch.missing)
	}
	return exec.Command(touch.path, strconv.FormatUint(uint64(mib), 10)).Run()
}

// once runs a program with its output, if it has any, removed before: what an earlier one wrote shall neither be there
// to overwrite nor be on its way to the disk.
func (t task) once(args []string, limit time.Duration) (sample, error) {
	if err := t.clean(); err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	var stderr bytes.Buffer
	var stdout lastLine
	command.Stderr = &stderr
	if args[0] != "cat" {
		command.Stdout = &stdout
	}
	begin := time.Now()
	err := command.Run()
	wall := time.Since(begin)
	if ctx.Err() != nil {
		return sample{}, fmt.Errorf("still running after %v", limit)
	}
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, firstLine(stderr.Bytes(), err))
	}
	return newSample(wall, command.ProcessState, stdout.text), nil
}

// sumOf returns the checksum of the values in a file as wick loads them. What it loads from torch's own files is
// compared with torch by the tasks that load.
func sumOf(load tool, file string) string {
	if info, err := os.Stat(file); err != nil || info.Size() > mostSummed || load.missing != "" {
		return ""
	}
	var result tally.Result
	out, err := exec.Command(load.path, "run", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		return "does not load: " + err.Error()
	}
	return result.Checksum
}

// mostSummed is where loading a file for its checksum would take more memory than a machine may have.
const mostSummed = 3 << 30

// loadAverage returns how many processes wanted to run in the last minute, all of the machine's.
func loadAverage() string {
	one, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return one
}

func (t task) clean() error {
	if t.output == "" {
		return nil
	}
	if err := os.Remove(t.output); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func newSample(wall time.Duration, state *os.ProcessState, reply []byte) sample {
	s := sample{Wall: wall.Seconds(), User: state.UserTime().Seconds(), System: state.SystemTime().Seconds()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		s.PeakKiB = int64(usage.Maxrss)               //nolint:unconvert // 32 bits on 32-bit systems
		s.Faults = int64(usage.Minflt + usage.Majflt) //nolint:unconvert // 32 bits on 32-bit systems
	}
	// Programs that are no loaders of ours print something else, or nothing: they have no result then.
	if err := json.Unmarshal(reply, &s.Result); err != nil {
		s.Result = tally.Result{}
	}
	return s
}

// lastLine is a writer that keeps the end of what is written to it: this process must stay small, because a child's
// peak memory is never less than its parent's was when it started the child.
type lastLine struct{ text []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	const keep = 4096
	l.text = append(l.text, p[max(0, len(p)-keep):]...)
	l.text = l.text[max(0, len(l.text)-keep):]
	return len(p), nil
}
