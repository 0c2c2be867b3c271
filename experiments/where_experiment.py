"""How well somebody is hidden who is in one of several fleets: one row of figures a fleet.

Run it in any work tree, with the settings to try:

```text
export PYTHONPATH=$PWD
python -m experiments.where_experiment --quick --fleet even:50 --fleet lots:200:0.5
python -m experiments.where_experiment --set region.max_nodes=4000 --set session.beat_s=10
python -m experiments.where_experiment --fleet taxis:18 --data /path/to/data
```

| fleet | |
|---|---|
| `even:N` | N devices spread over `city:10000`, nine in ten drive |
| `even:N:NODES` | the same in a city of so many nodes |
| `lots:N:SHARE` | the same, but SHARE of them stand in five lots; victims drive |
| `taxis:HOUR` | taxis of San Francisco, 15 minutes of several days; victims that move |

Each row has the belief in the nodes within 300 m of the true place 1, 3 and 5 minutes after one
known position, by the adversary of `audit stream` who follows groups, and who is told the true
pieces of each group and their levels, too: the mean of all victims, the mean of the most exposed
tenth, and the share of victims whose belief is above one half. Beside it is the same without a
release (`none`), with a release of other devices (`placebo`), and with hindsight. `times` is
`followed` in multiples of `none`. `age` is the time since what is known of a device was published,
`valid` the share of device-time in which it is valid. `--quick` has some hundred victims and takes
at most a minute of CPU for each fleet; `--no-hindsight` takes half as long. `--csv FILE` keeps the
figures, one line a fleet, for the table of `where_table` and the picture of `where_chart`.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.atoms import LEVELS
from anonymizer.algorithms.positions.cloaks.beats import beat_of
from anonymizer.algorithms.positions.district_operator import DistrictOperator
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import (
    ADVERSARIES,
    N_DRAWS,
    Beliefs,
    HeardRelease,
    beliefs,
    exposed,
    most_exposed_tenth,
    steps_of,
)
from anonymizer.audit.mathematics.lives import Handed
from anonymizer.audit.mathematics.motion import Motion, learn_motion
from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.engine import PositionEngine, TickRelease
from anonymizer.settings import Settings
from experiments.result_files import Row as Record
from experiments.result_files import rows_written
from experiments.tracking_experiment import START, drive, released
from simulator.traffic import Traffic

FLEETS = (
    "even:20",
    "even:50",
    "even:100",
    "even:200",
    "even:1000",
    "even:20:2000",
    "even:50:3000",
    "lots:200:0.5",
    "lots:200:0.75",
    "taxis:18",
    "taxis:4",
)
CITY = "city:10000"
SECONDS = 720
"""Moments of a fleet lie within some minutes, each with all of the release that adversaries read
before it and after."""
TICK_S = 1.0
"""Fleets are cloaked in ticks of so many seconds; the gateway's are shorter by default."""
N_LOTS = 5
LOT_M = 60.0
"""Devices of a lot are within this distance of its middle."""
N_STARTS = 4
TAXIS_S = 900
TAXIS_ZONE_S = 7 * 3600
"""San Francisco is so far behind UTC."""
TAXIS_DAYS = (1211155200, 1211587200, 1211673600, 1211760000, 1211846400, 1211932800, 1212019200)
"""Midnight UTC of days of the recording; each is attacked with the release of the next one."""
N_TRAINED = 4000
"""Fewest devices from which the adversary learns how devices move. Without a release, who learns
from four times as many believes 4 to 12 % more after 5 minutes, who learns from 1,000 a fifth to a
half less."""


