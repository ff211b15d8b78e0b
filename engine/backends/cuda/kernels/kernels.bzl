"""Kernels, compiled by nvcc for GPUs and by the host's compiler for the emulation."""

load("@local_cuda//:defs.bzl", "CUDA_AVAILABLE", "NVCC")
load("//third_party/precompiled:cc.bzl", "cc_library")

# A release has code for Ampere and Hopper, and PTX for newer GPUs.
_RELEASE_TARGETS = " ".join([
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
])

# Other builds compile once: code for Hopper, and PTX from which the driver makes code for every other GPU since Ampere.
_TARGETS = "-gencode=arch=compute_80,code=[sm_90,compute_80]"

def cuda_kernels(name, srcs, hdrs, deps):
    """Makes the library `name` of nvcc's objects (empty without a toolkit) and `<name>_emulated`.

    Args:
      name: of the libraries.
      srcs: .cu files.
      hdrs: what they and their users include.
      deps: libraries of the headers.
    """
    emulated = []
    objects = []
    for src in srcs:
        stem = src[:-len(".cu")]
        native.genrule(
            name = stem + "_as_cc",
            outs = [stem + "_emulated.cc"],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), src),
        )
        emulated.append(stem + "_emulated.cc")
        if CUDA_AVAILABLE:
            native.genrule(
                name = stem + "_by_nvcc",
                srcs = [src] + hdrs + [
                    "//engine/backends/cuda:kernel_headers",
                    "//engine/tensor:type_headers",
                ],
                outs = [stem + ".pic.o"],
                cmd = "%s -c $(location %s) -o $@ -std=c++20 -O3 --extended-lambda -I. " % (NVCC, src) +
                      "-Xcompiler=-fPIC,-Wall,-Wno-unknown-pragmas -Werror=all-warnings " +
                      select({
                          "//:release": _RELEASE_TARGETS,
                          "//conditions:default": _TARGETS,
                      }),
            )
            objects.append(stem + ".pic.o")
    cc_library(
        name = name + "_emulated",
        srcs = emulated + ["emulator.cc"],
        hdrs = hdrs + [
            "emulated_launch.h",
            "emulator.h",
        ],
        copts = ["-Wno-unknown-pragmas"],
        # Each source defines kernels of the same names.
        joined = False,
        textual_hdrs = srcs,
        deps = deps + ["//engine/backends/cuda/driver:emulated_stream"],
    )
    cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        deps = deps,
    )
