package pytorch

import (
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

const (
	classTensor    = "torch.Tensor"
	classParameter = "torch.nn.parameter.Parameter"
)

// rebuildCalls are torch's functions that make dense tensors (torch/_utils.py),
// and the classes that old files call themselves.
var rebuildCalls = map[string]callFunc{
	"torch._utils._rebuild_tensor":                        rebuildTensor,
	"torch._utils._rebuild_tensor_v2":                     rebuildTensorV2,
	"torch._utils._rebuild_tensor_v3":                     rebuildTensorV3,
	"torch._utils._rebuild_parameter":                     rebuildParameter,
	"torch._utils._rebuild_parameter_with_state":          rebuildParameter,
	"torch._utils._rebuild_meta_tensor_no_storage":        rebuildMeta,
	"torch._utils._rebuild_device_tensor_from_numpy":      rebuildFromArray,
	"torch._utils._rebuild_xla_tensor":                    rebuildFromArray,
	"torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuildFromArray,
	"torch.nn.parameter.Parameter":                        newParameter(classParameter),
	"torch.nn.Parameter":                                  newParameter(classParameter),
	"torch.nn.parameter.Buffer":                           newParameter("torch.nn.parameter.Buffer"),
	"torch.autograd.variable.Variable":                    newParameter(classTensor),
	"torch.autograd.Variable":                             newParameter(classTensor),
	"torch.Tensor":                                        newParameter(classTensor),
	"torch._tensor.Tensor":                                newParameter(classTensor),
	"torch.tensor.Tensor":                                 newParameter(classTensor),
	"torch.FloatTensor":                                   newLegacyTensor, "torch.DoubleTensor": newLegacyTensor,
	"torch.HalfTensor": newLegacyTensor, "torch.BFloat16Tensor": newLegacyTensor, "torch.LongTensor": newLegacyTensor,
	"torch.IntTensor": newLegacyTensor, "torch.ShortTensor": newLegacyTensor, "torch.CharTensor": newLegacyTensor,
	"torch.ByteTensor": newLegacyTensor, "torch.BoolTensor": newLegacyTensor,
	"torch.cuda.FloatTensor": newLegacyTensor, "torch.cuda.DoubleTensor": newLegacyTensor,
	"torch.cuda.HalfTensor": newLegacyTensor, "torch.cuda.LongTensor": newLegacyTensor,
	"torch.cuda.IntTensor": newLegacyTensor, "torch.cuda.ByteTensor": newLegacyTensor,
}

// borrowers are those of the calls that keep nothing of the list of their
// arguments and that a file can have millions of.
var borrowers = map[string]bool{
	"torch._utils._rebuild_tensor":    true,
	"torch._utils._rebuild_tensor_v2": true,
	"torch._utils._rebuild_tensor_v3": true,
	"torch._utils._rebuild_parameter": true,
}

// storageOf returns the storage that a value stands for.
func storageOf(v nested.Value) (*storageEntry, bool) {
	t, ok := v.(*nested.Tensor)
	if !ok {
		return nil, false
	}
	e, ok := t.Attrs.(*storageEntry)
	return e, ok
}

// isTrue reads requires_grad.
func isTrue(v nested.Value) bool {
	b, ok := v.(nested.Bool)
	return bool(b) && ok
}

// dense lays a tensor out from (storage, offset, size, stride) as torch gives
// them. It is false without a storage.
func (l *loader) dense(args []nested.Value, d tensor.DType, conj, neg bool) (*nested.Tensor, bool) {
	e, ok := storageOf(args[0])
	if !ok {
		return nil, false
	}
	if d == tensor.Invalid {
		d = e.ref.DType
	}
	offset, isInt := args[1].(nested.Int)
	var isShape, isStrides bool
	l.shape, isShape = appendInts(l.shape[:0], args[2])
	l.strides, isStrides = appendInts(l.strides[:0], args[3])
	var t *tensor.Tensor
	if !isInt || !isShape || !isStrides {
		t = tensor.Unavailable(d, nil, noGeometry(args[1:4]))
	} else if t = l.overDims(d, l.shape); t == nil { // the maker copies what it keeps, so that the scratch can serve again
		t = e.lay(&l.maker, tensor.Spec{DType: d, Shape: l.shape, Strides: l.strides, Offset: int64(offset), Conj: conj, Neg: neg})
	}
	return l.newTensor(nested.Tensor{Tensor: t, Class: classTensor, Device: e.ref.Device}), true
}

// noGeometry is the fault of a tensor over a storage whose place in it nobody
// can tell.
func noGeometry(args []nested.Value) error {
	var parts []string
	for _, a := range args {
		parts = append(parts, nested.Repr(a))
	}
	return fault.New(fault.Malformed, "a tensor with offset, sizes and strides "+strings.Join(parts, ", ")).
		Needs("numbers of 64 bits", fault.MadeToDeceive)
}

// newTensor cuts a node from a block of them. Blocks are small, so that a tensor
// that is kept does not hold many others.
func (l *loader) newTensor(t nested.Tensor) *nested.Tensor {
	const block = 32
	if len(l.tensors) == 0 {
		l.tensors = make([]nested.Tensor, min(block, l.maker.Len()+1))
	}
	n := &l.tensors[0]
	l.tensors = l.tensors[1:]
	*n = t
	return n
}

// overDims is a row without bytes for a shape of too many dimensions, else nil.
func (l *loader) overDims(d tensor.DType, shape []int64) *tensor.Tensor {
	if err := checkpoint.At("ndim", int64(len(shape)), l.limits.NDim); err != nil {
		return tensor.Unavailable(d, nil, err)
	}
	return nil
}

// appendInts reads a tuple, a Size or a list of ints.
func appendInts(out []int64, v nested.Value) ([]int64, bool) {
	list, ok := v.(*nested.List)
	if !ok {
		return out, false
	}
	for _, item := range list.Items {
		n, ok := item.(nested.Int)
		if !ok {
			return out, false
		}
		out = append(out, int64(n))
	}
	return out, true
}

// rebuildTensor is _rebuild_tensor(storage, offset, size, stride).
func rebuildTensor(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	return asValue(l.dense(args, tensor.Invalid, false, false))
}

// asValue keeps a nil tensor from becoming a Value that is not nil.
func asValue(t *nested.Tensor, ok bool) (nested.Value, bool) {
	if !ok {
		return nil, false
	}
	return t, true
}

// rebuildTensorV2 is _rebuild_tensor_v2(storage, offset, size, stride,
// requires_grad, backward_hooks, metadata=None). The metadata holds the conj
// and neg bits, which change the values.
func rebuildTensorV2(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 6 && len(args) != 7 {
		return nil, false
	}
	return l.rebuildDense(args[:4], tensor.Invalid, args[4], args[6:])
}

// rebuildTensorV3 is _rebuild_tensor_v3(storage, offset, size, stride,
// requires_grad, backward_hooks, dtype, metadata=None), for the dtypes that
// have no typed storage.
func rebuildTensorV3(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 7 && len(args) != 8 {
		return nil, false
	}
	d, ok := dtypeOf(args[6])
	if !ok {
		return nil, false
	}
	return l.rebuildDense(args[:4], d, args[4], args[7:])
}

func (l *loader) rebuildDense(args []nested.Value, d tensor.DType, grad nested.Value, metadata []nested.Value) (nested.Value, bool) {
	var conj, neg bool
	if len(metadata) == 1 {
		if m, ok := metadata[0].(*nested.Map); ok {
			conj, neg = flag(m, "conj"), flag(m, "neg")
		}
	}
	t, ok := l.dense(args, d, conj, neg)
	if !ok {
		return nil, false
	}
	t.RequiresGrad = isTrue(grad)
	return t, true
}

func flag(m *nested.Map, name string) bool {
	v, _ := m.Lookup(name)
	return isTrue(v)
}

// rebuildParameter is _rebuild_parameter(data, requires_grad, hooks) and
// _rebuild_parameter_with_state, which adds attributes.
func rebuildParameter(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 3 && len(args) != 4 {
		return nil, false
	}
	v, ok := newParameter(classParameter)(l, args[:2])
	if t, isTensor := v.(*nested.Tensor); isTensor && len(args) == 4 {
		t.Attrs = attributes(args[3])
	}
	return v, ok
}

// newParameter is a class called directly with (data, requires_grad=True). Data
// that is no strided tensor, such as a sparse one, stays what it is.
func newParameter(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) == 0 || len(args) > 2 {
			return nil, false
		}
		switch data := args[0].(type) {
		case *nested.Tensor:
			if data.Tensor == nil {
				return nil, false
			}
			p := *data
			p.Class, p.RequiresGrad, p.Attrs = class, class == classParameter, nil
			if len(args) == 2 {
				p.RequiresGrad = isTrue(args[1])
			}
			return &p, true
		case *nested.Opaque:
			return data, true
		}
		return nil, false
	}
}

