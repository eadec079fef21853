"""Rewrites what torch saved as people and tools do: zipped again, unpacked, compressed, byte-swapped, cut short."""
import gzip
import io
import os
import pathlib
import tarfile
import zipfile

import torch

STAMP = (2024, 1, 1, 0, 0, 0)  # fixed, so that a second run gives the same bytes


def records(path):
    """The records of a zip as a list of (name, bytes), in the order of its directory."""
    with zipfile.ZipFile(path) as source:
        return [(info.filename, source.read(info)) for info in source.infolist()]


def info(name, method):
    entry = zipfile.ZipInfo(name, STAMP)
    entry.compress_type = method
    entry.external_attr = 0o644 << 16
    return entry


def write(target, entries, method=zipfile.ZIP_STORED, zip64=False):
    """Writes entries (name, bytes) to target, a path or a stream; names that end in / become folders."""
    with zipfile.ZipFile(target, "w") as out:
        for name, data in entries:
            with out.open(info(name, zipfile.ZIP_STORED if name.endswith("/") else method), "w", force_zip64=zip64) as record:
                record.write(data)


class Unseekable(io.RawIOBase):
    """A stream that cannot seek: zipfile then writes sizes of 0 and data descriptors."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream

    def writable(self):
        return True

    def write(self, data):
        return self.stream.write(data)


def write_streamed(path, entries, method=zipfile.ZIP_STORED):
    with open(path, "wb") as stream:
        write(Unseekable(stream), entries, method)


def tarred(entries):
    """Entries (name, bytes) as a tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as out:
        for name, data in entries:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def renamed(entries, root):
    """The entries under another top folder; an empty root puts them at the top."""
    return [(root + name.split("/", 1)[1], data) for name, data in entries]


def unpack(path, folder):
    """Writes a zip's records, without their top folder, below folder."""
    for name, data in renamed(records(path), ""):
        target = pathlib.Path(folder) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def gzipped(source, target):
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))


def big_endian(little, target):
    """Turns a file of torch 2.x into what a big-endian machine writes; torch itself swaps the bytes."""
    plain = target.with_suffix(".swap")
    write(plain, [(name, data) for name, data in records(little) if not name.endswith("/byteorder")])
    order = torch.serialization.get_default_load_endianness()
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    swapped = torch.load(str(plain), weights_only=False)
    torch.serialization.set_default_load_endianness(order)
    torch.save(swapped, str(plain))
    stem = little.stem
    entries = [(name, b"big" if name.endswith("/byteorder") else data) for name, data in records(plain)]
    write(target, renamed(entries, stem + "/"))
    os.remove(plain)


def locate(path, name):
    """The offset in a zip file of the data of the record whose name ends with name, and its size."""
    with zipfile.ZipFile(path) as source:
        entry = next(entry for entry in source.infolist() if entry.filename.endswith(name))
    with open(path, "rb") as stream:
        stream.seek(entry.header_offset + 26)
        lengths = stream.read(4)
    skip = 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    return entry.header_offset + skip, entry.file_size


def flip(path, offset):
    """Inverts every bit of one byte of a file."""
    with open(path, "r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 0xFF]))


def without_debug(path):
    """Writes a TorchScript archive again, by torch's own writer, without the records that quote sources and their paths."""
    entries = archive_records(path)
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, data in entries:
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def archive_records(path):
    """A TorchScript archive's records without their top folder, save debug records and those that the writer adds itself."""
    own = ("version", "byteorder", ".data/serialization_id", ".format_version", ".storage_alignment", ".data/version")
    return [(name, data) for name, data in renamed(records(path), "") if not name.endswith(".debug_pkl") and name not in own]
