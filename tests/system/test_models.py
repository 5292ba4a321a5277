#!/usr/bin/env python3
"""Whole-program tests of directories: sharded models, packed trunks, shares of the work, manifests; and of the tool in a
person's hands, on a terminal.

Environment and habits are those of test_host.py.
"""
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import time
import unittest

import safetensors_file as st
from test_archive import ArchiveTest, noise
from test_host import CORRUPT, IO, MISMATCH, OK, TIMEOUT, TOOL, USAGE, HostTest, data, generate, read, write

MANIFEST = "k3huf-manifest.json"
INDEX = "model.safetensors.index.json"


class ModelTest(ArchiveTest):
    def make_model(self, shards=4, size=60000):
        names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        st.model(self.path("model"), {name: [(f"layers.{i}.w", "BF16", [size], generate(2 * size, i)),
                                             (f"layers.{i}.b", "F32", [10], noise(40, i))]
                                      for i, name in enumerate(names)})
        write(self.path("model/config.json"), b"{}")
        return names

    def contents(self, folder):
        return {name: read(os.path.join(self.path(folder), name)) for name in os.listdir(self.path(folder))}

    def refuses_model(self, code, pattern, folder="model"):
        self.fails(code, pattern, "pack", folder, "out")
        self.assertFalse(os.path.exists(self.path("out")))