// attributes is the state of a tensor without empty parts: nil, a dict, or a
// dict and one of slots (torch/_utils.py, _set_obj_state).
func attributes(state nested.Value) nested.Value {
	switch s := state.(type) {
	case nested.None:
		return nil
	case *nested.Map:
		if s.Len() == 0 {
			return nil
		}
	case *nested.List:
		if dict, slots, ok := slotState(s); ok {
			switch {
			case slots.Len() == 0 && dict.Len() == 0:
				return nil
			case slots.Len() == 0:
				return dict
			case dict.Len() == 0:
				return slots
			}
		}
	}
	return state
}

// slotState reads the state of an object with __slots__: its dict or None, and
// a dict of the slots.
func slotState(s *nested.List) (dict, slots *nested.Map, ok bool) {
	if s.Class != "tuple" || len(s.Items) != 2 {
		return nil, nil, false
	}
	slots, ok = s.Items[1].(*nested.Map)
	if _, none := s.Items[1].(nested.None); none {
		slots, ok = nested.NewMap("dict"), true
	}
	dict, isMap := s.Items[0].(*nested.Map)
	if _, none := s.Items[0].(nested.None); none {
		dict, isMap = nested.NewMap("dict"), true
	}
	return dict, slots, ok && isMap
}

// newLegacyTensor is an empty tensor that BUILD gives its storage, as the first
// versions of torch wrote them.
func newLegacyTensor(_ *loader, args []nested.Value) (nested.Value, bool) {
	return &nested.Tensor{Tensor: tensor.Of([]float32{}), Class: classTensor}, len(args) == 0
}