class Scene(NamedTuple):
    """One fleet, and another one on the same network."""

    trace: Trace
    other: Trace
    """`trace`, `other`: the fleet that is attacked, and one whose release says nothing about it."""
    victims: BoolArray
    """Which devices of `trace` may be targets."""
    trained: Trace
    """A third fleet, from which the adversary learns how devices move."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the releases of one kind of fleet say, over several fleets."""

    fleet: str
    minutes: tuple[int, ...]
    near: dict[str, FloatArray]
    """Belief by adversary, shape (victims, minutes)."""
    nodes: float
    valid: float
    age_s: float
    cpu_s: float
    pooled: tuple[int, int]
    """Number of fleets, and of moments of each."""

    def figures(self, minute: int) -> dict[str, tuple[float, float, float]]:
        """Return mean, mean of the most exposed tenth and share above one half, by adversary."""
        column = self.minutes.index(minute)
        return {name: summary(each[:, column]) for name, each in self.near.items()}

    def record(self, settings: str) -> Record:
        """Return the figures under the names of `COLUMNS`; `settings` says what was not default.

        Ratios are to the belief without a release, after the longest time.
        """
        found = self.figures(self.minutes[-1])
        none, exposed_share = found.pop("none"), found["followed"][2]
        n_fleets, n_moments = self.pooled
        cells: Record = {"fleet": self.fleet, "settings": settings}
        cells |= {"fleets": n_fleets, "moments": n_moments, "victims": len(self.near["none"])}
        for name in ADVERSARIES[1:]:
            of = found.get(name)
            cells[name] = of and of[0] / none[0]
            cells[f"{name}_tenth"] = of and of[1] / none[1]
        cells |= {"high": self.highest(np.mean), "tenth_high": self.highest(most_exposed_tenth)}
        cells["exposed"] = exposed_share
        served = {"nodes": self.nodes, "valid": self.valid, "age_s": self.age_s}
        return {**cells, "none": none[0], "none_tenth": none[1], **served, "cpu_s": self.cpu_s}

    def highest(self, of: Callable[[FloatArray], float | np.floating[Any]]) -> float:
        """Return the upper end of the interval of 95 % of a ratio, over resampled victims.

        Of who follows groups and who looks back, that of the one for whom it is higher.
        """
        none, n = self.near["none"][:, -1], len(self.near["none"])
        drawn = np.random.default_rng(0).integers(n, size=(N_DRAWS, n))
        ends = [
            np.quantile([of(belief[some, -1]) / of(none[some]) for some in drawn], 0.975)
            for name, belief in self.near.items()
            if name in ADVERSARIES[2:]
        ]
        return float(max(ends))


COLUMNS = (
    "fleet",
    "settings",
    "fleets",
    "moments",
    "victims",
    *(name for each in ADVERSARIES for name in (each, f"{each}_tenth")),
    "high",
    "tenth_high",
    "exposed",
    "nodes",
    "valid",
    "age_s",
    "cpu_s",
)


def summary(belief: FloatArray) -> tuple[float, float, float]:
    """Return the mean, the mean of the highest tenth, and the share above one half."""
    return float(belief.mean()), most_exposed_tenth(belief), exposed(belief)


def even(network: RoadNetwork, n: int, seed: int) -> tuple[Trace, BoolArray]:
    """Return devices that drive all over the network, and who of them may be a victim."""
    return drive(network, n, seconds=SECONDS, seed=seed), np.ones(n, bool)


def in_lots(network: RoadNetwork, n: int, share: float, seed: int) -> tuple[Trace, BoolArray]:
    """Return devices of which a share stands in five lots, and who of them may be a victim."""
    rng = np.random.default_rng(seed)
    lots = np.random.default_rng(0).choice(network.n_nodes, N_LOTS, replace=False)
    stands = rng.permutation(n)[: round(share * n)]
    traffic = Traffic(network, n, seed=seed, parked_share=0.0)
    places = [traffic.advance(float(second)) for second in range(SECONDS)]
    lat, lon = (np.array(each) for each in zip(*places, strict=True))
    lot = lots[rng.integers(N_LOTS, size=len(stands))]
    degrees = LOT_M / 111_195.0
    around = rng.uniform(-degrees, degrees, (2, len(stands)))
    lat[:, stands] = network.lat[lot] + around[0]
    lon[:, stands] = network.lon[lot] + around[1] / np.cos(np.radians(network.lat[lot]))
    trace = Trace(
        device_id=tuple(f"device-{d}" for d in range(n)),
        device_of=np.tile(np.arange(n), SECONDS),
        ts=START + np.repeat(np.arange(SECONDS, dtype=np.float64), n),
        lat=lat.ravel(),
        lon=lon.ravel(),
    )
    victims = np.ones(n, bool)
    victims[stands] = False
    return trace, victims


