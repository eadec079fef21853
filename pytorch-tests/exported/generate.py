"""Archives of torch.export (.pt2) and torch.package: the weights in them."""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, expectation, ramp
from torch.package import PackageExporter, PackageImporter

warnings.simplefilter("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.register_buffer("kept", ramp(2))
        self.register_buffer("dropped", ramp(2), persistent=False)
        self.constant = ramp(2)

    def forward(self, x):
        return self.norm(self.linear(x)) + self.kept + self.dropped + self.constant


def note(case, path, value, form, **row_changes):
    """Notes that path lists value's tensors, perhaps among others and behind another name."""
    row = expectation(value, more_values=True, more_tensors=True, more_opaque=True)
    row.pop("containers", None)
    for tensor in row["tensors"]:
        for key in ("path", "storage", "strides", "offset", "contiguous"):
            tensor.pop(key, None)
        tensor.update(row_changes)
    case.files[path.name] = dict(format=form, torch=torch.__version__.split("+")[0], **row)


torch.manual_seed(6)
case = Case(__file__)
if TORCH2:
    for stem, dtype in (("export", torch.float32), ("export_half", torch.float16)):
        path = case.path(stem, ".pt2")
        program = torch.export.export(Net().eval().to(dtype), (ramp(2, 3, dtype=dtype),))
        for node in program.graph.nodes:  # the source that it came from, with the paths of whoever runs this
            node.meta.pop("stack_trace", None)
        torch.export.save(program, str(path))
        note(case, path, dict(torch.export.load(str(path)).state_dict), "pt2")
path = case.path("package")
value = {"w": ramp(2, 3).t(), "n": 3, "h": ramp(3, dtype=torch.float16)}
with PackageExporter(str(path)) as out:
    out.save_pickle("model", "model.pkl", value)
    out.save_text("model", "notes.txt", "text")
    out.save_pickle("extra", "more.pkl", {"v": ramp(4)})
importer = PackageImporter(str(path))
both = dict(importer.load_pickle("model", "model.pkl"), **importer.load_pickle("extra", "more.pkl"))
both.pop("n")
note(case, path, both, "package", inside="")
case.finish()
