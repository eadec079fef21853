package record

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// jsonLeaf is a tensor that was read and where its list stood in the text.
type jsonLeaf struct {
	tensor     *tensor.Tensor
	packed     []byte
	begin, end int
}

// leaf takes {"dtype": …, "shape": […], "data": […]} in this order: the list is
// packed as it is read.
func (r *jsonReader) leaf(in *strictjson.Reader) (nested.Value, error) {
	var dtype string
	var shape []int64
	known := false
	var out *nested.Tensor
	at := in.Offset()
	err := in.Object(func(key string) (err error) {
		switch key {
		case "dtype":
			dtype, err = in.Text()
		case "shape":
			known = true
			err = in.Array(func() error {
				n, err := in.Uint()
				shape = append(shape, n)
				return err
			})
		case "data":
			if dtype == "" || !known {
				return in.Wrong("dtype and shape, before data,")
			}
			out, err = r.data(in, dtype, shape)
		default:
			err = in.Skip()
		}
		return err
	})
	if err == nil && out == nil {
		err = fault.At(fault.New(fault.Malformed, "a tensor without data").Needs("dtype, shape and data", ""), int64(at))
	}
	return out, err
}

func (r *jsonReader) data(in *strictjson.Reader, dtype string, shape []int64) (*nested.Tensor, error) {
	at := int64(in.Offset())
	d, ok := tensor.ParseDType(dtype)
	spell, parts, known := spellingOf(d)
	if !ok || !known {
		return nil, fault.New(fault.Unsupported, "dtype "+dtype).At(at).Needs("a dtype that PyTorch has", "correct the name")
	}
	elements, ok := count(shape)
	if room := int64(in.Remaining()); !ok || elements > room/int64(parts) || elements*int64(parts)*2-1 > room {
		return nil, fault.New(fault.Malformed, "shape "+tensor.ShapeString(shape)+" with "+strconv.FormatInt(room, 10)+" bytes left").At(at).
			Needs("a number for every element", "the text was cut off or is damaged: get it again")
	}
	in.Kind() // goes to the list itself
	leaf := jsonLeaf{packed: make([]byte, elements*int64(parts)*int64(spell.size)), begin: in.Offset()}
	if err := fill(in, spell, leaf.packed); err != nil {
		return nil, err
	}
	leaf.end = in.Offset()
	storage := tensor.NewStorage(tensor.StorageSpec{Name: strconv.Itoa(len(r.leaves)), Size: int64(len(leaf.packed)), Memory: leaf.packed})
	t, err := tensor.New(tensor.Spec{Storage: storage, DType: d, Shape: shape})
	if err != nil {
		return nil, fault.At(err, at)
	}
	leaf.tensor = t
	r.leaves = append(r.leaves, leaf)
	return &nested.Tensor{Tensor: t, Class: "torch.Tensor"}, nil
}

// fill packs the elements of a list.
func fill(in *strictjson.Reader, spell spelling, packed []byte) error {
	rest := packed
	err := in.Array(func() error {
		if len(rest) == 0 {
			return in.Wrong("the end of the list, whose shape is full,")
		}
		at := in.Offset()
		ok, err := spell.read(rest[:spell.size], in)
		if err == nil && !ok {
			err = fault.At(fault.New(fault.Malformed, "a number that its dtype does not have").Needs("a number in range", "correct it"), int64(at))
		}
		rest = rest[spell.size:]
		return err
	})
	if err == nil && len(rest) > 0 {
		err = in.Wrong(strconv.Itoa(len(rest)/spell.size) + " more elements, as the shape says,")
	}
	return err
}

func (r *jsonReader) readSums(in *strictjson.Reader) error {
	r.order = in.Offset()
	return in.Array(func() error {
		s, err := in.Text()
		r.sums = append(r.sums, s)
		return err
	})
}

// check compares the checksums with what was read.
func (r *jsonReader) check(root nested.Value) error {
	if len(r.sums) != len(r.leaves)+1 {
		return fault.At(fault.New(fault.Malformed, strconv.Itoa(len(r.sums))+" checksums for "+strconv.Itoa(len(r.leaves))+" tensors and the text").
			Needs("one for each", cureEdited), int64(r.order))
	}
	for i := range r.leaves {
		if err := r.checkOne(i, crc32.ChecksumIEEE(r.leaves[i].packed), "tensor "+strconv.Itoa(i)); err != nil {
			return fault.OnPath(err, pathTo(root, r.leaves[i].tensor).String())
		}
	}
	return r.checkOne(len(r.leaves), r.textSum(), "the text")
}

// pathTo returns the first way from root to a tensor, nil if it lies inside of a
// larger value.
func pathTo(root nested.Value, t *tensor.Tensor) (way nested.Path) {
	found := errors.New("found")
	_ = nested.Walk(root, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		if leaf, ok := v.(*nested.Tensor); ok && leaf.Tensor == t {
			way = slices.Clone(path)
			return found
		}
		return nil
	})
	return way
}

const cureEdited = `take the member "` + keySums + `" out if you edited the file, else get it again`

func (r *jsonReader) checkOne(i int, sum uint32, what string) error {
	if got := fmt.Sprintf("%08x", sum); got != r.sums[i] {
		return fault.New(fault.Checksum, "the CRC-32 of "+what+" is "+got).Needs(r.sums[i], cureEdited)
	}
	return nil
}

// textSum is the sum of the text in front of the checksums without the lists
// of the tensors.
func (r *jsonReader) textSum() uint32 {
	sum, at := uint32(0), 0
	end := r.order - len(`"`+keySums+`":`)
	for i := range r.leaves {
		sum = crc32.Update(sum, crc32.IEEETable, r.text[at:r.leaves[i].begin])
		at = r.leaves[i].end
	}
	if at > end {
		return ^sum // the checksums stand before a tensor: not as we write it
	}
	return crc32.Update(sum, crc32.IEEETable, r.text[at:end])
}
