"""Habits: two weeks of everybody's days against the releases of a third one.

The attack is the audit's. It is tried on simulated commuters and on taxis, in each way to publish,
and on a release that is known to be broken. The two weeks are true days, or cloaked ones with the
name of every pseudonym.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit import Case
from anonymizer.audit.attacks.habits import (
    KnownHabits,
    Later,
    days_on,
    later_days,
    places,
    presence,
    use_habits,
)
from anonymizer.audit.case import Reports
from anonymizer.audit.mathematics.habits import Said, slot_of
from anonymizer.audit.read_counts import NoisyCounts, runs_counted
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, starts_of
from anonymizer.domain.network import NodeNames, RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.settings import CountSettings, Settings
from experiments.broken_releases import raw_release, with_history
from experiments.commuter_weeks import DAY_S, MONDAY, commuter_weeks
from experiments.scores import Score
from experiments.tracking_experiment import attacked

N_DAYS = 21
KNOWN_DAYS = 14
REPORT_S = 30.0
TICK_S = 10.0
_SMALLEST: dict[str, dict[str, object]] = {
    "region": {"place_devices": 1},
    "session": {"beat_s": 0},
}
RELEASES: dict[str, dict[str, dict[str, object]]] = {
    "session": {},
    "session, protected trips": {"trips": {"enabled": True}},
    "session, smallest places": _SMALLEST,
    "snapshot": {"region": {"mode": "snapshot"}},
}
CLOAKED_DAYS: dict[str, dict[str, dict[str, object]]] = {
    "cloaked habits": {},
    "habits cloaked in the smallest places": _SMALLEST,
}
"""How the days are released that an adversary knows only cloaked, with the names; the second one is
known to tell much."""
COUNTS = {
    "safe counts": CountSettings(privacy="k"),
    "counts, ε = 1 an hour": CountSettings(every_s=900.0, cells=32, privacy="dp", period_s=3600.0),
    "counts, ε = 100 an hour": CountSettings(
        every_s=900.0, cells=512, privacy="dp", period_s=3600.0, epsilon=100.0
    ),
}
"""The last one promises next to nothing: what habits find in it, they find in counts."""
_LEAST_COUNT = 0.01
_TAXI_DAYS = (1211587200, 1212105600)
"""Midnight UTC of the first day, and of the one that is attacked; taxis know no weekend."""


def run_habits(
    network: RoadNetwork,
    *,
    n_people: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Attack the third week of simulated commuters, in each way to publish."""
    trace = commuter_weeks(network, n_people, n_days=N_DAYS, every_s=REPORT_S, seed=seed).trace
    yield from _attack_all(trace, network, (MONDAY + KNOWN_DAYS) * DAY_S, seed, progress)


