"""The requests and files of attacks.py."""

import hashlib
import struct
import zlib

from grpc_wire import PROTO, encode

MEBIBYTE = 1 << 20
SPEC = """name: "victim"
dataset { synthetic { shape: [1, 16, 16] classes: 4 train_samples: 4096 validation_samples: 64 seed: 1 } }
model { input { shape: [1, 16, 16] } %s layers { dense { units: 16 activation: ACTIVATION_RELU } } layers { dense { units: 4 } } }
training { loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 0.01 } } global_batch_size: 32 epochs: 1 }
"""
# The layers of a sweep of 68 KB. Each of its jobs would take half a MiB of memory.
LARGE = SPEC % ("layers { dense { units: 16 activation: ACTIVATION_RELU } } " * 3900)
SMALL = SPEC % ""
# Maps a method to the object that it needs, by the first of these words in the method's name.
NAMES = [("DeleteSweep", "waiting"), ("Sweep", "sweep"), ("Dataset", "dataset"), ("Upload", "upload"), ("Device", "device"), ("Token", "token"),
         ("Cancel", "queued"), ("Pause", "other"), ("Resume", "other"), ("Update", "queued"), ("", "job")]
FILES = {path.stem: path.read_text() for path in PROTO.glob("tandem/v1/*.proto")}


def job_request(spec, more=""):
    return encode("CreateJobRequest", f"spec {{ {spec} }} {more}", "job_service")


def sweep_request(spec, jobs, more=""):
    values = " ".join(f"values {{ number_value: {0.001 * (i + 1):.4g} }}" for i in range(jobs))
    return encode("CreateSweepRequest", f"""sweep {{ base {{ {spec} }}
        grid {{ field: "training.optimizer.sgd.learning_rate" {values} }} }} {more}""", "sweep_service")


def dataset_request(name, spec):
    return encode("CreateDatasetRequest", f'dataset_id: "{name}" dataset {{ spec {{ {spec} }} }}', "dataset_service")


def named(name):
    """A request whose first field is a name."""
    data = name.encode()
    return b"\x0a" + bytes([len(data)]) + data


def request_of(request, method, fields, names):
    """A request that finds something, in protocol buffers' text format."""
    name = names[next(kind for word, kind in NAMES if word in method)]
    text = []
    if "name" in fields:
        text.append(f'name: "{name}"')
    if method in ("ListCheckpoints", "DescribeModel"):
        text.append(f'job: "{names["job"]}"')
    if method == "UpdateJob":
        text.append(f'job {{ name: "{name}" priority: -1 }} update_mask {{ paths: "priority" }}')
    if "max_points" in fields:
        text.append("max_points: 10000")
    if "page_size" in fields:
        text.append("page_size: 1000")
    if "validate_only" in fields:
        text.append("validate_only: true")
    if method == "ParseJob":
        # A network of the largest size that is read.
        text.append('text: "model: {layers: [' + "{dense: {units: 1}}, " * 15_000 + ']}"')
    if method == "ParseSweep":
        text.append('text: "base: {model: {layers: [' + "{dense: {units: 1}}, " * 15_000 + ']}}"')
    if method == "CreateJob":
        text.append("spec {" + SMALL + "}")
    if method == "ForkJob":
        text.append("spec {" + SMALL.replace("epochs: 1", "epochs: 2") + "}")
    if method == "CreateSweep":
        return sweep_request(SMALL, 300, "validate_only: true")
    if method == "CreateDataset":
        text.append('dataset_id: "new" dataset { spec { synthetic { shape: 4 classes: 2 train_samples: 9 } } }')
    if method == "CreateToken":
        text.append('token { user: "of-many" role: TOKEN_ROLE_VIEWER }')
    if method == "CreateUpload":
        text.append(upload_text(b"another"))
    if method == "UploadFiles":
        text = [f'name: "{names["upload"]}" file {{ path: "file" size: 7 sha256: "{octal(hashlib.sha256(b"content").digest())}" }} '
                'data: "content"']
    if method == "Predict":
        text.append(f'inputs {{ npy: "{octal(npy_header((1, 16, 16)) + bytes(256))}" }}')
    if method == "ReadArtifact":
        text.append('artifact: "model.safetensors"')
    return encode(request, " ".join(text), next(file for file in FILES if f"message {request} {{" in FILES[file]))


def octal(data):
    return "".join(f"\\{byte:03o}" for byte in data)


def upload_text(content):
    """The declaration of an upload of one file."""
    manifest = hashlib.sha256(f"{hashlib.sha256(content).hexdigest()}  file\n".encode()).digest()
    return f'upload {{ manifest_sha256: "{octal(manifest)}" files: 1 bytes: {len(content)} }}'


def npy_header(shape):
    """The first 128 bytes of an NPY file of bytes."""
    return (b"\x93NUMPY\x01\0\x76\0"
            + f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n")


def bomb(samples):
    """An NPZ archive of zeros: samples of 1 MiB, of which each takes 1 KiB of the file."""
    head = npy_header((samples, 4, 512, 512))
    zeros = bytes(MEBIBYTE)

    def deflated(data):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)

    check = zlib.crc32(head)
    for _ in range(samples):
        check = zlib.crc32(zeros, check)
    # An empty block at the end.
    packed = deflated(head) + deflated(zeros) * samples + b"\x03\x00"
    size, name = samples * MEBIBYTE + len(head), b"x.npy"
    member = b"PK\x03\x04" + struct.pack("<HHH16xHH", 20, 0, 8, len(name), 0) + name + packed
    extra = struct.pack("<HHQQ", 1, 16, size, len(packed))
    directory = (b"PK\x01\x02" + struct.pack("<HHHH4xIIIHH14x", 20, 20, 0, 8, check, 2**32 - 1, 2**32 - 1, len(name), len(extra))
                 + name + extra)
    return member + directory + b"PK\x05\x06" + struct.pack("<4xHHIIH", 1, 1, len(directory), len(member), 0)
