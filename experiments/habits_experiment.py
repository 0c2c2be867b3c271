"""Habits: two weeks of everybody's days against the releases of a third one.

The attack is the audit's. It is tried on simulated commuters and on taxis, in each way to publish,
and on a release that is known to be broken.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from anonymizer.algorithms.attacks.habits import Said
from anonymizer.algorithms.attacks.pieces import PieceRegions
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.app.audit import Case
from anonymizer.app.audit.counts_attack import runs_counted
from anonymizer.app.audit.habits_attack import (
    KnownHabits,
    Later,
    days_on,
    later_days,
    places,
    presence,
    use_habits,
)
from anonymizer.domain.arrays import BoolArray, starts_of
from anonymizer.domain.network import NodeNames, RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.settings import CountSettings, Settings
from experiments.broken_releases import raw_release, with_history
from experiments.commuter_weeks import DAY_S, MONDAY, commuter_weeks
from experiments.scores import Score
from experiments.tracking_experiment import attacked

N_DAYS = 21
KNOWN_DAYS = 14
REPORT_S = 30.0
TICK_S = 10.0
RELEASES: dict[str, dict[str, dict[str, object]]] = {
    "session": {},
    "session, protected trips": {"trips": {"enabled": True}},
    "session, smallest places": {
        "region": {"place_devices": 1},
        "session": {"beat_s": 0},
    },
    "snapshot": {"region": {"mode": "snapshot"}},
}
_TAXI_DAYS = (1211587200, 1212105600)
"""Midnight UTC of the first day, and of the one that is attacked; taxis know no weekend."""


def run_habits(
    network: RoadNetwork,
    *,
    n_people: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> list[Score]:
    """Attack the third week of simulated commuters, in each way to publish."""
    trace = commuter_weeks(network, n_people, n_days=N_DAYS, every_s=REPORT_S, seed=seed).trace
    return list(_attack_all(trace, network, (MONDAY + KNOWN_DAYS) * DAY_S, seed, progress))


def run_taxis(
    network: RoadNetwork,
    data: Path,
    *,
    hours: tuple[float, float] = (16.0, 18.0),
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> list[Score]:
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
    scores = _attack_all(trace, network, float(_TAXI_DAYS[1]), seed, progress)
    return [
        Score(f"taxis: {each.attack}", each.release, each.success, each.control, each.cpu_s,
              each.promised)
        for each in scores
    ]  # fmt: skip


def _attack_all(
    trace: Trace,
    network: RoadNetwork,
    begins_s: float,
    seed: int,
    progress: Callable[[str], None],
) -> Iterator[Score]:
    later = _rows(trace, trace.ts >= begins_s)
    for name, tables in RELEASES.items():
        progress(f"habits: {name}")
        settings = Settings.model_validate(tables)
        case = attacked(later, network, settings, tick_s=TICK_S, seed=seed)
        case = with_history(case, trace, settings)
        yield from _scores(case, name)
        if name == "session":
            yield from count_scores(case)
    progress("habits: raw positions")
    case, _ = raw_release(later, network, tick_s=TICK_S, name_s=DAY_S, seed=seed)
    yield from _scores(with_history(case, trace, Settings()), "raw, a name a day")


def _scores(case: Case, release: str) -> Iterator[Score]:
    begun = time.process_time()
    later = later_days(case)
    if later is None:
        return
    known = use_habits(case, later)
    yield from scores_of(known, release, time.process_time() - begun)


def scores_of(known: KnownHabits, release: str, cpu_s: float) -> Iterator[Score]:
    """Yield the rows of one release."""
    k = float(np.nanmean(known.chance))
    yield Score("habits: name", release, known.name, known.name_control, cpu_s, k)
    yield Score("habits: group", release, known.group, known.group_control, cpu_s)
    yield Score("habits: where", release, known.place, known.place_habits, cpu_s)
    yield Score("habits: where, placebo", release, known.place_placebo, known.place_habits, cpu_s)
    yield Score("habits: there on a day", release, known.presence, known.presence_control, cpu_s)


def count_scores(case: Case) -> Iterator[Score]:
    """Yield what habits tell with safe counts, which have no names and no groups."""
    begun = time.process_time()
    later = later_days(case)
    if later is None:
        return
    counted = counts_said(case, later, CountSettings(privacy="k"))
    place, alone, placebo = places(case, counted)
    on = days_on(case, later.targets)
    there, control = presence(counted, on)
    cpu_s = time.process_time() - begun
    yield Score("habits: where", "safe counts", place, alone, cpu_s)
    yield Score("habits: where, placebo", "safe counts", placebo, alone, cpu_s)
    yield Score("habits: there on a day", "safe counts", there, control, cpu_s)


def counts_said(case: Case, later: Later, settings: CountSettings) -> Later:
    """Return the safe counts of each minute as regions of so many devices."""
    device, ts, node = case.reports
    on = (node >= 0) & (ts >= later.said.ts.min() - settings.every_s)
    cell_of = compact_parts(case.network, settings.cells).astype(np.int64)
    by_cell = np.argsort(cell_of, kind="stable")
    n_in = np.bincount(cell_of, minlength=settings.cells)
    minute = np.ceil(ts[on] / settings.every_s).astype(np.int64)
    # A device is where it reported last in the minute.
    order = np.lexsort((ts[on], device[on], minute))
    minute, device, cell = minute[order], device[on][order], cell_of[node[on][order]]
    last = (np.diff(device, append=-1) != 0) | (np.diff(minute, append=-1) != 0)
    minute, cell = minute[last], cell[last]
    first_cell, end_cell, devices, at_s = [], [], [], []
    for each in np.split(np.arange(len(minute)), np.flatnonzero(np.diff(minute)) + 1):
        run_of, n = runs_counted(cell[each], settings)
        shown = n > 0  # of too few devices nothing is said
        begins = np.searchsorted(run_of, np.arange(len(n)))
        first_cell.append(begins[shown])
        end_cell.append(np.append(begins[1:], settings.cells)[shown])
        devices.append(n[shown])
        at_s.append(np.full(int(shown.sum()), minute[each[0]] * settings.every_s))
    first, end = np.concatenate(first_cell), np.concatenate(end_cell)
    before = starts_of(n_in)
    sizes = before[end] - before[first]
    rows = np.arange(sizes.sum()) + np.repeat(before[first] - starts_of(sizes)[:-1], sizes)
    regions = PieceRegions(
        np.arange(len(first) + 1), starts_of(sizes), by_cell[rows].astype(np.int32)
    )
    when = np.concatenate(at_s)
    said = Said(when, np.arange(len(first)), np.concatenate(devices), regions)
    nobody = np.zeros((len(later.targets), len(first)), bool)
    return later._replace(
        said=said,
        class_of=np.arange(len(first)),
        is_in=nobody,
        until=when + settings.every_s,
    )


def _rows(trace: Trace, kept: BoolArray) -> Trace:
    node: NodeNames | None = None if trace.node is None else trace.node[kept]
    return Trace(
        trace.device_id, trace.device_of[kept], trace.ts[kept], trace.lat[kept], trace.lon[kept],
        node,
    )  # fmt: skip
