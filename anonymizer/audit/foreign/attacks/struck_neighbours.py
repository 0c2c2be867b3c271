"""Neighbours in time: what the counts before and after give away of one that is struck out.

What was struck out is unknown. So the guess is tried on counts that would be struck out, too, if
the threshold were almost twice as high, by those that would still be there.
"""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import by_person
from anonymizer.audit.foreign.release import CountRelease, ForeignCase
from anonymizer.domain.arrays import FloatArray, IntArray

_N_TRIALS, _MOST_COUNTS = 4, 20_000
_ABOVE = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
"""How far the neighbours are above the threshold, from which they are told apart."""


def _neighbours(case: ForeignCase) -> Trials | NotMounted:
    release, rng = case.counts, np.random.default_rng(case.seed)
    table = release.table()
    if table is None:
        return NotMounted("has too many areas and times")
    if release.is_noisy or not np.isnan(table).any():
        return NotMounted("no count is struck out" if not release.is_noisy else "counts have noise")
    least = release.struck[1] + 1
    threshold = least + release.struck[1] - release.struck[0] + 1
    area, time = np.nonzero((table >= least) & (table < threshold))
    some = np.sort(rng.permutation(len(area))[:_MOST_COUNTS])
    area, time = area[some], time[some]
    told = _told(np.where(table >= threshold, table, np.nan), area, time, threshold)
    value, is_told = (table[area, time] - least).astype(np.int64), told >= 0
    if len(np.unique(area[is_told])) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} areas have small counts beside larger ones")
    success, control = np.zeros((2, len(area), _N_TRIALS))
    for trial in range(_N_TRIALS):
        fold = rng.integers(2, size=int(area.max()) + 1)[area]
        for each in (0, 1):
            test, train = (fold == each) & is_told, (fold != each) & is_told
            guess = _usual(value[train], told[train], threshold - least)[told[test]]
            success[test, trial] = guess == value[test]
            usual = np.bincount(value[fold != each], minlength=1).argmax()
            control[test, trial] = usual == value[test]
    success, control, area = success[is_told], control[is_told], area[is_told]
    return Trials(
        by_person(success, area),
        by_person(control, area),
        f"tried on counts from {least} to {threshold - 1}; who guesses those guesses smaller ones",
    )


def _told(shown: FloatArray, area: IntArray, time: IntArray, threshold: int) -> IntArray:
    """Return what the neighbours in time say, as a number; -1 where none is shown."""
    beside = np.pad(shown, ((0, 0), (1, 1)), constant_values=np.nan)
    pair = np.stack([beside[area, time], beside[area, time + 2]])
    there = np.isfinite(pair)
    mean = np.where(there, pair, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    level = np.digitize(mean - threshold, _ABOVE)
    both = (there.sum(axis=0) == 2) * (len(_ABOVE) + 1)  # beside one that is hidden it is smaller
    told: IntArray = np.where(there.any(axis=0), level + both, -1)
    return told


def _usual(value: IntArray, told: IntArray, n_values: int) -> IntArray:
    """Return the most frequent value by what is told, shape (2 x levels,)."""
    seen = np.zeros((2 * (len(_ABOVE) + 1), n_values))
    seen += np.bincount(value, minlength=n_values) * 1e-6  # where nothing was ever told
    np.add.at(seen, (told, value), 1.0)
    usual: IntArray = seen.argmax(axis=1)
    return usual


ATTACK = ForeignAttack(
    "neighbours in time",
    CountRelease,
    _neighbours,
    found="have small counts guessed exactly from those before and after, on average",
    against="without them",
    asks="Do the counts before and after give away one that is struck out?",
    who="areas",
)
