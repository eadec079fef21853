package rules

import (
	"strings"

	"github.com/wick-ml/wick/fault"
)

// Rules can double names: thirty lines make one of a gigabyte. The names of a
// tree, all together, may take 8 MiB, or eight times what they took before where
// that is more.
const (
	nameFloor = 8 << 20
	nameShare = 8
)

// nameRoom is how many bytes names may take.
type nameRoom struct{ most, left int }

func newNameRoom(names int) nameRoom {
	most := max(nameFloor, nameShare*names)
	return nameRoom{most, most}
}

// take is a [fault.ErrLimit] error when a name of n bytes is too much.
func (r *nameRoom) take(n int) error {
	if n > r.left {
		return fault.NewBound("bytes of names", int64(r.most-r.left)+int64(n), int64(r.most))
	}
	r.left -= n
	return nil
}

// expand returns the name that a target makes of captures, if there is room.
func (r *nameRoom) expand(p *Pattern, captures map[string]string) (string, error) {
	size := 0
	for _, q := range p.pieces {
		size += len(q.text)
		if q.kind == pieceCapture {
			size += len(captures[q.name])
		}
	}
	if err := r.take(size); err != nil {
		return "", err
	}
	return p.Expand(captures), nil
}

// replace is [regexp.Regexp.ReplaceAllString], if there is room, and whether the
// name matched.
func (r *nameRoom) replace(st *Rename, name string) (string, bool, error) {
	matches := st.From.regex.FindAllStringSubmatchIndex(name, -1)
	if matches == nil {
		return name, false, r.take(len(name))
	}
	references := strings.Count(st.Replacement, "$")
	var out []byte
	at := 0
	for _, m := range matches {
		longest := 0
		for i := 0; i < len(m); i += 2 {
			longest = max(longest, m[i+1]-m[i])
		}
		before := name[at:m[0]]
		if err := (&nameRoom{r.most, r.left}).take(len(out) + len(before) + len(st.Replacement) + references*longest); err != nil {
			return "", false, err
		}
		out = st.From.regex.ExpandString(append(out, before...), st.Replacement, name, m)
		at = m[1]
	}
	out = append(out, name[at:]...)
	return string(out), true, r.take(len(out))
}