def taxis(data: Path, hour: int) -> list[Trace]:
    """Return the taxis of a quarter of an hour of each day, all at the times of the first day."""
    import polars as pl  # noqa: PLC0415  only here

    files = sorted((data / "traces").glob("cabspotting*.parquet"))
    rows = pl.concat([pl.read_parquet(file) for file in files])
    found = []
    for day in TAXIS_DAYS:
        begin = day + TAXIS_ZONE_S + 3600 * hour
        some = rows.filter((pl.col("ts") >= begin) & (pl.col("ts") < begin + TAXIS_S)).sort("ts")
        names, device = np.unique(some["device_id"].cast(str).to_numpy(), return_inverse=True)
        found.append(
            Trace(
                device_id=tuple(names.tolist()),
                device_of=device.astype(np.int64),
                ts=START + some["ts"].to_numpy().astype(np.float64) - begin,
                lat=some["lat"].to_numpy(),
                lon=some["lon"].to_numpy(),
            )
        )
    return found


def together(traces: Sequence[Trace]) -> Trace:
    """Return the devices of several traces as one fleet; who is in two of them counts as two."""
    n_before = np.cumsum([0, *(each.n_devices for each in traces)])
    ts = np.concatenate([each.ts for each in traces])
    order = np.argsort(ts, kind="stable")
    device = np.concatenate([n + each.device_of for n, each in zip(n_before, traces, strict=False)])
    return Trace(
        device_id=tuple(f"{i}-{d}" for i, each in enumerate(traces) for d in each.device_id),
        device_of=device[order],
        ts=ts[order],
        lat=np.concatenate([each.lat for each in traces])[order],
        lon=np.concatenate([each.lon for each in traces])[order],
    )


def scenes(fleet: str, n_fleets: int, data: Path) -> tuple[RoadNetwork, Iterator[Scene]]:
    """Return the network of a fleet by its name, and scenes on it."""
    kind, *numbers = fleet.split(":")
    if kind == "taxis":
        days = taxis(data, int(numbers[0]))
        n_days = len(days)
        return load_network(str(data / "networks" / "san_francisco")), (
            Scene(day, other, np.ones(day.n_devices, bool), together(rest))
            for day, other, *rest in (days[i:] + days[:i] for i in range(min(n_fleets, n_days)))
        )
    network = load_network(f"city:{numbers[1]}" if kind == "even" and numbers[1:] else CITY)
    share = float(numbers[1]) if kind == "lots" else 0.0

    def fleet_of(seed: int, n: int) -> tuple[Trace, BoolArray]:
        return in_lots(network, n, share, seed) if share else even(network, n, seed)

    n = int(numbers[0])
    trained, _ = fleet_of(999, max(n, N_TRAINED))
    pairs = ((fleet_of(1 + i, n), fleet_of(501 + i, n)[0]) for i in range(n_fleets))
    return network, (Scene(trace, other, victims, trained) for (trace, victims), other in pairs)


def run_fleet(
    fleet: str,
    settings: Settings,
    *,
    data: Path,
    n_fleets: int,
    n_targets: int,
    n_starts: int = N_STARTS,
    adversaries: Sequence[str] = ADVERSARIES,
) -> Row:
    """Cloak fleets of one kind and attack what is published.

    Parameters
    ----------
    n_fleets, n_starts, n_targets
        Fleets, moments of each, and most victims from each moment.
    """
    begun = time.process_time()
    network, all_scenes = scenes(fleet, n_fleets, data)
    moving_only = fleet.startswith("taxis")
    if moving_only:
        settings = with_values(settings, ["presence.ttl_s=240"])
    found: list[Beliefs] = []
    kept: list[tuple[float, float, float]] = []
    motion: Motion | None = None
    for i, scene in enumerate(all_scenes):
        case, release, heard = heard_release(scene.trace, network, settings)
        other = heard_release(scene.other, network, settings)[2]
        if other.handed is not None:
            shares = other.handed.shares(other.observed)
            heard, other = heard._replace(level_share=shares), other._replace(level_share=shares)
        if motion is None or moving_only:
            motion = motion_learned(scene.trained, network, settings, case.reports.interval_s)
        found.append(
            beliefs(
                heard,
                case.truth,
                network,
                case.piece_of,
                interval_s=case.reports.interval_s,
                n_starts=n_starts,
                n_targets=n_targets,
                seed=i,
                placebo=other,
                victims=scene.victims,
                motion=motion,
                adversaries=adversaries,
            )
        )
        kept.append(served(case, release))
    near = {
        name: np.concatenate(
            [each.near[name][each.moves if moving_only else slice(None)] for each in found]
        )
        for name in found[0].near
    }
    nodes, valid, age = np.mean(kept, axis=0).tolist()
    cpu_s = time.process_time() - begun
    return Row(fleet, found[0].minutes, near, nodes, valid, age, cpu_s, (len(found), n_starts))


