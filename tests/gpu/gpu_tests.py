"""The tests that need a GPU, and the same under compute-sanitizer."""
import json
import os
import tempfile

# Of compute-sanitizer.
TOOLS = ("memcheck", "racecheck", "initcheck")


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


def suites_of(listing):
    """What --gtest_list_tests prints: the tests of each suite, by the suite's name."""
    suites = {}
    tests = []
    for line in listing.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  ") and name:
            tests.append(name)
        elif name.endswith(".") and " " not in name:
            tests = suites.setdefault(name[:-1], [])
    return {suite: names for suite, names in suites.items() if names}


def run_tests(setting, report, part, program, options, limit, name=None, before=(), environment=None, folder=None):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "report.json")
        report.run(part, name or os.path.relpath(program, setting.program("tests")),
                   [*before, program, f"--gtest_output=json:{path}", *options], limit, environment, folder,
                   judge_tests(path))


def filter_of(setting):
    return [f"--gtest_filter={setting.args.filter}"] if setting.args.filter else []


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
        # Those of the libraries have a memory of their own for what is chosen, and show it.
        plans = None if program.endswith("libraries_test") else setting.plans
        run_tests(setting, report, "conformance", program, filter_of(setting), 900, environment=plans)


def golden(setting, report):
    """Golden cases on the GPU in float32, bfloat16 and float16."""
    program = setting.program("tests/golden/golden_test")
    for backend in ("gpu", "gpu-bfloat16", "gpu-float16"):
        run_tests(setting, report, "golden", program, [f"--backend={backend}", f"--dir={setting.golden_data}"], 900,
                  backend, environment=setting.plans)


def sanitize(setting, report):
    """compute-sanitizer over the backend's conformance tests, a suite at a time."""
    for program in gpu_tests(setting):
        if not program.endswith("engine/backends/cuda/conformance_test"):
            continue
        found = {}

        def list_suites(step):
            found.update(suites_of(step.text))
            return {"suites": len(found)} if found else {"failed": "there are no tests"}

        report.run("sanitize", "suites", [program, "--gtest_list_tests", *filter_of(setting)], 120,
                   judge=list_suites)
        for tool in TOOLS:
            for suite, tests in found.items():
                chosen = ":".join(f"{suite}.{test}" for test in tests)
                run_tests(setting, report, "sanitize", program, [f"--gtest_filter={chosen}"], 3600,
                          name=f"{tool} {suite}", environment=setting.plans,
                          before=["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--print-limit", "40"])
