"""Models packed for phones and servers: the zip of the lite interpreter opens; flatbuffers and MAR files are refused by name."""
import io
import pathlib
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import torch
from fixture import Case, ramp
from torch import nn

torch.manual_seed(8)
case = Case(__file__)
model = torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval())
path = case.path("lite", ".ptl")
model._save_for_lite_interpreter(str(path))
archive.without_debug(path)
case.expect(path, dict(model.state_dict()), "torchscript", more_values=True, more_tensors=True, more_opaque=True)
case.files[path.name].pop("containers", None)
for row in case.files[path.name]["tensors"]:
    row.pop("path")
flat = case.path("flatbuffer", ".ptl")
try:
    model._save_for_lite_interpreter(str(flat), _use_flatbuffer=True)
    case.refuse(flat, "unsupported", 4, "flatbuffer|mobile")
except RuntimeError:
    flat.unlink(missing_ok=True)  # this torch was built without it
state = io.BytesIO()
torch.save({"w": ramp(2)}, state)
mar = case.path("archive", ".mar")
archive.write(mar, [("model.pt", state.getvalue()), ("handler.py", b"pass\n"), ("MAR-INF/MANIFEST.json", b'{"model": {"modelName": "x"}}')],
              method=zipfile.ZIP_DEFLATED)
case.refuse(mar, "unsupported", 4, "MAR|TorchServe")
case.finish()
