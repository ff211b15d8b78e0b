"""Reads files in the format of safetensors."""

import json
import struct
from typing import Any, Dict, Tuple

import numpy

from tandem.errors import TandemError

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def read(data: bytes) -> Tuple[Dict[str, "numpy.ndarray[Any, Any]"], Dict[str, str]]:
    """The tensors by their names, and the metadata. bfloat16 becomes float32, of which it is the upper half."""
    if len(data) < 8 or struct.unpack("<Q", data[:8])[0] > len(data) - 8:
        raise TandemError("cannot read the model: it is cut off", "DATA_LOSS")
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, place in header.items():
        content = data[begin + place["data_offsets"][0]:begin + place["data_offsets"][1]]
        if place["dtype"] == "BF16":
            array = (numpy.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
        elif place["dtype"] in _TYPES:
            array = numpy.frombuffer(content, _TYPES[place["dtype"]]).copy()
        else:
            raise TandemError(f"cannot read the model: {name} has the unknown type {place['dtype']}", "DATA_LOSS")
        tensors[name] = array.reshape(place["shape"])
    return tensors, metadata
