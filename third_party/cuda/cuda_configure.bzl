"""Finds the CUDA toolkit in $CUDA_HOME or /usr/local/cuda. Prints whether the build uses CUDA.

The repository has `defs.bzl`, with CUDA_AVAILABLE, CUDA_MAJOR (13; 0 without a toolkit), CUDA_RELEASE ("13.0"), NVCC
(the compiler's path) and `if_cuda(yes, no)`. With a toolkit, the repository also has the library `cuda`.
"""

# cuDNN and NCCL. A toolkit may or may not include them.
_HEADERS = ["cudnn.h", "nccl.h"]
_SYSTEM_INCLUDES = ["/usr/include", "/usr/include/x86_64-linux-gnu"]

def _cuda_configure_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    wanted = ctx.os.environ.get("TANDEM_CUDA", "auto")
    if wanted not in ["auto", "0", "1"]:
        fail("TANDEM_CUDA must be auto, 0 or 1, not '%s'" % wanted)
    nvcc = ctx.path(home + "/bin/nvcc")
    missing = [] if nvcc.exists else [str(nvcc)]
    for header in _HEADERS:
        if not any([ctx.path(folder + "/" + header).exists for folder in [home + "/include"] + _SYSTEM_INCLUDES]):
            missing.append(header)
    found = wanted != "0" and not missing
    if wanted == "1" and not found:
        fail("TANDEM_CUDA=1, but there is no %s: set CUDA_HOME to the toolkit's folder, and install cuDNN and NCCL for it" % ", no ".join(missing))

    major = "0"
    release = ""
    if found:
        version = ctx.execute([nvcc, "--version"]).stdout
        release = version[version.find("release "):].split(",")[0] if "release " in version else "of unknown release"
        major = release.replace("release ", "").split(".")[0]
        if not major.isdigit():
            fail("%s --version does not say which release of CUDA it is of" % nvcc)

        # buildifier: disable=print
        print("CUDA: found %s in %s" % (release, home))
        ctx.symlink(home + "/include", "include")
        ctx.file("BUILD", """
cc_library(
    name = "cuda",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    # The runtime is linked into the program. Only the driver is loaded at run time.
    linkopts = ["%s/lib64/libcudart_static.a", "-ldl", "-lrt", "-lpthread"],
    visibility = ["//visibility:public"],
)
""" % home)
    else:
        why = "TANDEM_CUDA=0" if wanted == "0" else "no " + ", no ".join(missing)

        # buildifier: disable=print
        print("CUDA: left out (%s)" % why)
        ctx.file("BUILD", "")
    ctx.file("defs.bzl", """
CUDA_AVAILABLE = %s
CUDA_MAJOR = %s
CUDA_RELEASE = "%s"
NVCC = "%s"

def if_cuda(yes, no = []):
    return yes if CUDA_AVAILABLE else no
""" % (found, major, release.replace("release ", ""), nvcc))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "TANDEM_CUDA"],
    local = True,
)
