"""Make .safetensors files and model directories, sound and unsound, and read archives by FORMAT.md alone."""
import json
import os
import struct

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "I16": 16, "F16": 16, "BF16": 16, "F32": 32, "I32": 32, "F64": 64,
        "I64": 64}


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def raw_file(header, data, length=None):
    """From the header's bytes as they are."""
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def file(tensors, metadata=None, pad=0, order=None):
    """tensors: [(name, dtype, shape, bytes)], one behind the other in the data; `order`: that of the header."""
    header, data, entries = {}, b"", {}
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, content in tensors:
        entries[name] = tensor(dtype, shape, len(data), len(data) + len(content))
        data += content
    for name in order or entries:
        header[name] = entries[name]
    text = json.dumps(header, ensure_ascii=False).encode() + b" " * pad
    return raw_file(text, data)


class Archive:
    def __init__(self, content):
        (self.magic, self.version, _, self.bytes, self.toc_offset, self.toc_bytes, _, nentries, self.source_bytes,
         self.source_crc, self.source_kind, ntensors, ndims, self.mtime) = struct.unpack_from("<8sIIQQQIIQIIIIq", content)
        toc = content[self.toc_offset:]
        names = toc[48 * (nentries + ntensors) + 8 * ndims:]
        dims = struct.unpack_from(f"<{ndims}Q", toc, 48 * (nentries + ntensors))
        self.entries = []
        for i in range(nentries):
            offset, size, source, raw, crc, kind, at, length = struct.unpack_from("<QQQQIIII", toc, 48 * i)
            self.entries.append({"offset": offset, "bytes": size, "source_offset": source, "raw_bytes": raw, "crc": crc,
                                 "kind": kind, "name": names[at:at + length].decode()})
        self.tensors = {}
        for i in range(ntensors):
            source, size, entry, at, length, rank, dtype, dims_at, _ = struct.unpack_from("<QQIIII8sII", toc,
                                                                                          48 * (nentries + i))
            self.tensors[names[at:at + length].decode()] = {
                "source_offset": source, "bytes": size, "entry": entry, "dtype": dtype.rstrip(b"\0").decode(),
                "shape": list(dims[dims_at:dims_at + rank])}


def crc32c(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def model(folder, shards):
    """A sharded model directory: shards {file name: [(tensor name, dtype, shape, bytes)]}."""
    os.mkdir(folder)
    weights = {}
    for name, tensors in shards.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(file(tensors, {"format": "pt"}))
        weights.update({entry[0]: name for entry in tensors})
    index = {"metadata": {"total_size": sum(len(t[3]) for s in shards.values() for t in s)}, "weight_map": weights}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as out:
        json.dump(index, out)
