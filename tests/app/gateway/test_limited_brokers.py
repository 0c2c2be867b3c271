"""The gateway at brokers with limits: positions flow, and `/readyz` names what is missing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from anonymizer.settings import BrokerSettings
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from anonymizer.transport.refused_topics import refused_topics
from tests.app.gateway.test_service_failures import crowd
from tests.cli.support import anonymizer
from tests.end_to_end import client, eventually, quick, send, serving, witness, write_settings
from tests.transport.managed_broker import (
    Rule,
    at_most,
    forbidden,
    managed,
    no_qos_1,
    no_retained_message,
    no_retained_will,
)


class Behaviour(NamedTuple):
    """A broker's: lines of Mosquitto, rules of a relay before it, and what is said of it."""

    lines: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    notes: Sequence[str] = ()
    problems: Sequence[str] = ()


BEHAVIOURS: Mapping[str, Behaviour] = {
    "no retained messages": Behaviour(["retain_available false"], notes=["retains nothing"]),
    "QoS 0 alone": Behaviour(["max_qos 0"], notes=["QoS 0 alone"]),
    "ends at a retained will": Behaviour(rules=[no_retained_will], notes=["retains nothing"]),
    "ends at a retained message": Behaviour(rules=[no_retained_message], notes=["retains nothing"]),
    "ends at QoS 1": Behaviour(rules=[no_qos_1], notes=["QoS 0 alone"]),
    "ends at a filter": Behaviour(
        rules=[forbidden(b"other")], problems=["refused: other/+: the broker ends the connection"]
    ),
    "small packets": Behaviour(["max_packet_size 1500"]),
    "ends at large packets": Behaviour(rules=[at_most(20_000)]),
    "short keep-alive": Behaviour(["max_keepalive 10"]),
}
QUICK = {"no retained messages", "ends at a filter"}


@asynccontextmanager
async def behaving(folder: Path, how: Behaviour) -> AsyncIterator[tuple[LocalBroker, str]]:
    """Run a broker; yield it and the address for the gateway."""
    broker = mosquitto(folder, *how.lines)
    await broker.start()
    try:
        async with managed(broker.url, *how.rules) as (url, _):
            yield broker, url
    finally:
        await broker.stop()


def says(answer: Mapping[str, Any], key: str, wanted: Sequence[str]) -> bool:
    return all(any(each in said for said in answer[key]) for each in wanted)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.soak]) for name in BEHAVIOURS],
)
async def test_positions_flow_and_what_is_missing_is_said(name: str, tmp_path: Path) -> None:
    how = BEHAVIOURS[name]
    inputs: list[Mapping[str, Any]] = [{"topic": f"{x}/{{device}}"} for x in ("positions", "other")]
    async with (
        behaving(tmp_path, how) as (broker, url),
        witness(broker.url) as seen,
        serving(
            tmp_path, quick(url, inputs=inputs, broker={"keepalive_s": 12}, output={"qos": 1})
        ) as gateway,
    ):
        await gateway.program.logged("broker connected")
        async with client(broker.url, "publisher") as publisher:

            async def published() -> int:
                await send(publisher, crowd(50))
                await asyncio.sleep(0.1)
                return seen.n_pseudonyms

            await eventually(published, lambda n: n > 0)

        async def ready() -> dict[str, Any]:
            return dict((await gateway.get("/readyz")).json())

        await eventually(
            ready,
            lambda said: says(said, "notes", how.notes) and says(said, "problems", how.problems),
        )


async def test_an_input_of_which_nothing_ever_came_is_explained_beside_one_that_flows(
    tmp_path: Path,
) -> None:
    inputs: list[Mapping[str, Any]] = [
        {"topic": "positions/{device}"},
        {"topic": "other/{device}", "qos": 1},
    ]
    async with (
        behaving(tmp_path, Behaviour()) as (broker, _),
        serving(tmp_path, quick(broker.url, inputs=inputs)) as gateway,
        client(broker.url, "publisher") as publisher,
    ):
        await gateway.program.logged("broker connected")
        await send(publisher, crowd(20))
        said = await gateway.program.logged("nothing arrives")
        assert (said["flow"], said["topics"]) == ("positions (input no. 2)", ["other/+"])
        assert "the broker said 'Granted QoS 1' to the subscription" in said["likely"]
        [note] = (await gateway.get("/readyz")).json()["notes"]
        assert note.startswith("positions (input no. 2): nothing has arrived yet: the broker said")


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_check_says_what_a_broker_can_do_and_what_will_be_missing(
    version: str, tmp_path: Path
) -> None:
    lines = ["retain_available false", "max_qos 0", "max_packet_size 2000"]
    async with behaving(tmp_path, Behaviour(lines)) as (broker, _):
        config = write_settings(
            tmp_path / "gateway.toml", quick(broker.url, broker={"version": version})
        )
        told = await asyncio.to_thread(anonymizer, "check", "-c", config, "--connect")
    assert told.returncode == 0, told.stderr
    said = "broker: connected; largest QoS 0; no retained messages; packets up to 2,000 bytes; "
    assert said in told.stdout
    assert "missing: the broker retains nothing" in told.stdout
    assert "missing: the broker takes QoS 0 alone" in told.stdout


