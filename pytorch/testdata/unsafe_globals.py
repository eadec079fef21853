"""Writes unsafe_globals.json: what torch's weights-only loader would refuse to import of each zip fixture.

    python unsafe_globals.py        from this folder, with the torch that the fixtures' names end in
"""

import json
import pathlib

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2] / "pytorch-tests"

found = {}
for path in sorted(ROOT.glob("*/*-torch2.15.pt")):
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(str(path))
    except Exception:  # it lists names of zip files of protocol 2 or less, and refuses the others
        continue
    found[path.relative_to(ROOT).as_posix()] = sorted(names)
(pathlib.Path(__file__).parent / "unsafe_globals.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
