"""Tests that start daemons."""

load("//third_party/precompiled:cc.bzl", "cc_test")

def daemon_test(name, deps, timeout = "long", srcs = None, data = ["//tests/integration:programs"]):
    """A test of the programs under test.

    Args:
      name: of the test.
      deps: what it links, besides the harness and Abseil.
      timeout: of the test.
      srcs: default: NAME.cc.
      data: the programs that it starts.
    """
    cc_test(
        name = name,
        timeout = timeout,
        srcs = srcs or [name + ".cc"],
        data = data,
        deps = deps + [
            "//tests/integration:harness",
            "//third_party/absl",
        ],
    )
