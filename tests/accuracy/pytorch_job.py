#!/usr/bin/env python3
"""Trains a Tandem job with PyTorch and prints one JSON line: the validation accuracy after each epoch.

  tandem describe JOB -o json >job.json
  OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 python3 tests/accuracy/pytorch_job.py job.json \
      --data-folder=/usr/share/datasets [--device=cpu|cuda] [--seed=N] [--epochs=N] [--threads=N]

Both sides train by the same recipe, because the daemon has filled in the job's defaults. The recipe has the layers and
their initial weights, batches (also the last, short batch), optimizer, schedule, normalisation, augmentation, averaging
of parameters, batch norm's statistics, and precision (bfloat16 is autocast). Random numbers are PyTorch's own, so
compare the means over several seeds. The program refuses a job with an unknown field, and names the field.

With all_reduce, the program trains one replica with the whole batch, because the sum over replicas is the sum over the
batch. It refuses batch norm with several replicas, which would give other statistics.

With --device=cuda, all images are on the GPU, and TF32 is off.

--data-folder is repeatable. The data set is the subfolder with the name of the job's data set. It has IDX files (plain
or .gz) or CIFAR-10's binary files (plain or .xz).
"""
import argparse
import copy
import gzip
import json
import lzma
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn


def settings(message, *known, **fixed):
    """Refuses a message with a field that is not known, or whose value is not the only one known."""
    for key, value in message.items():
        if key not in known and not (key in fixed and value == fixed[key]):
            sys.exit(f"{key}: {json.dumps(value)} is not known here")


def kind_of(message):
    """(name, message) of what a oneof holds."""
    (kind,) = [(key, value) for key, value in message.items() if isinstance(value, dict)]
    return kind


def pair(values, default):
    values = [int(value) for value in values] if values else [default]
    return tuple(values) if len(values) == 2 else (values[0], values[0])


def initialize(tensor, initializer):
    name, how = kind_of(initializer)
    uniform = how.get("distribution", "").endswith("UNIFORM")
    if name == "zeros":
        nn.init.zeros_(tensor)
    elif name == "constant":
        nn.init.constant_(tensor, how["value"])
    elif name == "normal":
        nn.init.normal_(tensor, how.get("mean", 0), how["standard_deviation"])
    elif name == "xavier":
        (nn.init.xavier_uniform_ if uniform else nn.init.xavier_normal_)(tensor)
    elif name == "he" and uniform:
        nn.init.kaiming_uniform_(tensor, nonlinearity="relu")
    elif name == "he":
        nn.init.kaiming_normal_(tensor, nonlinearity="relu")
    else:
        sys.exit(f"the initializer {name} is not known here")


class Residual(nn.Module):
    """The sum of two paths, and an activation."""

    def __init__(self, layers, shortcut, activation):
        super().__init__()
        self.layers, self.shortcut, self.activation = layers, shortcut, activation

    def forward(self, x):
        return self.activation(self.layers(x) + self.shortcut(x))


def activation(message):
    name = message.get("activation", "ACTIVATION_IDENTITY")
    known = {"ACTIVATION_IDENTITY": nn.Identity, "ACTIVATION_UNSPECIFIED": nn.Identity, "ACTIVATION_RELU": nn.ReLU}
    return known[name]() if name in known else sys.exit(f"{name} is not known here")


