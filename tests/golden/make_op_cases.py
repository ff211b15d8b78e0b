#!/usr/bin/env python3
"""Writes the cases of data/op that go beyond the reference set's settings: make_op_cases.py FOLDER.

Needs PyTorch. The format is data/README.md's; numbers follow from each case's name.
"""

import sys
import zlib

import torch
import torch.nn.functional as F
from case_file import write_case

FOLDER = sys.argv[1]


def case(name, attrs, doc, function, **shapes):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def draw(shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    inputs = {key: (2 * draw(shape)).requires_grad_(True) for key, shape in shapes.items()}
    output = function(**inputs)
    grad_output = draw(output.shape)
    output.backward(grad_output)
    tensors = dict(inputs, output=output, grad_output=grad_output)
    tensors.update({f"grad_{key}": value.grad for key, value in inputs.items()})
    write_case(FOLDER, "op", name, attrs, doc, tensors)


def upsample(name, mode, size=None, scale_factor=None, **settings):
    attrs = {"type": f"upsample_{mode}2d", **settings}
    attrs.update({"size": size} if size else {"scale_factor": scale_factor})
    given = tuple(scale_factor) if isinstance(scale_factor, list) else scale_factor
    case(name, attrs, f"interpolate, {mode}",
         lambda input: F.interpolate(input, size=size, scale_factor=given, mode=mode, **settings),
         input=(2, 3, 5, 7))


def conv_transpose(name, weight, channels, bias=True, **settings):
    def function(input, weight, bias=None):
        return F.conv_transpose2d(input, weight, bias, **settings)

    shapes = {"input": (2, channels, 6, 5), "weight": weight}
    if bias:
        shapes["bias"] = (weight[1] * settings.get("groups", 1),)
    case(name, {"type": "conv_transpose2d", **settings}, "conv_transpose2d", function, **shapes)


def pool(name, attrs, function):
    attrs = dict(attrs, ceil_mode=True)
    settings = {key: value for key, value in attrs.items() if key != "type"}
    case(name, attrs, f"{attrs['type']}, sizes rounded up", lambda input: function(input, **settings),
         input=(2, 3, 8, 9))


case("conv2d_same_even", {"type": "conv2d", "padding": "same", "dilation": [1, 3]}, "conv2d, padding same",
     lambda input, weight, bias: F.conv2d(input, weight, bias, padding="same", dilation=(1, 3)),
     input=(2, 3, 6, 7), weight=(4, 3, 2, 4), bias=(4,))
case("elu_alpha", {"type": "elu", "alpha": 0.5}, "elu", lambda input: F.elu(input, 0.5), input=(3, 4, 5))
case("leaky_relu_slope", {"type": "leaky_relu", "negative_slope": 0.2}, "leaky_relu",
     lambda input: F.leaky_relu(input, 0.2), input=(3, 4, 5))
case("selu", {"type": "selu"}, "selu", F.selu, input=(3, 4, 5))
case("softplus_beta", {"type": "softplus", "beta": 3.0, "threshold": 5.0}, "softplus",
     lambda input: F.softplus(input, 3, 5), input=(3, 4, 5))
case("softmax_rows", {"type": "softmax", "dim": 2}, "softmax", lambda input: F.softmax(input, 2),
     input=(2, 3, 5, 4))
case("log_softmax_batch", {"type": "log_softmax", "dim": 0}, "log_softmax",
     lambda input: F.log_softmax(input, 0), input=(4, 7))
case("concat_last", {"type": "concat", "dim": -1}, "cat",
     lambda input0, input1: torch.cat([input0, input1], -1), input0=(2, 3, 5), input1=(2, 3, 2))
case("embed_categories", {"type": "embed_categories", "first_input": 2},
     "inputs 2 to 6 become a vector of 3, others stay",
     lambda input, weight: torch.cat([input[:, :2], F.linear(input[:, 2:7], weight), input[:, 7:]], 1),
     input=(4, 11), weight=(3, 5))
case("multiply", {"type": "multiply"}, "mul", lambda input0, input1: input0 * input1,
     input0=(2, 3, 5), input1=(2, 3, 5))
case("group_norm_plain", {"type": "group_norm", "num_groups": 3, "eps": 1e-3}, "group_norm without weights",
     lambda input: F.group_norm(input, 3, eps=1e-3), input=(3, 6, 4))
upsample("upsample_nearest2d_fractions", "nearest", scale_factor=[1.3, 2.6])
upsample("upsample_nearest2d_size", "nearest", size=[9, 4])
upsample("upsample_bilinear2d_fractions", "bilinear", scale_factor=[1.7, 0.5], align_corners=False)
upsample("upsample_bilinear2d_corners", "bilinear", size=[13, 10], align_corners=True)
upsample("upsample_nearest2d_same_height", "nearest", scale_factor=[1.15, 1.3])
upsample("upsample_bilinear2d_same_height", "bilinear", scale_factor=[1.15, 1.3], align_corners=False)
conv_transpose("conv_transpose2d_groups", (8, 3, 4, 3), 8, stride=3, padding=2, output_padding=[2, 1], groups=2)
conv_transpose("conv_transpose2d_dilated", (4, 3, 3, 2), 4, bias=False, stride=[2, 1], padding=[1, 0],
               output_padding=[1, 0], dilation=[1, 3])
pool("max_pool2d_ceil", {"type": "max_pool2d", "kernel_size": [3, 2], "stride": [2, 3], "padding": [1, 0]},
     F.max_pool2d)
pool("avg_pool2d_ceil_include", {"type": "avg_pool2d", "kernel_size": 3, "stride": 2, "padding": 1,
                                 "count_include_pad": True}, F.avg_pool2d)
pool("avg_pool2d_ceil_exclude", {"type": "avg_pool2d", "kernel_size": 3, "stride": 2, "padding": 1,
                                 "count_include_pad": False}, F.avg_pool2d)
case("global_max_pool2d", {"type": "global_max_pool2d"}, "adaptive_max_pool2d to one pixel",
     lambda input: F.adaptive_max_pool2d(input, 1), input=(2, 3, 8, 9))
