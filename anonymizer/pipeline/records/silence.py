"""Silent sources: when a source stops, a window loses the attributes of that source only.

If almost nobody has a value of an attribute, hardly any class can have d values of it. The
attributes of a source that too few vehicles of a window have heard from are therefore withheld:
they are missing from every record, and the promise is kept on the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.partial_promises import promise_about
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.records.declaration import Stream

_SILENT_SHARE = 0.05
"""Of the vehicles of a window: of twenty classes one would still have values of the source."""


@dataclass(frozen=True, eq=False, repr=False)
class Heard:
    """What enough vehicles of a window reported."""

    stream: Stream
    silent: tuple[int, ...]
    qis: tuple[int, ...]
    sensitive: tuple[int, ...]

    @property
    def lasting(self) -> bool:
        """Whether any attribute that lasts was heard; if not, nothing of it is published."""
        schema = self.schema
        return any(a.name in self.stream.lasting for a in (*schema.qis, *schema.sensitive))

    @cached_property
    def schema(self) -> Schema:
        """The attributes that the promise is kept on."""
        schema, place = self.stream.schema, {j: at for at, j in enumerate(self.qis)}
        sources = (tuple(place[j] for j in source if j in place) for source in schema.sources)
        return Schema(
            qis=tuple(schema.qis[j] for j in self.qis),
            sensitive=tuple(schema.sensitive[j] for j in self.sensitive),
            sources=tuple(source for source in sources if source),
        )

    @cached_property
    def promise(self) -> Promise:
        """The promise on these attributes."""
        heard = (*self.schema.qis, *self.schema.sensitive)
        return promise_about(self.stream.promise, {attribute.name for attribute in heard})

    @property
    def bands(self) -> dict[str, tuple[float, ...]]:
        """The edges of the bands of each sensitive attribute that the promise is about."""
        bands_of = {a.name: a.bands for a in self.stream.settings.attributes}
        return {a.name: bands_of[a.name] for a in self.schema.sensitive}

    def withheld(self, cells: Int32Array) -> Int32Array:
        """Return cells in which the attributes of the silent sources are missing."""
        attributes = self.stream.attributes
        cells = cells.copy()
        for source in self.silent:
            for column in self.stream.columns_of[source]:
                cells[:, column] = attributes[column].missing
        return cells

    def only(self, records: Records) -> Records:
        """Return the records with the attributes of `schema`."""
        return Records(
            np.ascontiguousarray(records.qi[:, list(self.qis)]),
            np.ascontiguousarray(records.sensitive[:, list(self.sensitive)]),
            records.person,
        )


def heard_in(stream: Stream, reported: BoolArray) -> Heard:
    """Return what was heard of the sources in a window.

    `reported`: whether each source reported a part of each record, shape (n, sources).
    """
    return heard_of(stream, silent_in(stream, len(reported), reported.sum(axis=0)))


def silent_in(stream: Stream, n: int, n_reported: IntArray) -> tuple[int, ...]:
    """Return the sources that are silent in a window.

    Notes
    -----
    A source is silent if fewer vehicles than k, or than 5 % of them, have a part of
    it. Only where d values are promised, or usual in the model. If no quasi-identifier would be
    left, no source is.
    """
    settings = stream.settings
    if n < stream.promise.k or (stream.promise.d == 1 and MODELS[settings.model].d == 1):
        return ()
    least = max(stream.promise.k, _SILENT_SHARE * n)
    silent = tuple(np.flatnonzero(n_reported < least).tolist())
    return silent if heard_of(stream, silent).qis else ()


def heard_of(stream: Stream, silent: Sequence[int]) -> Heard:
    """Return what was heard if these sources are silent."""
    n_qis, n_sensitive = len(stream.schema.qis), len(stream.schema.sensitive)
    gone = {column for source in silent for column in stream.columns_of[source]}
    qis = tuple(j for j in range(n_qis) if j not in gone)
    sensitive = tuple(j for j in range(n_sensitive) if n_qis + j not in gone)
    return Heard(stream, tuple(silent), qis, sensitive)
