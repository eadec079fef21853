"""Folders that DeepSpeed's ZeRO saves, by several gloo ranks; DeepSpeed's own zero_to_fp32 says what is in them.

Run with deepspeed (pip install deepspeed) and torch 2; without deepspeed nothing is made.

zeroS-rN   stage S on N ranks: two groups of parameters, tied embeddings, frozen parameters, buffers, padding
zero2-of-steps  the folder above the step's, with the file latest
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
os.environ["DS_ACCELERATOR"] = "cpu"
import torch

HERE = pathlib.Path(__file__).parent


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(7, 3)
        self.fc = torch.nn.Linear(3, 5)
        self.norm = torch.nn.BatchNorm1d(5)
        self.conv = torch.nn.Conv1d(2, 3, 5)
        self.back = torch.nn.Linear(5, 3)
        self.out = torch.nn.Linear(3, 7, bias=False)
        self.out.weight = self.emb.weight
        self.scale = torch.nn.Parameter(torch.tensor([2.5]))
        self.frozen = torch.nn.Linear(5, 3)
        for p in self.frozen.parameters():
            p.requires_grad_(False)


def rank(stage, out):
    import deepspeed

    torch.manual_seed(3)
    model = Model()
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1]}, {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}]
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage}, "bf16": {"enabled": True},
              "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=groups)
    engine.save_checkpoint(out, tag="step")


def save(stage, world, out):
    with tempfile.TemporaryDirectory() as meeting:
        port = str(29600 + stage * 10 + world)
        ranks = [subprocess.Popen([sys.executable, __file__, "rank", str(stage), out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=meeting,
                                  env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for r in range(world)]
        if any([p.wait(600) for p in ranks]):
            sys.exit(f"stage {stage} on {world} ranks failed")


def main():
    try:
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    except ImportError as err:
        sys.exit(print(f"deepspeed: nothing is made without it: {err}", file=sys.stderr))
    from fixture import Case, expectation

    case = Case(__file__)

    def keep(source, name, above):
        name = case.path(name, "").name
        shutil.rmtree(HERE / name, ignore_errors=True)
        shutil.copytree(source if above else source / "step", HERE / name)
        for script in (HERE / name).glob("*.py"):
            script.unlink()
        whole = get_fp32_state_dict_from_zero_checkpoint(str(source), tag="step")
        row = expectation({k: v.detach().clone() for k, v in whole.items()}, more_values=True, more_opaque=True)
        row.pop("containers", None)
        for t in row["tensors"]:
            for key in ("strides", "offset", "contiguous", "storage", "path"):
                t.pop(key, None)
        case.files[name] = dict(format="deepspeed", torch=torch.__version__.split("+")[0], **row)

    for stage, world in ((1, 2), (2, 2), (2, 3), (3, 2), (3, 3)):
        with tempfile.TemporaryDirectory() as d:
            save(stage, world, d)
            keep(pathlib.Path(d), f"zero{stage}-r{world}", False)
            if (stage, world) == (2, 2):
                keep(pathlib.Path(d), "zero2-of-steps", True)
    case.finish()


if sys.argv[1:2] == ["rank"]:
    rank(int(sys.argv[2]), sys.argv[3])
else:
    main()