def modules(layer):
    """A layer's modules, in order."""
    name, spec = kind_of(layer)
    if name == "repeat":
        return [module for _ in range(int(spec["count"])) for module in network(spec["layers"])]
    if name == "residual":
        settings(spec, "layers", "shortcut", "activation")
        return [Residual(network(spec["layers"]), network(spec.get("shortcut", [])), activation(spec))]
    if name in ("max_pool2d", "average_pool2d"):
        settings(spec, "size", "stride", "padding", count_include_pad=True, ceil_mode=False)
        pool = nn.MaxPool2d if name == "max_pool2d" else nn.AvgPool2d
        size = pair(spec["size"], 1)
        return [pool(size, pair(spec.get("stride"), size[0]), pair(spec.get("padding"), 0))]
    if name == "global_average_pool2d":
        return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if name == "flatten":
        return [nn.Flatten()]
    if name == "batch_norm":
        settings(spec, "epsilon", "momentum", "activation", "weight_initializer", "bias_initializer", affine=True,
                 sync=False)
        made = nn.LazyBatchNorm2d(spec["epsilon"], spec["momentum"])
    elif name == "conv2d":
        settings(spec, "filters", "kernel", "stride", "padding", "dilation", "groups", "use_bias", "activation",
                 "weight_initializer", "bias_initializer", padding_mode="PADDING_MODE_EXPLICIT")
        made = nn.LazyConv2d(int(spec["filters"]), pair(spec["kernel"], 1), pair(spec.get("stride"), 1),
                             pair(spec.get("padding"), 0), pair(spec.get("dilation"), 1), int(spec.get("groups", 1)),
                             spec.get("use_bias", True))
    elif name == "dense":
        settings(spec, "units", "use_bias", "activation", "weight_initializer", "bias_initializer")
        made = nn.LazyLinear(int(spec["units"]), spec.get("use_bias", True))
    else:
        sys.exit(f"the layer {name} is not known here")
    made.spec = spec
    before = [nn.Flatten()] if name == "dense" else []
    return before + [made, activation(spec)]


def network(layers):
    """Each layer reads from the one before it."""
    for layer in layers:
        settings(layer, "name", kind_of(layer)[0])
    return nn.Sequential(*[module for layer in layers for module in modules(layer)])


def make_network(model, shape):
    net = network(model["layers"])
    net.eval()
    with torch.no_grad():
        net(torch.zeros(1, *shape))  # Gives the lazy layers their parameters.
        for module in net.modules():
            if hasattr(module, "spec"):
                initialize(module.weight, module.spec["weight_initializer"])
                if module.bias is not None:
                    initialize(module.bias, module.spec["bias_initializer"])
    return net.to(memory_format=torch.channels_last)


def make_optimizer(optimizer, net):
    """Plain, Polyak's and Nesterov's; a group of biases and norms with a decay and a rate of its own."""
    groups = optimizer.get("groups", [])
    name, spec = kind_of(optimizer)
    if name not in ("sgd", "momentum", "nesterov"):
        sys.exit(f"the optimizer {name} is not known here")
    settings(spec, "learning_rate", "momentum", "weight_decay", "dampening")
    rate, decay = spec["learning_rate"], spec.get("weight_decay", 0)
    wide = {"params": [p for p in net.parameters() if p.ndim > 1]}
    narrow = {"params": [p for p in net.parameters() if p.ndim < 2]}
    for group in groups:
        settings(group, "weight_decay", "learning_rate_factor", biases_and_norms=True)
        narrow["lr"] = rate * group.get("learning_rate_factor", 1)
        narrow["weight_decay"] = group.get("weight_decay", decay)
    return torch.optim.SGD([wide, narrow], rate, spec.get("momentum", 0), spec.get("dampening", 0), decay,
                           nesterov=name == "nesterov")


def make_schedule(schedule, optimizer):
    """A rate for each epoch."""
    if not schedule or "constant" in schedule:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1)
    settings(schedule, "piecewise", unit="SCHEDULE_UNIT_EPOCHS")
    piecewise = schedule["piecewise"]
    settings(piecewise, "drop_factor", "drop_period")
    return torch.optim.lr_scheduler.StepLR(optimizer, int(piecewise["drop_period"]), piecewise["drop_factor"])


def average(nets, optimizers, with_state):
    """Gives all replicas the means of their parameters, statistics and, if asked to, momenta."""

    def level(tensors):
        if tensors[0].is_floating_point():
            mean = torch.stack(tensors).mean(0)
            for tensor in tensors:
                tensor.copy_(mean)

    with torch.no_grad():
        for same in zip(*[net.state_dict().values() for net in nets]):
            level(same)
        if with_state:
            for same in zip(*[net.parameters() for net in nets]):
                states = [optimizer.state[p].get("momentum_buffer") for optimizer, p in zip(optimizers, same)]
                if all(state is not None for state in states):
                    level(states)


