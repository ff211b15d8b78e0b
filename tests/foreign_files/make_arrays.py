#!/usr/bin/python3
"""Writes arrays as NumPy and pandas write them, for foreign_files_test.

make_arrays.py FOLDER makes a folder for each case. It has the files, spec.textproto, in which FOLDER stands for the
case's folder, and one of:
  samples.bin, targets.bin   the numbers of all training samples and targets, in C order, little-endian
  refusal.txt                the field at fault, then parts of the message, one a line
"""

import os
import pickle
import sqlite3
import struct
import sys
import zipfile

import numpy as np
import pandas as pd

ROOT = sys.argv[1]
NPY = "npy { train_inputs { path: 'FOLDER/x.npy' } train_targets { path: 'FOLDER/y.npy' } %s }"
NPZ = (
    "npy { train_inputs { path: 'FOLDER/a.npz' member: 'x' } train_targets { path: 'FOLDER/a.npz' member: 'y' } %s }"
)
VALIDATED = NPY % (
    "validation_inputs { path: 'FOLDER/vx.npy' } validation_targets { path: 'FOLDER/vy.npy' }"
)
random = np.random.default_rng(1)


def case(name, spec, files, samples=None, targets=None, refusal=None):
    """Writes a case. A file is an array for numpy.save, bytes, or a function that writes the path."""
    folder = os.path.join(ROOT, name)
    os.makedirs(folder)
    for file, content in files.items():
        path = os.path.join(folder, file)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            with open(path, "wb") as stream:
                stream.write(content)
        else:
            np.save(path, content, allow_pickle=True)
    with open(os.path.join(folder, "spec.textproto"), "w", encoding="utf-8") as stream:
        stream.write(spec.replace("FOLDER", folder))
    if refusal is not None:
        with open(os.path.join(folder, "refusal.txt"), "w", encoding="utf-8") as stream:
            stream.write("\n".join(refusal))
        return
    for file, numbers in (("samples.bin", samples), ("targets.bin", targets)):
        with open(os.path.join(folder, file), "wb") as stream:
            stream.write(np.ascontiguousarray(numbers).tobytes())


def floats(array):
    return np.asarray(array).astype("<f4")


def classes(array):
    return np.asarray(array).astype("<i4")


