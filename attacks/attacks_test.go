package attacks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a command may take for a file of up to a megabyte: processor time on a
// machine that does work in ordinaryWork, and memory.
const (
	mostTime     = 5 * time.Second
	ordinaryWork = 450 * time.Millisecond
	mostMemory   = 256 << 20
)

// program is the command as users have it; TestMain builds it.
var program string

// runnerVariable makes this test's own program a runner: a process takes over the peak of
// memory of the one that started it, and the one that makes bombs is large.
const runnerVariable = "WICK_ATTACKS_RUNNER"

// The two things that this test's own program does as another process.
const (
	asRunner = "runner"
	asWorker = "worker"
)

func TestMain(m *testing.M) {
	switch os.Getenv(runnerVariable) {
	case asRunner:
		os.Exit(serve())
	case asWorker:
		work()
	default:
		os.Exit(buildAndRun(m))
	}
}

// work is what the speed of a machine is told by: texts, a map of them, an order.
func work() {
	counts := map[string]int{}
	for i := range 300_000 {
		counts[strconv.Itoa(i*7919)]++
	}
	if keys := slices.Sorted(maps.Keys(counts)); len(keys) != 300_000 {
		panic(len(keys))
	}
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wick-attacks-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "wick")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/wick").CombinedOutput(); err != nil {
		panic(string(out))
	}
	for range cap(runners) {
		r := startRunner()
		defer r.stop()
		runners <- r
	}
	return m.Run()
}

// outcome is how a process ended.
type outcome struct {
	Command string
	Code    int
	Killed  bool // by a signal, or because it took too long
	Err     []byte
	Head    []byte        // of stdout
	Control string        // what is around the first control on either, "" for none
	Time    time.Duration // of the processor: a busy machine makes everything late
	Memory  int64         // most bytes that were in memory, 0 where the system does not tell
	Left    []string      // what lies beside the input
}

// order is what a runner does: all commands on one input.
type order struct {
	Program, File, Dir string
	Commands           []command
}

// serve is a runner: it reads orders and writes the outcomes of each.
func serve() int {
	orders, outcomes := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return 0 // the test has ended
		}
		var all []outcome
		for _, command := range o.Commands {
			all = append(all, o.quickest(command))
		}
		if err := outcomes.Encode(all); err != nil {
			return 1
		}
	}
}

// runner is another process of this program that serves.
type runner struct {
	process  *exec.Cmd
	orders   io.WriteCloser
	outcomes *json.Decoder
}

// runners are those that have nothing to do.
var runners = make(chan *runner, runtime.GOMAXPROCS(0))

func startRunner() *runner {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runnerVariable+"="+asRunner)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return &runner{cmd, in, json.NewDecoder(out)}
}

func (r *runner) stop() {
	_ = r.orders.Close()
	_ = r.process.Wait()
}

// quickest runs a command, and again where it took too long: what else a machine
// does makes a process slower even in the processor's time, and never faster. What
// stays too long is counted in the time of an ordinary machine.
func (o order) quickest(c command) outcome {
	got := o.run(c)
	for tries := 1; got.Time > mostTime && tries < 3; tries++ {
		if again := o.run(c); again.Time < got.Time {
			got = again
		}
	}
	if got.Time > mostTime {
		got.Time = time.Duration(float64(got.Time) / slowness())
	}
	return got
}

// slowness is how many times as long as on an ordinary machine work takes here and
// now, at least 1.
func slowness() float64 {
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), runnerVariable+"="+asWorker)
	if err := cmd.Run(); err != nil {
		return 1 // the limit as it stands
	}
	p := cmd.ProcessState
	return max(1, float64(p.UserTime()+p.SystemTime())/float64(ordinaryWork))
}

func (o order) run(c command) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 12*mostTime)
	defer cancel()
	dir := filepath.Dir(o.File)
	cmd := exec.CommandContext(ctx, o.Program, c.args(o.File, filepath.Join(dir, output), o.Dir)...)
	if c.Pipe {
		in, err := os.Open(o.File)
		if err != nil {
			return outcome{Command: c.Name(), Err: []byte(err.Error())}
		}
		defer func() { _ = in.Close() }() // only read from
		cmd.Stdin = in
	}
	out, errs := sieve{tabs: c.isCode()}, sieve{}
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its state says how it ended
	p := cmd.ProcessState
	got := outcome{
		Command: c.Name(), Code: p.ExitCode(), Killed: !p.Exited(), Err: errs.head, Head: out.head, Control: cmp.Or(out.found(), errs.found()),
		Time: p.UserTime() + p.SystemTime(), Memory: peakMemory(p),
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		got.Left = append(got.Left, err.Error())
	}
	for _, e := range entries {
		if e.Name() != "in" {
			got.Left = append(got.Left, e.Name())
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // the next command makes it anew, if at all
		}
	}
	return got
}

