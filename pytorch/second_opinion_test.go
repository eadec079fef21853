package pytorch

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	gopickle "github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// TestSecondOpinion loads pickles with another reader too, and compares where
// that one can read them.
func TestSecondOpinion(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the other reader cuts integers to the machine's int")
	}
	compared := 0
	compare := func(name string, data []byte) {
		theirs, err := otherOpinion(data)
		if err != nil {
			return
		}
		v, err := newLoader(8).load(pickle.NewCursor(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if ours := show(v); ours != theirs {
			t.Errorf("%s:\n  ours %.300s\ntheirs %.300s", name, ours, theirs)
		}
		compared++
	}
	for _, p := range pythonPickles(t) {
		for protocol, text := range p.Pickles {
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			if p.Name == "texts" && protocol == 0 {
				continue // the other one does not resolve UNICODE's escapes
			}
			compare(fmt.Sprintf("%s, protocol %d", p.Name, protocol), data)
		}
	}
	for i, v := range []any{
		lst{1, -1, int64(1 << 40), true, nil, 1.5, "text", tup{}, tup{1}, tup{1, 2, 3, 4}}, dct{"a", 1, 2, "b", nil, lst{}},
		filled{reduce{cls("collections OrderedDict"), tup{}}, nil, dct{"a", 1}}, raw("L12345678901234567890123L\n"), raw("U\x03abc"), raw("(lI1\na"), raw("(dS'k'\nF0.5\ns"),
		raw("K\x01q\x00h\x00h\x00\x87"), raw("]q\x00(K\x01h\x00K\x02e0K\x07"), raw("(K\x01K\x021K\x03"),
	} {
		compare(fmt.Sprintf("assembled %d", i), assemble(v))
	}
	if compared < 20 {
		t.Errorf("only %d were compared", compared)
	}
	t.Log(compared, "compared")
}

var errOdd = errors.New("not for us")

// otherOpinion is what the other reader makes of a pickle, spelled as show does.
// It panics on some.
func otherOpinion(data []byte) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errOdd
		}
	}()
	v, err := gopickle.Loads(string(data))
	if err != nil {
		return "", err
	}
	return showOther(v)
}

func showOther(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		return nested.Repr(nested.Bool(v)), nil
	case int:
		return nested.Repr(nested.Int(v)), nil
	case *big.Int:
		return v.String(), nil
	case float64:
		return nested.Repr(nested.Float(v)), nil
	case string:
		return showText(v), nil
	case []byte:
		return "bytes:" + hex.EncodeToString(v), nil
	case *types.List:
		return showOthers("list", "[", "]", *v)
	case *types.Tuple:
		return showOthers("tuple", "[", "]", *v)
	case *types.Dict:
		var parts []string
		for _, e := range *v {
			k, err := showOther(e.Key)
			x, err2 := showOther(e.Value)
			if err != nil || err2 != nil {
				return "", errOdd
			}
			parts = append(parts, k+": "+x)
		}
		return "dict{" + strings.Join(parts, ", ") + "}", nil
	case *types.Set:
		var items []any
		for item := range *v {
			items = append(items, item)
		}
		return showOthers("set", "{", "}", items)
	}
	return "", errOdd
}

func showOthers(class, open, closing string, items []any) (string, error) {
	parts := make([]string, len(items))
	for i, item := range items {
		text, err := showOther(item)
		if err != nil {
			return "", err
		}
		parts[i] = text
	}
	if class == "set" {
		slices.Sort(parts)
	}
	return class + open + strings.Join(parts, ", ") + closing, nil
}
