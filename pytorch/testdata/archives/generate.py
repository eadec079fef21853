"""Archives in layouts that torch no longer writes: torch.export before 2.7 and of 2.7 and 2.8, put together from what
torch wrote and read back by torch; weights of AOTInductor; TorchScript before 1.3. Writes expected.json; needs torch 2.x.
"""
import hashlib
import io
import json
import pathlib
import struct
import warnings
import zipfile

import torch

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).resolve().parent
STAMP = (2024, 1, 1, 0, 0, 0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("kept", torch.arange(4.0)[1:3])
        self.register_buffer("dropped", torch.tensor([1.5, 2.5]), persistent=False)

    def forward(self, x):
        return self.linear(x) + self.kept + self.dropped


def write(name, entries):
    """Writes the entries, without the places where torch and this file are, which torch notes in its traces."""
    places = {str(pathlib.Path(torch.__file__).parent.parent).encode(): b"site-packages", str(HERE.parents[2]).encode(): b"repository"}
    with zipfile.ZipFile(HERE / name, "w") as out:
        for path, data in entries:
            data = data.encode() if isinstance(data, str) else data
            for place, name_of_it in places.items():
                data = data.replace(place, name_of_it)
            out.writestr(zipfile.ZipInfo(path, STAMP), data)


def saved(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def row(tensor):
    data = tensor.detach().contiguous().cpu()
    raw = data.view(torch.uint8).numpy().tobytes() if data.dim() else data.reshape(1).view(torch.uint8).numpy().tobytes()
    return {"dtype": str(data.dtype)[6:], "shape": list(data.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def note(name, form, tensors):
    path = HERE / "expected.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[name] = {"format": form, "torch": torch.__version__.split("+")[0], "tensors": {key: row(value) for key, value in tensors.items()}}
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def records(path):
    with zipfile.ZipFile(path) as source:
        return [(info.filename, source.read(info)) for info in source.infolist()]


def export():
    torch.manual_seed(1)
    program = torch.export.export(Net().eval(), (torch.ones(2, 3),))
    now = HERE / "now.pt2"
    torch.export.save(program, str(now))
    parts = records(now)
    now.unlink()
    weights, constants = dict(program.state_dict), dict(program.constants)

    layout = [(n, d) for n, d in parts if not n.split("/", 1)[1].startswith(("data/weights/", "data/constants/"))]
    layout += [("now/data/weights/model.pt", saved(weights)), ("now/data/constants/model.pt", saved(constants))]
    write("export-2.7.pt2", layout)
    loaded = torch.export.load(str(HERE / "export-2.7.pt2"))
    note("export-2.7.pt2", "pt2", {**loaded.state_dict, **loaded.constants})

    body = dict(parts)["now/models/model.json"]
    version = json.loads(body)["schema_version"]
    write("export-2.1.pt2", [
        ("serialized_exported_program.json", body), ("serialized_state_dict.pt", saved(weights)),
        ("serialized_constants.pt", saved(constants)), ("serialized_example_inputs.pt", saved(((torch.ones(2, 3),), {}))),
        ("version", "%d.%d" % (version["major"], version["minor"]))])
    loaded = torch.export.load(str(HERE / "export-2.1.pt2"))
    note("export-2.1.pt2", "pt2", {**loaded.state_dict, **loaded.constants})


def inductor():
    from torch.export.pt2_archive._package import PT2ArchiveReader, package_pt2
    from torch.export.pt2_archive._package_weights import TensorProperties, Weights
    base = torch.arange(12.0)
    tensors = {"w": base.view(3, 4), "part": base[2:6].view(2, 2), "other": torch.tensor([1, 2, 3])}
    made = Weights({name: (value, TensorProperties(value)) for name, value in tensors.items()})
    path = HERE / "inductor.pt2"
    package_pt2(str(path), aoti_files={"model": [made]})
    with PT2ArchiveReader(str(path)) as reader:
        config = json.loads(reader.read_string("data/aotinductor/model/weights_config.json"))
        read = {name: torch.load(io.BytesIO(reader.read_bytes("data/weights/" + file))).as_strided(shape, stride, offset)
                for name, (file, shape, stride, offset) in config.items()}
    note("inductor.pt2", "pt2", read)


def script():
    values = {"tensors/0": ("f", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]), "tensors/1": ("q", [7, 8]), "tensors/2": ("f", [3.0, 4.0])}
    table = [("tensors/0", "FLOAT", [2, 3], [3, 1], 0, True), ("tensors/0", "FLOAT", [3, 2], [1, 3], 0, False),
             ("tensors/1", "INT64", [], [], 1, False), ("tensors/2", "FLOAT", [2], [1], 0, True)]
    # The numbers of protobuf's int64 are text in JSON.
    tensors = [{"dims": [str(n) for n in dims], "strides": [str(n) for n in strides], "offset": str(offset), "requiresGrad": grad,
                "dataType": kind, "data": {"key": key}, "device": "cpu"} for key, kind, dims, strides, offset, grad in table]
    block = {"name": "block", "optimize": True, "parameters": [{"isBuffer": False, "tensorId": "3", "name": "bias"}]}
    main = {"name": "Net", "optimize": True, "submodules": [block], "parameters": [
        {"isBuffer": False, "tensorId": "0", "name": "weight"}, {"isBuffer": True, "tensorId": "1", "name": "turned"},
        {"isBuffer": True, "tensorId": "2", "name": "count"}],
        "attributes": [{"type": "int", "name": "steps", "id": "0"}, {"type": "List[int]", "name": "sizes", "id": "1"}, {"type": "Tensor", "name": "loose", "id": "2"}]}
    model = {"protoVersion": "3", "mainModule": main, "producerName": "pytorch", "producerVersion": "1.2", "tensors": tensors}
    # attributes.pkl: (5, [1, 2], tensor 3), as torch 1.2's pickler wrote it
    attributes = (b"\x80\x02(K\x05ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R"
                  b"ctorch.jit._pickle\nbuild_tensor_from_id\nK\x03\x85Rt.")
    name = "script-1.2.pt"
    write(name, [("old/model.json", json.dumps(model)), ("old/attributes.pkl", attributes), ("old/code/Net.py", "op_version_set = 1\n")]
          + [("old/" + key, struct.pack("<%d%s" % (len(v), kind), *v)) for key, (kind, v) in values.items()] + [("old/version", "1\n")])
    # No torch of today reads it (import_legacy.cpp is left out of its builds): the table says what is in it.
    kinds = {"f": torch.float32, "q": torch.int64}
    laid = [torch.tensor(values[key][1], dtype=kinds[values[key][0]]).as_strided(dims, strides, offset)
            for key, _, dims, strides, offset, _ in table]
    note(name, "torchscript", {"weight": laid[0], "turned": laid[1], "count": laid[2], "block.bias": laid[3], "loose": laid[3]})


export()
inductor()
script()