// runAll has a runner run commands on a file.
func runAll(t *testing.T, file, dir string, commands []command) []outcome {
	t.Helper()
	r := <-runners
	defer func() { runners <- r }()
	if err := json.NewEncoder(r.orders).Encode(order{program, file, dir, commands}); err != nil {
		t.Fatal(err)
	}
	var all []outcome
	if err := r.outcomes.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// brief are attacks on which few commands run: those on opcodes, of which there are
// thousands, and those that are as slow as limits allow.
var brief = regexp.MustCompile(`^(opcode|again and again:|shared|a million) |, a megabyte$|: a bomb of |of 40 MB`)

// TestAttacks runs the command line over every attack: the commands that show
// most on each, and of the others, in turn, as many as the day has time for. With
// [everyVariable] set it is each on each.
func TestAttacks(t *testing.T) {
	dir := t.TempDir()
	writeHelpers(t, dir)
	turn := map[bool]int{}
	ran := map[string]int{}
	var s slowest
	t.Cleanup(func() { t.Logf("slowest:\n%s", strings.Join(s.list, "\n")) })
	for i, c := range All() {
		isBrief := brief.MatchString(c.Name)
		list, next := chosen(isBrief, turn[isBrief])
		turn[isBrief] = next
		for _, command := range list {
			ran[command.Name()]++
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			own := filepath.Join(dir, fmt.Sprint(i))
			file := write(t, own, c)
			all := runAll(t, file, dir, fitting(list, file))
			for _, got := range all {
				check(t, c, got)
				s.add(c, got)
			}
			if len(c.Files()) == 1 && c.Files()[""] != nil {
				checkScan(t, all)
			}
			if err := os.RemoveAll(own); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range every {
		if ran[c.Name()] < 20 {
			t.Errorf("%s ran %d times", c.Name(), ran[c.Name()])
		}
	}
	t.Logf("%d processes: %v", total(ran), ran)
}

// slowest are the outcomes that took longest.
type slowest struct {
	mu   sync.Mutex
	list []string
}

func (s *slowest) add(c Case, got outcome) {
	const shown = 40
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf("%5.2f s %d MiB %s: %s", got.Time.Seconds(), got.Memory>>20, c.Name, got.Command))
	slices.SortFunc(s.list, func(a, b string) int { return cmp.Compare(b, a) })
	s.list = s.list[:min(len(s.list), shown)]
}

func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// write makes the files of a case in a folder and returns what to open.
func write(t *testing.T, dir string, c Case) string {
	t.Helper()
	target := filepath.Join(dir, "in")
	for name, data := range c.Files() {
		file := target
		if name != "" {
			file = filepath.Join(target, filepath.FromSlash(name))
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return target
}

func check(t *testing.T, c Case, got outcome) {
	t.Helper()
	if got.Killed || got.Time > mostTime || got.Memory > mostMemory {
		t.Errorf("%s: killed %v, %v, %d MiB", got.Command, got.Killed, got.Time, got.Memory>>20)
	}
	if want := exits(c, got.Command); !slices.Contains(want, got.Code) {
		t.Errorf("%s: exit %d, want one of %v: %s", got.Command, got.Code, want, cut(got.Err))
	}
	checkTexts(t, c, got)
	for _, name := range got.Left {
		if !strings.HasPrefix(name, output) || got.Code != 0 {
			t.Errorf("%s: exit %d leaves %q", got.Command, got.Code, name)
		}
	}
	if _, err := os.Lstat("/tmp/wick-climbed"); err == nil {
		t.Errorf("%s wrote outside of its folder", got.Command)
	}
}

var trace = regexp.MustCompile(`(?m)panic|goroutine \d+ \[|runtime error|BUG:|fatal error|SIG[A-Z]{3,}`)

// refusal is one line, behind warnings of rules that match nothing: they may be why.
var refusal = regexp.MustCompile(`^(warning: nothing in the file matches: [^\n]*\n)*(wick: |\{"error":)[^\n]*\n$`)

func checkTexts(t *testing.T, c Case, got outcome) {
	t.Helper()
	if found := trace.Find(got.Err); found != nil {
		t.Errorf("%s says %q: %s", got.Command, found, cut(got.Err))
	}
	isRefusal := got.Code > 1
	isLine := refusal.Match(got.Err)
	if isRefusal && (!isLine || len(got.Err) > 4096) {
		t.Errorf("%s: exit %d with %d bytes on stderr: %s", got.Command, got.Code, len(got.Err), cut(got.Err))
	}
	if got.Control != "" {
		t.Errorf("%s prints %s", got.Command, got.Control)
	}
	mentions := func(text string) bool { return bytes.Contains(got.Err, []byte(text)) }
	if isRefusal && strings.HasPrefix(got.Command, "ls") && len(c.Mentions) > 0 && !slices.ContainsFunc(c.Mentions, mentions) {
		t.Errorf("%s does not mention any of %q: %s", got.Command, c.Mentions, cut(got.Err))
	}
}

func cut(s []byte) string { return fmt.Sprintf("%.600q", s) }

// Names of cases are what a failure is looked up by.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.Name] {
			t.Errorf("two attacks are called %q", c.Name)
		}
		seen[c.Name] = true
	}
	t.Logf("%d attacks", len(seen))
}
