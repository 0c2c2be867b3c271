"""The last look at generalized values: from the records and what is told of classes alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonymizer.algorithms.records.generalization import MISSING
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute


def uncovered(
    codes: Int32Array,
    class_of: Int32Array,
    told: Sequence[Mapping[str, Any]],
    qis: Sequence[Attribute],
) -> set[int]:
    """Return the classes whose generalized values do not cover every member.

    Parameters
    ----------
    codes
        Code of each record in each quasi-identifier, shape (n, qis).
    class_of
        Of each record, below 0 for none, shape (n,).
    told
        Of each class the generalized values, by name, as JSON.

    Notes
    -----
    O(n log n), and a value is looked at once for each different code in its class.
    """
    some = class_of >= 0
    refused: set[int] = set()
    for j, qi in enumerate(qis):
        pairs = np.unique(np.column_stack([class_of[some], codes[some, j]]), axis=0)
        refused.update(c for c, code in pairs.tolist() if not covers(told[c][qi.name], code, qi))
    return refused


def covers(value: Mapping[str, Any], code: int, qi: Attribute) -> bool:
    """Return whether a generalized value covers the value behind a code."""
    categories = value.get("values", ())
    if code == qi.missing:
        marker = MISSING if qi.numeric else qi.label[code]
        return bool(value.get("missing")) or marker in categories
    if qi.numeric:
        lo, hi = value.get("range", (1, 0))
        return bool(lo <= qi.position[code] <= hi)
    if qi.hierarchy is not None and "label" in value:
        nodes = qi.hierarchy.ancestor[code].tolist()
        return value["label"] in [qi.hierarchy.label[node] for node in nodes]
    return qi.label[code] in categories
