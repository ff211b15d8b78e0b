#!/usr/bin/env python3
"""What run.sh makes of steps that fail, hang or say something unexpected: needs no GPU."""
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

import gpu_tests
import job_checks
import speed
from report import Report, Step

PYTHON = [sys.executable, "-c"]
# As `ncu --csv` prints it.
LAUNCHES = '''==PROF== Disconnected
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","gemm","gpu__time_duration.sum","us","30"
"1","7","relu<float>","gpu__time_duration.sum","ns","10,000"
"2","7","gemm","gpu__time_duration.sum","us","60"
'''


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.report = Report(self.folder.name, 60)
        self.addCleanup(self.report.log.close)

    def kept(self):
        with open(os.path.join(self.folder.name, "report.json")) as f:
            return json.load(f)["steps"]

    def test_a_step_that_is_right(self):
        step = self.report.run("part", "right", PYTHON + ["print('{\"rate\": 3}')"], 30,
                               judge=lambda step: step.json_lines()[-1])
        self.assertEqual(step.code, 0)
        self.assertEqual((self.kept()[0]["result"], self.kept()[0]["rate"]), ("ok", 3))

    def test_steps_that_fail_do_not_stop_others(self):
        self.report.run("part", "code", PYTHON + ["print('why'); exit(3)"], 30)
        self.report.run("part", "missing", ["/nowhere/program"], 30)
        self.report.run("part", "speechless", PYTHON + ["pass"], 30, judge=lambda step: step.json_lines()[-1])
        self.report.run("part", "judged", PYTHON + ["pass"], 30, judge=lambda step: {"failed": "too slow"})
        steps = self.kept()
        self.assertEqual([step["result"] for step in steps], ["failed"] * 4)
        self.assertEqual([steps[0]["failed"], steps[1]["failed"], steps[3]["failed"]],
                         ["exit code 3", "exit code 127", "too slow"])
        self.assertIn("why", steps[0]["last_words"])
        self.assertIn("not understood", steps[2]["failed"])

    def test_a_step_that_hangs_ends_with_its_children(self):
        step = self.report.run("part", "hangs", ["sh", "-c", "sleep 300 & echo $!; wait"], 0.5)
        self.assertIsNone(step.code)
        self.assertIn("ran past", self.kept()[0]["failed"])
        deadline = time.monotonic() + 30
        while self.runs(step.text.strip()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(self.runs(step.text.strip()))

    @staticmethod
    def runs(process):
        try:
            with open(f"/proc/{process}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def test_nothing_begins_when_no_time_is_left(self):
        self.report.end = time.monotonic()
        self.report.run("part", "late", PYTHON + ["pass"], 30)
        self.assertEqual(self.kept()[0]["result"], "not begun")

    def test_the_log_keeps_both_ends_of_long_output(self):
        self.report.run("part", "long", PYTHON + ["print('begin'); print('x' * 10**6); print('end')"], 30)
        with open(os.path.join(self.folder.name, "log.txt")) as f:
            text = f.read()
        self.assertLess(len(text), 500_000)
        self.assertIn("begin", text)
        self.assertTrue(text.endswith("end\n"))

    def test_googletest_reports(self):
        path = os.path.join(self.folder.name, "tests.json")
        judge = gpu_tests.judge_tests(path)
        self.assertIn("no report", judge(Step(-11, 1, "[  FAILED  ] A.B\n"))["failed"])
        tests = [{"classname": "A", "name": "Right", "result": "COMPLETED"},
                 {"classname": "A", "name": "Wrong", "result": "COMPLETED", "failures": [{"failure": "1 is not 2"}]}]
        for chosen, wanted in ((tests, "1 of 2 tests"), (tests[:1], None), ([], "no test ran")):
            with open(path, "w") as f:
                json.dump({"testsuites": [{"testsuite": chosen}]}, f)
            self.assertEqual(judge(Step(0, 1, "")).get("failed"), wanted)

    def test_a_limit_for_each_step(self):
        self.report.step_limit = 0.5
        self.report.run("part", "slow", PYTHON + ["import time; time.sleep(60)"], 30)
        self.assertIn("ran past", self.kept()[0]["failed"])

    def test_suites(self):
        listing = ("Running main() from gmock_main.cc\nSKIPPED: nothing. \nA/Suite.\n  First/0  # GetParam() = x\n"
                   "  Second/0\nEmpty.\nB.\n  Third\n")
        self.assertEqual(gpu_tests.suites_of(listing), {"A/Suite": ["First/0", "Second/0"], "B": ["Third"]})

    def test_sanitize_takes_a_suite_at_a_time(self):
        program = os.path.join(self.folder.name, "tests/engine/backends/cuda/conformance_test")
        os.makedirs(os.path.dirname(program))
        tools = os.path.join(self.folder.name, "tools")
        os.makedirs(tools)
        # Programs that say what they were called with.
        with open(program, "w") as f:
            f.write("#!/bin/sh\nprintf 'A.\\n  One\\n  Two\\nB.\\n  Three\\n'\n")
        with open(os.path.join(tools, "compute-sanitizer"), "w") as f:
            f.write("#!/bin/sh\necho \"$@\"\n")
        for path in (program, os.path.join(tools, "compute-sanitizer")):
            os.chmod(path, 0o755)
        setting = unittest.mock.Mock(plans={"PATH": tools + ":" + os.environ["PATH"]})
        setting.args.filter = None
        setting.program = lambda path: os.path.join(self.folder.name, path)
        gpu_tests.sanitize(setting, self.report)
        steps = self.kept()
        self.assertEqual([step["step"] for step in steps],
                         ["suites"] + [f"{tool} {suite}" for tool in gpu_tests.TOOLS for suite in "AB"])
        self.assertEqual((steps[0]["result"], steps[0]["suites"]), ("ok", 2))
        self.report.log.flush()
        with open(os.path.join(self.folder.name, "log.txt")) as f:
            log = f.read()
        self.assertIn("--tool racecheck", log)
        self.assertIn("--gtest_filter=A.One:A.Two\n", log)

    def test_data_sets_are_laid_out_as_the_daemon_has_them(self):
        data = os.path.join(self.folder.name, "sets")
        os.makedirs(os.path.join(data, "cifar-10"))
        os.makedirs(os.path.join(data, "mnist"))
        inner = os.path.join(self.folder.name, "test_batch.bin")
        for path in (inner, os.path.join(data, "mnist/images.gz")):
            with open(path, "w") as f:
                f.write("bytes")
        with tarfile.open(os.path.join(data, "cifar-10/cifar-10-binary.tar.gz"), "w:gz") as archive:
            archive.add(inner, "cifar-10-batches-bin/test_batch.bin")
        with lzma.open(os.path.join(data, "cifar-10/data_batch_1.bin.xz"), "w") as f:
            f.write(b"first")
        setting = unittest.mock.Mock(data=[data], examples="examples")
        setting.program = lambda path: os.path.join(self.folder.name, path)
        place = os.path.join(self.folder.name, "laid")
        environment = job_checks.programs_as_built(setting, place)
        self.assertEqual(sorted(os.listdir(environment["TANDEM_DATA"] + "/cifar-10")),
                         ["data_batch_1.bin", "test_batch.bin"])
        names = list(job_checks.cases(setting, self.report, "jobs", place))
        self.assertEqual(names, ["lenet-mnist", "matlab-cifar-10"])
        self.assertEqual({step["step"] for step in self.kept()},
                         {"lenet-fashion-mnist", "lenet-fashion-mnist-mxnet", "resnet18-fashion-mnist"})

    def test_kernels(self):
        judged = speed.judge_kernels(Step(0, 1, LAUNCHES))
        self.assertEqual((judged["launches"], judged["total_us"]), (3, 100))
        self.assertEqual(judged["top"][0], {"kernel": "gemm", "launches": 2, "us": 90, "share": 0.9})

    def test_speeds_are_compared_with_the_best_peer(self):
        figures = {"figures": {"tf32": True}, "gpu_memory_mib": 100}
        self.report.add("probe", "pytorch", "ok", 1, {"bfloat16_tflops": 700, "tf32_tflops": 350})
        self.report.add("bench", "lenet float32", "ok", 1, {"images_per_second": 400.0, **figures})
        self.report.add("peers", "lenet float32 channels-last", "ok", 1, {"images_per_second": 200.0, **figures})
        self.report.add("peers", "lenet float32 channels-first", "ok", 1, {"images_per_second": 100.0, **figures})
        speed.compare(self.report)
        step = self.kept()[-1]
        self.assertEqual((step["part"], step["ratio"], step["result"]), ("compare", 2.0, "failed"))
        self.assertEqual(step["best_peer"], "peers lenet float32 channels-last")

    def test_run_sh_says_what_its_parts_are(self):
        said = subprocess.run(["bash", os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.sh"), "--help"],
                              capture_output=True, text=True, check=True).stdout
        for part in ("conformance", "many-jobs", "peers-compile"):
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main()
