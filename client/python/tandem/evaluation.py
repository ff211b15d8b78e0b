"""The result of an evaluation."""

import dataclasses
from typing import Any, Dict, List, Optional

import numpy

from tandem.v1 import evaluation_pb2


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The loss and metrics of a model over a data set."""

    # "loss" and the metrics by their names.
    measures: Dict[str, float]
    # The number of samples.
    samples: int
    # The classes' names and measures; without any if no metric of classes was asked for.
    classification: evaluation_pb2.ClassificationReport
    # Messages of the daemon about samples that it matched to the model in an unexpected way.
    notices: List[str]

    @property
    def confusion(self) -> "Optional[numpy.ndarray[Any, Any]]":
        """How many samples of a class (row) were given a class (column). None without the metric "confusion_matrix"."""
        matrix = self.classification.confusion_matrix
        return numpy.array(matrix.counts).reshape(matrix.classes, matrix.classes) if matrix.classes else None
