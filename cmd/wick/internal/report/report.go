// Package report writes a checkpoint, or two side by side, as one page of HTML to
// look at: no network, no other file. Text from a checkpoint reaches the page as
// data, never as markup.
package report

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"encoding/json"
	"html"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/fault"
)

// Page is what a page shows. Its JSON is what the page's script reads.
type Page struct {
	Title string `json:"title"` // the file's name, or both
	Facts []Fact `json:"facts"`
	Rows  []Row  `json:"rows"`
	// Left counts the tensors that are not in Rows, the smallest of very many.
	Left     int       `json:"left,omitempty"`
	Warnings []Warning `json:"warnings"`
	Values   []Named   `json:"values"`
	Opaque   []Named   `json:"opaque"`
	Findings []Finding `json:"findings"`
	// Scan is the verdict of the scan in words, "" where there was none.
	Scan string `json:"scan,omitempty"`
	// Alert counts the Findings in words, "" where there are none.
	Alert string `json:"alert,omitempty"`
	// Pair says that rows compare two checkpoints.
	Pair bool `json:"pair,omitempty"`

	charts  []chart
	tensors int // of the first checkpoint, shown or not
	added   int // by the second
}

// Fact is one line of what the file is.
type Fact struct {
	Name string `json:"k"`
	Text string `json:"v"`
}

// Named is a value or an object that is no tensor.
type Named struct {
	Name string `json:"n"`
	Text string `json:"t"`
}

// Finding is a name that a plain torch.load would import.
type Finding struct {
	Grade string `json:"g"`
	Name  string `json:"n"`
	Place string `json:"p"`
}

// Find puts what a scan found on the page, at its top too.
func (p *Page) Find(findings ...Finding) {
	p.Findings = append(p.Findings, findings...)
	p.Alert = alert(p.Findings)
}

// alert counts findings in words, names once each: "1 dangerous name".
func alert(findings []Finding) string {
	counts, seen := map[string]int{}, map[Finding]bool{}
	for _, f := range findings {
		if f.Grade != "code" {
			f.Place = ""
		}
		if !seen[f] {
			seen[f] = true
			counts[f.Grade]++
		}
	}
	var parts []string
	for _, kind := range []struct{ grade, what string }{
		{"dangerous", "dangerous name"}, {"unknown", "unknown name"}, {"code", "record of source code"}, {"formats", "further format"},
	} {
		switch n := counts[kind.grade]; {
		case n == 1 || n > 1 && kind.grade != "code":
			parts = append(parts, human.Plural(n, kind.what))
		case n > 1:
			parts = append(parts, human.Count(n)+" records of source code")
		}
	}
	return strings.Join(parts, ", ")
}

// Warning is about one row.
type Warning struct {
	Row  int    `json:"r"`
	Text string `json:"t"`
}

// Row is one tensor.
type Row struct {
	Name  string `json:"n"`
	DType string `json:"d"`
	Shape string `json:"s"`
	Bytes int64  `json:"b"`
	Count int64  `json:"e"` // elements
	Note  string `json:"x,omitempty"`
	Stats *Stats `json:"v,omitempty"` // nil where values were not, or cannot be, read
	Other *Stats `json:"w,omitempty"` // of the second checkpoint
	Drift *Drift `json:"f,omitempty"`
	Kind  string `json:"k,omitempty"` // in a pair: "same" or the kind of difference
}

// Stats describes a tensor's values. Minimum to histogram are of the finite ones,
// and absent where there are none.
type Stats struct {
	Min  *float64 `json:"lo,omitempty"`
	Max  *float64 `json:"hi,omitempty"`
	Mean *float64 `json:"mean,omitempty"`
	Std  *float64 `json:"std,omitempty"`
	NaN  int64    `json:"nan,omitempty"`
	Inf  int64    `json:"inf,omitempty"`
	Zero int64    `json:"zero,omitempty"`
	// Dead counts the output channels, along the first axis, that are all zeros.
	Dead     int64 `json:"dead,omitempty"`
	Channels int64 `json:"ch,omitempty"` // output channels there are, of a tensor with two dimensions or more
	// Hist counts the values between From and To in bins of one width.
	Hist []int64 `json:"h,omitempty"`
	From float64 `json:"h0,omitempty"`
	To   float64 `json:"h1,omitempty"`
}

// Drift says how far two tensors of one name are apart.
type Drift struct {
	MaxAbs *float64 `json:"abs,omitempty"`
	MaxRel *float64 `json:"rel,omitempty"`
	L2     *float64 `json:"l2,omitempty"` // length of the difference over the length of the first
	Differ int64    `json:"n"`            // elements that are not equal
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// maxText bounds one piece of text from a file.
const maxText = 300

// clean makes text from a file fit to be shown.
func clean(text string) string { return fault.Clean(text, maxText) }

// HTML returns the page. Its template is filled by hand: html/template would keep
// the linker from leaving out the methods that nothing calls, a tenth of the
// whole program. What comes from a file is in two places: the title, escaped, and
// JSON, in which encoding/json escapes <, > and &.
func (p *Page) HTML() ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	charts, err := drawAll(p.charts)
	if err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer(
		"{{title}}", html.EscapeString(p.Title),
		"{{css}}", pageCSS,
		"{{js}}", pageJS,
		"{{hash}}", hash(pageJS),
		"{{data}}", string(data),
		"{{charts}}", charts,
	).Replace(pageHTML)), nil
}

// hash is how a Content-Security-Policy names the one script that may run.
func hash(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
