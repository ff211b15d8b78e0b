"""The C++ rules of all rooms: Bazel's own, with a precompiled header before each source."""

# Rooms that know no messages. All others use the precompiled header of the messages.
_WITHOUT_MESSAGES = [
    "engine/backend",
    "engine/backends",
    "engine/base",
    "engine/checkpoint",
    "engine/collectives",
    "engine/graph",
    "engine/tensor",
    "tests/bench/cpu",
    "tests/rooms",
]

# Tests are compiled faster, not run faster.
TEST_COPTS = ["-O0"]

def _is_within(package, folder):
    return package == folder or package.startswith(folder + "/")

def _with_header(kwargs, precompiled, is_test):
    """Adds the precompiled header to the rule's attributes.

    Args:
      kwargs: the attributes.
      precompiled: False if the rule has flags that differ from the header's.
      is_test: whether the sources are a test's.
    """
    if not precompiled:
        return kwargs
    package = native.package_name()
    name = "base" if any([_is_within(package, room) for room in _WITHOUT_MESSAGES]) else "messages"
    copts = []
    if is_test:
        name += "_test"
        copts = TEST_COPTS
    result = dict(kwargs)
    result["copts"] = copts + kwargs.get("copts", []) + select({
        "//third_party/precompiled:off": [],
        "//conditions:default": [
            # A header that does not fit the flags is an error, not a slow build.
            "-Winvalid-pch",
            # The source depends on all headers inside: the compiler lists them for Bazel.
            "-fpch-deps",
            "-include",
            "$(BINDIR)/third_party/precompiled/%s.h" % name,
        ],
    })
    result["deps"] = kwargs.get("deps", []) + select({
        "//third_party/precompiled:off": [],
        "//conditions:default": ["//third_party/precompiled:" + name],
    })
    return result

def cc_library(precompiled = True, **kwargs):
    is_test = bool(kwargs.get("testonly", False))
    native.cc_library(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), is_test))

def cc_binary(precompiled = True, **kwargs):
    native.cc_binary(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), bool(kwargs.get("testonly", False))))

def cc_test(precompiled = True, **kwargs):
    native.cc_test(**_with_header(kwargs, precompiled and bool(kwargs.get("srcs")), True))