class _Levels:
    """Notes the level of the pieces as which each device is published, at each tick.

    Groups most of whose members move have levels of their own: their beat tells.
    """

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self.level_at: dict[tuple[float, int], int] = {}

    def __call__(self, engine: PositionEngine, tick: TickRelease) -> None:
        if isinstance(engine.operator, DistrictOperator):
            return
        cloak = engine.operator.state()["cloak"]
        if "level" not in cloak or not len(tick.release.member):
            return
        sizes, level = np.diff(cloak["first_member_of"]), cloak["level"]
        if len(level) == len(sizes):  # one for each group
            level = np.repeat(level, sizes)
        elif self._beat_s:
            widest = np.maximum.reduceat(level, cloak["first_member_of"][:-1])
            moves = cloak["beat_s"] < 0.9 * beat_of(self._beat_s, np.array(LEVELS)[widest])
            level = level + len(LEVELS) * np.repeat(moves, sizes)
        level_of = dict(zip(cloak["member"].tolist(), level.tolist(), strict=True))
        at = round(tick.published_s, 3)
        for slot in tick.release.member.tolist():
            self.level_at[at, slot] = level_of.get(slot, 0)


def heard_release(
    trace: Trace, network: RoadNetwork, settings: Settings
) -> tuple[Case, Released, HeardRelease]:
    """Cloak a trace; return it for an adversary who is told the true pieces and levels."""
    levels = _Levels(settings.session.beat_s)
    case, release = released(trace, network, settings, tick_s=TICK_S, watch=levels)
    observed, handed = case.observed, None
    if levels.level_at and case.piece_of is not None:
        first = observed.time[observed.first_tick_of].round(3).tolist()
        level_of = [
            levels.level_at[at, slot]
            for at, slot in zip(first, case.device_of.tolist(), strict=True)
        ]
        place = case.true_node_of(np.arange(observed.n_records)).astype(np.int64)
        n_levels = len(case.piece_of)
        level, moves = np.array(level_of) % len(LEVELS), np.array(level_of) // len(LEVELS)
        pieces = np.concatenate([case.piece_of, case.piece_of])
        handed = Handed(level + n_levels * moves, place, pieces)
    return case, release, HeardRelease(observed, case.class_of, release.until, handed)


def served(case: Case, release: Released) -> tuple[float, float, float]:
    """Return nodes a record, the share of device-time with a valid region, and its mean age.

    A record holds until the next one of its pseudonym if that is at most a tick later than
    announced, as readers are told to read it.
    """
    observed = case.observed
    nodes = float(observed.region_size[observed.region_of].mean())
    device = case.device_of[observed.pseudonym_of]
    at = observed.time[observed.tick_of]
    until = release.until.copy()
    goes_on = np.flatnonzero(np.diff(observed.pseudonym_of) == 0)
    late = at[goes_on + 1] - until[goes_on]
    until[goes_on] += np.where(late <= TICK_S, late, 0.0)
    order = np.lexsort((at, device))
    device, at, until = device[order], at[order], until[order]
    following = np.where(np.append(np.diff(device) == 0, False), np.append(at[1:], np.inf), np.inf)
    begin, end = observed.time[0] + 60.0, observed.time[-1]
    ends = np.minimum(np.minimum(until, following), end)
    from_s, to_s = np.clip(at, begin, end) - at, np.maximum(ends, begin) - at
    valid_s = np.maximum(to_s - from_s, 0.0)
    age = (np.maximum(to_s, from_s) ** 2 - from_s**2).sum() / 2 / valid_s.sum()
    gaps = np.diff(np.clip(observed.time, begin, end), append=end)
    present_s = float((case.truth.on_air.sum(axis=1) * gaps).sum())
    return nodes, float(valid_s.sum() / present_s), float(age)


