"""Parameters, buffers, subclasses of Tensor and tensors that carry attributes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, load, module, ramp
from torch import nn


class Tagged(torch.Tensor):
    pass


class MyParameter(nn.Parameter):
    pass


module("mytraining.tensors", Tagged, MyParameter)
case = Case(__file__)
plain = {"p": nn.Parameter(ramp(2, 2)), "frozen": nn.Parameter(ramp(3), requires_grad=False), "grad": ramp(2).requires_grad_(),
         "list": nn.ParameterList([nn.Parameter(ramp(1))]).state_dict(), "t": nn.Parameter(ramp(2, 3).t())}
case.save("parameters", plain)
case.save("parameters_legacy", plain, form="legacy")
stateful = nn.Parameter(ramp(2))
stateful.tag, stateful.mask = "row", ramp(2, start=5)
tensor = ramp(3)
tensor.note = "kept"
tagged = ramp(2, 2).as_subclass(Tagged)
tagged.owner = {"name": "x"}
case.save("with_state", {"p": stateful, "w": tensor, "tagged": tagged, "last": ramp(1)}, flags={"more_tensors": True, "more_values": True})
subclasses = {"tagged": ramp(2, 3).as_subclass(Tagged), "t": ramp(2, 3).t().as_subclass(Tagged), "param": MyParameter(ramp(2))}
if TORCH2:
    case.save("subclasses", dict(subclasses, last=ramp(1)))
for value in subclasses.values():  # torch 1.13 under Python 3.11 cannot read a subclass that has no state
    value.tag = 1
case.save("subclasses_with_state", dict(subclasses, last=ramp(1)), flags={"more_tensors": True, "more_values": True})
if TORCH2:  # a group of one process, so that the tensor is whole
    import torch.distributed as dist
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    path = case.path("dtensor")
    torch.save({"d": distribute_tensor(ramp(4, 3), mesh, [Shard(0)]), "h": distribute_tensor(ramp(2, dtype=torch.float16), mesh, [Shard(0)]),
                "w": ramp(2)}, str(path))
    read = load(path)
    read.update(d=read["d"].full_tensor(), h=read["h"].full_tensor())
    case.expect(path, read, "zip", more_values=True, more_tensors=True, more_opaque=True)
    dist.destroy_process_group()
case.save("containers", {"params": nn.ParameterList([nn.Parameter(ramp(2)), nn.Parameter(ramp(1))]),
                         "dict": nn.ParameterDict({"a": nn.Parameter(ramp(3))})})
case.finish()
