"""Vehicles whose records a gateway takes while it fails, an analyst, and what must be left."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
from tests.end_to_end import AS_OPERATOR, DEADLINE_S, Accounts, eventually, read_accounts
from tests.pipeline.records.made import LENGTH_S, SOURCES, Sent, traffic

N_VEHICLES = 30
CHUNK = 45
LAST_VEHICLE = "the-last"
"""It reports a time so late that every other window closes."""


def patient(url: str, **more: object) -> BrokerSettings:
    return BrokerSettings.model_validate(
        {"url": url, "reconnect_min_s": 0.02, "reconnect_max_s": 0.1, **more}
    )


@dataclass
class Vehicles:
    """Vehicles that send window after window until `enough`, and each part until it is taken."""

    pause_s: float
    sent: list[Sent] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def drive(self, url: str) -> None:
        link = MqttLink(patient(url), client_id="vehicles", deliver=lambda _: None)
        running_link = asyncio.create_task(link.run(), name="vehicles' link")
        window = 0
        while not self.enough.is_set():
            start = window * LENGTH_S
            await self._send(
                link, list(traffic(n_vehicles=N_VEHICLES, n_windows=1, seed=window, start=start))
            )
            window += 1
        end = (window + 10) * LENGTH_S
        await self._send(link, [Sent(LAST_VEHICLE, source, end, {}) for source in SOURCES])
        await link.close()
        await running_link

    async def _send(self, link: MqttLink, parts: Sequence[Sent]) -> None:
        for i in range(0, len(parts), CHUNK):
            chunk = list(parts[i : i + CHUNK])
            self.sent += chunk
            while chunk:
                await link.until_connected()
                messages = [Outgoing(part.topic, part.payload) for part in chunk]
                took = await link.publish(messages, qos=1, timeout_s=DEADLINE_S)
                chunk = [part for part, there in zip(chunk, took, strict=True) if not there]
            await asyncio.sleep(self.pause_s)


@asynccontextmanager
async def analyst(url: str, seen: list[bytes]) -> AsyncIterator[None]:
    """Somebody whose subscription outlives the broker, so that no message is missed."""
    link: MqttLink

    def see(deliveries: Sequence[Delivery]) -> None:
        seen.extend(delivery.payload for delivery in deliveries)
        link.acknowledge(delivery.receipt for delivery in deliveries)

    link = MqttLink(
        patient(url, session_expiry_s=600),
        client_id="analyst",
        deliver=see,
        subscriptions=[("anonymized/#", 1)],
    )
    task = asyncio.create_task(link.run(), name="analyst")
    await link.until_connected()
    try:
        yield
    finally:
        await link.close()
        await task


@dataclass
class Ordeal:
    """What was sent, what the analyst has seen, and the store that is left."""

    sent: list[Sent]
    seen: list[bytes]
    store: Path


async def until_only_the_last_is_held(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=DEADLINE_S, headers=AS_OPERATOR) as http:

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
    # What comes again after a kill is late if its window has closed.
    n_repeats = accounts.pop("duplicate", 0) + accounts.pop("late", 0)
    assert accounts.pop("received") - n_repeats == len(ordeal.sent)
    assert set(accounts) <= {"published", "suppressed/no_class"}
    assert sum(accounts.values()) == len(ordeal.sent) - len(SOURCES)
    assert stored_parts(ordeal.store) == len(SOURCES)
    classes = assert_each_window_has_one_partition(ordeal.seen)
    of_window: dict[float, list[Sent]] = {}
    for part in ordeal.sent:
        of_window.setdefault(part.ts // LENGTH_S * LENGTH_S, []).append(part)
    for start, messages in classes.items():
        assert_classes_keep(messages, of_window[start], k=4, d=2, l=1)
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
