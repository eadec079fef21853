"""The same checkpoint in every zip that people make of it: DEFLATE, other order, other folders, zip64, wrapped, unpacked."""
import gzip
import pathlib
import shutil
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import torch
from fixture import Case, TORCH2, load, ramp

case = Case(__file__)
value = {"w": ramp(3, 4), "t": ramp(3, 4).t(), "h": ramp(5, dtype=torch.float16), "b": torch.tensor([True, False]), "epoch": 3,
         "many": [ramp(2, start=i) for i in range(11)]}
model = case.save("plain", value)
entries = archive.records(model)
deflated = zipfile.ZIP_DEFLATED


def variant(stem, records, suffix=".pt", **options):
    path = case.path(stem, suffix)
    archive.write(path, records, **options)
    return checked(path)


def checked(path, form="zip"):
    """Expects what torch reads from path, or where torch refuses it what it read from the file before."""
    case.same(path, model, form)
    if "torch_load" not in case.files[path.name]:
        case.expect(path, load(path), form)


folders = [(entries[0][0].split("/")[0] + "/", b""), (entries[0][0].split("/")[0] + "/data/", b"")]
mac = [("__MACOSX/._archive", b"\x00\x05\x16\x07"), ("__MACOSX/archive/data.pkl", b"\x00\x05\x16\x07 not a pickle"), (".DS_Store", b"\x00\x00\x00\x01Bud1")]
variant("deflated", entries, method=deflated)
variant("sorted", sorted(entries), method=deflated)
variant("reversed", entries[::-1])
variant("folder_entries", folders + entries, method=deflated)
variant("macosx", mac + folders + entries[::-1] + [(folders[0][0] + ".DS_Store", b"x")], method=deflated)
variant("no_top_folder", archive.renamed(entries, ""))
variant("no_top_folder_deflated", archive.renamed(entries, ""), method=deflated)
variant("odd_top_folder", archive.renamed(entries, "my model (1) 重み é/"))
variant("deep_top_folder", archive.renamed(entries, "runs/2024/model/"))
variant("zip64", entries, zip64=True)
variant("zip64_deflated", entries, method=deflated, zip64=True)
variant("extra_records", entries + [(folders[0][0] + "extra/notes.json", b"{}"), (folders[0][0] + "constants/0", b"12345678")])
archive.write_streamed(case.path("streamed"), entries)
checked(case.path("streamed"))
archive.write_streamed(case.path("streamed_deflated"), entries, deflated)
checked(case.path("streamed_deflated"))
archive.gzipped(model, case.path("gzip", ".pt.gz"))
checked(case.path("gzip", ".pt.gz"), "gzip")
legacy = case.save("legacy", value, form="legacy")
archive.gzipped(legacy, case.path("gzip_legacy", ".pth"))
case.same(case.path("gzip_legacy", ".pth"), legacy, "gzip")
variant("zip_around", [("model.pth", model.read_bytes())], suffix=".zip", method=deflated)
variant("zip_around_stored", [("folder/", b""), ("folder/model.pt", model.read_bytes()), ("__MACOSX/folder/._model.pt", b"x")], suffix=".pth")
variant("zip_around_legacy", [("model.bin", legacy.read_bytes())], suffix=".zip", method=deflated)
case.path("tar_around", ".tar").write_bytes(archive.tarred([("./model.pt", model.read_bytes()), ("./config.yaml", b"a: 1\n"), ("./._model.pt", b"x")]))
checked(case.path("tar_around", ".tar"), "tar")
packed = archive.tarred([("code/inference.py", b"import torch\n"), ("model.pth", legacy.read_bytes())])
case.path("tar_gzip_around", ".tar.gz").write_bytes(gzip.compress(packed, mtime=0))
case.same(case.path("tar_gzip_around", ".tar.gz"), legacy, "gzip")
unpacked = case.path("unpacked", "")
shutil.rmtree(unpacked, ignore_errors=True)
archive.unpack(model, unpacked)
case.same(unpacked, model, "folder")
if TORCH2:
    import zstandard

    case.path("zstd", ".pt.zst").write_bytes(zstandard.ZstdCompressor(level=3).compress(model.read_bytes()))
    case.same(case.path("zstd", ".pt.zst"), model, "zstd")
    torch.serialization.set_crc32_options(False)
    case.save("no_crc", value)
    torch.serialization.set_crc32_options(True)
    with torch.serialization.skip_data():  # leaves room for the storages, which are filled in afterwards, and no checksums of them
        skipped = case.save("skip_data", value)
    data = bytearray(skipped.read_bytes())
    with zipfile.ZipFile(skipped) as file:
        sums = {info.filename.split("/", 1)[1]: info.CRC for info in file.infolist()}
        assert sums["data.pkl"] and not any(crc for name, crc in sums.items() if name.startswith("data/"))
    reader = torch._C.PyTorchFileReader(str(skipped))
    for name, content in archive.records(model):
        record = name.split("/", 1)[1]
        if record.startswith("data/"):
            at = reader.get_record_offset(record)
            data[at:at + len(content)] = content
    skipped.write_bytes(data)
    case.expect(skipped, load(skipped), "zip")
    assert torch.equal(load(skipped)["w"], value["w"])
case.finish()
