"""Folders of shards: Hugging Face indexes over .bin and .safetensors, a hub cache of symbolic links, Meta's consolidated shards."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, expectation, load, ramp

case = Case(__file__)
first = {"model.embed.weight": ramp(3, 2), "model.l0.weight": ramp(2, 2, start=5)}
second = {"model.l1.weight": ramp(2, 2).t(), "lm_head.weight": ramp(3, 2, dtype=torch.float16), "norm.weight": ramp(2, dtype=torch.bfloat16)}
shards = [first, second]
INDEX = {".bin": "pytorch_model.bin.index.json", ".safetensors": "model.safetensors.index.json"}


def folder(stem):
    path = case.path(stem, "")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


def write_shards(path, suffix):
    """Writes the shards, and returns the weight map of an index over them."""
    names = {}
    for i, shard in enumerate(shards):
        name = "%s-%05d-of-%05d%s" % ("pytorch_model" if suffix == ".bin" else "model", i + 1, len(shards), suffix)
        if suffix == ".bin":
            torch.save(shard, str(path / name))
        else:
            from safetensors.torch import save_file
            save_file({key: tensor.contiguous() for key, tensor in shard.items()}, str(path / name), metadata={"format": "pt"})
        names.update((key, name) for key in shard)
    return names


def write_index(path, suffix, names):
    text = json.dumps({"metadata": {"total_size": 96}, "weight_map": names}, indent=1, sort_keys=True)
    (path / INDEX[suffix]).write_text(text + "\n")


def expect_union(path, form="shards", **flags):
    """Notes that a folder holds the tensors of all shards, in whatever order, with no names but their own."""
    rows = [row for shard in read_shards(path) for row in expectation(shard)["tensors"]]
    for row in rows:
        for key in ("strides", "offset", "contiguous", "storage"):
            row.pop(key, None)
    case.files[path.relative_to(case.dir).as_posix()] = dict(
        format=form, torch=torch.__version__.split("+")[0], tensors=rows, values={}, **flags)


def read_shards(path):
    for name in sorted(os.listdir(path)):
        if name.endswith(".bin"):
            yield load(path / name)
        elif name.endswith(".safetensors"):
            from safetensors.torch import load_file
            yield load_file(str(path / name))


for suffix in (".bin", ".safetensors") if TORCH2 else (".bin",):
    kind = suffix[1:]
    path = folder("index_" + kind)
    write_index(path, suffix, write_shards(path, suffix))
    (path / "config.json").write_text('{"model_type": "x"}\n')
    expect_union(path)
    path = folder("no_index_" + kind)
    write_shards(path, suffix)
    expect_union(path)
path = folder("pytorch_model_bin")
torch.save(first, str(path / "pytorch_model.bin"))
(path / "config.json").write_text("{}\n")
expect_union(path)

path = folder("trainer")  # what a training of several processes leaves beside the weights
torch.save(first, str(path / "pytorch_model.bin"))
expect_union(path)
for name in ("training_args.bin", "optimizer.bin", "optimizer_1.bin", "scheduler.pt", "scaler.pt", "sampler_1.bin", "rng_state_0.pth", "rng_state_1.pth"):
    torch.save({"x": 1}, str(path / name))

# A hub cache: snapshots/<revision> holds links into blobs.
cache = folder("hub_cache")
blobs, snapshot = cache / "models--x--tiny" / "blobs", cache / "models--x--tiny" / "snapshots" / "0123abcd"
blobs.mkdir(parents=True)
snapshot.mkdir(parents=True)
write_index(blobs, ".bin", write_shards(blobs, ".bin"))
for i, name in enumerate(sorted(os.listdir(blobs))):
    os.rename(blobs / name, blobs / ("%040x" % (i + 1)))
    os.symlink("../../blobs/%040x" % (i + 1), snapshot / name)
expect_union(snapshot)


def bad_index(stem, names, kind, code, *words):
    path = folder(stem)
    known = write_shards(path, ".bin")
    write_index(path, ".bin", dict(known, **names))
    case.refuse(path, kind, code, *words)


bad_index("missing_shard", {"extra.weight": "pytorch_model-00003-of-00003.bin"}, "notfound|malformed", 3, "pytorch_model-00003-of-00003.bin")
bad_index("missing_key", {"extra.weight": "pytorch_model-00001-of-00002.bin"}, "notfound|malformed", 3, "extra.weight")
bad_index("climbs_out", {"extra.weight": "../secret.bin"}, "malformed|unsupported", [3, 4], r"\.\./secret\.bin")
bad_index("absolute", {"extra.weight": "/etc/passwd"}, "malformed|unsupported", [3, 4], "/etc/passwd")
bad_index("drive", {"extra.weight": "C:\\\\model.bin"}, "malformed|unsupported", [3, 4], "C:")
path = folder("bad_json")
write_shards(path, ".bin")
(path / INDEX[".bin"]).write_text('{"weight_map": {')
case.refuse(path, "malformed", 3, "index.json")
path = folder("two_sets")
write_shards(path, ".bin")
torch.save(first, str(path / "other-00001-of-00001.bin"))
case.refuse(path, "ambiguous", 2, "pytorch_model-00001-of-00002.bin", "other-00001-of-00001.bin")
path = folder("nothing")
(path / "readme.txt").write_text("no model here\n")
case.refuse(path, "unsupported|notfound", [3, 4], ".")

# Meta's model-parallel shards: the same keys in each, every tensor cut along one of its axes.
path = folder("consolidated")
full = {"layers.0.attention.wq.weight": ramp(4, 4, dtype=torch.bfloat16), "layers.0.attention.wo.weight": ramp(4, 4, dtype=torch.bfloat16),
        "norm.weight": ramp(4, dtype=torch.bfloat16)}
for i in range(2):
    torch.save({"layers.0.attention.wq.weight": full["layers.0.attention.wq.weight"].chunk(2, 0)[i].clone(),
                "layers.0.attention.wo.weight": full["layers.0.attention.wo.weight"].chunk(2, 1)[i].clone(),
                "norm.weight": full["norm.weight"]}, str(path / ("consolidated.%02d.pth" % i)))
(path / "params.json").write_text('{"dim": 4}\n')
rows = []
for i in range(2):
    loaded = load(path / ("consolidated.%02d.pth" % i))
    case.expect(path / ("consolidated.%02d.pth" % i), loaded, "zip")
    for row in expectation(loaded)["tensors"]:
        row.pop("path")
        row.pop("storage")
        rows.append(dict(row, inside=""))
case.files[path.name] = {"format": "consolidated", "torch": torch.__version__.split("+")[0], "tensors": rows, "values": {},
                         "more_values": True}
case.finish()