def read(folder, name):
    for ending, opened in (("", open), (".gz", gzip.open), (".xz", lzma.open)):
        path = os.path.join(folder, name + ending)
        if os.path.exists(path):
            with opened(path, "rb") as f:
                return f.read()
    return None


def read_idx(folder, name):
    """None where there is no such file."""
    data = read(folder, name)
    if data is None:
        return None
    extents = np.frombuffer(data, ">i4", count=data[3], offset=4)
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(extents).copy())


def read_cifar(folder, names):
    records = np.concatenate([np.frombuffer(read(folder, name), np.uint8).reshape(-1, 3073) for name in names])
    return (torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(records[:, 0].copy()).long())


def read_data(name, folders):
    """Training images, their classes, test images, their classes; images are bytes NCHW."""
    for folder in (os.path.join(folder, name) for folder in folders):
        images = read_idx(folder, "train-images-idx3-ubyte")
        if images is not None:
            return (images[:, None], read_idx(folder, "train-labels-idx1-ubyte").long(),
                    read_idx(folder, "t10k-images-idx3-ubyte")[:, None],
                    read_idx(folder, "t10k-labels-idx1-ubyte").long())
        if read(folder, "test_batch.bin") is not None:
            return (read_cifar(folder, [f"data_batch_{i}.bin" for i in range(1, 6)]) +
                    read_cifar(folder, ["test_batch.bin"]))
    return sys.exit(f"no folder holds the data set {name}")


def flip(images, spec):
    settings(spec, "probability")
    chosen = torch.rand(len(images), device=images.device) < spec.get("probability", 0.5)
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def translate(images, spec):
    """Whole pixels from [-x, x] and [-y, y]; what comes in is 0."""
    settings(spec, "x", "y", fill="FILL_MODE_ZERO")
    x, y = int(spec.get("x", 0)), int(spec.get("y", 0))
    count, channels, height, width = images.shape
    padded = F.pad(images, (x, x, y, y))
    where = {"device": images.device}
    rows = torch.randint(0, 2 * y + 1, (count, 1), **where) + torch.arange(height, **where)
    columns = torch.randint(0, 2 * x + 1, (count, 1), **where) + torch.arange(width, **where)
    return padded[torch.arange(count, **where)[:, None, None, None], torch.arange(channels, **where)[:, None, None],
                  rows[:, None, :, None], columns[:, None, None, :]]


AUGMENTATIONS = {"horizontal_flip": flip, "translation": translate}


def augment(images, augmentations):
    for augmentation in augmentations:
        name, how = kind_of(augmentation)
        images = AUGMENTATIONS[name](images, how)
    return images


