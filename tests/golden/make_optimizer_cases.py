#!/usr/bin/env python3
"""Writes the cases of data/optimizer that go beyond the reference set's optimizers: make_optimizer_cases.py FOLDER.

Needs PyTorch 2.9 or newer. The format is data/README.md's; numbers follow from each case's name.
"""

import sys
import zlib

import torch
from case_file import write_case

FOLDER = sys.argv[1]
STEPS = 6


def case(name, make, attrs, doc, **shapes):
    """`make` takes parameters and the settings, and returns an optimizer."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    parameters = {key: draw(*shape).requires_grad_(True) for key, shape in shapes.items()}
    grads = {key: draw(STEPS, *shape) for key, shape in shapes.items()}
    tensors = {f"initial.{key}": value.detach().clone() for key, value in parameters.items()}
    tensors.update({f"grads.{key}": value for key, value in grads.items()})
    after = {key: [] for key in shapes}
    optimizer = make(list(parameters.values()), **{key: value for key, value in attrs.items() if key != "type"})
    for step in range(STEPS):
        for key, parameter in parameters.items():
            parameter.grad = grads[key][step].clone()
        optimizer.step()
        for key, parameter in parameters.items():
            after[key].append(parameter.detach().clone())
    tensors.update({f"params.{key}": torch.stack(value) for key, value in after.items()})
    write_case(FOLDER, "optimizer", name, attrs, doc, tensors)


# torch.optim.Muon iterates in bfloat16 with any type of parameters. This makes a copy instead, because Muon changes the
# result in place.
torch.Tensor.bfloat16 = torch.Tensor.clone

case("muon", torch.optim.Muon, {"type": "muon", "lr": 0.05},
     "Muon (Jordan et al. 2024) with its defaults, its iteration in float64; a tall matrix and a wide one.",
     a=(5, 3), b=(3, 4))
case("muon_match_adamw", torch.optim.Muon,
     {"type": "muon", "lr": 0.02, "weight_decay": 0.3, "momentum": 0.8, "nesterov": False,
      "ns_coefficients": [3.0, -3.2, 1.2], "eps": 1e-6, "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"},
     "Muon without Nesterov's momentum, steps as large as AdamW's (arXiv:2502.16982), its iteration in float64.",
     a=(4, 6), b=(7, 2))
