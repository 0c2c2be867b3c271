"""Fixed devices on a Mosquitto: from readings alone to what is published, and who is company."""

import json
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.preflight import check_files
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.started import NETWORK, running, say, settled
from tests.end_to_end import client, quick, send, witness

LISTED = [f"air-{i}" for i in range(6)]
SECRET = (float(NETWORK.lat[210]), float(NETWORK.lon[210]))


def tables(folder: Path, url: str) -> dict[str, Any]:
    registry = folder / "sensors.csv"
    lat, lon = SECRET
    rows = [f"{device},{lat!r},{lon!r}" for device in LISTED]
    registry.write_text("\n".join(["device_id,lat,lon", *rows]))
    fixed = {"kind": "fixed", "registry": str(registry)}
    return quick(
        url,
        inputs=[
            {"topic": "positions/{device}"},
            {"topic": "air/{device}", **fixed},
            {"topic": "weather/{device}", **fixed, "kind": "public"},
        ],
        adka={"density_steps": [], "k_values": [3]},
        readings=[{"name": "no2", "lo": 0.0, "hi": 400.0}],
    )


async def test_sensors_are_cloaked_or_public_and_never_company_for_vehicles(
    broker: LocalBroker, tmp_path: Path
) -> None:
    gateway = Gateway(Settings.model_validate(tables(tmp_path, broker.url)), NETWORK)
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        witness(broker.url) as watching,
    ):
        cloaked = [(f"air/{device}", b'{"no2": 12}') for device in LISTED]
        unlisted = ("air/unlisted", b'{"no2": 12}')
        public = ("weather/air-0", b'{"no2": 900, "battery": 3}')
        await send(publisher, [*cloaked, unlisted, public, say("tram", 210), say("bus", 210)])
        await settled(gateway, len(LISTED) + 4)
        n_before = gateway.ledger.n(Outcome.PUBLISHED)  # less than all if a tick ended meanwhile
        n_rounds = 0
        groups: list[Any] = []
        while not groups:  # if a tick ends in each round, each half may be too small for readings
            n_rounds += 1
            await send(publisher, cloaked)
            await settled(gateway, (1 + n_rounds) * len(LISTED) + 4)
            groups = [each for each in watching.on("cloaked/fixed") if "readings" in each]
        await watching.until(lambda: bool(watching.on("public/fixed")))
    assert {each["readings"]["no2"]["mean"] for each in groups} == {12.0}
    assert {each["k"] for each in watching.on("cloaked/fixed")} == {3}
    lat, lon = SECRET
    [told] = watching.on("public/fixed")
    del told["time"]
    assert told == {"device": "air-0", "lat": lat, "lon": lon, "readings": {"no2": 400.0}}
    assert watching.on("cloaked/positions") == []
    assert gateway.ledger.n(Outcome.PUBLISHED) == n_before + n_rounds * len(LISTED)
    assert gateway.ledger.n(Outcome.INVALID__NO_FIX) == 1


def test_a_registry_that_cannot_be_used_is_found_before_the_start(tmp_path: Path) -> None:
    settings = Settings.model_validate(tables(tmp_path, "mqtt://127.0.0.1:1"))
    check_files(settings)
    (tmp_path / "sensors.csv").write_text(f"device_id,lat,lon\n{json.dumps(LISTED[0])},x,1\n")
    with pytest.raises(SettingsError, match=r"inputs: registry: .*sensors.csv: line 2: has no"):
        check_files(settings)