def make_normalize(spec, images):
    settings(spec, "scale", "mean", "standard_deviation", "from_data")
    scale = spec.get("scale", 1 / 255)
    mean, deviation = torch.tensor(spec.get("mean", [0.0])), torch.tensor(spec.get("standard_deviation", [1.0]))
    if spec.get("from_data", False):
        channels = images.transpose(0, 1).flatten(1).double() * scale
        mean, deviation = channels.mean(1).float(), channels.std(1, correction=0).float()
    mean, deviation = (numbers[:, None, None].to(images.device) for numbers in (mean, deviation))
    return lambda x: ((x.float() * scale - mean) / deviation).contiguous(memory_format=torch.channels_last)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", help="the job as `tandem describe JOB -o json` prints it; - is standard input")
    parser.add_argument("--data-folder", action="append", required=True)
    parser.add_argument("--seed", type=int, help="default: the job's")
    parser.add_argument("--epochs", type=int, help="default: the job's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    with sys.stdin if args.job == "-" else open(args.job) as f:
        job = json.load(f)
    spec = job.get("spec", job)
    training, dataset = spec["training"], spec["dataset"]
    epochs = args.epochs or int(training["epochs"])
    seed = int(training.get("seed", 0)) if args.seed is None else args.seed
    batch = int(training["global_batch_size"])
    settings(training, "loss", "optimizer", "schedule", "global_batch_size", "epochs", "seed", "precision", "report",
             "metrics", "validation", "validation_batch_size", "best_model", "batch_norm_statistics", "drop_last",
             shuffle=True, accumulation_steps="1")
    settings(training["loss"], "softmax_cross_entropy")
    settings(training["loss"]["softmax_cross_entropy"], label_smoothing=0)
    settings(dataset, "name", "normalization", "augmentation")
    augmentations = dataset.get("augmentation", [])
    statistics = training.get("batch_norm_statistics", "BATCH_NORM_STATISTICS_RUNNING")
    population = statistics == "BATCH_NORM_STATISTICS_POPULATION"
    if not population and statistics not in ("BATCH_NORM_STATISTICS_RUNNING", "BATCH_NORM_STATISTICS_UNSPECIFIED"):
        sys.exit(f"{statistics} is not known here")
    bfloat16 = training.get("precision") == "PRECISION_BFLOAT16"

    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(seed)
    images, classes, test_images, test_classes = (
        tensor.to(args.device) for tensor in read_data(dataset["name"], args.data_folder))
    normalize = make_normalize(dataset.get("normalization", {}), images)
    net = make_network(spec["model"], images.shape[1:]).to(args.device)
    replicas = spec.get("replicas", {})
    settings(replicas, "count", "prefetch", "device_kind", "all_reduce", "parameter_averaging", replicas_per_device=1, workers=1)
    count = int(replicas.get("count", 1))
    averaging = replicas.get("parameter_averaging")
    if averaging is None and count > 1 and any(isinstance(module, nn.BatchNorm2d) for module in net.modules()):
        sys.exit("batch norm with several replicas is not known here")
    if averaging is not None:
        settings(averaging, "every_iterations", "average_optimizer_state", "report_score_after_averaging")
    nets = [net] + [copy.deepcopy(net) for _ in range(count - 1 if averaging else 0)]
    optimizers = [make_optimizer(training["optimizer"], net) for net in nets]
    schedules = [make_schedule(training.get("schedule"), optimizer) for optimizer in optimizers]
    autocast = torch.autocast(args.device, torch.bfloat16, enabled=bfloat16)
    started = time.monotonic()
    accuracies, losses = [], []
    for epoch in range(1, epochs + 1):
        # Left on the device: reading it at each step would wait for each.
        total = torch.zeros((), dtype=torch.float64, device=args.device)
        batches = torch.randperm(len(images), device=args.device).split(batch)
        if training.get("drop_last", False) and len(batches[-1]) < batch:
            batches = batches[:-1]
        trained = sum(len(whole) for whole in batches)
        for step, whole in enumerate(batches, 1):
            for replica, optimizer, chosen in zip(nets, optimizers, whole.tensor_split(len(nets))):
                if len(chosen) == 0:
                    continue
                replica.train()
                x = augment(images[chosen], augmentations)
                with autocast:
                    loss = F.cross_entropy(replica(normalize(x)), classes[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach().double() * len(chosen)
            if averaging and (step == len(batches) or step % int(averaging["every_iterations"]) == 0):
                average(nets, optimizers, averaging.get("average_optimizer_state", True))
        for schedule in schedules:
            schedule.step()
        if population and epoch == epochs:
            # The samples once more, in batches as in training. Each batch counts the same here, the short one at the
            # end too; Tandem counts samples.
            parts = [part for whole in torch.randperm(len(images), device=args.device).split(batch)
                     for part in whole.tensor_split(len(nets)) if len(part)]
            with autocast:
                update_bn((normalize(augment(images[part], augmentations)) for part in parts), net)
        net.eval()
        right = torch.zeros((), dtype=torch.int64, device=args.device)
        with torch.no_grad(), autocast:
            for x, y in zip(test_images.split(1000), test_classes.split(1000)):
                right += (net(normalize(x)).argmax(1) == y).sum()
        accuracies.append(right.item() / len(test_images))
        losses.append(round(total.item() / trained, 4))
        print(f"epoch {len(accuracies)}: loss {losses[-1]}, accuracy {accuracies[-1]}, "
              f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps({"pytorch": torch.__version__.split("+")[0], "job": spec.get("name"), "seed": seed,
                      "accuracy": accuracies[-1], "accuracies": accuracies, "losses": losses,
                      "seconds": round(time.monotonic() - started, 1), "threads": args.threads,
                      "device": args.device}))


if __name__ == "__main__":
    main()
