"""After a clock that was ahead an operator lets streams go on, and no time is published twice."""

import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from anonymizer.pipeline.records.stream_state import ahead_until
from anonymizer.store import RecordStore, back_up
from tests.pipeline.records.made import LENGTH_S, Sent, traffic
from tests.pipeline.records.support import NOW, Rig

DAY, YEAR = 86_400.0, 365.25 * 86_400.0
HERE = NOW - NOW % LENGTH_S
"""A time at which a window begins."""


def windows_at(start: float, *, n: int = 1, seed: int = 1) -> list[Sent]:
    return list(traffic(n_vehicles=24, n_windows=n, seed=seed, start=start))


def told(rig: Rig, parts: list[Sent], *, now: float) -> int:
    """Send parts and close and publish everything; return how many records were published."""
    before = rig.accounts().get("published", 0)
    rig.take(*parts, now=now)
    rig.close(silent=True)
    rig.publish()
    return rig.accounts().get("published", 0) - before


def go_on(rig: Rig, *, now: float) -> int:
    rule = rig.state.windows.rule
    floor = rule.window_of(now) + 1
    n = rig.store.go_on("fleet", floor=floor, starts=rule.span(floor)[0])
    rig.crash()  # the command is a process of its own
    return n


@pytest.mark.parametrize("ahead_s", [3600.0, DAY, 10 * YEAR])
def test_a_stream_goes_on_after_a_clock_that_was_ahead(tmp_path: Path, ahead_s: float) -> None:
    rig = Rig(tmp_path)
    assert told(rig, windows_at(HERE), now=HERE + 60)
    assert told(rig, windows_at(HERE + ahead_s), now=HERE + ahead_s + 60)
    for _ in range(2):
        assert told(rig, windows_at(HERE + 120), now=HERE + 180) == 0
        assert ahead_until(rig.state.windows, now=HERE + 180) == HERE + ahead_s + 60
        rig.crash()
    go_on(rig, now=HERE + 180)
    assert ahead_until(rig.state.windows, now=HERE + 180) is None
    assert told(rig, windows_at(HERE + 180), now=HERE + 180) == 0, "it may have been published"
    assert told(rig, windows_at(HERE + 240), now=HERE + 300)
    rig.crash()
    assert told(rig, windows_at(HERE + 300), now=HERE + 360)
    assert told(rig, windows_at(HERE + ahead_s), now=HERE + ahead_s + 60) == 0
    assert told(rig, windows_at(HERE + ahead_s + 60), now=HERE + ahead_s + 120)


def test_parts_of_times_that_a_wrong_clock_stated_are_erased_and_counted(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    later = HERE + 10 * YEAR
    told(rig, windows_at(later), now=later + 60)
    rig.take(*windows_at(later + 60), now=later + 120)
    assert rig.state.n_held > 0
    n = go_on(rig, now=HERE)
    assert n > 0
    assert (rig.state.n_held, rig.accounts()["late"]) == (0, n)
    assert not rig.close(silent=True)


def test_a_copy_of_what_is_published_goes_on_as_well(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    told(rig, windows_at(HERE + YEAR), now=HERE + YEAR + 60)
    go_on(rig, now=HERE)
    back_up(rig.path, tmp_path / "copy")
    with closing(RecordStore(tmp_path / "copy", keep_published_s=1e9)) as copy:
        stored = copy.recall("fleet", shape=rig.stream.shape, n_sources=3)
    assert stored.released == [(HERE + YEAR, HERE + YEAR + LENGTH_S)]
    assert stored.released_until < HERE


def test_a_leap_of_the_clock_forgets_no_vehicle(tmp_path: Path) -> None:
    """Whoever is forgotten is a newcomer, whose next cover leaves fewer values."""
    rig = Rig(tmp_path)
    told(rig, windows_at(HERE), now=HERE + 60)
    vehicles = [row[0] for row in rig.store._db.execute("SELECT vehicle FROM vehicles")]
    known = rig.store.memories("fleet", vehicles)
    assert len(known) == 24
    others = [
        Sent(f"other-{part.vehicle}", part.source, part.ts, part.values)
        for part in windows_at(HERE + 10 * YEAR, n=3)
    ]
    for window in range(3):
        now = HERE + 10 * YEAR + (window + 1) * LENGTH_S
        assert told(rig, [part for part in others if now - LENGTH_S <= part.ts < now], now=now)
    assert rig.store.memories("fleet", vehicles) == known
    # A year after the leap nobody remembers them any more.
    later = HERE + 11.1 * YEAR
    steps = [HERE + 10 * YEAR + step * 20 * DAY for step in range(1, 20)]
    for start in (at - at % LENGTH_S for at in (*steps, later)):
        some = [
            Sent(f"other-{part.vehicle}", part.source, part.ts, part.values)
            for part in windows_at(start)
        ]
        assert told(rig, some, now=start + 60)
    assert not rig.store.memories("fleet", vehicles)


@pytest.mark.parametrize("seed", range(6))
def test_no_window_is_published_twice_whatever_clocks_and_operators_do(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  no secret
    rig = Rig(tmp_path)
    n_of: Counter[float] = Counter()
    now, n_told = HERE, 0
    for step in range(30):
        now += rng.choice([60.0, 60.0, 180.0])
        wrong = rng.choice([0.0, 0.0, -3600.0, 3600.0, 10 * YEAR, 60.0 - now])
        wall = max(now + wrong, 60.0)
        wall -= wall % LENGTH_S
        rig.take(*windows_at(wall - LENGTH_S, seed=step), now=wall)
        if rng.random() < 0.8:
            for due in rig.flow.due(at_s=rig.clock_s):
                closing_ = rig.flow.anonymize(
                    due, rig.flow.memories(due), time_left=lambda: 0.0, clock=lambda: 0.0
                )
                rig.flow.close(due, closing_, now=wall)
                if closing_.messages:
                    n_of[rig.stream.rule.span(due.window)[0]] += 1
        rig.clock_s += rng.choice([1.0, 1000.0])
        n_told += len(rig.publish())
        if rng.random() < 0.3:
            rig.crash()
        if ahead_until(rig.state.windows, now=wall) is not None and rng.random() < 0.5:
            go_on(rig, now=wall)
            assert ahead_until(rig.state.windows, now=wall) is None
    assert n_told
    assert max(n_of.values()) == 1
