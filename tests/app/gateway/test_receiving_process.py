"""A gateway that receives in a process of its own settles each message as one that does not."""

import asyncio
import os
import random
import signal
from typing import Any

import httpx
import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from anonymizer.transport.receiving import ReceivingLink
from tests.app.gateway.test_gateway import NETWORK, running, say, settled
from tests.end_to_end import AS_OPERATOR, TOKEN, client, eventually, quick, send

INPUTS = [{"topic": "positions/{device}", "qos": 1}, {"topic": "live/{device}", "qos": 0}]


def gateway(broker: LocalBroker, **changes: Any) -> Gateway:  # noqa: ANN401  settings of any kind
    tables: dict[str, Any] = {
        "inputs": INPUTS,
        "broker": changes,
        "http": {"port": 0, "token": TOKEN},
    }
    return Gateway(Settings.model_validate(quick(broker.url, **tables)), NETWORK)


def mixed(seed: int) -> list[tuple[str, bytes]]:
    """Return positions of devices, and what nobody can read."""
    rng = random.Random(seed)  # noqa: S311  keeps no secret
    found = [say(f"tram-{i}", rng.randrange(400)) for i in range(60)]
    found += [(topic.replace("positions", "live"), payload) for topic, payload in found[::2]]
    found += [(f"positions/x{i}", rng.randbytes(rng.randrange(80))) for i in range(60)]
    found += [("positions/\N{SNOWMAN}", b'{"lat":1e3,"lon":0}'), ("live/", found[0][1])]
    rng.shuffle(found)
    return found


async def test_every_message_is_counted_alike_with_and_without_the_process(
    broker: LocalBroker,
) -> None:
    alone = gateway(broker)
    kept = {"session_expiry_s": 600, "random_client_id": False, "client_id": "apart"}
    apart = gateway(broker, receiving_process=True, **kept)
    link = process_of(apart)
    async with running(alone), running(apart), client(broker.url, "sender") as sender:
        await send(sender, mixed(1), qos=1)
        n = len(mixed(1))
        await settled(alone, n)
        await settled(apart, n)
        assert refused(apart) == refused(alone)
        assert sum(refused(apart).values()) == 62
        assert apart.ledger.n(Outcome.PUBLISHED)

        kill(link)
        await eventually(lambda: ready(apart), lambda up: not up)
        await send(sender, mixed(2), qos=1)
        await eventually(lambda: ready(apart), bool)
        await settled(alone, 2 * n)
        # At QoS 0 a broker keeps nothing for a connection that is gone.
        n_kept = sum(topic.startswith("positions") for topic, _ in mixed(2))

        async def received() -> int:
            return apart.ledger.n_received

        await eventually(received, lambda seen: seen >= n + n_kept)
        assert apart.http is not None
        async with httpx.AsyncClient(base_url=apart.http.url, headers=AS_OPERATOR) as http:
            metrics = (await http.get("/metrics")).text
        lost = 'anonymizer_broker_connections_lost_total{cause="process",link="positions"} 1.0'
        assert lost in metrics
        assert 'anonymizer_broker_connections_total{link="output"} 1.0' in metrics
    assert link.pid is None
    for tested in (alone, apart):
        assert tested.ledger.n_received == sum(tested.ledger.counts().values())


def process_of(tested: Gateway) -> ReceivingLink:
    assert isinstance(tested._link, ReceivingLink)
    return tested._link


def kill(link: ReceivingLink) -> None:
    assert link.pid is not None
    os.kill(link.pid, signal.SIGKILL)


def refused(tested: Gateway) -> dict[str, int]:
    """Return what nobody can use, by reason; what becomes of the rest depends on its tick."""
    counts = tested.ledger.counts()
    return {of.label[1]: n for of, n in counts.items() if of.label[0] == "invalid"}


async def ready(tested: Gateway) -> bool:
    assert tested.http is not None
    async with httpx.AsyncClient(base_url=tested.http.url) as http:
        await asyncio.sleep(0)
        return (await http.get("/readyz")).is_success


def test_raw_positions_are_shared_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    tables: dict[str, Any] = {"inputs": INPUTS, "broker": {"receiving_process": True}}
    with pytest.raises(SettingsError, match=r"broker\.receiving_process: only Linux"):
        Gateway(Settings.model_validate(quick("mqtt://127.0.0.1:1", **tables)), NETWORK)
