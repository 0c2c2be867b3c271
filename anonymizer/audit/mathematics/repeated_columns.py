"""Repeated columns: whether a column beside the labels tells a quasi-identifier behind a label.

Labels hide a person among the rows of a class. A column that is published as it is may say the same
as a quasi-identifier, in other words or more coarsely: a town beside a postcode, a year of birth
beside an age. Who knows that quasi-identifier then needs to know no more to tell the rows apart.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_MOST_TRIED, _MOST_LEARNED = 10_000, 100_000
_SMALL, _FOLDS = 5_000, 5
"""Of fewer records four fifths are learned from, of more a half."""
_SHUFFLES = 19
_LEAST_TRIED = 20
"""Fewer records are often guessed by chance."""
NEARLY_ALL, MOST = 0.9, 0.75
"""Of what the values themselves would tell: from here on, a column repeats a quasi-identifier; the
latter where a belief is doubled: a height tells most of a sex, and no row from ten."""
_SOME = 0.01
"""Share of persons that are picked among fewer than k, up to which k is not at stake."""
_FINER = 0.2
"""Share of rows that have another value than the most frequent of their label."""
_FAR = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankedColumn:
    """A column as the ranks of its values."""

    rank: IntArray
    """Of the value of each record, from 0, shape (n,)."""
    numeric: bool
    """Whether ranks have a distance: a guess that is near is then worth something."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """How far a column tells a quasi-identifier, or is told by it, within classes."""

    success: float
    """Probability that the row of a person is picked, by who knows their quasi-identifier and has
    learned from others what the column says of it."""
    worst: float
    """The same of the tenth of persons that are picked most surely."""
    blind: float
    ceiling: float
    """`blind`, `ceiling`: the same without the column, and with the values themselves in place of
    the guess."""
    shuffled: float
    """The largest success with the column shuffled within classes."""
    share_below: float
    """Share of persons whose row is picked among fewer than k."""
    n: int
    """Records that were tried, in classes that are told apart by the values themselves."""

    @property
    def told(self) -> float:
        """What the guess adds to a blind one, as a share of what the values themselves would."""
        return self._share(self.success)

    @property
    def repeats(self) -> bool:
        """Whether the column says nearly the same, beyond chance, and hides fewer than k.

        What merely goes with a quasi-identifier, as income with age, tells less than this share.
        """
        if self.n < _LEAST_TRIED or self.success <= self.shuffled or self.share_below <= _SOME:
            return False
        return self.told >= (MOST if self.success >= 2 * self.blind else NEARLY_ALL)

    @property
    def told_shuffled(self) -> float:
        """The same with the column shuffled: chance."""
        return self._share(self.shuffled)

    def _share(self, success: float) -> float:
        possible = self.ceiling - self.blind
        return (success - self.blind) / possible if possible > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TriedRecords:
    """The records that are learned from and tried; see `trial`."""

    rows: IntArray
    """Records that are looked at, shape (m,)."""
    class_of: IntArray
    """Class of each, from 0, negative for those that are only learned from, shape (m,)."""
    fold: IntArray
    """A person is guessed from the records of other folds, shape (m,)."""


def trial(class_of: IntArray, person: IntArray, *, rng: np.random.Generator) -> TriedRecords:
    """Draw whole classes to be tried, about 10,000 records, and 100,000 others to learn from.

    `class_of`, `person`: of each record, from 0, negative for records that are not published.
    """
    kept = np.flatnonzero(class_of >= 0)
    n_classes = int(class_of.max(initial=-1)) + 1
    size = np.bincount(class_of[kept], minlength=n_classes)
    order = rng.permutation(n_classes)
    drawn = order[np.cumsum(size[order]) - size[order] < _MOST_TRIED]
    new = np.full(n_classes, -1, np.int64)
    new[drawn] = np.arange(len(drawn))
    tried = new[class_of[kept]] >= 0
    others = kept[~tried]
    if len(others) > _MOST_LEARNED:
        others = rng.choice(others, _MOST_LEARNED, replace=False)
    rows = np.sort(np.concatenate([kept[tried], others]))
    n_folds = _FOLDS if len(rows) <= _SMALL else 2
    fold_of = rng.permutation(int(person.max(initial=-1)) + 1) % n_folds
    return TriedRecords(rows, new[class_of[rows]], fold_of[person[rows]])


def repetition(
    drawn: TriedRecords,
    column: RankedColumn,
    known: RankedColumn,
    *,
    by_known: bool,
    k: int,
    rng: np.random.Generator,
) -> Repetition:
    """Return how surely rows are picked by a column and one known quasi-identifier.

    Parameters
    ----------
    drawn
        Records of the columns, shape (m,).
    column, known
        What is published as it is, and what is known of a person, shape (m,).
    by_known
        False: what a cell says of the quasi-identifier is guessed, and rows of which it says what
        is known (of numbers: the nearest) are picked. True: the cell of the person is guessed from
        what is known, and the rows that have it are picked.

    Notes
    -----
    A guess is the most frequent value, of numbers the median, among the records of other persons
    with the same value, else with the nearest one in order. Who picks no row guesses blindly.
    O(m log m).
    """
    seen, wanted = (known, column) if by_known else (column, known)
    guess = _guesses(seen, wanted, drawn.fold)
    tried = drawn.class_of >= 0
    of, true, guess = drawn.class_of[tried], wanted.rank[tried], guess[tried]
    size = np.bincount(of)[of] if len(of) else of
    blind = 1 / np.maximum(size, 1)
    ceiling, _ = _picks(of, true, true, numeric=wanted.numeric)
    apart = ceiling > blind

    def success(shown: IntArray) -> tuple[FloatArray, IntArray]:
        target, read = (guess, shown) if by_known else (true, shown)
        return _picks(of, read, target, numeric=wanted.numeric)

    shown = true if by_known else guess
    found, n_picked = success(shown)
    beyond = (found - blind - MOST * (ceiling - blind))[apart].sum() >= 0
    n_shuffles = _SHUFFLES if beyond and len(of) <= _SMALL else 1  # who tells little needs no more
    shuffled = [success(_within(of, shown, rng))[0][apart] for _ in range(n_shuffles)]
    n = int(apart.sum())
    if not n:
        return Repetition(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    found, n_picked = found[apart], n_picked[apart]
    worst = np.sort(found)[-max(n // 10, 1) :]
    return Repetition(
        success=float(found.mean()),
        worst=float(worst.mean()),
        blind=float(blind[apart].mean()),
        ceiling=float(ceiling[apart].mean()),
        shuffled=max(float(each.mean()) for each in shuffled),
        share_below=float(((found > 0) & (n_picked < np.minimum(k, size[apart]))).mean()),
        n=n,
    )


def tells_more_than_label(column: RankedColumn, label: RankedColumn, fold: IntArray) -> bool:
    """Return whether a column tells the labels of other rows, and tells rows of a label apart.

    Without the original no more can be said; where labels overlap, this is not. Arrays as for
    `repetition`.
    """
    n = len(fold)
    if n < _LEAST_TRIED:
        return False
    right = (_guesses(column, label, fold) == label.rank).mean()
    by_chance = np.bincount(label.rank).max() / n
    pairs, times = np.unique(np.column_stack([label.rank, column.rank]), axis=0, return_counts=True)
    most = np.zeros(int(label.rank.max()) + 1, np.int64)
    np.maximum.at(most, pairs[:, 0], times)
    is_finer = 1 - most.sum() / n > _FINER
    return bool(is_finer and right - by_chance >= NEARLY_ALL * (1 - by_chance))


def _within(of: IntArray, shown: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the cells shuffled within classes."""
    mixed = rng.permutation(len(of))
    to, source = np.argsort(of, kind="stable"), mixed[np.argsort(of[mixed], kind="stable")]
    out = np.empty_like(shown)
    out[to] = shown[source]
    return out


