"""Finds the versions of the compiler and of all packages with headers, which precompiled headers depend on."""

def _system_versions_impl(ctx):
    compiler = ctx.os.environ.get("CC", "clang")
    versions = ctx.execute([compiler, "--version"]).stdout
    if ctx.which("dpkg-query"):
        versions += ctx.execute(["dpkg-query", "-W", "*-dev"]).stdout
    ctx.file("versions.txt", versions)
    ctx.file("BUILD", 'exports_files(["versions.txt"])')

system_versions = repository_rule(
    implementation = _system_versions_impl,
    environ = ["CC"],
    local = True,
)
