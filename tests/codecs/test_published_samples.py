"""The real payloads in `$ANONYMIZER_DATA/payloads`: each decoded, or refused with its reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import HOSTILE, assert_sound, paths, with_part
from tests.codecs.sample import NO_FIX, NOT_A_POSITION, NULL_ISLAND, SCHEMA

pytestmark = pytest.mark.data

Refused = dict[int, Outcome]
Place = Callable[[Any], Any]

# For each file: its codec, number of lines, the lines (from 1) that must be refused, and where
# a message states its position (latitude, longitude). Taken from the payloads by hand.
PUBLISHED: dict[str, tuple[str, int, Refused, Place]] = {
    "owntracks": ("owntracks", 24, {
        5: NOT_A_POSITION,  # transition
        7: NOT_A_POSITION,  # transition
        19: NOT_A_POSITION,  # transition
        20: NOT_A_POSITION,  # transition, at 0, 0
        22: NOT_A_POSITION,  # waypoint
        23: NOT_A_POSITION,  # will
        24: NOT_A_POSITION,  # unsupported
    }, lambda p: (p["lat"], p["lon"])),
    "hsl_hfp": ("hfp", 14, {}, lambda p: (p[next(iter(p))]["lat"], p[next(iter(p))]["long"])),
    "traccar": ("traccar", 8, {
        3: NO_FIX,  # valid: false
        6: NO_FIX,  # valid: false
    }, lambda p: (p.get("position", p)["latitude"], p.get("position", p)["longitude"])),
    "home_assistant_mqtt_json": ("home_assistant", 3, {
        2: SCHEMA,  # no latitude
        3: SCHEMA,  # the call of a service, another format
    }, lambda p: (p["latitude"], p["longitude"])),
    "meshtastic": ("meshtastic", 11, {
        2: NOT_A_POSITION,  # telemetry
        5: NOT_A_POSITION,  # telemetry
        6: NOT_A_POSITION,  # nodeinfo
        9: NOT_A_POSITION,  # a command to a node
        11: NULL_ISLAND,
    }, lambda p: (p["payload"]["latitude_i"] * 1e-7, p["payload"]["longitude_i"] * 1e-7)),
    "ttn_lorawan": ("ttn", 6, {
        5: NOT_A_POSITION,  # air quality; only the gateway has a place
        6: NOT_A_POSITION,  # nothing decoded
    }, lambda p: [v for k, v in p["uplink_message"]["decoded_payload"].items() if "itude" in k
                  and k != "altitude"]),
    "fiware_ngsi_ld_vehicle": ("ngsi_ld", 2, {}, lambda p: (
        p["location"].get("value", p["location"])["coordinates"][::-1])),
    "j2735_bsm": ("j2735", 166, {}, lambda p: [
        p["payload"]["data"]["coreData"]["position"][key] for key in ("latitude", "longitude")]),
    "gtfs_rt": ("gtfs_rt_json", 61, {}, lambda p: [
        at["vehicle"]["position"][key] for at in p.get("response", {}).get("entity", [p])
        for key in ("latitude", "longitude")]),
}  # fmt: skip


def payloads(name: str) -> list[Any]:
    path = Path(os.environ["ANONYMIZER_DATA"], "payloads", f"{name}.jsonl")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["payload"] for line in lines]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_payload_is_decoded_or_refused_with_its_reason(name: str) -> None:
    codec, n_lines, refused, place = PUBLISHED[name]
    messages = payloads(name)
    assert len(messages) == n_lines
    for line, message in enumerate(messages, start=1):
        found = CODECS[codec](json.dumps(message).encode())
        if line in refused:
            assert (line, found) == (line, [refused[line]])
            continue
        fixes = [one for one in found if isinstance(one, Fix)]
        assert (line, len(fixes)) == (line, len(found))
        stated = [coordinate for fix in fixes for coordinate in (fix.lat, fix.lon)]
        assert stated == pytest.approx(list(place(message)), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "line", "ts", "device"),
    [
        ("owntracks", 1, 1782583402.0, None),
        ("owntracks", 13, 10000000.0, "owntracks/jester/jesterPhone"),
        ("owntracks", 14, None, None),
        ("hsl_hfp", 1, 1489998493.0, "90/6330"),
        ("hsl_hfp", 2, 1713026328.608, "90/6304"),
        ("hsl_hfp", 9, 1788289014.0, "50/117"),
        ("hsl_hfp", 12, 1538391272.0, None),
        ("traccar", 1, 1325469000.0, "1"),
        ("traccar", 2, 1615535474.0, "6"),
        ("traccar", 5, 1783252800.0, "DEVICE_IMEI"),
        ("home_assistant_mqtt_json", 1, None, None),
        ("meshtastic", 3, 1782654734.0, "1201545706"),
        ("meshtastic", 8, None, "305419896"),
        ("ttn_lorawan", 1, 1610808076.374448, "dev-adeunis"),
        ("ttn_lorawan", 3, None, "CattleTracker"),
        ("ttn_lorawan", 4, 1759255200.0, None),
        (
            "fiware_ngsi_ld_vehicle",
            1,
            1615458062.0,
            "urn:ngsi-ld:Vehicle:vehicle:WasteManagement:1",
        ),
        (
            "fiware_ngsi_ld_vehicle",
            2,
            1538049600.0,
            "urn:ngsi-ld:Vehicle:vehicle:WasteManagement:1",
        ),
        ("j2735_bsm", 1, 1525190663.794, "31325431"),  # heard: the vehicle's clock, not the log's
        ("j2735_bsm", 2, 1525190663.694, "31325433"),
        ("gtfs_rt", 1, 1791275720.0, "512000041"),
        ("gtfs_rt", 2, 1454849104.0, "8916"),
    ],
)
def test_time_and_device_of_published_payloads_are_read(
    name: str, line: int, ts: float | None, device: str | None
) -> None:
    message = payloads(name)[line - 1]
    first = CODECS[PUBLISHED[name][0]](json.dumps(message).encode())[0]
    assert isinstance(first, Fix)
    assert (first.ts, first.device) == (ts, device)


@pytest.mark.parametrize(
    ("name", "line", "readings"),
    [
        ("owntracks", 1, {"battery_percent": 85.0, "accuracy_m": 14.0}),
        (
            "owntracks",
            2,
            {"speed_mps": 0.0, "heading_deg": 31.0, "battery_percent": 33.0, "accuracy_m": 5.0},
        ),
        ("owntracks", 14, None),
        ("owntracks", 17, {"speed_mps": 10.0, "heading_deg": 90.0}),
        ("hsl_hfp", 3, {"speed_mps": 12.09, "heading_deg": 333.0}),
        ("hsl_hfp", 8, {"speed_mps": 9.44}),
        ("traccar", 4, {"speed_mps": 48.6 * 1852 / 3600}),
        (
            "traccar",
            7,
            {
                "speed_mps": 0.0,
                "heading_deg": 0.0,
                "accuracy_m": 8.0,
                "sat": 7.0,
                "battery_percent": 55.0,
            },
        ),
        ("home_assistant_mqtt_json", 1, {"battery_percent": 99.9, "accuracy_m": 60.0}),
        ("meshtastic", 10, None),
        (
            "ttn_lorawan",
            1,
            {
                "altitude": 0.0,
                "battery": 4078.0,
                "downlink": 75.0,
                "rssi": -51.0,
                "sats": 8.0,
                "snr": 7.0,
                "temperature": 17.0,
                "uplink": 74.0,
            },
        ),
        ("ttn_lorawan", 2, None),
        ("fiware_ngsi_ld_vehicle", 1, {"speed_mps": 50 / 3.6, "battery_percent": 81.0}),
        ("fiware_ngsi_ld_vehicle", 2, {"speed_mps": 50 / 3.6, "battery_percent": 81.0}),
        ("j2735_bsm", 1, {"speed_mps": 0.1, "heading_deg": 250.9125}),
        ("gtfs_rt", 1, {"speed_mps": 1.6976651999999999, "heading_deg": 315.9}),
        ("gtfs_rt", 2, {"speed_mps": 4.91744}),
    ],
)
def test_readings_of_published_payloads_are_read(
    name: str, line: int, readings: dict[str, float] | None
) -> None:
    message = payloads(name)[line - 1]
    first = CODECS[PUBLISHED[name][0]](json.dumps(message).encode())[0]
    assert isinstance(first, Fix)
    assert first.readings == (None if readings is None else pytest.approx(readings))


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_hostile_part_in_a_published_payload_makes_its_codec_raise(name: str) -> None:
    codec = PUBLISHED[name][0]
    for message in payloads(name)[:24]:
        spots = list(paths(message))
        for i, part in enumerate(HOSTILE * 3):
            spot = spots[i * 7919 % len(spots)]
            assert_sound(codec, json.dumps(with_part(message, spot, part)).encode())
