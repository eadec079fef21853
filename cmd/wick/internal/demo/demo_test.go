package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

const fixture = "../../../../pytorch-tests/demo-resnet/"

// The embedded file is the fixture that PyTorch wrote.
func TestFileIsTheFixture(t *testing.T) {
	b, err := os.ReadFile(fixture + "demo-resnet-torch2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, file(t)) {
		t.Error("resnet.pt.gz is not what pytorch-tests/demo-resnet/generate.py --copy makes")
	}
}

func file(t *testing.T) []byte {
	t.Helper()
	b, err := File()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The struct holds the values that torch says.
func TestValues(t *testing.T) {
	c, err := wick.OpenBytes(t.Context(), FileName, file(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var ckpt Checkpoint
	if _, err := serde.Unmarshal(t.Context(), c.Root, &ckpt); err != nil {
		t.Fatal(err)
	}
	if ckpt.Epoch != 90 || ckpt.BestAcc1 != 69.25 || len(ckpt.Model.Layer3) != 2 || ckpt.Model.Layer1[0].Downsample != nil {
		t.Errorf("epoch %d, accuracy %g, %d blocks", ckpt.Epoch, ckpt.BestAcc1, len(ckpt.Model.Layer3))
	}
	want := torchSums(t)
	m := &ckpt.Model
	for name, x := range map[string]tensor.Array[float32]{
		"state_dict.conv1.weight":                 m.Conv1.Weight,
		"state_dict.layer2.0.downsample.0.weight": m.Layer2[0].Downsample.Conv.Weight,
		"state_dict.layer4.1.bn2.running_var":     m.Layer4[1].BN2.RunningVar,
		"state_dict.layer4.1.conv2.weight":        m.Layer4[1].Conv2.Weight,
		"state_dict.fc.weight":                    m.FC.Weight,
		"state_dict.fc.bias":                      m.FC.Bias,
	} {
		h := sha256.New()
		if _, err := tensor.Run(context.Background(), []tensor.Move{{From: x.Tensor(), To: tensor.Stream(h)}}); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want[name] {
			t.Errorf("%s has the sum %s, torch says %q", name, got, want[name])
		}
	}
}

func torchSums(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(fixture + "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files map[string]struct {
			Tensors []struct{ Name, SHA256 string }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, row := range doc.Files["demo-resnet-torch2.15.pt"].Tensors {
		sums[row.Name] = row.SHA256
	}
	return sums
}
