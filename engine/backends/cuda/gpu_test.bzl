"""Tests of what runs on GPUs."""

load("@local_cuda//:defs.bzl", "CUDA_AVAILABLE")
load("//third_party/precompiled:cc.bzl", "cc_library", "cc_test")

def gpu_test(
        name,
        srcs,
        deps,
        emulated = None,
        size = "medium",
        emulated_size = None,
        gpu_deps = ["//engine/backends/cuda"],
        emulated_deps = ["//engine/backends/cuda:emulated"]):
    """Makes the test `name` of GPUs, where there is a toolkit, and one of the same on the emulation.

    Args:
      name: of the former, which skips what needs a GPU where there is none.
      srcs: of both.
      deps: of both, without a driver and kernels' code.
      emulated: the latter's name; default: emulated_<name>.
      size: of the former.
      emulated_size: of the latter; default: the same.
      gpu_deps: the driver and kernels of GPUs.
      emulated_deps: the same of the emulation.
    """
    cases = name + "_cases"
    cc_library(
        name = cases,
        testonly = True,
        srcs = srcs,
        deps = deps,
        # Nothing names a test case.
        alwayslink = True,
    )
    cc_test(
        name = emulated or "emulated_" + name,
        size = emulated_size or size,
        deps = [":" + cases] + emulated_deps,
    )
    if CUDA_AVAILABLE:
        cc_test(
            name = name,
            size = size,
            deps = [":" + cases] + gpu_deps,
        )
