"""The random checkpoints of differential.py: what goes into them and how each kind is saved."""
import argparse
import bz2
import collections
import datetime
import decimal
import fractions
import functools
import gzip
import json
import os
import pathlib
import random
import resource
import tempfile
import warnings
import zipfile

import archive
import numpy
import torch
from fixture import TORCH2, expectation, load, module, packed
from torch import nn

try:
    import zstandard
except ImportError:  # Debian's Python 3.11 need not have it
    zstandard = None

DTYPES = ["float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]
NEWER = ["complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
         "float4_e2m1fn_x2"]
Pair = collections.namedtuple("Pair", "first second")


class Config:
    """An object of a training script: attributes and nothing else."""


class History(list):
    """A list subclass, which a pickle writes as an object with items."""


module("training.differential", Config, History, Pair)
warnings.filterwarnings("ignore")


def possible(kind):
    """Whether this torch can write checkpoints of a kind."""
    return TORCH2 or kind not in ("big_endian", "distributed", "pt2")


class Maker:
    """Makes random values; all randomness comes from one seed."""

    def __init__(self, seed, kind):
        self.rng, self.kind = random.Random(seed), kind
        self.made, self.bases = [], {}
        self.dtypes = list(DTYPES)
        if TORCH2 and kind not in ("big_endian", "distributed", "legacy", "wrapped", "mutated"):  # torch reads none of these from a legacy file
            self.dtypes += NEWER
        if kind == "distributed":
            self.dtypes.remove("bool")

    # -- tensors

    def values(self, count, dtype):
        """count elements of random bits, or of small numbers, as a flat tensor of its own storage."""
        size = torch.empty(0, dtype=dtype).element_size()
        if dtype == torch.bool and self.rng.random() < 0.8:
            raw = bytes(self.rng.getrandbits(1) for _ in range(count))
        elif self.rng.random() < 0.5 or not dtype.is_floating_point or size == 1:
            raw = bytes(self.rng.getrandbits(8) for _ in range(count * size))
        else:
            numbers = torch.tensor([self.rng.choice([0.0, -0.0, 1.0, self.rng.gauss(0, 3), 1e30, float("inf")]) for _ in range(count)])
            return numbers.to(dtype)
        if not raw:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8).clone().view(dtype)

    def shape(self):
        return [self.rng.choice([0, 1, 1, 2, 3, 4, 5, 7]) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4]))]

    def tensor(self):
        if self.made and self.rng.random() < 0.15:
            return self.rng.choice(self.made)  # tied: the same object again
        name = self.rng.choice(self.dtypes)
        tensor = self.view(name) if self.rng.random() < 0.4 else self.fresh(name)
        tensor = self.changed(tensor)
        self.made.append(tensor)
        return tensor

    def fresh(self, name):
        shape = self.shape()
        return self.values(math_prod(shape), getattr(torch, name)).reshape(shape)

    def view(self, name):
        """A window of a storage that others use too."""
        base = self.bases.setdefault(name, self.values(self.rng.choice([12, 60, 400]), getattr(torch, name)))
        shape = [size for size in self.shape() if size]
        strides = [self.rng.choice([0, 1, 1, 2, 3, 5]) for _ in shape]
        reach = sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1
        if reach > len(base):
            return base[self.rng.randrange(len(base)):]
        return torch.as_strided(base, shape, strides, self.rng.randint(0, len(base) - reach))

    def changed(self, tensor):
        """A view of the tensor, a Parameter of it, or itself."""
        choice = self.rng.random()
        if choice < 0.15 and tensor.ndim > 1:
            return tensor.permute(*self.rng.sample(range(tensor.ndim), tensor.ndim))
        if choice < 0.25 and tensor.ndim and tensor.shape[0]:
            start = self.rng.randrange(tensor.shape[0])
            return tensor[start::self.rng.choice([1, 2, 3])]
        if choice < 0.3:
            return tensor.expand(self.rng.choice([1, 2, 4]), *tensor.shape)
        if choice < 0.4 and tensor.dtype.is_floating_point and tensor.element_size() > 1:
            return nn.Parameter(tensor, requires_grad=self.rng.random() < 0.5)
        if choice < 0.55 and tensor.is_complex() and tensor.dtype != getattr(torch, "complex32", None):
            return numbers_only(tensor).conj()
        if choice < 0.43 and tensor.dtype in (torch.float32, torch.float64) and self.kind not in ("legacy", "wrapped", "mutated"):
            return torch._neg_view(numbers_only(tensor))
        return tensor

    def quantized(self):
        base = torch.tensor([self.rng.gauss(0, 4) for _ in range(12)]).reshape(self.rng.choice([(12,), (3, 4), (2, 2, 3)]))
        kind = self.rng.choice([torch.qint8, torch.quint8, torch.qint32])
        zero = self.rng.randint(0, 20)
        if self.rng.random() < 0.5 or base.ndim == 1:
            out = torch.quantize_per_tensor(base, self.rng.uniform(0.01, 1), zero, kind)
            return out.transpose(0, -1) if self.rng.random() < 0.3 else out
        axis = self.rng.randrange(base.ndim)
        scales = torch.tensor([self.rng.uniform(0.01, 1) for _ in range(base.shape[axis])], dtype=torch.float64)
        zeros = torch.tensor([self.rng.randint(0, 9) for _ in range(base.shape[axis])])
        return torch.quantize_per_channel(base, scales, zeros, axis, kind)

    def sparse(self):
        dense = torch.tensor([self.rng.choice([0.0, 0.0, self.rng.gauss(0, 1)]) for _ in range(24)]).reshape(4, 6)
        dense = dense.to(self.rng.choice([torch.float32, torch.float64]))
        makers = [dense.to_sparse, dense.to_sparse_csr]
        if TORCH2:
            makers += [dense.to_sparse_csc, lambda: dense.to_sparse_bsr((2, 3)), lambda: dense.to_sparse_bsc((2, 2)),
                       lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0, 2]]), dense[:3])]
        return self.rng.choice(makers)()

    def array(self):
        name = self.rng.choice(["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"])
        data = numpy.array([self.rng.randint(0, 100) for _ in range(12)]).astype(self.rng.choice("<>") + name if name != "?" else name)
        data = data.reshape(self.rng.choice([(12,), (3, 4), (2, 3, 2), (12, 1)]))
        return self.rng.choice([data, data.T, numpy.asfortranarray(data), data[::2], data[..., ::-1], data.flat[3]])

    # -- plain values and containers

    def text(self):
        letters = "abcXYZ019_ -/é重🐍\n\"'\\\x00\x1b"
        return "".join(self.rng.choice(letters) for _ in range(self.rng.choice([0, 1, 3, 8, 300])))

    def scalar(self):
        rng = self.rng
        return rng.choice([
            lambda: None, lambda: rng.random() < 0.5, lambda: rng.randint(-300, 300), lambda: rng.choice([-1, 1]) * rng.getrandbits(rng.choice([16, 33, 63, 64, 65, 200])),
            lambda: rng.gauss(0, 1e3), lambda: rng.choice([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-310, 1e22]),
            self.text, lambda: bytes(rng.getrandbits(8) for _ in range(rng.choice([0, 2, 300]))), lambda: bytearray(b"\x00\xfe"),
            lambda: complex(rng.gauss(0, 1), rng.choice([0.0, -0.0, 2.5])), lambda: rng.choice([torch.float16, torch.int64, torch.complex64]),
            lambda: torch.device(rng.choice(["cpu", "cuda:1", "meta"])), lambda: torch.Size([rng.randint(0, 5) for _ in range(rng.randint(0, 3))]),
        ])()

    def odd(self):
        rng = self.rng
        config = Config()
        config.lr, config.inner = rng.random(), self.tree(1)
        return rng.choice([
            lambda: argparse.Namespace(lr=rng.random(), weights=self.tensor(), note=self.text()), lambda: config,
            lambda: History([1, self.tensor()]), lambda: datetime.datetime(2020, 1, 2, rng.randint(0, 23)), lambda: datetime.timedelta(rng.randint(0, 9)),
            lambda: pathlib.PurePosixPath("runs/%d" % rng.randint(0, 9)), lambda: decimal.Decimal("1.5"), lambda: fractions.Fraction(1, 3),
            lambda: functools.partial(torch.nn.functional.relu, inplace=True), lambda: torch.nn.Linear, lambda: len, lambda: range(3),
            lambda: collections.deque([1, 2]), lambda: slice(1, 2), lambda: Pair(self.scalar(), self.tensor())])()

    def key(self):
        rng = self.rng
        if self.kind == "distributed":
            return "k" + "".join(rng.choice("abcxyz_") for _ in range(4))
        return rng.choice([
            self.text, self.text, lambda: "layer.%d.weight" % rng.randint(0, 99), lambda: rng.randint(-3, 20), lambda: (rng.randint(0, 3), "x"),
            lambda: None, lambda: rng.choice([True, 1.5, b"\x00k", torch.nn.Linear, frozenset([1]), 2**70])])()

    def tree(self, depth):
        """A random value; containers nest at most depth levels deep."""
        roll = self.rng.random()
        special = {"quantized": self.quantized, "sparse": self.sparse, "numpy": self.array}.get(self.kind)
        if special and roll < 0.25:
            return special()
        if depth == 0 or roll < 0.45:
            return self.tensor() if self.rng.random() < 0.6 else self.scalar()
        if roll < 0.53 and self.kind not in ("distributed",):
            return self.odd()
        return self.container(depth)

    def container(self, depth):
        rng = self.rng
        size = rng.choice([0, 1, 2, 3, 5])
        pairs = [(self.key(), self.tree(depth - 1)) for _ in range(size)]
        items = [value for _, value in pairs]
        if self.kind == "distributed":
            return rng.choice([lambda: dict(pairs), lambda: [self.scalar() for _ in items]])()
        return rng.choice([
            lambda: dict(pairs), lambda: dict(pairs), lambda: collections.OrderedDict(pairs), lambda: collections.defaultdict(list, pairs),
            lambda: collections.Counter(self.text()), lambda: items, lambda: items, lambda: tuple(items),
            lambda: rng.choice([set, frozenset])(rng.choice([1, "a", 2.5, None, b"x", True, "b", 7]) for _ in range(size))])()

    def root(self):
        """A dict as training scripts save it, of several random values."""
        return {self.key(): self.tree(self.rng.choice([0, 1, 2, 3])) for _ in range(self.rng.choice([1, 3, 6, 12]))}

    # -- modules

    def layer(self, depth=1):
        rng, a, b = self.rng, self.rng.randint(1, 4), self.rng.randint(1, 4)
        if self.kind == "module" and rng.random() < 0.2:
            return nn.GRU(a, b)  # cannot be scripted in a sequence
        return rng.choice([
            lambda: nn.Linear(a, b, bias=rng.random() < 0.5), lambda: nn.Conv2d(a, b, rng.choice([1, 3])), lambda: nn.BatchNorm1d(a),
            lambda: nn.LayerNorm(a), lambda: nn.Embedding(a, b), lambda: nn.GroupNorm(1, a), lambda: nn.PReLU(), lambda: nn.ReLU(),
            lambda: nn.Sequential(*[self.layer(depth - 1) for _ in range(rng.randint(1, 3))]) if depth else nn.Linear(a, b)])()

    def network(self):
        torch.manual_seed(self.rng.getrandbits(32))
        net = nn.Sequential(*[self.layer() for _ in range(self.rng.randint(1, 4))])
        return self.rng.choice([lambda: net, net.half, net.double, net.bfloat16])()


