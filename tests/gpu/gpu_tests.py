"""The tests that need a GPU, and the same tests under compute-sanitizer."""
import re

# The programs that need a GPU, below tests/ in the bundle, in the order in which they run. Left out are programs that
# need no GPU, such as cudnn_graph_test and library_errors_test.
PROGRAMS = {
    "driver_test": "engine/backends/cuda/driver",
    "probe_test": "engine/backends/cuda",
    "residual_test": "engine/backends/cuda",
    "libraries_test": "engine/backends/cuda/driver",
    "engines_test": "engine/backends/cuda/driver",
    "conformance_test": "engine/backends/cuda",
    "communicator_test": "engine/backends/cuda",
    "collective_test": "engine/backends/cuda/driver",
    "parity_test": "gpu",
    "float16_test": "gpu",
    "resident_test": "gpu",
}
# Programs that need a GPU but never run here, and why.
NEVER_RUN = {"fault_test": "it causes a hardware error report, and others may share the machine"}
BACKENDS = ["gpu", "gpu-bfloat16", "gpu-float16"]
# The tools of compute-sanitizer.
TOOLS = ["memcheck", "racecheck", "initcheck"]

MOST_FAILURES = 15  # Tests whose failure text is kept.
MOST_TEXT = 500  # Characters of each.
MARK = re.compile(r"\[ (RUN     |      OK| FAILED | SKIPPED) \] (\S+)")


def failure_text(lines):
    """The text from GoogleTest's first failure on, or all text if the test printed no failure."""
    first = next((i for i, line in enumerate(lines) if line.endswith(": Failure")), 0)
    return "\n".join(lines[first:])[:MOST_TEXT]


def judge_tests(step):
    """Counts the tests in the output of a GoogleTest program. A program that crashes or hangs keeps its counts."""
    lines = step.text.splitlines()
    planned = re.search(r"\[==========\] Running (\d+) tests?", step.text)
    results, running, failures = {}, {}, {}
    for number, line in enumerate(lines):
        mark = MARK.search(line)
        if not mark:
            continue
        result, name = mark[1].strip(), mark[2].rstrip(",")
        if result == "RUN":
            running[name] = number
        elif name in running:  # GoogleTest's summary names failed tests again; they no longer run there.
            first = running.pop(name)
            if results.get(name) != "FAILED":
                results[name] = result
            if result == "FAILED" and len(failures) < MOST_FAILURES:
                failures[name] = failure_text(lines[first + 1:number])
    ended = list(results.values())
    judged = {"tests": len(ended), "passed": ended.count("OK"), "skipped": ended.count("SKIPPED"),
              "failing": [name for name, result in results.items() if result == "FAILED"]}
    if planned:
        judged["planned"] = int(planned[1])
    if failures:
        judged["failures"] = failures
    reasons = [f"{len(judged['failing'])} of {len(ended)} tests"] if judged["failing"] else []
    if running:
        judged["running"] = list(running)[-1]
        reasons.append(f"{judged['running']} did not end")
        judged["running_text"] = failure_text(lines[running[judged["running"]] + 1:])
    elif len(ended) == judged["skipped"]:
        reasons.append("no test ran")
    if reasons:
        judged["failed"] = "; ".join(reasons)
    return judged


def suites_of(listing):
    """Returns the tests of each suite by the suite's name, from the output of --gtest_list_tests."""
    suites = {}
    tests = []
    for line in listing.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  ") and name:
            tests.append(name)
        elif name.endswith(".") and " " not in name:
            tests = suites.setdefault(name[:-1], [])
    return {suite: names for suite, names in suites.items() if names}


def filter_of(setting):
    return [f"--gtest_filter={setting.filter}"] if setting.filter else []


def conformance(setting, report):
    """The GPU's own tests: driver, libraries, kernels, backend and communicators."""
    if setting.programs == list(PROGRAMS):
        for name, why in NEVER_RUN.items():
            report.add("conformance", name, "left out", 0, {"why": why})
    for name in setting.programs:
        program = setting.test_program(report, "conformance", PROGRAMS[name], name)
        if not program:
            continue
        # libraries_test uses a plan file of its own.
        plans = None if name == "libraries_test" else setting.plans
        report.run("conformance", name, [program, *filter_of(setting)], setting.limit or 300, plans, judge=judge_tests)


def golden(setting, report):
    """Golden cases on the GPU in float32, bfloat16 and float16."""
    for backend in setting.backends:
        program = setting.test_program(report, "golden", "golden", "golden_test", backend)
        if program:
            report.run("golden", backend, [program, f"--backend={backend}", f"--dir={setting.golden_data}"],
                       setting.limit or 300, setting.plans, judge=judge_tests)


def sanitize(setting, report):
    """compute-sanitizer over the backend's conformance tests, a suite at a time."""
    program = setting.test_program(report, "sanitize", PROGRAMS["conformance_test"], "conformance_test")
    if not program:
        return
    found = {}

    def list_suites(step):
        found.update(suites_of(step.text))
        return {"suites": len(found)} if found else {"failed": "there are no tests"}

    report.run("sanitize", "suites", [program, "--gtest_list_tests", *filter_of(setting)], min(setting.limit or 60, 5),
               judge=list_suites)
    # The kernels of cuDNN and cuBLASLt run unchecked, and thus at full speed.
    own = ["--kernel-regex", f"kns={setting.kernels}"] if setting.kernels else []
    for tool in setting.tools:
        for suite, tests in found.items():
            chosen = ":".join(f"{suite}.{test}" for test in tests)
            report.run("sanitize", f"{tool} {suite}",
                       [setting.tool("compute-sanitizer"), "--tool", tool, "--error-exitcode", "9", "--print-limit",
                        "40", *own, program, f"--gtest_filter={chosen}"], setting.limit or 3600, setting.plans,
                       judge=judge_tests)
