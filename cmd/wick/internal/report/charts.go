package report

import (
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-analyze/charts"
)

// chart is a bar chart that is still to be drawn.
type chart struct {
	title  string
	labels []string
	values []float64
	format func(float64) string
}

// drawAll draws charts, each in the colours of a light and of a dark page.
func drawAll(list []chart) (string, error) {
	var out strings.Builder
	for _, c := range list {
		light, err := c.draw(lightTheme)
		if err != nil {
			return "", err
		}
		dark, err := c.draw(darkTheme)
		if err != nil {
			return "", err
		}
		out.WriteString("<figure><figcaption>" + html.EscapeString(c.title) + `</figcaption><div class="light">` + light +
			`</div><div class="dark" aria-hidden="true">` + dark + "</div></figure>\n")
	}
	return out.String(), nil
}

var (
	lightTheme = theme(false, "#3d4450", "#dfe3ea", "#2f6fb3")
	darkTheme  = theme(true, "#c4cad4", "#343b47", "#6ea8e0")
)

func theme(dark bool, text, line, bar string) charts.ColorPalette {
	ink, rule := charts.ColorFromHex(text), charts.ColorFromHex(line)
	return charts.MakeTheme(charts.ThemeOption{
		IsDarkMode: dark, TextColor: ink, TextColorXAxis: ink, TextColorYAxis: ink, TextColorLabel: ink,
		AxisStrokeColor: rule, AxisSplitLineColor: rule, BackgroundColor: charts.ColorTransparent,
		SeriesColors: []charts.Color{charts.ColorFromHex(bar)},
	})
}

const (
	chartWidth = 460
	barHeight  = 22
	chartFrame = 12 // padding
	valueRoom  = 80 // right of the longest bar, for its value in whatever font the reader's browser has
)

// draw draws horizontal bars, the first at the top. The library escapes labels.
func (c *chart) draw(palette charts.ColorPalette) (string, error) {
	labels, values := reversed(c.labels), reversed(c.values)
	for i := range labels { // fonts of browsers are wider than that of the library
		labels[i] += strings.Repeat("\u00a0", 1+utf8.RuneCountInString(labels[i])/8)
	}
	opt := charts.NewBarChartOptionWithData([][]float64{values})
	opt.Horizontal = true
	opt.Theme = palette
	opt.Padding = charts.NewBox(0, 4, valueRoom, 4)
	opt.CategoryAxis.Labels = labels
	opt.CategoryAxis.LabelFontStyle = charts.NewFontStyleWithSize(11)
	opt.CategoryAxis.LabelCount = len(labels)
	opt.ValueFormatter = c.format
	opt.ValueAxis = []charts.ValueAxisOption{{Show: charts.Ptr(false), Min: charts.Ptr(0.0), Max: charts.Ptr(slices.Max(values))}}
	opt.Legend.Show = charts.Ptr(false)
	opt.SeriesList[0].Label = charts.SeriesLabel{Show: charts.Ptr(true), ValueFormatter: c.format, FontStyle: charts.NewFontStyleWithSize(10)}
	p := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: barHeight*len(labels) + chartFrame,
	})
	if err := p.BarChart(opt); err != nil {
		return "", err
	}
	b, err := p.Bytes()
	return string(b), err
}

func reversed[T any](list []T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[len(list)-1-i] = v
	}
	return out
}

// finite returns a pointer to f, nil where JSON has no number for it.
func finite(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}
