"""Makes the big checkpoints that benchmarks and stress runs read, with seeded random weights.

usage: make-checkpoints DIR [--tensors-1m] [--large] [--huge] [--growth] [--only NAME ...]
Files that exist already are kept. Models come from torchvision where it is installed.
"""
import argparse
import os
import pathlib
import tempfile

import torch

SEED = 20


def torchvision_model(name):
    import torchvision

    torch.manual_seed(SEED)
    model = getattr(torchvision.models, name)(weights=None).eval()
    # Fresh batch norms hold ones and zeros: give every buffer values that a wrong offset would show.
    for tensor in model.state_dict().values():
        if tensor.is_floating_point() and tensor.ndim == 1:
            tensor.add_(torch.rand(tensor.shape) * 0.1)
    return model


def state_dict(name, dtype=torch.float32):
    return torchvision_model(name).to(dtype).state_dict()


def many_small(count):
    """A checkpoint of count one-element tensors, each with a storage of its own."""
    torch.manual_seed(SEED)
    values = torch.randn(count).tolist()
    return {"layers.%d.scale" % i: torch.tensor([value]) for i, value in enumerate(values)}


def many_views(count):
    """count one-element views of a single storage: the pickle is large, the data is not."""
    torch.manual_seed(SEED)
    return {"layers.%d.scale" % i: view for i, view in enumerate(torch.randn(count).split(1))}


def scaled(total):
    """A state dict like ResNet-152's of about total bytes, made of copies of it under a prefix."""
    model = state_dict("resnet152")
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.values())
    copies = {}
    for i in range(max(1, round(total / size))):
        copies.update(("copy%d.%s" % (i, name), tensor + i if tensor.is_floating_point() else tensor.clone())
                      for name, tensor in model.items())
    return copies


LAYERS = 32
PARTS = {"self_attn.q_proj": 1, "self_attn.k_proj": 1, "self_attn.v_proj": 1, "self_attn.o_proj": 1,
         "mlp.gate_proj": 3, "mlp.up_proj": 3, "mlp.down_proj": 3}


def sized(total, scratch):
    """A state dict of about total bytes: 291 tensors of float32 named like those of a Llama, whatever total is, so that
    files of several sizes differ in nothing else. Their bytes are those of sparse files in scratch, zeros but for the first
    of each tensor: ten gigabytes of them need no memory."""
    shapes = {}
    width = round((total / 4 / (LAYERS * sum(PARTS.values()) + 2)) ** 0.5)
    for i in range(LAYERS):
        for part, factor in PARTS.items():
            shapes["model.layers.%d.%s.weight" % (i, part)] = (factor * width, width)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes["model.layers.%d.%s.weight" % (i, norm)] = (width,)
    shapes.update({"model.embed_tokens.weight": (width, width), "model.norm.weight": (width,), "lm_head.weight": (width, width)})
    tensors = {}
    for i, (name, shape) in enumerate(shapes.items()):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        flat = torch.from_file(os.path.join(scratch, str(i)), shared=True, size=count, dtype=torch.float32)
        flat[0] = i + 1
        tensors[name] = flat.reshape(shape)
    return tensors


def usual():
    """The files that are always made: name → (maker, options of torch.save)."""
    files = {}
    for name in ("squeezenet1_1", "resnet18", "resnet50", "resnet152"):
        files[name + ".pt"] = (lambda name=name: state_dict(name), {})
        files[name + "-half.pt"] = (lambda name=name: state_dict(name, torch.float16), {})
    files["resnet152-legacy.pt"] = (lambda: state_dict("resnet152"), {"_use_new_zipfile_serialization": False})
    files["tensors-100k.pt"] = (lambda: many_small(100_000), {})
    return files


def chosen(options):
    files = usual()
    if options.tensors_1m:
        files["tensors-1m.pt"] = (lambda: many_views(1_000_000), {})
    if options.large:
        files["resnet152-x10.pt"] = (lambda: scaled(2_400_000_000), {})
    if options.huge or options.growth:
        files["size-10g.pt"] = (lambda: sized(10_000_000_000, options.scratch), {})
    if options.growth:
        for name, total in (("10m", 10_000_000), ("100m", 100_000_000), ("1g", 1_000_000_000)):
            files["size-%s.pt" % name] = (lambda total=total: sized(total, options.scratch), {})
        for name, count in (("10", 10), ("1k", 1000), ("10k", 10_000), ("100k", 100_000)):
            files["views-%s.pt" % name] = (lambda count=count: many_views(count), {})
    return {name: job for name, job in files.items() if not options.only or name in options.only}


def make(path, build, options):
    """Saves beside path and renames, so that a file by that name is always whole."""
    part = path.with_suffix(".part")
    torch.save(build(), str(part), **options)
    os.replace(part, path)
    print("%-24s %12d bytes" % (path.name, path.stat().st_size), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--tensors-1m", action="store_true", help="also a pickle of 1,000,000 tensors")
    parser.add_argument("--large", action="store_true", help="also 2.4 GB, ten times ResNet-152")
    parser.add_argument("--huge", action="store_true", help="also 10 GB, in 291 tensors")
    parser.add_argument("--growth", action="store_true", help="also series of one kind from 10 MB to 10 GB, and from 10 to 100,000 tensors")
    parser.add_argument("--only", nargs="*", default=[], help="names of the files to make")
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.dir) as options.scratch:
        for name, (build, how) in chosen(options).items():
            if not (options.dir / name).exists():
                make(options.dir / name, build, how)


if __name__ == "__main__":
    main()
