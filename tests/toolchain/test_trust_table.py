#!/usr/bin/env python3
"""Tests of toolchain/trust-table, over the logs of real runs of ctest: test_trust_table.py TRUST-TABLE CTEST."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TABLE, CTEST = sys.argv[1:3]
GOOD = "echo 'trust: tool | 3 things | 0 findings'"


class TrustTable(unittest.TestCase):
    def table(self, **tests):
        """What the table says of a run of these tests: {name: (label besides the preset's, shell command)}."""
        with tempfile.TemporaryDirectory(prefix="k3huf-") as folder:
            lines = ['add_test("build/host" true)', 'set_tests_properties("build/host" PROPERTIES LABELS "host")']
            for name, (label, command) in tests.items():
                lines.append(f'add_test({name} sh -c [==[{command}]==])')
                lines.append(f'set_tests_properties({name} PROPERTIES LABELS "host;{label}" SKIP_RETURN_CODE 77 TIMEOUT 5)')
            Path(folder, "CTestTestfile.cmake").write_text("\n".join(lines))
            listed = subprocess.run([CTEST, "--test-dir", folder, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
            Path(folder, "tests.json").write_bytes(listed.stdout)
            subprocess.run([CTEST, "--test-dir", folder, "--output-log", folder + "/ctest.log", "-j", "2"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            done = subprocess.run([sys.executable, "-B", TABLE, folder], stdout=subprocess.PIPE, check=False)
        rows = [tuple(map(str.strip, (line[:24], line[25:85], line[86:]))) for line in done.stdout.decode().splitlines()]
        self.assertEqual(rows.pop(0), ("tool", "covered", "findings"))
        return done.returncode, rows

    def test_reports(self):
        self.assertEqual(self.table(a=("trust", GOOD), b=("trust", "echo 'trust: other | few | none'"), c=("", "true")),
                         (0, [("preset host", "4 tests", "0 failed"), ("tool", "3 things", "0 findings"),
                              ("other", "few", "none")]))

    def test_the_same_report_twice(self):
        self.assertEqual(self.table(a=("trust", GOOD), b=("trust", GOOD)),
                         (0, [("preset host", "3 tests", "0 failed"), ("tool", "3 things", "0 findings (the same 2 times)")]))

    def test_a_failure_counts(self):
        for command in "exit 1", "kill -11 $$", "/nonexistent":
            self.assertEqual(self.table(a=("trust", GOOD + "; " + command)),
                             (1, [("preset host", "2 tests", "1 failed"), ("tool", "3 things", "0 findings")]))

    def test_a_skip_is_told(self):
        self.assertEqual(self.table(a=("trust", "exit 77")), (0, [("preset host", "1 tests, 1 skipped", "0 failed")]))

    def test_silence_counts(self):
        for command in "true", "echo trust", "echo 'a trust: b | c | d'":
            self.assertEqual(self.table(a=("trust", command), b=("trust", GOOD)),
                             (1, [("preset host", "3 tests", "0 failed"), ("tool", "3 things", "0 findings"),
                                  ("silent", "a passed and reported nothing", "1")]))

    def test_a_malformed_report_counts(self):
        self.assertEqual(self.table(a=("trust", "echo 'trust: tool | 0 findings'")),
                         (1, [("preset host", "2 tests", "0 failed"), ("malformed", "trust: tool | 0 findings", "1")]))

    def test_refusals(self):
        for arguments, pattern in (([], "^trust-table FOLDER"), (["-h"], "^trust-table FOLDER"), (["a", "b"], "^trust-table FOLDER"),
                                   (["/nonexistent"], r"\Atrust-table: /nonexistent/tests.json: No such file or directory\n\Z")):
            done = subprocess.run([sys.executable, "-B", TABLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertRegex(done.stderr.decode(), pattern)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
