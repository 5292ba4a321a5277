#!/usr/bin/env python3
"""Whole-program tests of k3huf_host plan: its arithmetic against the formulas, what it measures, what it refuses; and
of bench, as far as figures that nobody can know beforehand can be tested.

Environment and habits are those of test_host.py.
"""
import json
import math
import os
import re
import resource
import struct
import subprocess
import unittest

import safetensors_file as st
from test_host import CORRUPT, IO, OK, TIMEOUT, TOOL, USAGE, HostTest, Run, data, generate, read, write

WEIGHTS = data("silero_vad_v6.bf16")
RUN = data("k3_three_stripes.k3h")


class PlanTest(HostTest):
    def plan(self, *arguments):
        return json.loads(self.good("plan", "--json", *arguments))

    def ledger(self, raw_bytes, ratio, drive, cores, decode):
        """The formulas, once more and from scratch."""
        gigabytes = raw_bytes / 1e9
        seconds = {"raw": gigabytes / drive, "drive": ratio * gigabytes / drive,
                   "decode": gigabytes / (cores * decode)}
        seconds["compressed"] = max(seconds["drive"], seconds["decode"])
        return seconds

    def check(self, file, raw_bytes, ratio, drive, cores, decode):
        """One plan with a given decode rate. Returns what it printed."""
        got = self.plan("--drive", drive, "--cores", cores, "--decode", decode, file)
        seconds = self.ledger(raw_bytes, ratio, drive, cores, decode)
        self.assertEqual(got["raw_bytes"], raw_bytes)
        self.assertAlmostEqual(got["ratio"], ratio, places=7)
        for name, value in seconds.items():
            self.assertAlmostEqual(got["seconds_" + name] / value, 1, places=6, msg=name)
        self.assertAlmostEqual(got["speed_up"], seconds["raw"] / seconds["compressed"], places=6)
        self.assertEqual(got["limit"], "drive" if seconds["drive"] >= seconds["decode"] else "decode")
        self.assertEqual((got["decode_gb_s_per_core"], got["decode_source"]), (decode, "given"))
        if ratio < 1:
            self.assertAlmostEqual(got["break_even_gb_s_per_core"], drive / cores, places=6)
            self.assertEqual(got["break_even_cores"], math.ceil(drive / decode))
            self.assertEqual(got["full_gain_cores"], math.ceil(drive / (ratio * decode)))
        else:
            self.assertNotIn("break_even_cores", got)
        return got


