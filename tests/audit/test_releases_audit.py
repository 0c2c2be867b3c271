"""Two streams that read one topic: their releases attacked together, each alone, and a control."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from anonymizer.audit.attacks.releases_together import CONTROL, TOGETHER
from anonymizer.audit.joint_audit import audit_releases
from anonymizer.cli.audit import app
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.settings import LimitSettings, Settings
from tests.app.gateway.records import toml
from tests.pipeline.records.made import FLEET, Sent, stream, traffic
from tests.pipeline.records.support import Rig

SPEED, FAULT = FLEET["attributes"][3:]
HEAT = {"name": "heat", "lo": 0, "hi": 200}
LOAD = {"name": "load", "lo": 0, "hi": 40}


def second(*attributes: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a stream that reads the topic of telemetry, and weights that no other one reads."""
    tells = [each["name"] for each in attributes]
    sources = [{"name": "telemetry", "tells": tells}, {"name": "weights", "tells": ["load"]}]
    return {
        **FLEET,
        "name": "health",
        "sources": sources,
        "attributes": [*attributes, LOAD],
        **changes,
    }


APART = second(HEAT)
SHARED = second(SPEED, cumulative="report")
FIRST: dict[str, Any] = {
    "cumulative": "report",
    "sources": [FLEET["sources"][1], {"name": "telemetry", "tells": ["speed"]}],
    "attributes": FLEET["attributes"][2:4],
}
"""A stream that tells the age of the driver and the speed."""


def declared(table: dict[str, Any]) -> Stream:
    return declare(Settings.model_validate({"streams": [table]}).streams[0])


def recorded(
    path: Path,
    other: dict[str, Any],
    *,
    n_vehicles: int = 40,
    **changes: Any,  # noqa: ANN401
) -> tuple[Stream, Stream]:
    """Record what two streams of one gateway receive and publish."""
    one, two = stream(**changes), declared(other)
    rng = np.random.default_rng(3)
    parts = []
    for part in traffic(n_vehicles=n_vehicles, n_windows=4, seed=1):
        more = {"heat": int(rng.integers(0, 200))} if part.source == "telemetry" else {}
        parts.append(Sent(part.vehicle, part.source, part.ts, part.values | more))
        if part.source == "telemetry":
            load = {"load": int(rng.integers(0, 40))}
            parts.append(Sent(part.vehicle, "weights", part.ts, load))
    rig = Rig(path.parent, others=[two], **changes)
    rig.take(*parts)
    rig.close()
    rig.close(silent=True)
    waiting = rig.flow.waiting(limit=10**6)
    rig.store.close()
    received = [(part.topic, part.payload) for part in parts]
    published = [(each.message.topic, each.message.payload) for each in waiting]
    lines = [
        json.dumps({"topic": topic, "payload": json.loads(payload)})
        for topic, payload in (*received, *published)
    ]
    path.write_text("\n".join(lines) + "\n")
    return one, two


def audit(path: Path, one: Stream, two: Stream) -> dict[tuple[str, str | None], Any]:
    report = audit_releases(one, two, published=path, truth=path, limits=LimitSettings())
    assert report.n_windows == 4
    found = {(each.attack, each.attribute): each for each in report.findings}
    assert len(found) == len(report.findings)
    return found


def test_values_that_one_stream_tells_alone_are_left_as_alone(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    one, two = recorded(path, APART)
    found = audit(path, one, two)
    for name, attribute in (("fleet", "speed"), ("health", "heat")):
        together, alone = found[TOGETHER, attribute], found[f"{name} alone", attribute]
        assert together.required
        assert together.holds
        assert together.figures == alone.figures
        assert together.figures["n_vehicles"] > 40  # vehicles times windows
        assert together.figures["n_below_d"] == 0


def test_values_that_both_tell_are_read_by_intersection_and_by_no_stranger(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    one, two = recorded(path, SHARED, n_vehicles=200, **FIRST)
    found = audit(path, one, two)
    together = found[TOGETHER, "speed"]
    assert not together.required
    alone = [found[f"{name} alone", "speed"].figures for name in ("fleet", "health")]
    assert all(each["n_below_d"] == 0 for each in alone)
    assert together.figures["n_below_d"] > 0  # neither stream leaves so few
    assert found[CONTROL, "speed"].figures["n_below_d"] == 0
    assert together.figures["values_left"] < 0.8 * min(each["values_left"] for each in alone)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    one, two = recorded(path, APART)
    sources = [{**each, "topic": "x/{source}/{vehicle}"} for each in APART["sources"]]
    apart = declared({**APART, "name": "apart", "sources": sources})
    with pytest.raises(SettingsError, match="fleet and apart read no topic in common"):
        audit(path, one, apart)
    finer = declared(second({**SPEED, "step": 0.25}, HEAT, cumulative="report"))
    with pytest.raises(SettingsError, match="declare different values of speed"):
        audit(path, stream(cumulative="report"), finer)
    received = [line for line in path.read_text().splitlines() if "anonymized" not in line]
    path.write_text("\n".join(received) + "\n")
    with pytest.raises(InputError, match="no window of fleet overlaps with one of health"):
        audit(path, one, two)


def test_the_command_attacks_two_streams_and_exits_0_where_each_value_is_in_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "all.jsonl"
    recorded(path, APART)
    config = tmp_path / "gateway.toml"
    config.write_text("inputs = []\n" + "streams = [" + ",".join(map(toml, (FLEET, APART))) + "]\n")
    call = ["windows", str(path), str(path), "--stream", "fleet", "-c", str(config)]
    ran = CliRunner().invoke(app, [*call, "--with", "health", "--json", "-"])
    assert ran.exit_code == 0, ran.output
    assert '"releases together"' in ran.stdout
    refused = CliRunner().invoke(app, [*call, "--with", "fleet"])
    assert "stream: must be one of fleet, health" in str(refused.exception)
