"""Random checkpoints saved by real torch, read by wick, compared in both directions.

usage: differential.py --seed S --count N --out DIR [--kinds KIND ...] [--only I]
       differential.py --check WICK DIR [--plant]
The first form writes N checkpoints and, beside each, what torch reads back from it, in the form of the fixtures'
expected.json. The second runs `WICK ls --json --sha256` on every file that an expected.json below DIR names (so it checks
the fixtures as well), prints a line for each difference and last 'N passed, N failed', and exits 1 if any failed. With
--plant it first inverts a byte of one tensor in a copy of each checkpoint that has one: then each of those must fail.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = ["plain", "legacy", "deflate", "big_endian", "quantized", "sparse", "numpy", "module", "torchscript", "distributed",
         "wrapped", "package", "pt2", "mutated"]


# ---- writing -------------------------------------------------------------------------------------------------------------

def write(options):
    """Writes the checkpoints; everything that needs torch is in random_checkpoints.py."""
    sys.path.insert(0, str(ROOT / "scripts"))
    sys.path.insert(0, str(ROOT / "pytorch-tests" / "generators"))
    import random_checkpoints

    options.out.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in (options.kinds or KINDS) if random_checkpoints.possible(kind)]
    numbers = range(options.count) if options.only is None else [options.only]
    for number in numbers:
        random_checkpoints.write(options.out, options.seed, number, kinds)
    print("%d checkpoints in %s, kinds %s" % (len(numbers), options.out, " ".join(kinds)))
    return 0


# ---- comparing -----------------------------------------------------------------------------------------------------------

def same(got, want):
    if isinstance(want, bool) or isinstance(got, bool) or want is None:
        return got is want
    if isinstance(want, float) or isinstance(got, float):
        return number(got) and number(want) and math.isclose(got, want, rel_tol=1e-15, abs_tol=0)
    return type(got) is type(want) and got == want


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def below(name, parents):
    """Whether a flat name lies in one of the objects called parents."""
    return any(name == parent or parent == "" or name.startswith((parent + ".", parent + "#")) for parent in parents)


def key(row):
    return row["name"], row["dtype"], tuple(row["shape"]), row.get("sha256"), bool(row.get("no_data"))


class Comparison:
    """Compares one document of `wick ls --json --sha256` with what torch read."""

    def __init__(self, want, doc):
        self.want, self.doc, self.bad = want, doc, []
        self.rows = list(doc["tensors"])
        self.loose = [row["path"] for row in want.get("opaque", [])] + list(want.get("odd", {}))

    def run(self):
        self.tensors()
        self.storages()
        self.values()
        self.objects()
        self.containers()
        return self.bad

    def tensors(self):
        free = []
        for want in self.want.get("tensors", []):
            if "inside" in want:
                free.append(want)
            else:
                self.tensor(want, self.take(lambda row: row["name"] == want["name"] and self.fits(row, want)))
        for want in free:
            row = self.take(lambda row: below(row["name"], [want["inside"]]) and self.fits(row, want))
            if row is None:
                self.bad.append("no tensor inside %r is like %s %s" % (want["inside"], want["dtype"], want["shape"]))
        if not self.want.get("more_tensors"):
            self.bad += ["tensor %r is not in the file" % row["name"] for row in self.rows if not below(row["name"], self.loose)]

    def take(self, fits):
        for i, row in enumerate(self.rows):
            if fits(row):
                return self.rows.pop(i)
        return None

    def fits(self, row, want):
        return (row["dtype"] == want["dtype"] and row["shape"] == want["shape"] and bool(row.get("no_data")) == bool(want.get("no_data"))
                and ("sha256" not in want or row.get("sha256") == want["sha256"]) and self.keys_fit(row, want))

    def keys_fit(self, row, want):
        """Typed keys: text and integers must be of the right type; other keys are compared by their flat name alone."""
        if "path" not in want or "path" not in row:
            return True
        return len(row["path"]) == len(want["path"]) and all(
            isinstance(right, dict) or (type(left) is type(right) and left == right) for left, right in zip(row["path"], want["path"]))

    def tensor(self, want, row):
        if row is None:
            near = [other for other in self.doc["tensors"] if other["name"] == want["name"]]
            self.bad.append("tensor %r %s %s is %s" % (want["name"], want["dtype"], want["shape"], self.describe(near, want)))
            return
        want["row"] = row
        for field in ("bytes", "strides", "contiguous"):
            if field in want and field in row and row[field] != want[field]:
                self.bad.append("tensor %r: %s %s, expected %s" % (want["name"], field, row[field], want[field]))
        self.quant(want, row)

    def describe(self, near, want):
        if not near:
            return "missing"
        parts = ["%s %s %s" % (row["dtype"], row["shape"], row.get("error", "with other bytes" if row.get("sha256") != want.get("sha256")
                                                                  else "at path %s" % row.get("path"))) for row in near[:3]]
        return "there only as " + ", ".join(parts)

    def quant(self, want, row):
        for field, value in want.get("quant", {}).items():
            got = row.get("quant", {}).get(field)
            pairs = list(zip(got, value)) if isinstance(value, list) and isinstance(got, list) else [(got, value)]
            if any(not number(a) or not number(b) or a != b for a, b in pairs) and got != value:
                self.bad.append("tensor %r: quant %s is %s, expected %s" % (want["name"], field, got, value))

    def storages(self):
        """Rows share a storage in wick's view exactly where they do in torch's."""
        groups = collections.defaultdict(set)
        for want in self.want.get("tensors", []):
            row = want.pop("row", None)
            if row and "storage" in want and row.get("storage") not in (None, ""):
                groups[want["storage"]].add(row["storage"])
        for names in groups.values():
            if len(names) > 1:
                self.bad.append("one storage appears as several: %s" % sorted(names))
        seen = [name for names in groups.values() for name in names]
        self.bad += ["storage %s stands for several" % name for name, count in collections.Counter(seen).items() if count > 1]

    def values(self):
        got = collections.defaultdict(list)
        for row in self.doc["values"]:
            got[row["path"]].append(row["value"])
        for path, value in self.want.get("values", {}).items():
            self.value(path, [value], got.pop(path, []))
        for path, values in self.want.get("collisions", {}).items():
            self.value(path, values, got.pop(path, []))
        for path, values in self.want.get("sets", {}).items():
            self.set(path, values)
        for path, value in self.want.get("maybe_values", {}).items():
            for other in got.pop(path, []):
                if not same(other, value):
                    self.bad.append("value %r is %r, expected %r" % (path, other, value))
        sets = [path for path, kind in self.want.get("containers", {}).items() if kind in ("set", "frozenset")]
        if not self.want.get("more_values"):
            self.bad += ["value %r is not in the file" % path for path in got if not below(path, self.loose + sets)]

    def value(self, path, want, got):
        if len(want) != len(got) or not all(any(same(a, b) for a in got) for b in want):
            self.bad.append("value %r is %s, expected %s" % (path, got, want))

    def set(self, path, want):
        found = [row["items"] for row in self.doc.get("sets", []) if row["path"] == path]
        if want and not any(len(items) == len(want) and all(any(same(a, b) for a in items) for b in want) for items in found):
            self.bad.append("set %r is %s, expected %s" % (path, found, want))

    def objects(self):
        opaque = {row["path"] for row in self.doc["opaque"]}
        listed = [row["path"] for row in self.doc["values"]] + [row["name"] for row in self.doc["tensors"]]
        self.bad += ["%r is not listed as opaque" % row["path"] for row in self.want.get("opaque", []) if row["path"] not in opaque]
        self.bad += ["%r (%s) is listed nowhere" % (path, odd["class"]) for path, odd in self.want.get("odd", {}).items()
                     if path not in opaque and not any(below(name, [path]) for name in listed) and not below(path, self.loose_parents(path))]
        tuples = [path for path, kind in self.want.get("containers", {}).items() if kind == "namedtuple"]  # a pickle does not tell
        if not self.want.get("more_opaque"):
            self.bad += ["%r is opaque for nothing" % path for path in opaque if not below(path, self.loose) and path not in tuples]

    def loose_parents(self, path):
        return [parent for parent in self.loose if parent != path]

    def containers(self):
        """Container kinds, where the document tells them."""
        kinds = {row["path"]: row["kind"] for row in self.doc.get("containers", [])}
        for path, kind in self.want.get("containers", {}).items() if kinds else ():
            if kinds.get(path, kind) != kind:
                self.bad.append("%r is a %s, expected %s" % (path, kinds[path], kind))


# ---- running -------------------------------------------------------------------------------------------------------------

def ls(wick, path):
    run = subprocess.run([wick, "ls", "--json", "--sha256", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return run.returncode, run.stdout, run.stderr.decode("utf-8", "replace")


def crashed(out, err):
    text = out.decode("utf-8", "replace") + err
    return any(mark in text for mark in ("goroutine ", "runtime error", "panic:", "fatal error:"))


def judge(wick, path, want):
    """The differences between wick's answer for one file and torch's."""
    try:
        code, out, err = ls(wick, path)
    except subprocess.TimeoutExpired:
        return ["no answer within 120 s"]
    if crashed(out, err):
        return ["crashed: " + err.strip()[:200]]
    if want.get("damaged") and (want["damaged"] == "refused" or code):  # torch has no answer, or wick has none
        return [] if code in (0, 3, 4) else ["exit %d: %s" % (code, err.strip()[:200])]
    if "error" in want:
        return refused(want["error"], code, err)
    return listed(want, code, out, err)


def refused(error, code, err):
    bad = []
    codes = error["exit"] if isinstance(error["exit"], list) else [error["exit"]]
    if code not in codes:
        bad.append("exit %d, expected %s" % (code, codes))
    if len([line for line in err.splitlines() if line.strip()]) != 1:
        bad.append("stderr is not one line: %r" % err[:200])
    return bad + ["the error does not speak of /%s/: %s" % (word, err.strip()[:160]) for word in error["has"] if not re.search(word, err, re.I)]


def listed(want, code, out, err):
    late = want.get("with_sha256")
    if code != (late["exit"] if late else 0):
        return ["exit %d: %s" % (code, err.strip()[:300])]
    try:
        doc = json.loads(out.decode("ascii"))
    except ValueError as error:
        return ["no ASCII JSON: %s" % error]
    if late and not any(row["name"] == late["name"] and row.get("error", {}).get("kind") == late["error"] for row in doc["tensors"]):
        return ["row %r has no error %s" % (late["name"], late["error"])]
    return Comparison(want, doc).run()


def expectations(folder):
    """Every (path, expectation, seed line) below a folder."""
    for source in sorted(folder.rglob("*expected.json")):
        content = json.loads(source.read_text())
        for name, want in sorted(content.get("files", {}).items()):
            yield source.parent / name, want, content.get("again", "")


def check(options):
    wick, folder = str(pathlib.Path(options.check[0]).resolve()), pathlib.Path(options.check[1])
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path, want, again in expectations(folder):
            if options.plant:
                if "plant" not in want:
                    continue
                path = planted(path, want["plant"], scratch)
            bad = judge(wick, path, want)
            passed, failed = passed + (not bad), failed + bool(bad)
            for line in bad[:8]:
                print("%s: %s%s" % (path, line, "  [%s]" % again if again else ""))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed + failed else 0


def planted(path, offset, scratch):
    """A copy of path with one byte of a tensor's data inverted and its checksum left as it was."""
    copy = os.path.join(scratch, path.name)
    shutil.copyfile(path, copy)
    with open(copy, "r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 0xFF]))
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1", help="any text; the same seed gives the same checkpoints")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=int, help="write this number of the seed alone")
    parser.add_argument("--out", type=pathlib.Path, help="the folder to write to")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="default: all that this torch can write")
    parser.add_argument("--check", nargs=2, metavar=("WICK", "DIR"))
    parser.add_argument("--plant", action="store_true", help="plant a wrong byte in each file: all must fail")
    options = parser.parse_args()
    if options.check:
        return check(options)
    if not options.out:
        parser.error("--out DIR or --check WICK DIR is needed")
    return write(options)


if __name__ == "__main__":
    sys.exit(main())
