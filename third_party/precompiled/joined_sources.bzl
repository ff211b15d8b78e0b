"""Joins sources, so that the compiler reads their headers once instead of once for each source."""

# More sources would share the headers' cost little better, and an edit would compile for longer.
_SOURCES_OF_A_JOINED_SOURCE = 8

def _joined_source_impl(ctx):
    ctx.actions.write(
        output = ctx.outputs.out,
        content = "".join(['#include "%s"\n' % source.short_path for source in ctx.files.srcs]),
    )

_joined_source = rule(
    implementation = _joined_source_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "out": attr.output(mandatory = True),
    },
)

def joined_sources(name, srcs, testonly = False):
    """Divides sources into groups of equal size and generates one source for each group, which includes the group.

    Sources of one group share a translation unit: their anonymous namespaces must not define a name twice. A library of
    one source stays as it is. With --define=precompiled=off, each source is compiled alone.

    Args:
      name: the library's name.
      srcs: files ending in .cc, and headers, which stay as they are.
      testonly: as in all rules.

    Returns:
      srcs: the sources that the library compiles instead.
      deps: further dependencies of the library.
    """
    sources = [src for src in srcs if src.endswith(".cc")]
    if len(sources) < 2:
        return struct(srcs = srcs, deps = [])
    count = (len(sources) + _SOURCES_OF_A_JOINED_SOURCE - 1) // _SOURCES_OF_A_JOINED_SOURCE
    joined = []
    for i in range(count):
        out = "%s.joined_%d.cc" % (name, i)
        _joined_source(
            name = out + "_source",
            srcs = sources[len(sources) * i // count:len(sources) * (i + 1) // count],
            out = out,
            testonly = testonly,
        )
        joined.append(out)
    native.cc_library(
        name = name + ".sources",
        testonly = testonly,
        textual_hdrs = sources,
    )
    return struct(
        srcs = select({
            "//third_party/precompiled:off": srcs,
            "//conditions:default": joined + [src for src in srcs if not src.endswith(".cc")],
        }),
        deps = [":%s.sources" % name],
    )
