#!/usr/bin/env python3
"""Whole-program tests of the path from a disk image through firmware into a window: k3huf_host image and offload with
k3huf_firmware_posix behind the window.

The build sets K3HUF_TOOL, K3HUF_FIRMWARE and K3HUF_GEN (commands, words separated by ';'). Bytes are looked at by
core/FORMAT.md, port/k3huf_image.h and port/PROTOCOL.md alone.
"""
import json
import os
import pty
import random
import re
import select
import struct
import subprocess
import tempfile
import time
import unittest

import safetensors_file

TOOL = [word for word in os.environ["K3HUF_TOOL"].split(";") if word]
FIRMWARE = [word for word in os.environ["K3HUF_FIRMWARE"].split(";") if word]
DATA = os.environ["K3HUF_DATA"]
GEN = [word for word in os.environ["K3HUF_GEN"].split(";") if word]
OK, MISMATCH, USAGE, IO, CORRUPT = 0, 1, 2, 3, 4  # exit codes of k3huf_host
TIMEOUT = 120
MIB = 1 << 20
FREE = 16384  # of the window: where offload puts the first destination
PATTERN = 0xA5


def generate(size, seed=1):
    return subprocess.run([*GEN, str(size), str(seed)], stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def stripes(run):
    """The parts of each stripe of a run: offsets in the run."""
    result = []
    at = 288
    for _ in range(struct.unpack_from("<I", run, 16)[0]):
        raw, huf, pad = struct.unpack_from("<3I", run, at + 4)
        plane = at + 16 + huf
        filler = plane + raw - raw // 2
        result.append({"header": at, "coded": at + 16, "plane": plane, "filler": filler, "end": filler + pad})
        at = filler + pad
    return result


class InflightTest(unittest.TestCase):
    """Each test has an empty folder of its own, which is also the programs' current one."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="k3huf-test-")
        self.addCleanup(self.folder.cleanup)
        self.firmware = None
        self.addCleanup(self.stop)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tool(self, *arguments):
        return subprocess.run([*TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.folder.name, timeout=TIMEOUT, check=False)

    def good(self, *arguments):
        done = self.tool(*arguments)
        self.assertEqual((done.returncode, done.stderr), (OK, b""), done)
        return done.stdout.decode()

    def bad(self, code, pattern, *arguments):
        done = self.tool(*arguments)
        text = done.stderr.decode()
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


class Offload(InflightTest):
    def test_cores_and_block_sizes(self):
        self.make_run("indexed", 3 * MIB + 1, 1, "--stripe-size", 1000001)
        self.make_run("plain", 2 * MIB + 7, 2, "--no-index", "--stripe-size", "1M")
        self.make_run("small", 1, 3)
        self.make_run("empty", 0, 4)
        for lba in (512, 4096):
            self.good("image", "--lba", lba, "--offset", 10007, "--force", "disk", "indexed", "plain", "small", "empty")
            for cores in (1, 2, 4):
                self.make_window(8 * MIB)
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

    def test_read_ahead(self):
        self.make_run("one", 16 * MIB, 1)
        self.good("image", "disk", "one")
        self.make_window(17 * MIB)
        self.start("--image", "disk", "--cores", 1, "--rate", 20000000)
        for _ in range(3):  # something else on the machine may take the cores for a while
            job = self.offload_json("one=one.raw")["jobs"][0]
            self.assertGreater(job["groups_read_ahead"], 1.0)
            self.assertGreater(job["seconds"], 0.99 * job["run_bytes"] / 20e6)
            if job["seconds"] < 1.1 * job["run_bytes"] / 20e6:
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


class OffloadFaults(InflightTest):
    def prepare(self, *options):
        self.run = self.make_run("one", 3 * MIB, 1, "--stripe-size", "1M", *options)
        self.at = stripes(self.run)[1]
        self.good("image", "--lba", 512, "--offset", 8192 + 3, "--force", "disk", "one")
        self.offset = 8192 + 3
        self.make_window(4 * MIB)

    def works(self):
        self.assertTrue(self.offload_json("one=one.raw")["jobs"][0]["same"])

    def test_unreadable(self):
        self.prepare()
        middle = self.at["coded"] + 100000, self.at["plane"] + 300000
        # The block of stripe 1's header holds the end of stripe 0's index, which is needed first.
        for at, where in ((0, {}), (self.at["header"], {"stripe": 0}), (self.at["filler"] + 100, {"stripe": 1}),
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
        lba = (self.offset + self.at["plane"] + 1000) // 512
        self.start("--image", "disk", "--read-timeout", 100, "--hang", f"{lba}:1:1")
        self.works()
        self.start("--image", "disk", "--read-timeout", 100, "--hang", f"{lba}:1:4")
        job = self.refuse_job(IO, "one: stripe 1.*the drive did not answer in time", "one")
        self.assertLess(job["seconds"], 2)
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
        for at, pattern in ((0, "run header, offset 0: not a k3huf run"), (self.at["header"], "stripe 1, .*wrong stripe magic"),
                            (self.at["coded"] + 5000, "stripe 1, block \\d+"),
                            (self.at["plane"] + 5000, "stripe 1, block 0, .*the block's CRC-32C is wrong"),
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
        write(self.path("disk"), good[:(self.offset + self.at["plane"] + 511) // 512 * 512])
        self.start("--image", "disk")
        self.refuse(USAGE, "the source is not wholly on the drive", "one")
        self.refuse(CORRUPT, f"stripe 1, offset {self.at['plane']}: the input ends inside the run",
                    f"@{self.offset}:{self.at['plane']}:{3 * MIB}")

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

    def test_no_firmware(self):
        self.prepare()
        began = time.monotonic()
        self.refuse(IO, "time-out: no firmware answers", "--timeout", 300, "one")
        self.assertLess(time.monotonic() - began, 5)
        # One that came up, left its traces in the window and died.
        self.start("--image", "disk")
        self.works()
        self.stop()
        self.refuse(IO, "time-out: no firmware answers", "--timeout", 300, "one")
        # The host may be there before the firmware.
        with subprocess.Popen([*TOOL, "offload", "--window", "window", "one=one.raw"], cwd=self.folder.name,
                              stdout=subprocess.PIPE) as process:
            time.sleep(0.3)
            self.start("--image", "disk")
            self.assertEqual(process.wait(timeout=TIMEOUT), OK)

    def test_firmware_dies(self):
        self.prepare()
        self.start("--image", "disk", "--rate", 100000)
        with subprocess.Popen([*TOOL, "offload", "--window", "window", "--timeout", "1000", "one"],
                              cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(0.5)
            self.stop()
            error = process.communicate(timeout=20)[1].decode()
            self.assertEqual(process.returncode, IO)
            self.assertRegex(error, "time-out: no completion for 1.* last sign of life was")

    def test_host_dies(self):
        """A host that is killed in the middle of a job leaves the firmware in order for the next one."""
        self.prepare()
        self.start("--image", "disk", "--cores", 2, "--rate", 4000000)
        with subprocess.Popen([*TOOL, "offload", "--window", "window", *["one"] * 20], cwd=self.folder.name,
                              stdout=subprocess.PIPE) as process:
            time.sleep(0.3)
            process.kill()
            process.communicate()
        self.works()

    def test_job_is_slower_than_the_timeout(self):
        self.prepare()
        self.start("--image", "disk", "--rate", 1000000)
        self.refuse(IO, "time-out: no completion for 0.[2-9] s; .* was 0.[01] s ago", "--timeout", 200, "one")
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
                self.assertEqual(job["crc32c"], safetensors_file.crc32c(expected))


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

    def test_thousands_of_tensors(self):
        """More than an image's table can name, with longer names, and a table larger than the window."""
        names = [f"model.layers.{i}.self_attention.{'very_' * 20}long_projection.weight" for i in range(3000)]
        tensors = [(name, "F32" if i % 3 == 0 else "BF16", [64], generate(64 * (4 if i % 3 == 0 else 2), i % 7))
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
        stripe = stripes(self.content[part["offset"]:part["offset"] + part["bytes"]])[0]
        first = self.archive.tensors["layers.3.weight"]["source_offset"] - part["source_offset"]
        block = first // 32768 + 1
        self.flip(at + part["offset"] + stripe["plane"] + block * 16384)
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
