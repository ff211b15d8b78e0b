#!/usr/bin/env python3
"""Tests of run.sh without a GPU: steps that fail, hang or print something unexpected, and the presets."""
import gzip
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

import checks
import gpu_tests
import job_checks
import presets
import speed
from presets import PRESETS
from report import Report, Step

PYTHON = [sys.executable, "-c"]
# Output of GoogleTest, whose summary names the failed test again.
TESTS = """[==========] Running 4 tests from 1 test suite.
[ RUN      ] A.Right
some words[       OK ] A.Right (3 ms)
[ RUN      ] A.Wrong/0
a warning
a.cc:7: Failure
1 is not 2
[  FAILED  ] A.Wrong/0, where GetParam() = 4-byte object <00> (0 ms)
[ RUN      ] A.Skipped
[  SKIPPED ] A.Skipped (0 ms)
[----------] 3 tests from A (3 ms total)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Skipped
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Wrong/0, where GetParam() = 4-byte object <00>
"""


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.report = Report(self.folder.name, 60)

    def log(self):
        with gzip.open(os.path.join(self.folder.name, "log.gz"), "rt") as f:
            return f.read()

    def write_program(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

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
        self.assertIn("cannot read its output", steps[2]["failed"])

    def test_a_step_that_hangs_ends_with_its_children(self):
        step = self.report.run("part", "hangs", ["sh", "-c", "sleep 300 & echo $!; wait"], 0.5)
        self.assertIsNone(step.code)
        self.assertIn("ran past", self.kept()[0]["failed"])
        self.await_end(step.text.strip())

    def test_a_step_that_hangs_ends_what_its_trap_ends(self):
        script = "trap 'kill -9 $process' EXIT; setsid sleep 300 & process=$!; echo $process; sleep 300; exit 1"
        step = self.report.run("part", "hangs", ["bash", "-c", script], 0.5)
        self.assertIsNone(step.code)
        self.await_end(step.text.strip())

    def await_end(self, process):
        deadline = time.monotonic() + 30
        while self.runs(process) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(self.runs(process))

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
        text = self.log()
        self.assertLess(len(text), 500_000)
        self.assertIn("begin", text)
        self.assertTrue(text.endswith("end\n"))

    def test_a_killed_run_keeps_the_log_of_earlier_steps(self):
        self.report.run("part", "done", PYTHON + ["print('first words')"], 30)
        self.assertIn("first words", self.log())  # Nothing was closed before this read.
        self.report.run("part", "next", PYTHON + ["print('second words')"], 30)
        self.assertRegex(self.log(), "(?s)first words.*second words")

    def test_googletest_output(self):
        judged = gpu_tests.judge_tests(Step(1, 1, TESTS))
        self.assertEqual((judged["planned"], judged["tests"], judged["passed"], judged["skipped"]), (4, 3, 1, 1))
        self.assertEqual(judged["failing"], ["A.Wrong/0"])
        self.assertEqual(judged["failures"], {"A.Wrong/0": "a.cc:7: Failure\n1 is not 2"})
        self.assertEqual(judged["failed"], "1 of 3 tests")

    def test_googletest_output_names_the_test_that_ran_at_a_crash(self):
        end = TESTS.index("[----------]")
        self.report.run("part", "crash", PYTHON + [f"import os; print({TESTS[:end]!r}); print('[ RUN      ] A.Last');"
                                                   "print('half', flush=True); os.kill(os.getpid(), 11)"], 30,
                        judge=gpu_tests.judge_tests)
        self.report.run("part", "hang", PYTHON + ["print('[ RUN      ] B.Slow', flush=True); import time;"
                                                  "time.sleep(60)"], 1, judge=gpu_tests.judge_tests)
        crash, hang = self.kept()
        self.assertEqual(crash["failed"], "exit code -11; 1 of 3 tests; A.Last did not end")
        self.assertEqual((crash["tests"], crash["running"], crash["running_text"]), (3, "A.Last", "half"))
        self.assertEqual(hang["failed"], "ran past its 1 s; B.Slow did not end")

    def test_googletest_output_without_a_test_that_ran(self):
        self.assertEqual(gpu_tests.judge_tests(Step(0, 1, "SKIPPED: no GPU\n"))["failed"], "no test ran")
        skipped = "[ RUN      ] A.B\n[  SKIPPED ] A.B (0 ms)\n"
        self.assertEqual(gpu_tests.judge_tests(Step(0, 1, skipped))["failed"], "no test ran")
        passed = skipped.replace("[  SKIPPED ]", "[       OK ]")
        self.assertNotIn("failed", gpu_tests.judge_tests(Step(0, 1, passed)))

    def test_the_text_of_failures_is_bounded(self):
        text = "".join(f"[ RUN      ] A.T{i}\na.cc:1: Failure\n{'x' * 9000}\n[  FAILED  ] A.T{i} (1 ms)\n"
                       for i in range(40))
        judged = gpu_tests.judge_tests(Step(1, 1, text))
        self.assertEqual((judged["tests"], len(judged["failing"]), len(judged["failures"])), (40, 40, 15))
        self.assertEqual({len(text) for text in judged["failures"].values()}, {500})

    def test_a_limit_for_each_step(self):
        self.report.step_limit = 0.5
        self.report.run("part", "slow", PYTHON + ["import time; time.sleep(60)"], 30)
        self.assertIn("ran past", self.kept()[0]["failed"])

    def test_suites(self):
        listing = ("Running main() from gmock_main.cc\nSKIPPED: nothing. \nA/Suite.\n  First/0  # GetParam() = x\n"
                   "  Second/0\nEmpty.\nB.\n  Third\n")
        self.assertEqual(gpu_tests.suites_of(listing), {"A/Suite": ["First/0", "Second/0"], "B": ["Third"]})

    def setting(self, *arguments):
        return checks.Setting(checks.parse(["--out", self.folder.name, "--bundle", self.folder.name, *arguments]))

    def test_sanitize_takes_a_suite_at_a_time(self):
        # Fake programs that print their arguments.
        self.write_program("tests/engine/backends/cuda/conformance_test",
                           "#!/bin/sh\nprintf 'A.\\n  One\\n  Two\\nB.\\n  Three\\n'; echo \"$@\"\n")
        self.write_program("tools/compute-sanitizer", "#!/bin/sh\necho \"$@\"\n")
        with unittest.mock.patch.dict(os.environ, PATH=self.folder.name + "/tools:" + os.environ["PATH"]):
            gpu_tests.sanitize(self.setting("--filter", "A*"), self.report)
        steps = self.kept()
        self.assertEqual([step["step"] for step in steps],
                         ["suites"] + [f"{tool} {suite}" for tool in gpu_tests.TOOLS for suite in "AB"])
        self.assertEqual((steps[0]["result"], steps[0]["suites"]), ("ok", 2))
        self.assertIn("--tool racecheck", self.log())
        self.assertIn("--gtest_filter=A.One:A.Two\n", self.log())
        self.assertIn("--gtest_list_tests --gtest_filter=A*\n", self.log())

    def test_programs_that_need_a_gpu(self):
        self.write_program("tests/gpu/parity_test", "#!/bin/sh\necho '[ RUN      ] A.B'; echo '[       OK ] A.B'\n")
        gpu_tests.conformance(self.setting(), self.report)
        steps = {step["step"]: step for step in self.kept()}
        self.assertEqual(set(steps), {*gpu_tests.PROGRAMS, "fault_test"})
        self.assertEqual((steps["parity_test"]["result"], steps["parity_test"]["passed"]), ("ok", 1))
        self.assertEqual(steps["fault_test"]["result"], "left out")
        self.assertIn("no such program", steps["driver_test"]["failed"])

    def test_a_dry_run_takes_the_emulation(self):
        passing = "#!/bin/sh\necho '[ RUN      ] A.B'; echo '[       OK ] A.B'; echo \"given $@\"\n"
        for path in ("engine/backends/cuda/driver/emulated_driver_test", "tests/gpu/parity_emulated_test",
                     "tests/golden/golden_emulated_bfloat16_test", "tests/golden/golden_emulated_test"):
            self.write_program("bazel-bin/" + path, passing)
        parts = [("conformance", 20, {"programs": ["driver_test", "parity_test", "collective_test"]}),
                 ("golden", 20, {"backends": ["gpu", "gpu-bfloat16"]}), ("bench", 20, {})]
        checks.run_parts(parts, self.setting("--dry-run"), self.report)
        self.assertEqual([(step["step"], step["result"]) for step in self.kept()],
                         [("driver_test", "ok"), ("parity_test", "ok"), ("collective_test", "left out"), ("gpu", "ok"),
                          ("gpu-bfloat16", "ok"), ("all", "left out")])
        self.assertIn("given --backend=gpu-bfloat16 --dir=", self.log())

    def test_presets_bound_every_step(self):
        for name in PRESETS:
            limits = self.limits_of(name)
            self.assertGreater(len(limits), 3)
            self.assertTrue(all(0 < limit <= 320 for _, limit in limits), limits)

    def test_the_checks_of_a_change_fit_into_ten_minutes(self):
        self.assertLessEqual(sum(limit for _, limit in self.limits_of("again")), 560)

    def test_launches_of_many_steps_have_the_loss_of_single_steps(self):
        for losses, result in ((("0.25", "0.25"), "ok"), (("0.25", "0.26"), "failed"), (("null", "null"), "failed"),
                               (("", "0.25"), "failed")):
            self.report.steps.clear()
            self.write_program("tests/bench/train_bench", f"""#!/bin/sh
case "$*" in
  *--deterministic*--steps-per-launch=1) loss={losses[0]} ;;
  *--deterministic*--steps-per-launch=64) loss={losses[1]} ;;
esac
echo "{{\\"loss\\": $loss}}"
""")
            speed.launches(self.setting("--networks", "lenet", "--dtypes", "bfloat16"), self.report)
            steps = self.kept()
            self.assertEqual([step["step"] for step in steps], ["lenet bfloat16 1", "lenet bfloat16 64"])
            self.assertEqual(steps[1]["result"], result, steps)

    def limits_of(self, preset):
        """Returns each step's part and limit. Nothing runs."""
        limits = []
        listing = "Float32/DeviceConformance.\n  T/0\nBFloat16/DeviceConformance.\n  T/0\n"

        def run(part, name, command, limit, *_, judge=None, **__):
            limits.append((part, limit))
            step = Step(1 if part == "job" else 0, 0, listing)
            if name == "suites":
                judge(step)
            return step

        data = os.path.join(self.folder.name, "data")
        for path in ("mnist/a.gz", "fashion-mnist/train-images-idx3-ubyte.gz"):
            self.write_program("data/" + path, "")
        for program, folder in {**gpu_tests.PROGRAMS, "golden_test": "golden"}.items():
            self.write_program(f"tests/{folder}/{program}", "")
        report = unittest.mock.Mock(run=run)
        checks.run_parts(presets.PRESETS[preset], self.setting("--data", data), report)
        self.assertFalse([call for call in report.add.call_args_list if "left out" in call.args], report.add.mock_calls)
        return limits

    def test_the_command_line_overrides_a_preset(self):
        setting = self.setting("--filter", "Mine*").having(7, {"filter": "Preset*", "dtypes": ["float16"]})
        self.assertEqual((setting.limit, setting.filter, setting.dtypes), (7, "Mine*", ["float16"]))
        with self.assertRaises(ValueError):
            setting.having(7, {"filtre": "A"})

    def test_a_job_that_fails_runs_again_without_the_sandbox(self):
        script = os.path.join(checks.HERE, "one_job.sh")
        calls = []
        fake = unittest.mock.Mock()
        for codes, wanted in (([0], 1), ([1, 0], 2), ([None, 1], 2)):
            calls.clear()
            left = list(codes)

            def run(part, name, command, *_, **__):
                calls.append(command)
                return Step(left.pop(0), 1, "")

            fake.run = run
            self.write_program("data/mnist/a.gz", "")
            job_checks.job(self.setting("--data", self.folder.name + "/data").having(9, {"epochs": 4}), fake)
            self.assertEqual(len(calls), wanted)
            self.assertEqual(calls[0], ["bash", script, "--epochs", "4"])
            if wanted == 2:
                self.assertEqual(calls[1], [*calls[0], "--sandbox", "off"])

    def test_one_job(self):
        # A fake daemon, whose client fails to watch a job in the sandbox.
        for path, text in (("server/daemon/tandemd", """
while [ $# -gt 0 ]; do
  case $1 in --state-folder) state=$2 ;; --worker-sandbox) mode=$2 ;; esac
  shift
done
mkdir -p "$state" && echo "$mode" >"$state/mode" && echo 127.0.0.1:1 >"$state/address"
while [ ! -e "$state/stop" ]; do sleep 0.02; done
"""), ("client/cli/tandem", """
state=$(dirname "$TANDEM_TOKEN_FILE")
case $1 in
  submit) echo "submitted jobs/x given $*" ;;
  watch) grep -q off "$state/mode" ;;
  logs) echo "t info confined: nothing" && echo "cannot fork" ;;
  describe) echo '{"lastEpoch": {"trainingSeconds": 1.5, "validation": {"metrics": {"accuracy": 0.98}}}}' ;;
  shutdown) touch "$state/stop" ;;
esac
"""), ("server/worker/tandem-worker", "")):
            self.write_program("bin/" + path, "#!/bin/sh" + text)
        command = ["bash", os.path.join(checks.HERE, "one_job.sh"), "--epochs", "2", "--set", "replicas.count=1"]
        environment = {"TANDEM_BIN_DIR": self.folder.name + "/bin", "TANDEM_DATA": self.folder.name}
        confined = self.report.run("job", "confined", command, 30, environment)
        free = self.report.run("job", "free", [*command, "--sandbox", "off"], 30, environment)
        self.assertEqual([step["result"] for step in self.kept()], ["failed", "ok"], confined.text + free.text)
        self.assertIn("cannot fork", confined.text)
        line = free.json_lines()[-1]
        self.assertEqual((line["sandbox"], line["confined"], line["epochs"], line["epoch_seconds"], line["accuracy"]),
                         ("off", "nothing", 2, 1.5, 0.98))

    def test_two_workers(self):
        # A fake worker, which writes as NCCL and the worker do.
        self.write_program("bin/server/worker/tandem-worker", """#!/bin/sh
[ "$NCCL_HOSTID" = h$RANK ] && [ "$WORLD_SIZE" = 2 ] && python3 -m json.tool "$2" >/dev/null || exit 4
mkdir -p "$4"
touch "$4/model.safetensors"
echo "host:1:2 [0] NCCL INFO ncclCommInitRankConfig comm 0x1 - Init COMPLETE"
echo "I step 200 of 200: training loss 0.25, 9 samples/s"
""")
        step = self.report.run("workers", "two", ["bash", os.path.join(checks.HERE, "two_workers.sh")], 30,
                               {"TANDEM_BIN_DIR": self.folder.name + "/bin"}, judge=job_checks.judge_workers)
        self.assertEqual(step.json_lines()[-1],
                         {"exit_codes": [0, 0], "nccl_ranks": 2, "loss": 0.25, "model": True})
        self.assertEqual(self.kept()[0]["result"], "ok")
        lone = '{"exit_codes": [0, 0], "nccl_ranks": 1}'
        self.assertIn("1 of 2 workers", job_checks.judge_workers(Step(0, 1, lone))["failed"])
        self.assertIn("exit codes", job_checks.judge_workers(Step(0, 1, lone.replace("[0,", "[5,")))["failed"])

    def test_a_whole_run_from_an_archive(self):
        tests = "#!/bin/sh\necho '[ RUN      ] A.B'; echo '[       OK ] A.B'\necho p >>$TANDEM_CUDA_PLANS\n"
        path = self.write_program("tandem/tests/golden/golden_test", tests)
        archive = os.path.join(self.folder.name, "bundle.tar.xz")
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(path, "tandem/tests/golden/golden_test")
        plans = self.write_program("plans", "kept\n")
        out = os.path.join(self.folder.name, "out")
        for seen in (False, True):  # The second run finds the unpacked bundle.
            process = subprocess.run(["bash", os.path.join(checks.HERE, "run.sh"), "--bundle", archive, "--out", out,
                                      "--plans", plans, "--limit", "60", "golden"], capture_output=True, text=True,
                                     env={**os.environ, "TMPDIR": self.folder.name})
            self.assertEqual(process.returncode, 0, (seen, process.stdout, process.stderr))
        with open(out + "/report.json") as f:
            steps = json.load(f)["steps"]
        self.assertEqual([step["step"] for step in steps], ["unpack", *gpu_tests.BACKENDS])
        self.assertEqual(sorted(os.listdir(out)), ["cuda-plans", "log.gz", "report.json", "summary.txt"])
        with open(out + "/cuda-plans") as f:
            self.assertEqual(f.read().split(), ["kept", "p", "p", "p"])
        self.assertEqual(len([name for name in os.listdir(self.folder.name) if name.startswith("tandem-bundle-")]), 1)

    def run_sh(self, *arguments):
        return subprocess.Popen(["bash", os.path.join(checks.HERE, "run.sh"), *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def test_a_run_that_is_ended_keeps_the_words_of_its_step(self):
        self.write_program("tests/golden/golden_test", "#!/bin/sh\necho \"[ RUN      ] A.$1\"\nexec sleep 300\n")
        out = os.path.join(self.folder.name, "out")
        process = self.run_sh("--bundle", self.folder.name, "--out", out, "golden")
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while not os.path.exists(out + "/report.json") and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        process.terminate()
        said = process.communicate(timeout=30)[0]
        self.assertEqual(process.returncode, 1, said)
        with open(out + "/report.json") as f:
            steps = json.load(f)["steps"]
        self.assertEqual([step["result"] for step in steps], ["failed", "not begun", "not begun"])
        self.assertIn("the run was ended; A.--backend=gpu did not end", steps[0]["failed"])
        with gzip.open(out + "/log.gz", "rt") as f:
            self.assertIn("A.--backend=gpu\n", f.read())

    def test_wrong_folders_are_reported(self):
        bundle = ["--bundle", self.folder.name]
        for arguments, words in ((["--bundle", "/nowhere/a.tar.xz"], "cannot find the bundle /nowhere/a.tar.xz"),
                                 ([*bundle, "--out", "/proc/out"], "give another folder with --out")):
            process = self.run_sh(*arguments, "golden")
            said = process.communicate(timeout=30)[0]
            self.assertEqual(process.returncode, 1)
            self.assertIn(words, said)
            self.assertNotIn("Traceback", said)
        process = self.run_sh(*bundle, "--out", self.folder.name + "/out", "--data", "/nowhere", "epochs")
        self.assertIn("cannot find the folder /nowhere of --data", process.communicate(timeout=30)[0])
        self.assertEqual(process.returncode, 1)

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
        chosen = job_checks.programs_as_built(setting, os.path.join(self.folder.name, "chosen"), ["mnist"])
        self.assertEqual(os.listdir(chosen["TANDEM_DATA"]), ["mnist"])
        names = list(job_checks.cases(setting, self.report, "jobs", place))
        self.assertEqual(names, ["lenet-mnist", "matlab-cifar-10"])
        self.assertEqual({step["step"] for step in self.kept()},
                         {"lenet-fashion-mnist", "lenet-fashion-mnist-mxnet", "resnet18-fashion-mnist"})

    def test_kernels(self):
        path = os.path.join(self.folder.name, "trace")
        with open(path, "w", encoding="utf-8") as f:
            f.write("0\t500000\t7\tsearch\n")
            # A step of 100 us: two kernels, of which the second begins before the first ends, and 30 us without any.
            for step in range(100):
                begin = 1000000 + 100000 * step
                f.write(f"{begin}\t{begin + 50000}\t7\tgemm\n{begin + 40000}\t{begin + 70000}\t8\trelu<float>\n")
        line = '{"batch": 10, "images_per_second": 100000}'
        judged = speed.judge_trace(path, Step(0, 1, line))
        self.assertAlmostEqual(judged["launches_a_step"], 2, delta=0.05)
        self.assertAlmostEqual(judged["kernels_us"], 80, delta=2)
        self.assertAlmostEqual(judged["idle_us"], 30, delta=2)
        self.assertEqual([kernel["kernel"] for kernel in judged["top"]], ["gemm", "relu<float>"])
        self.assertAlmostEqual(judged["top"][0]["us"], 50, delta=2)

    def test_traces_are_kept_compressed(self):
        self.write_program("tests/bench/train_bench", """#!/bin/sh
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do printf "${i}000\\t${i}500\\t7\\tgemm\\n"; done \
  >$TANDEM_KERNEL_TRACE
echo '{"batch": 1, "images_per_second": 1000000}'
""")
        speed.kernels(self.setting("--networks", "lenet", "--dtypes", "bfloat16"), self.report)
        self.assertEqual((self.kept()[0]["result"], self.kept()[0]["top"][0]["kernel"]), ("ok", "gemm"))
        with gzip.open(os.path.join(self.folder.name, "trace-lenet-bfloat16.gz"), "rt") as f:
            self.assertEqual(len(f.readlines()), 21)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "trace-lenet-bfloat16")))

    def test_an_empty_trace_fails(self):
        path = os.path.join(self.folder.name, "trace")
        with open(path, "w", encoding="utf-8"):
            pass
        self.assertIn("failed", speed.judge_trace(path, Step(0, 1, '{"batch": 10, "images_per_second": 100000}')))

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
        for part in ("conformance", "many-jobs", "peers-compile", "workers", "--preset"):
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main()
