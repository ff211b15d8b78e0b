"""Makes the mechanical part of the package: messages and stubs by protoc, and a typed function for each method."""

import pathlib
import re
import shutil
import subprocess
import tempfile

from google.protobuf import descriptor_pb2

SERVICES = ("job", "model", "dataset", "sweep", "daemon")
# Services of which a field of Calls is named so.
FIELDS = {"JobService": "jobs", "ModelService": "models", "DatasetService": "datasets", "SweepService": "sweeps",
          "DaemonService": "daemon"}


def generate(proto: pathlib.Path, target: pathlib.Path) -> None:
    """Writes tandem/v1, tandem/details and tandem/calls.py below `target`, from the sources in `proto`."""
    target = target.resolve()
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        shutil.copytree(proto / "tandem/v1", root / "tandem/v1")
        # Other packages bring google.api as well, and Python needs no field behaviors.
        for source in (root / "tandem/v1").glob("*.proto"):
            text = source.read_text().replace('import "google/api/field_behavior.proto";\n', "")
            source.write_text(re.sub(r" \[\(google\.api\.field_behavior\) = \w+\]", "", text))
        # Other packages bring google.rpc as well. A file of one name can be loaded once, so this package has its own.
        (root / "tandem/details").mkdir()
        for source in (proto / "google/rpc").glob("*.proto"):
            text = source.read_text().replace("package google.rpc;", "package tandem.details;")
            text = text.replace("google/rpc/", "tandem/details/")
            (root / "tandem/details" / source.name).write_text(text)
        sources = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
        services = [f"tandem/v1/{name}_service.proto" for name in SERVICES]
        plugin = shutil.which("grpc_python_plugin")
        if plugin is None:
            raise SystemExit("cannot build: no grpc_python_plugin; install protobuf-compiler-grpc")
        target.mkdir(parents=True, exist_ok=True)
        protoc(root, [f"--python_out={target}", f"--pyi_out={target}", *sources])
        protoc(root, [f"--grpc_python_out={target}", f"--plugin=protoc-gen-grpc_python={plugin}", *services])
        protoc(root, [f"--descriptor_set_out={root}/set", "--include_source_info", "--include_imports", *services])
        files = descriptor_pb2.FileDescriptorSet.FromString((root / "set").read_bytes())
        (target / "tandem/calls.py").write_text(calls(files))
    for package in ("v1", "details"):
        (target / "tandem" / package / "__init__.py").write_text('"""Generated from the protocol buffers."""\n')


def protoc(root: pathlib.Path, arguments: list) -> None:
    subprocess.run(["protoc", f"-I{root}", *arguments], check=True, cwd=root)


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def calls(files: descriptor_pb2.FileDescriptorSet) -> str:
    """The text of the module `calls`."""
    module_of = {}
    for file in files.file:
        module = "_".join(file.name[: -len(".proto")].split("/")) + "_pb2"
        for message in file.message_type:
            module_of[f".{file.package}.{message.name}"] = f"{module}.{message.name}"
    classes, used, names = [], set(), []
    for file in files.file:
        for index, service in enumerate(file.service):
            comments = {tuple(place.path): place.leading_comments.strip() for place in file.source_code_info.location}
            for suffix in ("", "Async"):
                lines = []
                for number, method in enumerate(service.method):
                    text = comments.get((6, index, 2, number), "")
                    lines += function(file.package, service, method, module_of, text, suffix == "Async")
                    used.update(module_of[one].split(".")[0] for one in (method.input_type, method.output_type))
                field = comments.get((6, index), "").split("\n")[0]
                classes.append(f'class {suffix}{service.name}(_{suffix}Service):\n    """{field}"""\n' + "\n".join(lines))
            names.append(service.name)
    imports = "\n".join(
        f"from {'.'.join(module[: -len('_pb2')].split('_')[:2])} import "
        f"{'_'.join(module.split('_')[2:])} as {module}" for module in sorted(used))
    both = []
    for prefix in ("", "Async"):
        fields = "\n".join(f"        self.{FIELDS[name]} = {prefix}{name}(channel, metadata)" for name in names)
        both.append(f'class {prefix}Calls:\n    """Every method of the API, one field a service."""\n\n'
                    f"    def __init__(self, channel: Any, metadata: Metadata = ()) -> None:\n{fields}\n")
    return HEAD.format(imports=imports) + "\n\n" + "\n\n".join(classes) + "\n\n" + "\n\n".join(both)


def function(package, service, method, module_of, comment, is_async) -> list:
    request, response = module_of[method.input_type], module_of[method.output_type]
    if method.client_streaming:
        kind, taken = "stream_unary", f"Iterable[{request}]"
        given = f"Awaitable[{response}]" if is_async else response
    elif method.server_streaming:
        kind, taken = "unary_stream", request
        given = f"{'Async' if is_async else ''}Stream[{response}]"
    else:
        kind, taken, given = "unary_unary", request, f"Awaitable[{response}]" if is_async else response
    doc = [f"        {line.strip()}".rstrip() for line in comment.replace("\\", "\\\\").split("\n")]
    argument = "requests" if method.client_streaming else "request"
    return ["", f"    def {snake(method.name)}(self, {argument}: {taken}, timeout: Optional[float] = None) -> {given}:",
            f'        """{doc[0].strip()}', *doc[1:], '        """',
            f'        call = self._channel.{kind}("/{package}.{service.name}/{method.name}", {request}.SerializeToString,',
            f"                                  {response}.FromString)",
            f"        return cast({given!r}, call({argument}, timeout=timeout, metadata=self._metadata))"]


HEAD = '''"""Every method of the API, typed. Generated: edit the protocol buffers instead.

Calls are made as they are: nothing is repeated, and errors are gRPC's (tandem.errors.from_rpc explains them).
"""

from typing import Any, AsyncIterator, Awaitable, Iterable, Iterator, Optional, Protocol, Sequence, Tuple, TypeVar, cast

{imports}

Metadata = Sequence[Tuple[str, str]]
Response = TypeVar("Response", covariant=True)


class Stream(Protocol[Response]):
    """Responses as they come."""

    def __iter__(self) -> Iterator[Response]: ...

    def __next__(self) -> Response: ...

    def initial_metadata(self) -> Metadata: ...

    def cancel(self) -> bool: ...


class AsyncStream(Protocol[Response]):
    """Responses as they come."""

    def __aiter__(self) -> AsyncIterator[Response]: ...

    def cancel(self) -> bool: ...


class _Service:
    def __init__(self, channel: Any, metadata: Metadata = ()) -> None:
        self._channel = channel
        self._metadata = metadata


class _AsyncService(_Service):
    pass
'''
