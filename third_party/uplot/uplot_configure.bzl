"""Finds uPlot, which draws the dashboard's charts, in the folder of deploy/setup.sh.

Without uPlot, the build has no dashboard page, and prints this. The repository has `files`: uPlot's module and style
sheet, or nothing.
"""

_FOLDER = "/.cache/tandem/npm/uplot-1.6.32"
_FILES = ["uPlot.esm.js", "uPlot.min.css"]

def _uplot_configure_impl(ctx):
    folder = ctx.os.environ.get("HOME", "") + _FOLDER
    missing = [name for name in _FILES if not ctx.path(folder + "/" + name).exists]
    if missing:
        # buildifier: disable=print
        print("uPlot: not found in %s; the dashboard's page is left out (install npm, and run deploy/setup.sh)" % folder)
    else:
        for name in _FILES:
            ctx.symlink(folder + "/" + name, name)
    ctx.file("BUILD", """
filegroup(
    name = "files",
    srcs = %s,
    visibility = ["//visibility:public"],
)
""" % ([] if missing else _FILES))

uplot_configure = repository_rule(
    implementation = _uplot_configure_impl,
    environ = ["HOME"],
    local = True,
)
