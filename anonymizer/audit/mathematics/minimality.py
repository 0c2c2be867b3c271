"""Minimality: what a release says of sensitive values by not being better than it is.

A method that loses little leaves a row where it fits badly only if the promise forbids that it goes
elsewhere [1]_. So who knows all of a table but which member of a class is the only one with a value
tries each of them: if the value were theirs, could rows be moved to, or exchanged with, a class
near by, and less be lost? Whose value leaves the least to gain is named. Nothing need be known of
the method but that it loses little; where it does not look at values, the guess is blind.

References
----------
.. [1] R. C.-W. Wong et al., "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

_MOST_CLASSES, _MOST_MEMBERS = 200, 100
"""Classes that are attacked; and members of these and of those near them, at most: among more, a
guess is hardly ever right."""
_FEWEST_CLASSES, _COMPARED = 40, 8_000_000
"""Of very many classes fewer are attacked: each is compared with all."""
_NEAR, _MOVES = 8, 40
"""Classes near one that rows may go to or come from, and the best moves that are tried."""
_MOST_LIKE = 2_000
"""Others with a value among whom the nearest is looked for."""
_SURE = 3.1
"""Standard deviations that chance reaches once in a thousand times."""
_TINY = 1e-9
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Minimality:
    """How often the only person of a class with a value is named."""

    success: float
    """Mean probability, over the classes in which one member leaves less to gain than another."""
    blind: float
    alike: float
    """`blind`, `alike`: the same of a blind guess among the members of these classes; and of naming
    who is nearest to somebody else with the value, in classes formed by nearness alone: values go
    with quasi-identifiers."""
    n: int
    n_tried: int
    """`n`, `n_tried`: these classes, and all that were attacked."""
    deviations: float
    """By how many standard deviations the success is above the better of both."""

    @property
    def control(self) -> float:
        """The success of who knows the table, and not the release: the better of both."""
        return max(self.blind, self.alike)

    @property
    def names(self) -> bool:
        """Whether values are named, beyond chance and twice as often as without the release."""
        return self.deviations > _SURE and self.success >= 2 * self.control


class _Classes(NamedTuple):
    """The published records class by class.

    `qi`, `sensitive`: codes of each row; `first`, `size`, `lo`, `hi`, `loss`: of each class, its
    first row, its rows, the ends of its codes, and the loss of one row.
    """

    qi: Int32Array
    sensitive: Int32Array
    first: IntArray
    size: IntArray
    lo: Int32Array
    hi: Int32Array
    loss: FloatArray

    def rows(self, number: int) -> IntArray:
        """Return the rows of a class."""
        return np.arange(self.first[number], self.first[number] + self.size[number])


class _Move(NamedTuple):
    """A row of the class goes to another class, or one of that comes, or both; `_NOBODY`: none."""

    gain: float
    leaver: int
    other: int
    comer: int


class _Trial(NamedTuple):
    """Members of a class, the only one with a value, classes near, and moves that would gain."""

    own: IntArray
    owner: int
    near: Sequence[int]
    moves: Sequence[_Move]


def minimality(
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    column: int,
    *,
    seed: int,
) -> Minimality:
    """Return how often the only person of a class with a value of a sensitive attribute is named.

    Parameters
    ----------
    records, schema
        The whole table; one row of each person.
    class_of
        Negative where suppressed, shape (n,).
    column
        Of `records.sensitive`.
    seed
        Of the draw of classes, of which 200 at most are attacked.

    Notes
    -----
    Loss is that of ranges (`Cost.RANGE`), whatever was minimized: by another, the attack is weaker.
    Of the values that one person of a class has alone, the rarest is attacked. O(n log n + n
    columns + 200 classes qis), and some seconds at most for what is tried.
    """
    rng = np.random.default_rng(seed)
    loss = _Loss(schema)
    classes = _by_class(records, loss, class_of)
    trials = []
    for number, own, owner in _owners(classes, column, rng):
        near = _near(classes, number, loss)
        trials.append(_Trial(own, owner, near, _moves(classes, number, near, loss, promise.k)))
    tried = _Tried(classes, column)
    for trial in trials:
        tried.add(trial)
    is_kept = tried.kept(records, schema, promise)
    leaves = [_left_to_gain(trial, classes.sensitive[:, column], is_kept) for trial in trials]
    holders = _Holders.of(classes.sensitive[:, column])
    alike = [_named_by_likeness(each, classes, holders, loss, rng) for each in trials]
    return _summary(trials, leaves, [each for each in alike if each is not None])


class _Loss:
    """The loss of a row whose class has given ends, summed over its quasi-identifiers."""

    def __init__(self, schema: Schema) -> None:
        self._place = [(_place(qi), qi.missing) for qi in schema.qis]

    def __call__(self, lo: Int32Array, hi: Int32Array) -> FloatArray:
        """Return it for codes of shape (..., qis)."""
        lost = np.zeros(lo.shape[:-1])
        for c, (place, missing) in enumerate(self._place):
            first, last = lo[..., c], hi[..., c]
            beside_missing = (last == missing) & (first != last)
            lost += np.where(beside_missing, 1.0, place[last] - place[first])
        return lost


def _place(qi: Attribute) -> FloatArray:
    """Return the position of each code as a share of the way from the first value to the last."""
    whole = qi.position[qi.n_values - 1] - qi.position[0] if qi.n_values > 1 else 0.0
    return qi.position / whole if whole > 0 else np.zeros(qi.size)


def _by_class(records: Records, loss: _Loss, class_of: Int32Array) -> _Classes:
    kept = np.flatnonzero(class_of >= 0)
    order = kept[np.argsort(class_of[kept], kind="stable")]
    first = np.flatnonzero(np.diff(class_of[order], prepend=-1))
    qi = records.qi[order]
    lo, hi = (end.reduceat(qi, first) for end in (np.minimum, np.maximum))
    size = np.diff(first, append=len(order))
    return _Classes(qi, records.sensitive[order], first, size, lo, hi, loss(lo, hi))


def _owners(
    classes: _Classes, column: int, rng: np.random.Generator
) -> Iterator[tuple[int, IntArray, int]]:
    """Yield classes in which one person alone has a value: number, rows, and the row with it."""
    n_found, usual = 0, np.bincount(classes.sensitive[:, column])
    few = np.flatnonzero((classes.size > 1) & (classes.size <= _MOST_MEMBERS))
    most = max(min(_COMPARED // max(len(classes.size), 1), _MOST_CLASSES), _FEWEST_CLASSES)
    for number in rng.permutation(few).tolist():
        own = classes.rows(number)
        value = classes.sensitive[own, column]
        alone = own[np.bincount(value)[value] == 1]
        if len(alone):
            yield number, own, int(alone[np.argmin(usual[classes.sensitive[alone, column]])])
            n_found += 1
        if n_found == most:
            return


def _moves(classes: _Classes, number: int, near: Sequence[int], loss: _Loss, k: int) -> list[_Move]:
    """Return the moves by which least would be lost, were it not for the promise."""
    found = [each for other in near for each in _moves_between(classes, number, other, loss, k)]
    return sorted(found, key=lambda move: -move.gain)[:_MOVES]


def _near(classes: _Classes, number: int, loss: _Loss) -> list[int]:
    """Return the classes with which one would lose least together."""
    lo, hi, size = classes.lo, classes.hi, classes.size
    together = loss(np.minimum(lo, lo[number]), np.maximum(hi, hi[number]))
    more = together * (size + size[number]) - classes.loss * size
    more[(size < 2) | (size > _MOST_MEMBERS)] = np.inf
    more[number] = np.inf
    near = np.argsort(more, kind="stable")[:_NEAR]
    return [int(each) for each in near if more[each] < np.inf]


def _moves_between(
    classes: _Classes, number: int, other: int, loss: _Loss, k: int
) -> Iterator[_Move]:
    """Yield the moves between two classes by which less is lost."""
    here, there = _Side.of(classes, number), _Side.of(classes, other)
    before = here.n * classes.loss[number] + there.n * classes.loss[other]
    if here.n > k:
        after = (here.n - 1) * loss(*here.without) + (there.n + 1) * loss(*there.joined_by(here))
        for i in np.flatnonzero(before - after > _TINY):
            yield _Move(before - after[i], int(here.row[i]), other, _NOBODY)
    if there.n > k:
        after = (there.n - 1) * loss(*there.without) + (here.n + 1) * loss(*here.joined_by(there))
        for i in np.flatnonzero(before - after > _TINY):
            yield _Move(before - after[i], _NOBODY, other, int(there.row[i]))
    after = here.n * loss(*here.exchanged_for(there))
    after += there.n * loss(*there.exchanged_for(here)).T
    for i, j in np.argwhere(before - after > _TINY):
        yield _Move(before - after[i, j], int(here.row[i]), other, int(there.row[j]))


class _Side(NamedTuple):
    """A class that rows leave and join.

    `row`, `qi`: its rows, and their codes, shape (n, qis); `lo`, `hi`: ends of all; `without`: ends
    without each.
    """

    row: IntArray
    qi: Int32Array
    lo: Int32Array
    hi: Int32Array
    without: tuple[Int32Array, Int32Array]

    @classmethod
    def of(cls, classes: _Classes, number: int) -> "_Side":
        row = classes.rows(number)
        qi = classes.qi[row]
        sorted_ = np.sort(qi, axis=0)
        lo = np.where(qi == sorted_[0], sorted_[1], sorted_[0])
        hi = np.where(qi == sorted_[-1], sorted_[-2], sorted_[-1])
        return cls(row, qi, sorted_[0], sorted_[-1], (lo, hi))

    @property
    def n(self) -> int:
        return len(self.row)

    def joined_by(self, guests: "_Side") -> tuple[Int32Array, Int32Array]:
        """Return the ends with each guest, shape (guests, qis)."""
        return np.minimum(self.lo, guests.qi), np.maximum(self.hi, guests.qi)

    def exchanged_for(self, guests: "_Side") -> tuple[Int32Array, Int32Array]:
        """Return the ends with each guest in place of each row, shape (n, guests, qis)."""
        lo, hi = self.without
        return np.minimum(lo[:, None], guests.qi), np.maximum(hi[:, None], guests.qi)


class _Tried:
    """Classes as moves would make them, of whom each value may be.

    The criteria are about one column each: a class from which a row goes has the quasi-identifiers
    of all others, and of the attacked attribute all values but the one it is supposed to have.
    """

    def __init__(self, classes: _Classes, column: int) -> None:
        self._classes, self._column = classes, column
        self._qi: list[Int32Array] = []
        self._sensitive: list[Int32Array] = []

    def add(self, trial: _Trial) -> None:
        """Add both classes of each move, by each value that its row may have."""
        value_of = self._classes.sensitive[:, self._column]
        for move in trial.moves:
            for value in _supposed(trial, move, value_of):
                self._add(trial.own, move, value)

    def _add(self, own: IntArray, move: _Move, value: int) -> None:
        qi, sensitive = self._classes.qi, self._classes.sensitive
        here, there = own[own != move.leaver], self._classes.rows(move.other)
        comes, stays = there[there == move.comer], there[there != move.comer]
        goes = own[own == move.leaver]
        shown = sensitive[goes]
        left = sensitive[here]
        if len(goes):
            shown[:, self._column] = value
            values = sensitive[own, self._column]
            left[:, self._column] = np.delete(values, np.flatnonzero(values == value)[0])
        self._qi += [qi[np.r_[here, comes]], qi[np.r_[stays, goes]]]
        self._sensitive += [np.r_[left, sensitive[comes]], np.r_[sensitive[stays], shown]]

    def kept(self, records: Records, schema: Schema, promise: Promise) -> Iterator[bool]:
        """Return of each move and value, in order, whether both classes keep the promise."""
        if not self._qi:
            return iter(())
        size = [len(each) for each in self._qi]
        number = np.repeat(np.arange(len(size), dtype=np.int32), size)
        made = Records(
            np.concatenate(self._qi),
            np.concatenate(self._sensitive),
            np.arange(len(number), dtype=np.int32),
        )
        columns = zip(records.sensitive.T, schema.sensitive, strict=True)
        usual = [np.bincount(codes, minlength=each.size) for codes, each in columns]
        keeps = np.ones(len(size), bool)
        broken = verify_classes(made, schema, promise, number, usual=usual)
        keeps[[each.class_number for each in broken]] = False
        both: BoolArray = keeps[0::2] & keeps[1::2]
        return iter(both.tolist())


def _supposed(trial: _Trial, move: _Move, value_of: Int32Array) -> list[int]:
    """Return the values that the row of a move has, by whoever is the owner.

    The owner is supposed to have exchanged values with the one that is.
    """
    if move.leaver == _NOBODY:
        return [_NOBODY]
    if move.leaver == trial.owner:
        return sorted({int(value) for value in value_of[trial.own]})
    return sorted({int(value_of[move.leaver]), int(value_of[trial.owner])})


def _left_to_gain(trial: _Trial, value_of: Int32Array, is_kept: Iterator[bool]) -> FloatArray:
    """Return what the best move would gain if each member were the owner, shape (members,)."""
    gain = np.zeros(len(trial.own))
    for move in trial.moves:
        kept = {value: next(is_kept) for value in _supposed(trial, move, value_of)}
        if move.leaver == _NOBODY:
            allowed = np.full(len(gain), kept[_NOBODY])
        else:
            values = np.full(len(gain), value_of[move.leaver])
            values[trial.own == move.leaver] = value_of[trial.owner]
            if move.leaver == trial.owner:
                values = value_of[trial.own]
            allowed = np.array([kept[value] for value in values.tolist()])
        gain[allowed] = np.maximum(gain[allowed], move.gain)
    return gain


class _Holders(NamedTuple):
    """Who has each value of an attribute.

    `value`: of each row; `row`, `first`: the rows value by value, and where each value begins.
    """

    value: Int32Array
    row: IntArray
    first: IntArray

    @classmethod
    def of(cls, value: Int32Array) -> "_Holders":
        return cls(value, np.argsort(value, kind="stable"), starts_of(np.bincount(value)))

    def some_like(self, owner: int, rng: np.random.Generator) -> IntArray:
        """Return others with the value of a row, of many about `_MOST_LIKE` at random."""
        begin, end = self.first[self.value[owner] :][:2].tolist()
        among = self.row[begin:end]
        if len(among) > _MOST_LIKE:
            among = among[rng.choice(len(among), _MOST_LIKE, replace=False)]
        others: IntArray = among[among != owner]
        return others


def _named_by_likeness(
    trial: _Trial, classes: _Classes, holders: _Holders, loss: _Loss, rng: np.random.Generator
) -> float | None:
    """Return how probably an owner is named by who knows the table alone; None: there is none.

    In a class that is formed by nearness alone, of rows of this class and of those near it, who is
    nearest to somebody else with the value is named.
    """
    around = np.concatenate([trial.own, *(classes.rows(other) for other in trial.near)])
    middle = classes.qi[rng.choice(around)]
    away = loss(np.minimum(classes.qi[around], middle), np.maximum(classes.qi[around], middle))
    away += _TINY * rng.random(len(around))  # ties
    own = around[np.argsort(away)[: len(trial.own)]]
    value, usual = holders.value[own], np.diff(holders.first)
    alone = own[np.bincount(value)[value] == 1]
    if not len(alone):
        return None
    owner = int(alone[np.argmin(usual[holders.value[alone]])])
    others = holders.some_like(owner, rng)
    if not len(others):
        return 1 / len(own)
    qi, like = classes.qi[own][:, None], classes.qi[others]
    away = loss(np.minimum(qi, like), np.maximum(qi, like)).min(axis=1)
    return _success(own, owner, away <= away.min() + _TINY)


def _summary(
    trials: Sequence[_Trial], gains: Sequence[FloatArray], likeness: Sequence[float]
) -> Minimality:
    tells = [(t, gain) for t, gain in zip(trials, gains, strict=True) if np.ptp(gain) > _TINY]
    success = [_success(t.own, t.owner, gain <= gain.min() + _TINY) for t, gain in tells]
    blind = [1 / len(gain) for _, gain in tells]
    alike = list(likeness) or [0.0]
    if not success:
        return Minimality(0.0, 0.0, float(np.mean(alike)), 0, len(trials), 0.0)
    control = alike if np.mean(alike) > np.mean(blind) else blind
    variance = sum(float(np.var(each)) / len(each) for each in (success, control))
    beyond = float(np.mean(success) - np.mean(control))
    return Minimality(
        success=float(np.mean(success)),
        blind=float(np.mean(blind)),
        alike=float(np.mean(alike)),
        n=len(success),
        n_tried=len(trials),
        deviations=beyond / max(sqrt(variance), _TINY),
    )


def _success(own: IntArray, owner: int, named: BoolArray) -> float:
    """Return how probably the owner is drawn from those that are named."""
    return float(named[own == owner][0]) / float(named.sum())