class Models(ModelTest):
    def test_sharded(self):
        names = self.make_model()
        text = self.good("pack", "model", "out").decode()
        self.assertRegex(text, r"(?m)^out: 5 of 5 files packed, 0 complete already; \d+ bytes packed to \d+; 1 other file not packed$")
        self.assertRegex(text, rf"(?m)^model/{re.escape(INDEX)}: \d+ bytes packed to \d+, ratio [0-9.]+, verified$")
        self.assertRegex(text, rf"(?m)^model/{re.escape(names[0])}: .*, ratio [0-9.]+, 2 tensors, 1 run, verified$")
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted([n + ".k3a" for n in names] + [INDEX + ".k3a", MANIFEST]))
        self.assertRegex(self.good("verify", "out").decode(), "5 of 5 files in order")
        self.good("verify", "--manifest", "out", "model")
        self.good("unpack", "out", "back")
        model = self.contents("model")
        del model["config.json"]
        self.assertEqual(self.contents("back"), model)
        self.assertEqual(self.good("unpack", "--tensor", "layers.2.w", f"out/{names[2]}.k3a", "-"), generate(120000, 2))
        facts = json.loads(self.good("pack", "--json", "--force", "model", "out"))
        self.assertEqual((facts["packed"], facts["skipped"], len(facts["files"])), (5, 0, 5))
        self.assertEqual(facts["not_packed"], 1)

    def test_what_is_not_packed_is_counted(self):
        """Files, hidden ones too, by whatever name they are here; no folders."""
        def line():
            return self.good("pack", "model", "out").decode().splitlines()[-1]

        (name,) = self.make_model(1, 1000)
        os.remove(self.path("model/config.json"))
        self.assertRegex(line(), r"; \d+ bytes packed to \d+\Z")
        self.assertEqual(json.loads(self.good("pack", "--json", "model", "out"))["not_packed"], 0)
        write(self.path("model/tokenizer.json"), b"{}")
        write(self.path("model/.gitattributes"), b"")
        os.symlink("tokenizer.json", self.path("model/link"))
        os.mkdir(self.path("model/folder"))
        write(self.path("model/folder/file"), b"")
        self.assertRegex(line(), r"; \d+ bytes packed to \d+; 3 other files not packed\Z")
        os.remove(self.path("model/" + INDEX))  # then it is one more that is packed or not
        write(self.path("model/unlisted.safetensors"), read(self.path("model/" + name)))
        self.assertRegex(line(), r"; 3 other files not packed\Z")
        self.assertEqual(json.loads(self.good("pack", "--json", "model", "out"))["not_packed"], 3)
        self.trunk()
        write(self.path("trunk/README"), b"")
        self.assertRegex(self.good("pack", "trunk", "out2").decode(), r"; 1 other file not packed\n\Z")

    def test_foreign_files_are_kept(self):
        """Of what stands at an archive's name or the manifest's only archives and manifests are replaced, in whatever
        state; else nothing at all is written."""
        names = sorted(self.make_model(2, 1000))
        self.good("pack", "model", "out")
        sound = self.contents("out")
        archive = sound[names[1] + ".k3a"]
        for content in (b"", b"precious", archive[:7], b"x" + archive[1:], sound[MANIFEST]):
            write(self.path(f"out/{names[1]}.k3a"), content)
            os.remove(self.path(f"out/{names[0]}.k3a"))
            before = self.contents("out")
            for part in ("1/1", "1/3"):
                self.fails(IO, rf"out/{names[1]}\.k3a: exists already and is no archive \(--force replaces it\)\n",
                           "pack", "--part", part, "model", "out")
                self.assertEqual(self.contents("out"), before)
            self.good("pack", "--force", "model", "out")
            self.assertEqual(self.contents("out"), sound)
        for content in (archive[:8], archive[:-1], archive[:-1] + bytes([archive[-1] ^ 1]), archive):
            write(self.path(f"out/{names[1]}.k3a"), content)
            self.good("pack", "model", "out")
            self.assertEqual(self.contents("out"), sound)
        for content in (b"", b"precious", b"{}", b"[]", b'{"manifest": 1}', sound[MANIFEST][:-1], archive):
            write(self.path("out/" + MANIFEST), content)
            before = self.contents("out")
            self.fails(IO, rf"out/{MANIFEST}: exists already and is no manifest \(--force replaces it\)\n",
                       "pack", "model", "out")
            self.assertEqual(self.contents("out"), before)
            self.good("pack", "--force", "model", "out")
            self.assertEqual(self.contents("out"), sound)
        write(self.path("out/" + MANIFEST), b'{"k3huf_manifest": 1, "files": []}')
        self.good("pack", "model", "out")
        self.assertEqual(self.contents("out"), sound)

    def test_list_and_inspect(self):
        """Of a directory, what each archive of its manifest gives by itself, in the manifest's order."""
        names = [f"out/{name}.k3a" for name in sorted([*self.make_model(3, 1000), INDEX])]
        self.good("pack", "model", "out")
        write(self.path("out/stranger.k3a"), b"not in the manifest")
        listed = [self.good("list", name).decode() for name in names]
        self.assertEqual(self.good("list", "out").decode(),
                         "\n".join(f"{name}:\n{text}" for name, text in zip(names, listed)))
        self.assertEqual(self.good("inspect", "out").decode(), "\n".join(self.good("inspect", name).decode() for name in names))
        for command in ("list", "inspect"):
            self.assertEqual(self.good(command, "--json", "out"),
                             b"".join(self.good(command, "--json", name) for name in names))
            self.fails(IO, "model: holds no k3huf-manifest.json", command, "model")
        os.remove(self.path(names[0]))
        for command in ("list", "inspect"):
            self.fails(IO, rf"{names[0]}: cannot be opened", command, "--json", "out")

    def test_a_single_file_model(self):
        os.mkdir(self.path("model"))
        content = st.file([("w", "BF16", [5000], generate(10000))])
        write(self.path("model/model.safetensors"), content)
        write(self.path("model/README.md"), b"hello")
        self.good("pack", "model", "out")
        self.good("unpack", "out", "back")
        self.assertEqual(self.contents("back"), {"model.safetensors": content})

    def test_refused_indexes(self):
        names = self.make_model()
        index = json.loads(read(self.path("model/" + INDEX)))
        for bad in ("../secret.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors", "./" + names[0]):
            index["weight_map"]["layers.0.w"] = bad
            write(self.path("model/" + INDEX), json.dumps(index).encode())
            self.refuses_model(CORRUPT, r"index\.json: weight_map, tensor 'layers\.0\.w'.*is not the name of a file beside")
        index["weight_map"]["layers.0.w"] = 7
        write(self.path("model/" + INDEX), json.dumps(index).encode())
        self.refuses_model(CORRUPT, "is not the name of a file")
        index["weight_map"]["layers.0.w"] = "gone.safetensors"
        write(self.path("model/" + INDEX), json.dumps(index).encode())
        self.refuses_model(CORRUPT, r"model/gone\.safetensors: is named by the index but is not a file here")
        for text in (b"{", b"[]", b"{}", b'{"weight_map": 1}'):
            write(self.path("model/" + INDEX), text)
            self.refuses_model(CORRUPT, r"index\.json: ")
        # A link to nowhere is an index too, and not none.
        os.remove(self.path("model/" + INDEX))
        os.symlink("nowhere", self.path("model/" + INDEX))
        self.refuses_model(IO, r"index\.json: cannot be opened: No such file")
        os.remove(self.path("model/" + INDEX))
        os.symlink("nowhere", self.path("model/more.safetensors"))
        self.refuses_model(CORRUPT, r"model/more\.safetensors: is not a file\n")
        os.remove(self.path("model/more.safetensors"))
        write(self.path("model/" + names[3]), b"x" * 100)  # refused before any other is written
        self.refuses_model(CORRUPT, names[3])
        for name in names:
            os.remove(self.path("model/" + name))
        self.refuses_model(IO, "directory without")

    def test_names_that_pack_gives(self):
        """No file of a model may have the name of another's archive, or the manifest's: packed in its own folder, it would
        be lost. Nothing is written, whatever the options and wherever the archives were to go."""
        for names in (["x", "x.k3a"], ["w", "x.k3a", "x", "y"], ["x.k3a", "x.k3a.k3a"], [INDEX + ".k3a", "a"],
                      [MANIFEST, "a"]):
            st.model(self.path("model"), {name: [(f"{i}.w", "BF16", [1000], generate(2000, i))]
                                          for i, name in enumerate(names)})
            before = self.contents("model")
            pattern = "'k3huf-manifest.json', which is the manifest's name" if MANIFEST in names else \
                      r"'(.+)' and '\1\.k3a', which is the name of its archive"
            for options in ([], ["--force"], ["--force", "--part", "1/2"]):
                self.fails(CORRUPT, "model: the index names " + pattern, "pack", *options, "model", "model")
                self.refuses_model(CORRUPT, "model: the index names " + pattern)
                self.assertEqual(self.contents("model"), before)
            shutil.rmtree(self.path("model"))
        # In its own folder any other model can be.
        names = ["x.k3a", "y", "x.k3", "k3a"]
        st.model(self.path("model"), {name: [(f"{i}.w", "BF16", [1000], generate(2000, i))]
                                      for i, name in enumerate(names)})
        before = self.contents("model")
        self.good("pack", "model", "model")
        self.assertEqual({name: self.contents("model")[name] for name in before}, before)
        self.good("verify", "model", "model")
        self.good("unpack", "model", "back")
        self.assertEqual(self.contents("back"), before)

    def test_names_with_control_characters(self):
        """What a stranger's index or manifest says is one line of a name, and no order to the terminal."""
        name, shown = "a\x1b[2J\nok x", "a?[2J?ok x"
        st.model(self.path("model"), {name: [("w", "BF16", [1000], generate(2000))]})
        for command in (("pack", "model", "out"), ("pack", "model", "out"), ("verify", "-v", "out"), ("verify", "out"),
                        ("unpack", "out", "back"), ("list", "out"), ("inspect", "out")):
            text = self.good(*command).decode()
            self.assertEqual("\x1b" in text or "\nok x" in text, False, text)
            self.assertEqual(shown in text, command != ("verify", "out"), text)
        os.remove(self.path(f"out/{name}.k3a"))
        text = self.tool("verify", "out").stdout.decode()
        self.assertRegex(text, rf"(?m)^missing  {re.escape(shown)}: out/{re.escape(shown)}\.k3a: is not there$")
        self.assertEqual(len(text.splitlines()), 2)

    def test_tensors_that_changed_alone(self):
        """An archive is complete only if it has the tensors that the source has: those of a trunk are told elsewhere."""
        layers = self.trunk()
        before = {"out/trunk.bin.k3a": "1.attn.w"}
        self.good("pack", "trunk", "out")
        self.assertRegex(self.good("pack", "trunk", "out").decode(), "0 of 2 files packed, 2 complete already")

        def rename(layer):
            layer["tensors"]["attn.v"] = layer["tensors"].pop("attn.w")

        def move(layer):
            layer["tensors"]["attn.w"]["off"] = 10

        def reshape(layer):
            layer["tensors"]["attn.w"]["shape"] = [500, 50]

        def retype(layer):
            layer["tensors"]["attn.w"]["dtype"] = "F16"

        def flatten(layer):
            layer["tensors"]["attn.w"]["shape"] = [25000]

        def drop(layer):
            del layer["tensors"]["norm"]

        for change in (move, reshape, retype, flatten, drop, rename):
            change(layers[1])
            write(self.path("trunk/trunk.json"), json.dumps({"layers": layers}).encode())
            self.assertRegex(self.good("pack", "trunk", "out").decode(), "2 of 2 files packed, 0 complete already")
            self.good("pack", "trunk", "anew")
            self.assertEqual(read(self.path("out/trunk.bin.k3a")), read(self.path("anew/trunk.bin.k3a")))
            self.assertRegex(self.good("pack", "trunk", "out").decode(), "0 of 2 files packed, 2 complete already")
            shutil.rmtree(self.path("anew"))
        # Of two shards of one size and time, archives that changed places.
        names = sorted(self.make_model(2, 1000))
        for name in names:
            os.utime(self.path("model/" + name), ns=(5, 1234567890123456789))
        self.good("pack", "model", "shards")
        sound = self.contents("shards")
        for a, b in (names, names[::-1]):
            write(self.path(f"shards/{a}.k3a"), sound[b + ".k3a"])
        self.assertRegex(self.good("pack", "model", "shards").decode(), "2 of 3 files packed, 1 complete already")
        self.assertEqual(self.contents("shards"), sound)

    def trunk(self, layers=3):
        os.mkdir(self.path("trunk"))
        binary, description = b"", []
        for i in range(layers):
            weights, norm = generate(50000, i), noise(400, i)
            run = weights + bytes(60) + norm
            description.append({"file_off": len(binary), "nbytes": len(run),
                                "tensors": {"attn.w": {"off": 0, "nbytes": 50000, "dtype": "bf16", "shape": [250, 100]},
                                            "norm": {"off": 50060, "nbytes": 400, "dtype": "F32", "shape": [100]}}})
            binary += run + bytes(-len(run) % 4096)
        write(self.path("trunk/trunk.bin"), binary)
        write(self.path("trunk/trunk.json"), json.dumps({"layers": description}).encode())
        return description

    def test_trunk(self):
        self.trunk()
        self.good("pack", "trunk", "out")
        self.assertEqual(sorted(os.listdir(self.path("out"))), [MANIFEST, "trunk.bin.k3a", "trunk.json.k3a"])
        self.good("verify", "out", "trunk")
        self.good("unpack", "out", "back")
        self.assertEqual(self.contents("back"), self.contents("trunk"))
        self.assertEqual(self.good("unpack", "--tensor", "1.attn.w", "out/trunk.bin.k3a", "-"), generate(50000, 1))
        facts = json.loads(self.good("list", "--json", "out/trunk.bin.k3a"))
        self.assertEqual(facts["source_kind"], "trunk")
        self.assertEqual([t["as"] for t in facts["tensors"] if t["dtype"] == "BF16"], ["run"] * 3)
        self.assertEqual({f["name"] for f in facts["families"]}, {"*.attn.w", "*.norm"})

    def test_trunk_of_an_engine(self):
        """As Kimi K3's public engines have them: names unique over all layers, dtypes of their own, shapes missing, a layer
        that is absent, an alignment of their own."""
        os.mkdir(self.path("trunk"))
        weights = generate(60000, 3)
        layers = [{"file_off": 8, "nbytes": 61000, "tensors": {
            "layers.0.q_proj.weight": {"off": 0, "nbytes": 60000, "dtype": "BF16", "shape": [300, 100]},
            "layers.0.norm.weight": {"off": 60000, "nbytes": 400, "dtype": "F32"}}}, None,
            {"layer": 2, "file_off": 61008, "nbytes": 560, "tensors": {
                "layers.2.up_proj.weight": {"off": 0, "nbytes": 544, "dtype": "MX4", "shape": [32, 32]},
                "layers.2.a": {"off": 544, "nbytes": 12, "dtype": "I8R", "shape": [2, 2]}}}]
        write(self.path("trunk/trunk.bin"), bytes(8) + weights + noise(1000, 1) + noise(560, 2))
        write(self.path("trunk/trunk.json"),
              json.dumps({"n_layers": 3, "align": 8, "quant": "mxfp4", "layers": layers}).encode())
        self.good("pack", "trunk", "out")
        self.good("verify", "out", "trunk")
        self.good("unpack", "out", "back")
        self.assertEqual(self.contents("back"), self.contents("trunk"))
        self.assertEqual(self.good("unpack", "--tensor", "layers.0.q_proj.weight", "out/trunk.bin.k3a", "-"), weights)
        facts = json.loads(self.good("list", "--json", "out/trunk.bin.k3a"))
        self.assertEqual({t["name"]: (t["dtype"], t["shape"], t["as"]) for t in facts["tensors"]},
                         {"layers.0.q_proj.weight": ("BF16", [300, 100], "run"),
                          "layers.0.norm.weight": ("F32", [100], "stored"),
                          "layers.2.up_proj.weight": ("MX4", [32, 32], "stored"),
                          "layers.2.a": ("I8R", [2, 2], "stored")})

    def test_trunk_dtypes(self):
        """Only bf16 and bfloat16 are BF16, whatever else begins like them."""
        os.mkdir(self.path("trunk"))
        dtypes = {"bf16": "BF16", "bfloat16": "BF16", "BFloat16": "BF16", "bfloat16_xyz": "bfloat16",
                  "bfloat16x": "bfloat16", "bfloat1": "BFLOAT1", "bf16x": "BF16X"}
        weights = generate(10000)
        tensors = {dtype: {"off": 10000 * i, "nbytes": 10000, "dtype": dtype, "shape": [5000]}
                   for i, dtype in enumerate(dtypes)}
        write(self.path("trunk/trunk.bin"), weights * len(dtypes))
        write(self.path("trunk/trunk.json"), json.dumps({"layers": [{
            "file_off": 0, "nbytes": 10000 * len(dtypes), "tensors": tensors}]}).encode())
        self.good("pack", "trunk", "out")
        facts = json.loads(self.good("list", "--json", "out/trunk.bin.k3a"))
        self.assertEqual({t["name"]: t["dtype"] for t in facts["tensors"]}, dtypes)
        self.assertEqual({t["name"]: t["as"] == "run" for t in facts["tensors"]},
                         {name: dtype == "BF16" for name, dtype in dtypes.items()})
        self.good("verify", "out", "trunk")

    def test_refused_trunks(self):
        layers = self.trunk()
        size = os.path.getsize(self.path("trunk/trunk.bin"))

        def change(path, value, pattern):
            changed = json.loads(json.dumps({"layers": layers}))
            at = changed
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            write(self.path("trunk/trunk.json"), json.dumps(changed).encode())
            self.refuses_model(CORRUPT, r"trunk\.json: .*" + pattern, "trunk")
        w = ["layers", 1, "tensors", "attn.w"]
        change(["layers"], 3, "no list of layers")
        change(["layers", 1, "file_off"], 100, r"layer 1: file_off is not aligned")
        change(["layers", 1, "file_off"], -4096, "not a whole number")
        change(["layers", 1, "file_off"], 1 << 40, "beyond the end")
        change(["layers", 1, "nbytes"], size, "beyond the end")
        change(["layers", 1, "file_off"], 0, "overlaps")
        change(["layers", 1, "tensors"], 3, "no tensors")
        change([*w, "off"], 50000, "outside its layer")
        change([*w, "off"], 100, "overlaps")
        change([*w, "nbytes"], 49998, "has 49998 bytes, but dtype and shape make 50000")
        change([*w, "nbytes"], None, "not a whole number")
        change([*w, "dtype"], 16, "dtype")
        change([*w, "dtype"], "b\x1bf", "dtype")
        change([*w, "shape"], [250, 101], "make 50500")