// buildTensor gives state to a tensor (torch/_tensor.py, __setstate__): four
// items are (storage, offset, size, stride) of an old tensor; three are
// (requires_grad, volatile, hooks), five (data, hooks, …) of an old Variable;
// else attributes of a subclass.
func (l *loader) buildTensor(t *nested.Tensor, state nested.Value) nested.Value {
	if p, ok := t.Attrs.(*pendingArray); ok {
		return l.buildArray(t, p, state)
	}
	if _, isStorage := t.Attrs.(*storageEntry); isStorage {
		return t
	}
	s, ok := state.(*nested.List)
	switch {
	case ok && len(s.Items) == 4:
		if made, ok := l.dense(s.Items, tensor.Invalid, false, false); ok {
			t.Tensor, t.Device = made.Tensor, made.Device
			return t
		}
	case ok && len(s.Items) == 3:
		t.RequiresGrad = isTrue(s.Items[0])
		return t
	case ok && len(s.Items) == 5:
		if data, ok := s.Items[0].(*nested.Tensor); ok && data.Tensor != nil {
			t.Tensor, t.RequiresGrad = data.Tensor, isTrue(s.Items[3])
			return t
		}
	}
	t.Attrs = attributes(state)
	return t
}

// rebuildMeta is _rebuild_meta_tensor_no_storage(dtype, size, stride,
// requires_grad).
func rebuildMeta(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	d, ok := dtypeOf(args[0])
	shape, isShape := appendInts(l.shape[:0], args[1])
	l.shape = shape
	if !ok || !isShape {
		return nil, false
	}
	t := l.overDims(d, shape)
	if t == nil {
		t = unavailable(tensor.Spec{DType: d, Shape: shape}, noData())
	}
	return &nested.Tensor{Tensor: t, Class: classTensor, Device: "meta", RequiresGrad: isTrue(args[3])}, true
}

