package safetensors

import "github.com/wick-ml/wick/tensor"

// dtypeInfo is a dtype of the format. Their order in [dtypes] is the one that
// files are sorted by: by alignment, and within it as enum Dtype in the
// format's safetensors/src/tensor.rs declares them.
type dtypeInfo struct {
	name string
	bits int64
	ours tensor.DType // Invalid for a dtype that PyTorch does not have
}

var dtypes = []dtypeInfo{
	{"BOOL", 8, tensor.Bool},
	{"F4", 4, tensor.F4E2M1FNx2}, // counts elements; torch counts pairs
	{"F6_E2M3", 6, tensor.Invalid},
	{"F6_E3M2", 6, tensor.Invalid},
	{"U8", 8, tensor.U8},
	{"I8", 8, tensor.I8},
	{"F8_E5M2", 8, tensor.F8E5M2},
	{"F8_E4M3", 8, tensor.F8E4M3FN},
	{"F8_E8M0", 8, tensor.F8E8M0FNU},
	{"F8_E4M3FNUZ", 8, tensor.F8E4M3FNUZ},
	{"F8_E5M2FNUZ", 8, tensor.F8E5M2FNUZ},
	{"I16", 16, tensor.I16},
	{"U16", 16, tensor.U16},
	{"F16", 16, tensor.F16},
	{"BF16", 16, tensor.BF16},
	{"I32", 32, tensor.I32},
	{"U32", 32, tensor.U32},
	{"F32", 32, tensor.F32},
	{"C64", 64, tensor.C64},
	{"F64", 64, tensor.F64},
	{"I64", 64, tensor.I64},
	{"U64", 64, tensor.U64},
}

// byName and byDType give a dtype's place in [dtypes].
var byName, byDType = func() (map[string]int, map[tensor.DType]int) {
	names, ours := map[string]int{}, map[tensor.DType]int{}
	for i, d := range dtypes {
		names[d.name] = i
		if d.ours != tensor.Invalid {
			ours[d.ours] = i
		}
	}
	return names, ours
}()
