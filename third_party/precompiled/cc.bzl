"""The C++ rules of the rooms: Bazel's own, with joined sources and a precompiled header.

tests/bench, tests/fuzz and engine/backends/cpu/kernels use Bazel's own rules: they have flags of their own.
"""

load(":joined_sources.bzl", "joined_sources")

# The smallest precompiled header that serves a room; of two matching folders, the later. All other rooms use "messages".
_HEADERS = {
    "engine/backend": "base",
    "engine/backends": "base",
    "engine/base": "base",
    "engine/checkpoint": "base",
    "engine/collectives": "base",
    "engine/graph": "base",
    "engine/tensor": "base",
    "tests/rooms": "base",
    "client/cli": "services",
    "client/lib": "services",
    "server/clusters": "services",
    "server/clusters/slurm": "messages",
    "server/daemon": "services",
    "server/rpc": "services",
    "server/worker": "services",
    "tests/fault": "services",
    "tests/integration": "services",
    "proto": "protobuf",
    "proto/data_folder": "messages",
    "proto/fields": "messages",
    "proto/job_file": "messages",
    "proto/schema": "messages",
}

# Only the engine computes, so only there faster programs are worth a slower compilation.
_COMPUTING = ["engine"]

# Tests are compiled faster, not run faster. A release and a debug build use their own flags for all other sources.
COPTS = {
    "test": ["-O0"],
    "computing": [],
    "other": select({
        "//:debug": [],
        "//:release": [],
        "//conditions:default": ["-O1"],
    }),
}

def _is_within(package, folder):
    return package == folder or package.startswith(folder + "/")

def _with_header(kwargs, precompiled, is_test):
    """Adds the optimization and the precompiled header of the package to the rule's attributes.

    Args:
      kwargs: the attributes.
      precompiled: False if the rule has flags that differ from the header's.
      is_test: whether the sources are a test's.
    """
    package = native.package_name()
    kind = "other"
    if is_test:
        kind = "test"
    elif any([_is_within(package, room) for room in _COMPUTING]):
        kind = "computing"
    result = dict(kwargs)
    result["copts"] = COPTS[kind] + kwargs.get("copts", [])
    if not precompiled:
        return result
    header = "messages"
    for room, name in _HEADERS.items():
        if _is_within(package, room):
            header = name
    name = "%s_%s" % (header, kind)
    result["copts"] += select({
        "//third_party/precompiled:off": [],
        "//conditions:default": [
            # clang's analysis of locks: an access without its lock is an error.
            "-Wthread-safety",
            # The paths inside the precompiled header begin here.
            "-Xclang",
            "-isysroot",
            "-Xclang",
            ".",
            "-include-pch",
            "$(BINDIR)/third_party/precompiled/%s.h.pch" % name,
        ],
    })
    result["deps"] = kwargs.get("deps", []) + select({
        "//third_party/precompiled:off": [],
        "//conditions:default": ["//third_party/precompiled:" + name],
    })
    return result

def cc_library(precompiled = True, joined = True, **kwargs):
    """Bazel's cc_library.

    Args:
      precompiled: False if the library has flags that differ from the header's.
      joined: False if the sources cannot share a translation unit, such as two that define the same name.
      **kwargs: the attributes of Bazel's rule.
    """
    is_test = bool(kwargs.get("testonly", False))
    srcs = kwargs.get("srcs", [])
    if joined and type(srcs) == type([]):
        groups = joined_sources(kwargs["name"], srcs, is_test)
        kwargs["srcs"] = groups.srcs
        kwargs["deps"] = kwargs.get("deps", []) + groups.deps
    native.cc_library(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), is_test))

def cc_binary(precompiled = True, **kwargs):
    native.cc_binary(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), bool(kwargs.get("testonly", False))))

def cc_test(precompiled = True, **kwargs):
    native.cc_test(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), True))
