"""The live map drawn in software: 60 frames a second of 1,000 devices, 30 of 10,000, none slow."""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI

from anonymizer.app.live_map.frames import EVERY_S, Frame
from anonymizer.app.live_map.rates import FlowRates
from anonymizer.app.live_map.screen import Row
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.web.map import KOfDensity, Notice, Shown, map_router
from anonymizer.web.network_outline import Outline
from tests.web.browsing import opened_browser

REGION_NODES = 28
GROUP_SIZE = 9
"""As `session` forms groups where there are as many devices as nodes."""
SECONDS = 4
BARS = [(1_000, 60, False), (1_000, 30, True), (10_000, 30, False), (10_000, 30, True)]
"""Devices, the fewest frames a second, and whether the map is dragged meanwhile."""
SLOWEST_MS = 250
"""No frame takes longer."""
RATES = FlowRates(
    rate_in=1.0e4,
    rate_out=300.0,
    messages_out=40.0,
    latency_p50_ms=70.0,
    latency_p99_ms=150.0,
    age_mean_s=6.0,
    age_p95_s=15.0,
    region_mean=28.0,
    region_p90=40.0,
    k_median=9.0,
    k_least=5.0,
    suppressed={"suppressed superseded": 9700.0},
    n_devices=10_000,
    n_newcomers=0,
    n_followed=32,
    n_below_k=0,
    silent="",
)


class Crowd:
    """Frames of groups on a beat: in each frame one in sixty has a new region."""

    modes = ("session",)
    raw = True
    is_full = False

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._rng = np.random.default_rng(0)
        self._n_groups = network.n_nodes // GROUP_SIZE
        self._rows: list[Row] = [self._row(i) for i in range(self._n_groups)]
        self._number = 0

    def has_enough(self, address: str) -> bool:
        return not address

    async def frames(self, mode: str, *, shown: Shown, address: str) -> AsyncIterator[bytes]:
        assert address
        while True:
            self._number += 1
            n = self._n_groups
            for i in self._rng.integers(n, size=-(-n // 60)).tolist():
                self._rows[i] = self._row(i)
            frame = Frame(self._number, time.time(), mode, self._rows, n, {mode: RATES})
            yield b"event: frame\ndata: " + msgspec.json.encode(frame) + b"\n\n"
            if shown == "truth":
                at = np.bincount(
                    self._rng.integers(self._network.n_nodes, size=self._network.n_nodes)
                )
                node = np.flatnonzero(at)
                truth = msgspec.json.encode([node.tolist(), at[node].tolist()])
                yield b"event: truth\ndata: " + truth + b"\n\n"
            await asyncio.sleep(EVERY_S)

    def _row(self, i: int) -> Row:
        network = self._network
        region = [int(self._rng.integers(network.n_nodes))]
        for v in region:
            first, last = network.first_arc_of[v : v + 2]
            near = set(network.neighbour_of[first:last].tolist()) - set(region)
            region += sorted(near)[: REGION_NODES - len(region)]
        return (f"group-{i}", 5, 9, 20.0, 1.0, region, None)


RULE = [KOfDensity(below=None, k=5, published=5)]


@contextmanager
def served(n_devices: int) -> Iterator[str]:
    """Serve the map of a crowd on a network of as many nodes from this process."""
    network = load_network(f"city:{n_devices}")
    app = FastAPI()
    app.include_router(
        map_router(Crowd(network), Outline(network), notice=Notice(demo=True), rule=lambda: RULE)
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        serving.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = server.force_exit = True
            serving.join()


LOOK = """
const [seconds, drags, done] = arguments, began = performance.now(), gaps = [];
const map = document.getElementById("map");
const point = (kind, x, y) => (kind === "mousedown" ? map : document.body).dispatchEvent(
  new MouseEvent(kind, { bubbles: true, clientX: 480 + x, clientY: 440 + y }));
let held = false, last = began, pictures = 0;
map.city.painter.worker.addEventListener("message", () => pictures++);
const next = () => {
  const now = performance.now(), s = (now - began) / 1000, turn = 2 * Math.PI * s;
  gaps.push(now - last);
  last = now;
  const hold = drags && s < seconds && s % 1 < 0.9;
  if (held !== hold) point(hold ? "mousedown" : "mouseup", 0, 0);
  held = hold;
  if (held) point("mousemove", 400 * Math.sin(turn), 200 * Math.sin(2 * turn));
  if (s < seconds) requestAnimationFrame(next);
  else done([gaps.length / s, Math.max(...gaps), pictures / s]);
};
requestAnimationFrame(next);
"""
"""Counts the frames of some seconds, the slowest of them, and the pictures that are painted."""


@pytest.mark.soak
@pytest.mark.parametrize(("n_devices", "least", "drags"), BARS)
def test_the_map_answers_at_the_stated_rate_and_no_frame_is_slow(
    n_devices: int,
    least: int,
    drags: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    with served(n_devices) as url, opened_browser() as viewer:
        viewer.open(url)
        viewer.until(viewer.n_regions)
        viewer.after(4)
        assert viewer.element("#truth").is_selected()
        viewer.driver.set_script_timeout(30)
        corner = "return document.querySelector('.leaflet-map-pane').style.transform"
        before = viewer.script(corner)
        rate, slowest_ms, pictures = viewer.driver.execute_async_script(LOOK, SECONDS, drags)
        sys.stdout.write(
            f"{rate:.1f} frames/s, slowest {slowest_ms:.0f} ms, {pictures:.1f} painted/s\n"
        )
        assert (viewer.script(corner) != before) is drags
        assert round(rate) >= least
        assert slowest_ms <= SLOWEST_MS
        assert drags or pictures >= 1, "frames of data come twice a second, and are painted"
        assert viewer.complaints() == []
