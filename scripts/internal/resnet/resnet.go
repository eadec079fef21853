// Package resnet is the model that the measured programs load and save.
package resnet

import "github.com/wick-ml/wick/nn"

// Net is torchvision's ResNet-50, 101 or 152.
type Net struct {
	Conv1                          nn.Conv2d[float32]
	BN1                            nn.BatchNorm2d[float32]
	Layer1, Layer2, Layer3, Layer4 []Bottleneck
	FC                             nn.Linear[float32]
}

// Bottleneck is its block; the first of a layer has the shortcut.
type Bottleneck struct {
	Conv1      nn.Conv2d[float32]
	BN1        nn.BatchNorm2d[float32]
	Conv2      nn.Conv2d[float32]
	BN2        nn.BatchNorm2d[float32]
	Conv3      nn.Conv2d[float32]
	BN3        nn.BatchNorm2d[float32]
	Downsample *Shortcut
}

// Shortcut is the nn.Sequential whose members PyTorch calls 0 and 1.
type Shortcut struct {
	Conv nn.Conv2d[float32]      `torch:"0"`
	BN   nn.BatchNorm2d[float32] `torch:"1"`
}
