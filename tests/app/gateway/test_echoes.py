"""Echoes through a real broker: the recipes of the manual, as printed."""

import json
import tomllib
from typing import Any

import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.started import NETWORK, running
from tests.console import ROOT, blocks
from tests.end_to_end import client, eventually, quick, send, witness

LAT, LON = float(NETWORK.lat[210]), float(NETWORK.lon[210])


def recipes() -> list[dict[str, Any]]:
    """Return the settings on the page of recipes that echo through MQTT, as printed."""
    page = ROOT / "docs" / "recipes.md"
    tables = [tomllib.loads(block.text) for block in blocks(page) if block.language == "toml"]
    return [
        each
        for each in tables
        if any("echo" in input_ for input_ in each.get("inputs", ())) and "kafka" not in each
    ]


def said_by(codec: str, number: int) -> tuple[str, bytes]:
    """Return what a phone says that stands somewhere beside the same node."""
    lat, lon = LAT + 1e-6 * number, LON
    if codec == "owntracks":
        body = {"_type": "location", "lat": lat, "lon": lon, "acc": 5, "batt": 50 + number}
        return f"owntracks/user-{number}/phone", json.dumps(body).encode()
    body = {"latitude": lat, "longitude": lon, "gps_accuracy": 5, "battery_level": 50 + number}
    return f"location/phone-{number}", json.dumps(body).encode()


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe["inputs"][0]["codec"])
async def test_a_recipe_shows_ten_phones_at_the_centre_of_their_region(
    broker: LocalBroker, recipe: dict[str, Any]
) -> None:
    [input_] = recipe["inputs"]
    tables = quick(broker.url, **recipe, adka={"density_steps": [], "k_values": [10]})
    gateway = Gateway(Settings.model_validate(tables), NETWORK)
    tree = input_["echo"].partition("{")[0]
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        witness(broker.url) as watching,
    ):

        async def shown() -> int:
            await send(publisher, [said_by(input_["codec"], i) for i in range(10)])
            return len({m.topic for m in watching.seen if m.topic.startswith(tree)})

        await eventually(shown, lambda n: n == 10)
    echoes = [m for m in watching.seen if m.topic.startswith(tree)]
    assert not any(m.retained for m in echoes)
    names = {name for said in watching.on("cloaked/positions") for name in said["pseudonyms"]}
    assert {m.topic.removeprefix(tree) for m in echoes} <= names
    places = set()
    for message in echoes:
        [fix] = CODECS[input_["codec"]](message.payload)
        assert isinstance(fix, Fix)
        # What the echo itself states of its place; what phones had stated is dropped.
        assert set(fix.readings or {}) <= {"accuracy_m"}, "the battery is dropped"
        places.add((fix.lat, fix.lon))
    assert len(places) <= len({tuple(m["region"]) for m in watching.on("cloaked/positions")})
