"""The attack of somebody who knows habits: name, place and presence on later days."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.attacks.tracking import close_to, most_exposed_tenth
from anonymizer.audit.case import Case, of_any
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.habits import (
    Days,
    Habits,
    Said,
    day_number,
    expected_in,
    is_weekend,
    learn_habits,
    where,
)
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

MOST_TARGETS = 200
_MOST_SCORES = 50_000_000
"""Targets times records, at most: of a large release fewer devices are attacked."""
_MANY_DAYS = 1_000_000
_NEVER = 1e-9
"""Added to what is expected, so that its logarithm is finite."""
N_MOMENTS = 60
"""Random ticks at which the places of targets are guessed."""
MOST_TIMES_CHANCE = 2.0
MOST_TIMES_HABITS = 2.0


class Later(NamedTuple):
    """The days that are attacked, and what was known before them.

    `said`: what is published on the later days, once for each class, by rising class and time;
    `class_of`: of each of its records; `is_in`: which targets are in that class, shape (targets,
    records); `until`: unix seconds until which each holds.
    """

    habits: Habits
    targets: IntArray
    said: Said
    class_of: IntArray
    is_in: BoolArray
    until: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownHabits:
    """What habits tell of each target: means over days or moments, NaN where there are none."""

    name: FloatArray
    name_control: FloatArray
    group: FloatArray
    group_control: FloatArray
    """`name`, `name_control`, `group`, `group_control`: how often a guessed pseudonym of a day is
    the target's, and how often its group is; and the same by the habits of somebody else."""
    chance: FloatArray
    """1/k of the guessed groups."""
    place: FloatArray
    place_habits: FloatArray
    place_placebo: FloatArray
    """`place`, `place_habits`, `place_placebo`: belief in the nodes near the true place: with the
    release, without it, and with what was published at another moment of such an hour."""
    presence: FloatArray
    presence_control: FloatArray
    """`presence`, `presence_control`: how often a day on which the target drove is told from one on
    which it did not; chance is .5. The control uses the habits of somebody else."""


def habits(case: Case) -> list[Finding]:
    """Use what is known of the first two thirds of the days, or of all before the release."""
    later = later_days(case)
    if later is None:
        return []
    known = use_habits(case, later)
    figures: dict[str, Figure] = {"n_targets": len(later.targets)}
    for name in KnownHabits.__slots__:
        found = getattr(known, name)
        figures[name] = of_any(np.mean, found[~np.isnan(found)])
        figures[f"{name}_tenth"] = of_any(most_exposed_tenth, found[~np.isnan(found)])
    return [
        Finding(
            attack="habits",
            figures=figures,
            bar=_BAR,
            holds=_holds(figures),
        )
    ]


def _holds(figures: dict[str, Figure]) -> bool | None:
    name, chance = figures["name"], figures["chance"]
    if name is None or chance is None:
        return None
    holds = name <= MOST_TIMES_CHANCE * chance
    for which in ("", "_tenth"):
        place, alone = figures[f"place{which}"], figures[f"place_habits{which}"]
        if place is not None and alone is not None:
            holds &= place <= MOST_TIMES_HABITS * alone
    return holds