def run_taxis(
    network: RoadNetwork,
    data: Path,
    *,
    hours: tuple[float, float] = (16.0, 18.0),
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Attack two hours of a day of taxis, whose days before it are known.

    Parameters
    ----------
    data
        Folder with the recording of San Francisco.
    hours
        Hours of the day (UTC), of each day.
    """
    import polars as pl  # noqa: PLC0415  only here

    rows = pl.read_parquet(data / "traces" / "cabspotting_sf_2008-05-24_30.parquet").sort("ts")
    of_day = pl.col("ts").mod(DAY_S) / 3600
    rows = rows.filter((of_day >= hours[0]) & (of_day < hours[1]))
    names, device = np.unique(rows["device_id"].cast(str).to_numpy(), return_inverse=True)
    ts = rows["ts"].to_numpy().astype(np.float64)
    trace = Trace(
        tuple(names.tolist()), device.astype(np.int64), ts, rows["lat"].to_numpy(),
        rows["lon"].to_numpy(),
    )  # fmt: skip
    for each in _attack_all(trace, network, float(_TAXI_DAYS[1]), seed, progress):
        yield replace(each, attack=f"taxis: {each.attack}")


def _attack_all(
    trace: Trace,
    network: RoadNetwork,
    begins_s: float,
    seed: int,
    progress: Callable[[str], None],
) -> Iterator[Score]:
    later, before = _rows(trace, trace.ts >= begins_s), _rows(trace, trace.ts < begins_s)
    days = {}
    for name, tables in CLOAKED_DAYS.items():
        progress(f"{name}: days before")
        settings = Settings.model_validate(tables)
        days[name] = named_days(
            attacked(before, network, settings, tick_s=TICK_S, seed=seed), seed=seed
        )
    for name, tables in RELEASES.items():
        progress(f"habits: {name}")
        settings = Settings.model_validate(tables)
        case = attacked(later, network, settings, tick_s=TICK_S, seed=seed)
        yield from _scores(with_history(case, trace, settings), name)
        if name == "session":
            yield from _scores(with_days(case, days["cloaked habits"]), name, "cloaked habits")
            yield from count_scores(with_history(case, trace, settings), seed=seed)
    progress("habits: raw positions")
    case, _ = raw_release(later, network, tick_s=TICK_S, name_s=DAY_S, seed=seed)
    yield from _scores(with_history(case, trace, Settings()), "raw, a name a day")
    for name, each in days.items():
        yield from _scores(with_days(case, each), "raw, a name a day", name)


def named_days(case: Case, *, seed: int) -> Reports:
    """Return what a release tells of each device to who knows whose pseudonyms they are.

    A record is read as one report: at a node of its region, drawn evenly from the pieces of the
    region and from the nodes of a piece.
    """
    observed, regions = case.observed, case.pieces()
    rng = np.random.default_rng(seed)
    first, end = (regions.first_piece_of[observed.region_of + i] for i in (0, 1))
    piece = rng.integers(first, end)
    at = rng.integers(regions.first_node_of[piece], regions.first_node_of[piece + 1])
    device = case.device_of[observed.pseudonym_of]
    return Reports(device, observed.time[observed.tick_of], regions.node[at])


def with_days(case: Case, days: Reports) -> Case:
    """Return a case whose reports before the release are these."""
    later = case.reports
    return replace(
        case,
        reports=Reports(
            np.concatenate((days.device, later.device)),
            np.concatenate((days.ts, later.ts)),
            np.concatenate((days.node, later.node)),
        ),
    )


def _scores(case: Case, release: str, attack: str = "habits") -> Iterator[Score]:
    begun = time.process_time()
    later = later_days(case)
    if later is None:
        return
    known = use_habits(case, later)
    yield from scores_of(known, release, time.process_time() - begun, attack)


def scores_of(
    known: KnownHabits, release: str, cpu_s: float, attack: str = "habits"
) -> Iterator[Score]:
    """Yield the rows of one release."""
    k = float(np.nanmean(known.chance))
    found: dict[str, tuple[FloatArray, FloatArray, float | None]] = {
        "name": (known.name, known.name_control, k),
        "group": (known.group, known.group_control, None),
        "where": (known.place, known.place_habits, None),
        "where, placebo": (known.place_placebo, known.place_habits, None),
        "there on a day": (known.presence, known.presence_control, None),
    }
    for what, (success, control, promised) in found.items():
        yield Score(f"{attack}: {what}", release, success, control, cpu_s, promised)


def count_scores(case: Case, *, seed: int) -> Iterator[Score]:
    """Yield what habits tell with counts, which have no names and no groups."""
    later = later_days(case)
    if later is None:
        return
    on = days_on(case, later.targets)
    for name, settings in COUNTS.items():
        begun = time.process_time()
        counted = counts_said(case, later, settings, seed=seed)
        place, alone, placebo = places(case, counted)
        there, control = presence(counted, on)
        cpu_s = time.process_time() - begun
        yield Score("habits: where", name, place, alone, cpu_s)
        yield Score("habits: where, placebo", name, placebo, alone, cpu_s)
        yield Score("habits: there on a day", name, there, control, cpu_s)


def counts_said(case: Case, later: Later, settings: CountSettings, *, seed: int = 0) -> Later:
    """Return the counts of each interval as regions of so many devices.

    Of counts with noise, devices are those that are expected, given the noise and what is usual at
    that time of day; what remains below `_LEAST_COUNT` is left out.
    """
    times, cell = _cells_at(case, float(later.said.ts.min()) - settings.every_s, settings)
    cell_of = compact_parts(case.network, settings.cells).astype(np.int64)
    by_cell = np.argsort(cell_of, kind="stable")
    n_in = np.bincount(cell_of, minlength=settings.cells)
    if settings.privacy == "k":
        first, end, devices, when = _safe(cell, times, settings)
    else:
        usual = _usual(times, cell_of, later, settings)
        expected = _given_noise(cell, times, usual, settings, seed)
        t, first = np.nonzero(expected > _LEAST_COUNT)
        end, devices, when = first + 1, expected[t, first], times[t]
    before = starts_of(n_in)
    sizes = before[end] - before[first]
    rows = np.arange(sizes.sum()) + np.repeat(before[first] - starts_of(sizes)[:-1], sizes)
    regions = PieceRegions(
        np.arange(len(first) + 1), starts_of(sizes), by_cell[rows].astype(np.int32)
    )
    said = Said(when, np.arange(len(first)), devices, regions)
    nobody = np.zeros((len(later.targets), len(first)), bool)
    return later._replace(
        said=said,
        class_of=np.arange(len(first)),
        is_in=nobody,
        until=when + settings.every_s,
    )


def _cells_at(case: Case, begins_s: float, settings: CountSettings) -> tuple[FloatArray, IntArray]:
    """Return the ends of the intervals, and the last cell of each device in each of them.

    Shapes (times,) and (times, devices); negative for a device that does not report.
    """
    device, ts, node = case.reports
    on = (node >= 0) & (ts >= begins_s)
    cell_of = compact_parts(case.network, settings.cells).astype(np.int64)
    step = np.ceil(ts[on] / settings.every_s).astype(np.int64)
    order = np.argsort(ts[on], kind="stable")
    first = int(step.min())
    cell = np.full((int(step.max()) - first + 1, case.truth.n_devices), -1, np.int64)
    cell[step[order] - first, device[on][order]] = cell_of[node[on][order]]
    times = (first + np.arange(len(cell), dtype=np.float64)) * settings.every_s
    return times.astype(np.float64), cell


def _safe(
    cell: IntArray, times: FloatArray, settings: CountSettings
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return first and last cell of each run that is told, its devices, and when."""
    first_cell, end_cell, devices, when = [], [], [], []
    for row, at_s in zip(cell, times.tolist(), strict=True):
        if not (row >= 0).any():
            continue
        run_of, n = runs_counted(row[row >= 0], settings)
        shown = n > 0  # of too few devices nothing is said
        begins = np.searchsorted(run_of, np.arange(len(n)))
        first_cell.append(begins[shown])
        end_cell.append(np.append(begins[1:], settings.cells)[shown])
        devices.append(n[shown])
        when.append(np.full(int(shown.sum()), at_s))
    first, end = np.concatenate(first_cell), np.concatenate(end_cell)
    return first, end, np.concatenate(devices), np.concatenate(when)


def _usual(
    times: FloatArray, cell_of: IntArray, later: Later, settings: CountSettings
) -> FloatArray:
    """Return what is usual in each cell in the intervals, shape (times, cells)."""
    slots = slot_of(times - settings.every_s / 2).tolist()
    rows = [np.bincount(cell_of, later.habits.of_all(s), settings.cells) for s in slots]
    return np.stack(rows).astype(np.float64)


def _given_noise(
    cell: IntArray, times: FloatArray, usual: FloatArray, settings: CountSettings, seed: int
) -> FloatArray:
    """Return the best linear estimate of the devices in each cell, shape (times, cells)."""
    noisy = NoisyCounts(settings, times, seed).read(np.ascontiguousarray(cell.T))
    total = np.maximum(noisy.sum(axis=1, keepdims=True), 1.0)
    mean = total * usual / usual.sum(axis=1, keepdims=True)
    variance = noise_of(settings).scale ** 2
    estimate: FloatArray = mean + mean / (mean + variance) * (noisy - mean)
    return np.maximum(estimate, 0.0).astype(np.float64)


def _rows(trace: Trace, kept: BoolArray) -> Trace:
    node: NodeNames | None = None if trace.node is None else trace.node[kept]
    return Trace(
        trace.device_id, trace.device_of[kept], trace.ts[kept], trace.lat[kept], trace.lon[kept],
        node,
    )  # fmt: skip
