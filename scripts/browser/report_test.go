// Package browser tries the pages of wick report in headless Chromium, which must
// be on the PATH. It is a module of its own, so that a browser's protocol stays out
// of the library's dependencies. With SHOTS=FOLDER the tests leave pictures there.
package browser

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const fixtures = "../../pytorch-tests/"

var wick = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wick-browser-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "wick")
	build := exec.Command("go", "build", "-o", bin, "./cmd/wick")
	build.Dir = "../.."
	build.Stderr = os.Stderr
	return bin, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := wick(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin)) // a temporary folder
	}
	os.Exit(code)
}

// report writes a page and returns its address.
func report(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := wick()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "page.html")
	if text, err := exec.Command(bin, append([]string{"report", "-o", out}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return "file://" + out
}

// tab is a page in a browser, and what went wrong in it.
type tab struct {
	t      *testing.T
	ctx    context.Context
	mu     sync.Mutex
	faults []string
}

func open(t *testing.T, address string, width, height int64) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatalf("no browser: %v; needs chromium on the PATH", err)
	}
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	b.ctx = ctx
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(address), chromedp.WaitReady("#tree > *"))
	return b
}

// listen notes errors of scripts, refused resources and pop-ups.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.faults = append(b.faults, e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		b.faults = append(b.faults, "a pop-up: "+e.Message)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// value is what an expression gives in the page.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// want compares what an expression gives in the page.
func want[T comparable](b *tab, expression string, want T) {
	b.t.Helper()
	if got := value[T](b, expression); got != want {
		b.t.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// sound fails when anything went wrong in the page, and leaves a picture.
func (b *tab) sound(name string) {
	b.t.Helper()
	if dir := os.Getenv("SHOTS"); dir != "" {
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		b.t.Errorf("in the page: %s", strings.Join(b.faults, "; "))
	}
}

const resnet = fixtures + "demo-resnet/demo-resnet-torch2.15.pt"

func TestSearch(t *testing.T) {
	b := open(t, report(t, resnet), 1200, 900)
	b.do(chromedp.Focus("#search"))
	b.do(chromedp.KeyEvent("layer1 conv"))
	want(b, "[...document.querySelectorAll('#tree .row')].every((r) => r.textContent.includes('layer1') && r.textContent.includes('conv'))", true)
	want(b, "document.querySelectorAll('#tree .row').length > 1", true)
	want(b, "document.getElementById('found').textContent === document.querySelectorAll('#tree .row').length + ' found'", true)
	b.do(chromedp.KeyEvent(" nothing-is-called-so"))
	want(b, "document.getElementById('found').textContent", "0 found")
	b.sound("search")
}

func TestFold(t *testing.T) {
	b := open(t, report(t, resnet), 1200, 900)
	want(b, "document.querySelectorAll('#tree .row').length", 0)
	const first = "#tree details details summary" // of the first module in the only one
	const visible = "document.querySelector('#tree .row').checkVisibility()"
	b.do(chromedp.Click(first), chromedp.WaitReady("#tree .row"))
	want(b, visible, true)
	b.do(chromedp.Click(first))
	want(b, visible, false)
	b.do(chromedp.Click("#open-all"))
	want(b, "document.querySelectorAll('#tree .row').length === JSON.parse(document.getElementById('data').textContent).rows.length", true)
	b.sound("fold")
	b.do(chromedp.Click("#close-all"))
	want(b, "document.querySelectorAll('#tree details[open]').length", 0)
}

func TestTiles(t *testing.T) {
	b := open(t, report(t, resnet), 1200, 900)
	want(b, "document.querySelectorAll('#map .tile').length > 3", true)
	// The tiles cover the map: areas are bytes.
	want(b, `(() => { const box = document.getElementById("map"); let sum = 0;
		for (const t of box.children) sum += parseFloat(t.style.width) * parseFloat(t.style.height);
		return Math.abs(sum / (box.clientWidth * box.clientHeight) - 1) < 0.02; })()`, true)
	b.do(chromedp.Click("#map .tile"))
	want(b, "document.querySelectorAll('#crumbs button').length > 2", true) // all, state_dict, the module
	b.sound("tile")
	b.do(chromedp.Focus("#map .tile"), chromedp.KeyEvent(kb.Escape)) // a picture may have taken the focus away
	want(b, "document.querySelectorAll('#crumbs button').length", 2)
	b.sound("map")
}

// Texts of the map and of the charts that have no room end in an ellipsis or are not
// there: none is cut within a letter.
func TestLabelsAreWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "names.safetensors")
	header, data := map[string]any{}, 0
	for i, module := range []string{"embeddings_of_the_encoder", "attention", "normalization", "W", "head"} {
		for j := range 6 {
			n := (1 << (2 * i)) * (j + 1)
			header[fmt.Sprintf("%s_%d.weight", module, j)] = map[string]any{"dtype": "U8", "shape": []int{n}, "data_offsets": []int{data, data + n}}
			data += n
		}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(name, append(file, make([]byte, data)...), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, report(t, name), 1200, 900)
	want(b, "document.querySelectorAll('#map .tile b').length > 5", true)
	want(b, `[...document.querySelectorAll("#map .tile span")].filter((span) => {
		const [name, size] = span.children, tile = span.parentElement.getBoundingClientRect();
		const line = span.getBoundingClientRect(), at = size.getBoundingClientRect();
		const cut = name.scrollWidth > name.clientWidth && getComputedStyle(name).textOverflow !== "ellipsis";
		const sticksOut = name.getBoundingClientRect().right > tile.right || at.top < line.bottom - 2 && at.right > tile.right;
		return cut || sticksOut;
	}).length`, 0)
	want(b, `[...document.querySelectorAll("#map .tile b")].some((e) => e.scrollWidth > e.clientWidth)`, true) // or nothing was tried
	want(b, `[...document.querySelectorAll("figure .light text")].filter((e) => {
		const text = e.getBoundingClientRect(), box = e.ownerSVGElement.getBoundingClientRect();
		return text.right > box.right + 1 || text.left < box.left - 1;
	}).map((e) => e.textContent).join()`, "")
	b.sound("labels")
}

func TestKeyboardShowsATensor(t *testing.T) {
	b := open(t, report(t, resnet), 1200, 900)
	b.do(chromedp.Focus("#map .tile"))
	for range 5 { // from module to module to a tensor
		b.do(chromedp.KeyEvent(kb.Enter))
		if value[bool](b, "document.getElementById('detail').open") {
			break
		}
	}
	want(b, "document.getElementById('detail').open", true)
	want(b, "document.querySelector('#detail svg.big path').getAttribute('d').length > 10", true)
	want(b, "document.getElementById('detail-body').textContent.includes('mean ± std')", true)
	b.sound("detail")
	b.do(chromedp.KeyEvent(kb.Escape))
	want(b, "document.getElementById('detail').open", false)
}

func TestDark(t *testing.T) {
	b := open(t, report(t, resnet), 1200, 900)
	background := "getComputedStyle(document.body).backgroundColor"
	want(b, background, "rgb(246, 247, 249)")
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	want(b, background, "rgb(20, 24, 31)")
	want(b, "getComputedStyle(document.querySelector('figure .dark')).display", "block")
	want(b, "getComputedStyle(document.querySelector('figure .light')).display", "none")
	b.sound("dark")
}

func TestNarrow(t *testing.T) {
	b := open(t, report(t, resnet), 400, 800)
	want(b, "document.documentElement.scrollWidth <= 400", true)
	b.sound("narrow")
}

func TestPair(t *testing.T) {
	b := open(t, report(t, resnet, fixtures+"demo-resnet/demo-resnet-torch1.13.pt"), 1200, 900)
	b.do(chromedp.Click("#open-all"))
	want(b, "[...document.querySelectorAll('#facts dt')].some((e) => e.textContent === 'second')", true)
	want(b, "document.getElementById('map-hint').textContent.includes('Colour is relative drift')", true)
	b.sound("pair")
}

// What the page makes of names that try to be markup.
func TestHostileNames(t *testing.T) {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
	name := filepath.Join(t.TempDir(), "evil.safetensors")
	if err := os.WriteFile(name, safetensors(t, evil), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, report(t, name), 1200, 900)
	want(b, "document.images.length", 0)
	want(b, "document.scripts.length", 2)
	want(b, "document.querySelector('#tree').textContent.includes('<img src=x')", true)
	b.do(chromedp.Click("#tree .row"), chromedp.WaitVisible("#detail"))
	b.sound("hostile")
}

// safetensors is a file of two tensors, one of a NaN and one whose values are zeros.
func safetensors(t *testing.T, name string) []byte {
	t.Helper()
	header, err := json.Marshal(map[string]any{
		name:     map[string]any{"dtype": "F32", "shape": []int{1}, "data_offsets": []int{0, 4}},
		"a.zero": map[string]any{"dtype": "F32", "shape": []int{2, 1}, "data_offsets": []int{4, 12}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = binary.LittleEndian.AppendUint32(append(file, header...), math.Float32bits(float32(math.NaN())))
	return append(file, make([]byte, 8)...)
}

// A list too long for a map is shown in ranges, which cover it and lead to its tensors.
func TestLongList(t *testing.T) {
	const n = 20_100 // a page holds 20,000
	name := filepath.Join(t.TempDir(), "long.safetensors")
	if err := os.WriteFile(name, bytesOf(t, n), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, report(t, name), 1200, 900)
	want(b, `document.querySelectorAll("#map .tile").length <= 400`, true)
	want(b, `(() => { const box = document.getElementById("map"); let sum = 0;
		for (const t of box.children) sum += parseFloat(t.style.width) * parseFloat(t.style.height);
		return Math.abs(sum / (box.clientWidth * box.clientHeight) - 1) < 0.02; })()`, true)
	want(b, `document.getElementById("map-hint").textContent.includes("100 smaller tensors not shown")`, true)
	b.sound("long")
	b.do(chromedp.Focus("#map .tile"), chromedp.KeyEvent(kb.Enter))
	want(b, `/^layers\.\d+, 1 tensor, 1 B$/.test(document.querySelector("#map .tile").title)`, true)
	b.do(chromedp.KeyEvent(kb.Escape))
	want(b, `document.querySelectorAll("#tree summary").length < 500`, true)
	b.do(chromedp.Focus("#search"), chromedp.KeyEvent("layers.777."))
	want(b, `document.getElementById("found").textContent`, "1 found")
}

// bytesOf is a safetensors file of n tensors of one byte.
func bytesOf(t *testing.T, n int) []byte {
	t.Helper()
	tensors := map[string]any{}
	for i := range n {
		tensors[fmt.Sprintf("layers.%d.w", i)] = map[string]any{"dtype": "U8", "shape": []int{1}, "data_offsets": []int{i, i + 1}}
	}
	header, err := json.Marshal(tensors)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), bytes.Repeat([]byte{1}, n)...)
}

func TestWarningLeadsToItsTensor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "odd.safetensors")
	if err := os.WriteFile(name, safetensors(t, "b.weight"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, report(t, name), 1200, 900)
	want(b, "document.querySelectorAll('#warnings button').length", 2)
	b.do(chromedp.Click("#warnings li:last-child button"), chromedp.WaitVisible("#detail"))
	want(b, "document.getElementById('detail-title').textContent", "b.weight")
	b.sound("warnings")
}
