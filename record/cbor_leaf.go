package record

import (
	"math"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// rowMajor reads [dimensions, typed array] behind tag 40.
func (r *cborReader) rowMajor() (nested.Value, error) {
	shape, err := r.sizes()
	if err != nil {
		return nil, err
	}
	tag, err := r.head()
	if err != nil {
		return nil, err
	}
	if _, ok := arrayOf[tag.n]; tag.major != majorTag || !ok {
		return nil, fault.New(fault.Unsupported, "an array of values that are not packed").At(r.at).
			Needs("a typed array of RFC 8746 with a dtype that PyTorch has", "pack the values before writing")
	}
	tagNumber := tag.n
	data, err := r.head()
	if err != nil {
		return nil, err
	}
	if data.major != majorBytes {
		return nil, r.broken("a typed array without bytes", "a byte string", "")
	}
	return r.array(tagNumber, data, shape)
}

// sizes reads a list of dimensions.
func (r *cborReader) sizes() ([]int64, error) {
	h, err := r.head()
	if err != nil {
		return nil, err
	}
	if h.major != majorArray || h.n > tensor.MaxDims+1 {
		return nil, r.broken("an array without dimensions, or of too many", "a list of at most "+strconv.Itoa(tensor.MaxDims)+" sizes", "")
	}
	shape := make([]int64, h.n)
	for i := range shape {
		size, err := r.head()
		if err != nil {
			return nil, err
		}
		if size.major != majorUint || size.n > math.MaxInt64 {
			return nil, r.broken("a dimension that is no size", "an integer from 0 on", fault.GetAgain)
		}
		shape[i] = int64(size.n)
	}
	return shape, nil
}

// array notes the byte string of a typed array and goes past it. Without a
// shape it is a vector.
func (r *cborReader) array(tag uint64, data head, shape []int64) (nested.Value, error) {
	kind := arrayOf[tag]
	n := int64(data.n) // head has compared it with the file
	if shape == nil {
		shape = []int64{n / int64(kind.dtype.Size())}
	}
	if elements, ok := count(shape); !ok || elements > math.MaxInt64/8 || elements*int64(kind.dtype.Size()) != n {
		return nil, r.broken(strconv.FormatInt(n, 10)+" bytes for "+kind.dtype.String()+" "+tensor.ShapeString(shape),
			"as many as the shape takes", fault.GetAgain)
	}
	p := pending{leaf: &nested.Tensor{Class: "torch.Tensor"}}
	p.spec = tensor.StorageSpec{Name: strconv.Itoa(len(r.leaves)), Size: n, Order: kind.order, Guard: checkpoint.GuardOf(r.source)}
	p.spec.File, p.spec.Offset = checkpoint.Place(r.source, r.at)
	p.spec.Memory, _ = checkpoint.LentRange(r.source, r.at, n)
	p.view = tensor.Spec{DType: kind.dtype, Shape: shape}
	r.leaves = append(r.leaves, p)
	if err := checkpoint.At("tensors", int64(len(r.leaves)), r.limits.Tensors); err != nil {
		return nil, err
	}
	r.skip(n)
	return p.leaf, nil
}

func count(shape []int64) (n int64, ok bool) {
	n = 1
	for _, s := range shape {
		if s != 0 && n > math.MaxInt64/s {
			return 0, false
		}
		n *= s
	}
	return n, true
}

// retype gives the tensor of wick.tensor(dtype, bits) its dtype.
func (r *cborReader) retype(args []nested.Value, at int64) (nested.Value, error) {
	bad := fault.At(fault.New(fault.Malformed, "a tensor of a dtype that its bits do not fit").
		Needs("a dtype and its carrier", fault.GetAgain), at)
	if len(args) != 2 || len(r.leaves) == 0 {
		return nil, bad
	}
	name, okName := args[0].(nested.String)
	leaf, okLeaf := args[1].(*nested.Tensor)
	d, known := tensor.ParseDType(string(name))
	p := &r.leaves[len(r.leaves)-1]
	if !okName || !okLeaf || leaf != p.leaf {
		return nil, bad
	}
	if !known || d.String() != string(name) {
		return nil, fault.At(fault.New(fault.Unsupported, "dtype "+string(name)).Needs("a dtype that PyTorch has", "use a newer wick"), at)
	}
	by, parts, ok := carrier(d)
	if !ok || by == d || by != p.view.DType {
		return nil, bad
	}
	if last := len(p.view.Shape) - 1; parts > 1 {
		if last < 0 || p.view.Shape[last] != int64(parts) {
			return nil, bad
		}
		p.view.Shape = p.view.Shape[:last]
	}
	p.view.DType = d
	return leaf, nil
}

// settle makes the tensors, with their checksums if there are any. The storages are
// called by the tensors' paths; those inside of larger values keep their number.
func (r *cborReader) settle(root nested.Value, sums []uint32, info *checkpoint.Info) error {
	if err := r.name(root); err != nil {
		return err
	}
	for i := range r.leaves {
		p := &r.leaves[i]
		if sums != nil {
			p.spec.CRC32, p.spec.HasCRC = sums[i], true
		}
		p.view.Storage = tensor.NewStorage(p.spec)
		t, err := tensor.New(p.view)
		if err != nil {
			return err
		}
		p.leaf.Tensor = t
		info.Storages = append(info.Storages, p.view.Storage)
	}
	return nil
}

// name calls the storages by the paths of their tensors.
func (r *cborReader) name(root nested.Value) error {
	of := make(map[*nested.Tensor]*pending, len(r.leaves))
	for i := range r.leaves {
		of[r.leaves[i].leaf] = &r.leaves[i]
	}
	limits := nested.WalkLimits{Paths: r.limits.Paths, Depth: int(r.limits.Depth)}
	return nested.Walk(root, limits, func(path nested.Path, v nested.Value) error {
		leaf, _ := v.(*nested.Tensor)
		if p := of[leaf]; p != nil {
			p.spec.Name = path.String()
		}
		return nil
	})
}
