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
    """Makes two tests of the same sources: one on a GPU, if the build has a CUDA toolkit, and one on the emulation.

    Args:
      name: the GPU test's name. Without a GPU, this test skips the cases that need a GPU.
      srcs: the sources of both tests.
      deps: the dependencies of both tests, without a driver and kernels.
      emulated: the emulated test's name. Default: emulated_<name>.
      size: the GPU test's size.
      emulated_size: the emulated test's size. Default: `size`.
      gpu_deps: the driver and the kernels for GPUs.
      emulated_deps: the driver and the kernels of the emulation.
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
