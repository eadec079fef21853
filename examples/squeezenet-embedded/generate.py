"""Writes squeezenet1_1.pt, torchvision's SqueezeNet 1.1 at full size with seeded weights, and into testdata a picture and
the logits that torchvision computes of it with these weights in half precision. Then wick packs the checkpoint, and
nothing needs it any more:

    $(scripts/find-torch torchvision) examples/squeezenet-embedded/generate.py
    go generate ./squeezenet-embedded        # in examples

Needs torch and torchvision."""

import json
import os
import sys

import torch
from torchvision.models import squeezenet1_1

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "internal"))
import pictures
import visionmodels


def build():
    model = squeezenet1_1()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            # torchvision's own start, but no bias of zero, and a last layer whose logits are far apart.
            torch.nn.init.kaiming_uniform_(module.weight)
            torch.nn.init.uniform_(module.bias, 0, 0.2)
    return model


def main():
    testdata = os.path.join(here, "testdata")
    os.makedirs(testdata, exist_ok=True)
    image = pictures.save(os.path.join(testdata, "picture.png"), 96, 96)
    logits = visionmodels.make(os.path.join(here, "squeezenet1_1"), build, image)
    os.remove(os.path.join(here, "squeezenet1_1-half.pt"))
    with open(os.path.join(testdata, "expected.json"), "w") as f:
        json.dump({key: logits[key] for key in ("half", "half weights")}, f)
        f.write("\n")


if __name__ == "__main__":
    main()
