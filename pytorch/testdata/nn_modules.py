"""Writes nn_modules-torchVERSION.json: the classes of modules in the files of torch.nn.modules, and whatever else these files hold
under a name that begins like one.

    python nn_modules.py        from this folder, with each torch
"""

import importlib
import inspect
import json
import pathlib
import pkgutil

import torch

classes, others = [], []
for file in pkgutil.iter_modules(torch.nn.modules.__path__, "torch.nn.modules."):
    module = importlib.import_module(file.name)
    for name, value in sorted(vars(module).items()):
        if not name[0].isupper():
            continue
        own = inspect.isclass(value) and issubclass(value, torch.nn.Module) and value.__module__ == file.name
        (classes if own else others).append(f"{file.name}.{name}")

version = ".".join(torch.__version__.split(".")[:2])
out = pathlib.Path(__file__).parent / f"nn_modules-torch{version}.json"
out.write_text(json.dumps({"classes": classes, "others": others}, indent=0) + "\n")
