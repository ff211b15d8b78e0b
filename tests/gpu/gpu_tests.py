"""The tests that need a GPU, and the same under compute-sanitizer."""
import json
import os
import tempfile


def judge_tests(path):
    """Counts of GoogleTest's report, and what failed, with the beginning of what was said."""

    def judge(step):
        if not os.path.exists(path):
            return {"failed": "it left no report" + ("" if step.code is None else f", exit code {step.code}"),
                    "failing": [line[12:] for line in step.text.splitlines() if line.startswith("[  FAILED  ]")]}
        with open(path) as f:
            suites = json.load(f).get("testsuites", [])
        tests = [test for suite in suites for test in suite.get("testsuite", [])]
        failing = [f"{test['classname']}.{test['name']}" for test in tests if test.get("failures")]
        skipped = sum(test.get("result") == "SKIPPED" for test in tests)
        judged = {"tests": len(tests), "skipped": skipped, "failing": failing,
                  "failures": {f"{test['classname']}.{test['name']}": [failure["failure"][:500] for failure in
                                                                       test["failures"][:10]]
                               for test in tests if test.get("failures")}}
        if failing:
            judged["failed"] = f"{len(failing)} of {len(tests)} tests"
        elif not tests or skipped == len(tests):
            judged["failed"] = "no test ran"
        return judged

    return judge


def run_tests(setting, report, part, program, options, limit, name=None, before=(), environment=None, folder=None):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "report.json")
        report.run(part, name or os.path.relpath(program, setting.program("tests")),
                   [*before, program, f"--gtest_output=json:{path}", *options], limit, environment, folder,
                   judge_tests(path))


def gpu_tests(setting):
    """The tests of the GPU's rooms."""
    found = []
    for room in ("tests/engine", "tests/gpu"):
        for folder, _, files in os.walk(setting.program(room)):
            found += [os.path.join(folder, name) for name in files if name.endswith("_test")]
    return sorted(found)


def conformance(setting, report):
    """The GPU's own tests: backend, kernels and communicator."""
    tests = gpu_tests(setting)
    if not tests:
        report.add("conformance", "tests", "left out", 0, {"why": "the bundle has no tests of GPUs"})
    for program in tests:
        run_tests(setting, report, "conformance", program,
                  [f"--gtest_filter={setting.args.filter}"] if setting.args.filter else [], 240)


def golden(setting, report):
    """Golden cases on the GPU in float32, bfloat16 and float16."""
    program = setting.program("tests/golden/golden_test")
    for backend in ("gpu", "gpu-bfloat16", "gpu-float16"):
        run_tests(setting, report, "golden", program, [f"--backend={backend}", f"--dir={setting.golden_data}"], 240,
                  backend)


def sanitize(setting, report):
    """compute-sanitizer over the backend's conformance tests."""
    for program in gpu_tests(setting):
        if not program.endswith("engine/backends/cuda/conformance_test"):
            continue
        for tool in ("memcheck", "racecheck", "initcheck"):
            run_tests(setting, report, "sanitize", program,
                      [f"--gtest_filter={setting.args.filter}"] if setting.args.filter else [], 240, name=tool,
                      before=["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--print-limit", "40"])
