"""Precompiles a header with the compiler and the flags of the current configuration."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The folder of the build, by a name that each clone has. The compiler takes this name from PWD.
_FOLDER = "/proc/self/cwd"

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.src)
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.pch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = precompiled.path,
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + [
            # The header's templates are instantiated here, not in each source.
            "-fpch-instantiate-templates",
            # A header from Bazel's cache may be older than the sources of this clone. Bazel knows if it is stale.
            "-Xclang",
            "-fno-pch-timestamp",
            # Paths below the folder of the build are stored without this folder, so that all clones share the cache. cc.bzl
            # completes the paths.
            "-Xclang",
            "-relocatable-pch",
            "-Xclang",
            "-isysroot",
            "-Xclang",
            _FOLDER,
        ],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = "c++-compile",
        ),
        arguments = ["-x", "c++-header"] + cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        env = dict(cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ), PWD = _FOLDER),
        inputs = depset([header, ctx.file._versions], transitive = [context.headers, toolchain.all_files]),
        outputs = [precompiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % ctx.label,
    )

    # No linking context: a source that uses a library names the library in its own deps.
    return [
        DefaultInfo(files = depset([precompiled])),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([header, precompiled], transitive = [context.headers]),
            includes = context.includes,
            quote_includes = context.quote_includes,
            system_includes = context.system_includes,
            defines = context.defines,
        )),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        # Bazel does not see a new version of a compiler or of a system's header.
        "_versions": attr.label(default = "@system_versions//:versions.txt", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
