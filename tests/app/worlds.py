"""Small worlds of moving devices, and releases of them made by hand: ideal ones and broken ones."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network

K = 5
SIDE = 20
EPOCH = 10
TTL_S = 4.0

Groups: TypeAlias = list[list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Devices on a grid; tick t closes at second t + 1.

    `node` is where each device truly is, `reports` whether it says so, shape (ticks, devices).
    """

    network: RoadNetwork
    node: IntArray
    reports: BoolArray

    @property
    def n_ticks(self) -> int:
        return len(self.node)

    @property
    def n_devices(self) -> int:
        return int(self.node.shape[1])

    def trace(self) -> Trace:
        tick, device = np.nonzero(self.reports)
        nowhere = np.full(len(tick), np.nan)
        return Trace(
            device_id=tuple(f"device-{d}" for d in range(self.n_devices)),
            device_of=device,
            ts=tick.astype(np.float64) + 0.5,
            lat=nowhere,
            lon=nowhere,
            node=self.node[tick, device],
        )

    def write_trace(self, path: Path) -> Path:
        tick, device = np.nonzero(self.reports)
        rows = [
            f"device-{d},{t + 0.5},{self.node[t, d]}"
            for t, d in zip(tick.tolist(), device.tolist(), strict=True)
        ]
        path.write_text("\n".join(["device_id,ts,node", *rows]))
        return path

    def last_known(self, tick: int, device: int) -> int:
        said = np.flatnonzero(self.reports[: tick + 1, device])
        return int(self.node[said[-1], device])

    def on_air(self, tick: int) -> list[int]:
        """Devices that reported within the time to live before the tick closes."""
        since = max(0, tick - int(TTL_S - 0.5))
        return [int(d) for d in np.flatnonzero(self.reports[since : tick + 1].any(axis=0))]


@dataclass(slots=True)
class Paper:
    """A release being written, and its map."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    device_of: dict[str, str] = field(default_factory=dict)

    def publish(self, tick: int, names: list[str], region: list[int], k: int = K) -> None:
        self.lines += [
            {"pseudonym": name, "time": tick + 1.0, "region": region, "k": k} for name in names
        ]

    def write(self, folder: Path) -> tuple[Path, Path]:
        release, auditor_map = folder / "PUB.jsonl", folder / "MAP.jsonl"
        release.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        auditor_map.write_text(
            "".join(
                json.dumps({"pseudonym": name, "device": device}) + "\n"
                for name, device in self.device_of.items()
            )
        )
        return release, auditor_map


def wandering(*, n_devices: int, n_ticks: int, seed: int) -> World:
    """Devices that wander over a grid, and fall silent now and then for some ticks."""
    rng = np.random.default_rng(seed)
    network = load_network(f"grid:{SIDE}x{SIDE}")
    row, column = rng.integers(SIDE, size=(2, n_devices))
    node = np.empty((n_ticks, n_devices), np.int64)
    for t in range(n_ticks):
        step, along = rng.integers(-1, 2, size=n_devices), rng.random(n_devices) < 0.5
        row = np.clip(row + step * along, 0, SIDE - 1)
        column = np.clip(column + step * ~along, 0, SIDE - 1)
        node[t] = row * SIDE + column
    reports = np.ones((n_ticks, n_devices), bool)
    for d in range(0, n_devices, 7):
        start = int(rng.integers(1, n_ticks))
        reports[start : start + int(rng.integers(1, 2 * EPOCH)), d] = False
    return World(network, node, reports)


def ideal_sessions(world: World, *, seed: int = 0) -> Paper:
    """Each epoch, fixed groups with fresh, permuted pseudonyms and ghosts for the silent."""
    rng, paper = np.random.default_rng(seed), Paper()
    for start, ticks in _epochs(world):
        for g, group in enumerate(_groups(world, start)):
            names = _name(paper, group, f"{start}-{g}", rng)
            for t in ticks:
                paper.publish(t, names, _region(world, t, group))
    return paper


def fixed_pseudonyms(world: World) -> Paper:
    """Groups anew at every tick, each reciprocal; a device is always called the same."""
    paper = Paper()
    paper.device_of = {f"p{d}": f"device-{d}" for d in range(world.n_devices)}
    for t in range(world.n_ticks):
        for group in _groups(world, t):
            paper.publish(t, [f"p{d}" for d in group], _region(world, t, group))
    return paper


def rotating_alone(world: World, *, seed: int = 0) -> Paper:
    """As the ideal, but each device takes its new pseudonym at a time of its own."""
    rng, paper = np.random.default_rng(seed), Paper()
    for start, ticks in _epochs(world):
        turn = start + rng.integers(1, EPOCH, size=world.n_devices)
        for g, group in enumerate(_groups(world, start)):
            old = _name(paper, group, f"{start}-{g}-old", rng)
            new = _name(paper, group, f"{start}-{g}-new", rng)
            who = {name: int(paper.device_of[name].removeprefix("device-")) for name in old + new}
            for t in ticks:
                names = [p for p in old if t < turn[who[p]]] + [p for p in new if t >= turn[who[p]]]
                paper.publish(t, names, _region(world, t, group))
    return paper


def without_ghosts(world: World, *, seed: int = 0) -> Paper:
    """As the ideal, but the pseudonym of a device falls silent with it."""
    rng, paper = np.random.default_rng(seed), Paper()
    for start, ticks in _epochs(world):
        for g, group in enumerate(_groups(world, start)):
            names = _name(paper, group, f"{start}-{g}", rng)
            who = {name: int(paper.device_of[name].removeprefix("device-")) for name in names}
            for t in ticks:
                heard = [name for name in names if who[name] in world.on_air(t)]
                paper.publish(t, heard, _region(world, t, group))
    return paper


CONTROLS: dict[str, Callable[[World], Paper]] = {
    "fixed pseudonyms": fixed_pseudonyms,
    "rotating alone": rotating_alone,
    "without ghosts": without_ghosts,
}


def _epochs(world: World) -> Iterator[tuple[int, range]]:
    for start in range(0, world.n_ticks, EPOCH):
        yield start, range(start, min(start + EPOCH, world.n_ticks))


def _name(paper: Paper, group: list[int], prefix: str, rng: np.random.Generator) -> list[str]:
    names = [f"{prefix}-{i}" for i in range(len(group))]
    for name, d in zip(names, rng.permutation(group).tolist(), strict=True):
        paper.device_of[name] = f"device-{d}"
    return names


def _groups(world: World, tick: int) -> Groups:
    return _split(world, tick, world.on_air(tick))


def _split(world: World, tick: int, devices: list[int]) -> Groups:
    """Halve at the widest side while both halves hold k."""
    if len(devices) < 2 * K:
        return [devices]
    place = np.array([divmod(world.last_known(tick, d), SIDE) for d in devices])
    order = np.argsort(place[:, int(np.ptp(place, axis=0).argmax())], kind="stable").tolist()
    half = len(devices) // 2
    return [
        group
        for part in (order[:half], order[half:])
        for group in _split(world, tick, [devices[i] for i in part])
    ]


def _region(world: World, tick: int, group: list[int]) -> list[int]:
    """Return the rectangle around the last known nodes of the members."""
    row, column = np.divmod([world.last_known(tick, d) for d in group], SIDE)
    return [
        SIDE * r + c
        for r in range(int(row.min()), int(row.max()) + 1)
        for c in range(int(column.min()), int(column.max()) + 1)
    ]
