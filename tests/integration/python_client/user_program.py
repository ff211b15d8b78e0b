"""A program as a user writes it."""

import asyncio
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
loss: float = job.evaluate(metrics=["accuracy"]).measures["loss"]
assert [each.number for each in job.fork(set={"training.epochs": 3}).follow()] == [3]
sweep = client.submit_sweep({"base": SPEC, "grid": [{"field": "training.epochs", "values": [1, 2]}]})
sweep.wait()
best = sweep.best()
assert best is not None and best.value is not None and best.job.model(best.artifact).keys() == weights.keys()


async def check_asyncio(name: str) -> None:
    async with tandem.aio.connect() as awaited:
        results = await (await awaited.sweep(name)).results()
        assert sorted(await results[0].job.model()) == sorted(weights)


asyncio.run(check_asyncio(sweep.name))
try:
    client.submit(SPEC, set={"training.epoch": 2})
except tandem.JobFileError as error:
    print([violation.field for violation in error.violations], error.violations[0].mend)
