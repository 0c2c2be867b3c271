"""Gateways that record a stream, what is sent to them, and what they published."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from tests.app.gateway.records import (
    write_records_settings,
)
from tests.end_to_end import (
    ANONYMIZER,
    AS_OPERATOR,
    DEADLINE_S,
    TOKEN,
    Gateway,
    Witness,
    eventually,
    http_client,
    running,
)
from tests.observe.samples import samples
from tests.pipeline.records.made import LENGTH_S, SOURCES, Sent
from tests.preloaded import ran


@asynccontextmanager
async def serving_records(folder: Path, url: str, **more: Any) -> AsyncIterator[Gateway]:  # noqa: ANN401
    config = write_records_settings(
        folder / "gateway.toml", url, store=folder / "records.sqlite", **more
    )
    token = {"ANONYMIZER__HTTP__TOKEN": TOKEN}
    async with running(ANONYMIZER, "serve", "-c", config, environment=token) as program:
        url = (await program.logged("listening"))["url"]
        await program.logged("broker connected for records")
        async with http_client(url, headers=AS_OPERATOR) as http:
            yield Gateway(program, http)


async def publish(url: str, parts: Sequence[Sent | Delivery]) -> None:
    """Publish parts at QoS 1, in order, until the broker has them all."""
    link = MqttLink(BrokerSettings(url=url), client_id="vehicles", deliver=lambda _: None)
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        messages = [Outgoing(part.topic, part.payload) for part in parts]
        assert all(await link.publish(messages, qos=1, timeout_s=DEADLINE_S))
        await link.close()


LAST = [Sent(f"last-{i}", source, 1e4, {}) for i in range(4) for source in SOURCES]
"""Parts so late, and of as many vehicles as k, that every other window closes."""


def in_window(parts: Sequence[Sent], window: int) -> list[Sent]:
    return [part for part in parts if part.ts // LENGTH_S == window]


async def counted(gateway: Gateway) -> dict[tuple[str, ...], float]:
    """Return all samples of the records flow by name and labels."""
    return samples((await gateway.get("/metrics")).text)


def seen_classes(watching: Witness) -> list[bytes]:
    return [m.payload for m in watching.seen if m.topic == "anonymized/fleet"]


async def printed(
    program: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> str:
    """Return what a console script that ends well writes to standard output."""
    done = await asyncio.to_thread(ran, program.name, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def until_held(gateway: Gateway, n: int) -> dict[tuple[str, ...], float]:
    """Wait until exactly so many parts are held; return what is exported then."""
    return await eventually(
        lambda: counted(gateway),
        lambda now: now.get(("anonymizer_record_parts_held", "fleet")) == n,
    )
