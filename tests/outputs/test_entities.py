"""Entities say what their messages say, and nothing more."""

import json
from datetime import UTC, datetime
from typing import Any

from anonymizer.outputs.entities import entity

MESSAGE: dict[str, Any] = {
    "v": 1,
    "time": 1800000000.25,
    "until": 1800000030.25,
    "network": "bec64b210518afc4",
    "group": "0Jt1uZ9xQmT4",
    "k": 2,
    "region": [2, 6],
    "pseudonyms": ["a", "b"],
    "readings": {"no2": {"mean": 12.0}},
}
BOX = [24.9, 60.1, 25.0, 60.2]


def made_of(**more: Any) -> dict[str, Any]:  # noqa: ANN401  fields of any kind
    found: dict[str, Any] = json.loads(entity(json.dumps(MESSAGE | more).encode()))
    return found


def test_an_entity_has_the_fields_of_its_message_at_its_time() -> None:
    found = made_of()
    assert (found["id"], found["type"]) == ("urn:ngsi-ld:CloakedGroup:0Jt1uZ9xQmT4", "CloakedGroup")
    at = "2027-01-15T08:00:00.250Z"
    assert datetime.fromisoformat(at) == datetime.fromtimestamp(MESSAGE["time"], UTC)
    for name in ("network", "k", "region", "pseudonyms", "readings"):
        assert found[name] == {"type": "Property", "value": MESSAGE[name], "observedAt": at}
    assert found["until"]["value"] == {"@type": "DateTime", "@value": "2027-01-15T08:00:30.250Z"}
    assert set(found) - set(MESSAGE) == {"@context", "id", "type"}


def test_an_entity_has_a_location_where_the_message_has_a_shape() -> None:
    assert "location" not in made_of()
    lines = {"type": "MultiLineString", "coordinates": [[[24.9, 60.1], [25.0, 60.1]]]}
    assert made_of(geometry=lines)["location"]["value"] == lines
    [ring] = made_of(bbox=BOX)["location"]["value"]["coordinates"]
    assert ring[0] == ring[-1]
    assert {tuple(corner) for corner in ring} == {(x, y) for x in BOX[::2] for y in BOX[1::2]}


def test_an_entity_of_a_member_has_its_pseudonym_for_an_id() -> None:
    member = {key: value for key, value in MESSAGE.items() if key != "pseudonyms"}
    found = json.loads(entity(json.dumps(member | {"pseudonym": "a"}).encode()))
    assert found["id"] == "urn:ngsi-ld:CloakedGroup:a"
