"""Frames of the live map, made twice a second for all viewers together.

A viewer waits for the next frame and gets the newest one, so slow viewers miss frames and no
frame is queued. Without viewers no frames are made, but rates are noted: who comes sees those of
the last two minutes at once.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from anonymizer.app.live_map.rates import FlowRates
from anonymizer.app.live_map.screen import AnalystView, Row
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings

if TYPE_CHECKING:
    from fastapi import APIRouter

    from anonymizer.web.map import KOfDensity, LastWindow, Shown

EVERY_S = 0.5
NOTED_EVERY_S = 2.0
NOTED_S = 120.0
MAX_VIEWERS = 32
MAX_VIEWERS_OF_ADDRESS = 8
"""So that one visitor does not take the places of all others."""

DevicesAt: TypeAlias = Callable[[], Int32Array]
"""Returns the true number of devices at each node, or around it, shape (nodes,)."""


class Frame(msgspec.Struct, frozen=True):
    """The published regions of one mode at one moment, and the rates of all modes."""

    number: int
    time: float
    mode: str
    regions: list[Row]
    n_regions: int
    """Number of all regions; `regions` contains the newest."""
    pulses: dict[str, FlowRates]
    """Rates by mode."""


class Viewer:
    """The source of frames of the live map, see `anonymizer.web.map.FrameSource`.

    Parameters
    ----------
    screens
        One for each mode, the main one first; see `add`.
    devices_at, density_at
        True positions, and the density at each junction, for the auditor. None: not available.
    """

    def __init__(
        self,
        screens: Sequence[AnalystView],
        *,
        devices_at: DevicesAt | None = None,
        density_at: DevicesAt | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen_of = {screen.mode: screen for screen in screens}
        self._for_auditors: dict[Shown, DevicesAt | None] = {
            "truth": devices_at,
            "density": density_at,
        }
        self._monotonic = monotonic
        self._viewers: Counter[tuple[str, Shown]] = Counter()
        self._viewers_of: Counter[str] = Counter()
        self._frame_of: dict[tuple[str, Shown], bytes] = {}
        self._noted: deque[tuple[float, dict[str, FlowRates]]] = deque()
        """Times, and rates by mode, of the last two minutes."""
        self._number = 0
        self._turn = asyncio.Event()
        self._has_viewers = asyncio.Event()
        self._closed = False

    def add(self, screen: AnalystView) -> None:
        """Let another mode be viewed from the next frame on."""
        self._screen_of[screen.mode] = screen

    @property
    def modes(self) -> list[str]:
        """Modes that can be viewed."""
        return list(self._screen_of)

    @property
    def raw(self) -> bool:
        """Whether true positions can be viewed."""
        return self._for_auditors["truth"] is not None

    @property
    def is_full(self) -> bool:
        """Whether the number of viewers is at its limit."""
        return self._viewers.total() >= MAX_VIEWERS

    def has_enough(self, address: str) -> bool:
        """Return whether the number of viewers at an address is at its limit."""
        return self._viewers_of[address] >= MAX_VIEWERS_OF_ADDRESS

    async def run(self) -> None:
        """Make frames while there are viewers, until cancelled."""
        try:
            while True:
                if self._viewers.total():
                    self.make_frames()
                    await asyncio.sleep(EVERY_S)
                    continue
                self._pulses()
                with suppress(TimeoutError):
                    async with asyncio.timeout(NOTED_EVERY_S):
                        await self._has_viewers.wait()
        finally:
            self.close()

    def close(self) -> None:
        """End all streams of frames."""
        self._closed = True
        self._turn.set()

    def make_frames(self) -> None:
        """Make the next frame of each viewed mode, and wake the viewers."""
        pulses = self._pulses()
        self._number += 1
        self._frame_of = {}
        for mode in {mode for mode, _ in +self._viewers}:
            rows, n_regions = self._screen_of[mode].rows()
            frame = Frame(self._number, round(time.time(), 1), mode, rows, n_regions, pulses)
            public = _event("frame", msgspec.json.encode(frame))
            self._frame_of[mode, "public"] = public
            for shown in self._for_auditors:
                if self._viewers[mode, shown]:
                    self._frame_of[mode, shown] = public + self._counts(shown)
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    def _pulses(self) -> dict[str, FlowRates]:
        """Return the rates of each mode at this moment, and note them."""
        now_s, time_s = self._monotonic(), round(time.time(), 1)
        pulses = {mode: screen.pulse.take(now_s) for mode, screen in self._screen_of.items()}
        if not self._noted or not 0 <= time_s - self._noted[-1][0] < NOTED_EVERY_S:
            self._noted.append((time_s, pulses))
        while not 0 <= time_s - self._noted[0][0] <= NOTED_S:
            self._noted.popleft()
        return pulses

    async def frames(self, mode: str, *, shown: "Shown", address: str) -> AsyncIterator[bytes]:
        """Yield each new frame as a server-sent event; a slow reader skips frames."""
        if self.is_full or self.has_enough(address) or (shown != "public" and not self.raw):
            return
        view = (mode, shown)
        self._enter(view, address)
        try:
            seen = self._number
            if self._noted:
                yield _event("history", msgspec.json.encode(list(self._noted)))
            while True:
                while self._number == seen and not self._closed:
                    await self._turn.wait()
                if self._closed:
                    return
                seen = self._number
                frame = self._frame_of.get(view)
                if frame is not None:
                    yield frame
        finally:
            self._leave(view, address)

    def _enter(self, view: "tuple[str, Shown]", address: str) -> None:
        self._viewers[view] += 1
        self._viewers_of[address] += 1
        self._has_viewers.set()

    def _leave(self, view: "tuple[str, Shown]", address: str) -> None:
        self._viewers[view] -= 1
        self._viewers_of[address] -= 1
        self._viewers_of = +self._viewers_of  # an address that has left is forgotten
        if not self._viewers.total():
            self._has_viewers.clear()

    def _counts(self, shown: "Shown") -> bytes:
        """Return what auditors see: nodes with devices at or around them, and how many."""
        counted = self._for_auditors[shown]
        if counted is None:
            return b""
        at = counted()
        node = np.flatnonzero(at)
        return _event(shown, msgspec.json.encode([node.tolist(), at[node].tolist()]))


def _event(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def map_routes(
    viewer: Viewer,
    network: RoadNetwork,
    settings: Callable[[], Settings],
    *,
    demo: bool,
    streets: bool = False,
    windows: "Callable[[], Sequence[LastWindow]] | None" = None,
) -> "APIRouter":
    """Return the routes of the live map.

    `settings`: returns those that hold at present; `streets`: whether there is traffic by street;
    `windows`: see `map_router`.

    Raises `SettingsError` if the token file cannot be used.
    """
    # FastAPI takes a third of a second to load, and a gateway may be without HTTP.
    from anonymizer.web.map import Notice, map_router  # noqa: PLC0415
    from anonymizer.web.network_outline import Outline  # noqa: PLC0415
    from anonymizer.web.token import read_token  # noqa: PLC0415

    first = settings()
    return map_router(
        viewer,
        Outline(network),
        rule=lambda: _rule(settings()),
        # Groups form when devices have settled, and publish within a beat.
        first_s=first.session.settle_s + first.session.beat_s,
        notice=Notice(
            run_by=first.http.run_by,
            opt_out=first.http.opt_out,
            devices_may=first.device_zones.enabled,
            demo=demo,
        ),
        token=read_token(first.http),
        streets=streets,
        windows=windows,
    )


def _rule(settings: Settings) -> "list[KOfDensity]":
    """Return the rule of density, from sparse to dense; own devices do not count as density."""
    from anonymizer.web.map import KOfDensity  # noqa: PLC0415  as above

    adka, region = settings.adka, settings.region
    extra = region.k_extra if region.mode != "adka" else 0
    return [
        KOfDensity(
            below=None if step is None else step + extra, k=max(k, adka.k_floor), published=k
        )
        for step, k in zip((*adka.density_steps, None), adka.k_values, strict=True)
    ]
