"""A gateway from an `init` file that publishes nothing says why, wherever somebody may look."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from tests.cli.support import anonymizer
from tests.end_to_end import (
    ANONYMIZER,
    AS_OPERATOR,
    TOKEN,
    Gateway,
    client,
    eventually,
    http_client,
    running,
    send,
    witness,
)

NETWORK = "city:400"
CITY = load_network(NETWORK)
QUICK = {
    "ANONYMIZER__SESSION__BEAT_S": "0.5",
    "ANONYMIZER__TICK__INTERVAL_S": "0.02",
}
PUBLIC = (
    "fewer devices are present than a group needs (5 to 10, by density): nothing is published"
    " until more come; the log says whether a smaller k would do, and what to write for it"
)
WAITING = "devices wait for their first groups: these are formed within 60 s"
TOO_NEW = "ids are too new to be company"
WHY = "anonymizer/status/why"


@asynccontextmanager
async def from_init(
    folder: Path, url: str, environment: dict[str, str] | None = None, *, of_inputs: str = ""
) -> AsyncIterator[Gateway]:
    """Run the gateway with the file that `init` writes, and more of its inputs."""
    config = folder / "gateway.toml"
    flags = ("--yes", "--network", NETWORK, "--broker", url, "--http-port", "0", "--out", config)
    assert anonymizer("init", *flags).returncode == 0
    config.write_text(config.read_text().replace("[[inputs]]", f"[[inputs]]\n{of_inputs}"))
    command = (ANONYMIZER, "serve", "-c", config)
    async with running(*command, environment=environment or {}) as program:
        listening = (await program.logged("listening"))["url"]
        async with http_client(listening) as http:
            yield Gateway(program, http)


def said_by(phone: int) -> tuple[str, bytes]:
    node = int(np.random.default_rng(phone).integers(CITY.n_nodes))
    at = {"lat": float(CITY.lat[node]), "lon": float(CITY.lon[node])}
    return f"positions/phone-{phone}", json.dumps(at).encode()


async def first_frame(gateway: Gateway) -> dict[str, Any]:
    url = "/map/events?mode=session"
    async with gateway._http.stream("GET", url) as answer:
        kind = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            if line.startswith("data: ") and kind == "frame":
                frame: dict[str, Any] = json.loads(line[6:])
                return frame
    raise AssertionError("no frame")


async def test_three_phones_are_told_in_the_log_in_readyz_on_the_status_topic_and_on_the_map(
    broker: LocalBroker, tmp_path: Path
) -> None:
    async with (
        # Each phone reports once.
        from_init(tmp_path, broker.url, QUICK, of_inputs="ids_change_s = 0") as gateway,
        client(broker.url, "phones") as phones,
        witness(broker.url) as watching,
    ):
        await gateway.until_ready()
        await gateway.get_at_once(phones, [said_by(i) for i in range(3)])
        logged = await gateway.program.logged("nothing is published")
        assert logged["why"].startswith("3 devices are present and a group needs 10: ")
        problem = f"output: nothing is published: {PUBLIC}"
        answer = await eventually(lambda: gateway.get("/readyz"), lambda a: problem in a.text)
        assert answer.status_code == 503
        told = (WHY, PUBLIC.encode())
        await watching.until(lambda: told in [(m.topic, m.payload) for m in watching.seen])
        frame = await first_frame(gateway)
        assert frame["pulses"]["session"]["silent"] == PUBLIC
        assert len(gateway.program.events("nothing is published")) == 1
        # Who comes later reads it too; nobody reads how many there are, nor who.
        async with witness(broker.url, "later") as later:
            await later.until(lambda: WHY in {m.topic for m in later.seen})
            kept = {m.topic: m.payload for m in later.seen if m.retained}
        assert kept[WHY] == PUBLIC.encode()
        # Another number is no news; another k that would do is.
        await gateway.get_at_once(phones, [said_by(i) for i in range(5)])

        async def advice() -> list[str]:
            lines = gateway.program.events("nothing is published")
            return [line["why"].partition("k_values = ")[2][:3] for line in lines]

        assert await eventually(advice, lambda told: len(told) > 1) == ["[3,", "[5,"]
        assert not any("phone-" in line for line in gateway.program.lines)


async def test_an_input_that_brings_nothing_usable_is_named_while_another_works(
    broker: LocalBroker, tmp_path: Path
) -> None:
    inputs = "[[inputs]]\n[[inputs]]\ntopic = 'trams/{device}'\n"
    config = tmp_path / "gateway.toml"
    config.write_text(
        f"[network]\nsource = '{NETWORK}'\n[broker]\nurl = '{broker.url}'\n[http]\nport = 0\n"
        f"[region]\nmode = 'adka'\n[tick]\ninterval_s = 0.03\n"
        f"{inputs}"
    )
    token = {"ANONYMIZER__HTTP__TOKEN": TOKEN}
    async with (
        running(ANONYMIZER, "serve", "-c", config, environment=token) as program,
        client(broker.url, "phones") as phones,
        witness(broker.url) as watching,
    ):
        listening = (await program.logged("listening"))["url"]
        await program.logged("broker connected")

        async def speak() -> None:
            while True:
                await send(phones, [said_by(i) for i in range(40)])
                await send(phones, [("trams/9", b'{"latitude": 1}')])
                await asyncio.sleep(0.2)

        speaking = asyncio.create_task(speak())
        try:
            said = await program.logged("nothing that arrives can be used")
        finally:
            speaking.cancel()
        assert (said["input"], said["topic"]) == (2, "trams/{device}")
        assert said["reason"] == "invalid/schema"
        await watching.until(lambda: watching.n_pseudonyms > 0)
        async with http_client(listening) as http:
            problems = (await http.get("/readyz")).json()["problems"]
            public = (await http.get("/metrics")).text
            counts = (await http.get("/metrics", headers=AS_OPERATOR)).text
        assert problems[0].startswith("inputs (no. 2): nothing that arrives can be")
        assert (
            'anonymizer_input_refused_total{input="2",outcome="invalid",reason="schema"}' in counts
        )
        assert "anonymizer_input_refused_total{" not in public


@pytest.mark.soak
@pytest.mark.parametrize("n_phones", [3, 6, 20])
async def test_within_a_minute_of_the_first_position_there_are_regions_or_a_reason(
    broker: LocalBroker, tmp_path: Path, n_phones: int
) -> None:
    async with (
        from_init(tmp_path, broker.url) as gateway,
        client(broker.url, "phones") as phones,
        witness(broker.url) as watching,
    ):
        await gateway.until_ready()
        for turn in range(120):  # half a second each
            await send(phones, [said_by(i) for i in range(n_phones) if (turn + 7 * i) % 60 == 0])
            await asyncio.sleep(0.5)
        # Unless all were on the air at one time, ids may be too new after two reports as well.
        few = (WAITING, "devices wait for their first groups")
        if n_phones < 20:
            few = (PUBLIC, "present and a group needs 10")
        reasons = [few, (TOO_NEW, TOO_NEW)]

        async def told() -> tuple[list[str], str]:
            [problem, *_] = (await gateway.get("/readyz")).json()["problems"] or [""]
            [*_, status] = ["", *(m.payload.decode() for m in watching.seen if m.topic == WHY)]
            shown = (await first_frame(gateway))["pulses"]["session"]["silent"]
            [*_, logged] = ["", *(e["why"] for e in gateway.program.events("nothing is published"))]
            return [problem.removeprefix("output: nothing is published: "), status, shown], logged

        def is_one(seen: tuple[list[str], str]) -> bool:
            if watching.n_pseudonyms:
                assert n_phones == 20
                return True
            return any(
                all(each.startswith(public) for each in seen[0]) and said in seen[1]
                for public, said in reasons
            )

        await eventually(told, is_one)
