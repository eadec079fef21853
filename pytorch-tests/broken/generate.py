"""What is no checkpoint, or no longer one: each must be refused by name, with its cause and its cure."""
import gzip
import pathlib
import pickle
import sys
import zipfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import numpy
import torch
from fixture import Case, ramp

case = Case(__file__)
value = {"a": ramp(40), "b": ramp(3, 4), "epoch": 3}
model, legacy = case.save("sound", value), case.save("sound_legacy", value, form="legacy")
whole, old = model.read_bytes(), legacy.read_bytes()


def wrong(stem, data, kind, code, *words, suffix=".pt"):
    path = case.path(stem, suffix)
    path.write_bytes(data)
    case.refuse(path, kind, code, *words)


def rewritten(stem, edit, kind, code, *words):
    path = case.path(stem)
    archive.write(path, edit(archive.records(model)))
    case.refuse(path, kind, code, *words)


wrong("empty", b"", "malformed", 3, "empty")
wrong("tiny", b"PK\x03", "malformed", 3, "short|small|bytes")
wrong("zeros", bytes(2048), "malformed|unsupported", [3, 4], ".")
wrong("git_lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n", "unsupported", 4, "LFS")
wrong("html", b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body></body></html>\n", "unsupported", 4, "HTML")
wrong("json_error", b'{"error":"Repository not found"}', "unsupported|malformed", [3, 4], ".")
wrong("text", b"this is a text file, not a model\n" * 4, "unsupported|malformed", [3, 4], ".")
pixel = zlib.compress(b"\x00\xff\x00\x00")
chunks = [(b"IHDR", b"\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00"), (b"IDAT", pixel), (b"IEND", b"")]
wrong("png", b"\x89PNG\r\n\x1a\n" + b"".join(
    len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in chunks), "unsupported", 4, "PNG")
wrong("plain_pickle", pickle.dumps({"w": numpy.arange(4)}, protocol=4), "unsupported", 4, "pickle", suffix=".pth")
wrong("plain_pickle0", pickle.dumps({"w": [1.5, 2]}, protocol=0), "unsupported", 4, "pickle", suffix=".pkl")
wrong("bare_data_pkl", next(data for name, data in archive.records(model) if name.endswith("data.pkl")), "unsupported", 4, r"data\.pkl",
      "storage|folder|zip", suffix=".pkl")
wrong("gguf_truncated", b"GGUF\x03\x00\x00\x00", "malformed", 3, ".")
ends = {"half": len(whole) // 2, "last_byte": len(whole) - 1, "directory": len(whole) - 100, "header": 40}
for name, end in ends.items():
    wrong("truncated_" + name, whole[:end], "malformed", 3, "central directory|truncat|incomplete|cut|short|end of")
for name, end in {"half": len(old) // 2, "last_byte": len(old) - 1, "count": len(old) - 12 * 4 - 4, "magic": 12}.items():
    wrong("legacy_truncated_" + name, old[:end], "malformed", 3, "truncat|short|cut|end of", suffix=".pth")
wrong("gzip_truncated", gzip.compress(whole, mtime=0)[:200], "malformed", 3, ".", suffix=".pt.gz")
rewritten("missing_record", lambda records: [r for r in records if not r[0].endswith("data/1")], "notfound|malformed", 3, "data/1",
          "missing|not found|no record|absent")
rewritten("missing_pickle", lambda records: [r for r in records if not r[0].endswith("data.pkl")], "malformed", 3, r"data\.pkl", "missing")
wrong("joined", b"header of somebody else\n" + whole, "malformed", 3, "zip", "24 bytes")
wrong("cut_beginning", whole[200:], "malformed", 3, "zip", "first 200 bytes")
wrong("overwritten_beginning", b"\x01\x02\x03" * 40 + whole[120:], "malformed", 3, "zip", "beginning")
wrong("crlf", whole.replace(b"\n", b"\r\n"), "malformed", 3, "line ends", "binary")
wrong("crlf_legacy", old.replace(b"\n", b"\r\n"), "malformed", 3, "line ends", "binary", suffix=".pth")
wrong("utf8", whole.decode("utf-8", "replace").encode(), "malformed", 3, "UTF-8", "binary")
wrong("utf8_legacy", old.decode("latin-1").encode(), "malformed", 3, "UTF-8", "binary", suffix=".pth")
wrong("hub_link", b"../../blobs/" + b"4d" * 20, "unsupported", 4, "link")
wrong("git_lfs_bom", b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\r\noid sha256:" + b"4d" * 32 + b"\r\nsize 12345\r\n", "unsupported", 4, "LFS", "lfs pull")
wrong("zlib", zlib.compress(whole), "unsupported", 4, "zlib")
wrong("split_first", b"PK\x07\x08" + whole[:len(whole) // 2], "unsupported", 4, "split", "volume")
wrong("apple_double", b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        " + bytes(100), "unsupported", 4, "macOS")
rewritten("backslashes", lambda records: [(name.replace("/", "\\"), data) for name, data in records], "unsupported", 4, "backslash", "unpack")
rewritten("short_record", lambda records: [(n, d[:-4] if n.endswith("data/1") else d) for n, d in records], "malformed", 3, "data/1")
rewritten("cut_pickle", lambda records: [(n, d[:-20] if n.endswith("data.pkl") else d) for n, d in records], "malformed", 3, ".")
bad = case.path("bad_crc")
bad.write_bytes(whole)
archive.flip(bad, archive.locate(bad, "data/1")[0])
case.same(bad, model)
case.files[bad.name]["with_sha256"] = {"exit": 3, "error": "checksum", "name": "b"}
case.files[bad.name]["torch_load"] = case.torch_says(bad)
next(row for row in case.files[bad.name]["tensors"] if row["name"] == "b").pop("sha256")
pickled = case.path("bad_pickle_crc")
pickled.write_bytes(whole)
archive.flip(pickled, archive.locate(pickled, "data.pkl")[0] + 30)
case.refuse(pickled, "checksum|malformed", 3, ".")
locked = bytearray(whole)
for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
    start = locked.find(signature)
    while start >= 0:
        locked[start + at] |= 1
        start = locked.find(signature, start + 4)
wrong("encrypted", bytes(locked), "unsupported", 4, "encrypt")
several = case.path("zip_of_texts", ".zip")
archive.write(several, [("a.txt", b"a"), ("b/c.txt", b"c")], method=zipfile.ZIP_DEFLATED)
case.refuse(several, "unsupported|malformed", [3, 4], ".")
wrong("tar_of_two", archive.tarred([("a.pt", whole), ("b.pt", whole)]), "unsupported", 4, "several", "a.pt", suffix=".tar")
wrong("tar_of_texts", archive.tarred([("a.txt", b"a"), ("b/c.txt", b"c")]), "unsupported", 4, "tar", "a.txt", suffix=".tar")
wrong("tar_cut", archive.tarred([("a.pt", whole)])[:1200], "malformed", 3, "cut", suffix=".tar")
two = case.path("zip_of_two", ".zip")
archive.write(two, [("a.pt", whole), ("b.pt", whole)], method=zipfile.ZIP_DEFLATED)
case.refuse(two, "unsupported", 4, "a.pt|b.pt|two|several|2 ")
case.finish()