class Parts(ModelTest):
    def test_shares_are_disjoint_and_complete(self):
        names = sorted(self.make_model(7, 2000) + [INDEX])
        for parts in (1, 2, 3, 8, 20):
            seen = []
            for part in range(1, parts + 1):
                self.good("pack", "--part", f"{part}/{parts}", "model", f"out{parts}.{part}")
                made = set(os.listdir(self.path(f"out{parts}.{part}"))) - {MANIFEST}
                seen += made
            self.assertEqual(sorted(seen), [name + ".k3a" for name in names])
        for bad in ("0/2", "3/2", "1", "1/", "/2", "-1/2", "1/2x", "1/0", "a/b", "1/-2", "-2/-1", "+1/2",
                    "1/+2", " 1/2", "1/ 2", "1/2 ", "1/2/", "1//2", "1/1000000", "0000001/2"):
            self.fails(USAGE, "--part must be K/N", "pack", "--part", bad, "model", "bad")
        self.fails(USAGE, "directories", "pack", "--part", "1/2", data("two_bytes.raw"), "bad")

    def test_side_by_side_one_killed_and_run_again(self):
        """Four processes; one is stopped in the middle of a file and killed, which leaves the rest as it should be."""
        names = self.make_model(8, 400000)
        commands = [[*TOOL, "pack", "-q", "-T", "1", "--part", f"{part}/4", "model", "out"] for part in (1, 2, 3, 4)]
        folder = self.path("out")
        deadline = time.monotonic() + TIMEOUT

        def writing():
            return os.path.isdir(folder) and any(name.startswith(".k3huf_host") for name in os.listdir(folder))
        while not writing():  # else it was over before it could be killed
            self.assertLess(time.monotonic(), deadline)
            shutil.rmtree(folder, ignore_errors=True)
            victim = subprocess.Popen(commands[1], cwd=self.folder.name)
            while victim.poll() is None and not writing():
                time.sleep(0.001)
            victim.kill()
            victim.wait(TIMEOUT)
        self.assertEqual(victim.returncode, -signal.SIGKILL)
        others = [subprocess.Popen(command, cwd=self.folder.name) for command in commands[:1] + commands[2:]]
        self.assertEqual([process.wait(TIMEOUT) for process in others], [OK] * 3)
        done = self.tool("verify", "--manifest", "out")
        self.assertEqual(done.returncode, IO)
        missing = [line.split()[1] for line in done.stdout.decode().splitlines() if line.startswith("missing")]
        mine = [name + ":" for name in sorted([*names, INDEX])[1::4]]
        self.assertTrue(missing and set(missing) <= set(mine), (missing, mine))
        self.assertEqual(self.tool(*commands[1][len(TOOL):]).returncode, OK)
        self.assertRegex(self.good("verify", "--manifest", "out", "model").decode(), "9 of 9 files in order")
        self.assertEqual(self.tool("unpack", "-q", "out", "back").returncode, OK)
        for name in names:
            self.assertEqual(read(self.path(f"back/{name}")), read(self.path(f"model/{name}")))

    def states(self, *sources):
        done = self.tool("verify", "--json", "--manifest", "out", *sources)
        facts = json.loads(done.stdout)
        return done.returncode, {file["source"]: file["state"] for file in facts["files"] if file["state"] != "ok"}

    def test_manifest_and_second_runs(self):
        names = self.make_model(4, 20000)
        self.good("pack", "model", "out")
        self.assertEqual(self.states(), (OK, {}))
        stamps = {name: os.stat(self.path(f"out/{name}.k3a")).st_mtime_ns for name in names}
        text = self.good("pack", "model", "out").decode()
        self.assertRegex(text, "0 of 5 files packed, 5 complete already")
        # One missing, one damaged, one whose source has changed.
        os.remove(self.path(f"out/{names[0]}.k3a"))
        self.assertEqual(self.states(), (IO, {names[0]: "missing"}))
        damaged = bytearray(read(self.path(f"out/{names[1]}.k3a")))
        damaged[9000] ^= 1
        write(self.path(f"out/{names[1]}.k3a"), damaged)
        self.assertEqual(self.states(), (CORRUPT, {names[0]: "missing", names[1]: "damaged"}))
        changed = read(self.path(f"model/{names[2]}"))[:-1] + b"!"
        write(self.path(f"model/{names[2]}"), changed)
        os.utime(self.path(f"model/{names[2]}"), ns=(1, 1234567890123456789))
        self.assertRegex(self.good("pack", "--part", "1/9", "model", "out").decode(), "1 of 5|0 of 5")
        code, states = self.states()
        self.assertEqual((code, states[names[2]]), (CORRUPT, "stale"))
        text = self.good("pack", "model", "out").decode()
        self.assertRegex(text, r"[23] of 5 files packed, [23] complete already")
        self.assertEqual(self.states(), (OK, {}))
        self.assertEqual(os.stat(self.path(f"out/{names[3]}.k3a")).st_mtime_ns, stamps[names[3]])
        self.assertEqual(self.good("unpack", f"out/{names[2]}.k3a", "-"), changed)
        # Compared with sources of the same size that differ.
        shutil.copytree(self.path("model"), self.path("other"))
        write(self.path(f"other/{names[3]}"), read(self.path(f"model/{names[3]}"))[:-1] + b"\x99")
        done = self.tool("verify", "out", "other")
        self.assertEqual(done.returncode, MISMATCH)
        self.assertRegex(done.stdout.decode(), rf"(?m)^stale +{names[3]}: .*differs from other/")

    def test_a_source_that_changes_after_the_manifest(self):
        """The manifest is a FIFO: it is asked for, and then written, once the directory has been read. In between a
        file changes."""
        def append(path):
            write(path, read(path) + b"x")

        def touch(path):
            os.utime(path, ns=(1, 1234567890123456789))

        for change in (append, touch):
            names = self.make_model(2, 1000)
            os.mkdir(self.path("out"))
            os.mkfifo(self.path("out/" + MANIFEST))
            process = subprocess.Popen([*TOOL, "pack", "model", "out"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       cwd=self.folder.name)
            asked = None
            while asked is None and process.poll() is None:  # until the tool looks whether one is there
                try:
                    asked = os.open(self.path("out/" + MANIFEST), os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    time.sleep(0.01)
            change(self.path("model/" + names[1]))
            if asked is not None:
                os.close(asked)
            manifest = b""
            fifo = os.open(self.path("out/" + MANIFEST), os.O_RDONLY | os.O_NONBLOCK)
            while True:
                ended = process.poll() is not None
                try:
                    piece = os.read(fifo, 1 << 16)
                except BlockingIOError:
                    piece = b""
                manifest += piece
                if ended and not piece:
                    break
                if not piece:
                    time.sleep(0.01)
            os.close(fifo)
            out, errors = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, IO)
            self.assertRegex(errors.decode(), rf"\Ak3huf_host: model/{names[1]}: changed while the directory was packed\n\Z")
            self.assertNotIn(names[1] + ".k3a", os.listdir(self.path("out")))
            os.remove(self.path("out/" + MANIFEST))
            write(self.path("out/" + MANIFEST), manifest)
            self.assertEqual(self.states()[1][names[1]], "missing")
            if change == touch:
                self.good("pack", "model", "out")
                self.assertEqual(self.states(), (OK, {}))
            shutil.rmtree(self.path("model"))
            shutil.rmtree(self.path("out"))

    def test_stale_archives_are_not_unpacked(self):
        names = sorted(self.make_model(3, 1000))
        self.good("pack", "model", "out")
        old = self.contents("out")
        for change in ("content", "time"):
            source = self.path("model/" + names[1])
            if change == "content":
                write(source, st.file([("other", "BF16", [5], noise(10))]))
            else:
                os.utime(source, ns=(5, os.stat(source).st_mtime_ns + 1))
            self.good("pack", "model", "out")
            self.good("unpack", "--force", "out", "back")
            write(self.path(f"out/{names[1]}.k3a"), old[names[1] + ".k3a"])
            self.assertEqual(self.states(), (MISMATCH, {names[1]: "stale"}))
            back = self.contents("back")
            done = self.tool("unpack", "--force", "out", "back")
            self.assertEqual(done.returncode, MISMATCH)
            self.assertEqual(done.stderr.decode(), f"k3huf_host: out/{names[1]}.k3a: was made of another state of "
                                                   f"{names[1]} than the manifest has\n")
            self.assertEqual(self.contents("back"), back)
        # What is no archive is not unpacked either.
        self.good("pack", "--bytes", "-f", f"model/{names[0]}", f"out/{names[0]}.k3a")
        self.fails(CORRUPT, rf"out/{names[0]}\.k3a: is not a k3huf archive", "unpack", "--force", "out", "back")

    def test_what_cannot_be_read_is_not_the_end(self):
        names = self.make_model(4, 1000)
        self.good("pack", "model", "out")

        def replace(number, make):
            os.remove(self.path(f"out/{names[number]}.k3a"))
            make(self.path(f"out/{names[number]}.k3a"))

        # A way that leads nowhere is not the same as nothing at its end.
        replace(0, lambda path: os.symlink(os.path.basename(path), path))
        self.assertEqual(self.states(), (IO, {names[0]: "unreadable"}))
        replace(0, os.mkdir)
        self.assertEqual(self.states(), (IO, {names[0]: "unreadable"}))
        text = self.tool("verify", "out").stdout.decode()
        self.assertRegex(text, rf"(?m)^unreadable {names[0]}: out/{names[0]}\.k3a: is a directory$")
        self.assertRegex(text, r"(?m)^out: 4 of 5 files in order, 0 missing, 0 stale, 0 damaged, 1 unreadable$")
        damaged = bytearray(read(self.path(f"out/{names[1]}.k3a")))
        damaged[-1] ^= 1
        write(self.path(f"out/{names[1]}.k3a"), damaged)
        os.remove(self.path(f"model/{names[2]}"))
        os.mkdir(self.path(f"model/{names[2]}"))
        self.assertEqual(self.states(), (CORRUPT, {names[0]: "unreadable", names[1]: "damaged"}))
        self.assertEqual(self.states("model"), (CORRUPT, {names[0]: "unreadable", names[1]: "damaged",
                                                          names[2]: "unreadable"}))
        replace(1, lambda path: os.symlink("/dev/null", path))
        self.assertEqual(self.states(), (CORRUPT, {names[0]: "unreadable", names[1]: "damaged"}))

    def test_files_that_came_later(self):
        """What of the model no archive is of is missing: whoever removes the model after verify would lose it."""
        names = sorted(self.make_model(2, 1000))
        os.remove(self.path("model/" + INDEX))
        self.good("pack", "model", "out")
        self.good("verify", "out", "model")
        write(self.path("model/added.safetensors"), read(self.path("model/" + names[0])))
        self.assertEqual(self.states(), (OK, {}))
        self.assertEqual(self.states("model"), (IO, {"added.safetensors": "missing"}))
        done = self.tool("verify", "out", "model")
        self.assertEqual((done.returncode, done.stderr), (IO, b"k3huf_host: out: 1 of 3 files missing\n"))
        self.assertEqual(done.stdout.decode(), "missing  added.safetensors: model: has it, but the manifest does not name it\n"
                                               "out: 2 of 3 files in order, 1 missing, 0 stale, 0 damaged\n")
        self.good("pack", "model", "out")
        self.good("verify", "out", "model")
        # With an index only what it names is of the model.
        st.model(self.path("indexed"), {"a.safetensors": [("w", "BF16", [1000], generate(2000))]})
        self.good("pack", "indexed", "out2")
        write(self.path("indexed/consolidated.safetensors"), b"no matter what")
        self.good("verify", "out2", "indexed")
        # A model that cannot be read any more, though all that the manifest names is there.
        os.symlink("nowhere", self.path("model/last.safetensors"))
        self.fails(CORRUPT, r"model/last\.safetensors: is not a file", "verify", "out", "model")

    def test_no_file_is_left_out_of_json(self):
        """Whatever its tensors are called, and wherever a name of theirs is cut."""
        os.mkdir(self.path("model"))
        names = ["x" * before + "\u20ac\u00e4\U0001f388" * 60 for before in range(10)]
        for i, name in enumerate(names):
            write(self.path(f"model/{i}.safetensors"), st.file([(name, "F32", [5000], noise(20000, i))]))
        self.good("pack", "model", "out")
        for i in range(len(names)):
            damaged = bytearray(read(self.path(f"out/{i}.safetensors.k3a")))
            entry = st.Archive(damaged).entries[-1]
            damaged[entry["offset"] + 5] ^= 1
            write(self.path(f"out/{i}.safetensors.k3a"), damaged)
        done = self.tool("verify", "--json", "out")
        facts = json.loads(done.stdout)
        self.assertEqual((done.returncode, facts["damaged"], len(facts["files"])), (CORRUPT, 10, 10))
        for i, file in enumerate(facts["files"]):
            shown = re.search("entry '(.*)' at", file["text"]).group(1)
            self.assertTrue(names[i].startswith(shown), file["text"])
            self.assertGreater(len(shown.encode()), 196)
        self.tool("verify", "out").stdout.decode()
        self.tool("verify", "out/0.safetensors.k3a").stderr.decode()
        # A directory whose name is no text.
        odd = os.fsencode(self.path("out")) + b"\xff\xe2\x82"
        os.rename(os.fsencode(self.path("out")), odd)
        done = subprocess.run([*map(os.fsencode, TOOL), b"verify", b"--json", odd], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT)
        facts = json.loads(done.stdout)
        self.assertEqual((done.returncode, facts["damaged"], len(facts["files"])), (CORRUPT, 10, 10))
        self.assertIn("out???/0.safetensors.k3a: entry '", facts["files"][0]["text"])
        for command in b"list", b"inspect":
            done = subprocess.run([*map(os.fsencode, TOOL), command, b"--json", odd], stdout=subprocess.PIPE, timeout=TIMEOUT)
            files = re.findall(rb'"file": "([^"]*)"', done.stdout)
            self.assertEqual((done.returncode, len(files)), (OK, 10))
            self.assertTrue(files[3].endswith(b"out???/3.safetensors.k3a"), files)
        facts = json.loads(self.good("pack", "--json", os.fsencode(self.path("model/1.safetensors")).decode(), "one"))
        self.assertEqual((facts["source"], facts["archive"]), (self.path("model/1.safetensors"), "one"))

    def test_times_that_cannot_be_counted(self):
        """After April 2262: the last one that can, in archive and manifest alike."""
        (name,) = self.make_model(1, 1000)
        late = 1 << 33
        try:
            os.utime(self.path("model/" + name), (late, late))
        except OSError:
            late = None
        if late is None or os.stat(self.path("model/" + name)).st_mtime != late:
            self.skipTest("the file system has no such times")
        late = 10 ** 10  # maybe cut to what the file system has, which may be before 2262
        os.utime(self.path("model/" + name), (late, late))
        seconds = int(os.stat(self.path("model/" + name)).st_mtime)
        self.good("pack", "model", "out")
        wanted = seconds * 10 ** 9 if seconds < (1 << 63) // 10 ** 9 else (1 << 63) - 1
        self.assertEqual(st.Archive(read(self.path(f"out/{name}.k3a"))).mtime, wanted)
        self.assertEqual(self.states(), (OK, {}))
        self.assertRegex(self.good("pack", "model", "out").decode(), "0 of 2 files packed, 2 complete already")
        self.good("unpack", "out", "back")

    def test_unsound_manifests(self):
        self.make_model(2, 1000)
        self.good("pack", "model", "out")
        good = json.loads(read(self.path("out/" + MANIFEST)))
        for name in ("../x", "/x", "", "a/b", 5, None):
            bad = json.loads(json.dumps(good))
            bad["files"][1]["source"] = name
            write(self.path("out/" + MANIFEST), json.dumps(bad).encode())
            for command in (("verify", "out"), ("unpack", "out", "back")):
                self.fails(CORRUPT, "file 1 is not described soundly", *command)
        write(self.path("out/" + MANIFEST), b"{}")
        self.fails(CORRUPT, "is not a manifest", "verify", "out")
        os.remove(self.path("out/" + MANIFEST))
        self.fails(IO, "out: holds no", "verify", "--manifest", "out")
        self.assertNotIn("back", self.files())


class Hands(ModelTest):
    """The tool as a person has it: on a terminal."""

    def on_terminal(self, *arguments, interrupt=None):
        """Run with a terminal as standard error and output; returns exit status and all that it showed. `interrupt`:
        a pattern after which Ctrl-C is pressed."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.folder.name)
            os.execvp(TOOL[0], [*TOOL, *map(str, arguments)])
        shown, deadline, pressed = b"", time.monotonic() + TIMEOUT, False
        while time.monotonic() < deadline:
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                piece = os.read(fd, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not piece:
                break
            shown += piece
            if interrupt and not pressed and re.search(interrupt, shown):
                os.write(fd, b"\x03")
                pressed = True
        os.close(fd)
        return os.waitpid(pid, 0)[1], shown.decode()

    def setUp(self):
        super().setUp()
        write(self.path("m.safetensors"), st.file([("w", "BF16", [3000000], generate(6000000))]))

    def test_progress_and_summary(self):
        status, shown = self.on_terminal("pack", "-T", 1, "m.safetensors", "m.k3a")
        self.assertEqual(status, 0, shown)
        self.assertRegex(shown, r"\r\x1b\[Km\.safetensors \[[#.]{24}\] +\d+% +\d+\.\d MB/s \d+:\d\d:\d\d left")
        self.assertRegex(shown, r"\r\x1b\[Km\.safetensors: 60000\d\d bytes packed to \d+, ratio 0\.\d+, 1 tensor, 1 run, verified\r\n\Z")
        for command in (("verify", "m.k3a"), ("unpack", "m.k3a", "back")):
            status, shown = self.on_terminal(*command)
            self.assertEqual(status, 0, shown)
            self.assertRegex(shown, r"m\.k3a \[[#.]{24}\]")
        self.assertEqual(read(self.path("back")), read(self.path("m.safetensors")))

    def test_no_progress(self):
        for options in (("--no-progress",), ("-q",)):
            status, shown = self.on_terminal("pack", "-f", *options, "m.safetensors", "m.k3a")
            self.assertEqual(status, 0)
            self.assertNotIn("\r\x1b", shown)
        self.assertEqual(shown, "")
        done = self.tool("pack", "-f", "m.safetensors", "m.k3a")  # pipes
        self.assertEqual((done.returncode, done.stderr), (OK, b""))
        self.assertEqual(done.stdout.count(b"\n"), 1)

    def test_interrupt_leaves_nothing(self):
        path = self.path("large.safetensors")
        header = json.dumps({"w": st.tensor("BF16", [1 << 31], 0, 1 << 32)}).encode()
        write(path, st.raw_file(header, generate(1000000)))
        os.truncate(path, 8 + len(header) + (1 << 32))
        status, shown = self.on_terminal("pack", "large.safetensors", "large.k3a", interrupt=rb"large\.safetensors \[")
        self.assertTrue(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, (status, shown))
        self.assertEqual(self.files(), ["large.safetensors", "m.safetensors"])

    def test_a_full_disk_leaves_nothing(self):
        """A limit on the size of files stands for the disk."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        for arguments in (("pack", "m.safetensors", "m.k3a"),):
            done = subprocess.run([*TOOL, *arguments], cwd=self.folder.name, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, preexec_fn=limit, timeout=TIMEOUT)
            self.assertEqual(done.returncode, IO)
            self.assertRegex(done.stderr.decode(), "m.k3a: cannot be written: File too large")
            self.assertEqual(self.files(), ["m.safetensors"])


class Large(HostTest):
    """A source of more than 5 GiB: most of it a hole, so that the file system need not hold it. Memory is measured as
    the system accounts it: the most that was resident."""
    PEAK = 512 << 20
    SIZE = 5 << 30

    def peak(self, *arguments):
        with subprocess.Popen([*TOOL, *map(str, arguments)], cwd=self.folder.name, stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, OK, arguments)
        print(f"{arguments[0]}: peak {usage.ru_maxrss >> 10} MiB, {usage.ru_utime + usage.ru_stime:.1f} s of processor")
        self.assertLess(usage.ru_maxrss << 10, self.PEAK)

    def test_memory(self):
        header = json.dumps({"hole": st.tensor("BF16", [self.SIZE // 4], 0, self.SIZE // 2),
                             "w": st.tensor("BF16", [self.SIZE // 4], self.SIZE // 2, self.SIZE)}).encode()
        source = write(self.path("m.safetensors"), st.raw_file(header, b""))
        weights = generate(8 << 20)
        with open(source, "r+b") as file:
            for at in (self.SIZE // 2, 4 << 30, self.SIZE - len(weights)):
                file.seek(8 + len(header) + at)
                file.write(weights)
        self.peak("pack", "m.safetensors", "m.k3a")
        self.peak("verify", "m.k3a", "m.safetensors")
        self.peak("unpack", "m.k3a", "back")
        self.assertEqual(os.path.getsize(self.path("back")), os.path.getsize(source))
        self.assertLess(os.stat(self.path("back")).st_blocks * 512, 0.6 * self.SIZE)  # the hole is one again
        self.assertEqual(subprocess.run(["cmp", source, self.path("back")], timeout=TIMEOUT).returncode, 0)
        self.peak("unpack", "--range", f"{(4 << 30) + 8 + len(header)}:{8 << 20}", "m.k3a", "part")
        self.assertEqual(read(self.path("part")), weights)


if __name__ == "__main__":
    unittest.main()
