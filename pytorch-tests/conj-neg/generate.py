"""Lazy conjugation and negation, kept as bits beside the storage, change the values."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
complex_ = torch.view_as_complex(ramp(2, 3, 2, start=-1))
bits = {"conj": complex_.conj(), "neg": torch._neg_view(ramp(3, 2, start=-1)), "imag": torch.view_as_complex(ramp(4, 2)).conj().imag, "conj_t": complex_.conj().t(), "adjoint": complex_.mH, "plain": complex_,
        "double": complex_.to(torch.complex128).conj()[1:], "resolved": complex_.conj().resolve_conj()}
bits["both"] = torch._neg_view(complex_.conj())
case.save("conj_neg", bits)
case.finish()
