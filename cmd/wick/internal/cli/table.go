package cli

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/wick-ml/wick/cmd/wick/internal/rows"
)

// table collects cells and prints them in aligned columns.
type table struct {
	head  []string
	right []bool // columns that are aligned at their right
	rows  [][]cell
	lazy  *lazyRows // instead of rows

	// Where a terminal has no room for a line, columns are left out, the first of
	// spare first, then the texts of cut lose their middle; with wrap the texts of
	// the last column go on below themselves.
	spare, cut []int
	wrap       bool
}

// lazyRows are rows that are made when they are needed, which is twice: for the
// widths of the columns and to be printed. A million rows are never there at once.
type lazyRows struct {
	n     int
	maker func() cellMaker // for each worker one
}

// cellMaker appends the cells of row i.
type cellMaker func(i int, cells []cell) []cell

type cell struct {
	text  string // clean, without escapes
	style style
}

// add appends a row of plain cells.
func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// print writes the table. Columns whose cells are all empty are left out.
func (t *table) print(s *streams) error {
	if t.wrap && s.width > 0 {
		t.wrapLast(s.width)
	}
	width := t.widths()
	if s.width > 0 {
		t.fit(width, s.width)
	}
	if len(width) > 0 && t.head != nil {
		heads := make([]cell, len(t.head))
		for i, h := range t.head {
			heads[i] = cell{h, dim}
		}
		if _, err := s.out.Write(t.line(nil, s, heads, width)); err != nil {
			return err
		}
	}
	lazy := t.made()
	return rows.Write(s.out, lazy.n, func() rows.Maker {
		cells := lazy.maker()
		var row []cell
		return func(b []byte, i int) []byte {
			row = cells(i, row[:0])
			return t.line(b, s, row, width)
		}
	})
}

// made are the rows, whoever makes them.
func (t *table) made() *lazyRows {
	if t.lazy != nil {
		return t.lazy
	}
	return &lazyRows{len(t.rows), func() cellMaker {
		return func(i int, cells []cell) []cell { return append(cells, t.rows[i]...) }
	}}
}

// measure is the widths of the columns of some rows.
type measure struct {
	maker cellMaker
	row   []cell
	width []int
}

// Row takes a row into account.
func (m *measure) Row(i int) {
	m.row = m.maker(i, m.row[:0])
	for i, c := range m.row {
		m.widen(i, textWidth(c.text))
	}
}

func (m *measure) widen(i, width int) {
	if i == len(m.width) {
		m.width = append(m.width, 0)
	}
	m.width[i] = max(m.width[i], width)
}

func (t *table) widths() []int {
	lazy := t.made()
	var all measure
	for _, part := range rows.Visit(lazy.n, func() *measure { return &measure{maker: lazy.maker()} }) {
		for i, w := range part.width {
			all.widen(i, w)
		}
	}
	width := all.width
	for i, h := range t.head {
		if i < len(width) && width[i] > 0 {
			width[i] = max(width[i], textWidth(h))
		}
	}
	return width
}

// leastCut is how narrow a column becomes at most.
const leastCut = 16

// fit takes from columns what is more than a terminal's room. Where that does not
// help, the terminal breaks the lines anyway, and only what is wider than it all alone
// is cut.
func (t *table) fit(width []int, room int) {
	for _, i := range t.spare {
		if lineWidth(width) <= room {
			return
		}
		if i < len(width) {
			width[i] = 0
		}
	}
	whole := slices.Clone(width)
	for over := lineWidth(width) - room; over > 0; over-- {
		widest := -1
		for _, i := range t.cut {
			if i < len(width) && width[i] > leastCut && (widest < 0 || width[i] > width[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			copy(width, whole)
			t.cutWidest(width, room)
			return
		}
		width[widest]--
	}
}

// cutWidest cuts columns that are wider than the terminal to half of it.
func (t *table) cutWidest(width []int, room int) {
	for _, i := range t.cut {
		if i < len(width) && width[i] > room && room/2 >= leastCut {
			width[i] = room / 2
		}
	}
}

func lineWidth(width []int) int {
	sum := -columnGap
	for _, w := range width {
		if w > 0 {
			sum += w + columnGap
		}
	}
	return sum
}

// wrapLast breaks the texts of the last column into rows of their own.
func (t *table) wrapLast(room int) {
	width := t.widths()
	last := len(width) - 1
	if last < 1 || lineWidth(width) <= room {
		return
	}
	room -= lineWidth(width[:last]) + columnGap
	if room < leastCut {
		return
	}
	var rows [][]cell
	for _, row := range t.rows {
		if len(row) <= last {
			rows = append(rows, row)
			continue
		}
		for i, text := range wrap(row[last].text, room) {
			line := make([]cell, last+1)
			if i == 0 {
				copy(line, row)
			}
			line[last] = cell{text, row[last].style}
			rows = append(rows, line)
		}
	}
	t.rows = rows
}

// squeezed cuts the middle of a text to some columns; of a name the end tells most.
func squeezed(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	runes := []rune(text)
	head, used := 0, 0
	for head < len(runes) && used+runeWidth(runes[head]) <= width/3 {
		used += runeWidth(runes[head])
		head++
	}
	tail := len(runes)
	used++ // the ellipsis
	for tail > head && used+runeWidth(runes[tail-1]) <= width {
		tail--
		used += runeWidth(runes[tail])
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// line appends a row as text.
func (t *table) line(b []byte, s *streams, row []cell, width []int) []byte {
	pending := 0 // spaces owed before the next text, so that no line ends in spaces
	for i, c := range row {
		if width[i] == 0 {
			continue
		}
		gap := width[i] - textWidth(c.text)
		if gap < 0 {
			c.text = squeezed(c.text, width[i])
			gap = width[i] - textWidth(c.text)
		}
		if i < len(t.right) && t.right[i] {
			pending, gap = pending+gap, 0
		}
		if c.text != "" {
			b = appendSpaces(b, pending)
			b = append(b, s.paint(c.style, c.text)...)
			pending = 0
		}
		pending += gap + columnGap
	}
	return append(b, '\n')
}

const columnGap = 2

func appendSpaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

// textWidth returns the columns that a terminal gives to a text: none for
// combining marks, two for wide letters of East Asia and pictures.
func textWidth(s string) int {
	n := len(s)
	if isASCII(s) {
		return n
	}
	n = 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case isWide(r):
		return 2
	default:
		return 1
	}
}

// isWide covers the wide and fullwidth blocks of Unicode's EastAsianWidth.txt.
func isWide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115F || r >= 0x2E80 && r <= 0xA4CF && r != 0x303F || r >= 0xAC00 && r <= 0xD7A3 ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0xFE30 && r <= 0xFE6F || r >= 0xFF00 && r <= 0xFF60 ||
		r >= 0xFFE0 && r <= 0xFFE6 || r >= 0x1F300 && r <= 0x1FAFF || r >= 0x20000 && r <= 0x3FFFD)
}
