"""Writes testdata: a narrow SqueezeNet 1.1 of torchvision's code, a picture, and the logits that torchvision computes
of it. Needs torch and torchvision: $(scripts/find-torch torchvision) examples/squeezenet/generate.py"""

import os
import sys

from torch import nn
from torchvision.models.squeezenet import Fire, SqueezeNet

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "internal"))
import visionmodels


class Narrow(SqueezeNet):
    """torchvision's SqueezeNet 1.1 with an eighth of the channels; the forward pass is torchvision's."""

    def __init__(self):
        nn.Module.__init__(self)
        pool = lambda: nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=3, stride=2), nn.ReLU(inplace=True), pool(),
            Fire(8, 3, 8, 8), Fire(16, 3, 8, 8), pool(),
            Fire(16, 4, 16, 16), Fire(32, 4, 16, 16), pool(),
            Fire(32, 6, 24, 24), Fire(48, 6, 24, 24), Fire(48, 8, 32, 32), Fire(64, 8, 32, 32))
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Conv2d(64, visionmodels.CLASSES, kernel_size=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                # torchvision's own start, but no bias of zero, and a last layer whose logits are far apart.
                nn.init.kaiming_uniform_(module.weight)
                nn.init.uniform_(module.bias, 0, 0.2)


if __name__ == "__main__":
    visionmodels.write(os.path.join(here, "testdata"), [("squeezenet1_1", Narrow, {})])
