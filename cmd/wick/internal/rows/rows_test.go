package rows

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestWriteKeepsTheOrder(t *testing.T) {
	for _, n := range []int{0, 1, Block - 1, Block, Block + 1, 5*Block + 17} {
		var got, want strings.Builder
		err := Write(&got, n, func() Maker {
			return func(b []byte, i int) []byte { return append(strconv.AppendInt(b, int64(i), 10), '\n') }
		})
		for i := range n {
			want.WriteString(strconv.Itoa(i) + "\n")
		}
		if err != nil || got.String() != want.String() {
			t.Errorf("%d rows: %d bytes, want %d, %v", n, got.Len(), want.Len(), err)
		}
	}
}

func TestWriteStopsAtAnError(t *testing.T) {
	r, w := io.Pipe()
	cause := errors.New("nobody reads")
	if err := r.CloseWithError(cause); err != nil {
		t.Fatal(err)
	}
	err := Write(w, 1<<30, func() Maker {
		return func(b []byte, _ int) []byte { return append(b, 'x') }
	})
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

type seen struct{ rows []int }

func (s *seen) Row(i int) { s.rows = append(s.rows, i) }

func TestVisitSeesEachRowOnce(t *testing.T) {
	for _, n := range []int{0, 1, Block + 1, 7*Block + 3} {
		var all []int
		for _, v := range Visit(n, func() *seen { return &seen{} }) {
			all = append(all, v.rows...)
		}
		slices.Sort(all)
		for i := range n {
			if i >= len(all) || all[i] != i {
				t.Fatalf("of %d rows %d were seen", n, len(all))
			}
		}
	}
}
