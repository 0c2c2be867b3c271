"""Vehicles whose records a gateway takes while it fails, an analyst, and what must be left."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiomqtt
import httpx

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from tests.app.gateway.records import (
    assert_classes_keep,
    assert_each_window_has_one_partition,
    stored_accounts,
    stored_parts,
)
from tests.brokers import QuickBrokerSettings
from tests.end_to_end import (
    AS_OPERATOR,
    DEADLINE_S,
    Accounts,
    client,
    eventually,
    http_client,
    read_accounts,
)
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, Sent, traffic

N_VEHICLES = 30
CHUNK = 45
K = 4
RETRY_S = 0.1
_STORED = ("anonymizer_records_inbox_messages", "anonymizer_record_parts_received_total")
VERSION_OF = {"5": aiomqtt.ProtocolVersion.V5, "3.1.1": aiomqtt.ProtocolVersion.V311}
LAST_VEHICLE = "the-last"
"""It reports a time so late that every other window closes."""


def patient(url: str, **more: object) -> BrokerSettings:
    return QuickBrokerSettings.model_validate({"url": url, **more})


@dataclass
class Vehicles:
    """Vehicles that send window after window until `enough`, and each part until it is taken.

    `version` is that of MQTT. With `at_qos_2` every third part is sent at QoS 2, by another client
    library.
    """

    pause_s: float
    version: str = "5"
    at_qos_2: bool = False
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Whoever holds it keeps them silent."""
    sent: list[Sent] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def drive(self, url: str) -> None:
        link = MqttLink(
            patient(url, version=self.version), client_id="vehicles", deliver=lambda _: None
        )
        running_link = asyncio.create_task(link.run(), name="vehicles' link")
        window = 0
        while not self.enough.is_set():
            start = window * LENGTH_S
            parts = list(traffic(n_vehicles=N_VEHICLES, n_windows=1, seed=window, start=start))
            await self._send(link, url, parts)
            window += 1
        end = window * LENGTH_S + FLEET["lateness_s"]  # later, it would be one vehicle's leap
        await self._send(link, url, [Sent(LAST_VEHICLE, source, end, {}) for source in SOURCES])
        await link.close()
        await running_link

    async def _send(self, link: MqttLink, url: str, parts: Sequence[Sent]) -> None:
        for i in range(0, len(parts), CHUNK):
            async with self.sending:
                chunk = list(parts[i : i + CHUNK])
                self.sent += chunk
                if self.at_qos_2:
                    await send_patiently(
                        url,
                        [(part.topic, part.payload, 2) for part in chunk[::3]],
                        name="vehicles-2",
                        version=self.version,
                    )
                    del chunk[::3]
                while chunk:
                    await link.until_connected()
                    messages = [Outgoing(part.topic, part.payload) for part in chunk]
                    took = await link.publish(messages, qos=1, timeout_s=DEADLINE_S)
                    chunk = [part for part, there in zip(chunk, took, strict=True) if not there]
            await asyncio.sleep(self.pause_s)


async def send_patiently(
    url: str, messages: Sequence[tuple[str, bytes, int]], *, name: str, version: str
) -> None:
    """Send messages of a topic, payload and QoS with a general client, each until it is taken."""
    left = list(messages)
    while left:
        with suppress(aiomqtt.MqttError):
            async with client(url, name, protocol=VERSION_OF[version], timeout=5) as sender:
                while left:
                    topic, payload, qos = left[0]
                    await sender.publish(topic, payload, qos=qos, timeout=5)
                    del left[0]
        if left:
            await asyncio.sleep(RETRY_S)


@asynccontextmanager
async def analyst(url: str, seen: list[bytes], *, version: str = "5") -> AsyncIterator[MqttLink]:
    """Somebody whose subscription outlives the broker, so that no message is missed."""
    link: MqttLink

    def see(deliveries: Sequence[Delivery]) -> None:
        seen.extend(delivery.payload for delivery in deliveries)
        link.acknowledge(delivery.receipt for delivery in deliveries)

    link = MqttLink(
        patient(url, session_expiry_s=600, version=version),
        client_id="analyst",
        deliver=see,
        subscriptions=[("anonymized/#", 1)],
    )
    task = asyncio.create_task(link.run(), name="analyst")
    await link.until_connected()
    try:
        yield link
    finally:
        await link.close()
        await task


