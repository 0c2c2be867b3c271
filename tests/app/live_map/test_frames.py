"""Frames for viewers: the newest for each, for as many as may be, and none of it for nothing."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.live_map import frames as viewing
from anonymizer.app.live_map.frames import Viewer
from anonymizer.app.live_map.screen import AnalystView
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.live_map.test_screen import group
from tests.end_to_end import client, eventually, quick, send
from tests.pipeline.positions.support import NETWORK, Rig

NOBODY = np.zeros(25, np.int32)


def a_screen(mode: str) -> AnalystView:
    return AnalystView(mode, NETWORK.node_id, Rig().flow, monotonic=lambda: 0.0)


def events(chunk: bytes) -> dict[str, Any]:
    """Read server-sent events, by kind."""
    read = {}
    for event in chunk.decode().removesuffix("\n\n").split("\n\n"):
        kind, data = event.split("\n")
        read[kind.removeprefix("event: ")] = json.loads(data.removeprefix("data: "))
    return read


async def entered(frames: AsyncIterator[bytes]) -> asyncio.Future[bytes]:
    """Let somebody wait for a frame."""
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)  # it begins, and waits
    assert not waiting.done()
    return waiting


async def test_a_viewer_sees_the_regions_of_its_mode_and_the_counts_of_all() -> None:
    first, second = a_screen("session"), a_screen("adka")
    viewer = Viewer([first, second])
    assert viewer.modes == ["session", "adka"]
    waiting = await entered(viewer.frames("adka", shown="public", address=""))
    second.see([group("ab", [1, 2])])
    viewer.make_frames()
    frame = events(await waiting)["frame"]
    assert (frame["mode"], frame["n_regions"]) == ("adka", 1)
    assert frame["regions"] == [["a", 2, 2, 0, 0, [1, 2], None]]
    assert frame["pulses"].keys() == {"session", "adka"}


async def test_who_is_slow_misses_frames_and_nothing_is_kept_for_them() -> None:
    viewer = Viewer([a_screen("adka")])
    frames = viewer.frames("adka", shown="public", address="")
    waiting = await entered(frames)
    viewer.make_frames()
    assert events(await waiting)["frame"]["number"] == 1
    for _ in range(5):
        viewer.make_frames()
    assert len(viewer._frame_of) == 1
    assert events(await anext(frames))["frame"]["number"] == 6


async def test_all_viewers_get_the_very_same_bytes() -> None:
    viewer = Viewer([a_screen("adka")])
    waiting = [await entered(viewer.frames("adka", shown="public", address="")) for _ in range(3)]
    viewer.make_frames()
    one, *others = await asyncio.gather(*waiting)
    assert all(other is one for other in others)


async def test_true_positions_are_for_those_alone_who_ask_where_they_are_to_be_had() -> None:
    at = NOBODY.copy()
    at[[3, 7]] = 2, 1
    near = at + 1
    viewer = Viewer([a_screen("adka")], devices_at=lambda: at, density_at=lambda: near)
    public = await entered(viewer.frames("adka", shown="public", address=""))
    auditor = await entered(viewer.frames("adka", shown="truth", address=""))
    of_density = await entered(viewer.frames("adka", shown="density", address=""))
    viewer.make_frames()
    assert events(await public).keys() == {"frame"}
    assert events(await auditor)["truth"] == [[3, 7], [2, 1]]
    told = events(await of_density)
    assert told.keys() == {"frame", "density"}
    assert told["density"] == [list(range(len(near))), near.tolist()]
    closed = Viewer([a_screen("adka")])
    assert not closed.raw
    for shown in ("truth", "density"):
        assert [frame async for frame in closed.frames("adka", shown=shown, address="")] == []


async def test_the_number_of_viewers_is_limited_and_a_leaving_one_makes_room() -> None:
    viewer = Viewer([a_screen("adka")])
    all_frames = [
        viewer.frames("adka", shown="public", address=str(i)) for i in range(viewing.MAX_VIEWERS)
    ]
    waiting = [await entered(frames) for frames in all_frames]
    assert viewer.is_full
    assert [frame async for frame in viewer.frames("adka", shown="public", address="")] == []
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    assert viewer._viewers.total() == viewing.MAX_VIEWERS - 1
    viewer.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_one_address_has_few_of_the_places_of_viewers_and_gets_them_back() -> None:
    viewer = Viewer([a_screen("adka")])
    most = viewing.MAX_VIEWERS_OF_ADDRESS
    waiting = [
        await entered(viewer.frames("adka", shown="public", address="a")) for _ in range(most)
    ]
    assert viewer.has_enough("a")
    assert not viewer.is_full
    assert [frame async for frame in viewer.frames("adka", shown="public", address="a")] == []
    other = await entered(viewer.frames("adka", shown="public", address="b"))
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    assert not viewer.has_enough("a")
    viewer.close()
    await asyncio.gather(*waiting, other, return_exceptions=True)
    assert not viewer._viewers_of, "no address is remembered"


async def test_frames_are_made_only_while_there_are_viewers() -> None:
    screen = a_screen("adka")
    viewer = Viewer([screen])
    running = asyncio.create_task(viewer.run())
    await asyncio.sleep(0)
    assert viewer._number == 0  # nobody there
    frames = viewer.frames("adka", shown="public", address="")
    assert isinstance(frames, AsyncGenerator)
    ((_, rates),) = events(await anext(frames))["history"]
    assert rates.keys() == {"adka"}
    assert events(await anext(frames))["frame"]["number"] == 1
    assert viewer._has_viewers.is_set()
    await frames.aclose()
    assert not viewer._has_viewers.is_set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_who_comes_sees_the_rates_of_the_last_two_minutes_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    viewer = Viewer([a_screen("adka")])
    for _ in range(500):
        now[0] += viewing.EVERY_S
        viewer.make_frames()
    told = events(await anext(viewer.frames("adka", shown="public", address="")))["history"]
    times = [at for at, _ in told]
    assert times == sorted(times)
    assert times[-1] - times[0] >= viewing.NOTED_S - 2 * viewing.NOTED_EVERY_S
    assert len(times) <= 1 + viewing.NOTED_S / viewing.NOTED_EVERY_S
    now[0] -= 3600  # a clock that goes back leaves nothing of later
    viewer.make_frames()
    (only,) = events(await anext(viewer.frames("adka", shown="public", address="")))["history"]
    assert only[0] == now[0]


async def test_closing_sends_everybody_home_also_who_comes_later() -> None:
    viewer = Viewer([a_screen("adka")])
    waiting = await entered(viewer.frames("adka", shown="public", address=""))
    viewer.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert [frame async for frame in viewer.frames("adka", shown="public", address="")] == []
    assert viewer._viewers.total() == 0


def gateway_for(broker: LocalBroker, **tables: Any) -> Gateway:  # noqa: ANN401  tables of any kind
    settings = Settings.model_validate(quick(broker.url, **tables))
    return Gateway(settings, load_network(settings.network.source))


async def test_over_http_an_analysts_view_is_live_and_open_streams_do_not_hold_up_the_end(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker)
    assert gateway.http is not None
    stop = asyncio.Event()
    network = load_network("grid:20x20")
    said = json.dumps({"lat": float(network.lat[21]), "lon": float(network.lon[21])}).encode()
    shown: list[bytes] = []

    async def look(http: httpx.AsyncClient) -> None:
        async with http.stream("GET", "/map/events?mode=adka") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for chunk in answer.aiter_bytes():
                shown.append(chunk)  # noqa: PERF401  as they come

    async def see() -> bool:
        await send(publisher, [(f"positions/secret-{i}", said) for i in range(12)])
        return b'"regions":[[' in b"".join(shown)

    gateway.warm_up()  # the first in a fresh checkout compiles its kernels, without a deadline
    async with (
        asyncio.timeout(120),
        asyncio.TaskGroup() as tasks,
        httpx.AsyncClient(base_url=gateway.http.url, timeout=120) as http,
        client(broker.url, "publisher") as publisher,
    ):
        running = tasks.create_task(gateway.run(stop))
        await gateway.until_connected()
        assert (await http.get("/map/events?mode=session")).status_code == 404
        assert (await http.get("/map/events?mode=adka&shown=truth")).status_code == 404
        looking = tasks.create_task(look(http))
        await eventually(see, bool)
        stop.set()
        await running  # no viewer is waited for
        await looking
    assert b"secret" not in b"".join(shown)


async def test_the_map_can_be_switched_off_and_the_auditors_view_needs_the_token(
    broker: LocalBroker, tmp_path: Path
) -> None:
    without = gateway_for(broker, http={"map": "none"})
    guarded = gateway_for(broker, http={"token": "open sesame", "map": "raw"})
    assert without.http is not None
    assert guarded.http is not None
    async with asyncio.timeout(120), httpx.AsyncClient() as http:
        async with without.http.serving():
            for path in ("/", "/map/about", "/map/events?mode=adka", "/map/static/app.js"):
                assert (await http.get(without.http.url + path)).status_code == 404
            assert (await http.get(f"{without.http.url}/metrics")).status_code == 200
        async with guarded.http.serving():
            url = f"{guarded.http.url}/map/events?mode=adka&shown=truth"
            assert (await http.get(url)).status_code == 401
            shown = {"Authorization": "Bearer open sesame"}
            about = await http.get(f"{guarded.http.url}/map/about", headers=shown)
            assert about.json()["raw"] is True
    with pytest.raises(SettingsError, match=r"^http\.token_file: "):
        gateway_for(broker, http={"token_file": tmp_path / "nowhere"})
