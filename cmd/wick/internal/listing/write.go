package listing

import (
	"bufio"
	"iter"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/rows"
)

// WriteJSON writes the listing as one JSON document, one row to a line. It has
// "sets" only where there are any.
func (l *Listing) WriteJSON(w *bufio.Writer) error {
	head := l.head()
	head = append(head[:len(head)-1], `,"tensors":[`...)
	_, _ = w.Write(head) // w keeps its first error and Flush returns it
	l.writeTensors(w)
	_, _ = w.WriteString(`],"values":[`)
	writeSeq(w, func(yield func([]byte) bool) {
		for v := range l.Values.All() {
			if !yield(v.JSON()) {
				return
			}
		}
	})
	_, _ = w.WriteString(`],"opaque":[`)
	writeRows(w, len(l.Opaque), func(i int) []byte { return l.Opaque[i].JSON() })
	_, _ = w.WriteString("]")
	if len(l.Sets) > 0 {
		_, _ = w.WriteString(`,"sets":[`)
		writeRows(w, len(l.Sets), func(i int) []byte { return l.Sets[i].JSON() })
		_, _ = w.WriteString("]")
	}
	_, err := w.WriteString("}\n")
	return err
}

func (l *Listing) head() []byte {
	var o jsonout.Object
	o.String("file", l.File)
	o.String("format", l.Format)
	return o.Bytes()
}

// writeTensors writes the rows of tensors.
func (l *Listing) writeTensors(w *bufio.Writer) {
	n := len(l.Tensors)
	_ = rows.Write(w, n, func() rows.Maker { // w keeps its first error
		var row jsonout.Object
		return func(b []byte, i int) []byte {
			if i > 0 {
				b = append(b, ',')
			}
			return append(append(b, '\n'), l.tensorJSON(&row, &l.Tensors[i])...)
		}
	})
	if n > 0 {
		_ = w.WriteByte('\n')
	}
}

func writeRows(w *bufio.Writer, n int, row func(int) []byte) {
	writeSeq(w, func(yield func([]byte) bool) {
		for i := range n {
			if !yield(row(i)) {
				return
			}
		}
	})
}

func writeSeq(w *bufio.Writer, rows iter.Seq[[]byte]) {
	n := 0
	for row := range rows {
		if n++; n > 1 {
			_ = w.WriteByte(',') // as above
		}
		_ = w.WriteByte('\n')
		_, _ = w.Write(row)
	}
	if n > 0 {
		_ = w.WriteByte('\n')
	}
}

// WriteLines writes the same rows as objects of their own, one to a line, each
// with one key that says what it is: "file", "tensor", "value", "set" or
// "opaque".
func (l *Listing) WriteLines(w *bufio.Writer) error {
	line(w, "file", l.head())
	var row jsonout.Object
	for i := range l.Tensors {
		line(w, "tensor", l.tensorJSON(&row, &l.Tensors[i]))
	}
	for v := range l.Values.All() {
		line(w, "value", v.JSON())
	}
	for i := range l.Sets {
		line(w, "set", l.Sets[i].JSON())
	}
	for i := range l.Opaque {
		line(w, "opaque", l.Opaque[i].JSON())
	}
	_, err := w.Write(nil)
	return err
}

func line(w *bufio.Writer, kind string, row []byte) {
	var o jsonout.Object
	o.Raw(kind, row)
	_, _ = w.Write(append(o.Bytes(), '\n')) // w keeps its first error
}