@dataclass
class Ordeal:
    """What was sent, what the analyst has seen, and the store that is left."""

    sent: list[Sent]
    seen: list[bytes]
    store: Path
    n_bad: int = 0
    """Records sent that nobody can read, and that the broker has taken."""
    in_order: bool = True
    """Whether the broker hands on in order, also after the gateway was away. If not, records behind
    newer ones are late."""


async def until_only_the_last_is_held(url: str) -> None:
    async with http_client(url, headers=AS_OPERATOR) as http:

        async def held() -> tuple[float, float, float]:
            text = (await http.get("/metrics")).text
            value = {
                line.split(" ")[0]: float(line.split(" ")[1])
                for line in text.splitlines()
                if line.startswith("anonymizer_record")
            }
            # Streams have no metrics while the store cannot be used.
            return (
                value.get('anonymizer_record_parts_held{stream="fleet"}', -1.0),
                value.get('anonymizer_records_open_windows{stream="fleet"}', -1.0),
                value["anonymizer_records_inbox_messages"],
            )

        before = await held()
        while before != (len(SOURCES), 1, 0):  # it may have much to catch up with
            before = await eventually(held, lambda now: now != before)  # noqa: B023  awaited here


async def until_all_is_stored(url: str) -> None:
    """Wait until nothing has arrived for a second that is not stored."""
    async with http_client(url, headers=AS_OPERATOR) as http:
        before = ""
        while True:
            lines = (await http.get("/metrics")).text.splitlines()
            now = "".join(line for line in lines if line.startswith(_STORED))
            if now == before and "anonymizer_records_inbox_messages 0" in now:
                return
            before = now
            await asyncio.sleep(1)


async def until_ready(url: str) -> None:
    """Wait until the gateway is ready: its connections are made."""
    async with http_client(url, headers=AS_OPERATOR) as http:
        await eventually(lambda: http.get("/readyz"), lambda answer: answer.is_success)


async def stay(seen: list[bytes]) -> list[bytes]:
    return seen


def has_all_of_its_windows(seen: list[bytes]) -> bool:
    """Whether no class of any window that was seen is missing."""
    missing: dict[float, set[int]] = {}
    for payload in seen:
        message = json.loads(payload)
        missing.setdefault(message["window"][0], set(range(message["of"]))).discard(
            message["class"]
        )
    return not any(missing.values())


def assert_nothing_was_lost(ordeal: Ordeal) -> None:
    accounts = stored_accounts(ordeal.store)
    # What is bad, and comes again after a kill, is counted again.
    n_bad = sum(accounts.pop(label) for label in list(accounts) if label.startswith("invalid/"))
    assert n_bad >= ordeal.n_bad
    accounts["received"] -= n_bad
    # What comes again after a kill is late if its window has closed.
    n_repeats = accounts.pop("duplicate", 0) + accounts.pop("late", 0)
    n_received = accounts.pop("received")
    assert n_received >= len(ordeal.sent)
    assert n_received - n_repeats == sum(accounts.values()) + len(SOURCES)
    assert set(accounts) <= {"published", "suppressed/no_class"}
    assert stored_parts(ordeal.store) == len(SOURCES)
    classes = assert_each_window_has_one_partition(ordeal.seen)
    assert all(m["count"] == m["k"] >= K for messages in classes.values() for m in messages)
    if not ordeal.in_order:
        return
    assert n_received - n_repeats == len(ordeal.sent)
    of_window: dict[float, list[Sent]] = {}
    for part in ordeal.sent:
        of_window.setdefault(part.ts // LENGTH_S * LENGTH_S, []).append(part)
    for start, messages in classes.items():
        assert_classes_keep(messages, of_window[start], k=K, d=2, l=1)
    # Every record has a part of each source.
    n_published = sum(m["count"] for messages in classes.values() for m in messages)
    assert accounts["published"] == n_published * len(SOURCES)


def assert_nothing_raw_is_left(ordeal: Ordeal) -> None:
    for file in ordeal.store.parent.glob("records.sqlite*"):
        content = file.read_bytes()
        for vehicle in {part.vehicle for part in ordeal.sent}:
            assert vehicle.encode() not in content


async def accounts_of(url: str, *, timeout_s: float = DEADLINE_S) -> Accounts:
    async with httpx.AsyncClient(base_url=url, timeout=timeout_s, headers=AS_OPERATOR) as http:
        return read_accounts((await http.get("/metrics")).text)
