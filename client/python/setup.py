"""Builds the wheel of Tandem's client: `python3 -m build --no-isolation --wheel`.

Needs protoc and grpc_python_plugin (Debian: protobuf-compiler, protobuf-compiler-grpc), and the repository's proto/.
"""

import pathlib
import re
import sys

import setuptools
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

VERSION = re.search(r'kVersion\[\] = "([^"]+)"', (HERE / "../cli/version.h").read_text()).group(1)


class Build(build_py):
    """Also makes the messages, the stubs and the typed calls."""

    def run(self):
        super().run()
        generate.generate(HERE.parents[1] / "proto", pathlib.Path(self.build_lib))


setuptools.setup(
    name="tandem",
    version=VERSION,
    description="A client for Tandem, which trains neural networks as a service",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    packages=["tandem"],
    package_data={"tandem": ["py.typed"]},
    python_requires=">=3.9",
    install_requires=["grpcio>=1.51", "protobuf>=4.21", "numpy>=1.24"],
    extras_require={"pandas": ["pandas"], "plot": ["matplotlib"]},
    cmdclass={"build_py": Build},
)
