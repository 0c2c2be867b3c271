"""A release of positions as the other side of a release of records of the same vehicles.

The adversary knows of each victim the true place at one moment, and in which cells of a map each
value of an attribute is seen. So a region tells of the values that its members can have, and a
class, by its values, of the cells in which its members can be. `joint_releases` intersects the two.
"""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.joint_releases import Side
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute

PLACE = "place"
"""The cell in which a victim is at the end."""


def seen_in(codes: Int32Array, cells: BoolArray, n_codes: int) -> BoolArray:
    """Return in which cells each value is seen, shape (codes, cells).

    Parameters
    ----------
    codes, cells
        Value of each record, negative for none, and the cells in which its vehicle was meanwhile,
        shapes (records,) and (records, cells).
    """
    found = np.zeros((n_codes, cells.shape[1]), np.bool_)
    for code, row in zip(codes.tolist(), cells, strict=True):
        if 0 <= code < n_codes:
            found[code] |= row
    return found


def side_of_positions(
    *,
    regions: Sequence[IntArray],
    cells: BoolArray,
    known: Int32Array,
    last_cell: Int32Array,
    attributes: Sequence[tuple[Attribute, BoolArray, Int32Array]],
    n_nodes: int,
) -> Side:
    """Return what groups tell of victims: first the known place, then `PLACE`, then values.

    Parameters
    ----------
    regions
        Nodes of the region of each group at the moment that the adversary knows of.
    cells
        Cells in which each group is in the whole window, shape (groups, cells).
    known, last_cell
        Node of each victim at that moment, and its cell at the end, shape (victims,).
    attributes
        Attributes that the records tell, the cells in which each value is seen (see `seen_in`), and
        the victims' values.
    """
    n_cells = cells.shape[1]
    nodes = Attribute("known place", np.arange(float(n_nodes)))
    places = Attribute(PLACE, np.arange(float(n_cells)))
    allowed = [cells @ seen.T for _, seen, _ in attributes]
    return Side(
        [nodes, places, *(attribute for attribute, _, _ in attributes)],
        [
            ReleasedLabels.of([[(v, v) for v in sorted(region.tolist())] for region in regions]),
            *(_labels(each) for each in (cells, *allowed)),
        ],
        np.stack([known, last_cell, *(codes for *_, codes in attributes)], axis=1).astype(np.int32),
        range(1, 2 + len(attributes)),
    )


def _labels(allowed: BoolArray) -> ReleasedLabels:
    """Return labels of classes from the codes that each allows, shape (classes, codes)."""
    return ReleasedLabels.of([[(c, c) for c in np.flatnonzero(row).tolist()] for row in allowed])
