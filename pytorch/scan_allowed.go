package pytorch

// weightsOnly is what torch.load(weights_only=True) imports without being told:
// the keys of _get_allowed_globals in torch/_weights_only_unpickler.py of torch
// 2.15, by module.
var weightsOnly = map[string]string{
	"_codecs":     "encode",
	"builtins":    "bytearray complex set",
	"collections": "Counter OrderedDict",
	"torch": "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor " +
		"ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage " +
		"HalfTensor IntStorage IntTensor LongStorage LongTensor QInt32Storage QInt8Storage QUInt2x4Storage " +
		"QUInt4x2Storage QUInt8Storage ShortStorage ShortTensor Size Tensor bcomplex32 bfloat16 bits16 bits1x8 bits2x4 " +
		"bits4x2 bits8 bool complex128 complex32 complex64 device float16 float32 float4_e2m1fn_x2 float64 " +
		"float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int16 int2 int3 int32 int4 int5 " +
		"int6 int64 int7 int8 per_channel_affine per_channel_affine_float_qparams per_channel_symmetric " +
		"per_tensor_affine per_tensor_symmetric qint32 qint8 quint2x4 quint4x2 quint8 uint1 uint16 uint2 uint3 uint32 " +
		"uint4 uint5 uint6 uint64 uint7 uint8",
	"torch._tensor": "_rebuild_from_type_v2",
	"torch._utils": "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage " +
		"_rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_tensor _rebuild_tensor " +
		"_rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass",
	"torch.cuda": "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor " +
		"ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage " +
		"HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage ShortTensor",
	"torch.cuda.sparse":   "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
	"torch.nn.parameter":  "Parameter",
	"torch.serialization": "_get_layout",
	"torch.sparse":        "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
	"torch.storage":       "TypedStorage UntypedStorage",
}
