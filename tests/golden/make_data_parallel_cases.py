#!/usr/bin/env python3
"""Writes the weighted cases of data/data_parallel: make_data_parallel_cases.py FOLDER.

Needs PyTorch. The format is data/README.md's; numbers follow from each case's name. PyTorch computes the loss and the
gradient of the whole batch at once, so the replicas must come to the same.
"""

import sys
import zlib

import torch
import torch.nn.functional as F
from case_file import write_case

FOLDER = sys.argv[1]
SIZES = [3, 6, 3]  # Features, hidden units, classes.
OPTIMIZER = {"type": "sgd", "lr": 0.1, "momentum": 0.9, "dampening": 0, "weight_decay": 0.01, "nesterov": True}


def case(name, doc, batch_sizes, labels, **loss):
    """`labels` has a row a step; replicas take its columns in order. `loss` has PyTorch's settings."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    y = torch.tensor(labels)
    steps, batch = y.shape
    assert batch == sum(batch_sizes)
    x = draw(steps, batch, SIZES[0])
    weights = {f"layers.{layer}.{kind}": draw(*shape).mul(0.5).requires_grad_(True)
               for layer, (inputs, outputs) in {0: SIZES[:2], 2: SIZES[1:]}.items()
               for kind, shape in {"weight": (outputs, inputs), "bias": (outputs,)}.items()}
    tensors = {f"initial.{key}": value.detach().clone() for key, value in weights.items()}
    class_weights = torch.tensor(loss["class_weights"], dtype=torch.float64) if "class_weights" in loss else None
    settings = {"weight": class_weights, "ignore_index": loss.get("ignore_index", -100),
                "label_smoothing": loss.get("label_smoothing", 0.0)}
    optimizer = torch.optim.SGD(weights.values(), **{key: value for key, value in OPTIMIZER.items() if key != "type"})
    parts = []
    for step in range(steps):
        hidden = torch.tanh(F.linear(x[step], weights["layers.0.weight"], weights["layers.0.bias"]))
        logits = F.linear(hidden, weights["layers.2.weight"], weights["layers.2.bias"])
        counted = y[step] != settings["ignore_index"]
        total = (class_weights[y[step][counted]] if class_weights is not None else counted.double()).sum()
        parts.append(torch.stack([F.cross_entropy(*part, reduction="sum", **settings) / total for part in
                                  zip(logits.split(batch_sizes), y[step].split(batch_sizes))]))
        mean = F.cross_entropy(logits, y[step], **settings)
        assert torch.isclose(parts[-1].sum(), mean, rtol=1e-13)
        optimizer.zero_grad()
        mean.backward()
        optimizer.step()
    for r, (own_x, own_y) in enumerate(zip(x.split(batch_sizes, dim=1), y.split(batch_sizes, dim=1))):
        tensors.update({f"replica{r}.x": own_x, f"replica{r}.y": own_y,
                        f"replica{r}.loss": torch.stack(parts)[:, r]})
    tensors.update({f"final.{key}": value for key, value in weights.items()})
    layers = [{"name": "layers.0", "type": "linear", "inputs": ["x"], "weights": ["layers.0.weight", "layers.0.bias"]},
              {"name": "layers.1", "type": "tanh", "inputs": ["layers.0"], "weights": []},
              {"name": "layers.2", "type": "linear", "inputs": ["layers.1"],
               "weights": ["layers.2.weight", "layers.2.bias"]}]
    attrs = {"type": "weighted_gradients", "replicas": len(batch_sizes), "batch_sizes": batch_sizes, "steps": steps,
             "loss": {"type": "cross_entropy", **loss}, "optimizer": OPTIMIZER, "layers": layers}
    write_case(FOLDER, "data_parallel", name, attrs, doc, tensors)


FORMULA = "Every step, all replicas apply the gradient of sum(weight loss) / sum(weight) over the whole batch; "
IGNORED = [[2, 2, 2, 0, 0, 1, 0, 1], [0, 1, 2, 2, 2, 2, 1, 1], [2, 2, 2, 2, 2, 2, 2, 0]]
WEIGHTED = [[0, 0, 0, 0, 1, 1, 2, 2], [2, 2, 1, 0, 0, 0, 0, 0], [1, 2, 0, 1, 2, 0, 2, 0]]

case("weighted_ignored_r2_equal", FORMULA + "labels of ignore_index weigh 0.", [4, 4], IGNORED, ignore_index=2)
case("weighted_ignored_r4_equal", FORMULA + "some replicas have ignored labels alone.", [2, 2, 2, 2], IGNORED,
     ignore_index=2)
case("weighted_classes_r2_equal", FORMULA + "classes weigh 1, 2 and 5.", [4, 4], WEIGHTED, class_weights=[1.0, 2.0, 5.0])
case("weighted_classes_r3_5_2_1", FORMULA + "with ignored labels and label smoothing. Class 0 weighs nothing.",
     [5, 2, 1], WEIGHTED, class_weights=[0.0, 2.0, 0.5], ignore_index=1, label_smoothing=0.1)
