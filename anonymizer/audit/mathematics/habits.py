"""Habits: what two weeks of somebody's days say about the days after them.

People are told apart by histograms of where they are [1]_; whoever trains a model to link
trajectories to users compares it with these [2]_. Here a histogram is an intensity: how often a
person is on the air at each node, at each time of a working day or of the weekend. It mixes
histograms of narrow times, of wide ones, of any time, and of everybody. Their weights are those
that explain days that were held out.

Whoever knows where everybody usually is knows how likely each of them is to be the device at a
node. A region says how many devices are where, without names; so each person is in a group with the
probability that one of its devices is theirs.

References
----------
.. [1] F. Naini, J. Unnikrishnan, P. Thiran, M. Vetterli, "Where you are is who you are: user
   identification by matching statistics", IEEE Transactions on Information Forensics and Security
   11(2), 2016.
.. [2] Q. Gao, F. Zhou, K. Zhang, G. Trajcevski, X. Luo, F. Zhang, "Identifying human mobility via
   trajectory embeddings", IJCAI 2017.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.region_density import nodes_in, shares
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.discreet import discreet

DAY_S = 86_400.0
_LENGTHS_S = (300.0, 1800.0)
"""Times of a day are told apart in both: some people are on time, and others are not."""
SLOT_S = min(_LENGTHS_S)
_NEIGHBOURS = ((-1, 0.25), (0, 0.5), (1, 0.25))
"""Shares of a report that count for the time before its own, for its own, and for the next one."""
_CROWD = (0.8, 0.1, 0.1)
"""Shares of the half hour, of all hours and of an even spread in what everybody does."""
_ROUNDS = 30
_HIDDEN = 0.05
"""Share of the devices that nothing is published about."""


class Habits(NamedTuple):
    """How often targets, and all devices, are on the air where and when, in reports a slot.

    A day has slots of `SLOT_S`; those of a working day come first, and then those of a day of the
    weekend (UTC).
    """

    own: tuple[csr_array, ...]
    """By target and time of each of `_LENGTHS_S`, and node, shape (targets * times, nodes) each;
    and by target and node at any time, shape (targets, nodes)."""
    everybody: tuple[csr_array, ...]
    """Sums of the same over all devices, shapes (times, nodes) and (1, nodes)."""
    crowd: FloatArray
    """Of a mean device, positive, by half hour, shape (half hours, nodes)."""
    n_devices: int
    """Number of all devices."""
    weight: FloatArray
    """What each of `own`, and at last the crowd, is multiplied by, shape (4,)."""

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return int(self.own[-1].shape[0])

    def own_at(self, target: IntArray, slot: int) -> csr_array:
        """Return what is known of some targets alone in a slot, shape (targets, nodes)."""
        found: csr_array = self.weight[len(_LENGTHS_S)] * self.own[-1][target]
        for weight, each in zip(self.weight.tolist(), _at(self.own, slot, target), strict=False):
            found = found + weight * each
        return found

    def crowd_at(self, slot: int) -> FloatArray:
        """Return what is known of everybody in a slot, of a mean device, shape (nodes,)."""
        crowd: FloatArray = self.weight[-1] * self.crowd[_of_length(slot, _LENGTHS_S[-1])]
        return crowd

    def of_all(self, slot: int) -> FloatArray:
        """Return the sum of the intensities of all devices, positive, shape (nodes,)."""
        parts = [*_at(self.everybody, slot, np.zeros(1, np.int64)), self.everybody[-1]]
        found = self.n_devices * self.crowd_at(slot)
        for w, each in zip(self.weight.tolist(), parts, strict=False):
            found += w * each.toarray()[0]
        return found


def _at(tables: tuple[csr_array, ...], slot: int, row: IntArray) -> list[csr_array]:
    """Return the rows of each table by time that are those of a slot."""
    return [
        table[row * _n_times(length_s) + _of_length(slot, length_s)]
        for table, length_s in zip(tables, _LENGTHS_S, strict=False)
    ]


def _n_times(length_s: float) -> int:
    """Return how many times of a length there are in a working day and a day of the weekend."""
    return 2 * round(DAY_S / length_s)


def _of_length(slot: int, length_s: float) -> int:
    """Return the longer time in which a slot is."""
    return slot * round(SLOT_S) // round(length_s)


def day_number(ts: FloatArray) -> IntArray:
    """Return the day (UTC) of each moment, since 1970."""
    found: IntArray = np.floor(ts / DAY_S).astype(np.int64)
    return found


def is_weekend(day: IntArray) -> IntArray:
    """Return 1 for days that are a Saturday or Sunday, else 0; 1970 began with a Thursday."""
    found: IntArray = ((day + 3) % 7 >= 5).astype(np.int64)
    return found


def slot_of(ts: FloatArray, length_s: float = SLOT_S) -> IntArray:
    """Return the slot of each moment, or the time of another length, from 0."""
    day = day_number(ts)
    within = np.floor((ts - day * DAY_S) / length_s).astype(np.int64)
    found: IntArray = is_weekend(day) * (_n_times(length_s) // 2) + within
    return found


@discreet
class Days(NamedTuple):
    """Where devices were on some days: device, unix seconds and node of each report, shape (n,)."""

    device: IntArray
    ts: FloatArray
    node: Int32Array

    def only(self, rows: BoolArray) -> "Days":
        """Return some of the reports."""
        return Days(self.device[rows], self.ts[rows], self.node[rows])


def learn_habits(days: Days, targets: IntArray, *, n_devices: int, n_nodes: int) -> Habits:
    """Learn the habits of some devices from where all were on at least one day.

    Parameters
    ----------
    targets
        Distinct devices, rising.

    Notes
    -----
    The weights are those of the most probable mixture of Poisson processes for the last third of
    the days, given the others; of one day alone, they are equal. O(n).
    """
    day = day_number(days.ts)
    every = np.unique(day)
    n_held = len(every) // 3 if len(every) > 2 else len(every) - 1
    weight = np.full(len(_LENGTHS_S) + 2, 1.0 / (len(_LENGTHS_S) + 2))
    if n_held:
        held = np.isin(day, every[len(every) - n_held :])
        before = _count(days.only(~held), targets, n_devices, n_nodes, weight)
        weight = _weights(before, _of_targets(days.only(held), targets))
    return _count(days, targets, n_devices, n_nodes, weight)


def _of_targets(days: Days, targets: IntArray) -> Days:
    """Return the reports of targets, whose numbers are then those of `targets`."""
    row = np.searchsorted(targets, days.device)
    return days._replace(device=row).only(targets[np.minimum(row, len(targets) - 1)] == days.device)


def _count(
    days: Days, targets: IntArray, n_devices: int, n_nodes: int, weight: FloatArray
) -> Habits:
    every = np.unique(day_number(days.ts))
    n_days = np.maximum(np.bincount(is_weekend(every), minlength=2), 1)
    own = _tables(_of_targets(days, targets), len(targets), n_nodes, n_days, len(every))
    alike = days._replace(device=np.zeros(len(days.ts), np.int64))
    everybody = _tables(alike, 1, n_nodes, n_days, len(every))
    usual, half_hours = everybody[-1].toarray()[0], everybody[-2].toarray()
    timely, always, even = _CROWD
    crowd = timely * half_hours + always * usual + even * usual.sum() / n_nodes
    return Habits(own, everybody, crowd / n_devices, n_devices, weight)


def _tables(
    days: Days, n_rows: int, n_nodes: int, n_days: IntArray, n_all: int
) -> tuple[csr_array, ...]:
    """Return reports a slot by row, time and node, for times of each length and for any time."""
    kind = is_weekend(day_number(days.ts))
    found = []
    for length_s in _LENGTHS_S:
        n_of_day = _n_times(length_s) // 2
        time = slot_of(days.ts, length_s) - kind * n_of_day
        row = [
            days.device * 2 * n_of_day + kind * n_of_day + (time + step) % n_of_day
            for step, _ in _NEIGHBOURS
        ]
        share = [part * SLOT_S / length_s / n_days[kind] for _, part in _NEIGHBOURS]
        at = np.concatenate(row), np.tile(days.node, len(row))
        shape = (n_rows * 2 * n_of_day, n_nodes)
        found.append(csr_array((np.concatenate(share), at), shape=shape))
    each = np.full(len(days.ts), SLOT_S / DAY_S / max(n_all, 1))
    return (*found, csr_array((each, (days.device, days.node)), shape=(n_rows, n_nodes)))


def _weights(counted: Habits, held: Days) -> FloatArray:
    """Return the weights that make reports of other days most probable."""
    half_hour = slot_of(held.ts, _LENGTHS_S[-1])
    at = np.stack([
        *(
            table[held.device * _n_times(length_s) + slot_of(held.ts, length_s), held.node]
            for table, length_s in zip(counted.own, _LENGTHS_S, strict=False)
        ),
        counted.own[-1][held.device, held.node],
        counted.crowd[half_hour, held.node],
    ])  # fmt: skip
    n_days = np.bincount(is_weekend(np.unique(day_number(held.ts))), minlength=2)
    n_slots = DAY_S / SLOT_S
    expected = []
    for table, length_s in zip(counted.own, _LENGTHS_S, strict=False):
        by_kind = np.asarray(table.sum(axis=1)).reshape(-1, 2, _n_times(length_s) // 2)
        expected.append(float((by_kind.sum(axis=(0, 2)) * n_days).sum()) * length_s / SLOT_S)
    expected.append(float(counted.own[-1].sum()) * n_slots * int(n_days.sum()))
    crowd = counted.crowd.sum(axis=1).reshape(2, -1).mean(axis=1) * n_slots
    expected.append(counted.n_targets * float((crowd * n_days).sum()))
    weight = counted.weight
    for _ in range(_ROUNDS):
        share = weight[:, None] * at
        share /= np.maximum(share.sum(axis=0), 1e-300)
        weight = share.sum(axis=1) / np.maximum(expected, 1e-300)
    # Nothing is impossible, however regular the days were.
    return np.maximum(weight, 1e-3)


class Said(NamedTuple):
    """Regions that are published at some times, each by a number of devices."""

    ts: FloatArray
    region_of: IntArray
    n_devices: FloatArray
    """`ts`, `region_of`, `n_devices`: of each record, shape (records,)."""
    regions: PieceRegions
    """What the regions are made of."""


def expected_devices(said: Said, rows: IntArray, density: FloatArray) -> csr_array:
    """Return the expected devices of some records at each node, shape (rows, nodes).

    Each piece of a region has a device; the others are spread over it as `density`, which is
    positive, shape (nodes,).
    """
    regions, row = said.regions, said.region_of[rows]
    n_pieces = np.diff(regions.first_piece_of)[row]
    piece = _ranges(regions.first_piece_of[row], n_pieces)
    n_nodes = np.diff(regions.first_node_of)[piece]
    node = regions.node[_ranges(regions.first_node_of[piece], n_nodes)]
    some = PieceRegions(starts_of(n_pieces), starts_of(n_nodes), node)
    n = said.n_devices[rows]
    of_node = np.repeat(np.arange(len(rows)), nodes_in(some))
    share = shares(some, n, density) * n[of_node]
    return csr_array((share, (of_node, node)), shape=(len(rows), len(density)))


def _ranges(first: IntArray, sizes: IntArray) -> IntArray:
    """Return the numbers of some ranges, one after the other."""
    starts = starts_of(sizes)
    found: IntArray = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
    return found


def expected_in(habits: Habits, said: Said) -> FloatArray:
    """Return how many of the devices of each record each target is expected to be.

    Returns
    -------
    expected
        Probability, if small, that the target is one of them, shape (targets, records).

    Notes
    -----
    O(nodes of the regions * targets that are ever there).
    """
    found = np.zeros((habits.n_targets, len(said.ts)))
    slot, targets = slot_of(said.ts), np.arange(habits.n_targets)
    for each in np.unique(slot).tolist():
        rows = np.flatnonzero(slot == each)
        everybody = habits.of_all(each)
        odds = expected_devices(said, rows, everybody) / everybody[None, :]
        own = (habits.own_at(targets, each) @ csr_array(odds).T).toarray()
        found[:, rows] = own + odds @ habits.crowd_at(each)
    return found


def where(habits: Habits, said: Said, rows: IntArray, target: IntArray, ts: float) -> FloatArray:
    """Return how likely some targets are at each node at a moment, shape (targets, nodes).

    Parameters
    ----------
    rows
        The records that hold at that moment; none: by habits alone.
    """
    slot = int(slot_of(np.array([ts]))[0])
    belief = habits.own_at(target, slot).toarray() + habits.crowd_at(slot)
    if len(rows):
        everybody = habits.of_all(slot)
        n = said.n_devices[rows].sum()
        devices = np.asarray(expected_devices(said, rows, everybody).sum(axis=0)).ravel()
        usual = everybody / everybody.sum() * n
        belief = belief * ((1.0 - _HIDDEN) * devices / usual + _HIDDEN)
    shares_of: FloatArray = belief / belief.sum(axis=1, keepdims=True)
    return shares_of
