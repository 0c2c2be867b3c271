"""How unevenly devices are spread over a network: from published regions, with its uncertainty.

Where in its region a device is depends on the density of devices, which is not known. Treating all
nodes alike is wrong, because traffic prefers main roads. Many counts share this error, so it does
not shrink with their number as chance does.

The density is a Pólya tree [1]_: the nodes are halved again and again by their coordinates, and of
the devices of an area, a share of (1 + e) / 2 is in its first half. All e have the mean 0 and one
variance, at every size: traffic is about as uneven within areas as between them. (In Porto Alegre,
San Francisco and simulated cities the variance is .1 to .3 from whole cities down to ten nodes.)
That variance is read off halves that are much larger than regions; it then also holds for the
halves within regions, about which a release says little.

References
----------
.. [1] M. Lavine, "Some aspects of Polya tree distributions for statistical modelling", The Annals
   of Statistics 20(3), 1992.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from anonymizer.domain.arrays import FloatArray, IntArray

USUAL, _VOTES = 0.2, 30
"""Variance that is expected of any traffic, and how many observed areas it counts for: it was that
of areas of the size of regions, where a release itself tells of larger ones, which are evener."""
_LEAST_DEVICES = 8.0
"""Areas in which fewer devices are seen say nothing about their halves."""
_CLEAR = 0.75
"""Halves are much larger than regions if the regions tell so much of what devices would."""
_TOLD = 0.5
"""The same, for one area: regions across both halves have reasons of their own to be there."""
_LEAST_SHARE = 0.05
"""No half is thought to have less than half of this share of its area's devices."""


class AreaHalves(NamedTuple):
    """The areas of a network and their halves, from the whole network down to pairs of nodes."""

    side: csr_array
    """1 for nodes in the first half of an area, -1 for those in the second, shape (areas,
    nodes)."""
    first_area_of: IntArray
    """Areas of each level, of about equal numbers of nodes, shape (levels + 1,)."""


class DensityFit(NamedTuple):
    """What the regions of one moment say about the density."""

    weight: FloatArray
    """Expected density at each node, up to a factor, shape (nodes,)."""
    variance: FloatArray
    """What is left of the variance of each area, shape (areas,)."""


def halve(x: FloatArray, y: FloatArray) -> AreaHalves:
    """Return the halves of a network: across the longer side of each area, at its middle node.

    Parameters
    ----------
    x, y
        Place of each node in units that are equally long, shape (nodes,).

    Notes
    -----
    O(n log² n) for n nodes.
    """
    n = len(x)
    area, rows, sides, first = np.zeros(n, np.int64), [], [], [0]
    while n and (size := np.bincount(area)).max() > 1:
        order = np.lexsort((np.where((_extent(x, area) >= _extent(y, area))[area], x, y), area))
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n) - (np.cumsum(size) - size)[area[order]]
        second = rank >= (size[area] + 1) // 2
        rows.append(first[-1] + area)
        sides.append(np.where(second, -1.0, 1.0))
        first.append(first[-1] + len(size))
        area = np.unique(2 * area + second, return_inverse=True)[1].astype(np.int64).ravel()
    n_levels = len(rows)
    entries = (np.concatenate(rows), np.tile(np.arange(n), n_levels)) if rows else ([], [])
    values = np.concatenate(sides) if rows else np.zeros(0)
    return AreaHalves(csr_array((values, entries), shape=(first[-1], n)), np.array(first, np.int64))


def shares_of(regions: csr_array, weight: FloatArray) -> csr_array:
    """Return the probability that a device of a region is at each node, shape (regions, nodes).

    Parameters
    ----------
    regions
        1 for the nodes of a region, shape (regions, nodes).
    weight
        How likely a device is at each node, up to a factor, shape (nodes,).
    """
    total = regions @ weight
    # A region whose nodes weigh nothing has no road: its nodes are all alike.
    heavy = (total > 0).astype(np.float64)
    size = np.asarray(regions.sum(axis=1), np.float64).ravel()
    by_weight = diags_array(heavy / np.where(total > 0, total, 1.0)) @ regions @ diags_array(weight)
    alike = diags_array((1.0 - heavy) / np.maximum(size, 1.0)) @ regions
    return csr_array(by_weight + alike)