def numbers_only(tensor):
    """A copy without NaNs, whose sign is nobody's business."""
    copy = tensor.clone()
    copy[copy != copy] = 0
    return copy


def math_prod(shape):
    return functools.reduce(lambda a, b: a * b, shape, 1)


# ---- saving --------------------------------------------------------------------------------------------------------------

def write(folder, seed, number, kinds):
    """Writes checkpoint number of a seed and its expectation."""
    maker = Maker("%s/%d" % (seed, number), None)
    maker = Maker("%s/%d" % (seed, number), maker.rng.choice(kinds))
    path = folder / ("%05d-%s-torch%s.pt" % (number, maker.kind, ".".join(torch.__version__.split(".")[:2])))
    want = globals().get("save_" + maker.kind, save_tree)(maker, path)
    saved = want.pop("object", None)
    want["plant"] = tensor_byte(path, saved if maker.kind != "big_endian" else None)  # swapped bytes are not found by value
    if want["plant"] is None:
        del want["plant"]
    again = "differential.py --seed %s --only %d --out DIR --kinds %s" % (seed, number, " ".join(kinds))
    path.with_suffix(".expected.json").write_text(json.dumps({"again": again, "files": {path.name: want}}) + "\n")


def read(path, **flags):
    value = load(path)
    return dict(expectation(value, **flags), object=value)


