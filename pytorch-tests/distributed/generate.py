"""torch.distributed.checkpoint folders, saved by one process and by several gloo ranks; torch's own converter reads them."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, expectation, load, ramp

warnings.simplefilter("ignore")


def shared_part():
    return {"epoch": 3, "config": {"name": "x", "sizes": [1, 2]}, "args": argparse.Namespace(lr=0.1), "none": None,
            "list": [ramp(2), {"a": ramp(3, dtype=torch.float16)}], "step": torch.tensor(7), "empty": torch.zeros(0, 3)}


def single():
    torch.manual_seed(4)
    return dict(shared_part(), model=torch.nn.Linear(2, 3).state_dict(), transposed=ramp(3, 4).t(), half=ramp(3, dtype=torch.bfloat16))


def write_ranks(rank, world, folder, meeting):
    """One rank: saves tensors that are cut over the ranks in every way."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    value = dict(shared_part())
    value["model"] = {
        "rows": distribute_tensor(ramp(4, 3), mesh, [Shard(0)]), "columns": distribute_tensor(ramp(3, 8), mesh, [Shard(1)]),
        "uneven": distribute_tensor(ramp(5, 2, dtype=torch.float16), mesh, [Shard(0)]),
        "few": distribute_tensor(ramp(1, 2), mesh, [Shard(0)]),
        "replicated": distribute_tensor(ramp(2, 2), mesh, [Replicate()]), "deep": distribute_tensor(ramp(2, 3, 4), mesh, [Shard(2)]),
        "longs": distribute_tensor(torch.arange(6), mesh, [Shard(0)])}
    if world == 4:
        grid = init_device_mesh("cpu", (2, 2))
        value["grid"] = distribute_tensor(ramp(5, 6), grid, [Shard(0), Shard(1)])
        value["half_replicated"] = distribute_tensor(ramp(4, 6), grid, [Replicate(), Shard(0)])
    dcp.save(value, checkpoint_id=folder)
    dist.destroy_process_group()


def in_pieces():
    return {"rows": ramp(5, 3), "columns": ramp(3, 8, dtype=torch.float16), "replicated": ramp(2, 2), "whole": ramp(3), "longs": torch.arange(4),
            "scalar": torch.tensor(7.0)}


def write_pieces(rank, world, folder, meeting):
    """One rank: saves its pieces as Hugging Face's files."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    value = in_pieces()
    for name, placement in {"rows": Shard(0), "columns": Shard(1), "replicated": Replicate(), "longs": Shard(0)}.items():
        value[name] = distribute_tensor(value[name], mesh, [placement])
    writer = dcp.HuggingFaceStorageWriter(folder, save_distributed=True, fqn_to_index_mapping={name: 1 + i % 2 for i, name in enumerate(value)})
    dcp.save(value, storage_writer=writer)
    dist.destroy_process_group()


def expect_pieces(case, path):
    """What was saved speaks: torch 2.15's own tool, consolidate_safetensors_files, loses scalars and takes no integers."""
    row = expectation(in_pieces())
    row["tensors"].sort(key=lambda tensor: tensor["name"])
    for tensor in row["tensors"]:
        for key in ("strides", "offset", "contiguous", "storage"):
            tensor.pop(key, None)
    row.pop("containers")
    case.files[path.name] = dict(format="shards", torch=torch.__version__.split("+")[0], **row)


def expect(case, path):
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    with tempfile.TemporaryDirectory() as scratch:
        whole = os.path.join(scratch, "whole.pt")
        dcp_to_torch_save(str(path), whole)
        row = expectation(load(whole), more_values=True, more_opaque=True)
    row.pop("containers")
    row["tensors"].sort(key=lambda tensor: tensor["name"])  # the ranks' order is that of a race
    row["values"] = dict(sorted(row["values"].items()))
    for tensor in row["tensors"]:
        for key in ("strides", "offset", "contiguous", "storage", "path"):
            tensor.pop(key, None)
    case.files[path.name] = dict(format="distributed", torch=torch.__version__.split("+")[0], **row)


def main():
    import torch.distributed.checkpoint as dcp

    case = Case(__file__)
    os.chdir(case.dir)  # the metadata keeps the folder's path as it was given
    path = case.path("single", "")
    shutil.rmtree(path, ignore_errors=True)
    dcp.save(single(), checkpoint_id=path.name, no_dist=True)
    expect(case, path)
    path = case.path("file_per_tensor", "")
    shutil.rmtree(path, ignore_errors=True)
    dcp.save(single(), storage_writer=dcp.FileSystemWriter(path.name, single_file_per_rank=False), no_dist=True)
    expect(case, path)
    for world in (2, 4):
        path = case.path("ranks%d" % world, "")
        shutil.rmtree(path, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            torch.multiprocessing.spawn(write_ranks, (world, path.name, os.path.join(scratch, "meeting")), nprocs=world)
        expect(case, path)
    path = case.path("pieces", "")
    shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        torch.multiprocessing.spawn(write_pieces, (2, path.name, os.path.join(scratch, "meeting")), nprocs=2)
    expect_pieces(case, path)
    case.finish()


if __name__ == "__main__" and TORCH2:  # torch 1.13 has no such format
    main()
