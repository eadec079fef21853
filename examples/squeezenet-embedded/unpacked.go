//go:build !weights

package main

import (
	"context"
	"errors"

	"github.com/wick-ml/wick/serde"
)

// load says how weights come into the program.
func load(context.Context, ...serde.Option) (*SqueezeNet, *serde.Report, error) {
	return nil, nil, errors.New("built without weights: run `wick pack --dtype float16 --type SqueezeNet squeezenet1_1.pt " +
		"squeezenet-embedded/weights.go` in examples, then build with -tags weights")
}