def save_tree(maker, path):
    protocol = maker.rng.choice([1, 2, 2, 2, 3, 4, 5])
    torch.save(maker.root(), str(path), pickle_protocol=protocol)
    return read(path)


def save_legacy(maker, path):
    torch.save(maker.root(), str(path), pickle_protocol=maker.rng.choice([1, 2, 2, 3, 4]), _use_new_zipfile_serialization=False)
    return read(path)


def save_deflate(maker, path):
    torch.save(maker.root(), str(path))
    want = read(path)
    entries = archive.records(path)
    maker.rng.shuffle(entries)
    root = maker.rng.choice(["", "archive/", "my model (1)/", entries[0][0].split("/")[0] + "/"])
    write_zip = maker.rng.choice([archive.write, archive.write_streamed])
    write_zip(path, archive.renamed(entries, root), zipfile.ZIP_DEFLATED)
    want.pop("object")
    return want


def save_big_endian(maker, path):
    little = path.with_suffix(".little")
    torch.save(maker.root(), str(little))
    archive.big_endian(little, path)
    os.remove(little)
    return read(path)


def save_module(maker, path):
    value = maker.network()
    if maker.rng.random() < 0.5:
        value = {"model": value, "epoch": 3}
    torch.save(value, str(path), _use_new_zipfile_serialization=maker.rng.random() < 0.7)
    return read(path, more_values=True, more_opaque=True)


