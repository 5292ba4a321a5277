"""The bare-metal firmware in QEMU, and the host's side of its job protocol in Python, for the tests in this folder.

Board starts and stops a machine. Host is a host process's side of the window of host memory, written from
port/PROTOCOL.md alone, so that tests can also do what no well-behaved host does. The build sets K3HUF_RUN
(port/qemu-virt/run), K3HUF_FIRMWARE (the image), K3HUF_TOOL (k3huf_host) and K3HUF_GEN (k3gen).
"""
import json
import mmap
import os
import socket
import struct
import subprocess
import tempfile
import time
import unittest

RUN, FIRMWARE = os.environ["K3HUF_RUN"], os.environ["K3HUF_FIRMWARE"]
TOOL, GEN = os.environ["K3HUF_TOOL"], os.environ["K3HUF_GEN"]

READY, ATTACHED, STOPPED = 1, 2, 3
DECODE, LIST, CANCEL, PART, COPY = 1, 2, 3, 4, 5
NOWHERE = 2**32 - 1

# Statuses of completions: the core's (core/k3huf.h) and the engine's (port/PROTOCOL.md).
OK = 0
STATUSES = """ARGUMENT TRUNCATED RUN_MAGIC RUN_VERSION RUN_STRIPES CODE_LENGTH CODE_OVERFULL CODE_EMPTY STRIPE_MAGIC
    STRIPE_RAW STRIPE_CODED CODE_WORD CODED_SHORT CODED_LONG INDEX_SIZE INDEX_VERSION INDEX_LOG2 INDEX_FLAGS INDEX_COUNT
    INDEX_CRC INDEX_OFFSET INDEX_MEMORY BLOCK_END BLOCK_CRC"""
JOB_STATUSES = """CONTROL RING COMPLETIONS KIND OPTIONS SOURCE DESTINATION OVERLAP DESTINATION_SMALL NOT_FOUND CANCELLED
    BLOCK_SIZE NO_INDEX TABLE ABSENT READ READ_TIMEOUT DRIVE WINDOW PART"""
STATUS = {name: 3 + number for number, name in enumerate(STATUSES.split())}
STATUS.update({name: 0x100 + number for number, name in enumerate(JOB_STATUSES.split())})
NAME = {number: name for name, number in STATUS.items()} | {OK: "OK"}

PATTERN = bytes((i * 151 + 43) % 256 for i in range(4099)) * 17  # prime period: no offset looks like another


def pattern(size):
    """What a window is filled with before a test."""
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def generate(size, seed):
    return subprocess.run([GEN, str(size), str(seed)], stdout=subprocess.PIPE, check=True, timeout=60).stdout


class Run:
    """A packed run and where its parts are (core/FORMAT.md)."""

    def __init__(self, content):
        self.content = content
        self.raw_bytes, self.nstripes = struct.unpack_from("<QI", content, 8)
        self.stripes = []
        at = 288
        for number in range(self.nstripes):
            magic, raw_bytes, huf_bytes, pad = struct.unpack_from("<4I", content, at)
            assert magic == 0x4655484B ^ number
            coded = at + 16
            raw = coded + huf_bytes
            filler = raw + raw_bytes - raw_bytes // 2
            self.stripes.append({"header": at, "coded": coded, "raw": raw, "filler": filler, "raw_bytes": raw_bytes,
                                 "huf_bytes": huf_bytes, "pad": pad})
            at = filler + pad
        assert at == len(content)

    def block_bit(self, stripe, block):
        return struct.unpack_from("<I", self.content, self.stripes[stripe]["filler"] + 16 + 8 * block)[0]


class Case(unittest.TestCase):
    machine = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="k3huf-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def pack(self, name, raw, *options):
        """Pack `raw`; the run."""
        source = self.write(name + ".raw", raw)
        self.tool("pack", *options, source, self.path(name + ".k3h"))
        with open(self.path(name + ".k3h"), "rb") as file:
            return Run(file.read())

    def tool(self, *arguments, code=0, timeout=120):
        done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                              check=False)
        text = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, f"k3huf_host {' '.join(arguments)}: {text}")
        return done.stdout.decode() if code == 0 else text

    def board(self, **options):
        """A machine that is ready; the one before, if any, is gone."""
        if self.machine is not None:
            self.machine.kill()
        self.machine = Board(self.folder, **options)
        self.addCleanup(self.machine.kill)
        self.machine.wait_ready()
        return self.machine


