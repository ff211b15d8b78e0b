"""Tests that are built without a sanitizer, also with --config=asan, tsan or ubsan."""

_FLAGS = [
    "//command_line_option:copt",
    "//command_line_option:linkopt",
]

# "-fsanitize=address" and "-DTANDEM_ASAN".
def _is_sanitizers(flag):
    return "sanitize" in flag or flag.startswith("-DTANDEM_")

def _leave_sanitizers_out(settings, _attr):
    return {option: [flag for flag in settings[option] if not _is_sanitizers(flag)] for option in _FLAGS}

_without_sanitizers = transition(
    implementation = _leave_sanitizers_out,
    inputs = _FLAGS,
    outputs = _FLAGS,
)

def _uninstrumented_test_impl(ctx):
    program = ctx.attr.program[0][DefaultInfo]
    executable = program.files_to_run.executable
    test = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = test, target_file = executable, is_executable = True)
    return [DefaultInfo(
        executable = test,
        runfiles = ctx.runfiles(files = [executable]).merge(program.default_runfiles),
    )]

_uninstrumented_test = rule(
    implementation = _uninstrumented_test_impl,
    test = True,
    attrs = {
        "program": attr.label(cfg = _without_sanitizers, executable = True, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def uninstrumented_test(name, srcs, deps, size = "medium"):
    """A test whose program is built without sanitizers, also with --config=asan, tsan or ubsan.

    Args:
      name: the test's name. Its program is <name>_program.
      srcs: as for a cc_test.
      deps: as for a cc_test. They are also built without sanitizers.
      size: as for a cc_test.
    """
    native.cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = srcs,
        # A build of all targets skips the program, because only the test builds it without sanitizers.
        tags = ["manual"],
        deps = deps,
    )
    _uninstrumented_test(
        name = name,
        size = size,
        program = ":%s_program" % name,
    )
