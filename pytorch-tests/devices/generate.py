"""Files saved on machines with accelerators: where a storage came from never matters for reading it."""
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
value = {"a": ramp(2), "b": ramp(2, dtype=torch.float16), "c": torch.arange(3), "d": ramp(2, 2).t(), "e": ramp(1)}
known = torch.serialization.location_tag
for form in ("zip", "legacy"):
    tags = itertools.cycle(["cuda:1", "mps", "cuda:0", "cuda", "cpu"])
    seen = {}
    torch.serialization.location_tag = lambda storage: seen.setdefault(storage.data_ptr(), next(tags))
    path = case.path("tagged_" + form)
    torch.save(value, str(path), _use_new_zipfile_serialization=form == "zip")
    torch.serialization.location_tag = known
    case.expect(path, torch.load(str(path), map_location=lambda storage, location: storage), form)
case.finish()
