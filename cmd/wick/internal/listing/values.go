package listing

import (
	"iter"

	"github.com/wick-ml/wick/nested"
)

// Values are the rows of plain values, in the order of the file. A megabyte of
// pickle can hold hundreds of thousands, so they lie in pages: growing copies
// none of them and leaves nothing behind.
type Values struct {
	pages [][]Value
	n     int
}

const valuePage = 1 << 10

func (v *Values) add(row Value) {
	last := len(v.pages) - 1
	if last < 0 || len(v.pages[last]) == valuePage {
		v.pages = append(v.pages, make([]Value, 0, min(valuePage, 8+v.n)))
		last++
	}
	if page := v.pages[last]; len(page) == cap(page) {
		v.pages[last] = append(make([]Value, 0, min(valuePage, 2*len(page))), page...)
	}
	v.pages[last] = append(v.pages[last], row)
	v.n++
}

// Len returns how many there are.
func (v *Values) Len() int { return v.n }

// All yields them in the order of the file. The rows may be kept.
func (v *Values) All() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for _, page := range v.pages {
			for i := range page {
				if !yield(&page[i]) {
					return
				}
			}
		}
	}
}

// drop takes out the rows whose paths it is told to.
func (v *Values) drop(is func(nested.Path) bool) {
	var kept Values
	for row := range v.All() {
		if !is(row.Path) {
			kept.add(*row)
		}
	}
	*v = kept
}