def _guesses(seen: RankedColumn, wanted: RankedColumn, fold: IntArray) -> IntArray:
    """Return the guess of each record, by those of other folds, shape (m,)."""
    out = np.empty(len(fold), np.int64)
    for each in range(int(fold.max(initial=-1)) + 1):
        own = fold == each
        values, guess = _learned(seen.rank[~own], wanted.rank[~own], numeric=wanted.numeric)
        out[own] = guess[_nearest(values, seen.rank[own])] if len(values) else 0
    return out


def _learned(seen: IntArray, wanted: IntArray, *, numeric: bool) -> tuple[IntArray, IntArray]:
    """Return the different values seen, rising, and what is guessed by each."""
    if numeric:
        order = np.lexsort((wanted, seen))
        values, first, n = np.unique(seen[order], return_index=True, return_counts=True)
        return values, wanted[order][first + (n - 1) // 2]
    n_wanted = int(wanted.max(initial=0)) + 1
    pairs, n = np.unique(seen.astype(np.int64) * n_wanted + wanted, return_counts=True)
    order = np.lexsort((n, pairs // n_wanted))
    of = (pairs // n_wanted)[order]
    last = np.flatnonzero(np.diff(of, append=-1))
    return of[last], (pairs % n_wanted)[order][last]


def _nearest(values: IntArray, asked: IntArray) -> IntArray:
    """Return the place of the nearest of rising values."""
    right = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(values[left] - asked) < np.abs(values[right] - asked), left, right)


def _picks(
    of: IntArray, read: IntArray, target: IntArray, *, numeric: bool
) -> tuple[FloatArray, IntArray]:
    """Return how probably each record is picked among its class, and among how many rows.

    `read`: what each row seems to say; `target`: what is expected of each person. Rows that say it
    are picked, of numbers the nearest ones.
    """
    width = int(max(read.max(initial=0), target.max(initial=0))) + 1
    keys, n_alike = np.unique(of * width + read, return_counts=True)
    wanted = of * width + target
    right = np.searchsorted(keys, wanted)
    distance, n_there = [], []
    for at in (right, right - 1):
        place = np.clip(at, 0, len(keys) - 1)
        inside = (at >= 0) & (at < len(keys)) & (keys[place] // width == of)
        distance.append(np.where(inside, np.abs(keys[place] - wanted), _FAR))
        n_there.append(n_alike[place])
    nearest = np.minimum(*distance)
    left, other = (np.where(d == nearest, n, 0) for d, n in zip(distance, n_there, strict=True))
    n_picked: IntArray = left + other
    is_own: BoolArray = np.abs(read - target) == nearest
    if not numeric:
        none = nearest > 0
        n_picked, is_own = np.where(none, np.bincount(of)[of], n_picked), is_own | none
    return np.where(is_own, 1 / n_picked, 0.0), n_picked
