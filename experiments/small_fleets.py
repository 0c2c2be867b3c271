"""Answers about fleets that are too small for regions: people of a household, vans.

`python -m experiments.small_fleets` publishes noisy counts of their true positions, as `[counts]`
with `privacy = "w-event"` does, answers three questions from them with the client, and compares the
answers with the truth. An adversary who knows everything but one thing asks for that.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import numpy as np

from anonymizer import client
from anonymizer.algorithms.positions.device_keys import slots_as_keys
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.client.cells import Cells
from anonymizer.client.counts import Counts, counted_cells
from anonymizer.client.tables import Table
from anonymizer.client.time_parts import parts_of_time
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.outputs.counts import PrivatePublisher
from anonymizer.outputs.counts.counted_devices import CountedDevices
from anonymizer.outputs.counts.private_counts import BoundedCounts
from anonymizer.outputs.counts.trip_durations import TripDurations, durations_of
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings
from experiments.commuter_weeks import DAY_S, commuter_weeks

REPORT_S = 60.0
TICK_S = 300.0
N_DRAWS = 10
"""Of noise: answers of a single one may be near or far by chance."""


class Fleet(NamedTuple):
    """How many devices there are, for how long they are counted, and how."""

    name: str
    n_devices: int
    n_days: int
    every_s: float
    cells: int
    trip_durations: bool = False

    @property
    def settings(self) -> Settings:
        """The settings under which the gateway counts them: ε = 1 for each interval."""
        counts = {
            "privacy": "w-event",
            "every_s": self.every_s,
            "period_s": self.every_s,
            "cells": self.cells,
            "trip_durations": self.trip_durations,
        }
        return Settings.model_validate({"counts": counts})


FLEETS = (
    Fleet("three people", 3, 56, 21_600.0, 2),
    Fleet("five people", 5, 56, 21_600.0, 2),
    Fleet("forty vans", 40, 28, 3_600.0, 4),
)


class Answer(NamedTuple):
    """How near an answer is to the truth."""

    fleet: str
    question: str
    """`fleet`, `question`: whose, and what was asked."""
    n: int
    """Numbers in the answer."""
    error: float
    """Sum of the errors of these numbers over the sum of the true ones."""
    held: float
    """Share of the intervals of 95 % with the truth in them."""


class Secrets(NamedTuple):
    """What an adversary finds who knows all that the others did.

    Attributes
    ----------
    fleet
        Whose.
    hour, habit
        Share of right guesses whether somebody was out in one interval of one day; and which part
        of the day somebody is out most, of all four weeks.
    hour_chance, habit_chance
        Likewise without what is published.
    """

    fleet: str
    hour: float
    hour_chance: float
    habit: float
    habit_chance: float


class Counted(NamedTuple):
    """What is counted: number and numbers of each interval, and the cell of each device in it.

    `cell`, `duration`: shape (intervals, devices), -1 where a device was not out, or had no trip;
    `seconds`: median duration of the trips of each device that had some.
    """

    number: list[int]
    numbers: list[IntArray]
    cell: IntArray
    duration: IntArray
    seconds: list[list[float]]


class Published(NamedTuple):
    """Noisy counts, as the client reads them and by cell, and the truth about the same intervals.

    `noisy`: shape (intervals, cells); `timed`: by duration, with `trip_durations`; `cell` and
    `duration`: as of `Counted`.
    """

    counts: Counts
    noisy: IntArray
    cell: IntArray
    timed: IntArray
    duration: IntArray


def count(trace: Trace, network: RoadNetwork, settings: Settings) -> Counted:
    """Count the devices of a trace as the gateway does, in whole intervals."""
    node = NodeLocator(network, limit_m=settings.network.snap_limit_m).locate(trace.lat, trace.lon)
    devices = CountedDevices(settings.counts, network)
    bounded = BoundedCounts(settings.counts, most_devices=trace.n_devices)
    trips = TripDurations(settings, keys=slots_as_keys)
    tick = np.floor(trace.ts / TICK_S).astype(np.int64)
    nobody = np.full(trace.n_devices, -1)
    cells, durations, medians = list[IntArray](), list[IntArray](), list[list[float]]()
    found = Counted([], [], nobody, nobody, medians)
    every = round(settings.counts.every_s / TICK_S)
    for number in range(int(tick[0]), (int(tick[-1]) // every + 1) * every + 1):
        rows = slice(*np.searchsorted(tick, [number, number + 1]))
        slot = trace.device_of[rows].astype(np.int32)
        ended = devices.tick(slot, trace.ts[rows], node[rows], now=number * TICK_S)
        tag = np.zeros(len(slot))
        positions = Positions(slot, trace.ts[rows], trace.lat[rows], trace.lon[rows], tag)
        seconds = trips.tick(positions, node[rows], now=number * TICK_S)
        if ended is None or seconds is None or not ended.is_whole:
            continue
        duration = durations_of(seconds, ended.key)
        numbers = bounded.of(
            ended.cell, ended.before, ended.key, end_s=ended.end_s, duration=duration
        )
        if numbers is None:
            raise ValueError("more devices than are remembered")
        found.number.append(ended.number)
        found.numbers.append(numbers)
        cells.append(nobody.copy())
        durations.append(nobody.copy())
        cells[-1][ended.key], durations[-1][ended.key] = ended.cell, duration
        medians.append([median(each) for each in seconds.values()])
    return found._replace(cell=np.stack(cells), duration=np.stack(durations))


def publish(counted: Counted, network: RoadNetwork, settings: Settings) -> Published:
    """Publish what was counted as the gateway does, with noise of its own."""
    publisher = PrivatePublisher(settings, network, None)
    messages = [
        made.payload
        for number, numbers in zip(counted.number, counted.numbers, strict=True)
        for made in publisher.publish(number, [numbers])
        if isinstance(made, Outgoing)
    ]
    publisher.close()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "counts.jsonl"
        path.write_bytes(b"\n".join(messages))
        counts = client.read_counts(path, network=network)
    bodies = [msgspec.json.decode(each) for each in messages]
    told = [i for i, body in enumerate(bodies) if "devices" in body]  # not the first interval
    timed = [bodies[i].get("durations", {}).get("devices", []) for i in told]
    noisy = np.array([bodies[i]["devices"] for i in told])
    return Published(counts, noisy, counted.cell[told], np.array(timed), counted.duration[told])


def answers(fleet: Fleet, found: Published) -> Iterator[Answer]:
    """Yield how near the answers to three questions are to the truth."""
    counts, out = found.counts, found.cell >= 0
    starts_s = np.array(counts.ends) - fleet.every_s
    for question, by in (("when they are out", "hour"), ("on which weekdays", "weekday")):
        table = counts.pattern(by=by)
        part = parts_of_time(starts_s, by, "UTC")[1]
        true = np.bincount(part, out.sum(axis=1)) / np.bincount(part)
        yield _answer(fleet, question, table, true)
    # The cells of counts themselves, as places of the client.
    cells = Cells(
        counts.network,
        tuple(map(str, range(fleet.cells))),
        ({"type": "Point", "coordinates": []},) * fleet.cells,
        counted_cells(counts.network, fleet.cells),
    )
    table = counts.devices(cells, start=0, end=max(counts.ends))
    true = np.bincount(found.cell[out], minlength=fleet.cells) / len(out)
    yield _answer(fleet, "in which parts of town", table, true)


def _answer(fleet: Fleet, question: str, table: Table, true: FloatArray) -> Answer:
    held = (table["low"] <= true) & (true <= table["high"])
    error = float(np.abs(table["devices"] - true).sum() / true.sum())
    return Answer(fleet.name, question, len(true), error, float(held.mean()))


def secrets(fleet: Fleet, found: Published) -> Secrets:
    """Attack the counts with all that is known of the others.

    Whether somebody was out: what is left of a cell when all others are taken away is more than a
    half. Who was out half of the time would be guessed by chance. The part of the day in which
    somebody is out most: the one of which most is left.
    """
    out = found.cell >= 0
    hour, habit, habit_chance = list[float](), list[bool](), list[float]()
    begins_s = np.array(found.counts.ends) - fleet.every_s
    part = (begins_s % DAY_S // fleet.every_s).astype(np.int64)
    for person in range(out.shape[1]):
        others = np.delete(found.cell, person, axis=1)
        left = found.noisy - _counted(others, fleet.cells)
        where = found.cell[:, person]
        hour += _right(left, where)
        of_part = np.bincount(part, left.sum(axis=1))
        true = np.bincount(part, out[:, person])
        habit.append(bool(true[of_part.argmax()] == true.max()))
        habit_chance.append(float(np.mean(true == true.max())))
    return Secrets(
        fleet.name, float(np.mean(hour)), 0.5, float(np.mean(habit)), float(np.mean(habit_chance))
    )


def _counted(cell: IntArray, n_cells: int) -> IntArray:
    """Return the devices in each cell, shape (intervals, cells)."""
    return np.stack([np.bincount(now[now >= 0], minlength=n_cells) for now in cell])


def _right(left: IntArray, where: IntArray) -> list[float]:
    """Return the share of right guesses, in the cells where somebody is when out.

    As many intervals with as without: a guess that never changes is right in half of them.
    """
    out = np.flatnonzero(where >= 0)
    if not len(out):
        return []
    in_ = np.flatnonzero(where < 0)
    said_out = left[out, where[out]] > 0.5
    # Elsewhere nobody knows in which cell to look: in the one where the person is most.
    usual = np.bincount(where[out]).argmax()
    said_in = left[in_, usual] <= 0.5
    return [(float(said_out.mean()) + float(said_in.mean())) / 2]


def mean_of(rows: Sequence[Answer | Secrets]) -> list[float]:
    """Return the means of the figures of several draws."""
    figures = [[x for x in row if not isinstance(x, str)] for row in rows]
    return [float(x) for x in np.mean(figures, axis=0)]


def main() -> None:
    """Print the answers and the attacks, in Markdown."""
    network = load_network("city:1000")
    lines = [
        "| fleet | question | numbers | error | intervals that hold |",
        "|---|---|--:|--:|--:|",
    ]
    attacks = ["| fleet | out in one interval | chance | usual part of the day | chance |"]
    attacks.append("|---|--:|--:|--:|--:|")
    for fleet in FLEETS:
        weeks = commuter_weeks(
            network, fleet.n_devices, n_days=fleet.n_days, every_s=REPORT_S, seed=fleet.n_devices
        )
        counted = count(weeks.trace, network, fleet.settings)
        draws = [publish(counted, network, fleet.settings) for _ in range(N_DRAWS)]
        for rows in zip(*(answers(fleet, each) for each in draws), strict=True):
            n, error, held = mean_of(rows)
            lines.append(
                f"| {fleet.name} | {rows[0].question} | {n:g} | {error:.0%} | {held:.0%} |"
            )
        found = mean_of([secrets(fleet, each) for each in draws])
        attacks.append(f"| {fleet.name} | " + " | ".join(f"{x:.0%}" for x in found) + " |")
    print("\n".join([*lines, "", *attacks]))  # noqa: T201


if __name__ == "__main__":
    main()
