"""The checkpoint of `wick demo`: a ResNet-18 whose channels count 2, 4, 8 and 16, as a training script saves it.

With --copy FILE.gz the checkpoint is also written there, compressed; the command embeds such a copy.
"""
import argparse
import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case
from torch import nn


def block(inside, outside, stride):
    """The members of a basic block under the names that torchvision gives them."""
    members = {
        "conv1": nn.Conv2d(inside, outside, 3, stride, 1, bias=False), "bn1": nn.BatchNorm2d(outside),
        "conv2": nn.Conv2d(outside, outside, 3, 1, 1, bias=False), "bn2": nn.BatchNorm2d(outside)}
    if stride != 1:
        members["downsample"] = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
    return nn.ModuleDict(members)


def resnet(width, classes):
    members = {"conv1": nn.Conv2d(3, width, 7, 2, 3, bias=False), "bn1": nn.BatchNorm2d(width)}
    inside = width
    for i in range(4):
        outside = width << i
        first = block(inside, outside, 1 if i == 0 else 2)
        members["layer%d" % (i + 1)] = nn.Sequential(first, block(outside, outside, 1))
        inside = outside
    members["fc"] = nn.Linear(inside, classes)
    return nn.ModuleDict(members)


parser = argparse.ArgumentParser()
parser.add_argument("--copy", help="a second place for the file")
copy = parser.parse_args().copy
case = Case(__file__)
model = resnet(2, 10)
for name, value in model.state_dict().items():
    if name.endswith("num_batches_tracked"):
        value.fill_(45000)
    elif value.ndim == 1:
        value.add_(torch.rand(value.shape) * 0.1)
path = case.save("demo-resnet", {
    "epoch": 90, "arch": "resnet18", "best_acc1": 69.25,
    "config": {"width": 2, "classes": 10, "lr": 0.1, "momentum": 0.9, "mean": (0.485, 0.456, 0.406), "pretrained": False, "tag": None},
    "state_dict": model.state_dict()})
case.finish()
if copy:
    pathlib.Path(copy).write_bytes(gzip.compress(pathlib.Path(path).read_bytes(), 9, mtime=0))
