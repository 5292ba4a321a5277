#!/usr/bin/env python3
"""Tests of the bare-metal port's platform by the image virt_machine (machine.c), which does the checking.

The build sets K3HUF_RUN (port/qemu-virt/run) and K3HUF_IMAGE.
"""
import os
import random
import re
import subprocess
import tempfile
import unittest

RUN, IMAGE = os.environ["K3HUF_RUN"], os.environ["K3HUF_IMAGE"]
TIMEOUT = 50  # seconds for one start of the machine; none takes more than a few


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="k3huf-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.window = self.file("window", 1 << 20)

    def file(self, name, size):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(random.Random(name).randbytes(size))
        return path

    def run_image(self, *arguments, options=(), code=0):
        # QEMU 7.2 itself now and then dies by a signal when its NVMe controller is reset with reads under way, as the
        # drive's test does on purpose: about once in twenty. That says nothing of the image, so it is run again; what the
        # image says, an exit code, counts at once.
        for _ in range(4):
            done = subprocess.run([RUN, "--window", self.window, *options, IMAGE, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False)
            output = done.stdout.decode()
            print(output)
            if done.returncode >= 0:
                break
            print(f"QEMU died by signal {-done.returncode}")
        self.assertEqual(done.returncode, code, output)
        return output


class Drive(Machine):
    def check(self, size, *options, transfer=262144):
        drive = self.file("drive", size)
        self.run_image("drive", drive, str(transfer), options=["--drive", drive, *options])

    def test_512(self):
        self.check(4 << 20)

    def test_4096(self):
        self.check(4 << 20, "--lba", "4096")

    def test_transfer_limits(self):
        """What the controller says it takes at once, and the driver's own limit where it says nothing."""
        self.check(4 << 20, "--mdts", "2", transfer=16384)
        self.check(4 << 20, "--mdts", "0", "--lba", "4096")

    def test_el2(self):
        self.check(2 << 20, "--el2", "--cpu", "neoverse-n1", "--smp", "2")

    def test_unreadable_block(self):
        drive = self.file("drive", 1 << 20)
        self.run_image("bad", "100", options=["--drive", drive, "--bad", "100"])
        # Sector 103 lies in block 12 of 4096 bytes.
        self.run_image("bad", "12", options=["--drive", drive, "--lba", "4096", "--bad", "103"])

    def test_absent(self):
        self.assertIn("drive: none", self.run_image("absent"))

    def test_unusable(self):
        """Blocks larger than the engine's: as good as no drive."""
        output = self.run_image("absent", options=["--drive", self.file("drive", 1 << 20), "--lba", "8192"])
        self.assertIn("drive: cannot be used: the drive or its controller failed", output)


class Window(Machine):
    def test_small(self):
        self.run_image("window", self.window)

    def test_largest(self):
        self.window = os.path.join(self.folder, "large")
        with open(self.window, "wb") as file:
            file.truncate(256 << 20)
        self.run_image("window", self.window, options=["--drive", self.file("drive", 1 << 20)])

    def test_too_large(self):
        with open(self.window, "wb") as file:
            file.truncate(512 << 20)
        self.assertIn("window: its 536870912 bytes do not fit", self.run_image("window", self.window, code=1))


class Cores(Machine):
    def test_numbers(self):
        for cores in 1, 2, 4:
            with self.subTest(cores=cores):
                self.run_image("cores", str(cores), options=["--smp", str(cores)])

    def test_started_at_el2(self):
        for cpu in "cortex-a72", "max":
            with self.subTest(cpu=cpu):
                self.run_image("cores", "3", options=["--smp", "3", "--el2", "--cpu", cpu])

    def test_overflow(self):
        output = self.run_image("overflow", options=["--smp", "2"], code=100)
        self.assertIn("data abort, stack overflow into the guard page", output)
        # The very page below the stack, which is the third of what the second core has (cores.c).
        symbols = subprocess.run(["aarch64-linux-gnu-nm", IMAGE], stdout=subprocess.PIPE, check=True).stdout.decode()
        start = int(re.search(r"^([0-9a-f]+) \w __core_stacks_start$", symbols, re.M)[1], 16)
        far = int(re.search(r"FAR 0x([0-9a-f]+)", output)[1], 16)
        self.assertEqual((far - start) // 4096, 2)


if __name__ == "__main__":
    unittest.main()