def save_torchscript(maker, path):
    torch.jit.save(torch.jit.script(maker.network()), str(path))
    want = expectation(dict(torch.jit.load(str(path)).state_dict()), more_values=True, more_tensors=True, more_opaque=True)
    want.pop("containers")
    for tensor in want["tensors"]:
        tensor.pop("path")
    return want


def save_wrapped(maker, path):
    """A compressed file, a zip or a folder around a checkpoint of either container."""
    torch.save(maker.root(), str(path), _use_new_zipfile_serialization=maker.rng.random() < 0.7)
    want = read(path)
    want.pop("object")
    content = path.read_bytes()
    wraps = [gzip.compress, bz2.compress, lambda data: zipped({"runs/": b"", "runs/last.ckpt": data, "runs/notes.txt": b"the best run"})]
    if zstandard:
        wraps.append(zstandard.ZstdCompressor().compress)
    if zipfile.is_zipfile(str(path)) and maker.rng.random() < 0.3:
        unpacked(path)
    else:
        path.write_bytes(maker.rng.choice(wraps)(content))
    return want


def zipped(files):
    with tempfile.TemporaryDirectory() as scratch:
        target = pathlib.Path(scratch) / "all.zip"
        archive.write(target, list(files.items()), zipfile.ZIP_DEFLATED)
        return target.read_bytes()


def unpacked(path):
    """Replaces a zip by the folder of its records."""
    folder = path.with_suffix(".folder")
    archive.unpack(path, folder)
    os.remove(path)
    folder.rename(path)


def save_package(maker, path):
    """An archive of torch.package with two pickles; their members may stand behind the names of the pickles."""
    roots = [maker.root(), {"more": maker.tensor(), "again": maker.tensor()}]
    with torch.package.PackageExporter(str(path)) as out:
        out.extern("**")
        for i, root in enumerate(roots):
            out.save_pickle("model", "part%d.pkl" % i, root)
    importer = torch.package.PackageImporter(str(path))
    want = expectation({"model/part%d.pkl" % i: importer.load_pickle("model", "part%d.pkl" % i) for i in range(2)})
    for tensor in want["tensors"]:
        tensor.pop("storage", None)  # the importer keeps storages of different pickles apart, though the file does not
    return want


