#!/usr/bin/env python3
"""Whole-program tests of the path from a disk image through firmware into a window: k3huf_host image and offload with
k3huf_firmware_posix behind the window.

Environment and habits are those of test_host.py; K3HUF_FIRMWARE is the firmware's command. Bytes are looked at by
core/FORMAT.md, port/k3huf_image.h and port/PROTOCOL.md alone.
"""
import glob
import json
import os
import pty
import random
import re
import select
import struct
import subprocess
import time
import unittest

import safetensors_file
from safetensors_file import crc32c
from test_host import CORRUPT, DATA, IO, MISMATCH, OK, TIMEOUT, TOOL, USAGE, HostTest, Run, generate, read, write

FIRMWARE = [word for word in os.environ["K3HUF_FIRMWARE"].split(";") if word]
MIB = 1 << 20
FREE = 16384  # of the window: where offload puts the first destination
PATTERN = 0xA5


def retabled(disk, changes):
    """A disk image with another table of contents whose CRC is right: changes [(struct format, offset, value)]."""
    bad = bytearray(disk)
    for form, at, value in changes:
        struct.pack_into(form, bad, at, value)
    size = 64 + 96 * struct.unpack_from("<I", bad, 12)[0]
    struct.pack_into("<I", bad, 16, 0)
    struct.pack_into("<I", bad, 16, crc32c(bad[:size]))
    return bytes(bad)


def laid_out(sizes, window):
    """Which of results of these sizes are still there in the end, put into a window one behind the other and from its
    beginning again where one does not fit."""
    at, spans = FREE, []
    for size in sizes:
        if size > window - at:
            at = FREE
        spans.append((at, at + size))
        at = min(window, at + (size + 4095) // 4096 * 4096)
    return [not any(max(begin, later) < min(end, later_end) for later, later_end in spans[i + 1:])
            for i, (begin, end) in enumerate(spans)]


class InflightTest(HostTest):
    def setUp(self):
        super().setUp()
        self.firmware = None
        self.addCleanup(self.stop)

    def good(self, *arguments):
        done = self.tool(*arguments)
        self.assertEqual((done.returncode, done.stderr), (OK, b""), done)
        return done.stdout.decode(errors="replace")

    def bad(self, code, pattern, *arguments):
        done = self.tool(*arguments)
        text = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, text)
        self.assertRegex(text, pattern)
        self.assertEqual(text.count("\n"), 1, text)
        return done.stdout.decode()

    def make_run(self, name, size, seed=1, *options):
        """A file NAME.raw and its run NAME; returns the run's bytes."""
        write(self.path(name + ".raw"), generate(size, seed))
        self.good("pack", *options, name + ".raw", name)
        return read(self.path(name))

    def make_window(self, size, name="window"):
        """A window full of a pattern: whatever else is in memory, the firmware must come up."""
        write(self.path(name), bytes([PATTERN]) * size)

    def start(self, *options):
        self.stop()
        self.firmware = subprocess.Popen([*FIRMWARE, "--window", "window", *map(str, options)], cwd=self.folder.name,
                                         stderr=subprocess.PIPE)

    def stop(self):
        if self.firmware is not None:
            self.firmware.kill()
            self.log = self.firmware.communicate()[1].decode()
            self.firmware = None

    def offload(self, *arguments):
        return self.good("offload", "--window", "window", *arguments)

    def offload_json(self, *arguments):
        return json.loads(self.offload("--json", *arguments))

    def refuse(self, code, pattern, *arguments):
        return self.bad(code, pattern, "offload", "--window", "window", *arguments)

    def refuse_job(self, code, pattern, *arguments):
        """The answer to the one job that fails, as JSON tells it."""
        return json.loads(self.refuse(code, pattern, "--json", *arguments))["jobs"][0]

    def word(self, at):
        """An aligned word of the window."""
        with open(self.path("window"), "rb") as file:
            file.seek(at)
            return struct.unpack("<I", file.read(4))[0]

    def await_window(self, what, condition):
        end = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def await_job(self):
        """Until the firmware has taken a job of a host's session."""
        self.await_window("a job", lambda: self.word(64 + 8) == 2 and self.word(64 + 20) > 0)

    def waited_for_processors(self):
        """Seconds that the firmware's threads waited for a processor, as Linux counts it; 0 where it does not."""
        seconds = 0
        for name in glob.glob(f"/proc/{self.firmware.pid}/task/*/schedstat"):
            with open(name, encoding="ascii") as file:
                seconds += int(file.read().split()[1]) / 1e9
        return seconds

    def assert_untouched(self, spans):
        """Every byte from FREE on that is in none of the (offset, size) spans has the pattern."""
        window = read(self.path("window"))
        at = FREE
        for offset, size in sorted(spans) + [(len(window), 0)]:
            self.assertEqual(window[at:offset].strip(bytes([PATTERN])), b"", (at, offset))
            at = offset + size


class Image(InflightTest):
    def test_layout(self):
        runs = {"one": self.make_run("one", 100001, 1), "two": self.make_run("two", 5, 2, "--no-index")}
        for lba in (512, 4096):
            self.good("image", "--lba", lba, "--force", "disk", "one", "two")
            disk = read(self.path("disk"))
            magic, version, lba_bytes, entries, crc = struct.unpack_from("<4s4I", disk)
            self.assertEqual((magic, version, lba_bytes, entries), (b"K3TC", 1, lba, 2))
            table = disk[:64 + 96 * 2]
            self.assertEqual(crc, crc32c(table[:16] + bytes(4) + table[20:]))
            self.assertEqual(table[20:64], bytes(44))
            end = len(table)
            for number, name in enumerate(runs):
                offset, run_bytes, raw_bytes, zero, text = struct.unpack_from("<4Q64s", table, 64 + 96 * number)
                self.assertEqual((run_bytes, zero, text), (len(runs[name]), 0, name.encode().ljust(64, b"\0")))
                self.assertEqual(raw_bytes, os.path.getsize(self.path(name + ".raw")))
                self.assertEqual(offset % lba, 0)
                self.assertTrue(end <= offset < end + lba)
                self.assertEqual(disk[end:offset].strip(b"\0"), b"")
                self.assertEqual(disk[offset:offset + run_bytes], runs[name])
                end = offset + run_bytes
            self.assertEqual(disk[end:].strip(b"\0"), b"")
            self.assertEqual(len(disk) % 4096, 0)

    def test_offset_and_size(self):
        run = self.make_run("one", 3000)
        found = json.loads(self.good("image", "--json", "--offset", 70001, "--size", "1M", "disk", "one"))
        self.assertEqual((found["bytes"], found["runs"][0]["offset"]), (MIB, 70001))
        self.assertEqual(read(self.path("disk"))[70001:70001 + len(run)], run)

    def test_refusals(self):
        self.make_run("one", 3000)
        write(self.path("nonsense"), b"x" * 400)
        write(self.path("short"), read(self.path("one"))[:100])
        self.bad(CORRUPT, "nonsense: .*not a k3huf run", "image", "disk", "one", "nonsense")
        self.bad(CORRUPT, "short: .*offset 100: the input ends", "image", "disk", "short")
        self.bad(USAGE, "two runs have the name one", "image", "disk", "one", "./one")
        self.bad(USAGE, "--offset must leave", "image", "--offset", 100, "disk", "one")
        self.bad(USAGE, "--lba must be", "image", "--lba", 768, "disk", "one")
        self.bad(USAGE, "too few", "image", "disk")
        self.bad(IO, "missing: cannot be opened", "image", "disk", "missing")
        self.assertFalse(os.path.exists(self.path("disk")))
        write(self.path("disk"), b"precious")
        self.bad(IO, "exists already", "image", "disk", "one")
        self.assertEqual(read(self.path("disk")), b"precious")

    def test_never_over_a_run_of_its_own(self):
        """By whatever name: with --force too, an image does not replace what it is made of."""
        runs = {"one": self.make_run("one", 3000), "two": self.make_run("two", 4000, 2)}
        os.symlink("two", self.path("soft"))
        os.link(self.path("two"), self.path("hard"))
        for image in ("one", "two", "./two", "soft", "hard"):
            self.bad(IO, f"{image}: exists already, and is the same file as the input (one|two)\n",
                     "image", "--force", image, "one", "two")
            for name, content in runs.items():
                self.assertEqual(read(self.path(name)), content)
        self.good("image", "disk", "one", "two")
        self.good("image", "--force", "disk", "two")


