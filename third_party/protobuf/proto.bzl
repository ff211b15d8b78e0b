"""Runs the system's protoc over a folder of .proto files."""

def proto_sources(name, srcs, services = []):
    """C++ sources of messages and gRPC stubs.

    Args:
      name: of the genrule.
      srcs: .proto files, paths as they are imported.
      services: those of srcs that define services.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    service_stems = [src[:-len(".proto")] for src in services]
    headers = [stem + ".pb.h" for stem in stems] + [stem + ".grpc.pb.h" for stem in service_stems]
    sources = [stem + ".pb.cc" for stem in stems] + [stem + ".grpc.pb.cc" for stem in service_stems]
    root = "$$(dirname $(execpath BUILD))"
    command = "protoc -I%s --cpp_out=$(RULEDIR) %s" % (root, " ".join([root + "/" + src for src in srcs]))
    if services:
        command += " && protoc -I%s --grpc_out=$(RULEDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) %s" % (
            root,
            " ".join([root + "/" + src for src in services]),
        )
    native.genrule(
        name = name,
        srcs = native.glob(["**/*.proto"]) + ["BUILD"],
        outs = headers + sources,
        cmd = command,
        message = "Generating C++ from protocol buffers",
    )