// rebuildFromArray is _rebuild_device_tensor_from_numpy and _from_cpu_tensor
// (data, dtype, device, requires_grad), for devices that keep no storage.
func rebuildFromArray(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	data, ok := args[0].(*nested.Tensor)
	d, isDType := dtypeOf(args[1])
	if !ok || !isDType || data.Tensor == nil {
		return nil, false
	}
	t := data.Tensor
	if t.DType() != d && t.Err() == nil {
		cast, err := t.Cast(d)
		if err != nil {
			return nil, false
		}
		t = cast
	}
	return &nested.Tensor{Tensor: t, Class: classTensor, Device: deviceText(args[2]), RequiresGrad: isTrue(args[3])}, true
}

func deviceText(v nested.Value) string {
	if s, ok := v.(nested.Symbol); ok {
		return s.Text
	}
	return asciiText(v)
}

// subclassCalls rebuild tensors of other classes (torch/_tensor.py).
var subclassCalls = map[string]callFunc{
	"torch._tensor._rebuild_from_type":       rebuildFromType,
	"torch._tensor._rebuild_from_type_v2":    rebuildFromType,
	"torch.tensor._rebuild_from_type":        rebuildFromType,
	"torch._utils._rebuild_wrapper_subclass": rebuildWrapper,
}

// rebuildFromType is _rebuild_from_type_v2(function, class, arguments, state),
// and its first version, whose state is a dict.
func rebuildFromType(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	function, ok := classOf(args)
	class, isClass := classOf(args[1:])
	inner, isList := args[2].(*nested.List)
	if !ok || !isClass || !isList {
		return nil, false
	}
	switch v := l.call(function, inner, pickle.Reduce).(type) {
	case *nested.Tensor:
		v.Class, v.Attrs = class, attributes(args[3])
		return v, true
	case *nested.Opaque:
		if v.Reason == reasonWrapper {
			v.State = args[3]
			return wrapped(v, class), true
		}
		return v, true
	default:
		return nil, false
	}
}

// rebuildWrapper is _rebuild_wrapper_subclass(class, dtype, size, …): a tensor
// whose data is in its state, which comes with _rebuild_from_type_v2.
func rebuildWrapper(l *loader, args []nested.Value) (nested.Value, bool) {
	class, ok := classOf(args)
	if !ok {
		return nil, false
	}
	return l.opaque(class, reasonWrapper, nested.NewList("tuple", args...)), true
}

// wrapped is a wrapper that is known by its local tensor: a DTensor that holds
// all of its shape is that tensor.
func wrapped(o *nested.Opaque, class string) nested.Value {
	o.Class = class
	state, ok := attributes(o.State).(*nested.Map) // of a class with __slots__
	if !ok || !strings.HasSuffix(class, ".DTensor") || o.Args == nil || len(o.Args.Items) < 3 {
		return o
	}
	local, _ := state.Lookup("_local_tensor")
	t, ok := local.(*nested.Tensor)
	shape, isShape := appendInts(nil, o.Args.Items[2])
	if !ok || !isShape || t.Tensor == nil || !sameShape(t.Tensor.Shape(), shape) || isPartial(state) {
		return o
	}
	whole := *t
	whole.Class, whole.Attrs = class, state
	return &whole
}

// isPartial reports whether a DTensor's values are still to be added up over the
// ranks, or are placed in a way that is not known: each rank's tensor has the
// whole shape then, and other values (torch/distributed/tensor/placement_types.py).
func isPartial(state *nested.Map) bool {
	spec, _ := state.Lookup("_spec")
	attrs, ok := attrsOf(spec)
	if !ok {
		return true
	}
	placements, ok := memberOf[*nested.List](attrs, "placements")
	if !ok {
		return true
	}
	for _, p := range placements.Items {
		o, ok := p.(*nested.Opaque)
		if !ok || !(strings.HasSuffix(o.Class, ".Replicate") || strings.HasSuffix(o.Class, ".Shard") || strings.HasSuffix(o.Class, "._StridedShard")) {
			return true
		}
	}
	return false
}

func sameShape(a []int, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if int64(a[i]) != b[i] {
			return false
		}
	}
	return true
}

// wrongData is the error of a tensor whose data makes no sense.
func wrongData(what string) error {
	return fault.New(fault.Malformed, what).Needs("as many bytes as the shape says", fault.MadeToDeceive)
}