def fit_density(
    halves: AreaHalves, shares: csr_array, counts: Sequence[FloatArray], weight: FloatArray
) -> DensityFit:
    """Return what the regions of some moments say about the density.

    Parameters
    ----------
    shares
        From `shares_of`, with the same `weight`.
    counts
        Number of devices in each region at the moments, shape (regions,) each; at least one.
    weight
        Density that is expected before anything is published, up to a factor, shape (nodes,).

    Notes
    -----
    Several moments are worth no more than one: devices are much where they were. But how they are
    grouped differs, and the mean over the moments is free of that. O(moments * areas that regions
    touch).
    """
    evidence = np.array([_evidence(halves, shares, n, weight) for n in counts])
    variance = _unevenness(halves, evidence)
    found, told, devices = evidence.mean(axis=0)
    told = np.where((devices >= _LEAST_DEVICES) & (told >= _TOLD * devices), told, 0.0)
    # The posterior of a normal distribution with that variance: `found` is e x told, give or take
    # the square root of `told`.
    left = variance / (1.0 + variance * told)
    shift = np.where(told > 0, left * found, 0.0)
    return DensityFit(weight * _denser(factors_of(halves, weight), halves, shift), left)


def _unevenness(halves: AreaHalves, evidence: FloatArray) -> float:
    """Return the variance of e, 0 to 1, of what `_evidence` says at some moments.

    Only levels count whose halves are much larger than regions: each area's variance beyond that
    of chance, in the mean over the moments, is a vote. `USUAL` is worth some votes, too, so that
    small fleets have error bars like others.
    """
    votes, total = float(_VOTES), _VOTES * USUAL
    for first, end in pairwise(halves.first_area_of.tolist()):
        found, told, devices = evidence[:, :, first:end].transpose(1, 0, 2)
        seen = devices >= _LEAST_DEVICES
        if told.sum() < _CLEAR * devices.sum() or not seen.any():
            continue
        beyond, scale = ((found**2 - told) * seen).sum(axis=0), (told**2 * seen).sum(axis=0)
        votes += np.count_nonzero(scale)
        total += float((beyond[scale > 0] / scale[scale > 0]).sum())
    return min(max(total / votes, 0.0), 1.0)


def count_variance(
    halves: AreaHalves, shares: csr_array, n: FloatArray, cell_of: csr_array, fit: DensityFit
) -> FloatArray:
    """Return by how much the density makes numbers of devices in cells vary, shape (cells,).

    Parameters
    ----------
    shares
        From `shares_of`, with the weight of the fit, shape (regions, nodes).
    n
        Number of devices in each region, shape (regions,).
    cell_of
        1 where a node is in a cell, shape (nodes, cells).

    Notes
    -----
    The variance of the first-order change: if the first half of an area is denser, cells in it gain
    what the other cells of the same regions lose. Chance comes on top.
    """
    factors = factors_of(halves, fit.weight)
    held = diags_array(n) @ shares
    moved = factors @ (diags_array(np.asarray(held.sum(axis=0)).ravel()) @ cell_of)
    moved = csr_array(moved - (factors @ held.T) @ (shares @ cell_of))
    moved.data **= 2
    found: FloatArray = fit.variance @ moved
    return found


def possible_weight(halves: AreaHalves, fit: DensityFit, rng: np.random.Generator) -> FloatArray:
    """Return a density that may be the true one, up to a factor, shape (nodes,)."""
    error = rng.normal(0.0, np.sqrt(fit.variance))
    return fit.weight * _denser(factors_of(halves, fit.weight), halves, error)


def _denser(factors: csr_array, halves: AreaHalves, error: FloatArray) -> FloatArray:
    """Return by which factor each node is denser, given e of each area."""
    found = np.ones(factors.shape[1])
    for first, end in pairwise(halves.first_area_of.tolist()):
        found *= np.maximum(1.0 + factors[first:end].T @ error[first:end], _LEAST_SHARE)
    return found


def _extent(at: FloatArray, area: IntArray) -> FloatArray:
    low, high = np.full(area.max() + 1, np.inf), np.full(area.max() + 1, -np.inf)
    np.minimum.at(low, area, at)
    np.maximum.at(high, area, at)
    return high - low


def factors_of(halves: AreaHalves, weight: FloatArray) -> csr_array:
    """Return the relative change of the density at each node if e rises by 1."""
    side = halves.side
    whole = abs(side) @ weight
    lead = np.divide(side @ weight, whole, out=np.zeros_like(whole), where=whole > 0)
    found = side.copy()
    found.data = side.data - np.repeat(lead, np.diff(side.indptr))
    return found


def _evidence(
    halves: AreaHalves, shares: csr_array, n: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return what is told of each area's e, how surely, and its devices, shape (3, areas).

    The first has the mean e x the second, and the second for its variance: that of chance.
    """
    held = np.flatnonzero(n)
    lead = csr_array(shares[held] @ factors_of(halves, weight).T)
    inside = csr_array(shares[held] @ abs(halves.side).T)
    per = inside.copy()
    per.data = 1.0 / np.maximum(per.data, 1e-12)
    return np.stack([n[held] @ lead, n[held] @ (lead * lead * per), n[held] @ inside])
