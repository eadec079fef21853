"""Writes labels.txt, the names of ImageNet's classes in the order of the logits, and what torchvision makes of two
pictures. Needs torch and torchvision: $(scripts/find-torch torchvision) examples/internal/imagenet/generate.py"""

import os
import sys

import torch
from PIL import Image
from torchvision.models import ResNet18_Weights

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))
import pictures

testdata = os.path.join(here, "testdata")


def main():
    os.makedirs(testdata, exist_ok=True)
    weights = ResNet18_Weights.IMAGENET1K_V1
    with open(os.path.join(here, "labels.txt"), "w") as f:
        f.writelines(name + "\n" for name in weights.meta["categories"])
    # Upright and made smaller, flat and made larger: Pillow is given what a person would give it, files.
    for name, image in ("upright.png", pictures.draw(333, 500)), ("flat.jpg", pictures.draw(200, 151)):
        path = os.path.join(testdata, name)
        image.save(path, optimize=True, **({"quality": 95, "subsampling": 0} if name.endswith("jpg") else {}))
        pixels = weights.transforms()(Image.open(path).convert("RGB"))
        # A grid of the 224×224 pixels is enough, and small.
        torch.save(pixels[:, 3::8, 3::8].clone(), os.path.join(testdata, name + ".pt"))


if __name__ == "__main__":
    main()
