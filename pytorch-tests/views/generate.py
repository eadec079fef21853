"""Strides and offsets: transposed, permuted, channels_last, expanded, narrow windows, odd strides of size-1 dimensions."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, noise, ramp

case = Case(__file__)
base = ramp(6, 8)
big = noise(4096, seed=3)
views = {
    "transposed": ramp(3, 4).t(), "permuted": ramp(2, 3, 4).permute(2, 0, 1), "step": ramp(12)[1::3], "column": base[:, 3],
    "block": base[2:5, 1:7:2], "channels_last": ramp(2, 3, 2, 2).contiguous(memory_format=torch.channels_last),
    "channels_last_3d": ramp(1, 2, 2, 2, 2).contiguous(memory_format=torch.channels_last_3d),
    "expanded": ramp(3, 1).expand(3, 4), "expanded_scalar": torch.tensor(2.5).expand(2, 3), "expanded_front": ramp(2).expand(5, 2),
    "diagonal": ramp(4, 4).diagonal(), "unfold": ramp(8).unfold(0, 3, 2), "overlap": torch.as_strided(ramp(10), (4, 3), (2, 1)),
    "size1_strides": torch.as_strided(ramp(6), (1, 3, 1), (999, 2, 77)), "narrow": big[4000:4010], "cell": big.view(64, 64)[60:62, 2:4],
    "empty_window": big[10:10], "scalar_window": big[7], "flipped": ramp(5).flip(0), "half_step": ramp(9, dtype=torch.float16)[::2],
    "double_t": ramp(2, 3, dtype=torch.float64).t(), "bool_t": torch.tensor([[True, False, True], [False, False, True]]).t(),
    "long_step": ramp(6, dtype=torch.int64, step=1)[::-1 + 2][1::2]}
case.save("views", views)
case.save("views_legacy", views, form="legacy")
case.save("expanded", torch.ones(1).expand(1 << 14))
case.save("many_dims", {"d": ramp(*([1, 2] * 6)).permute(*reversed(range(12))), "max": ramp(2).view(*([1] * 63 + [2]))})
# torch reads thousands of dimensions; wick lists such a tensor and says that it is over a limit.
path = case.save("thousands_of_dims", {"d65": torch.ones(1).reshape([1] * 65), "d10000": torch.ones(1).reshape([1] * 10000)})
case.files[path.name].update(tensors=[], more_tensors=True, with_sha256={"exit": 4, "error": "limit", "name": "d10000"})
if TORCH2:
    # Only dtypes without a typed storage of their own may share one: torch refuses to save the others.
    raw = torch.arange(64, dtype=torch.uint8)
    case.save("one_storage_many_dtypes", {
        "bytes": raw, "words": raw.view(torch.uint16)[3:9], "ints": raw.view(torch.uint32)[2:], "longs": raw.view(torch.uint64),
        "e4m3": raw.view(torch.float8_e4m3fn).view(8, 8).t(), "e5m2": raw.view(torch.float8_e5m2)[60:]})
case.finish()
