"""Writes into testdata a picture and what torchvision's SqueezeNet 1.1 makes of it in half precision, at full size.

Its 2.5 MB of weights are not in the tree: they are numbers that need no PyTorch. embedded_test.go makes them again from
the seed, the shapes and the scales in expected.json, and holds them to the SHA-256 of the network's own.

Needs torch and torchvision: $(scripts/find-torch torchvision) examples/squeezenet-embedded/generate.py"""

import hashlib
import itertools
import json
import os
import sys

import numpy
import torch
from torchvision.models import squeezenet1_1

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "internal"))
import pictures
import visionmodels


def scale(parameter):
    """The unit of the parameter's numbers, which go up to 1024: a power of two, so that a half is any of them exactly.
    Weights go up to about √(6/fan), as those of torch.nn.init.kaiming_uniform_ do, biases to 1/8."""
    fan = parameter[0].numel()
    return 2.0 ** (-13 if parameter.dim() == 1 else -10 - (fan.bit_length() - 3) // 2)


def fill(model, seed):
    """Fills the parameters, one after another, with the numbers of 11 bits, times their scale, in the stream that
    SHAKE128 makes of the seed."""
    parameters = model.state_dict().values()
    sizes = [p.numel() for p in parameters]
    stream = hashlib.shake_128(seed.encode()).digest(2 * sum(sizes))
    numbers = torch.from_numpy(numpy.frombuffer(stream, "<i2") >> 5)
    for p, part in zip(parameters, numbers.split(sizes)):
        p.copy_(part.view(p.shape) * scale(p))


def sha256(model):
    """The digest of the parameters as halfs, one after another."""
    digest = hashlib.sha256()
    for p in model.state_dict().values():
        digest.update(p.numpy().astype("<f2").tobytes())
    return digest.hexdigest()


def main():
    testdata = os.path.join(here, "testdata")
    os.makedirs(testdata, exist_ok=True)
    image = pictures.save(os.path.join(testdata, "picture.png"), 96, 96)
    model = squeezenet1_1().eval()
    for seed in map(str, itertools.count()):
        fill(model, seed)
        logits = visionmodels.compute(model, image)
        if visionmodels.tops_are_clear(logits):
            break
    logits = visionmodels.flat(logits)
    expected = {
        "seed": seed,
        "parameters": [{"name": name, "shape": list(p.shape), "scale": scale(p)} for name, p in model.state_dict().items()],
        "sha256": sha256(model),
        "half": logits["half"],
        "half weights": logits["half weights"],
    }
    with open(os.path.join(testdata, "expected.json"), "w") as f:
        json.dump(expected, f)
        f.write("\n")


if __name__ == "__main__":
    main()
