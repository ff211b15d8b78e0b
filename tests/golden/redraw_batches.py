#!/usr/bin/env python3
"""Replays golden cases of whole trainings, and replaces batches that are too sensitive to rounding.

    redraw_batches.py CASE.safetensors...              # compares a case with its expected results; prints its margin
    redraw_batches.py --margin 1e-4 CASE.safetensors...  # also rewrites a case with a smaller margin

The gradient of a ReLU jumps at input 0. The gradient of a maximum jumps at two equal inputs. The margin of a case is
its least distance from such a jump, in root mean squares of the layer's inputs. Rounding to float32 changes these
inputs by about 1e-6, and by up to 4e-5 in deep networks after some steps. The change depends on the order of summation.
So with a smaller margin than this, the result is arbitrary.

If a step's batch has too small a margin, the program moves the batch a little, along the gradient of the missing
distance. If this does not help, it draws another batch from a normal distribution. Labels, weights and settings stay.

Needs PyTorch. Cases are of networks of the layers below, trained by SGD; the format is data/README.md's.
"""

import argparse
import json
import pathlib
import struct
import sys
import zlib

import torch
import torch.nn.functional as F
from case_file import write_case

DRAWS = 20
MOVES = 100
TOLERANCE = 1e-11


def read_case(path):
    """The metadata, its attrs among them as an object, and the tensors by name."""
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__")
    metadata["attrs"] = json.loads(metadata["attrs"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        dtype = {"F64": torch.float64, "I64": torch.int64}[entry["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(content[begin:end]), dtype=dtype).reshape(entry["shape"])
    return metadata, tensors


class Replica:
    """A network with its optimizer.

    `margin` is the least distance from a jump in the last forward pass. `missing` is the sum of `wanted` minus the
    distance, over all smaller distances."""

    def __init__(self, attrs, tensors, wanted):
        self.wanted = wanted
        self.layers = attrs["layers"]
        self.parameters = {}
        self.statistics = {}
        for layer in self.layers:
            for name in layer["weights"]:
                value = tensors[f"initial.{name}"].clone()
                if "running_" in name:
                    self.statistics[name] = value
                else:
                    self.parameters[name] = value.requires_grad_(True)
        settings = dict(attrs["optimizer"])
        if settings.pop("type") != "sgd" or attrs["loss"] != {"type": "cross_entropy", "reduction": "mean"}:
            raise NotImplementedError("only SGD on cross entropy")
        self.optimizer = torch.optim.SGD(list(self.parameters.values()), **settings)
        self.margin = 0
        self.missing = 0

    def tensors(self):
        return {**{name: value.detach() for name, value in self.parameters.items()}, **self.statistics}

    def momentum(self):
        return {name: self.optimizer.state[value]["momentum_buffer"] for name, value in self.parameters.items()}

    def decides(self, distances, inputs):
        """Takes a layer's distances to a jump into account."""
        distances = distances / inputs.detach().square().mean().sqrt()
        self.margin = min(self.margin, float(distances.min()))
        self.missing = self.missing + F.relu(self.wanted - distances).sum()

    def forward(self, x, keep_statistics=False):
        values = {"x": x}
        self.margin = float("inf")
        self.missing = 0
        for layer in self.layers:
            inputs = [values[name] for name in layer["inputs"]]
            values[layer["name"]] = self.apply(layer, inputs, keep_statistics)
        return values[self.layers[-1]["name"]]

    def apply(self, layer, inputs, keep_statistics):
        kind, x = layer["type"], inputs[0]
        weights = [{**self.parameters, **self.statistics}[name] for name in layer["weights"]]
        if kind == "conv2d":
            plain = layer.get("groups", 1) == 1 and layer.get("dilation", [1, 1]) == [1, 1]
            if not plain:
                raise NotImplementedError("conv2d with groups or dilation")
            return F.conv2d(x, *weights, stride=layer.get("stride", [1, 1]), padding=layer.get("padding", [0, 0]))
        if kind == "linear":
            return F.linear(x, *weights)
        if kind == "batch_norm2d":
            weight, bias, mean, variance = weights
            if keep_statistics:
                mean, variance = mean.clone(), variance.clone()
            return F.batch_norm(x, mean, variance, weight, bias, training=True, momentum=layer["momentum"],
                                eps=layer["eps"])
        if kind == "relu":
            self.decides(x.abs(), x)
            return F.relu(x)
        if kind == "max_pool2d":
            settings = {key: layer[key] for key in ("kernel_size", "stride", "padding") if key in layer}
            if any(settings.get("padding", [0, 0])) or settings["stride"] != settings["kernel_size"]:
                raise NotImplementedError("max_pool2d whose windows overlap or are padded")
            rows, columns = settings["kernel_size"]
            windows = x.unfold(2, rows, rows).unfold(3, columns, columns).flatten(4)
            first, second = windows.topk(2).values.unbind(-1)
            # Equal values are zeros of a relu, and have no gradient.
            gaps = (first - second)[first > 0] if (x >= 0).all() else first - second
            self.decides(gaps, x)
            return F.max_pool2d(x, **settings)
        if kind == "avg_pool2d":
            keys = ("kernel_size", "stride", "padding", "count_include_pad")
            settings = {key: layer[key] for key in keys if key in layer}
            return F.avg_pool2d(x, **settings)
        if kind == "tanh":
            return torch.tanh(x)
        if kind == "add":
            return inputs[0] + inputs[1]
        if kind == "global_avg_pool2d":
            return x.mean((2, 3), keepdim=True)
        if kind == "flatten":
            return x.flatten(1)
        raise NotImplementedError(kind)

    def gradients(self, x, y):
        """The loss and the logits; the gradients stand in the parameters."""
        logits = self.forward(x)
        loss = F.cross_entropy(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        return loss.detach(), logits.detach()


def wide_batch(replica, x, margin, generator):
    """Returns a batch with the margin, and the margin: `x`, else `x` moved, else another random batch, moved."""
    for _ in range(DRAWS):
        for _ in range(MOVES):
            x = x.detach().requires_grad_(margin > 0)
            replica.forward(x, keep_statistics=True)
            if replica.margin >= margin:
                return x.detach(), replica.margin
            grad, = torch.autograd.grad(replica.missing, x)
            x = x - replica.missing / grad.square().sum() * grad
        x = torch.randn(x.shape, dtype=x.dtype, generator=generator)
    sys.exit(f"{DRAWS} batches, and none with a margin of {margin}")


def replay(name, attrs, given, margin):
    """Trains. Returns the least margin and all tensors of the case."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    tensors = {key: value.clone() for key, value in given.items() if key.split(".")[-1] in ("x", "y")}
    tensors.update({key: value for key, value in given.items() if key.startswith("initial.")})
    kind = attrs.get("type", "network")
    prefixes = [""] if kind == "network" else [f"replica{r}." for r in range(attrs["replicas"])]
    # A little more, or the last distances would come up to the margin by ever smaller moves.
    replicas = [Replica(attrs, given, 1.25 * margin) for _ in prefixes]
    losses = [[] for _ in prefixes]
    least = float("inf")
    for step in range(attrs["steps"]):
        for replica, prefix, course in zip(replicas, prefixes, losses):
            x, found = wide_batch(replica, tensors[f"{prefix}x"][step], margin, generator)
            least = min(least, found)
            tensors[f"{prefix}x"][step] = x
            loss, logits = replica.gradients(x, tensors[f"{prefix}y"][step])
            course.append(loss)
            if kind == "network" and step == 0:
                tensors["logits0"] = logits
                tensors.update({f"grad0.{key}": value.grad.clone() for key, value in replica.parameters.items()})
        if kind == "gradient_averaging":
            for values in zip(*(replica.parameters.values() for replica in replicas)):
                mean = sum(share * value.grad for share, value in zip(attrs["shares"], values))
                for value in values:
                    value.grad = mean.clone()
        for replica in replicas:
            replica.optimizer.step()
        if step + 1 in attrs.get("averaging_points", []):
            average(replicas, attrs["average_optimizer_state"])
            after = f"after{step + 1}."
            tensors.update({after + key: value.clone() for key, value in replicas[0].tensors().items()})
            if any(key.startswith(f"{after}momentum.") for key in given):
                tensors.update({f"{after}momentum.{key}": value.clone()
                                for key, value in replicas[0].momentum().items()})
    for prefix, course in zip(prefixes, losses):
        tensors[f"{prefix}loss"] = torch.stack(course)
    if kind == "network":
        tensors.update({f"final.{key}": value for key, value in replicas[0].tensors().items()})
    elif kind == "gradient_averaging":
        tensors.update({f"final.{key}": value.detach() for key, value in replicas[0].parameters.items()})
        for prefix, replica in zip(prefixes, replicas):
            tensors.update({f"{prefix}final.{key}": value for key, value in replica.statistics.items()})
        for key in replicas[0].statistics:
            tensors[f"average.{key}"] = torch.stack([replica.statistics[key] for replica in replicas]).mean(0)
    return least, {key: tensors[key] for key in given}


def average(replicas, with_state):
    """Parameters, running statistics and, if wanted, momentum become their means."""
    with torch.no_grad():
        sets = [[replica.tensors() for replica in replicas]]
        if with_state:
            sets.append([replica.momentum() for replica in replicas])
        for dicts in sets:
            for key in dicts[0]:
                mean = torch.stack([values[key] for values in dicts]).mean(0)
                for values in dicts:
                    values[key].copy_(mean)


def difference(given, made):
    """The largest over all tensors, as data/README.md counts it."""
    return max(float((made[key] - value).abs().max() / value.abs().max().clamp(min=0.05))
               for key, value in given.items() if value.dtype == torch.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--margin", type=float, default=0, help="write cases anew whose margin is smaller")
    parser.add_argument("cases", nargs="+", metavar="CASE")
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    for path in map(pathlib.Path, arguments.cases):
        metadata, given = read_case(path)
        try:
            margin, made = replay(metadata["name"], metadata["attrs"], given, 0)
        except NotImplementedError as reason:
            print(f"{path.stem}: not replayed: {reason}")
            continue
        off = difference(given, made)
        print(f"{path.stem}: off by {off:.1e}, margin {margin:.1e}", flush=True)
        if not off <= TOLERANCE:
            sys.exit(f"{path}: what is trained here is not what the case expects")
        if margin < arguments.margin:
            margin, made = replay(metadata["name"], metadata["attrs"], given, arguments.margin)
            write_case(path.parent, metadata["kind"], metadata["name"], metadata["attrs"], metadata["doc"], made)
            print(f"{path.stem}: written anew, margin {margin:.1e}", flush=True)


if __name__ == "__main__":
    main()