def save_pt2(maker, path):
    """A program of torch.export."""
    torch.manual_seed(maker.rng.getrandbits(32))
    size, dtype = maker.rng.randint(1, 5), maker.rng.choice([torch.float32, torch.float64, torch.bfloat16])
    net = nn.Sequential(nn.Linear(3, size), maker.rng.choice([nn.ReLU(), nn.LayerNorm(size), nn.BatchNorm1d(size)]), nn.Linear(size, 2, bias=False))
    torch.export.save(torch.export.export(net.eval().to(dtype), (torch.zeros(2, 3, dtype=dtype),)), str(path))
    want = expectation(dict(torch.export.load(str(path)).state_dict), more_tensors=True)
    want.pop("containers")
    for tensor in want["tensors"]:
        for field in ("path", "storage", "strides", "offset", "contiguous"):
            tensor.pop(field, None)
    return want


def write_rank(rank, world, maker, folder, meeting):
    """One rank of a distributed save: plain values, and tensors cut over the ranks in every way."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    value = dict(maker.root(), always=torch.ones(2))
    for i in range(maker.rng.choice([1, 3, 6])):
        whole = maker.fresh(maker.rng.choice(["float32", "float16", "bfloat16", "int64", "float64"]))
        places = [Replicate()] + [Shard(axis) for axis in range(whole.ndim)]
        value["cut%d" % i] = distribute_tensor(whole, mesh, [maker.rng.choice(places)])
    dcp.save(value, checkpoint_id=folder)
    dist.destroy_process_group()


def save_distributed(maker, path):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    with tempfile.TemporaryDirectory() as scratch:
        world = maker.rng.choice([0, 0, 2, 3])
        if world:
            torch.multiprocessing.start_processes(write_rank, (world, maker, str(path), scratch + "/meeting"), nprocs=world, start_method="fork")
        else:
            dcp.save(dict(maker.root(), always=torch.ones(2)), checkpoint_id=str(path), no_dist=True)
        dcp_to_torch_save(str(path), scratch + "/whole.pt")
        want = expectation(load(scratch + "/whole.pt"), more_values=True, more_opaque=True)
    want.pop("containers", None)
    for tensor in want["tensors"]:
        for field in ("path", "strides", "offset", "contiguous", "storage"):
            tensor.pop(field, None)
    return want


def save_mutated(maker, path):
    """A damaged checkpoint: a bit flipped, bytes cut off, taken out, put twice, or exchanged. wick must refuse it, or read
    what torch reads from it."""
    value = {"model": collections.OrderedDict(("layer%d.weight" % i, maker.tensor()) for i in range(3)), "step": maker.rng.randint(0, 2**30),
             "names": [maker.text(), None, True], "view": maker.view("float32")}
    torch.save(value, str(path), _use_new_zipfile_serialization=maker.rng.random() < 0.3)
    path.write_bytes(mutated(maker.rng, path.read_bytes()))
    want = in_child(lambda: expectation(torch.load(str(path), map_location="cpu", weights_only=True)))
    return dict(want or {}, damaged="loads" if want else "refused")


def mutated(rng, data):
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    short = min(b, a + rng.choice([1, 2, 8, 64]))
    how = rng.random()
    if how < 0.5:
        return data[:a] + bytes([data[a] ^ 1 << rng.randrange(8)]) + data[a + 1:]
    if how < 0.6:
        return data[:a]
    if how < 0.7:
        return data[:a] + data[short:]
    if how < 0.8:
        return data[:short] + data[a:short] + data[short:]
    middle = rng.randint(a, b)
    return data[:a] + data[middle:b] + data[a:middle] + data[b:]


def in_child(work, seconds=20):
    """What work returns, as JSON, or None where it fails, however it fails: damaged bytes may well crash torch."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer = json.dumps(work()).encode()
            with open(writer, "wb") as out:
                out.write(answer)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def tensor_byte(path, value):
    """The offset in a file of a byte that only one tensor's values use, or None."""
    if value is None or path.is_dir():
        return None
    content, found = path.read_bytes(), []
    for tensor in tensors(value):
        plain = type(tensor) in (torch.Tensor, nn.Parameter) and tensor.layout == torch.strided and not tensor.is_quantized
        if plain and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg() and len(packed(tensor)) >= 8:
            at = content.find(packed(tensor))
            if at >= 0 and content.find(packed(tensor), at + 1) < 0:  # also no second place that overlaps the first
                found.append(at)
    return found[0] if found else None


def tensors(value, depth=0):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.state_dict().values()
    elif isinstance(value, (dict, list, tuple)) and depth < 6:
        for child in value.values() if isinstance(value, dict) else value:
            yield from tensors(child, depth + 1)
