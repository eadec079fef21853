package cli

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// remark says something on stderr that --verbose asks for.
func (a *app) remark(format string, args ...any) {
	if a.verbose && !a.quiet {
		_, _ = fmt.Fprintf(a.err, format+"\n", args...) // nobody waits for it
	}
}

// note says on stderr what was done, unless --quiet.
func (a *app) note(text string) {
	if !a.quiet {
		_, _ = fmt.Fprintln(a.err, text) // as above
	}
}

// warn says what the user may not have meant, unless --quiet.
func (a *app) warn(text string) { a.note("warning: " + fault.Clean(text, 300)) }

// elapsed is the time since start for people.
func elapsed(start time.Time) string {
	return time.Since(start).Round(100 * time.Microsecond).String()
}

// progressAfter is how long work goes on before it shows its progress.
const progressAfter = time.Second

// progress shows how far a run of tensor bytes has come: on a terminal alone,
// and only for work over a second. Its methods are called from one goroutine
// at a time.
type progress struct {
	a     *app
	verb  string
	start time.Time
	bytes int64
	bar   *progressbar.ProgressBar // nil before the first report and where nobody looks
}

func (a *app) progress(verb string) *progress {
	return &progress{a: a, verb: verb, start: time.Now()}
}

// report is told the bytes done and the bytes in all, -1 if nobody knows. The bar
// starts with the work, so that its rate is right, and is seen later.
func (p *progress) report(done, total int64) {
	p.bytes = done
	if !p.a.errTTY || p.a.quiet {
		return
	}
	if p.bar == nil {
		p.bar = p.newBar(total)
	}
	_ = p.bar.Set64(done) // a bar that cannot be drawn is not worth an error
}

// asDelivered says that a stage reads as many bytes as it delivers.
const asDelivered = -1

// stage begins one of several runs, with a bar of its own: it reads so many bytes,
// whatever it makes of them.
func (p *progress) stage(bytes int64) tensor.RunOption {
	p.clear()
	before := p.bytes
	return tensor.Progress(func(done, total int64) {
		if bytes >= 0 && total > 0 {
			done, total = int64(float64(done)/float64(total)*float64(bytes)), bytes
		}
		p.report(done, total)
		p.bytes = before + done
	})
}

func (p *progress) newBar(total int64) *progressbar.ProgressBar {
	width := columns(p.a.err)
	if width == 0 {
		width = 80
	}
	opts := []progressbar.Option{
		progressbar.OptionSetWriter(p),
		progressbar.OptionSetDescription(p.verb),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowTotalBytes(total >= 0),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would turn in a goroutine of its own, and never stop
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(min(max(width-barText, 3), 50)),
	}
	if width > barText { // else the bytes have no room
		opts = append(opts, progressbar.OptionShowCount())
	}
	return progressbar.NewOptions64(total, opts...)
}

// barText is the most columns that a line has beside its bar.
const barText = 68

// Write draws the bar once the work has gone on for long enough.
func (p *progress) Write(b []byte) (int, error) {
	if time.Since(p.start) < progressAfter {
		return len(b), nil
	}
	return p.a.err.Write(b)
}

// clear takes the bar away, for good.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear() // as above
		p.bar = nil
	}
}

// done ends the work: the bar goes, and --verbose is told how fast it was.
func (p *progress) done() {
	p.clear()
	rate := int64(float64(p.bytes) / max(time.Since(p.start).Seconds(), 1e-9))
	p.a.remark("%s: %s, %s, %s/s", p.verb, human.Bytes(p.bytes), elapsed(p.start), human.Bytes(rate))
}
