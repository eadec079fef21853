"""What trainers leave around a model: wrappers before the names, shards of FSDP, flat parameters of fairscale.

Run with torch 2 and fairscale (pip install fairscale); without fairscale nothing is made.

compiled-ddp     the state dict of DistributedDataParallel around torch.compile around checkpointed layers
fsdp-r2          torch.distributed.checkpoint of torch's FSDP on two gloo ranks, below the key model, compiled
fairscale-rN     the shards of N ranks of fairscale's FSDP: nested, padded, tied, not flattened; fairscale consolidates them
plain.json       for the first two: the same model without any wrapper, names and hashes
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, digest, expectation, packed

HERE = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")


class Llama(torch.nn.Module):
    """Modules under the names of Hugging Face's Llama; nobody runs it."""

    def __init__(self):
        super().__init__()
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        layer = lambda: torch.nn.ModuleDict({
            "self_attn": torch.nn.ModuleDict({"q_proj": linear(16, 16), "k_proj": linear(16, 8), "v_proj": linear(16, 8), "o_proj": linear(16, 16)}),
            "mlp": torch.nn.ModuleDict({"gate_proj": linear(16, 24), "up_proj": linear(16, 24), "down_proj": linear(24, 16)}),
            "input_layernorm": torch.nn.RMSNorm(16), "post_attention_layernorm": torch.nn.RMSNorm(16)})
        self.model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(32, 16), "layers": torch.nn.ModuleList([layer(), layer()]), "norm": torch.nn.RMSNorm(16)})
        self.lm_head = linear(16, 32)


def llama():
    torch.manual_seed(6)
    return Llama().bfloat16()


def ddp(rank, world, out, meeting):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    model = llama()
    model.model["layers"] = torch.nn.ModuleList([checkpoint_wrapper(layer) for layer in model.model["layers"]])
    sd = torch.nn.parallel.DistributedDataParallel(torch.compile(model)).state_dict()
    torch.save(sd, out)
    torch.distributed.destroy_process_group()


def fsdp(rank, world, out, meeting):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType

    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    model = llama()
    model.model["layers"] = torch.nn.ModuleList([FullyShardedDataParallel(layer, device_id=torch.device("cpu"), use_orig_params=True) for layer in model.model["layers"]])
    model = torch.compile(FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True))
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        dcp.save({"model": model.state_dict(), "step": 7}, checkpoint_id=out)
    torch.distributed.destroy_process_group()


def scaled(rank, world, out, meeting):
    from fairscale.nn import FullyShardedDataParallel as FSDP

    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    torch.manual_seed(5)
    wrap = lambda m, **kw: FSDP(m, compute_device=torch.device("cpu"), **kw)
    tied = torch.nn.Sequential(torch.nn.Embedding(7, 3), torch.nn.Linear(3, 7, bias=False))
    tied[1].weight = tied[0].weight
    model = torch.nn.Sequential(wrap(torch.nn.Linear(3, 5)), torch.nn.Sequential(torch.nn.Conv1d(2, 3, 5), wrap(torch.nn.Linear(5, 2), flatten_parameters=False)),
                                torch.nn.BatchNorm1d(2), wrap(tied))
    model = wrap(model)
    torch.save({"model": model.local_state_dict(), "shard_metadata": model.local_metadata_dict(), "args": {"lr": 0.1}}, f"{out}/checkpoint_last-shard{rank}.pt")
    torch.distributed.destroy_process_group()


def spawn(f, world, out):
    with tempfile.TemporaryDirectory() as d:
        torch.multiprocessing.spawn(f, (world, str(out), d + "/meeting"), nprocs=world)


def main():
    try:
        from fairscale.nn import FullyShardedDataParallel as FSDP
    except ImportError as err:
        sys.exit(print(f"leftovers: nothing is made without fairscale: {err}", file=sys.stderr))
    case = Case(__file__)
    os.chdir(HERE)
    file, folder = case.path("compiled-ddp", ".pt"), case.path("fsdp-r2", "")
    spawn(ddp, 1, file)
    shutil.rmtree(folder, ignore_errors=True)
    spawn(fsdp, 2, folder.name)
    rows = {k: {"dtype": str(v.dtype).split(".")[1], "shape": list(v.shape), "sha256": digest(packed(v))} for k, v in llama().state_dict().items()}
    (HERE / "plain.json").write_text(json.dumps({"compiled": file.name, "fsdp": folder.name, "plain": rows}, indent=1) + "\n")
    for world in (2, 3):
        path = case.path(f"fairscale-r{world}", "")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        spawn(scaled, world, path)
        parts = [torch.load(path / f"checkpoint_last-shard{r}.pt", weights_only=False) for r in range(world)]
        whole = FSDP.consolidate_shard_weights([p["model"] for p in parts], [p["shard_metadata"] for p in parts])
        row = expectation({k: v.detach().clone() for k, v in whole.items()}, more_values=True, more_opaque=True)
        row.pop("containers", None)
        for t in row["tensors"]:
            for key in ("strides", "offset", "contiguous", "storage", "path"):
                t.pop(key, None)
        case.files[path.name] = dict(format="fairscale", torch=torch.__version__.split("+")[0], **row)
    case.finish()


if __name__ == "__main__" and TORCH2:
    main()
