"""Kernels, compiled by nvcc for GPUs and by the host's compiler for the emulation."""

load("@local_cuda//:defs.bzl", "CUDA_AVAILABLE", "CUDA_RELEASE", "NVCC")
load("//third_party/precompiled:cc.bzl", "cc_library")

# A release has code for Ampere and Hopper, and PTX for newer GPUs.
_RELEASE_TARGETS = " ".join([
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
])

# Other builds compile once: code for Hopper, and PTX from which the driver makes code for every other GPU since Ampere.
_TARGETS = "-gencode=arch=compute_80,code=[sm_90,compute_80]"

# A group's sources share the time that nvcc takes for headers. Their anonymous namespaces must not define a name twice.
_SOURCES_OF_A_GROUP = 5

def cuda_kernels(name, srcs, hdrs, deps):
    """Makes two libraries of kernels: `name` by nvcc (empty without a toolkit), and `<name>_emulated` for the host.

    Args:
      name: the name of nvcc's library.
      srcs: .cu files.
      hdrs: the headers that the .cu files and the libraries' users include.
      deps: the libraries that the headers need.
    """
    emulated = []
    objects = []
    groups = (len(srcs) + _SOURCES_OF_A_GROUP - 1) // _SOURCES_OF_A_GROUP
    for i in range(groups):
        group = srcs[len(srcs) * i // groups:len(srcs) * (i + 1) // groups]
        stem = "%s_group_%d" % (name, i)
        native.genrule(
            name = stem + "_sources",
            outs = [stem + ".cu", stem + "_emulated.cc"],
            cmd = "for file in $(OUTS); do printf '#include \"%s/%%s\"\\n' %s > $$file; done" % (native.package_name(), " ".join(group)),
        )
        emulated.append(stem + "_emulated.cc")
        if CUDA_AVAILABLE:
            # -O1 is for the host's code, which launches kernels. Without --dopt or -G, GPU code is always optimised fully.
            native.genrule(
                name = stem + "_by_nvcc",
                srcs = [stem + ".cu"] + group + hdrs + [
                    "//engine/backends/cuda:kernel_headers",
                    "//engine/graph:formula_headers",
                    "//engine/tensor:type_headers",
                ],
                outs = [stem + ".pic.o"],
                # The release makes Bazel compile again after an upgrade in place.
                cmd = "CUDA_RELEASE=%s %s -c $(location %s.cu) -o $@ -std=c++20 -O1 --extended-lambda -I. " % (CUDA_RELEASE, NVCC, stem) +
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
        # They are joined already.
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
