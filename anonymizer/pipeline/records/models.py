"""How a window's records become equivalence classes, and how these are told: exchangeable."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.best import best
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalizing import Node, Range, Value, Values, generalize
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Cost, pose
from anonymizer.algorithms.records.sweeping import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.tables import Records
from anonymizer.pipeline.records.clustering import Clustering
from anonymizer.pipeline.records.streams import Stream

RECORDS_PER_S = 20_000
"""Records for which a second of search pays; larger windows are swept."""


class WindowModel(Protocol):
    """Forms classes, and says what is published of their quasi-identifiers."""

    def classes(self, records: Records, *, keep_going: Callable[[], bool], seed: int) -> Int32Array:
        """Return the class of each record, `SUPPRESSED` where it has none, shape (n,).

        Every class keeps the stream's promise; it is verified all the same. `keep_going` says
        whether there is time left to search.
        """

    def told(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        """Return what is published of each class's quasi-identifiers, by name, as JSON."""

    def refused(self, records: Records, class_of: Int32Array, *, seed: int) -> Sequence[int]:  # noqa: ARG002  for those who override it
        """Return the classes that must not be published, beside those that break the promise."""
        return ()

    def beside(
        self,
        records: Records,  # noqa: ARG002  likewise
        classes: Classes,
        totals: Sequence[Mapping[str, Total | None]],  # noqa: ARG002
        *,
        seed: int,  # noqa: ARG002
    ) -> Sequence[Mapping[str, Any]]:
        """Return what else the message of each class says, by name, as JSON.

        `totals` are those of each class's measures.
        """
        return [{}] * len(classes)


@dataclass(frozen=True, slots=True)
class MultiSource(WindowModel):
    """(k,d)-anonymity and (k,l,d)-diversity."""

    stream: Stream

    def classes(self, records: Records, *, keep_going: Callable[[], bool], seed: int) -> Int32Array:
        """Return the class of each record; see `WindowModel`."""
        schema = self.stream.schema
        problem = pose(records, schema, self.stream.promise, cost=self._cost)
        order = hilbert_order(records.qi, [qi.size for qi in schema.qis])
        if self._searches(records.n):
            return best(problem, order, keep_going=keep_going, seed=seed)
        return sweep(problem, order)

    def told(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        """Return what is published of each class; see `WindowModel`."""
        qis = self.stream.schema.qis
        general = generalize(records.qi, classes, self.stream.schema, self._cost)
        return [
            {qi.name: _json(general.value(c, j)) for j, qi in enumerate(qis)}
            for c in range(len(general))
        ]

    @property
    def _cost(self) -> Cost:
        return Cost[self.stream.settings.cost.upper()]

    def _searches(self, n: int) -> bool:
        settings = self.stream.settings
        if settings.method == "auto":
            return n <= RECORDS_PER_S * settings.budget_s
        return settings.method == "best"


MODELS: dict[str, Callable[[Stream], WindowModel]] = {
    "kd": MultiSource,
    "kld": MultiSource,
    "kaca": Clustering,
}
"""By their names in the settings."""


def seed_of(secret: bytes, stream: str, window: int) -> int:
    """Return the seed of a window: nobody can guess it, and it is the same at every attempt."""
    said = f"{stream}\0{window}".encode()
    return int.from_bytes(hashlib.blake2b(said, key=secret, digest_size=4).digest(), "little")


def whole(value: float) -> float | int:
    """Return a number as an integer where it is one: `30`, not `30.0`."""
    return int(value) if value.is_integer() else value


def _json(value: Value) -> dict[str, Any]:
    match value:
        case Range(lo, hi, missing):
            told: dict[str, Any] = {"range": [whole(lo), whole(hi)]}
        case Values(labels):
            return {"values": list(labels)}
        case Node(label, missing):
            told = {"label": label}
    return told | {"missing": True} if missing else told
