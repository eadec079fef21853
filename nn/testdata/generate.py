"""Writes modules.json: the names, dtypes and shapes in the state dicts of torch.nn's usual modules, by torch itself.

Usage: python generate.py, with PyTorch 2 installed.
"""
import json
import pathlib

import torch
from torch import nn

MODULES = {
    "Linear": nn.Linear(3, 2),
    "Linear without bias": nn.Linear(3, 2, bias=False),
    "Bilinear": nn.Bilinear(3, 4, 2),
    "Conv1d": nn.Conv1d(4, 6, 3, groups=2),
    "Conv2d": nn.Conv2d(3, 4, (2, 5)),
    "Conv2d without bias": nn.Conv2d(3, 4, 1, bias=False),
    "Conv3d": nn.Conv3d(3, 4, 2),
    "ConvTranspose1d": nn.ConvTranspose1d(4, 6, 3, groups=2),
    "ConvTranspose2d": nn.ConvTranspose2d(3, 4, 2),
    "ConvTranspose3d": nn.ConvTranspose3d(3, 4, 2, bias=False),
    "BatchNorm1d": nn.BatchNorm1d(5),
    "BatchNorm2d": nn.BatchNorm2d(5),
    "BatchNorm3d": nn.BatchNorm3d(5),
    "LayerNorm": nn.LayerNorm((3, 4)),
    "LayerNorm without bias": nn.LayerNorm(3, bias=False),
    "RMSNorm": nn.RMSNorm(4),
    "GroupNorm": nn.GroupNorm(2, 4),
    "InstanceNorm2d": nn.InstanceNorm2d(3, affine=True),
    "InstanceNorm2d with statistics": nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
    "Embedding": nn.Embedding(7, 3),
    "EmbeddingBag": nn.EmbeddingBag(7, 3),
    "MultiheadAttention": nn.MultiheadAttention(4, 2),
    "MultiheadAttention without bias": nn.MultiheadAttention(4, 2, bias=False),
    "MultiheadAttention with bias of k and v": nn.MultiheadAttention(4, 2, add_bias_kv=True),
    "MultiheadAttention of other widths": nn.MultiheadAttention(4, 2, kdim=3, vdim=5),
    "RNNCell": nn.RNNCell(3, 2),
    "LSTMCell": nn.LSTMCell(3, 2),
    "GRUCell without bias": nn.GRUCell(3, 2, bias=False),
    "RNN": nn.RNN(3, 2),
    "LSTM": nn.LSTM(3, 2),
    "LSTM with projection": nn.LSTM(3, 4, proj_size=2),
    "LSTM both ways": nn.LSTM(3, 2, bidirectional=True),
    "GRU without bias": nn.GRU(3, 2, bias=False),
    "PReLU": nn.PReLU(3),
    "TransformerEncoderLayer": nn.TransformerEncoderLayer(4, 2, 8),
    "TransformerDecoderLayer": nn.TransformerDecoderLayer(4, 2, 8),
}

out = {
    name: {key: {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} for key, t in module.state_dict().items()}
    for name, module in MODULES.items()
}
path = pathlib.Path(__file__).with_name("modules.json")
path.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "modules": out}, indent=1) + "\n")
