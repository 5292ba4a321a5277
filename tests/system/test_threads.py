#!/usr/bin/env python3
"""Whole-program tests of what must not change with the number of threads or the instruction set, of the memory that
k3huf_host may use, and of the command index.

Environment and habits are those of test_host.py.
"""
import os
import re
import resource
import struct
import subprocess
import unittest

from test_host import CORRUPT, IO, OK, TIMEOUT, TOOL, USAGE, HostTest, Run, data, generate, read, write

THREADS = (1, 2, 3, 7)
INTERNAL = 5
PART = 512 << 10  # raw bytes that one thread works on at a time


class Threads(HostTest):
    def test_packing_does_not_depend_on_threads(self):
        content = generate(5 * PART + 12345)
        for options in ((), ("--no-index",), ("--block-log2", 12), ("--block-log2", 20),
                        ("--stripe-size", PART), ("--stripe-size", 2 * PART + 1), ("--stripe-size", 99999),
                        ("--no-index", "--stripe-size", PART - 1)):
            write(self.path("in"), content)
            packed = set()
            for threads in THREADS:
                self.good("pack", "--force", "-T", threads, *options, "in", "out")
                packed.add(read(self.path("out")))
            packed.add(self.good("pack", "--threads", 3, *options, "-", "-", stdin=content))
            with self.subTest(options=options):
                self.assertEqual(len(packed), 1)
            for threads in THREADS:
                with self.subTest(options=options, threads=threads):
                    self.good("unpack", "--force", "-T", threads, "out", "back")
                    self.assertEqual(read(self.path("back")), content)
                    self.good("verify", "-T", threads, "out", "in")
                    run = read(self.path("out"))
                    self.assertEqual(self.good("unpack", "-T", threads, "-", "-", stdin=run), content)

    def test_indexed_and_plain_stripes_in_one_run(self):
        """Stripes of either kind, in turn: made from two runs with one code."""
        content = generate(9 * 70000 + 1)
        plain = self.pack(content, "--no-index", "--stripe-size", 70000)
        indexed = self.pack(content, "--block-log2", 12, "--stripe-size", 70000)
        ends = [[stripe["offset"] for stripe in Run(run).stripes] + [len(run)] for run in (plain, indexed)]
        mixed = plain[:288]
        for number in range(10):
            run, at = ((plain, ends[0]), (indexed, ends[1]))[number // 2 % 2]
            mixed += run[at[number]:at[number + 1]]
        write(self.path("mixed"), mixed)
        for threads in THREADS:
            self.good("verify", "-T", threads, "mixed", "original")
            self.assertEqual(self.good("unpack", "-T", threads, "mixed", "-"), content)
            self.assertEqual(self.good("unpack", "-T", threads, "-", "-", stdin=mixed), content)

    def outcomes(self, run):
        """Everything that unpacking to a stream shows, for all numbers of threads, from a file and from a pipe."""
        write(self.path("bad"), run)
        seen = set()
        for threads in THREADS:
            for source, stdin in (("bad", b""), ("-", run)):
                done = self.tool("unpack", "-T", threads, source, "-", stdin=stdin)
                text = done.stderr.decode().replace("(standard input)", "bad")
                seen.add((done.returncode, re.sub(r"\d+ bytes after", "bytes after", text), done.stdout))
                done = self.tool("verify", "-T", threads, source, stdin=stdin)
                seen.add((done.returncode, re.sub(r"\d+ bytes after", "bytes after",
                                                  done.stderr.decode().replace("(standard input)", "bad")), None))
        return seen

    def first_damage(self, run, pattern, whole):
        """Always the same message; the bytes before the damage, and none after, come out."""
        seen = self.outcomes(run)
        codes, texts, outputs = ({outcome[i] for outcome in seen} for i in range(3))
        self.assertEqual(codes, {CORRUPT})
        self.assertEqual(len(texts), 1, texts)
        self.assertRegex(texts.pop(), r"\Ak3huf_host: bad: " + pattern)
        self.assertEqual(outputs, {None, whole})

    def test_first_damaged_block(self):
        content = generate(4 << 20)
        good = self.pack(content, "--stripe-size", "3M", "--block-log2", 13)
        first, second = Run(good).stripes
        for blocks in ((0, 1, 2), (70, 71, 190), (37, 100, 3 << 6), (191, 255), (192, 193), (255,)):
            with self.subTest(blocks=blocks):
                bad = bytearray(good)
                for block in blocks:
                    stripe, number = (first, block) if block < 192 else (second, block - 192)
                    bad[stripe["raw_plane"] + number * 8192 + 99] ^= 4
                stripe, number = (0, blocks[0]) if blocks[0] < 192 else (1, blocks[0] - 192)
                self.first_damage(bytes(bad), rf"stripe {stripe}, block {number}, offset \d+: ",
                                  content[:blocks[0] * 16384])

    def test_damage_of_several_kinds(self):
        content = generate(3 << 20)
        good = self.pack(content, "--stripe-size", "1M")
        stripes = Run(good).stripes
        second = stripes[1]
        damages = (  # offset, byte to flip, where the message puts it, stripe
            (stripes[2]["offset"], 2, rf"stripe 2, offset {stripes[2]['offset']}: "),
            (second["filler"] + 12, 1, rf"stripe 1, offset {second['filler'] + 12}: "),
            (second["offset"] + 16 + 100, 1, r"stripe 1, block 0, offset \d+: "),
            (second["offset"] + 8, 0xFF, r"stripe 1, "),
        )
        for number, (at, flip, pattern) in enumerate(damages):
            with self.subTest(number=number):
                bad = bytearray(good)
                bad[at] ^= flip
                bad[-1] ^= 1  # more damage behind it
                self.first_damage(bytes(bad), pattern, content[:(2 if number == 0 else 1) << 20])

    def test_first_damaged_stripe_without_an_index(self):
        content = generate(1 << 20)
        good = self.pack(content, "--no-index", "--stripe-size", 100001)
        for numbers in ((0,), (3, 4), (6, 10), (10,)):
            with self.subTest(numbers=numbers):
                bad = bytearray(good)
                for number in numbers:  # one symbol less than the plane holds codes for
                    stripe = Run(good).stripes[number]
                    bad[stripe["raw_plane"] - 1] ^= 0xFF
                    bad[stripe["raw_plane"] - 2] ^= 0xFF
                seen = self.outcomes(bytes(bad))
                self.assertEqual({outcome[0] for outcome in seen}, {CORRUPT})
                self.assertEqual(len({outcome[1] for outcome in seen}), 1)
                self.assertEqual({outcome[2] for outcome in seen}, {None, content[:numbers[0] * 100001]})

    def test_cut_off(self):
        content = generate(2 << 20)
        good = self.pack(content, "--stripe-size", "1M")
        second = Run(good).stripes[1]
        for end, whole in ((second["offset"] + 7, 1), (second["raw_plane"] + 5, 1), (second["filler"], 1),
                           (second["filler"] + 20, 1), (len(good) - 1, 1)):
            with self.subTest(end=end):
                self.first_damage(good[:end], rf"stripe 1, offset {end}: ", content[:whole << 20])
        self.first_damage(good + b"x", rf"bytes after the end of the run \(offset {len(good)}\)", content)

    def test_cut_off_in_plain_filler(self):
        """The stripe before it is whole, and comes out."""
        run, raw = read(data("k3_stripes_with_filler.k3h")), read(data("k3_stripes_with_filler.raw"))
        self.first_damage(run[:-1], rf"stripe 3, offset {len(run) - 1}: ", raw)

    def test_damage_comes_before_the_cut(self):
        content = generate(1 << 20)
        good = self.pack(content, "--block-log2", 12)
        (stripe,) = Run(good).stripes
        bad = bytearray(good + b"\0")
        bad[stripe["raw_plane"] + 4096 * 3] ^= 1
        self.first_damage(bytes(bad), r"stripe 0, block 3, ", content[:3 * 8192])

    def test_mismatch(self):
        content = generate(3 << 20)
        self.pack(content)
        for at in (0, PART - 1, PART, len(content) - 1):
            other = bytearray(content)
            other[at] ^= 1
            other[-1] ^= 2
            write(self.path("other"), bytes(other))
            texts = {self.tool("verify", "-T", threads, "run", "other").stderr for threads in THREADS}
            self.assertEqual(len(texts), 1)
            self.assertIn(rf"decoded offset {at}:".encode(), texts.pop())

    def test_a_reader_that_goes_away(self):
        self.pack(generate(8 << 20))
        for threads in THREADS:
            process = subprocess.Popen([*TOOL, "unpack", "-T", str(threads), "run", "-"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, cwd=self.folder.name)
            process.stdout.read(10)
            process.stdout.close()
            self.assertRegex(process.stderr.read(), rb"\Ak3huf_host: \(standard output\): [^\n]+\n\Z")
            process.stderr.close()
            self.assertEqual(process.wait(timeout=TIMEOUT), IO)


class InstructionSets(HostTest):
    """Every variant of the decoder and encoder that this processor can run does the same."""

    def names(self):
        text = self.good("--version").decode()
        names = re.search(r"chooses another: ([^)]+)\)", text).group(1).split(", ")
        self.assertEqual(names[-1], "baseline")
        self.assertIn(f"instruction set: {names[0]} ", text)
        return names

    def tool_with(self, name, *arguments):
        return subprocess.run([*TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "K3HUF_ISA": name}, cwd=self.folder.name, timeout=TIMEOUT)

    def test_all_do_the_same(self):
        content = generate(2 * PART + 777)
        packed = self.pack(content)
        bad = bytearray(packed)
        bad[Run(packed).stripes[0]["raw_plane"] + 99999] ^= 1
        write(self.path("bad"), bytes(bad))
        complaint = self.tool("verify", "bad").stderr
        self.assertIn(b"block 6,", complaint)
        for name in self.names():
            with self.subTest(name=name):
                self.assertIn(f"instruction set: {name} ".encode(), self.tool_with(name, "--version").stdout)
                done = self.tool_with(name, "pack", "--force", "original", "again")
                self.assertEqual((done.returncode, done.stderr), (OK, b""))
                self.assertEqual(read(self.path("again")), packed)
                done = self.tool_with(name, "unpack", "--force", "run", "back")
                self.assertEqual((done.returncode, done.stderr), (OK, b""))
                self.assertEqual(read(self.path("back")), content)
                done = self.tool_with(name, "verify", "bad")
                self.assertEqual((done.returncode, done.stderr), (CORRUPT, complaint))

    def test_unknown_ones_are_refused(self):
        for name in ("", "v9", "V2"):
            done = self.tool_with(name, "verify", data("two_bytes.k3h"))
            self.assertEqual((done.returncode, done.stdout), (USAGE, b""))
            self.assertRegex(done.stderr, rb"\Ak3huf_host: K3HUF_ISA is '\w*', [^\n]+\n\Z")


class Memory(HostTest):
    """Memory is bounded as decode_run.h and pack.h say. The limit is on the data segment: allocations and stacks. Not
    under an emulator or with sanitizers, whose memory counts too."""

    def limited(self, megabytes, *arguments, stdin=b""):
        limit = megabytes << 20
        return subprocess.run([*TOOL, *map(str, arguments)], input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.folder.name, timeout=TIMEOUT,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

    def assert_good(self, done):
        self.assertEqual((done.returncode, done.stderr), (OK, b""))

    def test_indexed(self):
        content = generate(96 << 20)
        write(self.path("in"), content)
        # Per thread three parts (six where there is one) with what becomes of them; to a stream two, and a stripe as
        # coded.
        self.assert_good(self.limited(7 * 10 + 16, "pack", "-T", 7, "in", "run"))
        self.assert_good(self.limited(20 + 8, "pack", "-T", 1, "--force", "in", "run"))
        self.assert_good(self.limited(40 * 4 + 16, "pack", "-T", 40, "--force", "in", "run"))
        done = self.limited(83 + 7 * 7 + 16, "pack", "-T", 7, "in", "-")
        self.assertEqual((done.returncode, done.stdout), (OK, read(self.path("run"))))
        for threads, megabytes in ((1, 10), (2, 10), (7, 32)):
            with self.subTest(threads=threads):
                self.assert_good(self.limited(megabytes, "verify", "-T", threads, "run", "in"))
                self.assert_good(self.limited(megabytes, "unpack", "-T", threads, "--force", "run", "out"))
                self.assertEqual(read(self.path("out")), content)
        # A pipe adds a stripe.
        run = read(self.path("run"))
        self.assert_good(self.limited(24 + 90, "verify", "-T", 7, "-", stdin=run))

    def test_too_little_is_said(self):
        content = generate(64 << 20)
        write(self.path("in"), content)
        self.good("pack", "--no-index", "in", "run")
        for command in (("unpack", "run", "out"), ("verify", "run"), ("pack", "in", "-"), ("index", "run", "out")):
            with self.subTest(command=command):
                done = self.limited(40, *command)
                self.assertEqual(done.returncode, INTERNAL)
                self.assertRegex(done.stderr, rb"\Ak3huf_host: out of memory \(\d+ bytes asked for\)\n\Z")
                self.assertEqual(self.files(), ["in", "run"])
        self.assert_good(self.limited(64 + 64 + 16, "unpack", "run", "out"))
        self.assertEqual(read(self.path("out")), content)

    def test_stripes_without_an_index(self):
        """One thread has one for each lane in memory, as coded and decoded, not all twelve."""
        content = generate(60 << 20)
        write(self.path("in"), content)
        self.good("pack", "--no-index", "--stripe-size", "5M", "in", "run")
        self.assert_good(self.limited(64, "verify", "-T", 1, "run", "in"))

    def test_claims_cost_nothing(self):
        """Headers that promise 64 MiB, with nothing behind them."""
        header = bytearray(read(data("two_symbols.k3h"))[:304])
        struct.pack_into("<QI", header, 8, 64 << 20, 1)
        struct.pack_into("<3I", header, 292, 64 << 20, 4 << 20, 0xFFFFFFFF)
        write(self.path("bad"), bytes(header))
        for source, stdin in (("bad", b""), ("-", bytes(header))):
            done = self.limited(6, "verify", source, stdin=stdin)
            self.assertEqual(done.returncode, CORRUPT, done.stderr)
            self.assertRegex(done.stderr, rb"stripe 0, offset 304: ")


class Index(HostTest):
    def index(self, run, *options):
        write(self.path("old"), run)
        self.good("index", *options, "old", "new")
        new = read(self.path("new"))
        os.remove(self.path("old"))
        os.remove(self.path("new"))
        return new

    def planes(self, content):
        return [content[stripe["offset"] + 16:stripe["filler"]] for stripe in Run(content).stripes]

    def test_an_index_added_is_the_one_that_pack_writes(self):
        content = generate(3 * PART + 5)
        for stripe in (1, 2, 3, 8192, 8193, 8194, 16385, 999999, "64M"):
            data_size = 5000 if isinstance(stripe, int) and stripe < 10 else len(content)
            part = content[:data_size]
            plain = self.pack(part, "--stripe-size", stripe, "--no-index")
            for log2 in (12, 14, 20):
                with self.subTest(stripe=stripe, log2=log2):
                    indexed = self.pack(part, "--stripe-size", stripe, "--block-log2", log2)
                    self.assertEqual(self.index(plain, "--block-log2", log2), indexed)

    def test_it_does_not_depend_on_threads(self):
        plain = self.pack(generate(4 * PART), "--no-index")
        self.assertEqual(len({self.index(plain, "-T", threads) for threads in THREADS}), 1)

    def test_runs_of_the_original_encoder(self):
        for name in ("k3_three_stripes", "k3_stripes_with_filler", "special_values", "two_bytes", "one_symbol",
                     "three_bytes_odd_tail", "deep_tree_limit12"):
            with self.subTest(name=name):
                old = read(data(name + ".k3h"))
                new = self.index(old, "--block-log2", 12)
                self.assertEqual(new[:288], old[:288])
                self.assertEqual(self.planes(new), self.planes(old))
                for stripe in Run(new).stripes:
                    blocks = -(-(stripe["raw_bytes"] // 2) // 4096)
                    self.assertEqual(stripe["pad"], 16 + 8 * blocks if blocks else 0)
                self.good("verify", "-", data(name + ".raw"), stdin=new)

    def test_reserved_bytes_are_kept(self):
        old = bytearray(self.pack(generate(1000), "--no-index"))
        old[276:288] = b"reservedbyte"
        self.assertEqual(self.index(bytes(old))[:288], old[:288])

    def test_another_block_size(self):
        content = generate(200001)
        old = self.pack(content, "--block-log2", 12)
        new = self.index(old)
        self.assertEqual(new, self.pack(content))
        self.assertEqual(self.index(new, "--block-log2", 12), old)

    def test_as_a_filter(self):
        plain = self.pack(generate(300000), "--no-index", "--stripe-size", 70001)
        want = self.index(plain)
        self.assertEqual(self.good("index", "-", "-", stdin=plain), want)
        write(self.path("old"), plain)
        self.assertEqual(self.good("index", "old", "-"), want)

    def test_an_empty_run(self):
        empty = self.pack(b"")
        self.assertEqual(self.index(empty), empty)

    def test_damage_is_refused(self):
        good = self.pack(generate(100000), "--block-log2", 12)
        for name in ("run", "original", "back"):
            os.remove(self.path(name))
        (stripe,) = Run(good).stripes
        bad = bytearray(good)
        bad[stripe["raw_plane"] + 5000] ^= 1
        for run, pattern in ((bytes(bad), r"bad: stripe 0, block 1, "), (good[:-1], r"bad: stripe 0, "),
                             (good + b"x", r"bad: 1 bytes after"), (good[:200], r"bad: run header, "),
                             (b"x" + good, r"bad: run header, offset 0: ")):
            write(self.path("bad"), run)
            self.fails(CORRUPT, pattern, "index", "bad", "out")
            self.assertEqual(self.files(), ["bad"])

    def test_existing_output_is_kept(self):
        write(self.path("out"), b"precious")
        self.fails(IO, r"out: .*exists.*--force", "index", data("two_bytes.k3h"), "out")
        self.assertEqual(read(self.path("out")), b"precious")
        self.good("index", "-f", data("two_bytes.k3h"), "out")
        self.assertGreater(len(read(self.path("out"))), 300)
        self.assertEqual(self.files(), ["out"])

    def test_a_full_device(self):
        self.fails(IO, r"/dev/full: .*No space", "index", data("k3_three_stripes.k3h"), "/dev/full")


if __name__ == "__main__":
    unittest.main()
