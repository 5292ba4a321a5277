"""core_build.py - what the coverage, the mutation and the matrix of the core share: which sources its unit tests are, how
they are compiled without CMake, and the files that explain what stays. May not judge anything."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORE = sorted(name for name in os.listdir(os.path.join(ROOT, "core")) if name.endswith(".c"))
# The unit tests of the core, fastest first.
TESTS = ["status", "format", "merge_crc", "hostile", "encoder", "table", "guard", "planes", "lanes", "index",
         "truncation", "golden"]
SUPPORT = ["tests/support/" + name for name in ("feeder.c", "reference.c", "samples.c", "vectors.c", "vectors.S")]
ENCODER = ["port/host/" + name for name in ("encoder.c", "k3_histogram.c", "package_merge.c")]
INCLUDES = ["-I" + os.path.join(ROOT, folder) for folder in ("core", "tests/support", "port/host")]
CC = ["gcc", "-std=c11"]
FREESTANDING = ["-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]


def must(command):
    """Run a command; what it says if it fails ends everything."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}failed: {done.returncode}")
    return done.stdout


def object_name(work, source):
    return os.path.join(work, os.path.basename(source).replace(".", "_") + ".o")


def compile_to(work, source, flags):
    """Compile a source of the tree, named from its root, into the folder `work`; returns the object."""
    target = object_name(work, source)
    must([*CC, *flags, *INCLUDES, "-Wa,-I," + os.path.join(ROOT, "tests/data"), "-c", os.path.join(ROOT, source),
          "-o", target])
    return target


def build_support(work, flags):
    """Objects that every test is linked with: support and encoder, which are not what is looked at."""
    return [compile_to(work, source, flags) for source in [*SUPPORT, *ENCODER]]


def build_test(work, name, flags):
    return compile_to(work, f"tests/unit/test_{name}.c", flags)


def functions(lines):
    """For each line of a source formatted as all of ours are, the function or macro it stands in, or ''."""
    names, name = [], ""
    for line in lines:
        head = re.match(r"(?:#define |[A-Za-z].*?)(\w+)\(", line)
        if line.startswith("#define "):
            name = re.match(r"#define (\w+)", line).group(1)
        elif head and not line.rstrip().endswith(";") and not line.startswith(("#", "_Static_assert")):
            name = head.group(1)
        names.append(name)
        one_line = head and re.search(r"\}$", line)
        if line.startswith("}") or one_line or (line.strip() == "" or line.startswith("#define ")) \
                and not line.endswith("\\"):
            name = ""
    return names


def explanations(path):
    """Lines `file :: function :: source line :: what :: reason`: the reasons by the four before, in a dictionary."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            parts = [part.strip() for part in line.rstrip("\n").split(" :: ")]
            if len(parts) != 5 or not parts[4] or tuple(parts[:4]) in found:
                sys.exit(f"{path}, line {number}: not `file :: function :: source line :: what :: reason`, or twice")
            found[tuple(parts[:4])] = parts[4]
    return found
