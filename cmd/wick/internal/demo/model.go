package demo

import "github.com/wick-ml/wick/nn"

// begin

// Checkpoint is what the training script saved.
type Checkpoint struct {
	Epoch    int
	BestAcc1 float64 `torch:"best_acc1"`
	Model    ResNet  `torch:"state_dict"`
}

// ResNet is a ResNet-18, whatever its width.
type ResNet struct {
	Conv1  nn.Conv2d[float32]
	BN1    nn.BatchNorm2d[float32]
	Layer1 []Block
	Layer2 []Block
	Layer3 []Block
	Layer4 []Block
	FC     nn.Linear[float32]
}

// Block is two convolutions, and a third where the shape changes.
type Block struct {
	Conv1, Conv2 nn.Conv2d[float32]
	BN1, BN2     nn.BatchNorm2d[float32]
	Downsample   *Downsample // optional: it is a pointer
}

// Downsample is a Sequential, whose members are called 0 and 1.
type Downsample struct {
	Conv nn.Conv2d[float32]      `torch:"0"`
	BN   nn.BatchNorm2d[float32] `torch:"1"`
}
