"""Readers of a release who follow nobody: adversaries beside those of the audit, and weaker."""

from collections.abc import Callable

import numpy as np

from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.algorithms.releases.pieces import PieceRegions, read_pieces, read_regions
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import Readings
from anonymizer.audit.mathematics.lives import Lives, published_lives, rounded_lives
from anonymizer.audit.stretches import Stretch
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork

WITH_RELEASE = ("regions", "pieces", "followed")
"""Those who know the release and do not look back."""


def weak_readings(case: Case, *, nodes_per_cell: float = 6.0) -> Readings:
    """Return what each of them reads: positions without names (`raw`), regions, and their pieces.

    `nodes_per_cell`: nodes in a cell of the raw positions, on average; by default as in the
    smallest regions of the gateway.
    """
    cell_of = _cells(case.network, nodes_per_cell)

    def read(regions: PieceRegions) -> Callable[[Stretch], Lives]:
        return lambda stretch: published_lives(
            case.observed, case.class_of, regions, steps_s=stretch.steps_s, follow=False
        )

    readings = {
        "raw": lambda stretch: rounded_lives(stretch.place, cell_of),
        "regions": read(read_regions(case.observed)),
    }
    if case.piece_of is None:
        return readings
    return readings | {"pieces": read(read_pieces(case.observed, case.class_of, case.piece_of))}


def _cells(network: RoadNetwork, nodes_per_cell: float) -> IntArray:
    """Return the cell of each node in a square grid; without coordinates each is one of its own."""
    if not network.has_coordinates:
        return np.arange(network.n_nodes)
    x_m, y_m = tangent_plane(network)
    area = max(float(np.ptp(x_m)), 1.0) * max(float(np.ptp(y_m)), 1.0)
    side_m = float(np.sqrt(area * nodes_per_cell / network.n_nodes))
    column, row = np.floor(x_m / side_m), np.floor(y_m / side_m)
    cells = np.unique(np.stack((column, row)), axis=1, return_inverse=True)[1]
    return cells.astype(np.int64)
