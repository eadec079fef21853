"""Parameters before and after torch's own arithmetic on them: batch norm folded into what stands before it, and weight norm undone.

The files hold both sides, so that they are their own expectations. Run it with each torch: python3 arith/testdata/generate.py
"""
import pathlib

import torch
from torch.nn.utils.fusion import fuse_conv_bn_weights

torch.manual_seed(11)


def save(stem, cases):
    version = ".".join(torch.__version__.split(".")[:2])
    torch.save(cases, pathlib.Path(__file__).with_name(f"{stem}-torch{version}.pt"))


def batch_norm(features, dtype=torch.float32):
    """A batch norm as training leaves it: statistics of some size, one channel of next to no variance."""
    norm = torch.nn.BatchNorm1d(features, eps=1e-3)
    norm.running_mean = 3 * torch.randn(features)
    norm.running_var = torch.rand(features) * 2
    norm.running_var[0] = 1e-12
    norm.weight.data = torch.randn(features)
    norm.bias.data = torch.randn(features)
    return norm.to(dtype)


def folded(layer, transpose=False, dtype=torch.float32):
    layer = layer.to(dtype)
    features = layer.weight.shape[1 if transpose else 0]
    norm = batch_norm(features, dtype)
    options = {"transpose": True} if transpose else {}
    weight, bias = fuse_conv_bn_weights(layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps,
                                        norm.weight, norm.bias, **options)
    return {"layer": layer.state_dict(), "norm": norm.state_dict(), "eps": norm.eps, "transpose": transpose,
            "folded": {"weight": weight.detach(), "bias": bias.detach()}}


save("folded", {
    "conv1d": folded(torch.nn.Conv1d(3, 4, 5)),
    "conv2d": folded(torch.nn.Conv2d(4, 6, 3, groups=2)),
    "conv2d_no_bias": folded(torch.nn.Conv2d(2, 8, 3, bias=False)),
    "conv3d": folded(torch.nn.Conv3d(1, 2, 2)),
    "conv_transpose2d": folded(torch.nn.ConvTranspose2d(3, 5, 2), transpose=True),
    "conv2d_double": folded(torch.nn.Conv2d(2, 3, 3), dtype=torch.float64),
    "conv2d_bfloat16": folded(torch.nn.Conv2d(2, 3, 3), dtype=torch.bfloat16),
})


def normed(layer, name="weight", dim=0, dtype=torch.float32):
    layer = torch.nn.utils.weight_norm(layer.to(dtype), name, dim)
    getattr(layer, name + "_g").data *= torch.rand_like(getattr(layer, name + "_g")) + 0.5
    g, v = getattr(layer, name + "_g").detach(), getattr(layer, name + "_v").detach()
    torch.nn.utils.remove_weight_norm(layer, name)
    return {"g": g, "v": v, "dim": -1 if dim is None else dim, "weight": getattr(layer, name).detach()}


save("weight_norm", {
    "linear": normed(torch.nn.Linear(7, 3)),
    "linear_dim1": normed(torch.nn.Linear(7, 3), dim=1),
    "linear_whole": normed(torch.nn.Linear(7, 3), dim=None),
    "conv1d": normed(torch.nn.Conv1d(4, 6, 5)),
    "conv_transpose1d": normed(torch.nn.ConvTranspose1d(4, 6, 5), dim=1),
    "lstm": normed(torch.nn.LSTM(5, 4), "weight_hh_l0"),
    "double": normed(torch.nn.Linear(4, 4), dtype=torch.float64),
    "bfloat16": normed(torch.nn.Linear(4, 4), dtype=torch.bfloat16),
})
