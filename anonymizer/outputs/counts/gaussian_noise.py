"""Gaussian and Laplace noise: counts with differential privacy, by the OpenDP library.

Whole numbers are drawn exactly from the discrete distributions [1]_, with randomness of the
operating system. The noise is calibrated, and what was spent is computed, by OpenDP's own maps from
sensitivity to epsilon; those of Gaussian noise go through zero-concentrated differential privacy
[2]_ to epsilon at a given delta.

References
----------
.. [1] C. L. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy",
   NeurIPS 2020.
.. [2] M. Bun, T. Steinke, "Concentrated differential privacy: simplifications, extensions, and
   lower bounds", TCC 2016.
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from anonymizer.extras import extra, require

if TYPE_CHECKING:
    from opendp.mod import Measurement

_LEAST_SHARE, _MOST_SHARE = 30.0, 1e7
"""The noise is sought between so small and so large a multiple of what a device adds; with less,
OpenDP computes numbers that are not finite."""


class GaussianNoise:
    """Noise for a number of releases, of which each device changes some numbers by one.

    Parameters
    ----------
    epsilon, delta
        Budget of a device for all of these releases together; `delta` is below 1.
    n_releases
        Releases that the numbers of one device are in, at most.
    n_changed
        Numbers of a release that a device changes, by one each, at most.

    Raises
    ------
    MissingExtraError
        If OpenDP is not installed.

    Notes
    -----
    The promise is about a device that is in the data or is not: all that it adds to all releases is
    a vector with a Euclidean length of at most `sqrt(n_releases * n_changed)`, and noise of one
    scale hides a vector of that length, however it is divided among the releases.
    """

    def __init__(self, *, epsilon: float, delta: float, n_releases: int, n_changed: int) -> None:
        require("dp")
        with extra("dp"):
            import opendp.prelude as dp  # noqa: PLC0415  an extra
        dp.enable_features("contrib")
        self._n_changed = n_changed
        self.scale: float = _scale_for(epsilon, delta, self._length(n_releases))
        """Standard deviation of the noise of each number."""
        self._measurement = _noise(self.scale)
        self._profile = _with_delta(self.scale, delta)

    def epsilon_of(self, n_releases: int) -> float:
        """Return the epsilon that so many releases have spent, at `delta`."""
        if not n_releases:
            return 0.0
        spent: tuple[float, float] = self._profile.map(  # type: ignore[no-untyped-call]
            self._length(n_releases)
        )
        return spent[0]

    def added_to(self, numbers: Sequence[int]) -> list[int]:
        """Return whole numbers with noise; they may be negative."""
        noisy: list[int] = self._measurement(list(numbers))
        return noisy

    def _length(self, n_releases: int) -> float:
        return math.nextafter(math.sqrt(n_releases * self._n_changed), math.inf)


@cache
def _scale_for(epsilon: float, delta: float, length: float) -> float:
    """Return the least scale that hides a vector of a length; a search of a quarter of a second."""
    import opendp.prelude as dp  # noqa: PLC0415  an extra

    scale: float = dp.binary_search_param(
        partial(_with_delta, delta=delta),
        d_in=length,
        d_out=(epsilon, delta),
        T=float,
        bounds=(length / _LEAST_SHARE, length * _MOST_SHARE),
    )
    return scale


def _noise(scale: float) -> "Measurement":
    import opendp.prelude as dp  # noqa: PLC0415  an extra

    numbers = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    noise: Measurement = dp.m.make_gaussian(*numbers, scale)
    return noise


def _with_delta(scale: float, delta: float) -> "Measurement":
    import opendp.prelude as dp  # noqa: PLC0415  an extra

    smooth = dp.c.make_zCDP_to_approxDP(_noise(scale))
    at_delta: Measurement = dp.c.make_fix_delta(smooth, delta)
    return at_delta


class LaplaceNoise:
    """Noise for a few releases, without a `delta`; otherwise as `GaussianNoise`.

    Notes
    -----
    All that a device adds changes the numbers of all releases by `n_releases * n_changed` together,
    at most. The noise grows with that, Gaussian noise with its square root: with one number in each
    release, epsilon 1 and delta 1e-6, this one is smaller up to 10 releases.
    """

    def __init__(self, *, epsilon: float, n_releases: int, n_changed: int) -> None:
        require("dp")
        with extra("dp"):
            import opendp.prelude as dp  # noqa: PLC0415  an extra
        dp.enable_features("contrib")
        self._n_changed = n_changed
        numbers = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        width = dp.binary_search_param(
            lambda scale: dp.m.make_laplace(*numbers, scale),
            d_in=n_releases * n_changed,
            d_out=epsilon,
            T=float,
        )
        self._measurement: Measurement = dp.m.make_laplace(*numbers, width)
        self.scale: float = width * math.sqrt(2)
        """Standard deviation of the noise of each number, at most."""

    def epsilon_of(self, n_releases: int) -> float:
        """Return the epsilon that so many releases have spent."""
        length = n_releases * self._n_changed
        spent: float = self._measurement.map(length)  # type: ignore[no-untyped-call]
        return spent

    def added_to(self, numbers: Sequence[int]) -> list[int]:
        """Return whole numbers with noise; they may be negative."""
        noisy: list[int] = self._measurement(list(numbers))
        return noisy