class Board:
    """A machine that runs the firmware."""

    def __init__(self, folder, *, drive=None, window=1 << 20, cores=2, lba=512, options=(),
                 arguments=()):
        self.window_path = os.path.join(folder, "window")
        with open(self.window_path, "wb") as file:
            file.write(pattern(window))
        with open(self.window_path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), window)
        # The firmware's area must not look alive before the firmware is.
        self.memory[0:4096] = bytes(4096)
        command = [RUN, "--smp", str(cores), "--window", self.window_path]
        if drive is not None:
            command += ["--drive", drive, "--lba", str(lba)]
        self.log_path = os.path.join(folder, "firmware.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([*command, *options, FIRMWARE, *arguments], stdout=log, stderr=subprocess.STDOUT)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def word(self, offset):
        """An aligned u32 of the window by one load."""
        with memoryview(self.memory) as view, view.cast("I") as words:
            return words[offset // 4]

    def set_word(self, offset, value):
        with memoryview(self.memory) as view, view.cast("I") as words:
            words[offset // 4] = value

    def wait(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the machine ended while waiting for {what}:\n{self.log()}")
            if time.monotonic() > end:
                raise AssertionError(f"no {what} in {seconds} s:\n{self.log()}")
            time.sleep(0.002)

    def wait_ready(self):
        self.wait("firmware", lambda: self.word(64) == 0x4A48334B and self.word(72) == READY)

    def end(self, seconds=60):
        """Wait for the machine's end; its exit code."""
        return self.process.wait(seconds)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.memory.close()  # again is allowed


class Control:
    """QEMU's own control socket (run --control)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.lines.readline()
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            answer = json.loads(self.lines.readline())
            if "event" not in answer:
                assert "return" in answer, answer
                return answer["return"]

    def close(self):
        self.lines.close()
        self.socket.close()


class Job:
    """What one job came to; `status` is a name."""

    def __init__(self, entry):
        (self.id, status, self.retries, self.stripe, self.block, self.offset, self.lba, self.bytes, self.ticks,
         self.storage, self.decode, self.write, self.tick_hz, self.reads, self.groups, self.ahead,
         self.ahead_of, self.crc, self.read) = struct.unpack_from("<Q4I8Q2IQ2IQ", entry)
        self.status = NAME.get(status, hex(status))

    def place(self):
        return self.status, self.stripe, self.block, self.offset


class Host:
    """A session with the firmware. The rings lie behind the control block; `data` is the first byte behind them."""

    session = 0x100

    def __init__(self, board, *, entries=16, completions=16, expect=ATTACHED):
        self.board, self.entries, self.completions = board, entries, completions
        self.sq = 4096
        self.cq = self.sq + 64 * entries
        self.data = self.cq + 128 * completions
        self.submitted = self.taken = 0
        memory = board.memory
        memory[self.sq:self.data] = bytes(self.data - self.sq)
        Host.session += 1
        self.session = Host.session
        struct.pack_into("<2I3Q4I", memory, 0, 0x4A48334B, 1, len(memory), self.sq, self.cq, entries, completions, 0, 0)
        board.set_word(48, self.session)
        board.wait("session", lambda: board.word(64 + 16) == self.session)
        assert board.word(72) == expect, f"state {board.word(72)}, status {board.word(76):#x}"

    def submit(self, *, offset, run_bytes, destination, destination_bytes, ident=None, lba=0, kind=DECODE, options=0,
               last=0):
        """Of a PART, `offset` is the first raw byte and `last`, the last field, the run's own offset."""
        ident = self.submitted if ident is None else ident
        at = self.sq + 64 * (self.submitted % self.entries)
        struct.pack_into("<Q2I5QI", self.board.memory, at, ident, kind, options, lba, offset, run_bytes, destination,
                         destination_bytes, last)
        self.board.set_word(at + 60, 1 - self.submitted // self.entries % 2)
        self.submitted += 1

    def ready(self):
        at = self.cq + 128 * (self.taken % self.completions)
        return self.board.word(at + 124) == 1 - self.taken // self.completions % 2

    def complete(self, seconds=60):
        """Wait for the next completion."""
        self.board.wait("completion", self.ready, seconds)
        return self.take()

    def take(self):
        """The next completion, which must be there."""
        assert self.ready(), f"no completion {self.taken} in the ring"
        at = self.cq + 128 * (self.taken % self.completions)
        job = Job(self.board.memory[at:at + 128])
        self.taken += 1
        self.board.set_word(40, self.taken)
        return job

    def run(self, seconds=60, **job):
        self.submit(**job)
        return self.complete(seconds)

    def shut_down(self):
        self.board.set_word(44, 1)
