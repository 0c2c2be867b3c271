"""Audit of traffic by street and hour: what it tells of a road with few devices, and of one device.

*Few on a road*: a reader who knows nobody asks of each stretch whether all of its devices can have
been on one road. If not, somebody was on others, and fewer than k of them. *All passages but one*
and *last speed*: a reader knows everything but on which road a device passed, or how fast it was.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.street_hours import (
    MOST_SPEED_MPS,
    SPEED_STEP_MPS,
    Passages,
    PublishedStretches,
    mean_and_spread,
    stretches_of,
)
from anonymizer.audit.attack import WITHOUT, Attack, Criterion, Question, Subject
from anonymizer.audit.counts_audit import CountsCase
from anonymizer.audit.findings import Finding
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

N_TARGETS = 20
MOST_HOURS = 4
"""Of more hours, so many random ones are attacked."""
_AROUND = 64
"""Roads, in the public order, among which the reader looks for the passage that is not known."""
_SPEEDS = np.arange(0.0, MOST_SPEED_MPS, 0.1)
_SPEED_BAR = f"the most exposed tenth no more precisely than {SPEED_STEP_MPS:g} m/s"
Publish: TypeAlias = Callable[[Passages], PublishedStretches]


class _Hour(NamedTuple):
    passages: Passages
    shown: PublishedStretches


def streets(case: CountsCase) -> list[Finding]:
    """Attack the traffic by street and hour that is made of the same positions, if any is."""
    if case.passages is None:
        return []
    return attack_streets(*case.passages, k=case.counts.k, seed=case.seed)


def attack_streets(
    passages: Passages, is_road: BoolArray, *, k: int, seed: int, publish: Publish | None = None
) -> list[Finding]:
    """Attack traffic by street and hour.

    `passages`, `is_road`: see `HourPassages`; `seed`: of the choice of hours and targets;
    `publish`: what is attacked, by default what is published with this k.

    Returns
    -------
    findings
        `few on a road`: `fewest`, the devices of the figure that has fewest, and `n_told`, roads
        that fewer than k devices passed and of which the reader can prove that they were not
        empty, or not all. `all passages but one`: belief in the true road; the control is that
        without a release. `last speed`: how far apart speeds are that explain what is published.

    Notes
    -----
    A road whose traffic can be proven only by comparing it with other hours is not found.
    """
    public = publish or (lambda each: stretches_of(each, len(is_road), k))
    cuts = np.flatnonzero(np.diff(passages.interval)) + 1
    bounds = [0, *cuts.tolist(), len(passages.road)]
    each_hour = [passages.at(slice(a, b)) for a, b in pairwise(bounds) if a < b]
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(each_hour))[:MOST_HOURS])
    hours = [_Hour(each_hour[i], public(each_hour[i])) for i in chosen.tolist()]
    return [
        _few(hours, is_road, public, k),
        _one(hours, is_road, public, rng),
        _last_speed(hours, rng),
    ]


def _few(hours: list[_Hour], is_road: BoolArray, publish: Publish, k: int) -> Finding:
    fewest: list[int] = []
    n_told = n_few = 0
    for hour in hours:
        n_on = np.bincount(hour.passages.road, minlength=len(is_road))
        is_few = (n_on > 0) & (n_on < k)
        n_few += int(is_few.sum())
        for stretch in range(len(hour.shown.n_devices)):
            there = hour.shown.stretch_of[hour.passages.road] == stretch
            fewest.append(len(np.unique(hour.passages.device[there])))
        told = _told(hour.shown, _explained(hour.shown, is_road, n_on, publish, k))
        n_told += int((is_few & told).sum())
    least = min(fewest, default=None)
    return Finding(
        attack="few on a road",
        figures={
            "fewest": least,
            "n_told": n_told,
            "n_few": n_few,
            "n_figures": len(fewest),
            "n_hours": len(hours),
        },
        bar=f"fewest >= {k}, and no road told",
        holds=None if least is None else least >= k and not n_told,
        required=True,
    )


def _told(shown: PublishedStretches, explained: list[list[int]]) -> BoolArray:
    """Return roads on which somebody is known to have passed, or on one of several."""
    told = np.zeros(len(shown.stretch_of), np.bool_)
    for stretch, explains in enumerate(explained):
        if not explains:
            told |= shown.stretch_of == stretch
        elif len(explains) == 1:
            told[explains] = True
    return told


def _explained(
    shown: PublishedStretches, is_road: BoolArray, n_on: IntArray, publish: Publish, k: int
) -> list[list[int]]:
    """Return roads of each stretch on which all of its devices can have been: one or two, or none.

    The reader puts all devices of each stretch on one of its roads, one after the other, and looks
    whether that makes the same stretch. The auditor tries the likeliest roads first.
    """
    stretches = [shown.stretch_of == s for s in range(len(shown.n_devices))]
    roads = [_likeliest(there, n_on, is_road, k) for there in stretches]
    explained: list[list[int]] = [[] for _ in roads]

    def is_open(stretch: int) -> bool:
        # Two roads that may have had everybody prove nothing of each other, nor of a third one.
        found = explained[stretch]
        return len(found) < 2 and all(n_on[road] < k for road in found)

    # Others stay where they are; some explain each other, so that what is left is tried alone.
    every = range(len(roads))
    for group in (every[::2], every[1::2], *([s] for s in every)):
        for turn in range(max((len(roads[s]) for s in group), default=0)):
            tried = [s for s in group if turn < len(roads[s]) and is_open(s)]
            if not tried:
                continue
            chosen = [(e or r)[0] for r, e in zip(roads, explained, strict=True)]
            for s in tried:
                chosen[s] = roads[s][turn]
            again = publish(_everybody_on(np.array(chosen), shown.n_devices))
            for s in tried:
                if chosen[s] not in explained[s] and _is_same(shown, again, s):
                    explained[s].append(chosen[s])
    return explained


def _likeliest(there: BoolArray, n_on: IntArray, is_road: BoolArray, k: int) -> list[int]:
    """Return the roads of a stretch: first those of the smallest areas that k passed."""
    inside = np.where(there, n_on, 0)
    level_of = np.zeros(len(there), np.int64)
    for level in range(len(there).bit_length() - 1):
        level_of += np.repeat(inside.reshape(-1, 1 << level).sum(axis=1) < k, 1 << level)
    roads = np.flatnonzero(there & is_road)
    found: list[int] = roads[np.lexsort((-n_on[roads], level_of[roads]))].tolist()
    return found


def _everybody_on(road: IntArray, n_devices: IntArray) -> Passages:
    """Return passages of so many devices on each road."""
    road = np.repeat(road, n_devices)
    road.sort()
    n = len(road)
    return Passages(np.zeros(n, np.int64), road, np.arange(n), np.full(n, np.nan))


def _is_same(shown: PublishedStretches, again: PublishedStretches, stretch: int) -> bool:
    there = shown.stretch_of == stretch
    other = np.unique(again.stretch_of[there])
    return bool(
        len(other) == 1
        and other[0] >= 0
        and (again.stretch_of == other[0]).sum() == there.sum()
        and again.n_devices[other[0]] == shown.n_devices[stretch]
    )


def _one(
    hours: list[_Hour], is_road: BoolArray, publish: Publish, rng: np.random.Generator
) -> Finding:
    """Look for one passage; who made it, and all others, are known."""
    beliefs: list[tuple[float, float]] = []
    for hour, row in _targets(hours, rng):
        road = int(hour.passages.road[row])
        first = road - road % _AROUND
        around = np.flatnonzero(is_road[first : first + _AROUND]) + first
        known = hour.passages.road[hour.passages.device == hour.passages.device[row]]
        around = around[~np.isin(around, known) | (around == road)]
        fits = [
            _is_alike(hour.shown, publish(_moved(hour.passages, row, at))) for at in around.tolist()
        ]
        beliefs.append((1 / max(sum(fits), 1), 1 / len(around)))
    belief, control = np.array(beliefs).reshape(-1, 2).T
    most = np.sort(belief)[::-1][: max(len(belief) // 10, 1)]
    there = len(belief) > 0
    return Finding(
        attack="all passages but one",
        figures={
            "belief": float(belief.mean()) if there else None,
            "tenth": float(most.mean()) if there else None,
            "belief_control": float(control.mean()) if there else None,
            "n_victims": len(belief),
        },
    )


def _targets(hours: list[_Hour], rng: np.random.Generator) -> Iterator[tuple[_Hour, int]]:
    """Yield random passages that are published, each with its hour."""
    rows = [
        (number, row)
        for number, hour in enumerate(hours)
        if len(hour.shown.n_devices)
        for row in range(len(hour.passages.road))
    ]
    for i in rng.permutation(len(rows))[:N_TARGETS].tolist():
        number, row = rows[i]
        yield hours[number], row


def _moved(passages: Passages, row: int, road: int) -> Passages:
    moved = passages.road.copy()
    moved[row] = road
    return passages._replace(road=moved, speed_mps=np.full(len(moved), np.nan))


def _is_alike(shown: PublishedStretches, other: PublishedStretches) -> bool:
    """Return whether two hours have the same stretches and numbers; speeds are not compared."""
    return all(np.array_equal(a, b) for a, b in zip(shown[:2], other[:2], strict=True))


def _last_speed(hours: list[_Hour], rng: np.random.Generator) -> Finding:
    """Try all speeds of a device; those of all others, and all passages, are known."""
    widths: list[float] = []
    for hour, row in _targets(hours, rng):
        passages = hour.passages
        stretch = int(hour.shown.stretch_of[passages.road[row]])
        if np.isnan(hour.shown.speed_mps[stretch]) or np.isnan(passages.speed_mps[row]):
            continue
        there = hour.shown.stretch_of == stretch
        among = passages.at(there[passages.road] & ~np.isnan(passages.speed_mps))
        widths.append(_width(among, int(passages.device[row]), alone=bool(there.sum() == 1)))
    width: FloatArray = np.sort(widths)
    least = width[: max(len(width) // 10, 1)]
    measured = len(width) > 0
    return Finding(
        attack="last speed",
        figures={
            "width_mps": float(width.mean()) if measured else None,
            "tenth_mps": float(least.mean()) if measured else None,
            "n_victims": len(width),
        },
        bar=_SPEED_BAR,
        holds=bool(least.mean() >= SPEED_STEP_MPS) if measured else None,
    )


def _width(among: Passages, victim: int, *, alone: bool) -> float:
    """Return how many metres a second of all speeds of the device explain what is published."""
    device, speed = among.device, among.speed_mps
    shown = mean_and_spread(device, speed, alone=alone)
    fits = [
        mean_and_spread(device, np.where(device == victim, each, speed), alone=alone) == shown
        for each in _SPEEDS.tolist()
    ]
    return float(np.sum(fits) * (_SPEEDS[1] - _SPEEDS[0]))


ATTACK = Attack(
    "streets",
    Subject.COUNTS,
    streets,
    (
        Question(
            "few on a road",
            Criterion.SINGLING_OUT,
            "Does the traffic of streets tell that somebody was on a road with few others?",
            bar="fewest >= k, and no road told",
        ),
        Question(
            "all passages but one",
            Criterion.INFERENCE,
            "Does somebody who knows all passages of an hour but one learn on which road that was?",
            ("belief",),
            ("belief_control",),
            n="n_victims",
            exposed="tenth",
            exposed_control="belief_control",
            against=WITHOUT,
        ),
        Question(
            "last speed",
            Criterion.INFERENCE,
            "Does somebody who knows all speeds of an hour but one learn how fast that was?",
            bar=_SPEED_BAR,
        ),
    ),
)
