"""What a stream does with the records of a window: exchangeable."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import Classes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.tables import Records


class WindowModel(Protocol):
    """Forms classes, and says what is published of their quasi-identifiers."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        keep_going: Callable[[], bool],
        seed: int,
    ) -> Int32Array:
        """Return the class of each record, `SUPPRESSED` where it has none, shape (n,).

        Every class keeps the stream's promise; it is verified all the same. `measures` are their
        codes, shape (n, measures). `keep_going` says whether there is time left to search.
        """

    def told(self, records: Records, classes: Classes, *, seed: int) -> list[Mapping[str, Any]]:
        """Return what is published of each class's quasi-identifiers, by name, as JSON."""

    def shown(self, records: Records, classes: Classes, *, seed: int) -> Int32Array:  # noqa: ARG002  for those who override it
        """Return what the numbers of classes go by: codes of each record, shape (n, any)."""
        return records.qi

    def refused(self, records: Records, class_of: Int32Array, *, seed: int) -> Sequence[int]:  # noqa: ARG002  likewise
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