async def test_check_says_why_the_broker_does_not_let_the_gateway_in(tmp_path: Path) -> None:
    async with behaving(tmp_path, Behaviour(["allow_anonymous false"])) as (broker, _):
        config = write_settings(tmp_path / "gateway.toml", quick(broker.url))
        told = await asyncio.to_thread(anonymizer, "check", "-c", config, "--connect")
    assert told.returncode == 2
    assert told.stderr == "anonymizer: broker: not connected: refused: Not authorized\n"


async def test_check_names_a_subscription_that_is_refused(tmp_path: Path) -> None:
    inputs: list[Mapping[str, Any]] = [{"topic": f"{x}/{{device}}"} for x in ("positions", "other")]
    async with (
        behaving(tmp_path, Behaviour()) as (broker, _),
        managed(broker.url, forbidden(b"other")) as (url, _),
    ):
        config = write_settings(tmp_path / "gateway.toml", quick(url, inputs=inputs))
        told = await asyncio.to_thread(anonymizer, "check", "-c", config, "--connect")
    assert told.returncode == 0, told.stderr
    assert "missing: the broker refuses the subscription other/+" in told.stdout


async def test_check_names_the_topic_of_other_gateways_where_it_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite positions/#\ntopic readwrite cloaked/#\n")
    rules.chmod(0o600)
    async with behaving(tmp_path, Behaviour([f"acl_file {rules}"])) as (broker, _):
        config = write_settings(tmp_path / "gateway.toml", quick(broker.url))
        told = await asyncio.to_thread(anonymizer, "check", "-c", config, "--connect")
    assert "anonymizer/probe (not authorized)" in told.stdout


@pytest.mark.parametrize(("version", "qos"), [("5", 0), ("5", 1), ("3.1.1", 0)])
async def test_outputs_that_the_access_rules_refuse_are_named_wherever_one_looks(
    version: str, qos: int, tmp_path: Path
) -> None:
    """At QoS 0, and in MQTT 3.1.1 at any, such a broker says nothing to the messages themselves."""
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite positions/#\ntopic readwrite anonymizer/#\n")
    rules.chmod(0o600)
    tables: dict[str, Any] = {"broker": {"version": version}, "output": {"qos": qos}}
    async with (
        behaving(tmp_path, Behaviour([f"acl_file {rules}"])) as (broker, _),
        serving(tmp_path, quick(broker.url, **tables)) as gateway,
    ):
        said = await gateway.program.logged("the broker refuses outputs")
        assert "cloaked/positions (not authorized)" in said["problem"]

        async def ready() -> dict[str, Any]:
            return dict((await gateway.get("/readyz")).json())

        said = await eventually(ready, lambda said: said["status"] != "ok")
        assert any("cloaked/positions (not authorized)" in each for each in said["problems"])
        config = write_settings(tmp_path / "asked.toml", quick(broker.url, **tables))
        told = await asyncio.to_thread(anonymizer, "check", "-c", config, "--connect")
        assert "missing: broker: it refuses messages on cloaked/positions" in told.stdout


async def test_a_broker_is_asked_without_a_message_for_readers(tmp_path: Path) -> None:
    async with (
        behaving(tmp_path, Behaviour()) as (broker, _),
        witness(broker.url) as seen,
        client(broker.url, "publisher") as publisher,
    ):
        topics = ["cloaked/positions", "cloaked/counts"]
        settings = BrokerSettings(url=broker.url)
        assert await refused_topics(settings, topics, client_id="asks") == {}
        await send(publisher, [("after", b"")], qos=1)
        await seen.until(lambda: bool(seen.seen))
        assert [each.topic for each in seen.seen] == ["after"]
