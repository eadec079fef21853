"""Loads a checkpoint with torch.load, or converts it with safetensors, and prints the line that scripts/bench reads.

usage: torch_load.py eager|mmap|names|weights_only|float32 FILE
       torch_load.py safetensors FILE OUT

load_seconds is the load alone, without the start of Python and the import of torch. With mmap nothing was read by then; names
stops there, and prints no checksum. float32 loads eagerly and widens every floating tensor. The checksum is defined in ../internal/tally.
"""
import json
import sys
import time

import numpy
import torch

KINDS = {
    "eager": {"weights_only": False},
    "float32": {"weights_only": False},
    "names": {"weights_only": True, "mmap": True},
    "mmap": {"weights_only": True, "mmap": True},
    "weights_only": {"weights_only": True},
    "safetensors": {"weights_only": True},
}


def load(kind, name):
    root = torch.load(name, map_location="cpu", **KINDS[kind])
    if kind == "float32":
        root = {key: t.float() if t.is_floating_point() else t for key, t in root.items()}
    return root


def checksum(tensor):
    if tensor.is_floating_point():
        if tensor.dtype != torch.float64:
            tensor = tensor.float()
        array = tensor.contiguous().numpy().reshape(-1)
        return int(array.view(numpy.dtype("<u%d" % array.itemsize)).sum(dtype=numpy.uint64))
    return int(tensor.contiguous().numpy().astype(numpy.int64).view(numpy.uint64).sum(dtype=numpy.uint64))


def save(root, name):
    from safetensors.torch import save_file

    save_file({key: tensor.contiguous() for key, tensor in root.items()}, name)


def main():
    kind, name = sys.argv[1], sys.argv[2]
    if kind == "safetensors":
        from safetensors.torch import save_file as _  # its import is no part of the conversion

    begin = time.perf_counter()
    root = load(kind, name)
    if kind == "safetensors":
        save(root, sys.argv[3])
    seconds = time.perf_counter() - begin
    result = {"tensors": len(root), "load_seconds": seconds}
    if kind not in ("names", "safetensors"):
        result["values"] = sum(tensor.numel() for tensor in root.values())
        result["checksum"] = "%016x" % (sum(map(checksum, root.values())) % 2**64)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
