"""Window models by name: (k,d)-anonymity and (k,l,d)-diversity, KACA, and decision trees."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonymizer.algorithms.records.classes import Classes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.cells_model import DecisionTree
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import Clustering
from anonymizer.pipeline.records.window_model import (
    Asked,
    WindowModel,
    form_classes,
    generalized_values,
    uncovered_classes,
)


@dataclass(frozen=True, slots=True)
class MultiSource(WindowModel):
    """(k,d)-anonymity and (k,l,d)-diversity."""

    stream: Stream

    def classes(
        self,
        records: Records,
        measures: Int32Array,  # noqa: ARG002  classes do not depend on them
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        """Return the class of each record; see `WindowModel`."""
        return form_classes(self.stream, records, time_left=time_left, seed=seed, asked=asked)

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


WINDOW_MODELS: Mapping[str, Callable[[Stream], WindowModel]] = {
    "kd": MultiSource,
    "kld": MultiSource,
    "kaca": Clustering,
    "cells": DecisionTree,
}
"""By the name of the model in the settings."""


def seed_of(secret: bytes, stream: str, window: int) -> int:
    """Return the seed of a window: secret, and the same at every attempt."""
    name = f"{stream}\0{window}".encode()
    return int.from_bytes(hashlib.blake2b(name, key=secret, digest_size=4).digest(), "little")
