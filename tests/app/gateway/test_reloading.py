"""SIGHUP on a gateway that runs: a file is applied whole, or it is refused and changes nothing."""

import json
import signal
from pathlib import Path

import httpx
import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.service import reread_with
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings
from anonymizer.settings.reload import change
from anonymizer.transport.local_brokers import mosquitto
from tests.eager_session import EagerSession
from tests.end_to_end import client, quick, send, serving, write_settings

NETWORK = load_network("grid:10x10")
LAT, LON = NETWORK.lat.tolist(), NETWORK.lon.tolist()


async def test_sighup_applies_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path)
    await broker.start()
    strong = {"k_floor": 2, "density_steps": [4, 10], "k_values": [20, 12, 8]}
    tables = quick(broker.url, log={"level": "info"}, adka=strong)
    try:
        async with client(broker.url, "device") as device, serving(tmp_path, tables) as gateway:
            await gateway.until_ready()
            config = tmp_path / "gateway.toml"
            payload = b'{"lat": 0.0, "lon": 1.0, "x": "%s"}' % (b"x" * 200)
            await send(device, [("positions/a", payload)])
            before = await gateway.until_settled(1)
            assert "invalid/too_large" not in before.outcomes

            async def refused(times: int) -> str:
                gateway.signal(signal.SIGHUP)
                line = await gateway.program.logged("settings not reloaded", times=times)
                return str(line["problem"])

            wanted = tables | {
                "limits": {"max_payload_bytes": 64},
                "log": {"level": "error"},
                "broker": tables["broker"] | {"password": "s3cret", "username": "u"},
            }
            write_settings(config, wanted)
            needs_restart = await refused(1)
            whole = write_settings(config, tables).read_text()
            config.write_text(whole[: whole.index("k_values")])
            without_k = await refused(2)
            config.write_text(whole[: whole.index("20, 12, 8")])
            within_a_line = await refused(3)
            config.write_text("[limits]\nmax_payload_bytes = 1\n")
            wrong = await refused(4)
            await send(device, [("positions/b", payload)])
            between = await gateway.until_settled(2)

            write_settings(config, wanted | {"broker": tables["broker"]})
            gateway.signal(signal.SIGHUP)
            audit = await gateway.program.logged("settings reloaded")
            await send(device, [("positions/c", payload)])
            after = await gateway.until_settled(3)
    finally:
        await broker.stop()
    assert "broker.username, broker.password: cannot change" in needs_restart
    assert "adka.k_values: would protect less" in without_k
    assert "a restart applies it all" in without_k
    assert "is cut off" in within_a_line
    assert "limits.max_payload_bytes" in wrong
    assert "invalid/too_large" not in between.outcomes
    assert after.outcomes["invalid/too_large"] == 1
    assert audit["changed"] == {
        "limits.max_payload_bytes": {"from": 262144, "to": 64},
        "log.level": {"from": "info", "to": "error"},
    }
    assert not any("s3cret" in line for line in gateway.program.lines)


async def test_the_map_tells_the_rule_of_density_that_holds() -> None:
    settings = Settings.model_validate({"network": {"source": "grid:10x10"}, "http": {"port": 0}})
    gateway = Gateway(settings, NETWORK)
    server = gateway.http
    assert server is not None

    async def rule() -> list[tuple[int | None, int, int]]:
        async with httpx.AsyncClient() as http:
            told = (await http.get(f"{server.url}/map/about")).json()["rule"]
        return [(each["below"], each["k"], each["published"]) for each in told]

    async with server.serving():
        assert await rule() == [(4, 10, 10), (10, 5, 5), (None, 2, 2)]
        stricter = {"adka": {"k_floor": 7}, "region": {"k_extra": 3}}
        gateway.adopt(Settings.model_validate(settings.model_dump(exclude_unset=True) | stricter))
        assert await rule() == [(7, 10, 10), (13, 7, 5), (None, 7, 2)]


def test_a_broker_that_was_started_for_the_gateway_does_not_stand_in_the_way_of_a_reload() -> None:
    stated = Settings()
    broker = stated.broker.model_copy(update={"version": "3.1.1"})
    running = stated.model_copy(update={"broker": broker})
    wanted = Settings.model_validate({"region": {"k_extra": 2}})
    assert change(running, reread_with(broker, stated, wanted)).changed == {
        "region.k_extra": (0, 2)
    }
    other = Settings.model_validate({"broker": {"url": "mqtt://127.0.0.1:9"}})
    with pytest.raises(SettingsError, match=r"broker\.url"):
        change(running, reread_with(broker, stated, other))


@pytest.mark.parametrize("mode", ["adka", "snapshot", "session"])
def test_groups_that_are_formed_after_a_change_hold_what_it_demands(mode: str) -> None:
    settings = Settings.model_validate(
        {
            "network": {"source": "grid:10x10"},
            "region": {"mode": mode},
            "session": EagerSession(epoch_s=10),
            "inputs": [{"ids_change_s": 0}],
            "http": {"host": ""},
        }
    )
    gateway = Gateway(settings, NETWORK)
    stricter = settings.model_copy(
        update={"adka": settings.adka.model_copy(update={"k_values": (20, 20, 20)})}
    )
    before = published_k(gateway.flow, 1000.0)
    gateway.adopt(stricter)
    after = published_k(gateway.flow, 2000.0)
    assert max(before) < 20
    assert after == {20}


def published_k(flow: PositionFlow, at: float) -> set[int]:
    """Return what the groups of a crowd hold that reports three times."""
    batch = [
        Delivery(f"positions/{i}", f'{{"lat": {LAT[i % 100]}, "lon": {LON[i % 100]}}}'.encode(), 0)
        for i in range(200)
    ]
    ks: set[int] = set()
    for now in (at, at + 1, at + 2):
        output = flow.tick([Arrivals(now, batch)], now=now)
        ks |= {json.loads(message.payload)["k"] for message in output.messages}
        flow.settle(output, [True] * len(output.messages), seconds=0.0)
    return ks