class PlanLedger(PlanTest):
    def test_run(self):
        content = read(RUN)
        run = Run(content)
        ratio = run.size / run.raw_bytes
        self.assertLess(ratio, 0.7)
        few = self.check(RUN, run.raw_bytes, ratio, 8.0, 4, 1.0)  # half of what break-even needs
        self.assertEqual((few["kind"], few["limit"], few["speed_up"]), ("run", "decode", 0.5))
        self.assertEqual((few["break_even_cores"], few["break_even_gb_s_per_core"]), (8, 2.0))
        self.assertEqual(few["verdict"],
                         "Compression does not pay: a pass takes 2.00 times as long as raw, because 4 cores decode "
                         "4.00 GB/s and the drive reads 8.00; 8 cores break even.")
        even = self.check(RUN, run.raw_bytes, ratio, 8.0, 8, 1.0)
        self.assertRegex(even["verdict"], r"\ACompression breaks even: .* with 12 cores it would take 0\.69 of ")
        some = self.check(RUN, run.raw_bytes, ratio, 8.0, 10, 1.0)
        self.assertEqual(some["verdict"], "Compression pays: a pass takes 0.80 of its time raw, and decoding is the "
                                          "limit; with 12 cores it would take 0.69.")
        many = self.check(RUN, run.raw_bytes, ratio, 8.0, 16, 1.0)
        self.assertEqual(many["limit"], "drive")
        self.assertEqual(many["verdict"], "Compression pays: a pass takes 0.69 of its time raw, and the drive is the "
                                          "limit; 12 of 16 cores would do.")
        # To two decimals as long as raw: nobody is told that it pays, or that it does not.
        near = self.check(RUN, run.raw_bytes, ratio, 8.0, 8, 1.004)
        self.assertRegex(near["verdict"], r"\ACompression breaks even: .* decoding is the limit; with 12 cores ")
        near = self.check(RUN, run.raw_bytes, ratio, 8.0, 8, 0.996)
        self.assertRegex(near["verdict"], r"\ACompression breaks even: .* decoding is the limit; with 12 cores ")
        near = self.check(RUN, run.raw_bytes, ratio, 8.0, 8, 1.0055)
        self.assertRegex(near["verdict"], r"\ACompression pays: a pass takes 0\.99 of its time raw, and decoding ")
        near = self.check(RUN, run.raw_bytes, ratio, 8.0, 8, 0.9945)
        self.assertRegex(near["verdict"], r"\ACompression does not pay: a pass takes 1\.01 times as long as raw")
        one = self.check(RUN, run.raw_bytes, ratio, 0.25, 1, 2.5)
        self.assertIn("1 of 1 core would do", one["verdict"])

    def test_raw(self):
        """The ratio is that of the run which pack makes, index included."""
        content = read(WEIGHTS)
        packed = self.pack(content)
        got = self.check(WEIGHTS, len(content), len(packed) / len(content), 7.5, 6, 1.75)
        self.assertEqual((got["kind"], got["indexed"], got["sampled_bytes"]), ("raw", True, len(content)))

    def test_incompressible(self):
        file = data("random_bytes_odd_length.raw")
        content = read(file)
        packed = self.pack(content)
        self.assertGreater(len(packed), len(content))
        got = self.check(file, len(content), len(packed) / len(content), 1.0, 64, 100.0)
        self.assertEqual(got["verdict"], "Compression does not pay: the run is not smaller than the weights.")

    def test_hardly_smaller(self):
        """A run whose ratio is 1.00, but less than 1."""
        content = bytes(byte for i in range(200000) for byte in (i % 256, i % 245))
        file = write(self.path("nearly"), content)
        self.good("pack", file, "nearly.k3h")
        packed = os.path.getsize(self.path("nearly.k3h"))
        self.assertTrue(0.995 <= packed / len(content) < 1, packed / len(content))
        got = self.check(file, len(content), packed / len(content), 1.0, 64, 100.0)
        self.assertEqual(got["verdict"], "Compression breaks even: a pass takes as long as raw, and the drive is the "
                                         "limit: the run is hardly smaller than the weights.")

    def test_filler_is_read_too(self):
        file = data("k3_stripes_with_filler.k3h")
        run = Run(read(file))
        self.assertGreater(sum(stripe["pad"] for stripe in run.stripes), 0)
        self.check(file, run.raw_bytes, run.size / run.raw_bytes, 4.0, 4, 1.25)

    def test_text(self):
        text = self.good("plan", "--drive", 8, "--cores", 10, "--decode", "1", RUN).decode()
        self.assertEqual(len(text.splitlines()), 9)
        for pattern in (r"run of 195831 raw bytes, ratio 0\.68921\n", r"\ndrive +8\.000 GB/s\n",
                        r"\ndecode +1\.000 GB/s a core, given; 10 cores, 10\.000 GB/s\n", r"\nlimit +decode\n",
                        r"\nbreak-even +0\.800 GB/s on each of 10, or 8 cores as fast as these\n",
                        r"\ncores for the full gain +12\n", r"\nCompression pays: [^\n]+\.\n\Z"):
            self.assertRegex(text, pattern)


