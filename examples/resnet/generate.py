"""Writes testdata: narrow ResNets of torchvision's code, a picture, and the logits that torchvision computes of it.
Needs torch and torchvision: $(scripts/find-torch torchvision) examples/resnet/generate.py"""

import os
import sys

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "internal"))
import visionmodels


class Narrow(ResNet):
    """torchvision's ResNet with as many planes as it is given; the layers and the forward pass are torchvision's."""

    def __init__(self, block, blocks, planes):
        nn.Module.__init__(self)
        self._norm_layer, self.dilation, self.groups, self.base_width = nn.BatchNorm2d, 1, 1, 64
        self.inplanes = planes[0]
        self.conv1 = nn.Conv2d(3, planes[0], kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(planes[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i in range(4):
            setattr(self, f"layer{i + 1}", self._make_layer(block, planes[i], blocks[i], stride=1 if i == 0 else 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(planes[3] * block.expansion, visionmodels.CLASSES)


def settled(model):
    """Gives every batch norm a scale and a shift of its own, so that no two weights are the same, and statistics of
    what reaches it, so that activations keep their size."""
    for name, module in model.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            # The last of a Bottleneck adds a little to what passes by it: so few channels would make noise of rounding.
            nn.init.uniform_(module.weight, *((0.1, 0.4) if name.endswith("bn3") else (0.5, 1.5)))
            nn.init.uniform_(module.bias, -0.5, 0.5)
            module.momentum = None  # plain averages
    model.train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(64, 3, 1, 1) + torch.randn(64, 3, 64, 64))
    return model


if __name__ == "__main__":
    visionmodels.write(os.path.join(here, "testdata"), [
        ("resnet18", lambda: settled(Narrow(BasicBlock, (2, 2, 2, 2), (4, 4, 8, 12))), {}),
        # Many small tensors take less room in the container of the time before torch 1.6.
        ("resnet50", lambda: settled(Narrow(Bottleneck, (3, 4, 6, 3), (2, 3, 4, 5))), {"_use_new_zipfile_serialization": False}),
    ])