def later_days(case: Case) -> Later | None:
    """Return the days to attack and what is known before them; None without two days."""
    device, ts, node = case.reports
    on = node >= 0
    device, ts, node = device[on], ts[on], node[on]
    begins_s = float(day_number(case.observed.time[:1])[0]) * 86_400.0
    before = np.unique(day_number(ts[ts < begins_s]))
    released = np.unique(day_number(case.observed.time))
    if not len(before):
        if len(released) < 2:
            return None
        begins_s = float(released[max(1, 2 * len(released) // 3)]) * 86_400.0
    known = ts < begins_s
    rng = np.random.default_rng(case.seed)
    usable = np.intersect1d(np.unique(device[known]), np.unique(device[~known]))
    chosen = np.unique(case.class_of, return_index=True)[1]
    n_records = int(np.diff(case.observed.first_record_of)[chosen].sum())
    most = min(MOST_TARGETS, max(1, _MOST_SCORES // n_records))
    targets = np.sort(rng.permutation(usable)[:most])
    if not len(targets):
        return None
    learned = learn_habits(
        Days(device, ts, node).only(known),
        targets,
        n_devices=case.truth.n_devices,
        n_nodes=case.network.n_nodes,
    )
    return _later(case, learned, targets, begins_s)


def _later(case: Case, learned: Habits, targets: IntArray, begins_s: float) -> Later | None:
    observed = case.observed
    _, chosen = np.unique(case.class_of, return_index=True)
    some = observed.of_pseudonyms(chosen)
    time = observed.time[some.tick_of]
    rows = np.flatnonzero(time >= begins_s)
    if not len(rows) or not len(targets):
        return None
    until = np.full(observed.n_records, np.inf) if case.until is None else case.until
    first, size = observed.first_record_of[chosen], np.diff(some.first_record_of)
    of_record = np.repeat(first - some.first_record_of[:-1], size) + np.arange(len(time))
    class_of = some.pseudonym_of[rows]
    members = np.unique(case.class_of * case.truth.n_devices + case.device_of)
    key = class_of * case.truth.n_devices + targets[:, None]
    n_devices = np.bincount(members // case.truth.n_devices).astype(np.float64)
    return Later(
        habits=learned,
        targets=targets,
        said=Said(time[rows], some.region_of[rows], n_devices[class_of], case.pieces()),
        class_of=class_of,
        is_in=np.isin(key, members),
        until=until[of_record][rows],
    )


def use_habits(case: Case, later: Later) -> KnownHabits:
    """Guess names, places and presence of the targets on the later days."""
    score = expected_in(later.habits, later.said)
    other, day = np.roll(np.arange(len(score)), 1), day_number(later.said.ts)
    name, group, chance = _names(case, later, score, day)
    name_control, group_control, _ = _names(case, later, score[other], day)
    return KnownHabits(
        name,
        name_control,
        group,
        group_control,
        chance,
        *places(case, later),
        *presence(later, days_on(case, later.targets), score),
    )


def days_on(case: Case, targets: IntArray) -> IntArray:
    """Return, in one number, the target and the day of each day on which a target reported."""
    device, ts, node = case.reports
    row = np.searchsorted(targets, device)
    on = (node >= 0) & (targets[np.minimum(row, len(targets) - 1)] == device)
    found: IntArray = np.unique(row[on] * _MANY_DAYS + day_number(ts[on]))
    return found


def _names(
    case: Case, later: Later, score: FloatArray, day: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Guess the likeliest group of each target on each day on which it is published."""
    k = case.observed.largest_k_of[np.unique(case.class_of, return_index=True)[1]]
    n_targets = len(score)
    right, named, chance, n = np.zeros((4, n_targets))
    for each in np.unique(day).tolist():
        rows = np.flatnonzero(day == each)
        # A group that publishes several times is as likely as its regions are on average.
        first = np.flatnonzero(np.diff(later.class_of[rows], prepend=-1) != 0)
        likely = np.add.reduceat(np.log(score[:, rows] + _NEVER), first, axis=1)
        best = (likely / np.diff(first, append=len(rows))).argmax(axis=1)
        best, there = rows[first[best]], later.is_in[:, rows].any(axis=1)
        hit = later.is_in[np.arange(n_targets), best] & there
        right += hit
        named += hit / later.said.n_devices[best]
        chance += np.where(there, 1.0 / k[later.class_of[best]], 0.0)
        n += there
    with np.errstate(invalid="ignore"):
        return named / n, right / n, chance / n


def places(case: Case, later: Later) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Guess where targets are at random ticks: with the release, without, and with another one."""
    observed, said = case.observed, later.said
    rng = np.random.default_rng(case.seed)
    ticks = np.flatnonzero(observed.time >= said.ts.min())
    ticks = np.sort(rng.permutation(ticks)[:N_MOMENTS])
    total, n = np.zeros((3, len(later.targets))), np.zeros(len(later.targets))
    moments = observed.time[ticks]
    for tick, ts in zip(ticks.tolist(), moments.tolist(), strict=True):
        on = np.flatnonzero(case.truth.on_air[tick, later.targets])
        if not len(on):
            continue
        place = case.truth.place[tick, later.targets[on]]
        close = close_to(case.network, place)
        for i, at in enumerate((ts, None, _another(moments, ts))):
            rows = np.zeros(0, np.int64) if at is None else _holding(later, at)
            belief = where(later.habits, said, rows, on, ts)
            total[i, on] += (belief * close).sum(axis=1)
        n[on] += 1
    with np.errstate(invalid="ignore"):
        found = total / n
    return found[0], found[1], found[2]


def _another(moments: FloatArray, ts: float) -> float | None:
    """Return the moment of another day that is nearest to this time of day; None if none is."""
    day = day_number(np.array([ts]))
    days = day_number(moments)
    other = moments[(days != day) & (is_weekend(days) == is_weekend(day))]
    if not len(other):
        return None
    apart = np.abs((other - ts + 43_200.0) % 86_400.0 - 43_200.0)
    return float(other[apart.argmin()])


def _holding(later: Later, ts: float) -> IntArray:
    """Return the newest record of each class that holds at a moment."""
    now = later.said.ts <= ts + TIME_SLACK_S
    rows = np.flatnonzero(now & (later.until > ts))
    last = np.diff(later.class_of[rows], append=-1) != 0
    found: IntArray = rows[last]
    return found


def presence(
    later: Later, on: IntArray, score: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return how often a day with a target is told from one without, of the same kind of day.

    `on`: from `days_on`; `score`: from `expected_in`, if it is known. The control uses the habits
    of somebody else, shape (targets,) each.
    """
    score = expected_in(later.habits, later.said) if score is None else score
    # A group that publishes several times speaks once.
    n_of, day = np.bincount(later.class_of), day_number(later.said.ts)
    weight = 1.0 / n_of[later.class_of]
    days = np.unique(day)
    total = np.stack([(score[:, day == d] * weight[day == d]).sum(axis=1) for d in days], axis=1)
    found = np.full((2, len(score)), np.nan)
    for target in range(len(score)):
        there = np.isin(target * _MANY_DAYS + days, on)
        pairs = is_weekend(days[there])[:, None] == is_weekend(days[~there])
        for i, row in enumerate((total[target], total[target - 1])):
            if pairs.any():
                more = np.sign(row[there][:, None] - row[~there])[pairs]
                found[i, target] = float((more.mean() + 1) / 2)
    return found[0], found[1]


_BAR = (
    f"name <= {MOST_TIMES_CHANCE:g} mean(1/k); place and its tenth <= "
    f"{MOST_TIMES_HABITS:g} those of habits alone"
)
ATTACK = Attack(
    "habits",
    Subject.POSITIONS,
    habits,
    (
        Question(
            "habits",
            Criterion.LINKABILITY,
            "Is a device recognized by where it usually is?",
            ("name",),
            ("chance", "name_control"),
            "n_targets",
            exposed="name_tenth",
            exposed_control="name_control_tenth",
            bar=_BAR,
        ),
    ),
    needs_map=True,
)
