"""What Python's pickletools says of the pickles in the fixtures: opcodes.json has, for each pickle, how many instructions it has and a hash
of their offsets, names and arguments; of short ones all lines. Run it again when fixtures were added."""
import hashlib
import io
import json
import pathlib
import pickletools
import struct
import zipfile

here = pathlib.Path(__file__).resolve().parent
LATIN1 = ("STRING", "BINSTRING", "SHORT_BINSTRING")
MOST = 4096  # bytes of an argument that are compared, besides its length
SHORT = 16  # instructions of a pickle that is kept line by line


def argument(name, value):
    """An argument as text that says its type and every bit."""
    if value is None or isinstance(value, bool):
        return "-" if value is None else str(value)
    if isinstance(value, int):
        return "%d" % value
    if isinstance(value, float):
        return "f:" + struct.pack(">d", value).hex()
    if isinstance(value, (bytes, bytearray)):
        return "b:" + cut(bytes(value))
    return "s:" + cut(value.encode("latin-1") if name in LATIN1 else value.encode("utf-8", "surrogatepass"))


def cut(data):
    return data.hex() if len(data) <= MOST else "%s of %d" % (data[:MOST].hex(), len(data))


def pickle(stream):
    lines = ["%d %s %s" % (at, op.name, argument(op.name, value)) for op, value, at in pickletools.genops(stream)]
    said = {"count": len(lines), "sha256": hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()}
    if len(lines) <= SHORT:
        said["lines"] = lines
    return said


def pickles(path):
    """Every pickle of a zip by its record, or the five that a legacy file begins with."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return {name: pickle(io.BytesIO(archive.read(name))) for name in archive.namelist() if name.endswith(".pkl") and "__MACOSX" not in name}
    with open(path, "rb") as stream:
        if stream.read(2)[:1] != b"\x80":
            return {}
        stream.seek(0)
        return {"#%d" % number: pickle(stream) for number in range(5)}


def main():
    said = {}
    for path in sorted(here.parent.glob("*/*-torch*.*")):
        if path.parent.name in ("broken", "safetensors", "records") or not path.is_file():
            continue
        try:
            found = pickles(path)
        except (ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile):  # not a pickle at all, or one that pickletools itself cannot read
            continue
        if found:
            said[path.relative_to(here.parent).as_posix()] = found
    text = ",\n".join("%s: %s" % (json.dumps(name), json.dumps(said[name])) for name in said)
    (here / "opcodes.json").write_text("{\n" + text + "\n}\n")
    print("%d files, %d pickles" % (len(said), sum(map(len, said.values()))))


main()
