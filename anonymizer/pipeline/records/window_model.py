"""What a stream does with the records of a window: exchangeable."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import Classes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records


class WindowModel(Protocol):
    """Forms classes, and says what is published of their quasi-identifiers."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        left: Callable[[], float],
        seed: int,
    ) -> Int32Array:
        """Return the class of each record, `SUPPRESSED` where it has none, shape (n,).

        Every class keeps the stream's promise; it is verified all the same. `measures` are their
        codes, shape (n, measures). `left` tells the share of the time to search that is left.
        """

    def generalized(
        self, records: Records, classes: Classes, *, seed: int
    ) -> list[Mapping[str, Any]]:
        """Return what is published of each class's quasi-identifiers, by name, as JSON."""

    def rejected(
        self,
        records: Records,
        class_of: Int32Array,
        told: Sequence[Mapping[str, Any]],
        *,
        seed: int,
    ) -> Collection[int]:
        """Return the classes of which is told what is not true of every member.

        By code that shares nothing with what tells: it is the last look before they leave.
        """

    def extra_fields(
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
