"""How a window's records become equivalence classes, by the names in the settings."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.cells_model import DecisionTree
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import Clustering
from anonymizer.pipeline.records.window_model import (
    WindowModel,
    cost_of,
    generalized_values,
    uncovered_classes,
)

RECORDS_PER_S = 50_000
"""Records for which a second of search pays; larger windows are swept. The first cuts of so many
take half of it, and before them a search has nothing better: see docs/decisions.md."""


@dataclass(frozen=True, slots=True)
class MultiSource(WindowModel):
    """(k,d)-anonymity and (k,l,d)-diversity."""

    stream: Stream

    def classes(
        self,
        records: Records,
        measures: Int32Array,  # noqa: ARG002  it does not look at them
        *,
        left: Callable[[], float],
        seed: int,
    ) -> Int32Array:
        """Return the class of each record; see `WindowModel`."""
        schema = self.stream.schema
        problem = make_problem(records, schema, self.stream.promise, cost=cost_of(self.stream))
        order = hilbert_order(records.qi, [qi.size for qi in schema.qis])
        if self._searches(records.n):
            return best(problem, order, keep_going=lambda: left() > 0, left=left, seed=seed)
        return sweep(problem, order)

    def generalized(
        self,
        records: Records,
        classes: Classes,
        *,
        seed: int,  # noqa: ARG002  nothing is random
    ) -> list[Mapping[str, Any]]:
        """Return what is published of each class; see `WindowModel`."""
        return generalized_values(self.stream, records, classes)

    def rejected(
        self,
        records: Records,
        class_of: Int32Array,
        values: Sequence[Mapping[str, Any]],
        *,
        seed: int,  # noqa: ARG002  nothing is random
    ) -> set[int]:
        """Return the classes whose generalized values do not cover every member."""
        return uncovered_classes(self.stream, records, class_of, values)

    def _searches(self, n: int) -> bool:
        settings = self.stream.settings
        if settings.method == "auto":
            return n <= RECORDS_PER_S * settings.budget_s
        return settings.method == "best"


MODELS: dict[str, Callable[[Stream], WindowModel]] = {
    "kd": MultiSource,
    "kld": MultiSource,
    "kaca": Clustering,
    "cells": DecisionTree,
}
"""By their names in the settings."""


def seed_of(secret: bytes, stream: str, window: int) -> int:
    """Return the seed of a window: nobody can guess it, and it is the same at every attempt."""
    said = f"{stream}\0{window}".encode()
    return int.from_bytes(hashlib.blake2b(said, key=secret, digest_size=4).digest(), "little")
