"""Whether the outputs keep their promises, computed from the raw input without our own code."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree

from anonymizer.domain.network import RoadNetwork

_SAME_DEG = 1e-4
"""About 10 metres: a number this close to a coordinate of the input counts as that coordinate."""
_CANDIDATES = 64
"""Roads whose middles are the nearest ones to a place; the nearest road is among them, or not."""
_DECIMAL = re.compile(r"-?\d+\.\d+")


class Truth(NamedTuple):
    """The true position of a device, as it reported it."""

    device: str
    ts: float
    lat: float
    lon: float


def leaks(texts: Iterable[str], truths: Sequence[Truth]) -> list[str]:
    """Return the texts that contain a coordinate or a name of the input, or name coordinates."""
    names = {truth.device for truth in truths} | {"lat", "lon"}
    coordinates = np.unique([(truth.lat, truth.lon) for truth in truths])

    def leaks_input(text: str) -> bool:
        numbers = np.array(_DECIMAL.findall(text), float)
        at = np.searchsorted(coordinates, numbers).clip(1, len(coordinates) - 1)
        near = np.minimum(abs(coordinates[at] - numbers), abs(coordinates[at - 1] - numbers))
        words = set(re.findall(r"[\w-]+", text))
        return bool((near < _SAME_DEG).any() or words & names)

    return [text for text in texts if leaks_input(text)]


def nearest_nodes(network: RoadNetwork, truths: Sequence[Truth]) -> list[Any]:
    """Return the name of the nearer end of the road nearest to each position, in a plane."""
    lines = network.lines()
    shrink = np.array([1.0, np.cos(np.radians(network.lat.mean()))])
    points = np.stack((lines.lat, lines.lon), axis=1) * shrink
    begins = np.ones(len(points), np.bool_)
    begins[lines.first_point_of[1:] - 1] = False
    at = np.flatnonzero(begins)
    a, step = points[at], points[at + 1] - points[at]
    road = np.repeat(np.arange(len(lines.tail)), np.diff(lines.first_point_of) - 1)
    length = np.hypot(*step.T)
    total = np.bincount(road, weights=length)
    before = np.cumsum(length) - length - (np.cumsum(total) - total)[road]
    middles = cKDTree(a + step / 2)
    nearest: list[Any] = []
    for truth in range(0, len(truths), 1000):
        p = np.array([(t.lat, t.lon) for t in truths[truth : truth + 1000]]) * shrink
        n_near = min(_CANDIDATES, len(a))
        distance, index = middles.query(p, k=n_near)
        far = np.asarray(distance, np.float64).reshape(len(p), n_near)
        near = np.asarray(index, np.int64).reshape(len(p), n_near)
        piece, share, gap = _nearest_piece(p, a, step, near)
        # Roads that are no candidates are farther than this; where that is not enough, all are.
        unsure = np.flatnonzero(gap > far[:, -1] - length.max() / 2)
        for row in unsure.tolist():
            all_of_them = np.arange(len(a))[None]
            piece[[row]], share[[row]], _ = _nearest_piece(p[[row]], a, step, all_of_them)
        along = before[piece] + share * length[piece]
        first = along <= total[road[piece]] / 2
        node = np.where(first, lines.tail[road[piece]], lines.head[road[piece]])
        nearest += network.node_id[node].tolist()
    return nearest


def _nearest_piece(
    p: NDArray[np.float64],
    a: NDArray[np.float64],
    step: NDArray[np.float64],
    among: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the nearest piece of each place, the share of it at which it is nearest, and how far.

    `a` and `step` are the beginning and the extent of each piece; `among` the candidates, (n, m).
    """
    q = p[:, None] - a[among]
    length2 = np.maximum((step[among] ** 2).sum(axis=2), 1e-30)
    share = np.clip((q * step[among]).sum(axis=2) / length2, 0, 1)
    gap = np.linalg.norm(q - share[:, :, None] * step[among], axis=2)
    best = gap.argmin(axis=1)
    row = np.arange(len(p))
    return among[row, best], share[row, best], gap[row, best]


class Whereabouts:
    """Which devices can have been at which node when the gateway closed a tick.

    A report sent more than `delay_s` before the tick has certainly reached the gateway, a later
    one may have reached it, and one sent after the tick has not.
    """

    def __init__(
        self, network: RoadNetwork, truths: Sequence[Truth], *, delay_s: float, ttl_s: float
    ) -> None:
        self._delay_s = delay_s
        self._ttl_s = ttl_s
        self._reports: dict[str, list[tuple[float, Any]]] = defaultdict(list)
        for truth, node in zip(truths, nearest_nodes(network, truths), strict=True):
            self._reports[truth.device].append((truth.ts, node))
        for reports in self._reports.values():
            reports.sort(key=lambda one: one[0])

    def present(self, time: float) -> dict[Any, set[str]]:
        """Return the devices that may count towards k, by node."""
        first = time - self._ttl_s - self._delay_s
        at: dict[Any, set[str]] = defaultdict(set)
        for device, reports in self._reports.items():
            known = [one for one in reports if first <= one[0] <= time]
            certain = [one for one in known if one[0] <= time - self._delay_s]
            for _, node in [*certain[-1:], *known[len(certain) :]]:
                at[node].add(device)
        return at

    def reporting(self, time: float, *, since_s: float) -> dict[Any, set[str]]:
        """Return the devices that may have reported within a tick, by node."""
        first = time - since_s - self._delay_s
        at: dict[Any, set[str]] = defaultdict(set)
        for device, reports in self._reports.items():
            for ts, node in reports:
                if first <= ts <= time:
                    at[node].add(device)
        return at


def groups_too_small(messages: Sequence[dict[str, Any]], where: Whereabouts) -> list[str]:
    """Return the messages whose region cannot have held k distinct devices at its time."""
    at = {time: where.present(time) for time in {message["time"] for message in messages}}
    return [
        json.dumps(message)
        for message in messages
        if len(_inside(message["region"], at[message["time"]])) < message["k"]
    ]


def pseudonyms_without_device(
    messages: Sequence[dict[str, Any]], where: Whereabouts, *, tick_s: float
) -> int:
    """Return the number of pseudonyms that cannot belong to any device.

    A pseudonym can belong to a device if each region published under it covered a node from which
    the device reported just then. No two pseudonyms belong to the same device: a maximum matching
    assigns them.
    """
    at = {time: where.reporting(time, since_s=tick_s) for time in {m["time"] for m in messages}}
    candidates: dict[str, set[str]] = {}
    for message in messages:
        covered = _inside(message["region"], at[message["time"]])
        for name in message["pseudonyms"]:
            candidates[name] = candidates.get(name, covered) & covered
    column_of = {device: i for i, device in enumerate(sorted(set().union(*candidates.values())))}
    pairs = [(row, column_of[one]) for row, some in enumerate(candidates.values()) for one in some]
    row, column = np.array(pairs, int).reshape(-1, 2).T
    shape = (len(candidates), max(len(column_of), 1))
    can_be = csr_array((np.ones(len(pairs)), (row, column)), shape)
    return int((maximum_bipartite_matching(can_be, perm_type="column") < 0).sum())


def _inside(region: Sequence[Any], at: dict[Any, set[str]]) -> set[str]:
    return set().union(*(at[node] for node in region if node in at))
