"""Differencing: what totals give away about the counts that were struck out."""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.release import CountRelease, ForeignCase
from anonymizer.domain.arrays import FloatArray, IntArray

_MOST_ROUNDS = 100


def bounds(release: CountRelease) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest that each count can be, both shape (n,).

    Notes
    -----
    Each total is the sum of its parts, and what is not listed is 0. The bounds of one part follow
    from the total and the bounds of the others, again and again until nothing changes.
    """
    low = np.where(np.isnan(release.count), release.struck[0], release.count)
    high = np.where(np.isnan(release.count), release.struck[1], release.count)
    sums = _sums(release)
    for total, _ in sums:
        # A total that is struck out is at least 0, and one over many parts may be more.
        if np.isnan(release.count[total]):
            low[total], high[total] = 0.0, np.inf
    for _ in range(_MOST_ROUNDS):
        before = low.copy(), high.copy()
        for total, parts in sums:
            least, most = low[parts].sum(), high[parts].sum()
            low[total], high[total] = max(low[total], least), min(high[total], most)
            if np.isfinite(most):
                low[parts] = np.maximum(low[parts], low[total] - (most - high[parts]))
            high[parts] = np.minimum(high[parts], high[total] - (least - low[parts]))
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    return low, high


def _sums(release: CountRelease) -> list[tuple[int, IntArray]]:
    """Return the row of each total, and the rows of its parts."""
    found = []
    for axis, other in (
        (release.area_of, release.time_of),
        (release.time_of, release.area_of),
    ):
        for total in np.flatnonzero(axis == -1).tolist():
            parts = np.flatnonzero((axis >= 0) & (other == other[total]))
            if len(parts):
                found.append((total, parts))
    return found


def _struck_out(case: ForeignCase) -> Trials | NotMounted:
    release = case.counts
    hidden = np.isnan(release.count) & (release.area_of >= 0) & (release.time_of >= 0)
    if hidden.sum() < FEWEST:
        return NotMounted(f"fewer than {FEWEST} counts are struck out")
    if not _sums(release):
        return NotMounted("has no totals")
    low, high = bounds(release)
    n = np.maximum(high - low, 0.0)[hidden] + 1
    success = 1 / n[:, None]
    n_blind = release.struck[1] - release.struck[0] + 1
    exact = float((n == 1).mean())
    note = f"{exact:.0%} of them are known exactly"
    return Trials(success, np.full_like(success, 1 / n_blind), note)


ATTACK = ForeignAttack(
    "differencing",
    CountRelease,
    _struck_out,
    found="are guessed from the totals",
    against="without the totals",
    asks="Do totals give back what was struck out?",
    who="counts that were struck out",
)
