"""Cells of a decision tree over the records of a window, and the representative of each."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.cells.representatives import is_missing, representatives
from anonymizer.algorithms.records.classes import SUPPRESSED, Classes, classes_of
from anonymizer.algorithms.records.generalized_values import whole
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.pipeline.records.window_model import Asked, WindowModel


@dataclass(frozen=True, slots=True)
class DecisionTree(WindowModel):
    """Cells of a decision tree, published by representatives or by generalized values.

    A representative is the median or the most frequent value of the vehicles of a class, for each
    quasi-identifier separately.

    The cells follow from the tree, but what is published of them, and their numbers, follow from
    their members alone. A border is never published.
    """

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        """Return the class of each record; see `WindowModel`."""
        class_of = WindowModel.classes(
            self, records, measures, time_left=time_left, seed=seed, asked=asked
        )
        # Of two cells with the same values, the one that comes first is random: in the tree it is
        # the one with the smaller values.
        n_classes = int(class_of.max(initial=SUPPRESSED)) + 1
        number = np.random.default_rng(seed).permutation(n_classes).astype(np.int32)
        return np.append(number, np.int32(SUPPRESSED))[class_of]

    def target(self, records: Records, measures: Int32Array, schema: Schema) -> ModelTarget | None:
        """Return the target of the tree."""
        codes = np.column_stack([records.sensitive, measures])
        each = (*schema.sensitive, *self.stream.measures)
        return target_of(each, self.stream.settings.learned, codes)

    def generalized(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        """Return the published values of each class; see `WindowModel`."""
        if not self.stream.settings.by_representatives:
            return WindowModel.generalized(self, records, classes)
        schema = self.stream.schema
        qis, chosen = schema.qis, representatives(records.qi, classes, schema).T
        columns = [_values(column, qi) for column, qi in zip(chosen, qis, strict=True)]
        return [
            {qi.name: {"value": column[c]} for qi, column in zip(qis, columns, strict=True)}
            for c in range(len(classes))
        ]

    def rejected(
        self, records: Records, class_of: Int32Array, values: Sequence[Mapping[str, Any]]
    ) -> Collection[int]:
        """Return the classes with a published value that is not true of their members."""
        qis = self.stream.schema.qis
        if not self.stream.settings.by_representatives:
            return WindowModel.rejected(self, records, class_of, values)
        each = classes_of(class_of)
        found: set[int] = set()
        for j, qi in enumerate(qis):
            column = [of[qi.name]["value"] for of in values]
            found.update(untrue(records.qi[:, j], each, column, qi))
        return found


def target_of(
    attributes: Sequence[Attribute], name: str | None, codes: Int32Array
) -> ModelTarget | None:
    """Return the target of the tree.

    `attributes`: the sensitive ones, then the measures; `codes`: theirs, shape (n, attributes).
    `name`: None for no target.

    Notes
    -----
    A missing number is replaced by the mean of the others; a missing category is a class of its
    own.
    """
    for attribute, code in zip(attributes, codes.T, strict=True):
        if attribute.name == name:
            return _target(attribute, code)
    return None


def _target(attribute: Attribute, code: Int32Array) -> ModelTarget | None:
    if not attribute.numeric:
        return ModelTarget(code)
    there = code != attribute.missing
    if not there.any():
        return None
    value = attribute.position[code]
    value[~there] = value[there].mean()
    return ModelTarget(value, is_numeric=True)


def untrue(
    code: Int32Array, classes: Classes, values: Sequence[str | float | None], qi: Attribute
) -> list[int]:
    """Return the classes whose value is neither a median nor a mode of their members.

    `code`: of each record, shape (n,); `values`: None is missing.

    Notes
    -----
    Independent verification: counts records, from the published values alone.
    """
    return [
        c
        for c, value in enumerate(values)
        if not (_is_median if qi.numeric else _is_mode)(code[classes[c]], value, qi)
    ]


def _is_median(code: Int32Array, value: str | float | None, qi: Attribute) -> bool:
    there = qi.position[code[code != qi.missing]]
    if value is None or isinstance(value, str):
        return value is None and 2 * len(there) < len(code)
    rounding = 1e-9 * max(abs(value), 1.0)
    n_below, n_above = (there < value - rounding).sum(), (there > value + rounding).sum()
    return bool(2 * len(there) >= len(code) and 2 * max(n_below, n_above) <= len(there))


def _is_mode(code: Int32Array, value: str | float | None, qi: Attribute) -> bool:
    times = np.bincount(code, minlength=qi.size)
    label = qi.label[qi.missing] if value is None else value
    return label in qi.label and bool(times[qi.label.index(str(label))] == times.max())


def _values(position: FloatArray, qi: Attribute) -> list[str | float | None]:
    """Return the values at positions, None for the missing marker."""
    missing = is_missing(position, qi).tolist()
    if qi.numeric:  # twelve digits: the mean of two values without rounding errors
        found: list[str | float] = [whole(float(f"{x:.15g}")) for x in position.tolist()]
    else:
        found = [qi.label[code] for code in np.searchsorted(qi.position, position).tolist()]
    return [None if none else value for none, value in zip(missing, found, strict=True)]