class PlanMeasured(PlanTest):
    """A rate that is measured can be anything positive, but everything else must follow from it."""

    def test_measured(self):
        plain, indexed = self.path("plain"), self.path("indexed")
        self.good("pack", "--no-index", WEIGHTS, plain)
        self.good("pack", WEIGHTS, indexed)
        for file, is_indexed in ((WEIGHTS, True), (plain, False), (indexed, True), (RUN, False)):
            got = self.plan("--drive", "3", "--cores", "2", file)
            self.assertEqual((got["indexed"], got["decode_source"]), (is_indexed, "measured"))
            decode = got["decode_gb_s_per_core"]
            self.assertGreater(decode, 0)
            seconds = self.ledger(got["raw_bytes"], got["ratio"], 3, 2, decode)
            for name, value in seconds.items():
                self.assertAlmostEqual(got["seconds_" + name] / value, 1, places=5, msg=name)
        text = self.good("plan", "--drive", "3", "--cores", "2", plain).decode()
        self.assertIn("measured here, no index;", text)

    def test_small(self):
        """One byte, and sizes around it: no symbol, no index, still an answer."""
        for size in (1, 2, 3, 4, 5):
            file = write(self.path("small"), generate(size))
            got = self.plan("--drive", "1", "--cores", "1", file)
            self.assertEqual((got["raw_bytes"], got["indexed"]), (size, size > 1))
            self.assertGreater(got["ratio"], 1)

    def test_filler(self):
        """Behind the index or without one, as much as a stripe can have: none of it is read."""
        filler = 0xFFFFFFFF
        for options in ([], ["--no-index"]):
            self.good("pack", "--force", *options, WEIGHTS, "run")
            run = bytearray(read(self.path("run")))
            expected = self.plan("--drive", "1", "--cores", "1", "run")
            pad = struct.unpack_from("<I", run, 288 + 12)[0]
            struct.pack_into("<I", run, 288 + 12, filler)
            write(self.path("run"), run)
            os.truncate(self.path("run"), len(run) - pad + filler)
            got = self.plan("--drive", "1", "--cores", "1", "run")
            self.assertAlmostEqual(got["ratio"], (len(run) - pad + filler) / got["raw_bytes"], places=4)
            for name in ("raw_bytes", "sampled_bytes", "indexed"):
                self.assertEqual(got[name], expected[name])
            if os.environ.get("K3HUF_MEMORY"):
                limit = 64 << 20
                done = subprocess.run([*TOOL, "plan", "--drive", "1", "--cores", "1", self.path("run")],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
                self.assertEqual((done.returncode, done.stderr), (OK, b""))

    def test_standard_input(self):
        content = read(WEIGHTS)
        got = json.loads(self.good("plan", "--json", "--drive", "1", "--cores", "1", "--decode", "1", "-",
                                   stdin=content))
        self.assertEqual((got["raw_bytes"], got["file"]), (len(content), "-"))


class PlanRefusals(PlanTest):
    def test_usage(self):
        self.fails(USAGE, "--drive and --cores are needed", "plan", RUN)
        self.fails(USAGE, "--drive and --cores are needed", "plan", "--cores", "2", RUN)
        self.fails(USAGE, "--drive and --cores are needed", "plan", "--drive", "2", RUN)
        self.fails(USAGE, "too few arguments", "plan", "--drive", "2", "--cores", "2")
        self.fails(USAGE, "too many arguments", "plan", "--drive", "2", "--cores", "2", RUN, RUN)
        for rate in ("0", "-1", "1e3", "inf", "nan", "0x10", "1.2.3", "", ".", "2G", "0.0001", "10000000"):
            for option in ("drive", "decode"):
                self.fails(USAGE, "--%s must be GB/s" % option, "plan", "--%s=%s" % (option, rate), RUN)
        for cores in ("0", "1.5", "x", "65537"):
            self.fails(USAGE, "--cores must be", "plan", "--drive", "2", "--cores", cores, RUN)

    def test_files(self):
        options = ("plan", "--drive", "2", "--cores", "2")
        self.fails(IO, "no-such-file", *options, self.path("no-such-file"))
        self.fails(USAGE, "holds no weights", *options, write(self.path("empty"), b""))
        empty_run = self.path("empty-run")
        self.good("pack", write(self.path("nothing"), b""), empty_run)
        self.fails(USAGE, "holds no weights", *options, empty_run)

    def test_models_and_archives(self):
        """Not taken as weights, header and all: a .safetensors file whatever it is called, and an archive."""
        options = ("plan", "--drive", "2", "--cores", "2", "--decode", "1")
        content = st.file([("w", "BF16", [50000], generate(100000))])
        write(self.path("m.safetensors"), content)
        write(self.path("m"), content)
        self.good("pack", "m", "a")
        for name in ("m", "m.safetensors"):
            self.fails(USAGE, rf": {re.escape(name)}: is a model file: plan takes bf16 weights or a run \(pack it: ",
                       *options, name)
            self.fails(USAGE, rf": {re.escape(name)}: is a model file: bench takes bf16 weights \(pack it: ",
                       "bench", "--size", "1K", "--runs", "1", name)
        self.fails(USAGE, r": a: is an archive: plan takes bf16 weights or a run \(unpack --tensor ", *options, "a")
        self.fails(USAGE, "is an archive: plan takes", *options, "-", stdin=read(self.path("a")))
        self.fails(USAGE, r": a: is an archive: bench takes bf16 weights \(unpack --tensor ",
                   "bench", "--size", "1K", "--runs", "1", "a")
        self.fails(USAGE, r"k3h: is a run: bench takes bf16 weights \(unpack ",
                   "bench", "--size", "1K", "--runs", "1", "--json", RUN)
        # What the message says to do.
        self.good("unpack", "--tensor", "w", "a", "weights")
        self.assertEqual(self.plan(*options[1:], "weights")["raw_bytes"], 100000)

    def test_corrupt(self):
        content = read(RUN)
        run = Run(content)
        options = ("plan", "--drive", "2", "--cores", "2")

        def refused(pattern, changed):
            self.fails(CORRUPT, re.escape(self.path("bad")) + ": " + pattern, *options,
                       write(self.path("bad"), changed))

        refused("run header, offset 4: ", content[:4] + b"\2" + content[5:])
        second = run.stripes[1]["offset"]
        refused("stripe 1, offset %d: " % second, content[:second] + b"X" + content[second + 1:])
        refused("stripe 2, offset %d: the input ends" % (len(content) - 1), content[:-1])
        refused("stripe 1, offset %d: the input ends" % second, content[:second + 7])
        refused("run header, offset 0: the input ends", content[:100])
        # Damage in the part that is decoded for its rate.
        plane = run.stripes[0]["offset"] + 16
        refused("stripe 0, offset ", content[:plane] + b"\xff" * 64 + content[plane + 64:])


class Bench(HostTest):
    ROWS = ["memcpy", "original", "zstd", "one_stripe", "stripes", "indexed", "indexed_crc", "state_machine",
            "indexed_2", "indexed_crc_2", "pack", "zstd_pack"]

    def check_section(self, section, name, raw_bytes):
        self.assertEqual((section["data"], section["raw_bytes"]), (name, raw_bytes))
        self.assertEqual([row["name"] for row in section["rows"]], self.ROWS)
        for row in section["rows"]:
            rate = row["gb_s"]
            self.assertTrue(0 < rate["min"] <= rate["median"] <= rate["max"], row)
            self.assertGreaterEqual(row["passes"], 1)
        for pair in section["ratios"]:
            ratio = pair["ratio"]
            self.assertTrue(0 < ratio["min"] <= ratio["median"] <= ratio["max"], pair)
            self.assertIn(pair["of"], self.ROWS)
            self.assertIn(pair["to"], self.ROWS)

    def test_sections(self):
        size = 70001
        got = json.loads(self.good("bench", "--json", "--runs", "1", "--size", size, WEIGHTS))
        self.assertEqual((got["runs"], got["time"], len(got["sections"])), (1, "wall", 2))
        made, weights = got["sections"]
        self.check_section(made, "K3 histogram", size)
        self.check_section(weights, WEIGHTS, size)
        # Sizes are those of the runs that pack makes.
        self.assertEqual(weights["run_bytes"], len(self.pack(read(WEIGHTS)[:size], "--no-index")))
        self.assertEqual(weights["indexed_bytes"], len(self.pack(read(WEIGHTS)[:size])))
        # libzstd codes the same symbols with about the same code: it must have found nothing else to save.
        made_codes = made["zstd_coded_bytes"] / made["coded_bytes"]
        self.assertTrue(0.98 < made_codes < 1.05, made_codes)

    def test_small(self):
        """The rows check what they make; sizes at which lanes, planes or frames are empty must not trip any."""
        for size in (1, 2, 3, 7, 9, 33):
            got = json.loads(self.good("bench", "--json", "--runs", "1", "--size", size))
            self.check_section(got["sections"][0], "K3 histogram", size)

    def test_cpu_time(self):
        got = json.loads(self.good("bench", "--json", "--runs", "2", "--size", "4K", "--cpu-time"))
        self.assertEqual(got["time"], "cpu")
        self.check_section(got["sections"][0], "K3 histogram", 4096)

    def test_one_run_has_no_spread(self):
        got = json.loads(self.good("bench", "--json", "--runs", "1", "--size", "4K"))
        rates = {row["name"]: row["gb_s"]["median"] for row in got["sections"][0]["rows"]}
        for pair in got["sections"][0]["ratios"]:
            self.assertAlmostEqual(pair["ratio"]["median"] / (rates[pair["of"]] / rates[pair["to"]]), 1, places=5)

    def test_variants(self):
        """Each instruction set variant that is here, by itself and all in turn."""
        got = json.loads(self.good("bench", "--json", "--runs", "1", "--size", "5001", "--isa", "all"))
        names = [section["isa"] for section in got["sections"]]
        self.assertEqual((names[-1], len(set(names))), ("baseline", len(names)))
        for section, name in zip(got["sections"], names):
            self.check_section(section, "K3 histogram", 5001)
            one = json.loads(self.good("bench", "--json", "--runs", "1", "--size", "5001", "--isa", name))
            self.assertEqual([section["isa"] for section in one["sections"]], [name])
        self.fails(USAGE, "--isa must be all or a variant", "bench", "--isa", "no-such-variant")

    def test_text(self):
        text = self.good("bench", "--runs", "1", "--size", "4K", WEIGHTS).decode()
        self.assertEqual(len(re.findall("^K3 histogram: 4096 bytes, instruction set ", text, re.MULTILINE)), 1)
        self.assertEqual(len(re.findall("^" + re.escape(WEIGHTS) + ": 4096 bytes, ", text, re.MULTILINE)), 1)
        rates = re.findall(r"^indexed, CRC on +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+$", text, re.MULTILINE)
        ratios = re.findall(r"^CRC on : CRC off +[0-9.]+ +[0-9.]+ +[0-9.]+$", text, re.MULTILINE)
        self.assertEqual((len(rates), len(ratios)), (2, 2))

    def test_refusals(self):
        self.fails(IO, "no-such-file", "bench", "--size", "1K", self.path("no-such-file"))
        self.fails(USAGE, "is empty", "bench", "--size", "16", "--runs", "1", "--json", write(self.path("empty"), b""))


if __name__ == "__main__":
    unittest.main()
