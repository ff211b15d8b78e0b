"""Writes golden cases, in the format of data/README.md."""

import json
import pathlib
import struct

import torch


def write_case(folder, kind, name, attrs, doc, tensors):
    """The case folder/name.safetensors; tensors maps names to float64 or int64 tensors."""
    header = {"__metadata__": {"kind": kind, "name": name, "attrs": json.dumps(attrs), "doc": doc,
                               "torch": torch.__version__}}
    data = b""
    for key, tensor in tensors.items():
        numbers = tensor.detach().contiguous().numpy().tobytes()
        header[key] = {"dtype": {torch.float64: "F64", torch.int64: "I64"}[tensor.dtype], "shape": list(tensor.shape),
                       "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (pathlib.Path(folder) / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
