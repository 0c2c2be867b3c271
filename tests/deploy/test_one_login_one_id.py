"""One login, one counted id: what the rules that we write let a user say, and how it is counted.

k counts ids. A user who may write under several would be its own company, so every rule that is
written or shipped is tried here with the inputs that are written or shipped beside it, by the
patterns of a real Mosquitto.
"""

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonymizer.app.connect.broker_files import rules
from anonymizer.app.connect.ecosystems import ECOSYSTEMS
from anonymizer.codecs import FORMATS
from anonymizer.pipeline.positions.decode.topics import TopicRouter, subscription
from anonymizer.settings import InputSettings, Settings
from anonymizer.settings.base import id_levels
from anonymizer.transport.local_brokers import mosquitto
from tests.console import ROOT, blocks
from tests.deploy.files import DEPLOY
from tests.end_to_end import client

OWN, ANOTHER = "alice", "bob"
TRIED = (OWN, ANOTHER, "phone", "phone2")
"""What a user puts into each level that is not fixed, and in place of one that is."""
SHIPPED = (DEPLOY / "mosquitto.acl").read_text().splitlines()
OF_USERS = [line.split()[2] for line in SHIPPED if line.startswith("pattern write ")]
SOURCES = [
    pytest.param(
        InputSettings.model_validate(known.input),
        list(rules(Settings.model_validate({"inputs": [known.input]}), known, ())),
        id=name,
    )
    for name, known in ECOSYSTEMS.items()
    if known.has_users
] + [
    pytest.param(InputSettings(topic=topic.replace("%u", "{device}")), SHIPPED, id=topic)
    for topic in OF_USERS
]


def topics_of(input_: InputSettings) -> Iterator[str]:
    """Yield topics that the input reads, and topics beside it, with the name of another too."""
    levels = [
        TRIED if level in {"+", "#"} or level.startswith("{") else (level, *TRIED)
        for level in [*input_.topic.split("/"), "#"]
    ]
    for n in range(1, len(levels) + 1):
        for of_levels in itertools.product(*levels[:n]):
            yield "/".join(of_levels)


@pytest.mark.parametrize(("input_", "lines"), SOURCES)
async def test_one_login_can_write_under_exactly_one_counted_id(
    input_: InputSettings, lines: list[str], tmp_path: Path
) -> None:
    acl = tmp_path / "acl"
    acl.write_text("\n".join([*lines, "", "user reader", "topic read #", ""]))
    acl.chmod(0o700)
    broker = mosquitto(tmp_path, f"acl_file {acl}")
    arrived: dict[str, set[str]] = {}
    router = TopicRouter([input_])
    await broker.start()
    try:
        async with client(broker.url, "reader", username="reader") as reader:
            await reader.subscribe(subscription(input_.topic), qos=1)
            for user in (OWN, ANOTHER):
                async with client(broker.url, user, username=user) as device:
                    for topic in topics_of(input_):
                        await device.publish(topic, user, qos=1)
                    own = input_.topic.replace("{device}", user).replace("{user}", user)
                    await device.publish(own, f"the last of {user}", qos=1)
                async for message in reader.messages:
                    assert isinstance(message.payload, bytes)
                    found = router.find(str(message.topic))
                    assert found is not None
                    arrived.setdefault(user, set()).add(found.device or "")
                    if message.payload.startswith(b"the last"):
                        break
    finally:
        await broker.stop()
    assert arrived == {OWN: {OWN}, ANOTHER: {ANOTHER}}


def test_a_login_that_speaks_for_many_is_a_server_and_its_rules_say_so() -> None:
    servers = {name for name, known in ECOSYSTEMS.items() if not known.has_users}
    assert servers == {"traccar", "meshtastic", "ttn", "hsl"}
    for name in servers:
        known = ECOSYSTEMS[name]
        settings = Settings.model_validate({"inputs": [known.input]})
        said = list(rules(settings, known, ()))
        speaker = said.index(f"user {known.publisher}")
        assert "It speaks for all devices" in said[speaker - 1]


def test_every_documented_input_of_phones_counts_the_user_alone() -> None:
    stated = [
        InputSettings.model_validate(each)
        for page in sorted((ROOT / "docs").glob("*.md"))
        for block in blocks(page)
        if block.language == "toml"
        for each in tomllib.loads(block.text).get("inputs", [])
    ]
    of_phones = {name for name, each in FORMATS.items() if each.named_by_topic}
    phones = [each for each in stated if each.codec in of_phones]
    assert {each.codec for each in phones} == of_phones
    assert all(len(id_levels(each.topic)) == 1 for each in phones)


@pytest.mark.parametrize("name", [None, *ECOSYSTEMS])
def test_by_the_rules_that_we_write_gateways_alone_hear_each_other(name: str | None) -> None:
    lines = SHIPPED
    if name is not None:
        known = ECOSYSTEMS[name]
        lines = list(rules(Settings.model_validate({"inputs": [known.input]}), known, ()))
    gateway, analyst = (
        list(itertools.takewhile(bool, lines[lines.index(f"user {user}") :]))
        for user in ("gateway", "analyst")
    )
    assert {"topic read anonymizer/probe", "topic write anonymizer/#"} <= set(gateway)
    assert "topic deny anonymizer/probe" in analyst
