"""Sparse tensors: COO, CSR, CSC, BSR, BSC, hybrid and batched, coalesced or not."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, ramp

case = Case(__file__)
dense = torch.tensor([[0.0, 1.5, 0.0, 0.0], [2.0, 0.0, 0.0, -3.0], [0.0, 0.0, 0.0, 0.0], [4.0, 0.0, 5.0, 0.0]])
double = torch.sparse_coo_tensor(torch.tensor([[0, 1, 0], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), (2, 3))
case.save("coo", {
    "coalesced": dense.to_sparse(), "duplicates": double, "hybrid": torch.sparse_coo_tensor(torch.tensor([[0, 2]]), ramp(2, 3), (4, 3)),
    "empty": torch.sparse_coo_tensor(size=(3, 2)), "int": dense.long().to_sparse(), "w": ramp(2)})
case.save("coo_legacy", {"a": dense.to_sparse(), "w": ramp(2)}, form="legacy")
compressed = {"csr": dense.to_sparse_csr()}
if TORCH2:  # torch 1.13 saves CSR alone
    compressed["csc"] = dense.to_sparse_csc()
    compressed["bsr"] = dense.to_sparse_bsr((2, 2))
    compressed["bsc"] = dense.to_sparse_bsc((2, 2))
case.save("compressed", dict(compressed, w=ramp(2)))
case.save("compressed_kinds", {
    "int32": torch.sparse_csr_tensor(torch.tensor([0, 1, 2], dtype=torch.int32), torch.tensor([1, 0], dtype=torch.int32), torch.tensor([1.0, 2.0]),
                                     size=(2, 2)),
    "double": dense.double().to_sparse_csr(), "w": ramp(2)})
if TORCH2:
    case.save("batched", {"csr": torch.stack([dense, dense]).to_sparse_csr(), "w": ramp(2)})
case.finish()
