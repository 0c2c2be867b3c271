"""Declared bands of a number, so that its distinct values can be counted: 14.1 and 14.2 are one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import NO_CODE, Attribute


def banded(values: ArrayLike, edges: Sequence[float]) -> Int32Array:
    """Return the band of each value: how many of the edges it has reached.

    Parameters
    ----------
    values
        Finite numbers, shape (n,).
    edges
        Rising; the first band lies below the first edge, and an edge belongs to the band above it.

    Raises
    ------
    ValueError
        If the edges do not rise, or an edge or value is not finite.

    Notes
    -----
    Edges are declared and not learned: those at the quantiles of a table would tell of it.
    O(n log edges).
    """
    at, numbers = _checked(edges), np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a value that is no finite number is in no band")
    return np.searchsorted(at, numbers, side="right").astype(np.int32)


def banded_attribute(name: str, edges: Sequence[float]) -> Attribute:
    """Return the attribute whose codes are the bands between `edges`.

    It is numeric, a band one step from the next: t-closeness counts how many bands apart.

    Raises
    ------
    ValueError
        As for `banded`.
    """
    return Attribute(name, np.arange(len(_checked(edges)) + 1, dtype=np.float64))


def in_bands(attribute: Attribute, edges: Sequence[float]) -> tuple[Attribute, Int32Array]:
    """Return the attribute of the bands of a number, and the band of each of the number's codes.

    The missing marker is no band: it stays what it is.

    Raises
    ------
    ValueError
        As for `banded`.
    """
    bands, band = banded_attribute(attribute.name, edges), banded(attribute.position, edges)
    if attribute.missing == NO_CODE:
        return bands, band
    band[attribute.missing] = bands.size
    position = np.append(bands.position, float(bands.size))
    return Attribute(attribute.name, position, missing=bands.size), band


def _checked(edges: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    at = np.asarray(edges, np.float64)
    if at.ndim != 1 or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
        raise ValueError("the edges of bands must be finite and rise")
    return at
