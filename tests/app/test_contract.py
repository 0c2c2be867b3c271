"""The contract: every message that a real broker carries is one that the contract describes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from anonymizer.app.contract import asyncapi, channels
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.codecs import native
from anonymizer.domain.fixes import Fix
from anonymizer.networks import load_network
from anonymizer.outputs import late_density
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.contracts import (
    ECHOES,
    EVERYTHING,
    FORMS,
    KAFKA,
    Contract,
    closed,
    schemas,
)
from tests.app.gateway.started import NETWORK, running, say
from tests.end_to_end import client, eventually, quick, send, witness

LAT, LON = float(NETWORK.lat[210]), float(NETWORK.lon[210])
OUT = {
    "cloaked/positions", "cloaked/fixed", "public/fixed", "cloaked/counts", "cloaked/counts/cells",
    "cloaked/trips", "cloaked/trips/cells",
    "cloaked/current/0", "anonymizer/network", "anonymizer/network/parts/0", "anonymizer/status",
    "anonymizer/rejected", "anonymizer/state", "anonymizer/probe", "cloaked/entities",
    "public/density", "public/density/cells",
    "homeassistant/device/anonymizer/config", "cloaked/echo/{pseudonym}",
}  # fmt: skip


def general(topic: str) -> str:
    """Return a topic without the pseudonym that it names."""
    return re.sub(r"^cloaked/echo/.*", "cloaked/echo/{pseudonym}", topic)


@pytest.mark.parametrize(
    ("forms", "shape"),
    [
        (FORMS, "roads"),
        pytest.param(FORMS, "bbox", marks=pytest.mark.soak),
        ([*FORMS, "device"], "nodes"),
    ],
)
async def test_every_message_on_every_topic_is_as_the_contract_says(
    broker: LocalBroker, forms: list[str], shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_density, "EVERY_S", 1)
    more = {
        "output": EVERYTHING["output"] | {"forms": forms},
        "shapes": {"regions": shape},
        "broker": {"url": broker.url, "max_backlog_s": 5.0},
    }
    tables = quick(broker.url, **EVERYTHING | more)
    settings = Settings.model_validate(tables)
    body = json.dumps({"lat": LAT, "lon": LON, "readings": {"no2": 12, "speed_mps": 3}}).encode()
    wild = [(f"positions/lost-{i}", b'{"lat": 95, "lon": 0}') for i in range(40)]
    traffic = [
        *((f"{kind}/{i}", body) for kind in ("air", "weather") for i in range(6)),
        *(say(f"tram-{i}", 210) for i in range(12)),
        *wild,
        ("zones/tram-1", b'[{"circle": {"lat": 60.17, "lon": 24.94, "radius_m": 300}}]'),
    ]
    gateway = Gateway(settings, NETWORK)
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        witness(broker.url) as watching,
    ):

        async def topics() -> set[str]:
            await send(publisher, traffic)
            return {general(message.topic) for message in watching.seen}

        await eventually(topics, lambda seen: seen >= OUT)
    emptied = [m for m in watching.seen if not m.payload]
    assert {m.topic.rpartition("/")[0] for m in emptied} <= {"cloaked/current", "anonymizer/status"}
    contract = Contract(settings)
    for message in watching.seen:
        if message.payload and not message.topic.startswith("positions/lost-"):
            contract.check(message)


@pytest.mark.parametrize("tables", [EVERYTHING, {"output": {"qos": 1}, "inputs": ECHOES}])
def test_every_schema_is_one_and_fits_its_example(tables: dict[str, Any]) -> None:
    settings = Settings.model_validate(tables)
    document = asyncapi(settings)
    known = schemas(settings)
    assert known
    for schema in known.values():
        Draft202012Validator.check_schema(schema)
    for name, message in document["components"]["messages"].items():
        schema = known.get(name, True)
        for example in message.get("examples", ()):
            Draft202012Validator(closed(schema)).validate(example["payload"])


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = asyncapi(Settings.model_validate(EVERYTHING))

    def references(part: Any) -> list[str]:  # noqa: ANN401  any part of the document
        if isinstance(part, list):
            return [each for item in part for each in references(item)]
        if not isinstance(part, dict):
            return []
        own = [part["$ref"]] if "$ref" in part else []
        return own + [each for item in part.values() for each in references(item)]

    found = references(document)
    assert found
    for reference in found:
        at: Any = document
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]


def test_all_topics_of_the_settings_are_in_the_contract() -> None:
    settings = Settings.model_validate(
        EVERYTHING
        | {
            "streams": [
                {
                    "name": "fleet",
                    "sources": [{"name": "all", "tells": ["speed"]}],
                    "attributes": [{"name": "speed", "lo": 0, "hi": 9}],
                }
            ]
        }
    )
    known = {channel.address for channel in channels(settings)}
    assert {topic.replace("/0", "/{part}") for topic in OUT} <= known
    assert {"positions/{device}", "air/{device}", "zones/{device}", "anonymized/fleet"} <= known
    operations = asyncapi(settings)["operations"].values()
    assert {each["action"] for each in operations} == {"send", "receive"}


positions = st.fixed_dictionaries(
    {"lat": st.floats(-100, 100), "lon": st.floats(-200, 200)},
    optional={
        "ts": st.none() | st.floats(0, 2e9),
        "device": st.none() | st.text(min_size=1, max_size=9) | st.integers(0, 99),
        "readings": st.none() | st.just({"speed_mps": 3}),
    },
)


def test_a_gateway_in_kafka_has_channels_of_kafka_alone_and_says_what_keys_are() -> None:
    document = asyncapi(Settings.model_validate(KAFKA))
    topics = {each["bindings"]["kafka"]["topic"] for each in document["channels"].values()}
    assert topics == {"raw", "coarse", "cloaked", "parts", "classes"}
    assert {each["address"] for each in document["channels"].values()} == topics
    keyed = {
        name: each["bindings"]["kafka"]["key"]["description"]
        for name, each in document["components"]["messages"].items()
        if "bindings" in each
    }
    assert keyed == {
        "Position_j2735": "The id of the device.",
        "Echo_j2735": "The pseudonym.",
        "Group": "The group.",
        "Part_fleet_all": "The id of the vehicle.",
    }


def test_records_of_mqtt_beside_positions_of_kafka_stay_in_the_contract() -> None:
    stream = KAFKA["streams"][0] | {
        "topic": "anonymized/{stream}",
        "sources": [{"name": "all", "tells": ["speed"]}],
    }
    settings = Settings.model_validate(KAFKA | {"streams": [stream]})
    addresses = {channel.address for channel in channels(settings)}
    assert addresses == {
        "raw", "coarse", "cloaked", "records/{source}/{vehicle}", "anonymized/fleet"
    }  # fmt: skip


@given(positions)
def test_the_codec_accepts_what_the_contract_accepts(position: dict[str, Any]) -> None:
    validator = Draft202012Validator(schemas(Settings())["Position"])
    zero = position["lat"] == position["lon"] == 0
    [found] = native.decode(json.dumps(position).encode())
    assert isinstance(found, Fix) == (validator.is_valid(position) and not zero)


def test_the_contract_does_not_need_the_network(tmp_path: Path) -> None:
    missing = Settings.model_validate({"network": {"source": str(tmp_path / "no.osm.pbf")}})
    assert asyncapi(missing)["channels"] == asyncapi(Settings())["channels"]
    assert load_network("grid:2x2").n_nodes == 4
