"""A program as a user writes it."""

from typing import Any

import numpy

import tandem
import tandem.aio

SPEC: "dict[str, Any]" = {
    "dataset": {"synthetic": {"shape": [1, 8, 8], "classes": 4, "train_samples": 64, "validation_samples": 16}},
    "model": {"input": {"shape": [1, 8, 8]}, "layers": [{"dense": {"units": 4}}]},
    "training": {"loss": "softmax_cross_entropy", "optimizer": {"sgd": {"learning_rate": 0.1}}, "global_batch_size": 16,
                 "metrics": ["accuracy"]},
}

client = tandem.connect()
job = client.submit(SPEC, set={"training.epochs": 2})
for epoch in job.follow():
    print(epoch.number, epoch.validation["accuracy"])
weights = job.model()
shapes: "dict[str, tuple[int, ...]]" = {name: array.shape for name, array in weights.items()}
logits = job.predict(numpy.zeros((3, 1, 8, 8), "uint8"))
assert logits.shape == (3, 4), logits.shape
try:
    client.submit(SPEC, set={"training.epoch": 2})
except tandem.JobFileError as error:
    print([violation.field for violation in error.violations], error.violations[0].mend)