class Offload(InflightTest):
    def test_cores_and_block_sizes(self):
        self.make_run("indexed", 3 * MIB + 1, 1, "--stripe-size", 1000001)
        self.make_run("plain", 2 * MIB + 7, 2, "--no-index", "--stripe-size", "1M")
        self.make_run("small", 1, 3)
        self.make_run("empty", 0, 4)
        for lba in (512, 4096):
            self.good("image", "--lba", lba, "--offset", 10007, "--force", "disk", "indexed", "plain", "small", "empty")
            for cores in (1, 2, 4):
                self.make_window(9 * MIB)
                self.start("--image", "disk", "--cores", cores, "--lba", lba)
                names = ("indexed", "plain", "small", "empty", "indexed")
                found = self.offload_json(*[f"{name}={name}.raw" for name in names])
                self.assertEqual((found["cores"], found["lba_bytes"]), (cores, lba))
                spans = []
                for name, job in zip(names, found["jobs"]):
                    size = os.path.getsize(self.path(name + ".raw"))
                    self.assertEqual((job["name"], job["bytes"], job["same"]), (name, size, True))
                    spans.append((job["destination"], size))
                self.assert_untouched(spans)

    def test_large_job(self):
        self.make_run("large", 64 * MIB + 12345, 1)
        self.good("image", "disk", "large")
        self.make_window(65 * MIB)
        self.start("--image", "disk", "--cores", 2)
        found = self.offload_json("large=large.raw")
        job = found["jobs"][0]
        blocks = found["group_bytes"] // 32768  # of one group; a stripe of 2,048 blocks, and one of a single block
        self.assertEqual(job["bytes"], 64 * MIB + 12345)
        self.assertEqual(job["groups"], -(-2048 // blocks) + 1)
        self.assert_untouched([(job["destination"], job["bytes"])])

    def test_many_jobs(self):
        """More jobs than the rings hold, and than fit into the window at a time."""
        self.make_run("one", 30001, 1)
        self.good("image", "disk", "one")
        self.make_window(MIB)
        self.start("--image", "disk", "--cores", 2)
        found = self.offload_json(*["one=one.raw"] * 200)
        self.assertEqual([job["same"] for job in found["jobs"]], [True] * 200)

    def test_what_is_overwritten(self):
        """A result has a destination if its bytes are there, and else says that they are not."""
        sizes = [100001, 5, 60000, 0, 4096, 250000]
        for i, size in enumerate(sizes):
            self.make_run(f"r{i}", size, i + 1)
        self.good("image", "disk", *[f"r{i}" for i in range(len(sizes))])
        window = 400000
        self.make_window(window)
        self.start("--image", "disk", "--cores", 2)
        rng = random.Random(1)
        for count in 1, 2, 3, 6, 10, 30, 100:
            chosen = [rng.randrange(len(sizes)) for _ in range(count)]
            for original in "", "=r{0}.raw":
                jobs = self.offload_json(*[f"r{i}{original.format(i)}" for i in chosen])["jobs"]
                there = laid_out([sizes[i] for i in chosen], window)
                self.assertEqual([job.get("overwritten", False) for job in jobs], [not is_there for is_there in there])
                content = read(self.path("window"))
                for i, job, is_there in zip(chosen, jobs, there):
                    self.assertEqual("destination" in job, is_there)
                    self.assertEqual((job["status"], job["bytes"], job.get("same", True)), (0, sizes[i], True))
                    if is_there:
                        at = job["destination"]
                        self.assertEqual(content[at:at + sizes[i]], read(self.path(f"r{i}.raw")))
        lines = self.offload("r5", "r5", "r0").splitlines()[::3]
        self.assertEqual([line.endswith(", overwritten since") for line in lines], [True, False, False])
        # What finds no room at all takes none from the others.
        self.make_run("large", 500000)
        self.good("image", "--force", "disk", "r0", "large")
        self.start("--image", "disk")
        done = self.tool("offload", "--window", "window", "--json", "r0", "large", "r0")
        self.assertEqual(done.returncode, USAGE)
        jobs = json.loads(done.stdout)["jobs"]
        self.assertEqual([(job["status"] == 0, "destination" in job) for job in jobs],
                         [(True, True), (False, False), (True, True)])

    def test_read_ahead(self):
        self.make_run("one", 16 * MIB, 1)
        self.good("image", "disk", "one")
        self.make_window(17 * MIB)
        self.start("--image", "disk", "--cores", 1, "--rate", 20000000)
        for _ in range(3):  # what else takes a core for a while, another virtual machine say, is not counted
            before = self.waited_for_processors()
            job = self.offload_json("one=one.raw")["jobs"][0]
            self.assertGreater(job["groups_read_ahead"], 1.0)
            self.assertGreater(job["seconds"], 0.99 * job["run_bytes"] / 20e6)
            if job["seconds"] < 1.1 * job["run_bytes"] / 20e6 + self.waited_for_processors() - before:
                return
        self.fail("reading and decoding do not overlap")

    def test_list(self):
        self.make_run("one", 3000)
        self.make_run("two", 4000, 2)
        self.good("image", "--lba", 512, "disk", "one", "two")
        self.make_window(MIB)
        self.start("--image", "disk")
        text = self.offload("--list")
        self.assertRegex(text, r"(?s)^one: byte 512, \d+ bytes, decode to 3000\ntwo: byte \d+, \d+ bytes, decode to 4000\n$")
        found = json.loads(self.offload("--list", "--json"))
        self.assertEqual([run["name"] for run in found["runs"]], ["one", "two"])
        self.assertEqual(len(self.offload_json("--all")["jobs"]), 2)
        run = found["runs"][1]
        job = self.offload_json("@{offset}:{run_bytes}:{raw_bytes}=two.raw".format(**run))["jobs"][0]
        self.assertTrue(job["same"])
        self.assertEqual(job["crc32c"], crc32c(read(self.path("two.raw"))))

    def test_trace_and_shutdown(self):
        self.make_run("one", MIB, 1)
        self.good("image", "disk", "one")
        self.make_window(2 * MIB)
        self.start("--image", "disk")
        groups = self.offload_json("--trace", "--shutdown", "one")["jobs"][0]["groups"]
        self.assertGreater(groups, 4)
        self.assertEqual(self.firmware.wait(timeout=10), 0)
        log = self.firmware.communicate()[1].decode()
        self.firmware = None
        self.assertEqual(len(re.findall(r"^trace: stripe 0 blocks \d+-\d+ core 0, groups being read \d+", log, re.M)), groups)
        self.assertRegex(log, r"^in-flight engine: 1 cores, static memory \d+ bytes, of them ring \d+\n")

    def test_mismatch(self):
        raw = bytearray(self.make_run("one", 30000) and read(self.path("one.raw")))
        raw[12345] ^= 1
        write(self.path("other"), raw)
        write(self.path("longer"), read(self.path("one.raw")) + b"x")
        write(self.path("shorter"), read(self.path("one.raw"))[:-1])
        self.good("image", "disk", "one")
        self.make_window(MIB)
        self.start("--image", "disk")
        self.refuse(MISMATCH, "one: decoded offset 12345: differs from other", "one=other")
        self.refuse(MISMATCH, "one: decoded offset 30000: the run ends here, longer goes on", "one=longer")
        self.refuse(MISMATCH, "one: decoded offset 29999: shorter ends here", "one=shorter")

    def test_progress_bar(self):
        self.make_run("one", 4 * MIB, 1)
        self.good("image", "disk", "one")
        self.make_window(5 * MIB)
        self.start("--image", "disk", "--rate", 4000000)
        master, slave = pty.openpty()
        with subprocess.Popen([*TOOL, "offload", "--window", "window", "one=one.raw"], cwd=self.folder.name,
                              stdout=subprocess.PIPE, stderr=slave) as process:
            os.close(slave)
            shown = b""
            while select.select([master], [], [], TIMEOUT)[0]:
                try:
                    some = os.read(master, 4096)
                except OSError:
                    break
                if not some:
                    break
                shown += some
            self.assertEqual(process.wait(timeout=TIMEOUT), OK)
            self.assertIn(b"the same as one.raw", process.stdout.read())
        os.close(master)
        bars = re.findall(rb"\[(#*)\.*\] +(\d+)%", shown)
        shares = [int(share) for _, share in bars]
        self.assertGreater(len(set(shares)), 3, shown)
        self.assertEqual(shares, sorted(shares))

    def test_usage(self):
        self.make_run("one", 3000)
        self.good("image", "disk", "one")
        self.make_window(MIB)
        self.start("--image", "disk")
        self.bad(USAGE, "--window FILE is needed", "offload", "one")
        self.refuse(USAGE, "no run named")
        self.refuse(USAGE, "--list or --all, not both", "--list", "--all")
        self.refuse(USAGE, "one: is no archive", "--list", "one")
        self.refuse(USAGE, "the drive has no run 'two'", "two")
        self.refuse(USAGE, "is not @OFFSET", "@5:6")
        self.refuse(USAGE, "the source is not wholly on the drive", "@1000000:1000:1000")
        self.refuse(USAGE, "the destination is too small", "@4096:2000:2999")
        self.refuse(USAGE, "the destination is not wholly in the window", "@4096:2000:2000000")
        self.bad(IO, "missing: cannot be mapped", "offload", "--window", "missing", "one")
        write(self.path("tiny"), bytes(5000))
        self.bad(IO, "tiny: is too small", "offload", "--window", "tiny", "one")

    def test_names_that_are_no_text(self):
        """JSON cannot hold them: refused before anything is done, never left out. Nor is a terminal told to obey them."""
        self.make_run("two", 4000, 2)
        for name, shown in ((b"n\xffm", None), (b"e\x1b[31m\nx", "e?[31m?x")):
            word = os.fsdecode(name)
            self.make_run("one", 3000)
            os.rename(self.path("one"), self.path(word))
            if shown is None:
                self.bad(USAGE, "its name is not UTF-8", "image", "--json", "disk", "two", word)
                self.bad(USAGE, "its name is not UTF-8", "image", "--json", word + ".img", "two")
                self.assertFalse(os.path.exists(self.path("disk")) or os.path.exists(self.path(word + ".img")))
            said = self.good("image", "--force", "disk", "two", word)
            self.assertIn("n\ufffdm: LBA " if shown is None else shown + ": LBA ", said)
            self.make_window(MIB)
            self.start("--image", "disk")
            if shown is not None:
                self.assertIn(f"\n{shown}: byte ", self.offload("--list"))
                self.assertTrue(self.offload(word).startswith(shown + ": "))
                self.assertEqual(json.loads(self.offload("--list", "--json"))["runs"][1]["name"], word)
                self.assertEqual(self.offload_json("--all")["jobs"][1]["name"], word)
                continue
            self.offload("--quiet", f"{word}=one.raw")
            self.refuse(CORRUPT, "a name is not UTF-8", "--list", "--json")
            for what in "--all", word:
                before = read(self.path("window"))[FREE + 65536:]
                self.assertEqual(self.refuse(CORRUPT, "a name on the drive is not UTF-8", "--json", what), "")
                self.assertEqual(read(self.path("window"))[FREE + 65536:], before)
            self.assertEqual(len(self.offload_json("two=two.raw")["jobs"]), 1)
            self.bad(USAGE, "its name is not UTF-8", "offload", "--window", word, "--json", "two")

    def test_tables_with_right_crcs(self):
        """Names that stand for two things, entries that share bytes, places that wrap."""
        self.make_run("one", 3000)
        self.make_run("two", 4000, 2)
        self.make_run("six", 5000, 3)
        self.good("image", "--lba", 512, "disk", "one", "two", "six")
        good = read(self.path("disk"))
        self.make_window(MIB)
        entry = {name: 64 + 96 * i for i, name in enumerate(("one", "two", "six"))}
        at = {name: struct.unpack_from("<QQ", good, entry[name]) for name in entry}
        overlaps = r"\(table of contents\): {} and {} overlap"
        big = (1 << 64) - 512
        for changes, pattern in (
                ([("3s", entry["two"] + 32, b"one")], r"\(table of contents\): two entries have the name one"),
                ([("3s", entry["six"] + 32, b"one")], "two entries have the name one"),
                ([("<Q", entry["two"], at["one"][0])], overlaps.format("one", "two")),
                ([("<Q", entry["one"], at["six"][0] + at["six"][1] - 1)], overlaps.format("one", "six")),
                ([("<Q", entry["one"], at["two"][0] - at["one"][1] + 1)], overlaps.format("one", "two")),
                ([("<Q", entry["one"] + 8, (1 << 64) - 1)], overlaps.format("one", "two")),
                ([("<Q", entry["one"] + 8, big)], overlaps.format("one", "two"))):
            with self.subTest(changes=changes):
                write(self.path("disk"), retabled(good, changes))
                self.start("--image", "disk")
                for what in ["one"], ["two"], ["--all"], ["--list"], ["--json", "--list"]:
                    self.refuse(CORRUPT, pattern, *what)
        for changes, code, pattern in (
                ([], OK, ""),
                ([("<Q", entry["one"], at["two"][0] - at["one"][1])], CORRUPT, "one: run header, offset 0"),
                ([("<Q", entry["one"], big)], USAGE, "one: the source is not wholly on the drive"),
                ([("<Q", entry["six"] + 8, big)], USAGE, "six: the source is not wholly on the drive"),
                ([("<Q", entry["one"], big), ("<I", entry["one"] + 24, 1)], CORRUPT, "one: offset 0: .* the drive ends"),
                ([("<Q", entry["six"] + 8, big), ("<I", entry["six"] + 24, 1)], CORRUPT,
                 "six: offset 0: not a k3huf archive")):
            with self.subTest(changes=changes):
                write(self.path("disk"), retabled(good, changes))
                self.start("--image", "disk")
                self.assertTrue(self.offload_json("two=two.raw")["jobs"][0]["same"])
                if code == OK:
                    self.assertEqual(len(self.offload_json("--all")["jobs"]), 3)
                else:
                    self.refuse(code, pattern, "--all")


class OffloadFaults(InflightTest):
    def prepare(self, *options):
        self.run = self.make_run("one", 3 * MIB, 1, "--stripe-size", "1M", *options)
        self.at = Run(self.run).stripes[1]
        self.good("image", "--lba", 512, "--offset", 8192 + 3, "--force", "disk", "one")
        self.offset = 8192 + 3
        self.make_window(4 * MIB)

    def works(self):
        self.assertTrue(self.offload_json("one=one.raw")["jobs"][0]["same"])

    def test_unreadable(self):
        self.prepare()
        middle = self.at["coded"] + 100000, self.at["raw_plane"] + 300000
        # The block of stripe 1's header holds the end of stripe 0's index, which is needed first.
        for at, where in ((0, {}), (self.at["offset"], {"stripe": 0}), (self.at["filler"] + 100, {"stripe": 1}),
                          (middle[0], {"stripe": 1}), (middle[1], {"stripe": 1, "block": 300000 // 16384})):
            lba = (self.offset + at) // 512
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:1")
            job = self.offload_json("one=one.raw")["jobs"][0]
            self.assertEqual((job["same"], job["retries"]), (True, 1))
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:0")
            job = self.refuse_job(IO, f"one: .*the drive cannot read a logical block \\(LBA {lba}\\)", "one")
            self.assertEqual(job["lba"], lba)
            self.assertEqual({key: job[key] for key in where}, where)
            self.refuse(IO, "cannot read a logical block", "one")
        # A part of the drive that was bad for a while: the same firmware goes on.
        self.start("--image", "disk", "--cores", 2, "--fault", "0:1000:50")
        for _ in range(20):
            if self.tool("offload", "--window", "window", "one").returncode == OK:
                break
        self.works()

    def test_no_answer(self):
        self.prepare()
        lba = (self.offset + self.at["raw_plane"] + 1000) // 512
        self.start("--image", "disk", "--read-timeout", 300, "--hang", f"{lba}:1:1")
        self.works()
        self.start("--image", "disk", "--read-timeout", 300, "--hang", f"{lba}:1:4")
        job = self.refuse_job(IO, "one: stripe 1.*the drive did not answer in time", "one")
        self.assertLess(job["seconds"], 5)  # of the firmware's own time-outs it would be four
        self.works()

    def test_no_drive(self):
        self.prepare()
        self.start()
        self.refuse(IO, "there is no drive", "--list")
        self.refuse(IO, "there is no drive", "@0:100:100")
        self.start("--image", "disk")
        self.works()

    def test_flipped_bits(self):
        self.prepare()
        good = read(self.path("disk"))
        for at, pattern in ((0, "run header, offset 0: not a k3huf run"), (self.at["offset"], "stripe 1, .*wrong stripe magic"),
                            (self.at["coded"] + 5000, "stripe 1, block \\d+"),
                            (self.at["raw_plane"] + 5000, "stripe 1, block 0, .*the block's CRC-32C is wrong"),
                            (self.at["filler"] + 20, "stripe 1, .*the block index's CRC-32C is wrong")):
            disk = bytearray(good)
            disk[self.offset + at] ^= 4
            write(self.path("disk"), disk)
            self.start("--image", "disk", "--cores", 2)
            self.refuse(CORRUPT, "one: " + pattern, "one")
            write(self.path("disk"), good)
            self.works()
        disk = bytearray(good)
        disk[70] ^= 4
        write(self.path("disk"), disk)
        self.refuse(IO, "there is no sound table of contents", "one")

    def test_truncated(self):
        self.prepare()
        good = read(self.path("disk"))
        write(self.path("disk"), good[:(self.offset + self.at["raw_plane"] + 511) // 512 * 512])
        self.start("--image", "disk")
        self.refuse(USAGE, "the source is not wholly on the drive", "one")
        self.refuse(CORRUPT, f"stripe 1, offset {self.at['raw_plane']}: the input ends inside the run",
                    f"@{self.offset}:{self.at['raw_plane']}:{3 * MIB}")

    def test_requiring_an_index(self):
        self.prepare("--no-index")
        self.start("--image", "disk")
        self.works()
        self.refuse(CORRUPT, "one: stripe 0, .*a stripe has no block index", "--require-index", "one")

    def test_blocks_too_large(self):
        self.prepare("--block-log2", 18)
        self.start("--image", "disk")
        self.refuse(IO, "one: stripe 0, block 0, .*larger than the firmware's buffers", "one")

    def test_good_jobs_around_a_bad_one(self):
        self.prepare()
        self.start("--image", "disk", "--cores", 2)
        good = f"@{self.offset}:{len(self.run)}:{3 * MIB}=one.raw"
        done = self.tool("offload", "--window", "window", "--json", good, f"@{self.offset + 1}:1000:1000", good)
        self.assertEqual(done.returncode, CORRUPT)
        jobs = json.loads(done.stdout)["jobs"]
        self.assertEqual([job["status"] == 0 for job in jobs], [True, False, True])
        self.assertTrue(jobs[0]["same"] and jobs[2]["same"])

    def test_bad_options(self):
        """A number is taken as it is or not at all."""
        for pattern, *options in (
                ("too large a number: '4294967297'", "--cores", 1 << 32 | 1), ("too large", "--lba", 1 << 32 | 512),
                ("too large", "--max-transfer", 1 << 32 | 4096), ("too large", "--depth", 1 << 32 | 1),
                ("too large", "--read-timeout", 1 << 32), ("too large", "--host-timeout", 1 << 32),
                ("too large", "--fault", f"0:1:{1 << 32 | 1}"), ("too large", "--hang", f"2:{(1 << 64) - 1}:1"),
                ("not a number: '18446744073709551616'", "--rate", 1 << 64), ("not a number", "--cores", -1),
                ("not a number", "--fault", "1:1"), ("out of range", "--cores", 0), ("out of range", "--depth", 65)):
            with self.subTest(options=options):
                done = subprocess.run([*FIRMWARE, "--window", "none", "--window-bytes", "65536", *map(str, options)],
                                      cwd=self.folder.name, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
                text = done.stderr.decode()
                self.assertEqual(done.returncode, 2, text)
                self.assertRegex(text, "^k3huf_firmware_posix: .*" + pattern)
                self.assertEqual(text.count("\n"), 1)
                self.assertFalse(os.path.exists(self.path("none")))

    def test_no_firmware(self):
        self.prepare()
        began = time.monotonic()
        self.refuse(IO, "time-out: no firmware answers", "--timeout", 300, "one")
        self.assertLess(time.monotonic() - began, 30)  # half of what it waits when not told
        # One that came up, left its traces in the window and died.
        self.start("--image", "disk")
        self.works()
        self.stop()
        self.refuse(IO, "time-out: no firmware answers", "--timeout", 300, "one")
        # A window that no firmware ever wrote to may be any file, named by mistake: no byte of it changes.
        self.good("pack", "one.raw", "weights")
        for name in ("one.raw", "one", "disk", "weights"):
            before = read(self.path(name))
            for arguments in (["one"], ["--list"], ["--shutdown"]):
                self.bad(IO, "time-out: no firmware answers", "offload", "--window", name, "--timeout", 100, *arguments)
                self.assertEqual(read(self.path(name)), before)
        # The host may be there before the firmware.
        with open(self.path("window"), "r+b") as file:
            file.seek(48)  # the session, which a host writes
            file.write(bytes([PATTERN]) * 4)
        with subprocess.Popen([*TOOL, "offload", "--window", "window", "one=one.raw"], cwd=self.folder.name,
                              stdout=subprocess.PIPE) as process:
            self.await_window("a host", lambda: self.word(48) != PATTERN * 0x01010101)
            self.start("--image", "disk")
            self.assertEqual(process.wait(timeout=TIMEOUT), OK)

    def test_firmware_dies(self):
        self.prepare()
        self.start("--image", "disk", "--rate", 100000)
        with subprocess.Popen([*TOOL, "offload", "--window", "window", "--timeout", "1000", "one"],
                              cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.await_job()
            self.stop()
            error = process.communicate(timeout=TIMEOUT)[1].decode()
            self.assertEqual(process.returncode, IO)
            self.assertRegex(error, "time-out: no completion for 1.* last sign of life was")

    def test_host_dies(self):
        """A host that is killed in the middle of a job leaves the firmware in order for the next one."""
        self.prepare()
        self.start("--image", "disk", "--cores", 2, "--rate", 4000000)
        with subprocess.Popen([*TOOL, "offload", "--window", "window", *["one"] * 20], cwd=self.folder.name,
                              stdout=subprocess.PIPE) as process:
            self.await_job()
            process.kill()
            process.communicate()
        self.works()

    def test_job_is_slower_than_the_timeout(self):
        self.prepare()
        self.start("--image", "disk", "--rate", 2000000)
        text = self.tool("offload", "--window", "window", "--timeout", 300, "one").stderr.decode()
        waited, alive = re.search("time-out: no completion for (.*) s; .* last sign of life was (.*) s ago", text).groups()
        self.assertLess(float(alive), float(waited))
        self.works()


class ArchiveTest(InflightTest):
    """A model of real weights, and an archive of it."""

    def tensors(self):
        weights = read(os.path.join(DATA, "silero_vad_v6.bf16"))
        piece = len(weights) // 8
        result = [(f"layers.{i}.weight", "BF16", [piece // 2], weights[i * piece:(i + 1) * piece]) for i in range(8)]
        result += [
            ("norm", "F32", [25000], random.Random(1).randbytes(100000)),  # stored, in one entry with its neighbours
            ("bytes", "U8", [7], b"1234567"),
            ("a=b", "I8", [3], b"abc"),
            ("none", "BF16", [0, 4], b""),
            ("scalar", "BF16", [], b"\x80\x3f"),
            ("table", "F32", [300000], random.Random(2).randbytes(1200000)),  # too large to be joined
            ("zeros", "F32", [300, 1000], bytes(1200000)),
            ("own/code", "BF16", [100000], random.Random(3).randbytes(1) * 200000),
        ]
        return result

    def setUp(self):
        super().setUp()
        self.source = safetensors_file.file(self.tensors(), {"format": "pt"})
        write(self.path("model.safetensors"), self.source)
        self.pack()
        self.make_run("one", 300001)

    def pack(self, *options):
        self.good("pack", "--force", *options, "model.safetensors", "model.k3a")
        self.content = read(self.path("model.k3a"))
        self.archive = safetensors_file.Archive(self.content)

    def put(self, *options, window=12 * MIB):
        """The archive in an image behind a run; the firmware on it. Returns where the archive is."""
        image = json.loads(self.good("image", "--json", "--force", *options, "disk", "one", "model.k3a"))
        self.make_window(window)
        self.start("--image", "disk", "--cores", 2)
        self.assertEqual([run["kind"] for run in image["runs"]], ["run", "archive"])
        self.assertEqual(image["runs"][1]["raw_bytes"], len(self.source))
        return image["runs"][1]["offset"]

    def resealed(self, content):
        """The archive with right CRCs of its tables again."""
        toc_offset, toc_bytes = struct.unpack_from("<QQ", content, 24)
        struct.pack_into("<I", content, 40, crc32c(content[toc_offset:toc_offset + toc_bytes]))
        struct.pack_into("<I", content, 12, 0)
        struct.pack_into("<I", content, 12, crc32c(content[:4096]))
        return bytes(content)

    def with_run(self, number, run):
        """The archive with another run as that entry."""
        archive, entry = self.archive, self.archive.entries[number]
        end = entry["offset"] + entry["bytes"]
        end += -end % 4096
        more = len(run) + -len(run) % 4096 - (end - entry["offset"])
        content = bytearray(self.content[:entry["offset"]] + run + bytes(-len(run) % 4096) + self.content[end:])
        struct.pack_into("<QQ", content, 16, archive.bytes + more, archive.toc_offset + more)
        for i, other in enumerate(archive.entries):
            if other["offset"] > entry["offset"]:
                struct.pack_into("<Q", content, archive.toc_offset + more + 48 * i, other["offset"] + more)
        struct.pack_into("<Q", content, archive.toc_offset + more + 48 * number + 8, len(run))
        return self.resealed(content)

    def bytes_of(self, name):
        tensor = self.archive.tensors[name]
        return self.source[tensor["source_offset"]:tensor["source_offset"] + tensor["bytes"]]

    def entry_of(self, name):
        return self.archive.entries[self.archive.tensors[name]["entry"]]

    def check(self, found, names, prefix="model.k3a/"):
        """Each of the jobs brought its tensor's bytes to the window."""
        window = read(self.path("window"))
        self.assertEqual(sorted(job["name"] for job in found["jobs"]), sorted(prefix + name for name in names))
        for job in found["jobs"]:
            expected = self.bytes_of(job["name"][len(prefix):])
            self.assertEqual((job["status"], job["bytes"], job.get("same", True)), (0, len(expected), True), job)
            self.assertEqual(window[job["destination"]:job["destination"] + job["bytes"]], expected, job)
            if len(expected) < 100000:
                self.assertEqual(job["crc32c"], crc32c(expected))


class OffloadArchives(ArchiveTest):
    def test_every_tensor(self):
        for options in (["--lba", 512], ["--offset", 10007], []):
            self.put(*options)
            found = self.offload_json("one=one.raw", "model.k3a=model.safetensors")
            self.assertEqual(found["jobs"].pop(0)["name"], "one")
            self.check(found, self.archive.tensors)
            self.assertTrue(all(job["same"] for job in found["jobs"]))
            kinds = {job["name"].partition("/")[2]: job["as"] for job in found["jobs"]}
            self.assertEqual(kinds, {**{f"layers.{i}.weight": "part" for i in range(8)}, "norm": "copy",
                                     "bytes": "copy", "a=b": "copy", "none": "zeros", "scalar": "copy",
                                     "table": "copy", "zeros": "zeros", "own/code": "run"})
        self.assertEqual(self.archive.tensors["norm"]["entry"], self.archive.tensors["bytes"]["entry"])
        spans = [(job["destination"], job["bytes"]) for job in found["jobs"]]
        spans.append((FREE, 300001))
        self.assert_untouched(spans)

    def test_by_name(self):
        """One tensor, one with '=' and one with '/' in its name, patterns, and all without a comparison."""
        self.put()
        self.check(self.offload_json("model.k3a/layers.3.weight=model.safetensors"), ["layers.3.weight"])
        self.check(self.offload_json("model.k3a/a=b"), ["a=b"])
        found = self.offload_json("model.k3a/a=b=model.safetensors")
        self.assertTrue(found["jobs"][0]["same"])
        self.check(found, ["a=b"])
        self.check(self.offload_json("model.k3a/own/code=model.safetensors"), ["own/code"])
        self.check(self.offload_json("model.k3a/layers.[2-4].*", "model.k3a/n*=model.safetensors"),
                   [*[f"layers.{i}.weight" for i in (2, 3, 4)], "norm", "none"])
        found = self.offload_json("--all")
        self.assertEqual(found["jobs"].pop(0)["bytes"], 300001)
        self.check(found, self.archive.tensors)
        os.rename(self.path("model.safetensors"), self.path("x=y"))
        self.assertTrue(self.offload_json("model.k3a/norm=x=y")["jobs"][0]["same"])
        text = self.offload("model.k3a/layers.3.weight=x=y", "model.k3a/zeros", "model.k3a/table", "model.k3a/own/code")
        self.assertRegex(text, r"(?m)^model\.k3a/layers\.3\.weight: part of a run of \d+ bytes decoded to 136064 in .* s, "
                               r"the same as in x=y$")
        self.assertRegex(text, r"(?m)^model\.k3a/zeros: 1200000 bytes that are all zeros$")
        self.assertRegex(text, r"(?m)^model\.k3a/table: 1200000 bytes copied in ")
        self.assertRegex(text, r"(?m)^model\.k3a/own/code: \d+ bytes decoded to 200000 in ")

    def test_reads_no_more_than_the_tensor_needs(self):
        self.put("--lba", 512)
        job = self.offload_json("model.k3a/layers.3.weight")["jobs"][0]
        run = self.entry_of("layers.3.weight")
        self.assertEqual((job["as"], job["run_bytes"]), ("part", run["bytes"]))
        self.assertLess(job["bytes_read"], run["bytes"] // 3)
        # A block to either side of the tensor's own, and headers.
        self.assertLess(job["groups"], 136064 / (6 * 32768) + 2)
        job = self.offload_json("model.k3a/table")["jobs"][0]
        self.assertLessEqual(job["bytes_read"], 1200000 + 1024)
        # All of a stored entry is read for its CRC, and no more is brought than is wanted.
        job = self.offload_json("model.k3a/a=b")["jobs"][0]
        self.assertEqual((job["run_bytes"], job["bytes"]), (self.entry_of("a=b")["bytes"], 3))
        self.assertGreaterEqual(job["bytes_read"], job["run_bytes"])

    def test_list(self):
        at = self.put()
        text = self.offload("--list")
        self.assertIn(f"\nmodel.k3a: byte {at}, an archive of {len(self.content)} bytes, decode to {len(self.source)}\n",
                      text)
        found = json.loads(self.offload("--list", "--json"))
        self.assertEqual([run["name"] for run in found["runs"]], ["one"])
        self.assertEqual(found["archives"], [{"name": "model.k3a", "offset": at, "archive_bytes": len(self.content),
                                              "source_bytes": len(self.source)}])
        listed = self.good("list", "model.k3a")
        self.assertIn("layers.3.weight", listed)
        self.assertEqual(self.offload("--list", "model.k3a"), listed)
        self.assertEqual(json.loads(self.offload("--list", "--json", "model.k3a")),
                         json.loads(self.good("list", "--json", "model.k3a")))

    def test_raw_drive(self):
        """An archive at any byte of a drive that has no table of contents."""
        for at in (0, 8192, 5001):
            noise = random.Random(at).randbytes(at)
            write(self.path("disk"), noise + self.content + bytes(-(at + len(self.content)) % 512) + b"x" * 512)
            self.make_window(12 * MIB)
            self.start("--image", "disk", "--cores", 2)
            found = self.offload_json(f"@{at}=model.safetensors")
            self.assertTrue(all(job["same"] for job in found["jobs"]))
            self.check(found, self.archive.tensors, f"@{at}/")
            self.check(self.offload_json(f"@{at}/own/code=model.safetensors"), ["own/code"], f"@{at}/")
            self.assertEqual(self.offload("--list", f"@{at}"), self.good("list", "model.k3a"))
            entry = self.entry_of("own/code")
            run = f"@{at + entry['offset']}:{entry['bytes']}:{entry['raw_bytes']}"
            self.assertEqual(self.offload_json(run)["jobs"][0]["crc32c"], entry["crc"])
            self.refuse(IO, "there is no sound table of contents", "--list")

    def test_a_file_that_is_no_whole_number_of_blocks(self):
        """An archive or a run as it is for a drive: its last bytes are there, zeros behind them, and no more than that."""
        self.assertNotEqual(len(self.content) % 512, 0)
        write(self.path("zeros"), bytes(4096))
        for lba in (512, 1024, 2048, 4096):
            self.make_window(12 * MIB)
            self.start("--image", "model.k3a", "--lba", lba, "--cores", 2)
            self.assertEqual(self.offload("--list", "@0"), self.good("list", "model.k3a"))
            found = self.offload_json("@0=model.safetensors")
            self.check(found, self.archive.tensors, "@0/")
            self.start("--image", "one", "--lba", lba)
            size = os.path.getsize(self.path("one"))
            self.assertNotEqual(size % lba, 0)
            self.assertTrue(self.offload_json(f"@0:{size}:300001=one.raw")["jobs"][0]["same"])
            # Past the file's end but in its last block there is no run either; past the block is no drive.
            what = "not a k3huf run: wrong magic" if -size % lba >= 288 else "the input ends inside the run"
            self.refuse(CORRUPT, what, f"@{size}:{-size % lba}:1")
            self.refuse(USAGE, "the source is not wholly on the drive", f"@0:{size + -size % lba + 1}:300001")
        self.start("--image", "model.k3a")
        self.check(self.offload_json("@0/own/code"), ["own/code"], "@0/")
        os.truncate(self.path("model.k3a"), len(self.content) - 1)
        self.refuse(IO, "@0: .*the drive cannot read a logical block", "@0/own/code")

    def test_thousands_of_tensors(self):
        """More than an image's table can name, with longer names, and a table larger than the window."""
        names = [f"model.layers.{i}.self_attention.{'very_' * 20}long_projection.weight" for i in range(3000)]
        content = {(size, seed): generate(size, seed) for size in (128, 256) for seed in range(7)}
        tensors = [(name, "F32" if i % 3 == 0 else "BF16", [64], content[256 if i % 3 == 0 else 128, i % 7])
                   for i, name in enumerate(names)]
        self.source = safetensors_file.file(tensors)
        write(self.path("model.safetensors"), self.source)
        self.pack()
        self.assertGreater(self.archive.toc_bytes, 600000)
        self.put(window=400000)
        for i in (0, 1, 1500, 2999):
            self.check(self.offload_json(f"model.k3a/{names[i]}=model.safetensors"), [names[i]])
        found = self.offload_json("model.k3a/model.layers.27?.*=model.safetensors")
        self.assertEqual([job["same"] for job in found["jobs"]], [True] * 10)
        found = self.offload_json("model.k3a=model.safetensors")
        self.assertEqual(sum(job["same"] for job in found["jobs"]), 3000)

    def test_runs_of_any_shape(self):
        """Parts are parts, however the run is cut into stripes and blocks: the CRCs of odd ones join as well."""
        layers = [f"layers.{i}.weight" for i in range(8)]
        number = self.archive.tensors[layers[0]]["entry"]
        entry = self.archive.entries[number]
        write(self.path("raw"), self.source[entry["source_offset"]:entry["source_offset"] + entry["raw_bytes"]])
        for stripe in 65537, 98303, 300001, 1000000:
            for log2 in 12, 14, 16:
                self.good("pack", "--force", "--stripe-size", stripe, "--block-log2", log2, "raw", "run")
                run = read(self.path("run"))
                write(self.path("model.k3a"), self.with_run(number, run))
                self.put()
                found = self.offload_json("model.k3a/layers*=model.safetensors")
                self.check(found, layers)
                self.assertEqual({job["as"] for job in found["jobs"]}, {"part"}, (stripe, log2))

    def test_long_names(self):
        """A pattern takes a tensor whatever the length of its name."""
        names = [letter * size for letter, size in (("a", 1), ("b", 4000), ("c", 4095), ("d", 4096), ("e", 70000))]
        self.source = safetensors_file.file([(name, "BF16", [64], generate(128, i)) for i, name in enumerate(names)])
        write(self.path("model.safetensors"), self.source)
        self.pack()
        self.put()
        for word, chosen in (("model.k3a/*", names), ("model.k3a", names), ("model.k3a/[de]*", names[3:]),
                             ("model.k3a/*ee", names[4:]), ("model.k3a/" + "d" * 4096, names[3:4])):
            self.check(self.offload_json(word + "=model.safetensors"), chosen)

    def test_a_file_named_as_a_place(self):
        """An archive whose name in the image is @4096 is another one than that at byte 4096."""
        other = bytearray(self.source)
        at = self.archive.tensors["norm"]["source_offset"]
        other[at:at + 4] = b"OTHR"
        write(self.path("other"), other)
        self.good("pack", "other", "@4096")
        image = json.loads(self.good("image", "--json", "disk", "model.k3a", "@4096"))
        self.assertEqual(image["runs"][0]["offset"], 4096)
        self.make_window(24 * MIB)
        self.start("--image", "disk")
        count = len(self.archive.tensors)
        for words in ["--all", "@4096"], ["--all", "@4096/norm"]:
            jobs = self.offload_json(*words)["jobs"]
            self.assertEqual([job["name"] for job in jobs if job["name"].endswith("/norm")],
                             ["model.k3a/norm", "@4096/norm", "@4096/norm"])
            crcs = [job["crc32c"] for job in jobs if job["name"].endswith("/norm")]
            self.assertEqual(crcs, [crc32c(self.bytes_of("norm")),
                                    crc32c(other[at:at + 100000]),
                                    crc32c(self.bytes_of("norm"))])
            self.check({"jobs": jobs[2 * count:]}, self.archive.tensors if words[1] == "@4096" else ["norm"], "@4096/")

    def test_other_sources(self):
        """A trunk, whose tensors share aligned layers, and a file with a header alone."""
        self.source = safetensors_file.file([])
        write(self.path("model.safetensors"), self.source)
        self.pack()
        self.put()
        self.assertEqual(self.offload_json("one=one.raw", "model.k3a")["jobs"][1:], [])
        os.mkdir(self.path("trunk"))
        layer = {"file_off": 4096, "nbytes": 20480,
                 "tensors": {"attn.q": {"off": 0, "nbytes": 8192, "dtype": "BF16", "shape": [64, 64]},
                             "attn.k": {"off": 8192, "nbytes": 8192, "dtype": "BF16", "shape": [64, 64]}}}
        write(self.path("trunk/trunk.json"), json.dumps({"layers": [layer]}).encode())
        self.source = bytes(4096) + generate(16384) + bytes(4096)
        write(self.path("trunk/trunk.bin"), self.source)
        self.good("pack", "trunk", "packed")
        os.replace(self.path("packed/trunk.bin.k3a"), self.path("model.k3a"))
        self.archive = safetensors_file.Archive(read(self.path("model.k3a")))
        self.put()
        self.assertEqual(len(self.archive.tensors), 2)
        self.check(self.offload_json("model.k3a=trunk/trunk.bin"), self.archive.tensors)


class OffloadArchiveFaults(ArchiveTest):
    def works(self, name="layers.3.weight"):
        self.check(self.offload_json(f"model.k3a/{name}=model.safetensors"), [name])

    def test_names(self):
        self.put()
        self.refuse(USAGE, r"model\.k3a: has no tensor 'layers\.8\.weight' \(--list model\.k3a shows them\)",
                    "model.k3a/layers.8.weight")
        self.refuse(USAGE, "has no tensor 'x'", "model.k3a/norm", "model.k3a/x=model.safetensors")
        self.refuse(USAGE, "has no tensor ''", "model.k3a/")
        self.refuse(USAGE, r"has no tensor 'layers\.9\*'", "model.k3a/layers.9*")
        self.refuse(USAGE, "the drive has no run 'other.k3a/norm'", "other.k3a/norm")
        self.refuse(USAGE, "the drive has no run 'one/norm'", "one/norm")
        self.refuse(CORRUPT, "@4096: offset 0: not a k3huf archive", "@4096/norm")
        self.refuse(USAGE, "'@5x/norm' is not @OFFSET", "@5x/norm")
        self.refuse(USAGE, "@99999999999: the drive has \\d+ bytes", "@99999999999")
        self.refuse(USAGE, "model.k3a/norm: is no archive", "--list", "model.k3a/norm")
        self.works()

    def test_window_too_small(self):
        self.put(window=MIB)
        for name in "table", "zeros":
            self.refuse(USAGE, f"model.k3a/{name}: the destination is not wholly in the window", "model.k3a/" + name)
        done = self.tool("offload", "--window", "window", "--json", "model.k3a=model.safetensors")
        self.assertEqual(done.returncode, USAGE)
        statuses = {job["name"]: job["status"] for job in json.loads(done.stdout)["jobs"]}
        bad = {"model.k3a/table", "model.k3a/zeros"}
        self.assertEqual({name for name, status in statuses.items() if status != 0}, bad)

    def test_mismatch(self):
        self.put()
        at = self.archive.tensors["layers.3.weight"]["source_offset"] + 12345
        other = bytearray(self.source)
        other[at] ^= 0x10
        write(self.path("other"), other)
        self.refuse(MISMATCH, f"model.k3a/layers.3.weight: source offset {at}: differs from other",
                    "model.k3a/layers.3.weight=other")
        self.check(self.offload_json("model.k3a/layers.2.weight=other", "model.k3a/layers.4.weight=other"),
                   ["layers.2.weight", "layers.4.weight"])
        write(self.path("shorter"), self.source[:-1])
        self.refuse(MISMATCH, "shorter has \\d+ bytes, the file that was packed had \\d+", "model.k3a/norm=shorter")

    def flip(self, at):
        """Flip a bit of the drive under the running firmware."""
        with open(self.path("disk"), "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 4]))

    def test_damaged_tables(self):
        at = self.put()
        archive = self.archive
        for where, pattern in ((0, "model.k3a: offset 0: not a k3huf archive"),
                               (8, "model.k3a: offset 8: archive version is not 1"),
                               (20, "model.k3a: offset 12: the CRC-32C of the first page is wrong"),
                               (3000, "model.k3a: offset 12: the CRC-32C of the first page is wrong"),
                               (archive.toc_offset + 100, "offset 40: the CRC-32C of the table of contents is wrong"),
                               (archive.bytes - 1, "offset 40: the CRC-32C of the table of contents is wrong")):
            self.flip(at + where)
            self.refuse(CORRUPT, pattern, "model.k3a/norm")
            self.refuse(CORRUPT, pattern, "--list", "model.k3a")
            self.assertTrue(self.offload_json("one=one.raw")["jobs"][0]["same"])
            self.flip(at + where)
            self.works()

    def test_claims(self):
        """A sound first page that claims the most that it can."""
        self.put()
        page = bytearray(self.content[:4096])
        struct.pack_into("<QQQ", page, 16, 4096 + (1 << 28), 4096, 1 << 28)
        struct.pack_into("<I", page, 12, 0)
        struct.pack_into("<I", page, 12, crc32c(page))
        write(self.path("disk"), page + bytes(MIB))
        self.start("--image", "disk")
        self.refuse(CORRUPT, "@0: offset 4096: the archive is cut short: the drive ends", "@0/norm")
        struct.pack_into("<QQQ", page, 16, (1 << 64) - 1, 1 << 63, (1 << 63) - 1)
        struct.pack_into("<I", page, 12, 0)
        struct.pack_into("<I", page, 12, crc32c(page))
        write(self.path("disk"), page + bytes(MIB))
        self.refuse(CORRUPT, "@0: offset 32: the table of contents has an impossible size", "@0/norm")

    def test_damaged_entries(self):
        at = self.put("--lba", 512)
        stored, run, part = (self.entry_of(name) for name in ("table", "own/code", "layers.3.weight"))
        self.flip(at + stored["offset"] + 777)
        self.refuse(CORRUPT, "model.k3a/table: the bytes do not have the CRC-32C of the archive's entry", "model.k3a/table")
        self.works()
        # A part of a stored entry has no CRC but the entry's: damage anywhere in it counts.
        for name in "norm", "a=b":
            shared = at + self.entry_of(name)["offset"] + 5000
            self.flip(shared)
            self.refuse(CORRUPT, f"model.k3a/{name}: the bytes do not have the CRC-32C", f"model.k3a/{name}")
            self.flip(shared)
            self.works(name)
        self.flip(at + run["offset"] + 288 + 16 + 5)
        self.refuse(CORRUPT, "model.k3a/own/code: stripe 0, block 0, .*", "model.k3a/own/code")
        self.works()
        stripe = Run(self.content[part["offset"]:part["offset"] + part["bytes"]]).stripes[0]
        first = self.archive.tensors["layers.3.weight"]["source_offset"] - part["source_offset"]
        block = first // 32768 + 1
        self.flip(at + part["offset"] + stripe["raw_plane"] + block * 16384)
        self.refuse(CORRUPT, f"model.k3a/layers.3.weight: stripe 0, block {block}, .*block's CRC-32C is wrong",
                    "model.k3a/layers.3.weight")
        self.works("layers.1.weight")
        # All of them at once: the others arrive.
        done = self.tool("offload", "--window", "window", "--json", "model.k3a=model.safetensors")
        self.assertEqual(done.returncode, CORRUPT)
        good = {job["name"].partition("/")[2] for job in json.loads(done.stdout)["jobs"] if job.get("same")}
        self.assertEqual(good, set(self.archive.tensors) - {"table", "own/code", "layers.3.weight"})

    def test_unreadable(self):
        at = self.put("--lba", 512)
        for where, name in ((0, "norm"), (self.archive.toc_offset, "norm"), (self.entry_of("table")["offset"] + 1000000, "table"),
                            (self.entry_of("own/code")["offset"], "own/code")):
            lba = (at + where) // 512
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:1")
            self.works(name)
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:0")
            self.refuse(IO, f"the drive cannot read a logical block \\(LBA {lba}\\)", f"model.k3a/{name}")
            if where >= 4096 and where != self.archive.toc_offset:
                self.works()

    def test_cut(self):
        """An archive that ends at any page, on a drive that ends there and on one that goes on."""
        self.put()
        for cut in range(0, len(self.content), 4096 * 61):
            write(self.path("disk"), self.content[:cut] + bytes(512))
            self.start("--image", "disk")
            self.refuse(CORRUPT, "@0: offset \\d+: (the archive is cut short: the drive ends|not a k3huf archive)",
                        "@0/norm")
            write(self.path("disk"), self.content[:cut] + bytes(len(self.content) - cut) + bytes(-len(self.content) % 512))
            self.start("--image", "disk")
            self.refuse(CORRUPT, "@0: offset \\d+: (the CRC-32C of the table of contents is wrong|not a k3huf archive)",
                        "@0/norm")
            write(self.path("cut"), self.content[:cut])
            self.bad(CORRUPT, "cut: .*(cut short|the input ends)", "image", "other", "cut")
            self.assertFalse(os.path.exists(self.path("other")))
        # In an image whose table still tells of all of it.
        at = self.put()
        disk = read(self.path("disk"))
        write(self.path("disk"), disk[:at + self.archive.toc_offset])
        self.start("--image", "disk")
        self.refuse(CORRUPT, "model.k3a: offset \\d+: the archive is cut short: the drive ends", "model.k3a/norm")
        self.assertTrue(self.offload_json("one=one.raw")["jobs"][0]["same"])

    def test_requiring_an_index(self):
        self.put()
        found = self.offload_json("--require-index", "model.k3a=model.safetensors")
        self.check(found, self.archive.tensors)
        self.pack("--no-index")
        at = self.put()
        found = self.offload_json("model.k3a=model.safetensors")
        self.check(found, self.archive.tensors)
        # Without block CRCs a part comes with all of the run, for the entry's.
        kinds = {job["name"].partition("/")[2]: job["as"] for job in found["jobs"]}
        self.assertEqual({kinds[f"layers.{i}.weight"] for i in range(8)}, {"run"})
        run = self.entry_of("layers.3.weight")
        where = at + run["offset"] + run["bytes"] - 10
        self.flip(where)
        self.refuse(CORRUPT, "model.k3a/layers.3.weight: the bytes do not have the CRC-32C", "model.k3a/layers.3.weight")
        self.flip(where)
        self.works()
        self.refuse(CORRUPT, "model.k3a/own/code: stripe 0, .*a stripe has no block index", "--require-index",
                    "model.k3a/own/code")
        self.refuse(CORRUPT, "model.k3a/layers.3.weight: stripe 0, .*a stripe has no block index", "--require-index",
                    "model.k3a/layers.3.weight")

    def overwrite(self, at, content):
        with open(self.path("disk"), "r+b") as file:
            file.seek(at)
            file.write(content)

    def refuses_entry(self, names, code, pattern):
        """None of an entry's tensors arrives, alone or with the others, which do."""
        for name in names[0], names[-1]:
            job = self.refuse_job(code, pattern, f"model.k3a/{name}")
            self.assertNotEqual(job["status"], 0)
            self.assertNotIn("destination", job)
            self.refuse(code, pattern, f"model.k3a/{name}=model.safetensors")
        done = self.tool("offload", "--window", "window", "--json", "model.k3a=model.safetensors", "one=one.raw")
        self.assertEqual(done.returncode, code)
        self.assertRegex(done.stderr.decode(), pattern)
        jobs = json.loads(done.stdout)["jobs"]
        self.assertEqual({job["name"] for job in jobs if job["status"] == 0 and job["same"] and "destination" in job},
                         {"one", *["model.k3a/" + name for name in self.archive.tensors if name not in names]})
        for job in jobs:
            if job["name"].partition("/")[2] in names:
                self.assertRegex(job["text"], pattern)

    def test_another_sound_run(self):
        """A run that is sound in itself in the place of an archive's: a write that went astray, or that never came."""
        layers = [f"layers.{i}.weight" for i in range(8)]
        for options in [], ["--stripe-size", "300000"]:
            self.pack(*options)
            at = self.put("--lba", 512)
            entry = self.entry_of("layers.3.weight")
            self.assertEqual({self.archive.tensors[name]["entry"] for name in layers},
                             {self.archive.tensors["layers.3.weight"]["entry"]})
            raw = self.source[entry["source_offset"]:entry["source_offset"] + entry["raw_bytes"]]
            place = at + entry["offset"]
            run = self.content[entry["offset"]:entry["offset"] + entry["bytes"]]
            # The same symbols in another order make a run of the same size.
            block = 32768
            last = len(raw) - len(raw) % 300000 if options else 20 * block
            for a, b in ((0, block), (2 * block, 5 * block), (last, last + block)):
                other = bytearray(raw)
                other[a:a + block], other[b:b + block] = raw[b:b + block], raw[a:a + block]
                write(self.path("other.raw"), other)
                self.good("pack", "--force", *options, "other.raw", "other")
                sound = read(self.path("other"))
                self.good("verify", "other", "other.raw")
                self.assertEqual(len(sound), entry["bytes"])
                self.overwrite(place, sound)
                pattern = "model.k3a: entry 'layers.0.weight' at \\d+: its blocks do not have the CRC-32C of the entry"
                self.refuses_entry(layers, CORRUPT, pattern)
                # So it is in an archive that is a file.
                content = bytearray(self.content)
                content[entry["offset"]:entry["offset"] + entry["bytes"]] = sound
                write(self.path("stale.k3a"), content)
                self.bad(CORRUPT, pattern.replace("model", "stale"), "unpack", "--tensor", "layers.3.weight", "stale.k3a", "-")
                self.bad(CORRUPT, "do not have the CRC-32C of the entry", "verify", "stale.k3a")
                self.good("unpack", "--tensor", "own/code", "--force", "stale.k3a", "code")
            # One of another size.
            for change, pattern in ((-2, "the run decodes to another size"), (2, "the run decodes to another size")):
                write(self.path("other.raw"), (raw + raw)[:len(raw) + change])
                self.good("pack", "--force", *options, "other.raw", "other")
                self.overwrite(place, read(self.path("other"))[:entry["bytes"]])
                self.refuses_entry(layers, CORRUPT, pattern)
            # One whose end is not the entry's.
            write(self.path("other.raw"), raw[::-1])
            self.good("pack", "--force", *options, "other.raw", "other")
            self.assertNotEqual(len(read(self.path("other"))), entry["bytes"])
            self.overwrite(place, (read(self.path("other")) + bytes(entry["bytes"]))[:entry["bytes"]])
            self.refuses_entry(layers, CORRUPT, "bytes after the end of the run|the input ends inside the run")
            # Nothing is left of a verdict, and the archive's own run is none of these.
            self.overwrite(place, run)
            self.check(self.offload_json("model.k3a=model.safetensors"), self.archive.tensors)
            # Without one of its block indexes there is but the entry's CRC.
            filler = Run(run).stripes[-1]["filler"]
            self.flip(place + filler)
            found = self.offload_json("model.k3a/layers*=model.safetensors")
            self.check(found, layers)
            self.assertEqual({job["as"] for job in found["jobs"]}, {"run"})
            self.refuse(CORRUPT, "has no block index", "--require-index", "model.k3a/layers.0.weight")
            sound = bytearray(sound)
            sound[filler] ^= 4
            self.overwrite(place, sound)
            self.refuses_entry(layers, CORRUPT, "the bytes do not have the CRC-32C of the archive's entry")

    def test_unreadable_header(self):
        """What is needed to know a run again cannot be read: its tensors do not arrive, all others do."""
        layers = [f"layers.{i}.weight" for i in range(8)]
        at = self.put("--lba", 512)
        entry = self.entry_of("layers.3.weight")
        filler = Run(self.content[entry["offset"]:entry["offset"] + entry["bytes"]]).stripes[0]["filler"]
        for where in 0, 290, filler + 20:
            lba = (at + entry["offset"] + where) // 512
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:0")
            self.refuses_entry(layers, IO, f"the drive cannot read a logical block \\(LBA {lba}\\)")
            self.start("--image", "disk", "--cores", 2, "--fault", f"{lba}:1:1")
            self.works()
        # A firmware that does not answer is waited for once.
        self.start("--image", "disk", "--read-timeout", 100000, "--hang", f"{lba}:1:0")
        began = time.monotonic()
        self.refuse(IO, "time-out: no completion", "--timeout", 300, "model.k3a")
        self.assertLess(time.monotonic() - began, 30)

    def test_names_that_are_no_text(self):
        content = bytearray(self.content)
        content[content.rindex(b"layers.3")] = 0xFF
        write(self.path("model.k3a"), self.resealed(content))
        self.put()
        self.offload("--quiet", "model.k3a=model.safetensors")
        self.assertEqual(self.refuse(CORRUPT, "a name on the drive is not UTF-8", "--json", "model.k3a"), "")
        self.assertEqual(self.refuse(CORRUPT, "model.k3a: .*a name .* is not UTF-8", "--list", "--json", "model.k3a"), "")
        self.works("layers.2.weight")

    def test_run_of_another_size(self):
        """An entry whose run decodes to other sizes than the table says: as it would be after a mix-up of files."""
        at = self.put()
        entry = self.entry_of("own/code")
        for size in 199998, 200002:
            write(self.path("other.raw"), self.bytes_of("own/code")[:2] * (size // 2))
            self.good("pack", "--force", "other.raw", "other")
            with open(self.path("disk"), "r+b") as file:
                file.seek(at + entry["offset"])
                file.write(read(self.path("other"))[:entry["bytes"]])
            self.refuse(CORRUPT, "own/code: the run decodes to another size than the archive says", "model.k3a/own/code")
        self.works()


if __name__ == "__main__":
    unittest.main()
