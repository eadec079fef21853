//go:build linux

// Bench measures whole programs side by side: wick, the least that the machine allows, and the other readers of
// PyTorch's checkpoints. Run it as scripts/bench from the top of the tree.
//
// The programs of a task alternate (A B C, A B C, …) after one round that is not counted, with the file in the page
// cache and memory that was in use a moment ago (see program touch). A program's figures are medians over the rounds. Its
// ratio is the median of the ratios of its wall times to those of the task's baseline in the same round: what keeps
// the machine busy for some seconds slows both. Every loader prints a checksum of all values that it loaded (see package
// tally), and one that differs from torch's is pointed out; what a converter wrote is loaded after the round that is
// not counted, and compared with what was to be converted. Peers that cannot be had are listed as missing.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	o, err := options()
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	dir      string // of the checkpoints; outputs are written to a folder in it
	rounds   int
	tasks    *regexp.Regexp
	only     *regexp.Regexp
	jsonFile string
	mdFile   string
	rust     bool
	long     bool
	touchMiB uint
	limit    time.Duration
}

func options() (config, error) {
	dir := os.Getenv("WICK_BENCH_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return config{}, err
		}
		dir = filepath.Join(cache, "wick-bench")
	}
	o := config{}
	flag.StringVar(&o.dir, "dir", dir, "folder of the checkpoints, made there if they are missing")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds that count")
	tasks := flag.String("tasks", "", "run the tasks whose name matches this regular expression only")
	only := flag.String("only", "", "run the programs whose name matches this regular expression only, and the baselines")
	flag.StringVar(&o.jsonFile, "json", "", "write all samples to this file")
	flag.StringVar(&o.mdFile, "md", "", "write the tables to this file too")
	flag.BoolVar(&o.rust, "rust", true, "build and run the readers written in Rust")
	flag.BoolVar(&o.long, "long", false, "also the tasks that take long, and the growth with bytes (up to 10 GB), tensors and cores")
	flag.UintVar(&o.touchMiB, "touch", 1024, "MiB of memory that are taken and given back before each program")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "a program that takes longer is given up")
	flag.Parse()
	var err error
	if o.tasks, err = regexp.Compile(*tasks); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	if flag.NArg() > 0 || o.rounds < 1 {
		return o, fmt.Errorf("no arguments are taken, and at least one round")
	}
	return o, nil
}

func run(o config) error {
	temporary, err := newTemporary(o.dir)
	if err != nil {
		return err
	}
	defer temporary.remove()
	tools := buildTools(temporary.programs, o.dir, o.rust)
	result := report{Machine: describeMachine(o.dir, tools.python)}
	for _, t := range tasks(o.dir, temporary.output, tools) {
		if !o.tasks.MatchString(t.name) || t.long && !o.long {
			continue
		}
		if err := makeInput(t.input); err != nil {
			fmt.Fprintf(os.Stderr, "bench: making %s: %v\n", t.input, err)
		}
		result.Tasks = append(result.Tasks, t.run(o, tools))
		// After each task, for a run takes long and may be cut short.
		if err := result.write(o.jsonFile, o.mdFile); err != nil {
			return err
		}
	}
	fmt.Print(result.markdown())
	return nil
}

// temporary is the folder of built programs, and the file that converters write, on the disk of the checkpoints.
type temporary struct{ programs, output string }

func newTemporary(dir string) (temporary, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return temporary{}, err
	}
	folder, err := os.MkdirTemp(dir, "bench-")
	return temporary{programs: folder, output: filepath.Join(folder, "out.safetensors")}, err
}

func (t temporary) remove() {
	if err := os.RemoveAll(t.programs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// makeInput makes a checkpoint that is not there yet.
func makeInput(name string) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	command := exec.Command("scripts/make-checkpoints", filepath.Dir(name), "--tensors-1m", "--large", "--growth", "--only", filepath.Base(name))
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
