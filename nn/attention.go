package nn

import "github.com/wick-ml/wick/tensor"

// MultiheadAttention is torch.nn.MultiheadAttention with keys and values as
// wide as the queries, whose three projections are stacked: q, k, v.
type MultiheadAttention[T tensor.Element] struct {
	InProjWeight tensor.Array[T] // [3 * embed_dim, embed_dim]
	InProjBias   tensor.Array[T] `torch:", optional"` // [3 * embed_dim]
	BiasK        tensor.Array[T] `torch:", optional"` // [1, 1, embed_dim], with add_bias_kv=True
	BiasV        tensor.Array[T] `torch:", optional"` // [1, 1, embed_dim], with add_bias_kv=True
	OutProj      Linear[T]       // [embed_dim, embed_dim]
}

// CrossAttention is torch.nn.MultiheadAttention with kdim or vdim other than
// embed_dim: the projections are apart.
type CrossAttention[T tensor.Element] struct {
	QProjWeight tensor.Array[T] // [embed_dim, embed_dim]
	KProjWeight tensor.Array[T] // [embed_dim, kdim]
	VProjWeight tensor.Array[T] // [embed_dim, vdim]
	InProjBias  tensor.Array[T] `torch:", optional"` // [3 * embed_dim]
	BiasK       tensor.Array[T] `torch:", optional"` // [1, 1, embed_dim], with add_bias_kv=True
	BiasV       tensor.Array[T] `torch:", optional"` // [1, 1, embed_dim], with add_bias_kv=True
	OutProj     Linear[T]       // [embed_dim, embed_dim]
}

// TransformerEncoderLayer is torch.nn.TransformerEncoderLayer.
type TransformerEncoderLayer[T tensor.Element] struct {
	SelfAttn MultiheadAttention[T]
	Linear1  Linear[T]    // [dim_feedforward, d_model]
	Linear2  Linear[T]    // [d_model, dim_feedforward]
	Norm1    LayerNorm[T] // [d_model]
	Norm2    LayerNorm[T] // [d_model]
}

// TransformerDecoderLayer is torch.nn.TransformerDecoderLayer.
type TransformerDecoderLayer[T tensor.Element] struct {
	SelfAttn      MultiheadAttention[T]
	MultiheadAttn MultiheadAttention[T]
	Linear1       Linear[T]    // [dim_feedforward, d_model]
	Linear2       Linear[T]    // [d_model, dim_feedforward]
	Norm1         LayerNorm[T] // [d_model]
	Norm2         LayerNorm[T] // [d_model]
	Norm3         LayerNorm[T] // [d_model]
}
