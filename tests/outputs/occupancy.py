"""An output of the tests' own: how many devices were in each quarter of the network, hour by hour.

It is one file, and shows what an output needs. `asked_for` finds it when `OUTPUTS` names it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.domain.arrays import Int32Array
from anonymizer.outputs.message_kind import Channel, MessageKind, object_of
from anonymizer.outputs.output import (
    PUBLISHED,
    Figure,
    Made,
    Output,
    Publisher,
    SeenTick,
    StatedWindow,
)
from anonymizer.outputs.promised import Promised
from anonymizer.outputs.windows import EndedWindows, promised_k
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings

TOPIC = "cloaked/occupancy"
EVERY_S = 3.0
Quarters = list[tuple[int, int]]
"""Quarter and key of each device that was there."""


class OccupancyWatch:
    """Sees who was in which quarter."""

    def __init__(self, settings: Settings, n_nodes: int, keys: Keys) -> None:
        self._n_nodes, self._keys = n_nodes, keys
        self._windows = EndedWindows(EVERY_S, 0.0)
        self._there: dict[int, set[tuple[int, int]]] = {}
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        self._k = promised_k(settings)

    def see(self, seen: SeenTick) -> Sequence[StatedWindow]:
        located = seen.located
        gone = set(located.withdrawn_key.tolist())
        for there in self._there.values():
            there -= {each for each in there if each[1] in gone}
        if self._windows.begins(located.event_s):
            self._there = {}
        present = self._windows.of(located.event_s - 1e-6)
        on = np.flatnonzero(located.node >= 0)
        keys = self._keys(located.positions.slot[on]).tolist()
        quarters = (located.node[on] * 4 // self._n_nodes).tolist()
        self._there.setdefault(present, set()).update(zip(quarters, keys, strict=True))
        return [
            StatedWindow(window, sorted(self._there.pop(window, set())))
            for window, _ in self._windows.ended(located.event_s, k=self._k)
        ]

    def free(self, slots: Int32Array) -> None:
        pass

    def state(self) -> list[Any]:
        there = [[window, sorted(each)] for window, each in self._there.items()]
        return [there, self._windows.state()]

    def restore(self, state: list[Any]) -> None:
        there, windows = state
        self._there = {window: set(map(tuple, each)) for window, each in there}
        self._windows.restore(windows)


class OccupancyPublisher(Publisher):
    """Says how many devices were in each quarter, if they were at least k."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("occupancy", every_s=EVERY_S)
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        self._k = promised_k(settings)

    def make(self, window: int, contents: Sequence[Quarters], *, ahead_s: float) -> Made:
        there = {each for content in contents for each in content}
        n_in = np.bincount([quarter for quarter, _ in there], minlength=4) // self._k * self._k
        time = (window + 1) * EVERY_S + ahead_s
        return Made(
            [Outgoing(TOPIC, json.dumps({"time": time, "devices": n_in.tolist()}).encode())]
        )


class Occupancy(Output):
    """Occupancy of quarters."""

    name = "occupancy"
    figure = Figure("occupancy_hours", "Hours of occupancy; empty: published.", (PUBLISHED,))
    most_waiting = 2

    @staticmethod
    def every_s(settings: Settings) -> float:  # noqa: ARG004  see `Output`, here and below
        return EVERY_S

    @staticmethod
    def channels(settings: Settings) -> Iterator[Channel]:  # noqa: ARG004
        message = MessageKind("Occupancy", "Devices by quarter.", object_of({}))
        yield Channel(TOPIC, message, incoming=False)

    @staticmethod
    def promises(settings: Settings) -> Iterator[Promised]:
        yield Promised("occupancy", f"`{TOPIC}`", f"at least {promised_k(settings)} devices", "")

    @staticmethod
    def kept(settings: Settings) -> Mapping[str, str]:  # noqa: ARG004
        return {"occupancy": "in memory, for an hour"}

    @staticmethod
    def meaning(settings: Settings) -> Mapping[str, Any]:  # noqa: ARG004
        return {"occupancy": EVERY_S}

    def watch(self, *, keys: Keys, kept_s: float, n_sources: int = 1) -> OccupancyWatch:  # noqa: ARG002
        return OccupancyWatch(self.settings, self.network.n_nodes, keys)

    def publisher(self, *, secret: bytes, budget: object = None) -> OccupancyPublisher:  # noqa: ARG002
        return OccupancyPublisher(self.settings)

    def packed(self, content: Quarters) -> Iterator[Any]:
        for first in range(0, max(1, len(content)), 10):
            yield [list(each) for each in content[first : first + 10]]

    def unpacked(self, piece: Any) -> Quarters:  # noqa: ANN401  as packed
        return [(int(quarter), int(key)) for quarter, key in piece]


OUTPUT = Occupancy
