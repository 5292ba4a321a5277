#!/usr/bin/env python3
"""Whole-program tests of archives: safetensors files, model directories, packed trunks; what comes back, what is refused.

Environment and habits are those of test_host.py.
"""
import json
import os
import random
import shutil
import struct
import subprocess
import unittest

import safetensors_file as st
from test_host import CORRUPT, MISMATCH, OK, TIMEOUT, TOOL, USAGE, HostTest, Run, data, generate, read, write

STORED, RUN, ZEROS = 0, 1, 2
NO_ENTRY = 0xFFFFFFFF


def noise(size, seed=1):
    return random.Random(seed).randbytes(size)


class ArchiveTest(HostTest):
    def round_trip(self, content, *options, name="in.safetensors"):
        """Pack a file, hold the archive against FORMAT.md, and get the file back. Returns struct Archive."""
        source = write(self.path(name), content)
        self.good("pack", "--force", *options, source, "out.k3a")
        self.good("verify", "out.k3a")
        self.good("verify", "out.k3a", source)
        self.good("unpack", "--force", "out.k3a", "back")
        self.assertEqual(read(self.path("back")), content)
        packed = read(self.path("out.k3a"))
        archive = st.Archive(packed)
        self.assertEqual((archive.magic, archive.version), (b"K3HUFAR\n", 1))
        self.assertEqual(archive.bytes, len(packed))
        self.assertEqual(archive.source_bytes, len(content))
        self.assertEqual(archive.mtime, os.stat(source).st_mtime_ns)
        at, end = 0, 4096
        for entry in archive.entries:
            self.assertEqual(entry["source_offset"], at)
            at += entry["raw_bytes"]
            self.assertEqual(entry["offset"] % 4096, 0)
            if entry["kind"] != ZEROS:
                self.assertGreaterEqual(entry["offset"], end)
                end = entry["offset"] + entry["bytes"]
            stored = packed[entry["offset"]:entry["offset"] + entry["bytes"]]
            original = content[entry["source_offset"]:at]
            if entry["kind"] == STORED:
                self.assertEqual(stored, original)
            elif entry["kind"] == RUN:
                run = Run(stored)
                self.assertEqual((run.magic, run.raw_bytes, run.size), (b"KHUF", len(original), len(stored)))
                self.assertLess(len(stored), len(original))
            else:
                self.assertEqual((original, stored), (bytes(len(original)), b""))
        self.assertEqual(at, len(content))
        self.assertLessEqual(end, archive.toc_offset)
        for tensor in archive.tensors.values():
            if tensor["bytes"] == 0:
                self.assertEqual(tensor["entry"], NO_ENTRY)
            else:
                entry = archive.entries[tensor["entry"]]
                self.assertLessEqual(entry["source_offset"], tensor["source_offset"])
                self.assertLessEqual(tensor["source_offset"] + tensor["bytes"],
                                     entry["source_offset"] + entry["raw_bytes"])
        return archive

    def refuses(self, code, pattern, *arguments, stdin=b""):
        before = self.files()
        self.fails(code, pattern, *arguments, stdin=stdin)
        self.assertEqual(self.files(), before)


