// Package nn has the parameters of PyTorch's usual modules as Go structs:
// nothing but fields and tags, under the names that Module.state_dict gives
// them (torch/nn/modules). They are meant to be parts of the structs that
// package serde fills:
//
//	type Net struct {
//		Conv1 nn.Conv2d[float32]
//		BN1   nn.BatchNorm2d[float32]
//		FC    nn.Linear[float32]
//	}
//
// T is the element in memory, whatever the file has. Each field is a
// [tensor.Array], which knows its shape; comments give it in PyTorch's order.
// What a constructor's argument leaves out (bias=False) is optional, and has
// neither shape nor data then. Modules without parameters have no struct.
package nn