def drawn(dtype, shape):
    """Numbers over the type's whole range; for floats, a range that float32 holds."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        scale = 100 if np.dtype(dtype).itemsize == 2 else 1e6
        return (random.standard_normal(shape) * scale).astype(dtype)
    if kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype=np.dtype(dtype).newbyteorder("="), endpoint=True).astype(dtype)


LABELS = np.array([0, 1, 2, 1, 0])

# Every type, byte order and order of elements.
for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"):
    for end in ("<", ">"):
        for order in ("C", "F"):
            x = np.array(drawn(end + code, (5, 3, 4)), order=order)
            expected = x if code == "u1" else floats(x)
            name = "%s_%s_%s" % ("little" if end == "<" else "big", code, order)
            case(name, NPY % "", {"x.npy": x, "y.npy": LABELS}, expected, classes(LABELS))
            case(
                name + "_npz",
                NPZ % "",
                {"a.npz": lambda path, x=x: np.savez_compressed(path, x=x, y=LABELS)},
                expected,
                classes(LABELS),
            )

# pandas: the values of a frame are in Fortran order.
frame = pd.DataFrame({"a": [0.5, 1.5, -2.0, 4.0, 1e-3], "b": [1, 2, 3, 4, 5], "c": [True, False, True, True, False]})
numbers = frame[["a", "b"]]
assert numbers.values.flags.f_contiguous
case("pandas_values", NPY % "", {"x.npy": numbers.values, "y.npy": pd.Series(LABELS).values}, floats(numbers), classes(LABELS))
case(
    "pandas_target_column",
    NPY % "targets: TARGET_KIND_VALUES",
    {"x.npy": numbers.values, "y.npy": frame[["b"]].values},
    floats(numbers),
    floats(frame[["b"]]),
)
case(
    "pandas_mixed_columns",
    NPY % "",
    {"x.npy": frame.values, "y.npy": LABELS},
    refusal=["npy.train_inputs", "has dtype '|O', Python objects", "save array.astype('float32')"],
)
frame.loc[3, "a"] = np.nan
case(
    "pandas_gap",
    NPY % "",
    {"x.npy": frame[["a", "b"]].values, "y.npy": LABELS},
    refusal=["npy.train_inputs", "x.npy holds nan at index [3, 0]", "must be finite"],
)

# Views, and large arrays that are brought into C order in several blocks.
base = drawn("f4", (10, 6, 8))
for name, x in (
    ("transposed", base.T[:5]),
    ("strided", base[::2, ::3, ::-1]),
    ("moved_axis", np.moveaxis(base, 2, 1)[:5]),
    ("fortran_rank_5", np.asfortranarray(drawn("f8", (5, 2, 3, 4, 2)))),
    ("one_column", np.asfortranarray(drawn("f8", (5, 1)))),
):
    case("view_" + name, NPY % "", {"x.npy": x, "y.npy": LABELS}, floats(x), classes(LABELS))
large = np.asfortranarray(drawn(">f8", (1100003, 9)))
many = random.integers(0, 7, len(large))
case("large_fortran", NPY % "", {"x.npy": large, "y.npy": many}, floats(large), classes(many))
case(
    "large_fortran_npz",
    NPZ % "",
    {"a.npz": lambda path: np.savez(path, x=large, y=many)},
    floats(large),
    classes(many),
)


# Headers of other versions.
def with_version(array, version):
    def write(path):
        with open(path, "wb") as stream:
            np.lib.format.write_array(stream, array, version=version)

    return write


def python2(array):
    extents = ", ".join("%dL" % extent for extent in array.shape) + ("," if array.ndim == 1 else "")
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (array.dtype.str, extents)
    header += " " * (-(len(header) + 11) % 16) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


x = drawn("f4", (5, 6))
for version in ((1, 0), (2, 0), (3, 0)):
    case("version_%d" % version[0], NPY % "", {"x.npy": with_version(x, version), "y.npy": LABELS}, x, classes(LABELS))
case("python2", NPY % "", {"x.npy": python2(x), "y.npy": python2(LABELS)}, x, classes(LABELS))

# Images.
gray = drawn("u1", (5, 9, 7))
colour = drawn("u1", (5, 9, 7, 3))
case("gray_nchw", NPY % "layout: ARRAY_LAYOUT_NCHW", {"x.npy": gray, "y.npy": LABELS}, gray[:, None], classes(LABELS))
case("gray_nhwc", NPY % "layout: ARRAY_LAYOUT_NHWC", {"x.npy": gray, "y.npy": LABELS}, gray[:, None], classes(LABELS))
for order in ("C", "F"):
    for array in (colour, colour.astype("<f8") / 255, colour.astype(">f4")):
        x = np.array(array, order=order)
        last = np.moveaxis(x, -1, 1)
        case(
            "nhwc_%s_%s" % (order, array.dtype.str.strip("<>|")),
            NPY % "layout: ARRAY_LAYOUT_NHWC",
            {"x.npy": x, "y.npy": LABELS},
            last if array.dtype == "u1" else floats(last),
            classes(LABELS),
        )
case(
    "nhwc_of_features",
    NPY % "layout: ARRAY_LAYOUT_NHWC",
    {"x.npy": drawn("f4", (5, 6)), "y.npy": LABELS},
    refusal=["npy.train_inputs", "shape [5, 6]", "correct npy.layout"],
)

# Targets.
x = drawn("f4", (5, 2))
one_hot = np.eye(3)[LABELS]
for code in ("<f4", ">f8", "u1", "?", "<i8"):
    for order in ("C", "F"):
        case(
            "one_hot_%s_%s" % (code.strip("<>").replace("?", "bool"), order),
            NPY % "targets: TARGET_KIND_CLASS",
            {"x.npy": x, "y.npy": np.array(one_hot, dtype=code, order=order)},
            x,
            classes(LABELS),
        )
case(
    "classes_as_floats",
    NPY % "targets: TARGET_KIND_CLASS",
    {"x.npy": x, "y.npy": LABELS.astype("f8")[:, None]},
    x,
    classes(LABELS),
)
ignored = np.array([0, -100, 2, 1, -100])
case("ignored", NPY % "ignore_index: -100", {"x.npy": x, "y.npy": ignored}, x, classes(ignored))
tokens = random.integers(0, 9, (5, 4))
following = np.where(tokens > 6, -1, tokens)
case(
    "ignored_tokens",
    NPY % "ignore_index: -1",
    {"x.npy": tokens.astype("i8"), "y.npy": following.astype("i8")},
    classes(tokens),
    classes(following),
)
case(
    "tokens_by_choice",
    NPY % "inputs: SAMPLE_KIND_TOKENS",
    {"x.npy": tokens.astype(">u2"), "y.npy": LABELS},
    classes(tokens),
    classes(LABELS),
)
case(
    "floats_by_choice",
    NPY % "inputs: SAMPLE_KIND_FLOATS",
    {"x.npy": tokens.astype("u1"), "y.npy": LABELS},
    floats(tokens),
    classes(LABELS),
)


# Refusals name the first place.
def broken(array, place, number):
    array = np.array(array)
    array[place] = number
    return array


for name, y, targets, parts in (
    ("negative", broken(LABELS, 3, -1), "", ["holds -1 at index 3", "give npy.ignore_index: -1"]),
    ("too_large", broken(LABELS, 2, 9), "classes: 3", ["holds class 9 at index 2, outside the 3 (0 to 2)"]),
    ("huge", broken(LABELS.astype("u8"), 1, 2**63), "", ["at index 1 that is no whole number up to 2^31 - 1"]),
    ("half", broken(LABELS.astype("f8"), 4, 0.5), "targets: TARGET_KIND_CLASS", ["at index 4 that is no whole number"]),
    ("nan", broken(LABELS.astype("f8"), 4, np.nan), "targets: TARGET_KIND_CLASS", ["at index 4 that is no whole number"]),
    ("nan_value", broken(LABELS.astype("f8"), 4, np.nan), "", ["holds nan at index 4"]),
    ("infinite_value", broken(LABELS.astype(">f8"), 2, -np.inf), "", ["holds -inf at index 2"]),
    ("too_large_value", broken(LABELS.astype("f8"), 2, 1e300), "", ["holds inf at index 2", "at most 3.4e38"]),
    ("two_hot", broken(one_hot, (3, 2), 1), "targets: TARGET_KIND_CLASS", ["holds 1 at index [3, 2]", "a single 1"]),
    ("not_hot", broken(one_hot, (2, 2), 0), "targets: TARGET_KIND_CLASS", ["holds no 1 in row 2"]),
    ("soft", broken(one_hot, (1, 0), 0.25), "targets: TARGET_KIND_CLASS", ["holds 0.25 at index [1, 0]"]),
    ("one_hot_classes", one_hot, "targets: TARGET_KIND_CLASS classes: 4", ["shape [5, 3], but npy.classes is 4"]),
    ("text", np.array(["a", "b", "a", "b", "a"]), "", ["has dtype '<U1', text", "numpy.unique"]),
    ("dates", np.array(["2026-01-01"] * 5, dtype="M8[D]"), "", ["has dtype '<M8[D]'"]),
    ("records", np.zeros(5, dtype=[("a", "f4"), ("b", "i4")]), "", ["records of several fields"]),
    ("scalar", np.array(3), "", ["shape []"]),
    ("too_few", LABELS[:4], "", ["shape [4], but ", "has 5 samples"]),
    ("all_ignored", np.full(5, -100), "ignore_index: -100", ["every number is ignored"]),
):
    case("target_" + name, NPY % targets, {"x.npy": x, "y.npy": y}, refusal=["npy.train_targets"] + parts)
for name, array, parts in (
    ("nan", broken(drawn("f2", (5, 3, 2)), (1, 2, 1), np.nan), ["holds nan at index [1, 2, 1]"]),
    ("nan_fortran", np.asfortranarray(broken(drawn("f8", (5, 4)), (0, 3), np.nan)), ["holds nan at index [0, 3]"]),
    ("complex", drawn("f4", (5, 3)).astype("c8"), ["has dtype '<c8'; it must be"]),
    ("long_double", drawn("f8", (5, 3)).astype("g"), ["has dtype '<f16'; it must be", "astype('float32')"]),
    ("no_samples", np.zeros((0, 3)), ["at least one sample"]),
    ("one_dimension", drawn("f4", 5), ["it must be [samples, ...]"]),
    ("pickle", pickle.dumps([1, 2, 3]), ["is a Python pickle", "save its arrays with numpy.save"]),
    ("text", b"1 2 3\n", ["is not an NPY file"]),
    ("truncated", with_version(drawn("f4", (5, 3)), (1, 0)), ["is truncated"]),
):
    files = {"x.npy": array, "y.npy": LABELS}
    if name == "truncated":
        files["x.npy"] = lambda path: (with_version(drawn("f4", (5, 3)), (1, 0))(path), os.truncate(path, os.path.getsize(path) - 3))
    case("input_" + name, NPY % "", files, refusal=["npy.train_inputs"] + parts)
def zipped(*members):
    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in members:
                archive.writestr(name, b"content")

    return write


# Files of other software, recognised by their content.
for name, content, part in (
    ("pytorch", zipped("archive/data.pkl", "archive/byteorder", "archive/data/0"), "is a PyTorch file"),
    ("excel", zipped("[Content_Types].xml", "xl/workbook.xml"), "is an Office document, such as an Excel workbook"),
    ("word", zipped("[Content_Types].xml", "word/document.xml"), "is a Word document"),
    ("keras", zipped("metadata.json", "config.json", "model.weights.h5"), "is a Keras model"),
    ("pandas_pickle", lambda path: frame.to_pickle(path), "is a Python pickle"),
    ("lz4", b"\x04\x22\x4d\x18" + bytes(20), "is compressed by lz4"),
    ("sqlite", lambda path: pd.Series([1]).to_sql("t", sqlite3.connect(path)), "is an SQLite database"),
):
    text = "csv { train: 'FOLDER/x.npy' }"
    case("foreign_" + name, NPY % "", {"x.npy": content, "y.npy": LABELS}, refusal=["npy.train_inputs", part])
    case("foreign_csv_" + name, text, {"x.npy": content}, refusal=["csv.train", part])
semicolons = "csv { train: 'FOLDER/t.csv' %s }"
for name, options, table in (
    ("semicolons", "", {"sep": ";"}),
    ("decimal_comma", "", {"sep": ";", "decimal": ","}),
    ("utf16", "", {"encoding": "utf-16"}),
    ("tabs", "", {"sep": "\t"}),
    ("semicolons_named", "delimiter: ';'", {"sep": ";"}),
):
    case(
        "csv_" + name,
        semicolons % options,
        {"t.csv": lambda path, table=table: numbers.to_csv(path, index=False, **table)},
        floats(numbers[["a"]]),
        floats(numbers[["b"]]),
    )
case(
    "csv_comma_given",
    semicolons % "delimiter: ','",
    {"t.csv": lambda path: numbers.to_csv(path, sep=";", index=False)},
    refusal=["csv.train", "has a single column 'a;b'", "give csv.delimiter: ';'"],
)
case(
    "tokens_of_floats",
    NPY % "inputs: SAMPLE_KIND_TOKENS",
    {"x.npy": x, "y.npy": LABELS},
    refusal=["npy.train_inputs", "tokens must be integers"],
)
case(
    "validation_nan",
    VALIDATED,
    {"x.npy": x, "y.npy": LABELS, "vx.npy": broken(x, (4, 1), np.nan), "vy.npy": LABELS},
    refusal=["npy.validation_inputs", "vx.npy holds nan at index [4, 1]"],
)
case(
    "validation_label",
    VALIDATED,
    {"x.npy": x, "y.npy": LABELS, "vx.npy": x, "vy.npy": broken(LABELS, 1, 7)},
    refusal=["npy.validation_targets", "vy.npy holds class 7 at index 1, outside the 3"],
)
