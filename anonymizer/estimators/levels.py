"""Levels of generalization: the trees of one pruning path, from the finest to a root alone."""

from dataclasses import dataclass, field

import numpy as np

from anonymizer.algorithms.cells.description import widths
from anonymizer.algorithms.cells.growing import grow, pruning_path
from anonymizer.algorithms.cells.pruning import Cells, prune
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.problem import pose
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.estimators.data_frames import ColumnArray

_MOST = 24
"""Trees looked at: more are too near each other to make a difference."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """One tree's cells.

    Attributes
    ----------
    cells
        Of the records it was grown on.
    representative
        Positions, shape (classes, qis).
    losses
        Mean loss of each quasi-identifier over these records, 0 to 1, shape (qis,).
    """

    cells: Cells
    representative: FloatArray
    losses: FloatArray


@dataclass(slots=True, eq=False, repr=False)
class Levels:
    """The levels, each grown when it is asked for.

    Attributes
    ----------
    target, numeric
        What the model says of each record, and whether that is a number.
    """

    records: Records
    schema: Schema
    promise: Promise
    target: ColumnArray
    numeric: bool
    seed: int
    alphas: FloatArray = field(init=False)
    _grown: dict[int, Level] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        every = pruning_path(
            self.records,
            self.schema,
            self.target,
            min_leaf=self.promise.k,
            numeric=self.numeric,
            seed=self.seed,
        )
        # Near the root a step changes much, near the leaves little.
        from_last = np.unique(np.geomspace(1, len(every), _MOST).round().astype(np.int64))
        self.alphas = every[len(every) - from_last[::-1]]

    def __len__(self) -> int:
        return len(self.alphas)

    def __getitem__(self, level: int) -> Level:
        if level not in self._grown:
            self._grown[level] = self._grow(level)
        return self._grown[level]

    def _grow(self, level: int) -> Level:
        records, schema = self.records, self.schema
        grown = grow(
            records,
            schema,
            self.target,
            min_leaf=self.promise.k,
            numeric=self.numeric,
            seed=self.seed,
            divide=False,
            ccp_alpha=float(self.alphas[level]),
        )
        cells = prune(grown, pose(records, schema, self.promise))
        classes = classes_of(cells.class_of)
        share = np.diff(classes.first_of) / max(len(classes.member), 1)
        return Level(
            cells=cells,
            representative=representatives(records.qi, classes, schema),
            losses=share @ widths(records.qi, classes, schema),
        )
