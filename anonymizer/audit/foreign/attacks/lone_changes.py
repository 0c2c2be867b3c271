"""Coming and going: steps from one count to the next that show one person, and nothing else."""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.release import CountRelease, ForeignCase
from anonymizer.domain.arrays import BoolArray, FloatArray

_N_TRIALS, _MOST_STEPS = 4, 2000


def lone(before: FloatArray, after: FloatArray) -> BoolArray:
    """Return which steps are one person who comes, goes, or moves, shape (steps,).

    `before`, `after`: counts, shape (areas, steps); NaN where they are struck out.
    """
    change = after - before
    n_more, n_less = (change == 1).sum(axis=0), (change == -1).sum(axis=0)
    n_others = ((change != 0) & (np.abs(change) != 1)).sum(axis=0)  # a struck one counts here
    found: BoolArray = (n_others == 0) & (n_more <= 1) & (n_less <= 1) & (n_more + n_less > 0)
    return found


def _lone_changes(case: ForeignCase) -> Trials | NotMounted:
    release, rng = case.counts, np.random.default_rng(case.seed)
    table = release.table()
    if table is None:
        return NotMounted("has too many areas and times")
    if release.n_times <= FEWEST or not (table > 0).any():
        return NotMounted(f"has fewer than {FEWEST} steps in time")
    steps = np.sort(rng.permutation(release.n_times - 1)[:_MOST_STEPS])
    success = np.tile(_steps(table)[steps, None], _N_TRIALS).astype(np.float64)
    mixed = [_steps(table[:, rng.permutation(release.n_times)])[steps] for _ in range(_N_TRIALS)]
    note = f"{(table[table > 0] == 1).mean():.0%} of counts above 0 are of one person alone"
    return Trials(success, np.stack(mixed, axis=1).astype(np.float64), note)


def _steps(table: FloatArray) -> BoolArray:
    """Return which steps are lone; an area that is struck out before and after says nothing."""
    before, after = table[:, :-1], table[:, 1:]
    is_struck = np.isnan(before) & np.isnan(after)
    return lone(np.where(is_struck, 0.0, before), np.where(is_struck, 0.0, after))


ATTACK = ForeignAttack(
    "coming and going",
    CountRelease,
    _lone_changes,
    found="show one person who comes, goes or moves, and nothing else",
    against="if the times are in random order",
    asks="Does a count that changes by one betray a single person?",
    who="steps from one count to the next",
)
