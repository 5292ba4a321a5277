#!/usr/bin/env python3
"""The firmware as a whole: jobs from a real host process over NVMe, several cores and the window of host memory.

Each test compares bytes, statuses and places. A check that every byte outside the jobs' destinations is as it was ends
every test that writes. Nothing waits without a bound.
"""
import json
import os
import random
import re
import struct
import sys
import time
import unittest

from board import (ATTACHED, CANCEL, COPY, LIST, NOWHERE, PART, READY, STATUS, STOPPED, Case, Control, Host, generate,
                   pattern)

sys.path.append(os.path.join(os.path.dirname(__file__), "../system"))
import safetensors_file  # pylint: disable=wrong-import-position

DATA = os.path.join(os.path.dirname(__file__), "../data")

# A group has a block for each lane of the decoder.
with open(os.path.join(os.path.dirname(__file__), "../../core/k3huf.h"), encoding="ascii") as header:
    LANES = int(re.search(r"#define K3HUF_LANES (\d+)u", header.read()).group(1))


class InFlight(Case):
    """Several runs on one drive, with noise between them."""

    def setUp(self):
        super().setUp()
        self.image = bytearray(random.Random(1).randbytes(12345))  # no run begins at the border of a block
        self.destinations = []

    def add(self, content):
        """Put bytes on the drive; their offset."""
        at = len(self.image)
        self.image += content + random.Random(at).randbytes(1 + at % 700)
        return at

    def drive(self):
        return self.write("drive", self.image + bytes(-len(self.image) % 4096))

    def post(self, host, at, run, raw, **more):
        """Submit a decode job for the run at `at` to a place of its own; where."""
        to = self.free
        # Odd lengths and odd gaps: destinations are not aligned to anything.
        self.free += len(raw) + 1 + 2 * len(self.destinations)
        job = {"offset": at, "run_bytes": len(run), "destination": to, "destination_bytes": len(raw), **more}
        host.submit(**job)
        self.destinations.append((to, raw))
        return to

    def start(self, window=1 << 20, entries=16, completions=16, **options):
        board = self.board(drive=self.drive(), window=window, **options)
        host = Host(board, entries=entries, completions=completions)
        self.free = host.data
        return board, host

    def check_window(self, board, host, but=()):
        """Destinations hold their raw bytes, all else the pattern. `but`: spans that may hold anything."""
        got = board.memory[:]
        expected = bytearray(pattern(len(got)))
        expected[:host.data] = got[:host.data]
        for at, raw in self.destinations:
            expected[at:at + len(raw)] = raw
        for at, size in but:
            expected[at:at + size] = got[at:at + size]
        if got != expected:
            where = next(i for i in range(len(got)) if got[i] != expected[i])
            self.fail(f"byte {where} of the window is {got[where]:#x} instead of {expected[where]:#x}")

    def shut_down(self, board, host):
        """Orderly end; the firmware's log."""
        host.shut_down()
        self.assertEqual(board.end(), 0, board.log())
        self.assertEqual(board.word(72), STOPPED)
        log = board.log()
        stacks = re.findall(r"stack of core (\d+): (\d+) of (\d+) bytes used", log)
        self.assertEqual(len(stacks), board.word(64 + 28), log)
        for _, used, size in stacks:
            self.assertGreater(int(used), 0, log)
            self.assertLess(int(used), int(size) // 2, log)
        return log


class Machines(InFlight):
    """The same jobs, all queued at once, on 1, 2 and 4 cores and both block sizes."""

    def check(self, cores, lba, *options):
        raws = [generate(size, size) for size in (300000, 300001, 2, 1, 77777)]
        raws += [bytes(5000), random.Random(2).randbytes(99999)]
        jobs = []
        for number, raw in enumerate(raws):
            for name, more in (("indexed", []), ("plain", ["--no-index"]), ("small", ["--block-log2=12"])):
                run = self.pack(f"{name}{number}", raw, "--stripe-size=100001", *more)
                jobs.append((self.add(run.content), run.content, raw))
        board, host = self.start(window=8 << 20, entries=32, completions=32, cores=cores, lba=lba, options=options)
        self.assertEqual(board.word(64 + 28), cores)
        self.assertEqual(board.word(64 + 48), lba)
        for at, run, raw in jobs:
            self.post(host, at, run, raw)
        for number, (_, _, raw) in enumerate(jobs):
            job = host.complete()
            self.assertEqual((job.id, job.status, job.bytes), (number, "OK", len(raw)), board.log())
            self.assertEqual((job.stripe, job.block), (NOWHERE, NOWHERE))
        self.check_window(board, host)
        self.assertIn(f"jobs: {len(jobs)}, failed 0, {sum(len(raw) for _, _, raw in jobs)} bytes",
                      self.shut_down(board, host))

    def test_1_core_512(self):
        self.check(1, 512)

    def test_2_cores_512(self):
        self.check(2, 512)

    def test_4_cores_4096(self):
        self.check(4, 4096)

    def test_1_core_4096(self):
        self.check(1, 4096)

    def test_small_transfers(self):
        self.check(2, 512, "--mdts", "1")

    def test_started_at_el2(self):
        self.check(2, 4096, "--el2", "--cpu", "neoverse-n1")


class Parts(InFlight):
    """Parts of runs, and bytes as they are."""

    def check(self, cores, lba):
        raw = generate(500001, 11)
        run = self.pack("run", raw, "--stripe-size=200001", "--block-log2=12").content
        plain = self.pack("plain", raw, "--stripe-size=200001", "--no-index").content
        at, plain_at = self.add(run), self.add(plain)
        board, host = self.start(window=8 << 20, entries=64, completions=64, cores=cores, lba=lba)
        ends = [0, 1, 8191, 200000, 200001, 200002, 399999, 500000, 500001]
        parts = [(first, end) for first, end in zip(ends, ends[1:] + ends[-1:])] + [(0, 500001), (150000, 450000)]
        for first, end in parts:
            self.post(host, first, run, raw[first:end], kind=PART, lba=at // lba, last=at % lba)
            self.post(host, first, plain, raw[first:end], kind=PART, lba=plain_at // lba, last=plain_at % lba)
        copies = [(at, len(run)), (plain_at + 1, 0), (plain_at + 1, 1), (777, 300000)]  # and below a part of the last
        for begin, size in copies:
            piece = bytes(self.image[begin:begin + size])
            self.post(host, 0, piece, piece, kind=COPY, lba=begin // lba, last=begin % lba)
        self.post(host, 123456, piece, piece[123456:], kind=COPY, lba=begin // lba, last=begin % lba)
        for number in range(2 * len(parts) + len(copies) + 1):
            job = host.complete()
            _, expected = self.destinations[number]
            self.assertEqual((job.id, job.status, job.bytes), (number, "OK", len(expected)), board.log())
            begin, size = copies[min(max(0, number - 2 * len(parts)), 3)]
            crc = safetensors_file.crc32c(self.image[begin:begin + size])
            self.assertEqual(job.crc, crc if number >= 2 * len(parts) else 0)
            self.assertEqual(job.read % lba, 0)
            self.assertGreaterEqual(job.read, len(expected) // 2)
        self.check_window(board, host)
        # And what is refused: nothing of it is written.
        before = self.destinations[:]
        for more, status in (({"offset": 500001, "kind": PART, "lba": at // lba, "last": at % lba}, "PART"),
                             ({"offset": 2**64 - 1, "kind": PART, "lba": at // lba, "last": at % lba}, "PART"),
                             ({"offset": 0, "kind": PART, "last": 2**32 - 1}, "SOURCE"),
                             ({"offset": 0, "last": 1}, "KIND"),
                             ({"offset": 0, "kind": LIST, "last": 1}, "KIND"),
                             ({"offset": len(run), "kind": COPY}, "PART"),
                             ({"offset": 0, "kind": COPY, "run_bytes": 0}, "PART"),
                             ({"offset": 0, "kind": COPY, "last": 2**32 - 1}, "SOURCE"),
                             ({"offset": 0, "kind": COPY, "lba": 2**40}, "SOURCE")):
            job = {"run_bytes": len(run), "destination": self.free + 100, "destination_bytes": 1, **more}
            self.assertEqual(host.run(**job).status, status, more)
        self.destinations = before
        self.check_window(board, host)
        self.shut_down(board, host)

    def test_2_cores_512(self):
        self.check(2, 512)

    def test_4_cores_4096(self):
        self.check(4, 4096)


class Sessions(InFlight):
    def test_one_host_after_another(self):
        raw = generate(50001, 3)
        run = self.pack("run", raw).content
        at = self.add(run)
        board, host = self.start()
        for _ in range(3):
            self.post(host, at, run, raw)
            self.assertEqual(host.complete().status, "OK")
            self.check_window(board, host)
            host = Host(board)
        self.shut_down(board, host)

    def test_more_jobs_than_entries(self):
        raw = generate(5001, 4)
        run = self.pack("run", raw).content
        at = self.add(run)
        board, host = self.start(entries=3, completions=2)
        for turn in range(20):
            self.post(host, at, run, raw)
            if turn >= 2:
                self.assertEqual(host.complete().status, "OK")
        for _ in range(2):
            self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host)

    def test_job_in_blocks(self):
        """A source given by its block; a destination larger than the run; blocks of index and trace."""
        raw = generate(400001, 5)
        run = self.pack("run", raw).content
        at = self.add(run)
        board, host = self.start(window=2 << 20)
        self.post(host, at % 512, run, raw, lba=at // 512, destination_bytes=len(raw) + 1000, options=1 | 2)
        self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host)
        log = self.shut_down(board, host)
        blocks = [tuple(map(int, found)) for found in re.findall(r"trace: stripe 0 blocks (\d+)-(\d+) core", log)]
        self.assertEqual(sorted(blocks), [(first, min(first + LANES - 1, 12)) for first in range(0, 13, LANES)], log)

    def test_cancel(self):
        raw = generate(4 << 20, 14)
        run = self.pack("run", raw).content
        at = self.add(run)
        board, host = self.start(window=64 << 20)
        for ident in range(6):
            self.post(host, at, run, raw, ident=ident)
        for ident in 5, 4, 99:
            host.submit(ident=100 + ident, kind=CANCEL, lba=ident, offset=0, run_bytes=0, destination=0,
                        destination_bytes=0)
        jobs = {}
        for _ in range(9):
            job = host.complete()
            jobs[job.id] = job.status
        self.assertEqual(jobs, {0: "OK", 1: "OK", 2: "OK", 3: "OK", 4: "CANCELLED", 5: "CANCELLED", 104: "OK",
                                105: "OK", 199: "NOT_FOUND"})
        del self.destinations[4:]
        self.check_window(board, host)
        self.shut_down(board, host)

    def test_shutdown_cancels(self):
        raw = generate(4 << 20, 6)
        run = self.pack("run", raw).content
        at = self.add(run)
        board, host = self.start(window=64 << 20, cores=1)
        for _ in range(8):
            self.post(host, at, run, raw)
        board.wait("jobs taken", lambda: board.word(64 + 20) == 8)
        host.shut_down()
        self.assertEqual(board.end(), 0, board.log())
        statuses = [host.take().status for _ in range(8)]
        # Those that wait end at once, the one that runs soon after.
        self.assertIn("CANCELLED", statuses)
        self.assertLessEqual(set(statuses), {"OK", "CANCELLED"})


class HostTool(Case):
    """k3huf_host image and offload as the host process."""

    FREE = 16384  # where offload puts the first destination

    def prepare(self, runs, lba, *options):
        """Files NAME.raw and NAME and an image of the runs: {name: (raw, pack options)}."""
        for name, (raw, more) in runs.items():
            self.tool("pack", "--force", *more, self.write(name + ".raw", raw), self.path(name))
        self.tool("image", "--force", f"--lba={lba}", *options, self.path("image"), *[self.path(name) for name in runs])
        return self.path("image")

    def offload(self, board, *arguments, code=0):
        return self.tool("offload", "--window", board.window_path, *arguments, code=code)

    def check(self, board, runs, found, names):
        """All as it should be: what the tool says, and every byte of the window."""
        expected = bytearray(pattern(len(board.memory)))
        for name, job in zip(names, found["jobs"], strict=True):
            raw = runs[name][0]
            self.assertEqual((job["name"], job["status"], job["bytes"], job["same"]), (name, 0, len(raw), True))
            expected[job["destination"]:job["destination"] + len(raw)] = raw
        self.assertTrue(board.memory[self.FREE:] == expected[self.FREE:], "a byte outside the destinations changed")

    def shut_down(self, board):
        self.offload(board, "--shutdown")
        self.assertEqual(board.end(), 0, board.log())

    def test_jobs(self):
        runs = {
            "indexed": (generate(3000001, 1), ["--stripe-size=1000001"]),
            "plain": (generate(2000007, 2), ["--no-index", "--stripe-size=1M"]),
            "small-blocks": (generate(500001, 3), ["--block-log2=12"]),
            "byte": (b"x", []),
            "nothing": (b"", []),
        }
        for cores, lba in ((1, 512), (2, 4096), (4, 512), (4, 4096)):
            with self.subTest(cores=cores, lba=lba):
                # Runs begin at the border of a block, or all at a byte in the middle of the drive.
                drive = self.prepare(runs, lba, *([] if lba == 512 else ["--offset=7654321"]))
                board = self.board(drive=drive, window=16 << 20, cores=cores, lba=lba)
                names = [*runs, "plain", "indexed", "byte"]
                posted = [f"{name}={self.path(name)}.raw" for name in names]
                found = json.loads(self.offload(board, "--json", *posted))
                self.assertEqual((found["cores"], found["lba_bytes"]), (cores, lba))
                self.check(board, runs, found, names)
                self.shut_down(board)

    def test_list(self):
        runs = {"one": (generate(3000, 1), ["--no-index"]), "two": (generate(5000, 2), [])}
        board = self.board(drive=self.prepare(runs, 4096), lba=4096)
        found = json.loads(self.offload(board, "--list", "--json"))
        self.assertEqual([(run["name"], run["raw_bytes"]) for run in found["runs"]], [("one", 3000), ("two", 5000)])

    def test_archive(self):
        """Tensors of a model's archive by name, with real weights: whole runs, parts of runs, stored bytes, zeros."""
        with open(os.path.join(DATA, "silero_vad_v6.bf16"), "rb") as file:
            weights = file.read()
        piece = len(weights) // 8
        tensors = [(f"layers.{i}.weight", "BF16", [piece // 2], weights[i * piece:(i + 1) * piece]) for i in range(8)]
        tensors += [("norm", "F32", [2], b"\1\2\3\4\5\6\7\0"), ("scale", "U8", [3], b"abc"),
                    ("zeros", "F32", [300000], bytes(1200000)), ("all", "BF16", [len(weights) // 2], weights)]
        model = self.write("model.safetensors", safetensors_file.file(tensors))
        self.tool("pack", model, self.path("model.k3a"))
        for cores, lba in ((1, 512), (4, 4096)):
            with self.subTest(cores=cores, lba=lba):
                drive = self.prepare({"one": (generate(70001, 1), [])}, lba)
                self.tool("image", "--force", f"--lba={lba}", drive, self.path("one"), self.path("model.k3a"))
                board = self.board(drive=drive, window=16 << 20, cores=cores, lba=lba)
                found = json.loads(self.offload(board, "--json", "one=" + self.path("one.raw"), "model.k3a=" + model))
                expected = bytearray(pattern(len(board.memory)))
                kinds = set()
                content = {"one": generate(70001, 1), **{"model.k3a/" + name: data for name, _, _, data in tensors}}
                for job in found["jobs"]:
                    data = content.pop(job["name"])
                    self.assertEqual((job["status"], job["bytes"], job["same"]), (0, len(data), True))
                    expected[job["destination"]:job["destination"] + len(data)] = data
                    kinds.add(job["as"])
                self.assertEqual((content, kinds), ({}, {"run", "part", "copy", "zeros"}))
                self.assertTrue(board.memory[self.FREE:] == expected[self.FREE:], "a byte outside the tensors changed")
                text = self.offload(board, f"model.k3a/layers.3.weight={model}", "model.k3a/norm=" + model)
                self.assertEqual(text.count(", the same as in " + model), 2)
                self.assertIn("has no tensor 'layers.8.weight'", self.offload(board, "model.k3a/layers.8.weight", code=2))
                self.assertEqual(self.offload(board, "--list", "model.k3a"), self.tool("list", self.path("model.k3a")))
                self.shut_down(board)
        # Damage to the tables, and to an entry; the archive at a byte of a drive without a table.
        with open(self.path("model.k3a"), "rb") as file:
            sound = file.read()
        archive = safetensors_file.Archive(sound)
        entry = archive.entries[archive.tensors["norm"]["entry"]]
        for at, pattern_ in ((archive.toc_offset + 5, "the CRC-32C of the table of contents is wrong"),
                             (100, "the CRC-32C of the first page is wrong")):
            damaged = bytearray(sound)
            damaged[at] ^= 1
            board = self.board(drive=self.write("drive", bytes(5000) + damaged + bytes(-(5000 + len(damaged)) % 512)))
            self.assertIn(pattern_, self.offload(board, "@5000/norm", code=4))
        damaged = bytearray(sound)
        damaged[entry["offset"]] ^= 1
        board = self.board(drive=self.write("drive", damaged + bytes(-len(damaged) % 512)), window=8 << 20)
        self.assertIn("do not have the CRC-32C of the archive's entry", self.offload(board, "@0/norm", code=4))
        self.offload(board, "--quiet", "@0/all=" + model, "@0/layers.0.weight=" + model)
        cut = sound[:archive.toc_offset]
        board = self.board(drive=self.write("drive", cut))
        self.assertIn("the archive is cut short: the drive ends", self.offload(board, "@0/norm", code=4))

    def test_large(self):
        """One job of two stripes, the first of 64 MiB; reads run ahead of the cores all the time."""
        runs = {"large": (generate((64 << 20) + 3000001, 7), [])}
        for cores, lba in ((1, 512), (4, 4096)):
            with self.subTest(cores=cores, lba=lba):
                board = self.board(drive=self.prepare(runs, lba), window=128 << 20, cores=cores, lba=lba)
                found = json.loads(self.offload(board, "--json", f"large={self.path('large')}.raw"))
                self.check(board, runs, found, ["large"])
                self.assertGreater(found["jobs"][0]["groups"], ((64 << 20) + 3000001) // (LANES << 15))
                self.assertGreater(found["jobs"][0]["groups_read_ahead"], 1.0)
                self.shut_down(board)

    def test_unreadable_sector(self):
        runs = {"bad": (generate(200000, 1), []), "good": (generate(200000, 2), [])}
        drive = self.prepare(runs, 512)
        board = self.board(drive=drive, options=["--bad", "200"])
        text = self.offload(board, f"bad={self.path('bad')}.raw", f"good={self.path('good')}.raw", code=3)
        self.assertRegex(text, r"k3huf_host: bad: stripe 0.*the drive cannot read a logical block")
        self.assertIn("good", self.offload(board, f"good={self.path('good')}.raw"))

    def test_no_firmware(self):
        """A machine that dies is noticed, and the wait has an end."""
        runs = {"one": (generate(3000, 1), [])}
        board = self.board(drive=self.prepare(runs, 512))
        self.offload(board, "one")
        board.process.kill()
        board.process.wait()
        begin = time.monotonic()
        self.offload(board, "--timeout=1500", "one", code=3)
        self.assertLess(time.monotonic() - begin, 30)  # half of what it waits when not told


class Broken(InFlight):
    """Flipped bits and cuts: the right status and place, nothing outside the destination, and the next job is done."""

    def test_flipped(self):
        raw = generate(300001, 8)
        run = self.pack("run", raw, "--stripe-size=200001")
        stripe = run.stripes[1]
        coded, plane, index = stripe["coded"], stripe["raw"], stripe["filler"]
        block = run.block_bit(1, 2) // 8 + 100  # in block 2 of the second stripe
        cases = [
            # byte, bit, status, stripe, block, offset (None: within the block's codes)
            (0, 0, "RUN_MAGIC", NOWHERE, NOWHERE, 0),
            (4, 1, "RUN_VERSION", NOWHERE, NOWHERE, 4),
            (11, 0, "DESTINATION_SMALL", NOWHERE, NOWHERE, 8),
            (15, 7, "RUN_STRIPES", NOWHERE, NOWHERE, 16),
            (20 + 17, 4, "CODE_LENGTH", NOWHERE, NOWHERE, 20 + 17),
            (stripe["header"], 1, "STRIPE_MAGIC", 1, NOWHERE, stripe["header"]),
            (stripe["header"] + 4, 0, "STRIPE_RAW", 1, NOWHERE, stripe["header"] + 4),
            (stripe["header"] + 11, 6, "STRIPE_CODED", 1, NOWHERE, stripe["header"] + 8),
            (index + 4, 1, "INDEX_VERSION", 1, NOWHERE, index + 4),
            (index + 6, 4, "INDEX_LOG2", 1, NOWHERE, index + 6),
            (index + 7, 0, "INDEX_FLAGS", 1, NOWHERE, index + 7),
            (index + 8, 0, "INDEX_COUNT", 1, NOWHERE, index + 8),
            (index + 12, 0, "INDEX_CRC", 1, NOWHERE, index + 12),
            (index + 20, 5, "INDEX_CRC", 1, NOWHERE, index + 12),
            (coded + block, 3, "BLOCK", 1, 2, None),
            (plane + 2 * 16384 + 5, 7, "BLOCK_CRC", 1, 2, None),
            (run.stripes[0]["raw"], 0, "BLOCK_CRC", 0, 0, None),
        ]
        sound = self.add(run.content)
        places = []
        for at, bit, *_ in cases:
            content = bytearray(run.content)
            content[at] ^= 1 << bit
            places.append(self.add(bytes(content)))
        board, host = self.start(window=16 << 20)
        spoilt = []
        for place, (at, bit, status, stripe_number, block_number, offset) in zip(places, cases):
            with self.subTest(byte=at, bit=bit):
                to = self.post(host, place, run.content, raw)
                self.destinations.pop()
                spoilt.append((to, len(raw)))
                job = host.complete()
                if status == "BLOCK":
                    self.assertIn(job.status, ("BLOCK_CRC", "BLOCK_END", "CODE_WORD", "CODED_SHORT"))
                else:
                    self.assertEqual(job.status, status)
                self.assertEqual((job.stripe, job.block), (stripe_number, block_number))
                if offset is None:
                    begin = run.stripes[stripe_number]["coded"] + run.block_bit(stripe_number, block_number) // 8
                    end = run.stripes[stripe_number]["coded"] + run.block_bit(stripe_number, block_number + 1) // 8
                    self.assertTrue(begin <= job.offset <= end, (begin, job.offset, end))
                    self.assertTrue((place + begin) // 512 <= job.lba <= (place + end) // 512)
                else:
                    self.assertEqual(job.offset, offset)
                    self.assertEqual(job.lba, (place + offset) // 512)
                # Blocks of another stripe or before the bad one may have been written, the bad one never.
                if block_number != NOWHERE:
                    at_raw = 200001 * stripe_number + block_number * 32768
                    self.assertEqual(board.memory[to + at_raw:to + at_raw + 32768],
                                     pattern(len(board.memory))[to + at_raw:to + at_raw + 32768])
                self.post(host, sound, run.content, raw)
                self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host, spoilt)
        self.shut_down(board, host)

    def test_cut(self):
        """A job that says fewer bytes than the run has, and a drive that ends inside the run."""
        raw = generate(100001, 9)
        run = self.pack("run", raw, "--stripe-size=60001")
        at = self.add(run.content)
        last = run.stripes[1]
        cuts = [(0, NOWHERE), (287, NOWHERE), (288, 0), (300, 0), (last["header"] + 15, 1), (last["coded"] + 100, 1),
                (last["raw"] + 100, 1), (last["filler"] + 3, 1), (last["filler"] + 20, 1)]
        board, host = self.start(window=4 << 20)
        spoilt = []
        for size, stripe in cuts:
            with self.subTest(size=size):
                spoilt.append((self.post(host, at, run.content, raw, run_bytes=size), len(raw)))
                self.destinations.pop()
                self.assertEqual(host.complete().place(), ("TRUNCATED", stripe, NOWHERE, size))
        beyond = len(self.image) + 4096 - at
        for offset, size in ((at, beyond), (2**64 - 1, 2), (0, 2**64 - 1), (at, 2**63)):
            job = host.run(offset=offset, run_bytes=size, destination=self.free, destination_bytes=len(raw))
            self.assertEqual(job.status, "SOURCE")
        self.assertEqual(host.run(lba=2**63, offset=0, run_bytes=300, destination=self.free,
                                  destination_bytes=300).status, "SOURCE")
        self.post(host, at, run.content, raw)
        self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host, spoilt)

    def test_truncated_image(self):
        raw = generate(100001, 10)
        run = self.pack("run", raw).content
        good = self.add(run)
        at = len(self.image)
        self.image += run[:-30000]
        self.image = self.image[:len(self.image) // 4096 * 4096]
        board, host = self.start()
        job = host.run(offset=at, run_bytes=len(run), destination=self.free, destination_bytes=len(raw))
        self.assertEqual(job.status, "SOURCE")
        job = host.run(offset=at, run_bytes=len(self.image) - at, destination=self.free, destination_bytes=len(raw))
        self.assertEqual((job.status, job.stripe, job.offset), ("TRUNCATED", 0, len(self.image) - at))
        self.post(host, good, run, raw)
        self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host)


class BadSectors(InFlight):
    """Unreadable sectors in each part of a run."""

    def setUp(self):
        super().setUp()
        self.raw = generate(300001, 11)
        self.run_ = self.pack("run", self.raw, "--stripe-size=200001")
        # The second stripe begins with a logical block of its own, and no block is shared by two runs: then each sector
        # has one part to answer for.
        stripe = self.run_.stripes[1]
        self.image += bytes(-(len(self.image) + stripe["header"]) % 4096)
        self.at = self.add(self.run_.content)
        self.image += bytes(8192)
        self.sound = self.add(self.run_.content)
        self.image += bytes(8192)
        self.parts = {  # part: byte of the run, stripe, block
            "run header": (100, NOWHERE, NOWHERE),
            "stripe header": (stripe["header"] + 8, 1, NOWHERE),
            "index": (stripe["filler"] + 8, 1, NOWHERE),
            "coded plane": (stripe["coded"] + self.run_.block_bit(1, 2) // 8 + 600, 1, 2),
            "raw plane": (stripe["raw"] + 2 * 16384 + 600, 1, 2),
        }

    def jobs(self, part, lba, option):
        offset, stripe, block = self.parts[part]
        bad = (self.at + offset) // 512  # in sectors
        board, host = self.start(window=2 << 20, lba=lba, options=[option, str(bad)])
        to = self.post(host, self.at, self.run_.content, self.raw)
        job = host.complete()
        if option == "--bad-once":
            self.assertEqual(job.status, "OK")
            self.assertGreaterEqual(job.retries, 1)
        else:
            self.destinations.pop()
            self.assertEqual((job.status, job.stripe), ("READ", stripe), board.log())
            self.assertEqual(job.lba, bad * 512 // lba)
            # The block of logical size that holds the sector may begin in an earlier part of the run.
            first = max(bad * 512 // lba * lba - self.at, 0)
            self.assertTrue(first <= job.offset <= offset, (first, job.offset, offset))
            if lba == 512:
                self.assertEqual(job.block, block)
            self.assertGreaterEqual(job.retries, 3)
        self.post(host, self.sound, self.run_.content, self.raw)
        self.assertEqual(host.complete().status, "OK")
        self.check_window(board, host, [(to, len(self.raw))])
        self.shut_down(board, host)

    def check(self, option):
        for part in self.parts:
            for lba in 512, 4096:
                with self.subTest(part=part, lba=lba):
                    self.destinations = []
                    self.jobs(part, lba, option)

    def test_for_ever(self):
        self.check("--bad")

    def test_once(self):
        self.check("--bad-once")

    def test_without_index(self):
        run = self.pack("plain", self.raw, "--no-index")
        at = self.add(run.content)
        for part, offset in (("coded plane", run.stripes[0]["coded"] + 50000), ("raw plane", run.stripes[0]["raw"] + 9)):
            with self.subTest(part=part):
                self.destinations = []
                bad = (at + offset) // 512
                board, host = self.start(window=2 << 20, options=["--bad", str(bad)])
                to = self.post(host, at, run.content, self.raw)
                self.destinations.pop()
                job = host.complete()
                self.assertEqual((job.status, job.stripe, job.block, job.lba), ("READ", 0, NOWHERE, bad))
                self.post(host, self.sound, self.run_.content, self.raw)
                self.assertEqual(host.complete().status, "OK")
                self.check_window(board, host, [(to, len(self.raw))])


class SlowDrive(InFlight):
    def test_time_out(self):
        """A drive that does not answer in time is reset and tried again, then given up; once it is as fast as it should
        be, the next job finds it in order."""
        raw = generate(50001, 15)
        run = self.pack("run", raw).content
        at = self.add(run)
        socket = self.path("control")
        # Two seconds for a block behind another, and 0.7 seconds for each read.
        board, host = self.start(options=["--pace", "256", "--control", socket], arguments=["2", "700"])
        control = Control(socket)
        self.addCleanup(control.close)
        to = self.post(host, at, run, raw)
        self.destinations.pop()
        job = host.complete()
        self.assertEqual((job.status, job.bytes), ("READ_TIMEOUT", 0), board.log())
        self.assertGreaterEqual(job.retries, 3)
        self.assertTrue(at // 512 <= job.lba <= (at + len(run)) // 512)
        self.assertLess(job.ticks, 40 * job.tick_hz)
        control.call("qom-set", path="/objects/pace", property="limits", value={"bps-read": 1 << 30})
        self.post(host, at, run, raw)
        self.assertEqual(host.complete().status, "OK", board.log())
        self.check_window(board, host, [(to, len(raw))])
        self.shut_down(board, host)


class Hostile(InFlight):
    """A host that does not keep to the protocol: nothing outside the destinations is written, and a good host is served
    afterwards."""

    def setUp(self):
        super().setUp()
        self.raw = generate(60001, 12)
        self.run_ = self.pack("run", self.raw).content
        self.at = self.add(self.run_)

    def good_job(self, board):
        host = Host(board)
        self.free = max(host.data, self.free)
        self.post(host, self.at, self.run_, self.raw)
        self.assertEqual(host.complete().status, "OK")
        return host

    def test_fields(self):
        board, host = self.start()
        size, window = len(self.raw), len(board.memory)
        good = {"offset": self.at, "run_bytes": len(self.run_), "destination": host.data, "destination_bytes": size}
        cases = [
            ({"destination": window - size + 1}, "DESTINATION"),
            ({"destination": window + 1}, "DESTINATION"),
            ({"destination": 2**64 - 1}, "DESTINATION"),
            ({"destination": 2**64 - size}, "DESTINATION"),
            ({"destination_bytes": 2**64 - 1}, "DESTINATION"),
            ({"destination": 0}, "OVERLAP"),
            ({"destination": 4095, "destination_bytes": 1}, "OVERLAP"),
            ({"destination": host.sq + 64}, "OVERLAP"),
            ({"destination": host.data - 1}, "OVERLAP"),
            ({"destination_bytes": size - 1}, "DESTINATION_SMALL"),
            ({"destination_bytes": 0}, "DESTINATION_SMALL"),
            ({"kind": 0}, "KIND"),
            ({"kind": 6}, "KIND"),
            ({"kind": 2**32 - 1}, "KIND"),
            ({"options": 4}, "OPTIONS"),
            ({"kind": CANCEL, "lba": 12345}, "NOT_FOUND"),
            ({"kind": LIST}, "TABLE"),
            ({"offset": self.at + 1}, "RUN_MAGIC"),
        ]
        for change, status in cases:
            with self.subTest(**change):
                self.assertEqual(host.run(**{**good, **change}).status, status)
        self.check_window(board, host)
        self.good_job(board)
        self.check_window(board, host)

    def test_garbage_rings(self):
        """Rings full of noise whose phase words are those of new jobs."""
        board, host = self.start(entries=64, completions=256)
        for seed in range(20):
            noise = random.Random(seed)
            host = Host(board, entries=64, completions=256)
            for entry in range(64):
                at = host.sq + 64 * entry
                board.memory[at:at + 60] = noise.randbytes(60)
                if noise.random() < 0.5:
                    board.memory[at + 8:at + 16] = struct.pack("<2I", noise.randrange(7), noise.randrange(4))
                board.set_word(at + 60, 1 if noise.random() < 0.95 else noise.getrandbits(32) | 1)
            # Either all are answered, or the session is closed for impossible bookkeeping.
            board.wait("end of garbage", lambda: board.word(72) == READY or board.word(64 + 20) == 64)
            if board.word(72) == READY:
                self.assertEqual(board.word(76), STATUS["RING"])
        self.free = host.data
        host = self.good_job(board)
        # What the garbage sessions left in their larger rings is theirs.
        self.check_window(board, host, [(4096, self.free - 4096 - len(self.raw) - 1)])
        self.shut_down(board, host)

    def test_garbage_control(self):
        board, host = self.start()
        window = len(board.memory)
        good = [0x4A48334B, 1, window, 4096, 8192, 16, 16, 0, 0]
        for field, value in ((0, 0), (1, 2), (2, window * 2), (2, 4096), (3, 0), (3, 4097), (3, window), (3, 2**64 - 64),
                             (4, 4096), (4, window - 64), (5, 0), (5, 257), (5, 2**32 - 1), (6, 0), (6, 257)):
            with self.subTest(field=field, value=value):
                control = good[:]
                control[field] = value
                Host.session += 1
                struct.pack_into("<2I3Q4I", board.memory, 0, *control)
                board.set_word(48, Host.session)
                board.wait("session", lambda: board.word(64 + 16) == Host.session)
                self.assertEqual((board.word(72), board.word(76)), (READY, STATUS["CONTROL"]))
        self.free = host.data
        self.check_window(board, self.good_job(board))

    def test_completions_not_taken(self):
        board, host = self.start(completions=2)
        for _ in range(6):
            self.post(host, self.at, self.run_, self.raw)
        board.wait("end of session", lambda: board.word(72) == READY)
        self.assertEqual(board.word(76), STATUS["COMPLETIONS"])
        done = self.destinations
        # Jobs behind the full ring may have run, or not.
        self.destinations = done[:2]
        spoilt = [(at, len(raw)) for at, raw in done[2:]]
        host = self.good_job(board)
        self.assertEqual(board.word(72), ATTACHED)
        self.check_window(board, host, [*spoilt, (4096, 8192)])

    def test_more_taken_than_put(self):
        board, host = self.start()
        board.set_word(40, 5)
        self.post(host, self.at, self.run_, self.raw)
        board.wait("end of session", lambda: board.word(72) == READY)
        self.assertEqual(board.word(76), STATUS["RING"])
        host = self.good_job(board)
        self.check_window(board, host)


class NoDrive(Case):
    def test_absent(self):
        board = self.board(drive=None)
        host = Host(board)
        self.assertEqual(board.word(64 + 40), 0)
        job = host.run(offset=0, run_bytes=300, destination=host.data, destination_bytes=300)
        self.assertEqual(job.status, "ABSENT")
        host.shut_down()
        self.assertEqual(board.end(), 0, board.log())


if __name__ == "__main__":
    unittest.main()