class ArchiveRoundTrip(ArchiveTest):
    def test_real_weights(self):
        weights = read(data("silero_vad_v6.bf16"))
        archive = self.round_trip(st.file([("weights", "BF16", [len(weights) // 2], weights)]))
        self.assertEqual([entry["kind"] for entry in archive.entries], [STORED, RUN])
        self.assertEqual([entry["name"] for entry in archive.entries], ["", "weights"])
        self.assertLess(archive.bytes / archive.source_bytes, 0.72)
        self.assertEqual(archive.tensors["weights"]["shape"], [len(weights) // 2])

    def test_crcs(self):
        weights = generate(200000)
        content = st.file([("a", "BF16", [100000], weights), ("b", "F32", [500], noise(2000)),
                           ("c", "BF16", [50000], bytes(100000))])
        archive = self.round_trip(content)
        self.assertEqual([entry["kind"] for entry in archive.entries], [STORED, RUN, STORED, ZEROS])
        self.assertEqual(archive.source_crc, st.crc32c(content))
        for entry in archive.entries:
            part = content[entry["source_offset"]:entry["source_offset"] + entry["raw_bytes"]]
            self.assertEqual(entry["crc"], st.crc32c(part))

    def test_odd_tensors(self):
        weights = generate(300000, 2)
        tensors = [("empty", "BF16", [0, 5], b""), ("one", "BF16", [1], b"\x80\x3f"), ("scalar", "F32", [], noise(4)),
                   ("scalar16", "BF16", [], b"\0\0"), ("bytes", "U8", [3], b"abc"), ("odd", "BF16", [3, 1], noise(6)),
                   ("w", "BF16", [100, 1500], weights), ("half", "F16", [2, 3], noise(12)),
                   ("deep", "I64", [1] * 64, noise(8)), ("fp8", "F8_E4M3", [777], noise(777)),
                   ("noise", "BF16", [40000], noise(80000)), ("last", "BOOL", [1], b"\1"),
                   ("new", "F8_E4M3FNUZ", [5], noise(5)), ("int4", "I4", [7], noise(4))]  # dtypes not known here
        for pad in (0, 1, 7):
            for order in (None, [entry[0] for entry in reversed(tensors)]):
                archive = self.round_trip(st.file(tensors, {"note": "Größe 重み 🎈", "format": "pt"}, pad, order))
                self.assertEqual({name: (t["dtype"], t["shape"], t["bytes"]) for name, t in archive.tensors.items()},
                                 {name: (dtype[:8], shape, len(content)) for name, dtype, shape, content in tensors})
                self.assertEqual(archive.entries[archive.tensors["w"]["entry"]]["kind"], RUN)
                self.assertEqual(archive.entries[archive.tensors["noise"]["entry"]]["kind"], STORED)

    def test_tensors_at_odd_offsets(self):
        weights = generate(65536)
        archive = self.round_trip(st.file([("b", "U8", [1], b"x"), ("w", "BF16", [32768], weights)], pad=0))
        archive2 = self.round_trip(st.file([("b", "U8", [1], b"x"), ("w", "BF16", [32768], weights)], pad=1))
        for one in (archive, archive2):
            self.assertEqual(one.entries[-1]["kind"], RUN)
            self.assertLess(one.entries[-1]["bytes"], 0.71 * 65536)

    def test_gaps_and_tails(self):
        weights = generate(30000)
        header = json.dumps({"a": st.tensor("BF16", [15000], 100, 30100),
                             "b": st.tensor("I8", [5], 31001, 31006)}).encode()
        self.round_trip(st.raw_file(header, noise(100) + weights + bytes(901) + b"hello" + noise(999)))

    def test_no_tensors(self):
        for header in (b"{}", b"{ }  ", b'{"__metadata__":{}}'):
            self.assertEqual(len(self.round_trip(st.raw_file(header, b"")).entries), 1)

    def test_float16_is_coded_where_it_pays(self):
        generator = random.Random(5)
        half = b"".join(struct.pack("<e", generator.gauss(0, 0.02)) for _ in range(50000))
        archive = self.round_trip(st.file([("h", "F16", [50000], half)]))
        self.assertEqual(archive.entries[1]["kind"], RUN)

    def test_neighbours_share_a_run_where_it_pays(self):
        small = [(f"layers.{i}.norm", "BF16", [512], generate(1024, i)) for i in range(64)]
        archive = self.round_trip(st.file(small))
        self.assertLess(len(archive.entries), 8)
        self.assertLess(archive.bytes, 0.85 * archive.source_bytes + 3 * 4096)
        # Unlike ones do not.
        low, high = generate(1 << 20), bytes(b ^ (0x55 if i % 2 else 0) for i, b in enumerate(generate(1 << 20)))
        archive = self.round_trip(st.file([("low", "BF16", [1 << 19], low), ("high", "BF16", [1 << 19], high)]))
        self.assertEqual([entry["name"] for entry in archive.entries], ["", "low", "high"])

    def test_recognised_by_contents(self):
        content = st.file([("w", "BF16", [5000], generate(10000))])
        self.assertEqual(self.round_trip(content, name="blob").source_kind, 1)
        self.good("pack", "-", "piped.k3a", stdin=content)
        self.assertEqual(self.good("unpack", "piped.k3a", "-"), content)
        self.good("pack", "--bytes", "blob", "run")
        self.assertEqual(Run(read(self.path("run"))).raw_bytes, len(content))

    def test_does_not_depend_on_threads(self):
        content = st.file([("a", "BF16", [900000], generate(1800000)), ("b", "BF16", [3000], generate(6000, 3))])
        packed = set()
        for threads in (1, 2, 5):
            self.round_trip(content, "-T", threads)
            packed.add(read(self.path("out.k3a"))[4096:])
        self.assertEqual(len(packed), 1)

    def test_remove_the_source(self):
        content = st.file([("w", "BF16", [5000], generate(10000))])
        write(self.path("m.safetensors"), content)
        self.good("pack", "--keep", "m.safetensors", "m.k3a")
        self.assertIn("m.safetensors", self.files())
        self.good("pack", "--force", "--rm", "m.safetensors", "-o", "m.k3a")
        self.assertEqual(self.files(), ["m.k3a"])
        self.assertEqual(self.good("unpack", "m.k3a", "-"), content)


class ArchiveParts(ArchiveTest):
    def setUp(self):
        super().setUp()
        self.tensors = [("a", "BF16", [1000000], generate(2000000)), ("f", "F32", [1000], noise(4000)),
                        ("n.0.w", "BF16", [200], generate(400, 7)), ("n.1.w", "BF16", [200], generate(400, 8)),
                        ("z", "I32", [50000], bytes(200000)), ("empty", "BF16", [0], b"")]
        self.content = st.file(self.tensors)
        write(self.path("m.safetensors"), self.content)
        self.good("pack", "m.safetensors", "m.k3a")
        write(self.path("bytes"), generate(1000001))
        self.good("pack", "--stripe-size", 300000, "bytes", "m.run")

    def test_tensors(self):
        for name, _, _, content in self.tensors:
            self.assertEqual(self.good("unpack", "--tensor", name, "m.k3a", "-"), content)
        self.refuses(USAGE, "no tensor 'b'", "unpack", "--tensor", "b", "m.k3a", "out")
        self.refuses(USAGE, "tensors by name", "unpack", "--tensor", "b", "m.run", "out")

    def test_summaries_of_parts(self):
        """They tell what was written, not what the whole file would have been."""
        begin = {tensor: found["source_offset"] for tensor, found in st.Archive(read(self.path("m.k3a"))).tensors.items()}
        for packed, asked, line, more in (
                ("m.k3a", ("--tensor", "a"), "2000000 bytes of tensor a", {"tensor": "a", "source_offset": begin["a"]}),
                ("m.k3a", ("--tensor", "n.1.w"), "400 bytes of tensor n.1.w",
                 {"tensor": "n.1.w", "source_offset": begin["n.1.w"]}),
                ("m.k3a", ("--range", "10:100"), "100 bytes from 10", {"source_offset": 10}),
                ("m.run", ("--range", "299999:2"), "2 bytes from 299999", {"source_offset": 299999}),
                ("m.k3a", (), f"{os.path.getsize(self.path('m.k3a'))} bytes decoded to {len(self.content)}", {}),
                ("m.run", (), f"{os.path.getsize(self.path('m.run'))} bytes decoded to 1000001", {})):
            with self.subTest(packed=packed, asked=asked):
                self.assertEqual(self.good("unpack", "--force", *asked, packed, "out").decode(),
                                 f"{packed}: {line} in out\n")
                size = os.path.getsize(self.path("out"))
                self.assertEqual(json.loads(self.good("unpack", "--json", "--force", *asked, packed, "out")),
                                 {"kind": "archive" if packed == "m.k3a" else "run", "file": packed, "output": "out",
                                  "packed_bytes": os.path.getsize(self.path(packed)), "bytes": size, **more})
                done = self.tool("unpack", *asked, packed, "-")
                self.assertEqual(done.stderr.decode(), f"{packed}: {line} in (standard output)\n")

    def test_a_source_is_not_a_run(self):
        """Whoever gives the file that is yet to be packed is told so; other bytes are no run, and no more is known."""
        shutil.copy(self.path("m.safetensors"), self.path("other.name"))
        write(self.path("noise"), noise(5000))
        for name, hint in (("m.safetensors", r" \(a safetensors file: pack it first\)"),
                           ("other.name", r" \(a safetensors file: pack it first\)"), ("noise", "")):
            for command in (("inspect",), ("verify",), ("unpack", "-o", "out"), ("unpack", "--range", "0:1", "-o", "out")):
                with self.subTest(name=name, command=command):
                    self.refuses(CORRUPT, rf": {name}: run header, offset 0: not a k3huf run: wrong magic{hint}\n\Z",
                                 *command, name)

    def test_ranges(self):
        generator = random.Random(3)
        for name, content in (("m.k3a", self.content), ("m.run", read(self.path("bytes")))):
            size = len(content)
            ranges = [(0, 0), (0, 1), (size, 0), (size - 1, 1), (0, size), (299999, 2), (32768, 32768)]
            ranges += [(at, generator.randrange(size - at)) for at in generator.sample(range(size), 12)]
            for at, length in ranges:
                with self.subTest(name=name, at=at, length=length):
                    self.assertEqual(self.good("unpack", "--range", f"{at}:{length}", name, "-"), content[at:at + length])
            for bad in (f"0:{size + 1}", f"{size + 1}:0", "x:1", "1", "1:", ":1", "-1:2", "1:2:3"):
                self.refuses(USAGE, "asked for|--range must be", "unpack", "--range", bad, name, "out")

    def test_a_range_needs_only_its_blocks(self):
        packed = bytearray(read(self.path("m.k3a")))
        entry = st.Archive(packed).entries[1]
        packed[entry["offset"] + 288 + 16 + 40] ^= 1  # in the first block's codes
        write(self.path("bad.k3a"), packed)
        begin = entry["source_offset"]
        self.assertEqual(self.good("unpack", "--range", f"{begin + 1500000}:1000", "bad.k3a", "-"),
                         self.content[begin + 1500000:begin + 1501000])
        self.refuses(CORRUPT, r"bad.k3a: entry 'a'.*stripe 0, block 0", "unpack", "--range", f"{begin}:10", "bad.k3a", "x")
        self.refuses(CORRUPT, r"bad.k3a: entry 'a'.*stripe 0, block 0", "unpack", "bad.k3a", "x")

    def test_no_part_is_unchecked(self):
        """A part of stored bytes, or of a run without index, is checked by the entry's CRC, wherever the damage is."""
        mixed = [("f", "F32", [3000], noise(12000)), ("g", "I8", [5], noise(5, 9)), ("a", "BF16", [90000], generate(180000))]
        write(self.path("x.safetensors"), st.file(mixed))
        for options in ((), ("--no-index",), ("--no-index", "--stripe-size", 50000)):
            self.good("pack", "--force", *options, "x.safetensors", "x.k3a")
            good = read(self.path("x.k3a"))
            begins = {name: tensor["source_offset"] for name, tensor in st.Archive(good).tensors.items()}
            for entry in st.Archive(good).entries:
                if entry["kind"] == RUN and not options:
                    continue
                for at in (1000, entry["bytes"] - 3):
                    bad = bytearray(good)
                    bad[entry["offset"] + at] ^= 4
                    write(self.path("bad.k3a"), bad)
                    first, last = entry["source_offset"], entry["source_offset"] + entry["raw_bytes"]
                    names = [name for name, begin in begins.items() if first <= begin < last]
                    self.assertTrue(names)
                    with self.subTest(options=options, kind=entry["kind"], at=at):
                        for asked in [("--tensor", name) for name in names] + [("--range", f"{last - 2}:2")]:
                            self.refuses(CORRUPT, "bad.k3a: entry '[fa]'", "unpack", *asked, "bad.k3a", "never")
                        for name in set(begins) - set(names):
                            self.good("unpack", "--force", "--tensor", name, "bad.k3a", "out")
                            self.assertEqual(read(self.path("out")), next(t[3] for t in mixed if t[0] == name))

    def test_sizes_of_stripes_must_add_up(self):
        """A stripe that is a byte shorter by its header can leave all else in place, and moves what is behind it."""
        content = generate(150000)
        write(self.path("b"), content)
        write(self.path("b.safetensors"), st.file([("a", "BF16", [75000], content)]))
        for name, packed in (("b", "b.k3h"), ("b.safetensors", "b.k3a")):
            self.good("pack", "--stripe-size", 30002, name, packed)
            bad = bytearray(read(self.path(packed)))
            start = st.Archive(bad).entries[1]["offset"] if packed == "b.k3a" else 0
            begin = st.Archive(bad).entries[1]["source_offset"] if packed == "b.k3a" else 0
            self.assertEqual(struct.unpack_from("<I", bad, start + 292), (30002,))
            bad[start + 292] ^= 3  # 30001: as many even bytes, as many blocks
            write(self.path("bad"), bad)
            self.refuses(CORRUPT, "bad", "unpack", "--range", f"{begin + 50000}:100", "bad", "out")
            self.assertEqual(self.good("unpack", "--range", f"{begin + 50000}:100", packed, "-"), content[50000:50100])

    def test_list(self):
        facts = json.loads(self.good("list", "--json", "m.k3a"))
        self.assertEqual([(t["name"], t["dtype"], t["shape"], t["bytes"]) for t in facts["tensors"]],
                         sorted([(name, dtype, shape, len(content)) for name, dtype, shape, content in self.tensors],
                                key=lambda t: [e[0] for e in self.tensors].index(t[0])))
        self.assertEqual(json.loads(self.good("inspect", "--json", "m.k3a")), facts)
        families = {family["name"]: family for family in facts["families"]}
        self.assertEqual(families["n.*.w"]["tensors"], 2)
        self.assertEqual(families["n.*.w"]["bytes"], 800)
        self.assertEqual(facts["source_bytes"], len(self.content))
        self.assertEqual(facts["archive_bytes"], len(read(self.path("m.k3a"))))
        lines = self.good("list", "m.k3a").decode().splitlines()
        self.assertEqual(len(lines), 1 + len(self.tensors))
        self.assertRegex(lines[1], r"^BF16 +\[1000000\] +2000000 +\d+ +0\.6\d+ run +a$")
        text = self.good("inspect", "m.k3a").decode()
        for pattern in (r"(?m)^source bytes +\d+$", r"(?m)^ +2 +800 .* n\.\*\.w$", r"(?m)^zeros +0 +0 "):
            self.assertRegex(text, pattern)
        self.refuses(CORRUPT, "not a k3huf archive", "list", "m.run")

    def test_json_of_pack_and_verify(self):
        facts = json.loads(self.good("pack", "--json", "--force", "m.safetensors", "m.k3a"))
        self.assertEqual((facts["tensors"], facts["float_tensors"]), (6, 3))
        self.assertLessEqual(facts["coded_bits_tensor_codes"], facts["coded_bits_run_codes"])
        self.assertLessEqual(facts["coded_bits_run_codes"], facts["coded_bits_one_code"])
        facts = json.loads(self.good("verify", "--json", "m.k3a", "m.safetensors"))
        self.assertEqual((facts["kind"], facts["compared"], facts["tensors"]), ("archive", True, 6))
        self.assertEqual(self.good("verify", "-q", "m.k3a"), b"")
        facts = json.loads(self.good("unpack", "--json", "m.k3a", "back"))
        self.assertEqual((facts["kind"], facts["bytes"], facts["output"]), ("archive", len(self.content), "back"))

    def test_streams(self):
        self.refuses(USAGE, "cannot go to a stream", "pack", "m.safetensors", "-")
        done = self.tool("unpack", "-", "out", stdin=read(self.path("m.k3a")))
        # Standard input that is a pipe.
        self.assertEqual(done.returncode, CORRUPT)
        self.assertRegex(done.stderr.decode(), "an archive must be a file")
        with open(self.path("m.k3a"), "rb") as file:
            done = subprocess.run([*TOOL, "unpack", "-", "-"], stdin=file, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stdout), (OK, self.content))

    def test_mismatch(self):
        other = bytearray(self.content)
        other[-30000] ^= 1
        write(self.path("other"), other)
        at = len(other) - 30000
        self.refuses(MISMATCH, rf"source offset {at}: differs from other: expected 0x01, found 0x00", "verify", "m.k3a",
                     "other")
        write(self.path("other"), self.content[:-1])
        self.refuses(MISMATCH, "other ends here", "verify", "m.k3a", "other")
        write(self.path("other"), self.content + b"\0")
        self.refuses(MISMATCH, "the archive ends here, other goes on", "verify", "m.k3a", "other")


class ArchiveRefusals(ArchiveTest):
    def refused(self, content, pattern, code=CORRUPT):
        write(self.path("x.safetensors"), content)
        self.refuses(code, r"x\.safetensors: .*" + pattern, "pack", "x.safetensors", "out.k3a")

    def header(self, tensors, data_bytes=100):
        return st.raw_file(json.dumps(tensors).encode(), bytes(data_bytes))

    def test_header_lengths(self):
        self.refused(b"", "too short")
        self.refused(b"1234567", "too short")
        for length in (3, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8):
            self.refused(st.raw_file(b"{}", b"", length), rf"offset 0: the header's length, {length}, is beyond")
        path = self.path("x.safetensors")
        write(path, struct.pack("<Q", 100000001))
        os.truncate(path, 200000000)
        self.refuses(CORRUPT, "length, 100000001, is over 100000000", "pack", "x.safetensors", "out.k3a")

    def test_json(self):
        for text in (b"", b"{", b"nonsense", b"{}x", b'{"a":}', b'{"a\xff":1}', b"{}\0"):
            self.refused(st.raw_file(text, b""), r"safetensors header, offset \d+: ")
        self.refused(st.raw_file(b"[1,2]", b""), "not a JSON object")
        self.refused(st.raw_file(b"[" * 5000, b""), "safetensors header")
        for metadata in (b"7", b"[]", b'{"a": 1}', b'{"a": {}}'):
            self.refused(st.raw_file(b'{"__metadata__":' + metadata + b"}", b""), "__metadata__ is not an object of strings")
        entry = json.dumps(st.tensor("U8", [1], 0, 1)).encode()
        self.refused(st.raw_file(b'{"a":' + entry + b',"a":' + entry + b"}", b"x"), "duplicate")

    def test_offsets(self):
        t = st.tensor
        self.refused(self.header({"a": t("U8", [10], 0, 10), "b": t("U8", [10], 9, 19)}), "tensor 'b': .*overlaps tensor 'a'")
        self.refused(self.header({"a": t("U8", [10], 0, 10), "b": t("U8", [10], 0, 10)}), "overlaps")
        self.refused(self.header({"a": t("U8", [10], 10, 0)}), "tensor 'a': data_offsets go backward, from 10 to 0")
        self.refused(self.header({"a": t("U8", [101], 0, 101)}), "beyond the end of the file")
        self.refused(self.header({"a": t("U8", [1], 1 << 62, (1 << 62) + 1)}), "beyond the end of the file")
        for offsets in ([0], [0, 1, 2], [0, -1], [0.0, 1.0], ["0", "1"], None, {"0": 1}):
            self.refused(self.header({"a": {"dtype": "U8", "shape": [1], "data_offsets": offsets}}), "data_offsets is not")
        self.refused(st.raw_file(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}}', b"x"),
                     "safetensors header")

    def test_shapes(self):
        t = st.tensor
        self.refused(self.header({"a": t("BF16", [10], 0, 10)}), "tensor 'a': has 10 bytes, but dtype and shape make 20")
        self.refused(self.header({"a": t("BF16", [], 0, 0)}), "has 0 bytes, but dtype and shape make 2")
        self.refused(self.header({"a": t("U8", [0, 3], 0, 1)}), "has 1 bytes, but dtype and shape make 0")
        self.refused(self.header({"a": t("F64", [1 << 40, 1 << 40], 0, 10)}), "more bytes than can be counted")
        self.refused(self.header({"a": t("U8", [-1], 0, 1)}), "not a whole number")
        self.refused(self.header({"a": t("U8", [1.5], 0, 1)}), "not a whole number")
        self.refused(self.header({"a": t("U8", [1] * 65, 0, 1)}), "at most 64")
        self.refused(self.header({"a": t("U8", 1, 0, 1)}), "shape is not a list")
        for name in ("", "a b", "B\x1bF", "B\u00e4"):
            self.refused(self.header({"a": t(name, [1], 0, 1)}), "dtype is not a name")
        self.refused(self.header({"a": t(8, [1], 0, 1)}), "dtype")
        self.refused(self.header({"a": 7}), "tensor 'a'")
        self.refused(self.header({"": t("U8", [1], 0, 1)}), "empty name")

    def archive(self):
        tensors = [("w", "BF16", [20000], generate(40000)), ("f", "F32", [3000], noise(12000)),
                   ("z", "U8", [70000], bytes(70000))]
        write(self.path("m.safetensors"), st.file(tensors))
        self.good("pack", "m.safetensors", "m.k3a")
        return bytearray(read(self.path("m.k3a")))

    def refuses_archive(self, content, pattern, *commands):
        write(self.path("bad.k3a"), content)
        for command in commands or (("verify", "bad.k3a"), ("unpack", "bad.k3a", "out"), ("list", "bad.k3a")):
            self.refuses(CORRUPT, r"bad\.k3a: .*" + pattern, *command)

    def test_cut_at_every_page(self):
        packed = self.archive()
        for size in [*range(4096, len(packed), 4096), len(packed) - 1]:
            self.refuses_archive(packed[:size], rf"offset {size}: the archive is cut short")
        self.refuses_archive(packed[:100], "cut short")
        self.refuses_archive(packed + b"\0", rf"offset {len(packed)}: bytes after")

    def test_every_byte_of_page_and_toc_counts(self):
        packed = self.archive()
        archive = st.Archive(packed)
        for at in [*range(8, 84), 4095]:
            bad = bytearray(packed)
            bad[at] ^= 0x40
            self.refuses_archive(bad, r"offset (8|12): ", ("list", "bad.k3a"))
        for at in range(archive.toc_offset, len(packed), 7):
            bad = bytearray(packed)
            bad[at] ^= 0x40
            self.refuses_archive(bad, r"offset 40: the CRC-32C of the table of contents is wrong", ("list", "bad.k3a"))

    def test_damaged_entries(self):
        packed = self.archive()
        for entry in st.Archive(packed).entries:
            if entry["kind"] != ZEROS:
                bad = bytearray(packed)
                bad[entry["offset"] + entry["bytes"] - 20] ^= 4
                name = entry["name"]
                self.refuses_archive(bad, rf"entry '{name}' at {entry['offset']}: ", ("verify", "bad.k3a"),
                                     ("unpack", "bad.k3a", "out"))

    def resealed(self, packed, changes):
        """An archive with lies in it whose CRCs are right: changes [(struct format, offset, value)]."""
        bad = bytearray(packed)
        for form, at, value in changes:
            struct.pack_into(form, bad, at, value)
        toc_offset, toc_bytes = struct.unpack_from("<QQ", bad, 24)
        if toc_offset + toc_bytes <= len(bad):
            struct.pack_into("<I", bad, 40, st.crc32c(bad[toc_offset:toc_offset + toc_bytes]))
        struct.pack_into("<I", bad, 12, 0)
        struct.pack_into("<I", bad, 12, st.crc32c(bad[:4096]))
        return bad

    def test_lies_with_right_crcs(self):
        packed = self.archive()
        archive = st.Archive(packed)
        self.assertEqual(self.resealed(packed, []), packed)
        toc, n = archive.toc_offset, len(archive.entries)
        tensors = toc + 48 * n
        big = (1 << 64) - 4096
        for changes, pattern in (
                ([("<Q", 24, big)], "impossible place"), ([("<Q", 24, 5000)], "impossible place"),
                ([("<Q", 32, 1 << 40)], "impossible size"), ([("<Q", 32, 10)], "impossible size"),
                ([("<I", 44, 0xFFFFFFFF)], "impossible size"), ([("<I", 64, 0xFFFFFFFF)], "impossible size"),
                ([("<I", 68, 0xFFFFFFFF)], "impossible size"),
                ([("<Q", 48, 1 << 62)], "do not cover the source"), ([("<Q", 48, 1 << 63)], "larger than any file"),
                ([("<I", 56, 1)], "CRC-32C of the source"),
                ([("<Q", toc, big)], "impossible place"), ([("<Q", toc, 0)], "impossible place"),
                ([("<Q", toc, 4097)], "impossible place"), ([("<Q", toc + 8, big)], "impossible place"),
                ([("<Q", toc + 16, 1)], "does not begin where"), ([("<Q", toc + 24, 0)], "impossible size in the source"),
                ([("<Q", toc + 24, big)], "impossible size in the source"),
                ([("<Q", toc + 8, 1)], "two sizes differ"), ([("<I", toc + 36, 3)], "unknown kind"),
                ([("<I", toc + 40, 0xFFFFFFFF)], "name lies outside"), ([("<I", toc + 44, 0xFFFFFFFF)], "name lies outside"),
                ([("<I", toc + 36, 2)], "zeros has a place"),
                ([("<Q", tensors, big)], "outside the source"), ([("<Q", tensors + 8, big)], "outside the source"),
                ([("<Q", tensors, 0)], "outside its entry"), ([("<I", tensors + 16, n)], "does not exist"),
                ([("<I", tensors + 24, 0)], "name lies outside"), ([("<I", tensors + 28, 0xFFFFFFFF)], "outside the dimensions"),
                ([("<I", tensors + 40, 0xFFFFFFFF)], "outside the dimensions"),
                ([("<Q", tensors + 8, 0)], "without bytes has an entry")):
            with self.subTest(pattern=pattern, changes=changes):
                self.refuses_archive(self.resealed(packed, changes), pattern)
        # A name that is not text: all can be unpacked, but it cannot be listed in JSON, and is not left out of it.
        bad = bytearray(packed)
        bad[-1] = 0xFF
        write(self.path("odd.k3a"), self.resealed(bad, []))
        self.good("verify", "odd.k3a")
        self.good("list", "odd.k3a")
        self.refuses(CORRUPT, "odd.k3a: offset [0-9]+: a name .* is not UTF-8", "list", "--json", "odd.k3a")
        # The run is told to be of another size.
        run = [i for i, entry in enumerate(archive.entries) if entry["kind"] == RUN][0]
        bad = bytearray(packed)
        struct.pack_into("<Q", bad, archive.entries[run]["offset"] + 8, 39998)
        self.refuses_archive(bad, "another size", ("verify", "bad.k3a"))



class RequireIndex(ArchiveTest):
    """--require-index: what has no block index is refused, with its place, and nothing of it comes out."""

    ABSENT = "the stripe has no block index, and one is required"

    def test_runs(self):
        content = generate(300002)
        write(self.path("raw"), content)
        for options, indexed in (([], True), (["--no-index"], False)):
            self.good("pack", "--force", "--stripe-size", 100000, *options, "raw", "run")
            run = read(self.path("run"))
            for threads in 1, 4:
                more = ["--require-index", "-T", threads]
                if indexed:
                    self.good("verify", *more, "run", "raw")
                    self.good("verify", *more, "-", "raw", stdin=run)
                    self.assertEqual(self.good("unpack", *more, "run", "-"), content)
                    self.assertEqual(self.good("unpack", *more, "-", "-", stdin=run), content)
                    self.assertEqual(self.good("unpack", *more, "--range", "99990:20", "run", "-"), content[99990:100010])
                else:
                    where = f"stripe 0, offset {Run(run).stripes[0]['filler']}: {self.ABSENT}"
                    self.refuses(CORRUPT, "run: " + where, "verify", *more, "run", "raw")
                    self.refuses(CORRUPT, where, "verify", *more, "-", stdin=run)
                    self.refuses(CORRUPT, "run: " + where, "unpack", *more, "run", "out")
                    self.refuses(CORRUPT, where, "unpack", *more, "-", "-", stdin=run)
                    self.refuses(CORRUPT, "run: " + where, "unpack", *more, "--range", "5:6", "run", "out")
            self.good("verify", "run", "raw")

    def test_one_stripe_without(self):
        content = generate(300002)
        write(self.path("raw"), content)
        self.good("pack", "--stripe-size", 100000, "raw", "run")
        run = bytearray(read(self.path("run")))
        filler = Run(run).stripes[1]["filler"]
        run[filler:filler + 4] = bytes(4)
        write(self.path("run"), run)
        self.good("verify", "run", "raw")
        where = f"stripe 1, offset {filler}: {self.ABSENT}"
        self.refuses(CORRUPT, "run: " + where, "verify", "--require-index", "run", "raw")
        for arguments, stdin in ((["run"], b""), (["-"], bytes(run))):
            done = self.tool("unpack", "--require-index", *arguments, "-", stdin=stdin)
            self.assertEqual((done.returncode, done.stdout), (CORRUPT, content[:100000]))
            self.assertRegex(done.stderr.decode(), where)
        for begin, size in ((0, 100000), (50000, 3), (200000, 100002), (200001, 5)):
            part = self.good("unpack", "--require-index", "--range", f"{begin}:{size}", "run", "-")
            self.assertEqual(part, content[begin:begin + size])
        for begin, size in ((99999, 2), (100000, 1), (199999, 1), (0, 300002)):
            self.refuses(CORRUPT, "run: " + where, "unpack", "--require-index", "--range", f"{begin}:{size}", "run", "out")

    def test_a_single_byte(self):
        """Has nothing that an index could hold a CRC of."""
        write(self.path("raw"), b"x")
        self.good("pack", "raw", "run")
        self.good("verify", "run", "raw")
        self.refuses(CORRUPT, "run: stripe 0, offset [0-9]+: " + self.ABSENT, "verify", "--require-index", "run")
        write(self.path("none"), b"")
        self.good("pack", "none", "empty")
        self.good("verify", "--require-index", "empty", "none")

    def test_archives(self):
        tensors = [("w", "BF16", [50000], generate(100000)), ("b", "F32", [1000], noise(4000))]
        content = st.file(tensors)
        write(self.path("model.safetensors"), content)
        self.good("pack", "model.safetensors", "indexed.k3a")
        self.good("verify", "--require-index", "indexed.k3a", "model.safetensors")
        self.assertEqual(self.good("unpack", "--require-index", "indexed.k3a", "-"), content)
        self.assertEqual(self.good("unpack", "--require-index", "--tensor", "w", "indexed.k3a", "-"), tensors[0][3])
        self.good("pack", "--no-index", "model.safetensors", "plain.k3a")
        entry = next(entry for entry in st.Archive(read(self.path("plain.k3a"))).entries if entry["kind"] == RUN)
        where = f"plain.k3a: entry 'w' at {entry['offset']}: stripe 0, offset [0-9]+: {self.ABSENT}"
        self.good("verify", "plain.k3a", "model.safetensors")
        self.refuses(CORRUPT, where, "verify", "--require-index", "plain.k3a", "model.safetensors")
        self.refuses(CORRUPT, where, "unpack", "--require-index", "plain.k3a", "out")
        self.refuses(CORRUPT, where, "unpack", "--require-index", "--tensor", "w", "plain.k3a", "out")
        self.refuses(CORRUPT, where, "unpack", "--require-index", "--range", "5000:10", "plain.k3a", "out")
        # Stored bytes have the CRC of their entry.
        self.assertEqual(self.good("unpack", "--require-index", "--tensor", "b", "plain.k3a", "-"), tensors[1][3])

    def test_directories(self):
        st.model(self.path("model"), {f"model-{i}.safetensors": [("w" + str(i), "BF16", [30000], generate(60000, i))]
                                      for i in range(2)})
        self.good("pack", "model", "out")
        self.good("verify", "--require-index", "out", "model")
        self.good("unpack", "--require-index", "out", "back")
        self.good("pack", "--force", "--no-index", "model", "out")
        self.good("verify", "out", "model")
        done = self.tool("verify", "--require-index", "out")
        self.assertEqual(done.returncode, CORRUPT)
        self.assertRegex(done.stderr.decode(), "out: 2 of 3 files damaged")
        self.assertEqual(done.stdout.decode().count(self.ABSENT), 2)
        self.fails(CORRUPT, self.ABSENT, "unpack", "--force", "--require-index", "out", "other")


if __name__ == "__main__":
    unittest.main()
