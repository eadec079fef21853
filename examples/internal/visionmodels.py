"""What the generators of networks that classify pictures have in common."""

import itertools
import json
import os

import pictures
import torch

CLASSES = 10


def tops_are_clear(logits):
    """Whether rounding to halves leaves the five largest logits in their order, with room to spare."""
    exact, rough = logits["half weights"], logits["half"]
    largest = exact.topk(6).values
    return (largest[:, :-1] - largest[:, 1:]).min() > 2 * (exact - rough).abs().max()


def compute(model, images):
    """Returns the model's logits of the images: with its own weights, in half precision, and with half weights in
    float32 arithmetic. Leaves it with the half weights."""
    with torch.no_grad():
        return {"float32": model(images), "half": model.half()(images.half()).float(), "half weights": model.float()(images)}


def make(path, build, images, **options):
    """Saves the network that build makes, in full and in half precision, and returns its logits of the images. The seed
    is the first with which the five largest are clear."""
    for seed in itertools.count(20):
        torch.manual_seed(seed)
        model = build().eval()
        torch.save(model.state_dict(), path + ".pt", **options)
        logits = compute(model, images)
        torch.save(model.half().state_dict(), path + "-half.pt", **options)
        if tops_are_clear(logits):
            return flat(logits)


def flat(logits):
    """The logits as JSON can hold them."""
    return {key: value.flatten().tolist() for key, value in logits.items()}


def write(testdata, networks):
    """Writes testdata: a picture, the networks (name, build, options of torch.save) and their logits of the picture and
    of its reflection."""
    os.makedirs(testdata, exist_ok=True)
    images = pictures.save(os.path.join(testdata, "picture.png"), 64, 64)
    images = torch.cat([images, images.flip(3)])
    expected = {name: make(os.path.join(testdata, name), build, images, **options) for name, build, options in networks}
    with open(os.path.join(testdata, "expected.json"), "w") as f:
        json.dump(expected, f, indent=1)
        f.write("\n")
