package nn

import "github.com/wick-ml/wick/tensor"

// Cell is what torch.nn.RNNCell, LSTMCell and GRUCell have in common. The gates
// of a cell are stacked in the first dimension, so that gates is 1 for an RNN,
// 4 for an LSTM (input, forget, cell, output) and 3 for a GRU (reset, update,
// new).
type Cell[T tensor.Element] struct {
	WeightIH tensor.Array[T] // [gates * hidden_size, input_size]
	WeightHH tensor.Array[T] // [gates * hidden_size, hidden_size]
	BiasIH   tensor.Array[T] `torch:", optional"` // [gates * hidden_size]
	BiasHH   tensor.Array[T] `torch:", optional"` // [gates * hidden_size]
}

// RNNCell is torch.nn.RNNCell.
type RNNCell[T tensor.Element] struct{ Cell[T] }

// LSTMCell is torch.nn.LSTMCell.
type LSTMCell[T tensor.Element] struct{ Cell[T] }

// GRUCell is torch.nn.GRUCell.
type GRUCell[T tensor.Element] struct{ Cell[T] }

// Layer is the first layer of torch.nn.RNN, LSTM or GRU, in which the gates are
// stacked as in a [Cell]. A module of several layers has the same names with
// l1, l2 … instead of l0.
type Layer[T tensor.Element] struct {
	WeightIH tensor.Array[T] `torch:"weight_ih_l0"`           // [gates * hidden_size, input_size]
	WeightHH tensor.Array[T] `torch:"weight_hh_l0"`           // [gates * hidden_size, hidden_size or proj_size]
	BiasIH   tensor.Array[T] `torch:"bias_ih_l0, optional"`   // [gates * hidden_size]
	BiasHH   tensor.Array[T] `torch:"bias_hh_l0, optional"`   // [gates * hidden_size]
	WeightHR tensor.Array[T] `torch:"weight_hr_l0, optional"` // [proj_size, hidden_size], an LSTM's with proj_size

	Reverse *ReverseLayer[T] `torch:", inline"` // the other direction with bidirectional=True, else nil
}

// ReverseLayer is the backward direction of a [Layer].
type ReverseLayer[T tensor.Element] struct {
	WeightIH tensor.Array[T] `torch:"weight_ih_l0_reverse"`           // [gates * hidden_size, input_size]
	WeightHH tensor.Array[T] `torch:"weight_hh_l0_reverse"`           // [gates * hidden_size, hidden_size or proj_size]
	BiasIH   tensor.Array[T] `torch:"bias_ih_l0_reverse, optional"`   // [gates * hidden_size]
	BiasHH   tensor.Array[T] `torch:"bias_hh_l0_reverse, optional"`   // [gates * hidden_size]
	WeightHR tensor.Array[T] `torch:"weight_hr_l0_reverse, optional"` // [proj_size, hidden_size]
}

// RNN is torch.nn.RNN of one layer.
type RNN[T tensor.Element] struct{ Layer[T] }

// LSTM is torch.nn.LSTM of one layer.
type LSTM[T tensor.Element] struct{ Layer[T] }

// GRU is torch.nn.GRU of one layer.
type GRU[T tensor.Element] struct{ Layer[T] }
