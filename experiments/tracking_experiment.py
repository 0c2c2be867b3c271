"""Frontier of tracking: how large regions are, against what they say about where somebody is.

Simulated devices are cloaked with several settings of the regions, and each release is attacked by
the audit's tracking adversaries. Raw positions without names, rounded to cells as large as these
regions, are attacked for comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import Case, case_of
from anonymizer.audit.attacks.tracking import HORIZONS_MIN, HeardRelease, beliefs
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released, read_auditor_map, read_release
from anonymizer.pipeline.positions.tick.engine import PositionEngine, TickRelease
from anonymizer.settings import Settings
from experiments.weak_readers import WITH_RELEASE, weak_readings
from simulator.traffic import Traffic

START = 1_800_000_000.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings of regions to compare: keys of `[region]`."""

    mode: Literal["session", "snapshot"]
    place_devices: int
    min_nodes: int

    @property
    def settings(self) -> Settings:
        """The gateway's settings, otherwise by default."""
        region: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return Settings.model_validate({"region": region})


CHOICES = (
    Choice("session", 1, 6),
    Choice("session", 2, 6),
    Choice("session", 3, 6),
    Choice("session", 4, 6),
    Choice("snapshot", 1, 6),
    Choice("snapshot", 2, 6),
    Choice("snapshot", 3, 6),
)


@dataclass(frozen=True, slots=True)
class Point:
    """What one choice costs and says, on average over several fleets."""

    choice: Choice
    n_devices: int
    nodes: float
    """Mean number of nodes in a region, as records see it."""
    belief: dict[str, float]
    """By adversary (`none`, `raw`, `regions`, `pieces`, `followed`): mean probability of the nodes
    near the true place after the longest horizon."""

    @property
    def strongest(self) -> float:
        """Belief of the adversary who knows the release and believes most."""
        return max(self.belief[name] for name in WITH_RELEASE if name in self.belief)


def run_tracking(
    network: RoadNetwork,
    *,
    sizes: Sequence[int],
    choices: Sequence[Choice] | None = None,
    n_fleets: int,
    seconds: int,
    seed: int,
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> list[Point]:
    """Cloak and attack fleets of several sizes with each choice.

    Parameters
    ----------
    sizes
        Numbers of devices; they report every second.
    choices
        What to compare. None: `CHOICES`.
    n_fleets
        Number of simulated fleets of each size.
    seconds
        Length of a trace; longer than the longest horizon of tracking.
    seed
        Equal arguments and seed give equal points.
    progress
        Called with the share that is done, and with what comes next.
    """
    choices = CHOICES if choices is None else choices
    points, n_done, n_all = [], 0, len(sizes) * len(choices) * n_fleets
    for n_devices in sizes:
        traces = [
            drive(network, n_devices, seconds=seconds, seed=seed + fleet)
            for fleet in range(n_fleets)
        ]
        for choice in choices:
            found = []
            for trace in traces:
                progress(n_done / n_all, f"{n_devices:,} devices, {choice.mode}")
                found.append(_attack(trace, network, choice, seed=seed))
                n_done += 1
            names = found[0][1]
            belief = {name: float(np.mean([each[name] for _, each in found])) for name in names}
            nodes = float(np.mean([nodes for nodes, _ in found]))
            points.append(Point(choice, n_devices, nodes, belief))
    return points


def drive(network: RoadNetwork, n_devices: int, *, seconds: int, seed: int) -> Trace:
    """Return simulated devices that report every second."""
    traffic = Traffic(network, n_devices, seed=seed)
    places = [traffic.advance(float(second)) for second in range(seconds)]
    return Trace(
        device_id=tuple(f"device-{d}" for d in range(n_devices)),
        device_of=np.tile(np.arange(n_devices), seconds),
        ts=START + np.repeat(np.arange(seconds, dtype=np.float64), n_devices),
        lat=np.concatenate([lat for lat, _ in places]),
        lon=np.concatenate([lon for _, lon in places]),
    )


def attacked(
    trace: Trace, network: RoadNetwork, settings: Settings, *, tick_s: float = 1.0, seed: int = 0
) -> Case:
    """Cloak a trace, and return what the audit's attacks need."""
    return released(trace, network, settings, tick_s=tick_s, seed=seed)[0]


def released(
    trace: Trace,
    network: RoadNetwork,
    settings: Settings,
    *,
    tick_s: float = 1.0,
    seed: int = 0,
    watch: Callable[[PositionEngine, TickRelease], None] = lambda _engine, _tick: None,
) -> tuple[Case, Released]:
    """Cloak a trace; return what the audit's attacks need, and the release."""
    with TemporaryDirectory() as folder:
        out, named = Path(folder, "out.jsonl"), Path(folder, "map.jsonl")
        cloak_trace(
            trace,
            network,
            settings,
            tick_s=tick_s,
            seed=seed,
            out=out,
            auditor_map=named,
            watch=watch,
        )
        release = read_release(out, network)
        device_of = read_auditor_map(named, pseudonym=release.pseudonym, device_id=trace.device_id)
    case = case_of(trace, release, network, settings, device_of=device_of, tick_s=tick_s, seed=seed)
    return case, release


def _attack(
    trace: Trace, network: RoadNetwork, choice: Choice, *, seed: int
) -> tuple[float, dict[str, float]]:
    """Return the nodes in a region, and each adversary's belief."""
    case = attacked(trace, network, choice.settings, seed=seed)
    nodes = float(case.observed.region_size[case.observed.region_of].mean())
    found = beliefs(
        HeardRelease(case.observed, case.class_of, case.until),
        case.truth,
        network,
        case.piece_of,
        interval_s=case.reports.interval_s,
        adversaries=("none", "raw", *WITH_RELEASE),
        further=weak_readings(case, nodes_per_cell=nodes),
        seed=seed,
    )
    return nodes, {name: float(found.at(name, HORIZONS_MIN[-1]).mean()) for name in found.near}