def motion_learned(
    trace: Trace, network: RoadNetwork, settings: Settings, interval_s: float
) -> Motion:
    """Learn how the devices of a trace move in a step."""
    fine_s, step_s = steps_of(interval_s)
    from anonymizer.audit.stream_case import reports_of  # noqa: PLC0415

    reports = reports_of(trace, network, settings)
    n_steps = int((trace.ts[-1] - trace.ts[0]) / fine_s) + 1
    place = np.full((n_steps, trace.n_devices), -1, np.int32)
    step = np.ceil((reports.ts - trace.ts[0]) / fine_s).astype(np.int64)
    inside = step < n_steps
    place[step[inside], reports.device[inside]] = reports.node[inside]
    # Who is silent for a step or two has not moved, as far as anybody knows.
    for t in range(1, n_steps):
        place[t] = np.where(place[t] < 0, place[t - 1], place[t])
    everybody, every = np.ones(trace.n_devices, bool), round(step_s / fine_s)
    return learn_motion(network, place, learned_from=everybody, tick_s=fine_s, every=every)


def with_values(settings: Settings, values: Sequence[str]) -> Settings:
    """Return the settings with others, each as TABLE.KEY=VALUE."""
    tables: dict[str, Any] = settings.model_dump(exclude_unset=True)
    for each in values:
        name, _, value = each.partition("=")
        table, _, key = name.partition(".")
        tables.setdefault(table, {})[key] = value
    return Settings.model_validate(tables)


def header(minutes: Sequence[int]) -> str:
    """Return the head of the table."""
    cells = ["fleet", "victims"]
    for minute in minutes:
        cells += [f"{minute} min: {name}" for name in (*ADVERSARIES, "times")]
    cells += ["nodes", "valid", "age s", "CPU s"]
    return "\n".join([f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"])


def line(row: Row) -> str:
    """Return a row of the table: mean / most exposed tenth / above one half, and ratios."""
    cells = [row.fleet, str(len(row.near["none"]))]
    for minute in row.minutes:
        found = row.figures(minute)
        cells += [
            "{:.3f} / {:.2f} / {:.0%}".format(*found[name]) if name in found else ""
            for name in ADVERSARIES
        ]
        none, followed = found["none"], found["followed"]
        cells.append(f"{followed[0] / none[0]:.2f} / {followed[1] / none[1]:.2f}")
    cells += [f"{row.nodes:.0f}", f"{row.valid:.2f}", f"{row.age_s:.0f}", f"{row.cpu_s:.0f}"]
    return f"| {' | '.join(cells)} |"


def one_fleet_parser(description: str | None, *, n_targets: int) -> argparse.ArgumentParser:
    """Return what reads the options of an experiment about one fleet; `n_targets` of each."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--fleet", default="even:1000", help="as in where_experiment")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--fleets", type=int, default=2, help="number of fleets that are pooled")
    parser.add_argument("--targets", type=int, default=n_targets, help="most victims each time")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONYMIZER_DATA", ".")))
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--fleet", action="append", help="default: all of them")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--fleets", type=int, help="number of fleets that are pooled")
    parser.add_argument("--starts", type=int, default=N_STARTS, help="moments of each fleet")
    parser.add_argument("--targets", type=int, help="most victims from each moment")
    parser.add_argument("--quick", action="store_true", help="fewer victims")
    parser.add_argument("--no-hindsight", action="store_true", help="leave out who looks back")
    parser.add_argument("--csv", type=Path, default=Path(os.devnull), help="keep the figures")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONYMIZER_DATA", ".")))
    options = parser.parse_args(arguments)
    settings = with_values(Settings(), options.set)
    say = partial(print, flush=True)

    def records() -> Iterator[Record]:
        for fleet in options.fleet or FLEETS:
            n_fleets, n_targets = size_of(fleet, quick=options.quick)
            row = run_fleet(
                fleet,
                settings,
                data=options.data,
                n_fleets=options.fleets or n_fleets,
                n_starts=options.starts,
                n_targets=options.targets or n_targets,
                adversaries=ADVERSARIES[: 3 if options.no_hindsight else 4],
            )
            say(line(row))
            yield row.record(" ".join(options.set))

    say(header((1, 3, 5)))
    for _ in rows_written(records(), COLUMNS, options.csv):
        pass


def size_of(fleet: str, *, quick: bool) -> tuple[int, int]:
    """Return how many fleets to pool, and how many victims to follow from each moment."""
    few = fleet.startswith("taxis") or fleet == "even:20"
    return (3 if few else 2, 12) if quick else (5, 25)


if __name__ == "__main__":
    main()
