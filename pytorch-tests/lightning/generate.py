"""Checkpoints in the shape that training frameworks write: Lightning, OmegaConf, detectron, YOLO, fairseq.

The frameworks' classes are emulated by classes of the same module and name, which is all that a pickle knows of them.
"""
import argparse
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import numpy
import torch
from fixture import Case, module, ramp
from torch import nn


class AttributeDict(dict):
    pass


class ModelCheckpoint:
    pass


class Node:
    """A node of OmegaConf: holds its content, and a link to its parent that makes a cycle."""

    def __init__(self, content=None, parent=None):
        self._content, self._parent, self._flags = content, parent, None


class DictConfig(Node):
    pass


class ListConfig(Node):
    pass


class AnyNode:
    def __init__(self, value, parent):
        self._val, self._parent = value, parent


class HistoryBuffer:
    def __init__(self):
        self._log_history, self._count_history, self._statistics_methods = numpy.array([0.5, 0.25]), numpy.array([1, 2]), {}


class Dictionary:
    def __init__(self):
        self.symbols, self.count, self.indices = ["<s>", "a"], [1, 2], {"<s>": 0, "a": 1}


class DetectionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2))
        self.names, self.stride, self.yaml = {0: "person"}, ramp(3, start=8), {"nc": 1}


module("pytorch_lightning.utilities.parsing", AttributeDict)
module("pytorch_lightning.callbacks.model_checkpoint", ModelCheckpoint)
module("omegaconf.dictconfig", DictConfig)
module("omegaconf.listconfig", ListConfig)
module("omegaconf.nodes", AnyNode)
module("mmengine.logging.history_buffer", HistoryBuffer)
module("fairseq.data.dictionary", Dictionary)
module("ultralytics.nn.tasks", DetectionModel)
torch.manual_seed(5)
case = Case(__file__)
more = {"more_values": True, "more_tensors": True, "more_opaque": True}
weights = {"layer.weight": ramp(2, 2), "layer.bias": ramp(2)}
case.save("lightning", {
    "epoch": 3, "global_step": 128, "pytorch-lightning_version": "1.9.0", "state_dict": collections.OrderedDict(weights),
    "callbacks": {ModelCheckpoint: {"monitor": "val_loss", "best_model_score": torch.tensor(0.25), "best_model_path": "a.ckpt"},
                  "EarlyStopping{'monitor': 'val_loss'}": {"wait_count": 2}},
    "optimizer_states": [{"state": {0: {"step": torch.tensor(3.0), "exp_avg": ramp(2)}}, "param_groups": [{"lr": 0.001, "params": [0]}]}],
    "lr_schedulers": [{"last_epoch": 3}], "loops": {"fit_loop": {"state_dict": {}}}, "hparams_name": "hparams",
    "hyper_parameters": AttributeDict(lr=0.001, name="base", layers=[1, 2])}, suffix=".ckpt", flags=more)
root = DictConfig({})
root._content["lr"] = AnyNode(0.1, root)
root._content["sizes"] = ListConfig([], root)
root._content["sizes"]._content.append(AnyNode(3, root._content["sizes"]))
case.save("omegaconf", {"state_dict": weights, "config": root, "step": 9}, suffix=".ckpt", flags=more)
case.save("mmengine", {"meta": {"epoch": 1, "version": "0.1"}, "state_dict": weights,
                       "message_hub": {"log_scalars": {"loss": HistoryBuffer()}}}, suffix=".pth", flags=more)
case.save("fairseq", {"args": argparse.Namespace(arch="wav2vec", dropout=0.1), "model": weights, "task_state": {"dict": Dictionary()},
                      "extra_state": {"epoch": 1}}, flags=more)
case.save("yolo", {"epoch": -1, "model": DetectionModel().half(), "ema": None, "updates": None, "train_args": {"imgsz": 640},
                   "date": "2024-01-01"}, flags=more)
case.save("detectron_numpy", {"model": {"w": numpy.arange(6, dtype=numpy.float32).reshape(2, 3)}, "__author__": "x",
                              "matching_heuristics": True}, suffix=".pth")
case.finish()
