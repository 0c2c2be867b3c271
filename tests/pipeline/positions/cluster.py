"""A simulated cluster: sources, workers with lanes, and a bus that a schedule drives.

Every link of the bus keeps the order of its messages and nothing else: links interleave, wait and
repeat as the schedule says. A crash takes all lanes of a worker back to their last snapshots and
delivers again what they had read since. One step of the schedule is one number; when a schedule
ends, everything that is still under way arrives.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.district_operator import DistrictOperator
from anonymizer.algorithms.positions.district_routing import KeyArray, Router, Rows, no_rows
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.district_lane import Batch, Broadcast, Closed, DistrictLane
from anonymizer.pipeline.positions.factory import (
    cloaking_operator,
    district_maker,
    districts_of,
    folds_of,
)
from anonymizer.settings import Settings
from tests.algorithms.positions.cloaks.driving import Where, traffic

START_S = 1000.0
N_DISTRICTS = 4
N_SOURCES = 2
N_DEVICES = 100
EPOCH_S = 4.0
NETWORK = load_network("grid:10x10")


def settings(mode: str) -> Settings:
    return Settings.model_validate(
        {
            "region": {
                "mode": mode,
                "districts": N_DISTRICTS,
                "min_nodes": 1,
                "place_devices": 1,
                "area_devices": 1,
            },
            "session": {"epoch_s": EPOCH_S, "settle_s": 1, "beat_s": 0, "cells": 4},
            "presence": {"ttl_s": 9, "max_behind_s": 5, "follow_intervals": False},
            "adka": {"density_steps": [], "k_values": [2]},
        }
    )


class Group(NamedTuple):
    """What a group publishes at a tick; members by key."""

    tick: int
    region: tuple[int, ...]
    members: tuple[int, ...]
    versions: tuple[int, ...]


class World:
    """Devices that move, and what one process publishes about them."""

    def __init__(self, mode: str, *, n_ticks: int, seed: int) -> None:
        self.settings = settings(mode)
        self.network: RoadNetwork = NETWORK
        self.cut = districts_of(self.settings, NETWORK)
        self.reports: list[Where] = list(
            islice(traffic(NETWORK, N_DEVICES, seed=seed, says=0.7), n_ticks)
        )
        operator = cloaking_operator(self.settings, NETWORK, keys=keys_of)
        assert isinstance(operator, DistrictOperator)
        self.make = district_maker(self.settings, NETWORK, self.cut)
        self.expected: set[Group] = set()
        for tick, where in enumerate(self.reports):
            now = START_S + tick
            slot, node = columns(where)
            release = operator.tick(slot, np.full(len(slot), now), node, now=now).release
            self.expected |= set(groups(tick, release, keys_of(release.member)))

    def lane(self, number: int, *, wait_s: float) -> DistrictLane:
        """Return a new lane of a district."""
        district = self.make(number)
        return DistrictLane(
            district,
            n_districts=N_DISTRICTS,
            n_sources=N_SOURCES,
            start_s=START_S,
            interval_s=1.0,
            wait_s=wait_s,
        )


def keys_of(slot: Int32Array) -> KeyArray:
    """Return keys in another order than slots."""
    return (slot.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(7)


def columns(where: Where) -> tuple[Int32Array, Int32Array]:
    return np.array(list(where), np.int32), np.array(list(where.values()), np.int32)


def groups(tick: int, release: Release, key: KeyArray) -> Iterator[Group]:
    nodes, members = release.first_node_of.tolist(), release.first_member_of.tolist()
    for (a, b), (c, d) in zip(pairwise(nodes), pairwise(members), strict=True):
        pairs = sorted(zip(key[c:d].tolist(), release.version[c:d].tolist(), strict=True))
        yield Group(
            tick,
            tuple(release.node[a:b].tolist()),
            tuple(pair[0] for pair in pairs),
            tuple(pair[1] for pair in pairs),
        )


@dataclass
class Link:
    """Messages in order, to one lane; read up to `at`, and by a snapshot up to `safe`."""

    messages: list[Batch | Broadcast] = field(default_factory=list)
    at: int = 0
    safe: int = 0


class Cluster:
    """Runs a world on some workers, as a schedule says.

    Parameters
    ----------
    n_workers
        Lane d runs on worker d modulo this.
    wait_s
        Bound of silence, in steps of the schedule; infinite: ticks close when complete alone.
    """

    def __init__(self, world: World, n_workers: int, *, wait_s: float = np.inf) -> None:
        self.world, self.n_workers = world, n_workers
        self.lanes = [world.lane(number, wait_s=wait_s) for number in range(N_DISTRICTS)]
        self.safe = [lane.snapshot() for lane in self.lanes]
        self.published: list[Group] = []
        self.from_source = [[Link() for _ in self.lanes] for _ in range(N_SOURCES)]
        self.from_lane = [[Link() for _ in self.lanes] for _ in self.lanes]
        self.steps = self.n_crashes = self.n_incomplete = 0
        self._sent = 0
        self._folds = folds_of(world.settings)
        self._routers = [
            Router(world.cut, horizon_s=world.settings.presence.ttl_s) for _ in range(N_SOURCES)
        ]
        self._counts: defaultdict[int, dict[int, IntArray]] = defaultdict(dict)
        self._counted = 0

    def run(self, schedule: Sequence[int]) -> None:
        """Follow a schedule, then let everything arrive."""
        for number in schedule:
            self.step(number)
        while any(lane.tick < len(self.world.reports) for lane in self.lanes):
            before = self.steps, self._sent, [lane.tick for lane in self.lanes]
            self.send()
            for number in range(N_DISTRICTS):
                for link in self.links(number):
                    while link.at < len(link.messages):
                        self.deliver(link, number)
                self.close(number)
            assert before[1:] != (self._sent, [lane.tick for lane in self.lanes]), "it is stuck"

    def step(self, number: int) -> None:
        """Do one of the things that may happen next."""
        self.steps += 1
        kind, number = number % 8, number // 8
        lane, which = number % N_DISTRICTS, number // N_DISTRICTS
        links = self.links(lane)
        link = links[which % len(links)]
        if kind == 0:
            self.send()
        elif kind == 1 and which % 3 == 0:
            self.crash(lane % self.n_workers)
        elif kind == 1 and link.at:
            link.at -= 1  # it comes again
        elif kind <= 4:
            for _ in range(1 + which % 3):
                self.deliver(link, lane)
        else:
            # Much arrives at one lane, while the others wait.
            for each in links:
                for _ in range(which % 4):
                    self.deliver(each, lane)
            self.close(lane)

    def links(self, lane: int) -> list[Link]:
        return [each[lane] for each in (*self.from_source, *self.from_lane)]

    def send(self) -> None:
        """Let the sources send a tick, once the districts of an earlier epoch are counted."""
        tick = self._sent
        if tick == len(self.world.reports):
            return
        now = START_S + tick
        folds = self._folds
        while len(self._counts[self._counted]) == N_DISTRICTS:
            n_in = np.sum(list(self._counts[self._counted].values()), axis=0)
            folds.count(n_in, now=START_S + self._counted)
            self._counted += 1
        if tick and folds.epoch(START_S + self._counted) <= folds.epoch(now) - 2:
            return
        self._sent += 1
        leader_of = folds.leaders(now).copy()
        slot, node = columns(self.world.reports[tick])
        for source, router in enumerate(self._routers):
            mine = slot % N_SOURCES == source
            n = int(mine.sum())
            rows = Rows(
                keys_of(slot[mine]),
                slot[mine].astype(np.int64),
                np.full(n, now),
                node[mine],
                np.full(n, -1, np.int32),
                np.zeros(n, bool),
            )
            sent = router.route(slot[mine], rows, leader_of, now=now)
            of = dict(zip(sent.district, sent.rows, strict=True))
            for number, link in enumerate(self.from_source[source]):
                link.messages.append(Batch(source, tick, leader_of, of.get(number, no_rows())))

    def deliver(self, link: Link, number: int) -> None:
        if link.at == len(link.messages):
            return
        message = link.messages[link.at]
        link.at += 1
        if isinstance(message, Batch):
            self.lanes[number].take(message)
        else:
            self.lanes[number].read(message)

    def close(self, number: int) -> None:
        """Close a tick if it can be; its outputs and the snapshot are stored together."""
        lane = self.lanes[number]
        if lane.tick == len(self.world.reports):
            return
        closed = lane.close(float(self.steps))
        if closed is None:
            return
        self.safe[number] = lane.snapshot()
        for link in self.links(number):
            link.safe = link.at
        self.publish(closed, number)

    def publish(self, closed: Closed, number: int) -> None:
        release = closed.result.release
        self.published += groups(closed.broadcast.tick, release, closed.result.key)
        self.n_incomplete += not closed.broadcast.complete
        self._counts[closed.broadcast.tick][number] = closed.broadcast.n_in
        for link in self.from_lane[number]:
            link.messages.append(closed.broadcast)

    def crash(self, worker: int) -> None:
        """Lose all that the lanes of a worker have done since their snapshots."""
        self.n_crashes += 1
        for number in range(worker, N_DISTRICTS, self.n_workers):
            lane = self.world.lane(number, wait_s=self.lanes[number]._wait_s)
            lane.restore(self.safe[number])
            self.lanes[number] = lane
            for link in self.links(number):
                link.at = link.safe
