"""Made tables in the shape of the two that the paper uses: skewed, correlated, full of repeats."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import NO_CODE, Attribute, Records, Schema

ADULT_ROWS = 32_561
CENSUS_ROWS = 2_458_285

_N_PROFILES = 64
_KEPT = 0.7
"""Share of the values that a record has from its profile, the rest are its own."""


@dataclass(frozen=True, slots=True)
class _Column:
    """An attribute to make: code v is about (v + 1) ** -skew times as frequent as code 0."""

    name: str
    size: int
    skew: float
    numeric_from: int | None = None
    missing: bool = False

    def attribute(self, *, markers_are_values: bool) -> Attribute:
        position = np.arange(self.size, dtype=np.float64)
        if self.numeric_from is not None:
            return Attribute(self.name, position + self.numeric_from)
        label = [f"{self.name} {v + 1}" for v in range(self.size)]
        marked = self.missing and not markers_are_values
        if self.missing:
            label[-1] = "?"
        return Attribute(self.name, position, tuple(label), self.size - 1 if marked else NO_CODE)

    @property
    def weights(self) -> FloatArray:
        weight = (1.0 + np.arange(self.size)) ** -self.skew
        return np.asarray(weight / weight.sum())


_ADULT = (
    _Column("age", 74, 0.3, numeric_from=17),
    _Column("workclass", 9, 1.6, missing=True),
    _Column("marital-status", 7, 1.2),
    _Column("occupation", 15, 0.5, missing=True),
    _Column("relationship", 6, 0.9),
    _Column("native-country", 42, 2.2, missing=True),
    _Column("race", 5, 2.0),
)
_CENSUS = (
    _Column("dAge", 8, 0.2),
    _Column("dAncstry1", 12, 0.8),
    _Column("dAncstry2", 13, 2.0),
    _Column("iClass", 10, 1.2),
    _Column("dDepart", 6, 0.5),
    _Column("dHispanic", 10, 2.5),
    _Column("dPoverty", 3, 0.5),
)


def adult_like(
    n: int = ADULT_ROWS, *, seed: int, markers_are_values: bool = False
) -> tuple[Records, Schema]:
    """Return a made table of six quasi-identifiers of two sources, one of them numeric."""
    return _made(_ADULT, n, seed, markers_are_values=markers_are_values)


def census_like(n: int = CENSUS_ROWS, *, seed: int) -> tuple[Records, Schema]:
    """Return a made table of six small categories of two sources: few tuples, many repeats."""
    return _made(_CENSUS, n, seed, markers_are_values=True)


def _made(
    columns: Sequence[_Column], n: int, seed: int, *, markers_are_values: bool
) -> tuple[Records, Schema]:
    """Return records of which each has most of its values from one of a few profiles."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / (1.0 + np.arange(_N_PROFILES))
    profile = rng.choice(_N_PROFILES, n, p=weight / weight.sum())
    cells: Int32Array = np.empty((n, len(columns)), np.int32)
    for j, column in enumerate(columns):
        typical = rng.choice(column.size, _N_PROFILES, p=column.weights)
        own = rng.choice(column.size, n, p=column.weights)
        cells[:, j] = np.where(rng.random(n) < _KEPT, typical[profile], own)
    attributes = [c.attribute(markers_are_values=markers_are_values) for c in columns]
    records = Records(
        qi=np.ascontiguousarray(cells[:, :-1]),
        sensitive=np.ascontiguousarray(cells[:, -1:]),
        person=np.arange(n, dtype=np.int32),
    )
    return records, Schema(tuple(attributes[:-1]), tuple(attributes[-1:]), ((0, 1, 2), (3, 4, 5)))
