"""Compares two models: `model_tensors.py FILE FILE` ends with 0 if both have the same tensors, bit for bit."""

import json
import sys


def tensors(path):
    """Returns the bytes of each tensor by its name. The header's metadata has the job's spec, and specs differ."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]] for name, entry in header.items()}


if __name__ == "__main__":
    first, second = (tensors(path) for path in sys.argv[1:])
    sys.exit(0 if first and first == second else 1)
