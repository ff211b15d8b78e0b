"""Fuzz targets: see README.md."""

load("@rules_cc//cc:defs.bzl", "cc_test")

def fuzz_target(name, srcs, deps, runs = 2000, size = "small"):
    """A test that runs a fuzz target on its seeds, its corpus and `runs` mutated inputs.

    With --config=fuzz, builds libFuzzer's program instead.

    Args:
      name: TARGET_fuzz. The corpus is corpus/TARGET.tar.gz and finds/TARGET/.
      srcs: the target's sources.
      deps: the target's dependencies.
      runs: the number of mutated inputs in a run of the test.
      size: the test's size.
    """
    target = name[:-len("_fuzz")]
    corpus = native.glob(
        ["corpus/%s.tar.gz" % target, "finds/%s/*" % target],
        allow_empty = True,
    )
    cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = ["--runs=%d" % runs] + ["$(location %s)" % file for file in corpus],
        data = corpus,
        deps = deps + [":fuzz_target"] + select({
            ":libfuzzer": [":libfuzzer_seeds"],
            "//conditions:default": [":driver"],
        }),
        linkopts = select({
            ":libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
    )
