"""The live map with ten thousand devices: at least 30 frames a second, drawn in software."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator

import msgspec
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI

from anonymizer.app.live_map.frames import EVERY_S, Frame
from anonymizer.app.live_map.rates import FlowRates
from anonymizer.app.live_map.screen import Row
from anonymizer.networks import load_network
from anonymizer.web.map import map_router
from anonymizer.web.network_outline import Outline
from tests.web.browsing import Viewer, opened_browser

N_DEVICES = 10_000
N_GROUPS = N_DEVICES // 9
REGION_NODES = 28
"""As `session` forms them among so many devices on a network of as many nodes."""
SECONDS = 4
NETWORK = load_network(f"city:{N_DEVICES}")
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
    n_devices=N_DEVICES,
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

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._rows: list[Row] = [self._row(i) for i in range(N_GROUPS)]
        self._number = 0

    def has_enough(self, address: str) -> bool:
        return not address

    async def frames(self, mode: str, *, raw: bool, address: str) -> AsyncIterator[bytes]:
        assert address
        while True:
            self._number += 1
            for i in self._rng.integers(N_GROUPS, size=N_GROUPS // 60).tolist():
                self._rows[i] = self._row(i)
            frame = Frame(self._number, time.time(), mode, self._rows, N_GROUPS, {mode: RATES})
            yield b"event: frame\ndata: " + msgspec.json.encode(frame) + b"\n\n"
            if raw:
                at = np.bincount(self._rng.integers(NETWORK.n_nodes, size=N_DEVICES))
                node = np.flatnonzero(at)
                truth = msgspec.json.encode([node.tolist(), at[node].tolist()])
                yield b"event: truth\ndata: " + truth + b"\n\n"
            await asyncio.sleep(EVERY_S)

    def _row(self, i: int) -> Row:
        region = [int(self._rng.integers(NETWORK.n_nodes))]
        for v in region:
            first, last = NETWORK.first_arc_of[v : v + 2]
            near = set(NETWORK.neighbour_of[first:last].tolist()) - set(region)
            region += sorted(near)[: REGION_NODES - len(region)]
        return (f"group-{i}", 5, 9, 20.0, 1.0, region)


@pytest.fixture
def url() -> Iterator[str]:
    """The map of a crowd, served by this process."""
    app = FastAPI()
    app.include_router(map_router(Crowd(), Outline(NETWORK), demo=True))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        serving.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = server.force_exit = True
        serving.join()


def frames_a_second(viewer: Viewer) -> float:
    """Count what the browser draws in some seconds."""
    viewer.driver.set_script_timeout(30)
    return float(
        viewer.driver.execute_async_script(
            f"const done = arguments[0], began = performance.now(); let n = 0;"
            f"const next = () => {{ n++; const s = (performance.now() - began) / 1000;"
            f"  s < {SECONDS} ? requestAnimationFrame(next) : done(n / s); }};"
            "requestAnimationFrame(next);"
        )
    )


DRAG = """
const done = arguments[1], began = performance.now(), map = document.getElementById("map");
const point = (kind, x, y) => (kind === "mousedown" ? map : document.body).dispatchEvent(
  new MouseEvent(kind, { bubbles: true, clientX: 480 + x, clientY: 440 + y }));
let n = 0, held = false;
const next = () => {
  n++;
  const s = (performance.now() - began) / 1000, turn = 2 * Math.PI * s;
  const hold = s < arguments[0] && s % 1 < 0.9;
  if (held !== hold) point(hold ? "mousedown" : "mouseup", 0, 0);
  held = hold;
  if (held) point("mousemove", 400 * Math.sin(turn), 200 * Math.sin(2 * turn));
  s < arguments[0] ? requestAnimationFrame(next) : done(n / s);
};
requestAnimationFrame(next);
"""


@pytest.mark.soak
def test_the_map_of_ten_thousand_devices_is_dragged_at_thirty_frames_a_second(url: str) -> None:
    with opened_browser() as viewer:
        viewer.open(url)
        viewer.until(viewer.n_regions)
        viewer.after(4)
        viewer.driver.set_script_timeout(30)
        corner = "return document.querySelector('.leaflet-map-pane').style.transform"
        before = viewer.script(corner)
        rate = viewer.driver.execute_async_script(DRAG, SECONDS)
        assert viewer.script(corner) != before
        assert rate >= 30
        assert viewer.complaints() == []


@pytest.mark.soak
def test_ten_thousand_devices_are_drawn_at_thirty_frames_a_second(url: str) -> None:
    with opened_browser() as viewer:
        viewer.open(url)
        viewer.until(viewer.n_regions)
        viewer.after(4)
        assert viewer.element("#truth").is_selected()
        assert not viewer.element("#areas").is_selected()
        assert frames_a_second(viewer) >= 30
