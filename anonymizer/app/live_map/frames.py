"""Frames for whoever looks at the live map: made once, for all of them, a few times a second.

An onlooker waits for the next frame and gets the newest there is: who is slow misses frames, and
nothing is kept for anybody. While nobody looks nothing is made.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec
import numpy as np
from fastapi import APIRouter

from anonymizer.app.live_map.rates import FlowRates
from anonymizer.app.live_map.screen import AnalystView, Row
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import HttpSettings
from anonymizer.web.auth import read_token
from anonymizer.web.map import Tiles, map_router
from anonymizer.web.network_outline import Outline

EVERY_S = 0.5
MOST_ONLOOKERS = 32

DevicesAt: TypeAlias = Callable[[], Int32Array]
"""Tells how many devices there truly are at each node, shape (nodes,)."""


class Frame(msgspec.Struct, frozen=True):
    """One look at what is published."""

    number: int
    time: float
    mode: str
    regions: list[Row]
    n_regions: int
    """All of them; `regions` has the newest ones."""
    pulses: dict[str, FlowRates]
    """Of every mode."""


class Viewer:
    """The source of frames of the live map, see `anonymizer.web.map.FrameSource`.

    Parameters
    ----------
    screens
        One for each mode, the one that is published first.
    devices_at
        For the auditor. None: true positions are not to be had.
    monotonic
        Seconds by a clock that never goes back.
    """

    def __init__(
        self,
        screens: Sequence[AnalystView],
        *,
        devices_at: DevicesAt | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen_of = {screen.mode: screen for screen in screens}
        self._devices_at = devices_at
        self._monotonic = monotonic
        self._onlookers: Counter[tuple[str, bool]] = Counter()
        self._frame_of: dict[tuple[str, bool], bytes] = {}
        self._number = 0
        self._turn = asyncio.Event()
        self._somebody = asyncio.Event()
        self._closed = False

    @property
    def modes(self) -> list[str]:
        """Ways of cloaking that can be looked at."""
        return list(self._screen_of)

    @property
    def raw(self) -> bool:
        """Whether true positions may be looked at."""
        return self._devices_at is not None

    @property
    def is_full(self) -> bool:
        """Whether there are as many onlookers as there may be."""
        return self._onlookers.total() >= MOST_ONLOOKERS

    async def run(self) -> None:
        """Make frames while anybody looks; until cancelled."""
        try:
            while True:
                await self._somebody.wait()
                self.make_frames()
                await asyncio.sleep(EVERY_S)
        finally:
            self.close()

    def close(self) -> None:
        """Send everybody home."""
        self._closed = True
        self._turn.set()

    def make_frames(self) -> None:
        """Make the next frame of each mode that somebody looks at, and hand it out."""
        now_s = self._monotonic()
        pulses = {mode: screen.pulse.take(now_s) for mode, screen in self._screen_of.items()}
        self._number += 1
        self._frame_of = {}
        for mode in {mode for mode, _ in +self._onlookers}:
            rows, n_regions = self._screen_of[mode].rows()
            frame = Frame(self._number, round(time.time(), 1), mode, rows, n_regions, pulses)
            public = _event("frame", msgspec.json.encode(frame))
            self._frame_of[mode, False] = public
            if self._onlookers[mode, True]:
                self._frame_of[mode, True] = public + self._truth()
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def frames(self, mode: str, *, raw: bool) -> AsyncIterator[bytes]:
        """Yield the newest frame each time there is one, as a server-sent event."""
        if self.is_full or (raw and not self.raw):
            return
        looks_at = (mode, raw)
        self._enter(looks_at)
        try:
            seen = self._number
            while True:
                while self._number == seen and not self._closed:
                    await self._turn.wait()
                if self._closed:
                    return
                seen = self._number
                frame = self._frame_of.get(looks_at)
                if frame is not None:
                    yield frame
        finally:
            self._leave(looks_at)

    def _enter(self, looks_at: tuple[str, bool]) -> None:
        self._onlookers[looks_at] += 1
        self._screen_of[looks_at[0]].is_watched = True
        self._somebody.set()

    def _leave(self, looks_at: tuple[str, bool]) -> None:
        self._onlookers[looks_at] -= 1
        mode = looks_at[0]
        if not self._onlookers[mode, False] + self._onlookers[mode, True]:
            self._screen_of[mode].is_watched = False
        if not self._onlookers.total():
            self._somebody.clear()

    def _truth(self) -> bytes:
        """Return where devices truly are, and how many, but not which."""
        if self._devices_at is None:
            return b""
        at = self._devices_at()
        node = np.flatnonzero(at)
        return _event("truth", msgspec.json.encode([node.tolist(), at[node].tolist()]))


def _event(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def routes_of(viewer: Viewer, network: RoadNetwork, http: HttpSettings, *, demo: bool) -> APIRouter:
    """Return the routes of the live map.

    Raises
    ------
    SettingsError
        If the token's file cannot be used.
    """
    return map_router(
        viewer,
        Outline(network),
        token=read_token(http),
        tiles=Tiles(url=http.tiles, attribution=http.tiles_attribution) if http.tiles else None,
        demo=demo,
    )


def origin_of(tiles: str | None) -> str | None:
    """Return the origin of an address, None of none."""
    if tiles is None:
        return None
    parts = urlsplit(tiles)
    return f"{parts.scheme}://{parts.netloc}"
