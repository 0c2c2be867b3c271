"""Search for privacy zones: places that a release avoids, and places where devices vanish.

A zone can betray itself in three ways. What is never published is a *hole* in a release that covers
everything around it. What is published less than before the zone was declared is a *drop*. And
whoever enters or leaves a zone vanishes or appears at its border.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.special import xlogy

from anonymizer.algorithms.geodesy import chord_of_m, haversine_m, unit_vectors
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork

SELDOM = (0.0, 0.05, 0.2)
"""How often the nodes of a hole are covered at most, relative to the median of covered nodes."""
LEAST_HOLE = 3
"""Nodes of the smallest hole: single nodes are seldom covered for many reasons."""
BEYOND = 2.0
"""Devices vanish outside the border of a zone: windows reach this many radii from their centres."""

_ROUNDING = 1e-9
"""Sums that differ by no more, relative to their size, are equal."""


@discreet
class GuessedPlaces(NamedTuple):
    """Guessed places in WGS84 degrees, the best guess first, shape (guesses,)."""

    lat: FloatArray
    lon: FloatArray


def n_covering(observed: Observed, n_nodes: int) -> FloatArray:
    """Return the number of published regions that contain each node, shape (nodes,).

    A region counts once for each instant, however many pseudonyms publish it.
    """
    n_instants = np.bincount(instants_of(observed).region, minlength=observed.n_regions)
    return _sum_at(observed, n_instants.astype(np.float64), n_nodes)


def find_holes(
    covering: FloatArray, network: RoadNetwork, *, n: int, seldom: float = 0.0
) -> GuessedPlaces:
    """Return the centres of the holes with the busiest borders, at most `n`.

    Parameters
    ----------
    covering
        How often each node is covered, as `n_covering` returns it.
    network
        The whole network, with coordinates, as anybody can get it from a map.
    seldom
        Nodes of a hole are covered at most this often, relative to the median of covered nodes.

    Notes
    -----
    A hole is a connected set of such nodes. Its score adds up how often each node that borders on
    it is covered, at most the median each: a zone is avoided on all sides, whereas the edge of a
    quiet quarter is quiet too. Holes of equal score are ordered by their first node. O(n + m).
    """
    covered = covering[covering > 0]
    usual = float(np.median(covered)) if len(covered) else 0.0
    holes = _holes_below(covering, network, seldom * usual, usual)
    best = sorted(holes, key=lambda hole: (-hole[0], int(hole[1][0])))[:n]
    return GuessedPlaces(
        np.array([network.lat[nodes].mean() for _, nodes in best]),
        np.array([network.lon[nodes].mean() for _, nodes in best]),
    )


def find_ends(observed: Observed, identity_of: IntArray, *, silent_s: float) -> BoolArray:
    """Return the records at which somebody appears or vanishes, shape (records,).

    Parameters
    ----------
    identity_of
        Device of each pseudonym, or the pseudonym itself, shape (pseudonyms,).
    silent_s
        An identity vanishes where it publishes nothing for longer than this. The beginning and the
        end of the whole release are no ends: everybody appears and vanishes there.
    """
    identity = identity_of[observed.pseudonym_of]
    order = np.lexsort((observed.tick_of, identity))
    time = observed.time[observed.tick_of[order]]
    same = np.diff(identity[order]) == 0
    breaks = ~same | (np.diff(time) > silent_s)
    first, last = np.append(True, breaks), np.append(breaks, True)
    inside_begin = time > observed.time[0] + silent_s
    inside_end = time < observed.time[-1] - silent_s
    ends = np.empty(len(order), bool)
    ends[order] = (first & inside_begin) | (last & inside_end)
    return ends


def find_vanishing(
    observed: Observed, ends: BoolArray, network: RoadNetwork, *, radius_m: float, n: int
) -> GuessedPlaces:
    """Return places around which more of the presence ends than elsewhere, at most `n`.

    Parameters
    ----------
    ends
        Records at which somebody appears or vanishes, as `find_ends` returns them.
    network
        The whole network, with coordinates.
    radius_m
        Radius of a zone, known to the adversary.

    Notes
    -----
    The spatial scan statistic [1]_: every node is the centre of a window of `BEYOND` radii, whose
    ends are compared with what its share of all presence would lead to expect; a record is
    present in equal parts at all nodes of its region. As the tracks end around a zone and not in
    it [2]_ [3]_, the guess is the place in the best window with the least presence within one
    radius, the mean place if there are several. The window then counts as explained, so that
    the next guess lies elsewhere. O(guesses x nodes in all windows).

    References
    ----------
    .. [1] M. Kulldorff, "A spatial scan statistic", Communications in Statistics, 1997.
    .. [2] W. U. Hassan, S. Hussain, A. Bates, "Analysis of Privacy Protections in Fitness
       Tracking Social Networks", USENIX Security 2018.
    .. [3] K. Dhondt, V. Le Pochat, A. Voulimeneas, W. Joosen, S. Volckaert, "A Run a Day Won't
       Keep the Hacker Away", CCS 2022.
    """
    presence = _presence(observed, network)
    ending = _spread(observed, ends.astype(np.float64), network.n_nodes)
    n_ends = float(ending.sum())
    expected = presence * (n_ends / presence.sum())
    window = _windows(network, BEYOND * radius_m)
    nearby = _windows(network, radius_m) @ presence

    def score(unexplained: FloatArray) -> FloatArray:
        seen, likely = window @ (unexplained * ending), window @ (unexplained * expected)
        return _log_likelihood_ratio(seen, likely, n_ends)

    def guess(best: int) -> IntArray:
        nodes = _of_row(window, best)
        least: IntArray = nodes[nearby[nodes] <= nearby[nodes].min() * (1 + _ROUNDING)]
        return least

    return _scan(score, guess, window, network, n)


def find_drops(
    observed: Observed, earlier: Observed, network: RoadNetwork, *, radius_m: float, n: int
) -> GuessedPlaces:
    """Return places around which a release has less presence than an earlier one, at most `n`.

    Parameters
    ----------
    earlier
        A release of the same places from before the zones were declared, maybe of other devices.
    network
        The whole network, with coordinates.
    radius_m
        Radius of a zone, known to the adversary.

    Notes
    -----
    The scan of `find_vanishing`, for windows of one radius with less presence than their share of
    the earlier one would lead to expect; the guess is the centre of the window. What lies within
    `BEYOND` radii of it is then explained. O(guesses x nodes in all windows).
    """
    presence, usual = _presence(observed, network), _presence(earlier, network)
    total = float(presence.sum())
    expected = usual * (total / usual.sum())
    inner, outer = _windows(network, radius_m), _windows(network, BEYOND * radius_m)

    def score(unexplained: FloatArray) -> FloatArray:
        # Less inside than is likely is more outside than is likely.
        seen, likely = inner @ (unexplained * presence), inner @ (unexplained * expected)
        return _log_likelihood_ratio(total - seen, np.maximum(total - likely, 0.0), total)

    return _scan(score, lambda best: np.array([best]), outer, network, n)


def error_radii(
    guess: GuessedPlaces, lat: FloatArray, lon: FloatArray, radius_m: FloatArray
) -> FloatArray:
    """Return the distance from each zone's centre to the nearest guess, in radii of the zone.

    Parameters
    ----------
    lat, lon, radius_m
        Centre and radius of each zone, shape (zones,).

    Returns
    -------
    error
        Shape (zones,); inf if nothing was guessed.
    """
    if not len(guess.lat):
        return np.full(len(lat), np.inf)
    apart_m = haversine_m(lat[:, None], lon[:, None], guess.lat[None], guess.lon[None])
    nearest: FloatArray = apart_m.min(axis=1) / radius_m
    return nearest


def _holes_below(
    covering: FloatArray, network: RoadNetwork, most: float, usual: float
) -> list[tuple[float, IntArray]]:
    """Return score and nodes of each hole: a connected set covered at most `most` times."""
    n = network.n_nodes
    tail = np.repeat(np.arange(n), np.diff(network.first_arc_of))
    head = network.neighbour_of.astype(np.int64)
    empty = covering <= most
    inside = empty[tail] & empty[head]
    roads = coo_array((np.ones(int(inside.sum()), bool), (tail[inside], head[inside])), (n, n))
    _, hole_of = connected_components(roads, directed=False)
    leaving = empty[tail] & ~empty[head]
    border = np.unique(hole_of[tail[leaving]].astype(np.int64) * n + head[leaving])
    hole, node = np.divmod(border, n)
    busy = np.bincount(hole, weights=np.minimum(covering[node], usual), minlength=n)
    nodes = np.flatnonzero(empty)
    nodes = nodes[np.argsort(hole_of[nodes], kind="stable")]
    parts = np.split(nodes, np.flatnonzero(np.diff(hole_of[nodes])) + 1)
    scored = [(float(busy[hole_of[part[0]]]), part) for part in parts if len(part) >= LEAST_HOLE]
    return [(score, part) for score, part in scored if score > 0]


def _scan(
    score: Callable[[FloatArray], FloatArray],
    guess: Callable[[int], IntArray],
    explained_by: csr_array,
    network: RoadNetwork,
    n: int,
) -> GuessedPlaces:
    """Return the places with the best scores, each without what the ones before explain.

    Parameters
    ----------
    score
        Returns the score of the window around each node, given which nodes are unexplained.
    guess
        Returns the nodes at whose mean place the zone is, given the best window.
    explained_by
        Which nodes the window around each node explains, shape (nodes, nodes).
    """
    unexplained = np.ones(network.n_nodes)
    lat: list[float] = []
    lon: list[float] = []
    while len(lat) < n:
        found = score(unexplained)
        best = int(found.argmax())
        if not found[best] > _ROUNDING:
            break
        nodes = guess(best)
        lat.append(float(network.lat[nodes].mean()))
        lon.append(float(network.lon[nodes].mean()))
        unexplained[_of_row(explained_by, best)] = 0.0
    return GuessedPlaces(np.array(lat), np.array(lon))


def _of_row(matrix: csr_array, row: int) -> IntArray:
    columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
    return columns.astype(np.int64)


def _presence(observed: Observed, network: RoadNetwork) -> FloatArray:
    """Return how much of all records is at each node, each spread over its region."""
    return _spread(observed, np.ones(observed.n_records), network.n_nodes)


def _windows(network: RoadNetwork, radius_m: float) -> csr_array:
    """Return a matrix of which nodes lie within a radius of each node, shape (nodes, nodes)."""
    place = unit_vectors(network.lat, network.lon)
    one, other = KDTree(place).query_pairs(chord_of_m(radius_m), output_type="ndarray").T
    self_ = np.arange(network.n_nodes)
    row, column = np.concatenate([self_, one, other]), np.concatenate([self_, other, one])
    shape = (network.n_nodes, network.n_nodes)
    return csr_array(coo_array((np.ones(len(row)), (row, column)), shape))


def _spread(observed: Observed, weight: FloatArray, n_nodes: int) -> FloatArray:
    """Return the weight of all records, each spread evenly over its region, shape (nodes,)."""
    total = np.bincount(observed.region_of, weights=weight, minlength=observed.n_regions)
    return _sum_at(observed, total / observed.region_size, n_nodes)


def _sum_at(observed: Observed, weight_of: FloatArray, n_nodes: int) -> FloatArray:
    """Return the sum of the weights of the regions that contain each node, shape (nodes,)."""
    weight = np.repeat(weight_of, observed.region_size)
    return np.bincount(observed.node, weights=weight, minlength=n_nodes).astype(np.float64)


def _log_likelihood_ratio(seen: FloatArray, likely: FloatArray, total: float) -> FloatArray:
    """Return the score of windows with more ends than is likely, 0 for the others."""
    rest, likely_rest = np.maximum(total - seen, 0.0), np.maximum(total - likely, 0.0)
    ratio = xlogy(seen, seen) - xlogy(seen, likely) + xlogy(rest, rest) - xlogy(rest, likely_rest)
    return np.where(seen > likely + _ROUNDING * total, ratio, 0.0)
