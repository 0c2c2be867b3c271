"""Attacks on releases of others: each finds what is there, and nothing where nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.foreign.attack import ForeignAttack, NotMounted, Trials, Verdict, judged
from anonymizer.audit.foreign.attacks.struck_out import bounds
from anonymizer.audit.foreign.foreign_report import attacked, page, text
from anonymizer.audit.foreign.persons import homes_of, most_visited, owners
from anonymizer.audit.foreign.registry import attacks
from anonymizer.audit.foreign.release import (
    BareRelease,
    CountRelease,
    ForeignCase,
    PointRelease,
    plane_of,
)
from anonymizer.audit.foreign.runs import joined
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from experiments.blur_schemes import NOISY, SCHEMES
from experiments.commuter_weeks import commuter_weeks
from tests.lanes import each_of_both, one_in

DEGREE_M = 111_195.0
ROADS = load_network("city:900")
TRUTH = replace(commuter_weeks(ROADS, 24, n_days=14, every_s=20.0, seed=5).trace, node=None)
OFTEN = replace(commuter_weeks(ROADS, 48, n_days=14, every_s=5.0, seed=5).trace, node=None)
ON_POINTS = ["homes", "holes", "offsets", "four known places", "histories", "linking", "tracking"]


def _moved(trace: Trace, metres: FloatArray) -> Trace:
    """Move each row by some metres to the north and east, shape (n, 2)."""
    east = metres[:, 1] / np.cos(np.radians(trace.lat))
    return replace(trace, lat=trace.lat + metres[:, 0] / DEGREE_M, lon=trace.lon + east / DEGREE_M)


def _noise(seed: int) -> Trace:
    """Return positions anywhere in the town, at the true times."""
    rng = np.random.default_rng(seed)
    lat, lon = (
        rng.uniform(each.min(), each.max(), TRUTH.n_rows) for each in (TRUTH.lat, TRUTH.lon)
    )
    return replace(TRUTH, lat=lat, lon=lon)


def _with_holes(truth: Trace) -> Trace:
    """Leave out what is within 500 m of each home."""
    plane = plane_of(truth)
    homes = homes_of(truth, plane)
    far_m = np.hypot(*(plane.of(truth.lat, truth.lon) - homes[truth.device_of]).T)
    kept = far_m > 500
    return replace(
        truth, device_of=truth.device_of[kept], ts=truth.ts[kept], lat=truth.lat[kept],
        lon=truth.lon[kept],
    )  # fmt: skip


def _offset() -> Trace:
    rng = np.random.default_rng(8)
    angle = rng.uniform(0, 2 * np.pi, TRUTH.n_devices)
    metres = 450 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return _moved(TRUTH, metres[TRUTH.device_of])


def _rotated() -> Trace:
    """Give a new id to each trip: what follows a silence of ten minutes."""
    rows = np.lexsort((TRUTH.ts, TRUTH.device_of))
    new = (np.diff(TRUTH.device_of[rows], prepend=-1) != 0) | (
        np.diff(TRUTH.ts[rows], prepend=0) > 600
    )
    number = np.empty(TRUTH.n_rows, np.int64)
    number[rows] = np.cumsum(new) - 1
    return replace(
        TRUTH, device_of=number, device_id=tuple(f"trip-{i}" for i in range(number.max() + 1))
    )


SAYS_MUCH = {
    "homes": (TRUTH, TRUTH),
    "holes": (_with_holes(OFTEN), OFTEN),
    "offsets": (_offset(), TRUTH),
    "four known places": (TRUTH, TRUTH),
    "histories": (TRUTH, TRUTH),
    "linking": (_rotated(), TRUTH),
    "tracking": (TRUTH, TRUTH),
}
"""A release, and the truth."""


def _case(trace: Trace, truth: Trace = TRUTH, *, seed: int = 0) -> ForeignCase:
    return ForeignCase(PointRelease(trace, "points"), truth, ROADS, seed=seed)


def _named(name: str) -> ForeignAttack:
    return next(each for each in attacks() if each.name == name)


@pytest.mark.parametrize("name", ON_POINTS)
def test_an_attack_finds_something_in_a_release_that_says_much(name: str) -> None:
    attack = next(each for each in attacks() if each.name == name)
    trials = attack.mount(_case(*SAYS_MUCH[name]))
    assert isinstance(trials, Trials), trials
    verdict = judged(attack, trials, seed=0)
    assert verdict.broken, verdict
    assert verdict.low <= verdict.success <= verdict.high


@pytest.mark.parametrize(("name", "seed"), each_of_both(ON_POINTS, [1, 2]))
def test_an_attack_stays_at_its_control_on_noise(name: str, seed: int) -> None:
    attack = next(each for each in attacks() if each.name == name)
    trials = attack.mount(_case(_noise(seed), seed=seed))
    assert isinstance(trials, Trials), trials
    assert not judged(attack, trials, seed=seed).broken


def test_without_the_truth_a_release_is_judged_by_what_it_says_twice() -> None:
    noise, much = (
        attacked(ForeignCase(PointRelease(each, "points"), None, None))
        for each in (_noise(3), TRUTH)
    )
    assert not any(each.broken for each in noise.verdicts), noise.verdicts
    assert {"homes", "histories"} <= {each.attack for each in much.verdicts if each.broken}
    assert much.headline.startswith("Of 24 ids, ")
    assert "may be their home" in much.headline
    assert "no proof" in noise.headline
    assert not {"four known places", "tracking"} - set(much.not_mounted)


def test_a_report_names_nobody_and_no_place() -> None:
    report = attacked(_case(TRUTH))
    for said in (text(report), page(report), str(report.json())):
        assert "person-" not in said
        assert "48." not in said


def test_ids_that_are_called_otherwise_are_known_by_where_they_were() -> None:
    rotated = _rotated()
    found = owners(_case(rotated))
    first = np.unique(rotated.device_of, return_index=True)[1]
    assert (found == TRUTH.device_of[first]).mean() > 0.95


@given(st.integers(0, 10**6), st.floats(0, 300))
def test_where_most_are_is_found_in_any_noise(seed: int, noise_m: float) -> None:
    """Twenty times 60 of 100 around one place, the others anywhere within 8 km."""
    rng = np.random.default_rng(seed)
    errors_m = []
    for _ in range(20):
        there = np.array([1000.0, -500.0]) + rng.normal(0, noise_m, (60, 2))
        elsewhere = rng.uniform(-4000, 4000, (40, 2))
        found = most_visited(rng.permutation(np.concatenate([there, elsewhere])))
        errors_m.append(np.hypot(found[0] - 1000, found[1] + 500))
    assert np.mean(errors_m) <= 1 + 0.4 * noise_m  # 300 seeds of 8 noises each: 0.32 at most


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 1000))
def test_equal_success_and_control_are_never_broken(n: int, trials: int, seed: int) -> None:
    success = (np.random.default_rng(seed).random((n, trials)) < 0.3).astype(float)
    attack = attacks()[0]
    verdict = judged(attack, Trials(success, success), seed=seed)
    assert not verdict.broken
    assert verdict.low <= verdict.success <= verdict.high
    assert verdict.worst >= 0


def test_few_people_who_are_all_found_leave_a_doubt() -> None:
    attack = attacks()[0]

    def low(n: int) -> float:
        return judged(attack, Trials(np.ones((n, 2)), np.zeros((n, 2))), seed=0).low

    assert low(5) < low(20) < low(200)
    assert low(200) > 0.95


def _counts(table: np.ndarray, least: int, *, totals: bool) -> CountRelease:
    n_areas, n_times = table.shape
    area, time = (each.ravel() for each in np.indices(table.shape))
    count = table.ravel().astype(float)
    if totals:
        area = np.concatenate([area, np.arange(n_areas), np.full(n_times, -1)])
        time = np.concatenate([time, np.full(n_areas, -1), np.arange(n_times)])
        count = np.concatenate([count, table.sum(axis=1), table.sum(axis=0)])
    kept = count > 0
    count = np.where(count < least, np.nan, count)
    return CountRelease(area[kept], time[kept], count[kept], n_areas, n_times, (1, least - 1))


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 6))
def test_what_was_struck_out_lies_within_the_bounds(seed: int, n_areas: int, n_times: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 15, (n_areas, n_times))
    release = _counts(table, 10, totals=True)
    low, high = bounds(release)
    true = np.concatenate([table.ravel(), table.sum(axis=1), table.sum(axis=0)])
    true = true[true > 0]
    assert (low <= true).all()
    assert (true <= high).all()


def test_totals_give_back_what_was_struck_out_and_nothing_else_does() -> None:
    table = np.random.default_rng(4).integers(10, 90, (12, 24))
    table[np.arange(12), np.arange(12)] = np.arange(12) % 9 + 1
    attack = _named("differencing")
    case = ForeignCase(_counts(table, 10, totals=True), None, None)
    trials = attack.mount(case)
    assert isinstance(trials, Trials)
    assert trials.success.mean() == 1.0
    assert judged(attack, trials, seed=0).broken
    silent = attack.mount(replace(case, release=_counts(table, 10, totals=False)))
    assert isinstance(silent, NotMounted)
    many = np.random.default_rng(5).integers(1, 10, (12, 24))
    vague = attack.mount(replace(case, release=_counts(many, 10, totals=True)))
    assert isinstance(vague, Trials)
    assert vague.success.mean() < 0.2


def _verdict(name: str, case: ForeignCase) -> Verdict:
    attack = next(
        each for each in attacks() if each.name == name and isinstance(case.release, each.needs)
    )
    trials = attack.mount(case)
    assert isinstance(trials, Trials), trials
    return judged(attack, trials, seed=case.seed)


def _bare(trace: Trace) -> BareRelease:
    one = replace(trace, device_of=np.zeros(trace.n_rows, np.int64), device_id=("all",))
    return BareRelease(joined(one), "cells without ids")


def _in_cells(trace: Trace, degrees: float) -> Trace:
    lat, lon = (np.round(each / degrees) * degrees for each in (trace.lat, trace.lon))
    return replace(trace, lat=lat, lon=lon)


def _sleepers() -> Trace:
    """Return twelve people who are at home by night and anywhere by day, every half hour."""
    rng = np.random.default_rng(6)
    ts = np.repeat(1.8e9 + np.arange(0, 12 * 86_400, 1800.0), 12)
    who = np.tile(np.arange(12), len(ts) // 12)
    homes = rng.uniform(0, 0.1, (12, 2))
    at_home = ts % 86_400 < 8 * 3600
    place = np.where(at_home[:, None], homes[who], rng.uniform(0, 0.1, (len(ts), 2)))
    names = tuple(f"p{i}" for i in range(12))
    return _in_cells(Trace(names, who, ts, 48 + place[:, 0], place[:, 1]), 0.005)


@pytest.mark.parametrize("degrees", [1e-6, 0.005])
def test_cells_without_ids_are_joined_and_followed(degrees: float) -> None:
    release = _bare(_in_cells(TRUTH, degrees))
    assert _verdict("joining", ForeignCase(release, None, None)).broken
    assert _verdict("tracking", ForeignCase(release, TRUTH, None)).broken


def test_cells_without_ids_tell_where_somebody_sleeps() -> None:
    assert _verdict("nights", ForeignCase(_bare(_sleepers()), None, None)).broken


@pytest.mark.parametrize("seed", one_in(3, [1, 2, 3]))
def test_cells_that_say_nothing_are_neither_joined_nor_slept_in(seed: int) -> None:
    mixed = np.random.default_rng(seed).permutation(TRUTH.n_rows)
    noise = replace(TRUTH, lat=TRUTH.lat[mixed], lon=TRUTH.lon[mixed])
    assert not _verdict("joining", ForeignCase(_bare(noise), None, None, seed=seed)).broken
    assert not _verdict("tracking", ForeignCase(_bare(noise), TRUTH, None, seed=seed)).broken
    sleepers = _sleepers()
    mixed = np.random.default_rng(seed).permutation(sleepers.n_rows)
    noise = replace(sleepers, lat=sleepers.lat[mixed], lon=sleepers.lon[mixed])
    case = ForeignCase(_bare(noise), None, None, seed=seed)
    attack = _named("nights")
    trials = attack.mount(case)
    assert isinstance(trials, NotMounted) or not judged(attack, trials, seed=seed).broken


def _waves(seed: int, *, smooth: bool) -> np.ndarray:
    """Return counts of 30 areas at 200 times that rise and fall, or the same in random order."""
    rng = np.random.default_rng(seed)
    level = 14 + 12 * np.sin(np.arange(200) / 9 + rng.uniform(0, 6, (30, 1)))
    table = np.maximum(np.round(level), 0)
    return table if smooth else np.stack([rng.permutation(each) for each in table])


def test_counts_before_and_after_give_away_one_that_is_struck_out() -> None:
    case = ForeignCase(_counts(_waves(1, smooth=True), 10, totals=False), None, None)
    assert _verdict("neighbours in time", case).broken


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counts_in_random_order_give_away_nothing(seed: int) -> None:
    release = _counts(_waves(seed, smooth=False), 10, totals=False)
    assert not _verdict("neighbours in time", ForeignCase(release, None, None, seed=seed)).broken
    assert not _verdict("coming and going", ForeignCase(release, None, None, seed=seed)).broken


def test_a_person_who_comes_or_goes_is_seen_in_counts_that_hardly_change() -> None:
    """As of residents by area and day: now and then one moves in, out, or to another area."""
    rng = np.random.default_rng(3)
    change = np.zeros((20, 150), np.int64)
    for day in np.flatnonzero(rng.random(150) < 0.6):
        change[rng.integers(20), day] += rng.choice([-1, 1])
    table = 60 + rng.integers(0, 40, (20, 1)) + np.cumsum(change, axis=1)
    case = ForeignCase(_counts(table, 1, totals=False), None, None)
    assert _verdict("coming and going", case).broken
    noisy = rng.laplace(0, 2, table.size).round(3)
    release = replace(case.counts, count=case.counts.count + noisy)
    assert not _verdict("coming and going", ForeignCase(release, None, None)).broken


def test_somebody_is_told_to_be_in_counts_and_not_with_noise_for_all_of_a_person() -> None:
    exact, noisy = (
        scheme.publish(TRUTH, np.random.default_rng(1))[0]
        for scheme in (next(each for each in SCHEMES if "counts" in each.name), NOISY)
    )
    assert isinstance(exact, CountRelease)
    assert isinstance(noisy, CountRelease)
    assert noisy.is_noisy
    all_shown = replace(exact, count=np.nan_to_num(exact.count, nan=1.0))
    assert _verdict("membership", ForeignCase(all_shown, TRUTH, None)).broken
    assert not any(each.broken for each in attacked(ForeignCase(noisy, TRUTH, None)).verdicts)
