#!/usr/bin/env python3
"""Whole-program tests of k3huf_host: what it prints, writes, leaves behind, and returns.

The build sets K3HUF_TOOL and K3HUF_GEN (the command of k3huf_host and of k3gen, words separated by ';') and K3HUF_DATA
(the folder tests/data). Nothing here knows how the tool works inside; runs are looked at by FORMAT.md alone.
"""
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

TOOL = [word for word in os.environ["K3HUF_TOOL"].split(";") if word]
GEN = [word for word in os.environ["K3HUF_GEN"].split(";") if word]
DATA = os.environ["K3HUF_DATA"]

OK, MISMATCH, USAGE, IO, CORRUPT = 0, 1, 2, 3, 4  # exit codes, as --help has them
TIMEOUT = 120  # seconds; no call takes more than a few


def data(name):
    return os.path.join(DATA, name)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return path


def generate(size, seed=1):
    return subprocess.run([*GEN, str(size), str(seed)], stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout


class Run:
    """The headers of a run."""

    def __init__(self, content):
        self.magic, self.version, self.raw_bytes, self.nstripes = struct.unpack_from("<4sIQI", content)
        self.codelen = content[20:276]
        self.stripes = []
        at = 288
        for number in range(self.nstripes):
            magic, raw_bytes, huf_bytes, pad = struct.unpack_from("<4I", content, at)
            assert magic == 0x4655484B ^ number
            even = raw_bytes - raw_bytes // 2
            filler = at + 16 + huf_bytes + even
            self.stripes.append({"offset": at, "raw_bytes": raw_bytes, "huf_bytes": huf_bytes, "pad": pad,
                                 "coded": at + 16, "raw_plane": at + 16 + huf_bytes, "filler": filler})
            at = filler + pad
        self.size = at


class HostTest(unittest.TestCase):
    """Each test has an empty folder of its own, which is also the tool's current one."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="k3huf-test-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def files(self):
        return sorted(os.listdir(self.folder.name))

    def tool(self, *arguments, stdin=b"", stdout=subprocess.PIPE):
        return subprocess.run([*TOOL, *map(str, arguments)], input=stdin, stdout=stdout, stderr=subprocess.PIPE,
                              cwd=self.folder.name, timeout=TIMEOUT)

    def good(self, *arguments, stdin=b""):
        """Succeeds without a complaint; a summary may go to standard error where standard output is the output."""
        done = self.tool(*arguments, stdin=stdin)
        streams = arguments[0] in ("pack", "unpack", "index") and arguments[-1] == "-"
        summary = rb"[^\n]+\n" if streams else b""
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertTrue(re.fullmatch(summary, done.stderr), done.stderr)
        return done.stdout

    def fails(self, code, pattern, *arguments, stdin=b"", stdout=subprocess.PIPE):
        """Fails with this exit code, nothing on standard output, and one line that matches the pattern."""
        done = self.tool(*arguments, stdin=stdin, stdout=stdout)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.assertRegex(text, r"\Ak3huf_host: [^\n]+\n\Z")
        self.assertRegex(text, pattern)
        if stdout == subprocess.PIPE:
            self.assertEqual(done.stdout, b"")

    def pack(self, content, *options):
        """Pack, and hold the run against FORMAT.md and the way back. Returns its bytes."""
        original, run, back = self.path("original"), self.path("run"), self.path("back")
        write(original, content)
        self.good("pack", "--force", *options, original, run)
        self.good("verify", run)
        self.good("verify", run, original)
        self.good("unpack", "--force", run, back)
        self.assertEqual(read(back), content)
        self.assertEqual(self.files(), ["back", "original", "run"])
        packed = read(run)
        header = Run(packed)
        self.assertEqual((header.magic, header.version), (b"KHUF", 1))
        self.assertEqual(header.raw_bytes, len(content))
        self.assertEqual(sum(stripe["raw_bytes"] for stripe in header.stripes), len(content))
        self.assertEqual(header.size, len(packed))
        used = [length for length in header.codelen if length > 0]
        if len(used) > 1:
            self.assertEqual(sum(4096 >> length for length in used), 4096)
        return packed


class RoundTrip(HostTest):
    def test_tiny_files(self):
        for size in range(9):
            with self.subTest(size=size):
                packed = self.pack(bytes(range(200, 200 + size)))
                self.assertEqual(Run(packed).nstripes, 1 if size else 0)

    def test_filler_of_tiny_files(self):
        for size in range(5):
            with self.subTest(size=size):
                content = bytes(range(size))
                fillers = [stripe["pad"] for stripe in Run(self.pack(content)).stripes]
                self.assertEqual(fillers, [] if size == 0 else [24 if size > 1 else 0])
                fillers = [stripe["pad"] for stripe in Run(self.pack(content, "--no-index")).stripes]
                self.assertEqual(fillers, [] if size == 0 else [0])

    def test_real_weights(self):
        content = read(data("silero_vad_v6.bf16"))
        plain = self.pack(content, "--no-index")
        self.assertLess(len(plain) / len(content), 0.712)
        indexed = self.pack(content)
        blocks = -(-len(content) // 2 // 16384)
        self.assertEqual(len(indexed), len(plain) + 16 + 8 * blocks)

    def test_odd_sizes_and_stripes(self):
        content = read(data("random_bytes_odd_length.raw"))
        for stripe in (1, 2, 3, 999, 1000, 10006, 10007, 10008, "64M"):
            with self.subTest(stripe=stripe):
                header = Run(self.pack(content, "--stripe-size", stripe))
                size = 10007 if stripe == "64M" else min(stripe, 10007)
                sizes = [stripe["raw_bytes"] for stripe in header.stripes]
                if stripe == 10006:
                    self.assertEqual(sizes, [10004, 3])
                else:
                    self.assertEqual(sizes[:-1], [size] * (len(sizes) - 1))
                self.assertEqual(len(sizes), -(-10007 // size))

    def test_a_single_byte_is_not_left_alone(self):
        """With an index a last stripe of one byte gets two more, in a file, in a stream, in parts or not."""
        for stripe in (1, 5, 6, 7, 1000, 1 << 20, (1 << 20) + 2):
            for n in (1, 2):
                with self.subTest(stripe=stripe, n=n):
                    content = generate(stripe * n + 1)
                    moved = 2 if stripe >= 6 else 0
                    packed = self.pack(content, "--stripe-size", stripe)
                    self.assertEqual([s["raw_bytes"] for s in Run(packed).stripes],
                                     [stripe] * (n - 1) + [stripe - moved, 1 + moved])
                    self.assertEqual(self.good("pack", "--stripe-size", stripe, "-", "-", stdin=content), packed)
                    if moved:
                        self.good("verify", "--require-index", "run", "original")
                    plain = Run(self.pack(content, "--stripe-size", stripe, "--no-index"))
                    self.assertEqual([s["raw_bytes"] for s in plain.stripes], [stripe] * n + [1])

    def test_stripe_size_in_k(self):
        header = Run(self.pack(generate(5000), "--stripe-size", "2K"))
        self.assertEqual([stripe["raw_bytes"] for stripe in header.stripes], [2048, 2048, 904])

    def test_code_length_limit(self):
        content = read(data("deep_tree_limit12.raw"))
        sizes = []
        for limit in range(1, 13):
            used = len(set(content[1::2]))
            if used > 1 << limit:
                self.fails(USAGE, "max-code-length", "pack", "--max-code-length", limit,
                           data("deep_tree_limit12.raw"), "x")
                continue
            packed = self.pack(content, "--max-code-length", limit)
            self.assertLessEqual(max(Run(packed).codelen), limit)
            sizes.append(len(packed))
        self.assertGreater(len(sizes), 5)
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_index_block_sizes(self):
        content = generate(3 * 65536 + 1)
        for log2 in (12, 13, 20):
            with self.subTest(log2=log2):
                packed = self.pack(content, "--block-log2", log2)
                (stripe,) = Run(packed).stripes
                blocks = -(-(len(content) // 2) // (1 << log2))
                self.assertEqual(stripe["pad"], 16 + 8 * blocks)
                magic, version, got_log2, flags, nblocks = struct.unpack_from("<4sHBBI", packed, stripe["filler"])
                self.assertEqual((magic, version, got_log2, flags, nblocks), (b"K3IX", 1, log2, 0, blocks))

    def test_packing_is_repeatable(self):
        content = generate(100001)
        self.assertEqual(self.pack(content), self.pack(content))


class Ratio(HostTest):
    def test_k3_weights(self):
        for size in (4 << 20, 6 << 20):
            with self.subTest(size=size):
                content = generate(size, seed=size)
                plain = len(self.pack(content, "--no-index"))
                self.assertLessEqual(plain / size, 0.6724)
                # The index is 8 bytes for every 32 KiB of raw bytes, and 16.
                self.assertEqual(len(self.pack(content)), plain + 16 + 8 * (size >> 15))


    def test_the_histogram_is_that_of_its_source(self):
        counts = subprocess.run([*GEN, "histogram"], stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout
        source = json.loads(read(data("k3_high_byte_histogram.json")))
        self.assertEqual([int(count) for count in counts.split()], source["high_byte_histogram"])

    def test_default_stripes(self):
        """One stripe of 64 MiB, and the three bytes that are left."""
        packed = self.pack(generate((64 << 20) + 3), "--no-index")
        self.assertEqual([stripe["raw_bytes"] for stripe in Run(packed).stripes], [64 << 20, 3])
        self.assertLessEqual(len(packed) / ((64 << 20) + 3), 0.6724)


class Golden(HostTest):
    def vectors(self):
        manifest = json.loads(read(data("manifest.json")))
        self.assertEqual(len(manifest), 12)
        return manifest

    def test_unpack(self):
        for name, facts in self.vectors().items():
            with self.subTest(name=name):
                self.good("unpack", "--force", data(name + ".k3h"), "out")
                out = read(self.path("out"))
                self.assertEqual(len(out), facts["raw_bytes"])
                self.assertEqual(out, read(data(name + ".raw")))

    def test_unpack_of_a_pipe(self):
        for name in self.vectors():
            with self.subTest(name=name):
                out = self.good("unpack", "-", "-", stdin=read(data(name + ".k3h")))
                self.assertEqual(out, read(data(name + ".raw")))

    def test_verify_against_the_original(self):
        for name in self.vectors():
            with self.subTest(name=name):
                self.good("verify", data(name + ".k3h"), data(name + ".raw"))
                self.good("verify", "-", data(name + ".raw"), stdin=read(data(name + ".k3h")))
                self.good("verify", data(name + ".k3h"), "-", stdin=read(data(name + ".raw")))

    def test_our_runs_are_smaller(self):
        for name in ("k3_histogram_256k", "real_weights_silero", "deep_tree_limit12"):
            with self.subTest(name=name):
                packed = self.pack(read(data(name + ".raw")), "--no-index")
                self.assertLess(len(packed), os.path.getsize(data(name + ".k3h")))


class Streams(HostTest):
    def test_pack_and_unpack_as_filters(self):
        for size in (0, 1, 2, 3, 70001):
            content = generate(size)
            for options in ((), ("--no-index",), ("--stripe-size", "20001"), ("--no-index", "--stripe-size", "5001")):
                with self.subTest(size=size, options=options):
                    packed = self.good("pack", *options, "-", "-", stdin=content)
                    self.assertEqual(packed, self.pack(content, *options))
                    self.assertEqual(self.good("unpack", "-", "-", stdin=packed), content)

    def test_one_end_a_file(self):
        content = generate(30000)
        write(self.path("in"), content)
        packed = self.good("pack", "in", "-")
        self.good("pack", "-", "run", stdin=content)
        self.assertEqual(read(self.path("run")), packed)
        self.assertEqual(self.good("unpack", "run", "-"), content)
        self.good("unpack", "-", "back", stdin=packed)
        self.assertEqual(read(self.path("back")), content)
        self.assertEqual(self.files(), ["back", "in", "run"])

    def test_a_file_as_standard_input(self):
        with open(data("k3_three_stripes.k3h"), "rb") as run:
            done = subprocess.run([*TOOL, "unpack", "-", "-"], stdin=run, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=True, timeout=TIMEOUT)
        self.assertEqual(done.stdout, read(data("k3_three_stripes.raw")))

    def test_a_slow_pipe(self):
        """A writer that gives odd pieces, so that every part of the run comes in pieces too."""
        run = read(data("k3_stripes_with_filler.k3h"))
        process = subprocess.Popen([*TOOL, "unpack", "-", "out"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=self.folder.name)
        at, size = 0, 1
        while at < len(run):
            process.stdin.write(run[at:at + size])
            process.stdin.flush()
            at, size = at + size, size * 7 % 4093 + 1
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, errors), (OK, b""))
        self.assertEqual(read(self.path("out")), read(data("k3_stripes_with_filler.raw")))

    def test_a_reader_that_goes_away(self):
        process = subprocess.Popen([*TOOL, "unpack", data("real_weights_silero.k3h"), "-"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.folder.name)
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        code = process.wait(timeout=TIMEOUT)
        self.assertIn(code, (IO, -signal.SIGPIPE, 128 + signal.SIGPIPE))
        self.assertLessEqual(errors.count(b"\n"), 1)


class Refusals(HostTest):
    """Outputs that are there already, cannot be made, or fill up; and what is left behind."""

    def test_existing_output_is_kept(self):
        write(self.path("in"), b"abcd")
        write(self.path("out"), b"precious")
        self.fails(IO, r"out: .*exists.*--force", "pack", "in", "out")
        self.fails(IO, r"out: .*exists.*--force", "unpack", data("two_bytes.k3h"), "out")
        self.assertEqual(read(self.path("out")), b"precious")
        self.assertEqual(self.files(), ["in", "out"])

    def test_force_replaces_it(self):
        write(self.path("out"), b"old")
        for force in ("--force", "-f"):
            self.good("unpack", force, data("two_bytes.k3h"), "out")
            self.assertEqual(read(self.path("out")), read(data("two_bytes.raw")))

    def test_force_keeps_it_on_failure(self):
        write(self.path("out"), b"precious")
        bad = bytearray(read(data("k3_three_stripes.k3h")))
        bad[-60000] = 0  # in the last stripe; the change below is what is found
        bad[-1:] = b""
        write(self.path("bad"), bytes(bad))
        self.fails(CORRUPT, r"bad: stripe 2", "unpack", "--force", "bad", "out")
        self.assertEqual(read(self.path("out")), b"precious")
        self.assertEqual(self.files(), ["bad", "out"])

    def test_input_and_output_the_same(self):
        content = read(data("two_symbols.raw"))
        write(self.path("file"), content)
        self.fails(IO, r"file: .*exists", "pack", "file", "file")
        self.assertEqual(read(self.path("file")), content)
        self.assertEqual(self.files(), ["file"])

    def test_an_input_is_never_replaced(self):
        """Not by what is made of it either, whatever name it goes by, and whatever is allowed."""
        raw, run = read(data("two_symbols.raw")), read(data("two_symbols.k3h"))
        for command, content, options in (("pack", raw, ()), ("pack", raw, ("--rm",)), ("unpack", run, ()),
                                          ("unpack", run, ("--range", "3:5")), ("index", run, ())):
            write(self.path("file"), content)
            os.link(self.path("file"), self.path("hard"))
            os.symlink("file", self.path("soft"))
            for one, other in (("file", "file"), ("file", "./file"), ("file", self.path("file")), ("file", "hard"),
                               ("hard", "file"), ("file", "soft"), ("soft", "file"), ("soft", "soft")):
                with self.subTest(command=command, options=options, one=one, other=other):
                    self.fails(IO, "is the same file as the input", command, "-f", *options, one, other)
            if "--rm" not in options:
                with open(self.path("file"), "rb") as stdin:
                    done = subprocess.run([*TOOL, command, "-f", *options, "-", "hard"], stdin=stdin, timeout=TIMEOUT,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder.name)
                self.assertEqual((done.returncode, done.stdout), (IO, b""))
                self.assertRegex(done.stderr.decode(), "is the same file as the input")
            self.assertEqual(self.files(), ["file", "hard", "soft"])
            self.assertEqual(read(self.path("hard")), content)
            for name in self.files():
                os.remove(self.path(name))

    def test_remove_needs_a_file_to_be_left(self):
        write(self.path("in"), b"abcdef")
        os.mkfifo(self.path("fifo"))
        os.symlink("/dev/null", self.path("link"))
        for out in ("-", "/dev/null", "/dev/stdout", "fifo", "link"):
            for force in ((), ("-f",)):
                with self.subTest(out=out):
                    self.fails(USAGE, "--rm is for one file packed into another", "pack", "--rm", *force, "in", out)
        self.assertEqual(read(self.path("in")), b"abcdef")

    def test_remove_takes_no_links(self):
        write(self.path("in"), b"abcdef")
        os.symlink("in", self.path("link"))
        done = self.tool("pack", "-q", "--rm", "link", "out")
        self.assertEqual((done.returncode, done.stdout), (IO, b""))
        self.assertEqual(done.stderr, b"k3huf_host: link: not removed: it is not a regular file\n")
        self.assertEqual(self.files(), ["in", "link", "out"])
        self.good("verify", "out", "in")
        self.good("pack", "-f", "--rm", "in", "out")
        self.assertEqual(self.files(), ["link", "out"])

    def test_no_such_input(self):
        for command in (("pack", "none", "out"), ("unpack", "none", "out"), ("index", "none", "out"),
                        ("verify", "none"), ("inspect", "none"),
                        ("verify", data("two_bytes.k3h"), "none")):
            with self.subTest(command=command):
                self.fails(IO, r"none: .*No such file", *command)
        self.assertEqual(self.files(), [])

    def test_no_such_folder(self):
        self.fails(IO, r"no/out: .*No such file", "unpack", data("two_bytes.k3h"), "no/out")
        self.fails(IO, r"no/out: .*No such file", "pack", data("two_bytes.raw"), "no/out")

    def test_a_folder_is_no_file(self):
        os.mkdir(self.path("folder"))
        self.fails(IO, r"folder: ", "verify", "folder")
        self.fails(IO, r"folder: ", "pack", "folder", "out")
        self.fails(IO, r"folder: ", "unpack", data("two_bytes.k3h"), "folder")
        self.fails(IO, r"folder: ", "unpack", "--force", data("two_bytes.k3h"), "folder")
        self.assertEqual(self.files(), ["folder"])
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_a_full_device(self):
        self.fails(IO, r"/dev/full: .*No space", "unpack", data("k3_three_stripes.k3h"), "/dev/full")
        self.fails(IO, r"/dev/full: .*No space", "pack", data("k3_three_stripes.raw"), "/dev/full")
        for command in (("unpack", data("two_bytes.k3h"), "-"), ("pack", data("two_bytes.raw"), "-"),
                        ("inspect", data("two_bytes.k3h")), ("inspect", "--json", data("two_bytes.k3h")),
                        ("verify", data("two_bytes.k3h"))):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                self.fails(IO, r"No space", *command, stdout=full)

    def test_failures_leave_nothing_behind(self):
        run = read(data("k3_three_stripes.k3h"))
        write(self.path("cut"), run[:-1])
        self.fails(CORRUPT, "cut: ", "unpack", "cut", "out")
        self.fails(CORRUPT, "standard input", "unpack", "-", "out", stdin=run[:100000])
        self.fails(CORRUPT, "standard input", "unpack", "-", "out", stdin=run + b"x")
        self.fails(USAGE, "max-code-length", "pack", "--max-code-length", 2, data("all_256_symbols.raw"), "out")
        self.assertEqual(self.files(), ["cut"])

    def test_a_signal_leaves_nothing_behind(self):
        run = read(data("k3_three_stripes.k3h"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                process = subprocess.Popen([*TOOL, "unpack", "-", "out"], stdin=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, cwd=self.folder.name)
                process.stdin.write(run[:100000])
                process.stdin.flush()
                until = time.monotonic() + TIMEOUT
                while not self.files() and process.poll() is None and time.monotonic() < until:
                    time.sleep(0.01)  # until the temporary file is there
                self.assertEqual(len(self.files()), 1)
                self.assertNotIn("out", self.files())
                process.send_signal(number)
                process.stdin.close()
                self.assertIn(process.wait(timeout=TIMEOUT), (-number, 128 + number))
                self.assertEqual(self.files(), [])


class Corrupt(HostTest):
    """Damaged runs: exit code 4 and one line with file and place, from a file and from a pipe."""

    def check(self, content, pattern):
        write(self.path("bad"), content)
        self.fails(CORRUPT, r"\Ak3huf_host: bad: " + pattern, "verify", "bad")
        self.fails(CORRUPT, r"\Ak3huf_host: bad: " + pattern, "unpack", "bad", "out")
        self.fails(CORRUPT, r"\Ak3huf_host: bad: " + pattern, "inspect", "bad")
        self.fails(CORRUPT, r"\Ak3huf_host: \(?standard input\)?: " + pattern, "verify", "-", stdin=content)
        self.assertEqual(self.files(), ["bad"])

    def damaged(self, name, offset, content):
        run = bytearray(read(data(name)))
        run[offset:offset + len(content)] = content
        return bytes(run)

    def test_run_header(self):
        for offset, content, at in ((0, b"X", 0), (4, b"\2", 4), (16, b"\0", 16), (20 + 77, b"\x0d", 20 + 77),
                                    (20, b"\1" * 256, 20), (20, b"\0" * 256, 20)):
            with self.subTest(offset=offset):
                self.check(self.damaged("k3_three_stripes.k3h", offset, content), rf".*offset {at}\b")

    def test_stripe_headers(self):
        for number, stripe in enumerate(Run(read(data("k3_three_stripes.k3h"))).stripes):
            for field in (0, 4, 8):
                with self.subTest(stripe=number, field=field):
                    at = stripe["offset"] + field
                    self.check(self.damaged("k3_three_stripes.k3h", at, b"\xff\xff\xff\xff"),
                               rf"stripe {number}, offset {at}\b")

    def test_under_full_code(self):
        """Ones where the code has none: one symbol, whose code is 0."""
        at = 288 + 16 + 40
        self.check(self.damaged("one_symbol.k3h", at, b"\x08"), rf"stripe 0, offset {at}\b")

    def test_bits_behind_the_last_code(self):
        (stripe,) = Run(read(data("two_symbols.k3h"))).stripes
        at = stripe["raw_plane"] - 1  # 1001 codes of one bit: seven bits are left over
        last = read(data("two_symbols.k3h"))[at]
        self.check(self.damaged("two_symbols.k3h", at, bytes([last | 1])), rf"stripe 0, offset {at}\b")

    def test_cut_off_in_a_filler(self):
        """The stripe whose filler is cut off is named, not the one that would follow."""
        run = read(data("k3_stripes_with_filler.k3h"))
        for number, stripe in enumerate(Run(run).stripes):
            size = stripe["filler"] + stripe["pad"] - 1
            with self.subTest(stripe=number):
                self.check(run[:size], rf"stripe {number}, offset {size}\b")

    def test_cut_off(self):
        run = read(data("k3_stripes_with_filler.k3h"))
        for size in (0, 1, 287, 288, 300, 303, 304, 60000, len(run) - 38, len(run) - 1):
            with self.subTest(size=size):
                self.check(run[:size], r"(.*\D)?offset \d+")

    def test_not_a_run(self):
        self.check(read(data("silero_vad_v6.bf16")), r".*offset 0\b")
        self.check(b"hello, world\n", r".*offset \d+")

    def test_more_than_a_run(self):
        run = read(data("two_symbols.k3h"))
        self.check(run + b"\0", rf"(1 )?bytes? after the end of the run \(offset {len(run)}\)")

    def test_index(self):
        content = generate(100000)
        good = self.pack(content, "--block-log2", 12)
        os.remove(self.path("run"))
        os.remove(self.path("original"))
        os.remove(self.path("back"))
        (stripe,) = Run(good).stripes
        for field in (4, 6, 7, 8, 12):
            with self.subTest(field=field):
                bad = bytearray(good)
                bad[stripe["filler"] + field] ^= 0x40
                self.check(bytes(bad), rf"stripe 0, offset {stripe['filler'] + field}\b")
        for block in (0, 5, 12):
            with self.subTest(block=block):
                bad = bytearray(good)
                bad[stripe["raw_plane"] + block * 4096 + 7] ^= 1
                begin = struct.unpack_from("<I", good, stripe["filler"] + 16 + 8 * block)[0] // 8
                self.check(bytes(bad), rf"stripe 0, block {block}, offset {stripe['offset'] + 16 + begin}\b")


class Mismatch(HostTest):
    def setUp(self):
        super().setUp()
        self.original = read(data("k3_three_stripes.raw"))
        self.run_file = data("k3_three_stripes.k3h")

    def test_first_difference(self):
        for at in (0, 1, 65535, 65536, 131072, 195830):
            with self.subTest(at=at):
                other = bytearray(self.original)
                other[at] ^= 0x21
                other[-1] ^= 0x80 if at == 195830 else 0x42
                write(self.path("other"), bytes(other))
                pattern = (rf"stripe {at // 65536}, decoded offset {at}\b.*other.*"
                           rf"expected 0x{other[at]:02x}, found 0x{self.original[at]:02x}")
                self.fails(MISMATCH, pattern, "verify", self.run_file, "other")
                self.fails(MISMATCH, r"decoded offset", "verify", self.run_file, "-", stdin=bytes(other))
                self.fails(MISMATCH, r"decoded offset", "verify", "-", "other", stdin=read(self.run_file))

    def test_lengths(self):
        write(self.path("longer"), self.original + b"x")
        self.fails(MISMATCH, rf"{len(self.original)}\b.*longer", "verify", self.run_file, "longer")
        for size in (0, 1, 65536, len(self.original) - 1):
            with self.subTest(size=size):
                write(self.path("shorter"), self.original[:size])
                self.fails(MISMATCH, rf"{size}\b.*shorter", "verify", self.run_file, "shorter")

    def test_corruption_comes_before_mismatch_only_where_it_is(self):
        """A corrupt run against the right original is corrupt, not different."""
        bad = read(self.run_file)[:-1]
        write(self.path("bad"), bad)
        self.fails(CORRUPT, "bad: stripe 2", "verify", "bad", data("k3_three_stripes.raw"))


class Usage(HostTest):
    def test_help(self):
        text = self.good("--help").decode()
        for line in (r"0 +success", r"1 +mismatch", r"2 +usage", r"3 +I/O", r"4 +corrupt", r"5 +internal"):
            self.assertRegex(text, rf"(?m)^ +{line}")
        commands = re.findall(r"(?m)^  ([a-z]+) +\w", text.partition("exit codes:")[0])
        self.assertEqual(commands, ["pack", "unpack", "verify", "index", "inspect", "list", "bench", "plan", "image",
                                    "offload"])
        self.assertEqual(self.good("help").decode(), text)
        for command in commands:
            self.assertEqual(self.good("help", command), self.good(command, "--help"))
            self.assertTrue(self.good(command, "--help").decode().startswith(f"usage: k3huf_host {command}"))
            self.assertEqual(self.good(command, "-h"), self.good(command, "--help"))
        self.assertRegex(self.good("--version").decode(),
                         r"\Ak3huf_host \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(-dirty)?\))?\ninstruction set: \w+ [^\n]+\n\Z")

    def test_environment(self):
        """The variable that is obeyed is in the help and in the man page, with the names that it can have here."""
        for text in (self.good("--help").decode(), self.good("--man").decode().partition(".SH EXIT STATUS AND ENVIRONMENT")[2]):
            self.assertRegex(text, r"(?m)^environment:\n  K3HUF_ISA  ")
            told = text.partition("K3HUF_ISA")[2]
            for name in re.search(r"chooses another: (.*)\)", self.good("--version").decode())[1].split(", "):
                self.assertRegex(told, rf"\b{name}\b")

    def test_no_command(self):
        done = self.tool()
        self.assertEqual(done.returncode, USAGE)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"usage: k3huf_host", done.stderr)

    def test_mistakes(self):
        for arguments in (("nonsense",), ("--nonsense",), ("help", "nonsense"), ("help", "pack", "unpack"), ("pack",),
                          ("pack", "a"), ("pack", "a", "b", "c"), ("unpack", "a"), ("unpack", "a", "b", "c"), ("verify",), ("verify", "a", "b", "c"),
                          ("inspect",), ("inspect", "a", "b"), ("pack", "--nonsense", "a", "b"),
                          ("verify", "--force", "a"), ("pack", "--max-code-length", "0", "a", "b"),
                          ("pack", "--max-code-length", "13", "a", "b"), ("pack", "--max-code-length", "x", "a", "b"),
                          ("pack", "--max-code-length"), ("pack", "--stripe-size", "0", "a", "b"),
                          ("pack", "--stripe-size", "65M", "a", "b"), ("pack", "--stripe-size", "-1", "a", "b"),
                          ("pack", "--stripe-size", "99999999999999999999", "a", "b"),
                          ("pack", "--stripe-size", "17592186044416M", "a", "b"),
                          ("pack", "--stripe-size", "1KK", "a", "b"), ("pack", "--stripe-size", "", "a", "b"),
                          ("index",), ("index", "a"), ("index", "a", "b", "c"),
                          ("index", "--block-log2", "11", "a", "b"),
                          ("index", "--no-index", "a", "b"), ("pack", "-T", "0", "a", "b"),
                          ("pack", "-T", "257", "a", "b"), ("pack", "--threads", "x", "a", "b"), ("unpack", "-T"),
                          ("verify", "-T", "", "a"), ("inspect", "-T", "1", "a"),
                          ("pack", "--block-log2", "11", "a", "b"), ("pack", "--block-log2", "21", "a", "b"),
                          ("bench", "--runs", "0"), ("bench", "a", "b")):
            with self.subTest(arguments=arguments):
                self.fails(USAGE, "k3huf_host", *arguments)
        self.assertEqual(self.files(), [])

    def test_an_option_is_named_as_typed(self):
        for typed, name in ((("--threads",), "--threads"), (("-T",), "-T"), (("-qT",), "-T"), (("--thr",), "--thr"),
                            (("--rm", "-qx"), "-x"), (("--rm", "-q%"), "-%"), (("--quiet=3",), "--quiet=3"),
                            (("--output",), "--output"), (("--block-log2",), "--block-log2"), (("--no",), "--no")):
            self.fails(USAGE, rf": '{name}' \(see ", "pack", "in", *typed)

    def test_a_range_is_named_as_a_whole(self):
        for bad in ("10:", ":10", ":", "", "10", "a:1", "1:a", "1:2:3", "-1:2", "1" * 40 + ":1"):
            self.fails(USAGE, rf"--range must be OFFSET:LENGTH, .*not '{bad}'\n", "unpack", "--range", bad, "in", "out")

    def test_a_run_that_is_not_smaller(self):
        """The summary says so of a ratio of 1 or more, and of no other."""
        text = self.good("pack", data("random_bytes_odd_length.raw"), "odd").decode()
        self.assertRegex(text, r", ratio 1\.\d{5} \(not smaller: is this bf16\?\), 1 stripe, verified\n\Z")
        text = self.good("pack", data("silero_vad_v6.bf16"), "weights").decode()
        self.assertRegex(text, r", ratio 0\.\d{5}, 1 stripe, verified\n\Z")
        self.assertNotIn("ratio", self.good("pack", write(self.path("nothing"), b""), "empty").decode())

    def test_what_is_packed_is_not_packed_again(self):
        """What begins with a run's magic or an archive's, sound or not, from a file or not; unless --bytes says so."""
        run, archive = read(data("k3_three_stripes.k3h")), b"K3HUFAR\n" + bytes(5000)
        for content, kind in ((run, "a run"), (run[:4], "a run"), (archive, "an archive"), (archive[:8], "an archive")):
            for name in ("packed", "packed.safetensors"):
                write(self.path(name), content)
                self.fails(USAGE, rf": {name}: is packed already: it begins as {kind} does \(--bytes packs it ",
                           "pack", "--force", "--rm", name, "out")
                self.assertEqual(read(self.path(name)), content)
            self.fails(USAGE, "is packed already", "pack", "-", "out", stdin=content)
            self.assertFalse(os.path.exists(self.path("out")))
            self.good("pack", "--bytes", write(self.path("packed"), content), "again")
            self.assertEqual(self.good("unpack", "again", "-"), content)
            os.remove(self.path("again"))
        for content in (run[:3], archive[:7], b"K" + archive):
            self.good("pack", "--force", write(self.path("packed"), content), "out")

    def test_both_inputs_standard_input(self):
        self.fails(USAGE, "standard input", "verify", "-", "-")


class Inspect(HostTest):
    def test_json(self):
        for name in json.loads(read(data("manifest.json"))):
            with self.subTest(name=name):
                content, raw = read(data(name + ".k3h")), read(data(name + ".raw"))
                facts = json.loads(self.good("inspect", "--json", data(name + ".k3h")))
                run = Run(content)
                self.assertEqual(facts["file"], data(name + ".k3h"))
                self.assertEqual(facts["version"], 1)
                self.assertEqual(facts["raw_bytes"], len(raw))
                self.assertEqual(facts["run_bytes"], len(content))
                self.assertEqual(facts["nstripes"], run.nstripes)
                self.assertEqual(bytes(facts["codelen"]), run.codelen)
                self.assertEqual(facts["huf_bytes"], sum(stripe["huf_bytes"] for stripe in run.stripes))
                self.assertEqual(facts["pad"], sum(stripe["pad"] for stripe in run.stripes))
                self.assertEqual(facts["indexed_stripes"], 0)
                self.assertEqual(len(facts["stripes"]), run.nstripes)
                for got, want in zip(facts["stripes"], run.stripes):
                    for key in ("offset", "raw_bytes", "huf_bytes", "pad"):
                        self.assertEqual(got[key], want[key])
                    self.assertEqual(got["raw_plane_bytes"], want["filler"] - want["raw_plane"])
                    self.assertFalse(got["indexed"])
                self.assertAlmostEqual(facts["ratio"], len(content) / len(raw), places=4)
                self.assertLessEqual(facts["entropy_bits"], facts["code_bits"] + 1e-6)
                self.assertLessEqual(facts["entropy_bound"], facts["ratio"])

    def test_entropy_bound(self):
        """Of one stripe of 16 equally frequent symbols: 4 bits of 8 in one half, so 3/4."""
        content = b"".join(bytes([17 * i % 256, i % 16]) for i in range(16000))
        write(self.path("run"), self.good("pack", "-", "-", stdin=content))
        facts = json.loads(self.good("inspect", "--json", "run"))
        self.assertAlmostEqual(facts["entropy_bits"], 4, places=6)
        self.assertAlmostEqual(facts["code_bits"], 4, places=6)
        self.assertAlmostEqual(facts["entropy_bound"], 0.75, places=6)

    def test_json_of_an_index(self):
        content = generate(50000)
        self.pack(content, "--block-log2", 12, "--stripe-size", 20000)
        facts = json.loads(self.good("inspect", "--json", "run"))
        self.assertEqual(facts["indexed_stripes"], 3)
        self.assertEqual(facts["blocks"], 3 + 3 + 2)
        self.assertEqual([(s["indexed"], s["nblocks"], s["block_log2"], s["index_bytes"]) for s in facts["stripes"]],
                         [(True, 3, 12, 40), (True, 3, 12, 40), (True, 2, 12, 32)])
        self.assertEqual(facts["index_bytes"], 40 + 40 + 32)

    def test_json_of_blocks_larger_than_the_stripe(self):
        for log2 in (12, 17, 20):
            self.pack(generate(1000), "--block-log2", log2)
            (stripe,) = json.loads(self.good("inspect", "--json", "run"))["stripes"]
            self.assertEqual((stripe["nblocks"], stripe["block_log2"], stripe["index_bytes"]), (1, log2, 24))

    def test_json_of_an_empty_run(self):
        facts = json.loads(self.good("inspect", "--json", "-", stdin=self.good("pack", "-", "-")))
        self.assertEqual((facts["raw_bytes"], facts["run_bytes"], facts["nstripes"], facts["stripes"]), (0, 288, 0, []))

    def test_text(self):
        text = self.good("inspect", data("k3_stripes_with_filler.k3h")).decode()
        for pattern in (r"(?m)^raw bytes +200000$", r"(?m)^run bytes +137983$", r"(?m)^ratio +0\.68991$",
                        r"(?m)^entropy bound +0\.670\d\d ", r"(?m)^stripes +4$", r"(?m)^block index +none$",
                        r"(?m)^ +3 +135608 +3392 +626 +1696 +37 +0 +- +-$"):
            self.assertRegex(text, pattern)

    def test_text_of_an_index(self):
        self.pack(generate(50000), "--block-log2", 12, "--stripe-size", 20000)
        text = self.good("inspect", "run").decode()
        self.assertRegex(text, r"(?m)^block index +in 3 of 3 stripes, 8 blocks, 112 bytes$")
        self.assertRegex(text, r"(?m)^ +2 +\d+ +10000 +\d+ +5000 +32 +32 +12 +2$")

    def test_strange_names(self):
        name = "line\nbreak \x1b[31m"
        write(self.path(name), read(data("two_bytes.k3h"))[:-1])
        done = self.tool("verify", name)
        self.assertEqual(done.returncode, CORRUPT)
        self.assertTrue(re.fullmatch(rb"k3huf_host: [\x20-\x7e]+\n", done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main()
