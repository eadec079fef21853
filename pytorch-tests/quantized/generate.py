"""Quantized tensors per tensor and per channel, also with elements smaller than a byte."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
import torch.ao.nn.quantized
from fixture import Case, noise, ramp

case = Case(__file__)
base = noise(4, 6, seed=9) * 3
tensors = {"%s" % name: torch.quantize_per_tensor(base, 0.1, zero, getattr(torch, name))
           for name, zero in (("qint8", -3), ("quint8", 120), ("qint32", 7))}
scales, zeros = torch.tensor([0.1, 0.2, 0.03, 0.7], dtype=torch.float64), torch.tensor([0, 1, -2, 3])
channels = {"axis0": torch.quantize_per_channel(base, scales, zeros, 0, torch.qint8),
            "axis1": torch.quantize_per_channel(base.t().contiguous(), scales, zeros, 1, torch.qint8),
            "unsigned": torch.quantize_per_channel(base, scales, zeros + 100, 0, torch.quint8),
            "wide": torch.quantize_per_channel(base, scales, zeros, 0, torch.qint32)}
case.save("per_tensor", dict(tensors, odd_scale=torch.quantize_per_tensor(base, 1 / 3, 2, torch.qint8), w=ramp(2)))
case.save("per_channel", dict(channels, w=ramp(2)))
case.save("views", {"t": tensors["qint8"].t(), "row": tensors["quint8"][1:3], "scalar": torch.quantize_per_tensor(torch.tensor(1.5), 0.5, 0, torch.qint8),
                    "last": torch.quantize_per_tensor(noise(1, 2, 3, 4), 0.1, 0, torch.quint8).contiguous(memory_format=torch.channels_last)})
case.save("legacy", {"q": tensors["qint8"], "c": channels["axis0"], "w": ramp(2)}, form="legacy")
float_scales = torch.tensor([0.1, 0.25, 0.5, 1.0])
packed = {"four": torch.quantize_per_channel(noise(4, 8, seed=4), float_scales, torch.tensor([1.0, 2.5, 3.0, 8.0]), 0, torch.quint4x2),
          "floats": torch.quantize_per_channel(noise(4, 8, seed=5), float_scales, torch.tensor([1.0, 2.5, 3.0, 8.0]), 0, torch.quint8)}
case.save("float_qparams", packed)
case.save("sub_byte", {"four": torch.quantize_per_channel(noise(3, 5, seed=6), float_scales[:3], torch.zeros(3), 0, torch.quint4x2), "w": ramp(2)})
case.save("quint2x4", {"two": torch.quantize_per_channel(noise(3, 5, seed=7), float_scales[:3], torch.zeros(3), 0, torch.quint2x4),
                       "tensor": torch.quantize_per_tensor(noise(2, 8, seed=8), 0.1, 0, torch.quint2x4), "w": ramp(2)})
torch.manual_seed(1)
linear = torch.ao.nn.quantized.Linear(3, 2)
case.save("quantized_linear", linear.state_dict())
case.finish()
