"""The steps of `run.sh --preset`, in order. An entry is a part, its limit for each step in seconds, and its options.

An option replaces the attribute of the same name in checks.Setting. The command line overrides an option.
"""

ALL = ["resnet18", "lenet", "matlab-cifar"]
OWN_KERNELS = {kind: ":".join(f"{kind}/DeviceConformance.{test}/*" for test in
                              ("ComputesWhatTheOracleComputes", "TrainsLikeTheOracle", "SeveralRunsAreAsManySingleOnes"))
               for kind in ("Float32", "BFloat16")}

PRESETS = {
    # Does the code work on this GPU, and how fast is it?
    "first": [
        ("probe", 25, {"quick": True}),
        ("conformance", 10, {"programs": ["driver_test"]}),
        ("conformance", 15, {"programs": ["probe_test", "residual_test"]}),
        ("bench", 25, {"networks": ["resnet18"], "dtypes": ["bfloat16"], "samples": ["gpu"]}),
        ("bench", 15, {"networks": ["lenet"], "dtypes": ["bfloat16"], "samples": ["gpu"]}),
        ("conformance", 45, {"programs": ["libraries_test"]}),
        ("conformance", 55, {"programs": ["conformance_test"], "filter": "Float32/*:BFloat16/*"}),
        ("conformance", 15, {"programs": ["communicator_test", "collective_test"]}),
        ("golden", 40, {"backends": ["gpu-bfloat16"]}),
        ("job", 25, {"epochs": 1, "changes": ["replicas.count=1"]}),
        ("workers", 20, {}),
        # These steps run only if time is left.
        ("kernels", 40, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"]}),
        ("sanitize", 40, {"tools": ["memcheck"], "filter": ":".join(OWN_KERNELS.values()), "kernels": "tandem"}),
        ("bench", 14, {"networks": ALL, "dtypes": ["float32"], "samples": ["gpu"]}),
    ],
    # Compares speeds with PyTorch.
    "second": [
        ("bench", 15, {"networks": ALL, "dtypes": ["bfloat16"], "samples": ["gpu"]}),
        ("bench", 14, {"networks": ALL, "dtypes": ["float32"], "samples": ["gpu"]}),
        ("job", 15, {"epochs": 10}),
        ("peers", 25, {"networks": ALL, "dtypes": ["bfloat16", "float32"], "layouts": ["channels-last"]}),
        ("kernels", 40, {"networks": ["resnet18"], "dtypes": ["bfloat16"]}),
        ("epochs", 15, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"]}),
        ("peers-compile", 120, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"]}),
        # These steps run only if time is left.
        ("starts", 25, {"starts": 2}),
        ("golden", 40, {"backends": ["gpu", "gpu-float16"]}),
        ("conformance", 20, {"programs": ["parity_test", "float16_test", "resident_test"]}),
    ],
    # Checks a change of the backend, and measures its gain. The sum of the limits is below ten minutes.
    "again": [
        ("conformance", 10, {"programs": ["driver_test"]}),
        ("conformance", 20, {"programs": ["resident_test"]}),
        ("conformance", 15, {"programs": ["collective_test"]}),
        ("conformance", 55, {"programs": ["conformance_test"], "filter": "Float32/*:BFloat16/*"}),
        ("bench", 20, {"networks": ALL, "dtypes": ["bfloat16"], "samples": ["gpu"]}),
        ("launches", 20, {"networks": ["resnet18"], "dtypes": ["bfloat16"]}),
        ("kernels", 20, {"networks": ALL, "dtypes": ["bfloat16"]}),
        ("epochs", 20, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"]}),
        ("conformance", 25, {"programs": ["residual_test", "parity_test"]}),
        ("bench", 20, {"networks": ALL, "dtypes": ["float32"], "samples": ["gpu"]}),
        ("starts", 30, {"starts": 2}),
        ("conformance", 110, {"programs": ["engines_test"]}),
    ],
    # Compares speeds with compiled PyTorch. max-autotune takes too long for this preset.
    "compiled": [
        ("bench", 20, {"networks": ALL, "dtypes": ["bfloat16"], "samples": ["gpu"]}),
        ("conformance", 40, {"programs": ["conformance_test"], "filter": "Float32/*:BFloat16/*"}),
        ("epochs", 20, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"]}),
        ("peers-compile", 100, {"networks": ["resnet18", "lenet"], "dtypes": ["bfloat16"],
                                "compile_mode": "reduce-overhead"}),
        ("starts", 30, {"starts": 2}),
        ("bench", 25, {"networks": ALL, "dtypes": ["float32"], "samples": ["gpu"]}),
    ],
    # Is all of it right, and do our own kernels touch wrong memory, or race?
    "third": [
        ("conformance", 60, {"programs": ["parity_test", "float16_test", "resident_test"]}),
        ("golden", 60, {"backends": ["gpu", "gpu-bfloat16", "gpu-float16"]}),
        ("sanitize", 60, {"tools": ["memcheck"], "filter": ":".join(OWN_KERNELS.values()), "kernels": "tandem"}),
        # racecheck itself fails in cuDNN's kernels for 16 bits. initcheck sees no writes of kernels that it leaves out.
        ("sanitize", 60, {"tools": ["racecheck"], "filter": OWN_KERNELS["Float32"], "kernels": "tandem"}),
    ],
}
