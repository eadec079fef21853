package main

import (
	"testing"

	"github.com/wick-ml/wick/examples/internal/visiontest"
)

func TestLogits(t *testing.T) { visiontest.Logits(t, "squeezenet1_1", network) }

func TestSwappedWeights(t *testing.T) { visiontest.Swaps(t, "squeezenet1_1", network, 25) }
