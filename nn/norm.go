package nn

import "github.com/wick-ml/wick/tensor"

// BatchNorm is what torch.nn.BatchNorm1d, 2d and 3d have in common, with affine
// and track_running_stats as they are by default.
type BatchNorm[T tensor.Element] struct {
	Weight            tensor.Array[T]     // [num_features], γ
	Bias              tensor.Array[T]     // [num_features], β
	RunningMean       tensor.Array[T]     // [num_features]
	RunningVar        tensor.Array[T]     // [num_features], not yet with eps
	NumBatchesTracked tensor.Array[int64] `torch:", optional"` // [], one number; absent before torch 0.4.1
}

// BatchNorm1d is torch.nn.BatchNorm1d.
type BatchNorm1d[T tensor.Element] struct{ BatchNorm[T] }

// BatchNorm2d is torch.nn.BatchNorm2d.
type BatchNorm2d[T tensor.Element] struct{ BatchNorm[T] }

// BatchNorm3d is torch.nn.BatchNorm3d.
type BatchNorm3d[T tensor.Element] struct{ BatchNorm[T] }

// InstanceNorm is what torch.nn.InstanceNorm1d, 2d and 3d have in common with
// affine=True; by default they have no parameters. The running statistics are
// there with track_running_stats=True.
type InstanceNorm[T tensor.Element] struct {
	Weight            tensor.Array[T]     // [num_features]
	Bias              tensor.Array[T]     // [num_features]
	RunningMean       tensor.Array[T]     `torch:", optional"` // [num_features]
	RunningVar        tensor.Array[T]     `torch:", optional"` // [num_features]
	NumBatchesTracked tensor.Array[int64] `torch:", optional"` // [], one number
}

// InstanceNorm1d is torch.nn.InstanceNorm1d.
type InstanceNorm1d[T tensor.Element] struct{ InstanceNorm[T] }

// InstanceNorm2d is torch.nn.InstanceNorm2d.
type InstanceNorm2d[T tensor.Element] struct{ InstanceNorm[T] }

// InstanceNorm3d is torch.nn.InstanceNorm3d.
type InstanceNorm3d[T tensor.Element] struct{ InstanceNorm[T] }

// LayerNorm is torch.nn.LayerNorm.
type LayerNorm[T tensor.Element] struct {
	Weight tensor.Array[T] // normalized_shape
	Bias   tensor.Array[T] `torch:", optional"` // normalized_shape
}

// RMSNorm is torch.nn.RMSNorm.
type RMSNorm[T tensor.Element] struct {
	Weight tensor.Array[T] // normalized_shape
}

// GroupNorm is torch.nn.GroupNorm.
type GroupNorm[T tensor.Element] struct {
	Weight tensor.Array[T] // [num_channels]
	Bias   tensor.Array[T] // [num_channels]
}
