package nn

import "github.com/wick-ml/wick/tensor"

// Linear is torch.nn.Linear: y = x·Wᵀ + b.
type Linear[T tensor.Element] struct {
	Weight tensor.Array[T] // [out_features, in_features]
	Bias   tensor.Array[T] `torch:", optional"` // [out_features]
}

// Bilinear is torch.nn.Bilinear.
type Bilinear[T tensor.Element] struct {
	Weight tensor.Array[T] // [out_features, in1_features, in2_features]
	Bias   tensor.Array[T] `torch:", optional"` // [out_features]
}

// Embedding is torch.nn.Embedding.
type Embedding[T tensor.Element] struct {
	Weight tensor.Array[T] // [num_embeddings, embedding_dim]
}

// EmbeddingBag is torch.nn.EmbeddingBag.
type EmbeddingBag[T tensor.Element] struct {
	Weight tensor.Array[T] // [num_embeddings, embedding_dim]
}

// PReLU is torch.nn.PReLU.
type PReLU[T tensor.Element] struct {
	Weight tensor.Array[T] // [num_parameters], 1 or the number of channels
}
