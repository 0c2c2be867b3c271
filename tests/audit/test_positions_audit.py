"""Regions and classes of the same vehicles: attacked together, each alone, and with a stranger."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anonymizer.audit.attacks.positions_with_records import CONTROL, POSITIONS, TOGETHER
from anonymizer.audit.joint_audit import audit_positions
from anonymizer.cli.audit import app
from anonymizer.errors import InputError, SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import Settings
from tests.pipeline.records.made import FLEET, REGIONS, traffic
from tests.pipeline.records.support import Rig

N, N_WINDOWS, LENGTH_S = 80, 3, 60.0
GRID = load_network("grid:8x8")
CORNER = {"north": (0, 0), "south": (0, 4), "east": (4, 0), "west": (4, 4)}
"""Row and column where the quarter of each region begins: a vehicle stays where it is at home."""
TABLES: dict[str, Any] = {
    "network": {"source": "grid:8x8"},
    "streams": [{**FLEET, "cumulative": "report"}],
}


def quarter(region: str) -> list[int]:
    row, column = CORNER[region]
    return [8 * (row + i) + column + j for i in range(4) for j in range(4)]


def record(path: Path) -> None:
    """Record the records and classes of a fleet, where it is, and a region for each quarter."""
    parts = list(traffic(n_vehicles=N, n_windows=N_WINDOWS, seed=1))
    rig = Rig(path.parent, cumulative="report")
    rig.take(*parts)
    rig.close()
    rig.close(silent=True)
    waiting = rig.flow.waiting(limit=10**6)
    rig.store.close()
    messages: list[tuple[str, Any]] = [(part.topic, json.loads(part.payload)) for part in parts]
    messages += [(each.message.topic, json.loads(each.message.payload)) for each in waiting]
    home = {part.vehicle: part.values["region"] for part in parts if "region" in part.values}
    for ts in range(0, int(N_WINDOWS * LENGTH_S), 10):
        for i, (vehicle, region) in enumerate(home.items()):
            node = quarter(region)[(i + ts // 10) % 16]
            place = {"lat": GRID.lat[node], "lon": GRID.lon[node], "ts": ts + 1.0}
            messages.append((f"positions/{vehicle}", place))
        for region in REGIONS:
            names = [f"{region}-{i}" for i in range(4)]
            told = {"time": ts + 2.0, "k": 4, "region": quarter(region), "pseudonyms": names}
            messages.append(("cloaked/positions", told | {"until": ts + 13.0}))
    lines = (json.dumps({"topic": topic, "payload": payload}) for topic, payload in messages)
    path.write_text("\n".join(lines) + "\n")


def audit(path: Path, tables: dict[str, Any] = TABLES) -> dict[tuple[str, str | None], Any]:
    settings = Settings.model_validate(tables)
    report = audit_positions(
        declare(settings.streams[0]), settings, GRID, published=path, truth=path
    )
    assert report.n_windows == N_WINDOWS
    assert report.holds
    found = {(each.attack, each.attribute): each.figures for each in report.findings}
    assert len(found) == len(report.findings)
    return found


def test_a_value_that_goes_with_a_place_is_read_from_the_region_and_not_from_a_strangers(
    tmp_path: Path,
) -> None:
    record(tmp_path / "all.jsonl")
    found = audit(tmp_path / "all.jsonl")
    together, alone = found[TOGETHER, "region"], found["fleet alone", "region"]
    assert together["n_vehicles"] == alone["n_vehicles"] > N / 2
    assert alone["n_read"] < together["n_vehicles"] / 2
    assert together["n_read"] == together["n_vehicles"]
    assert found[CONTROL, "region"]["n_read"] < together["n_read"] / 2
    # A value that every place has is left as the classes leave it, or narrowed with the region.
    assert found[POSITIONS, "speed"]["n_read"] == 0
    assert found[TOGETHER, "type"]["values_left"] <= found["fleet alone", "type"]["values_left"]
    place = "place (registration)"
    assert found[TOGETHER, place]["values_left"] <= found[POSITIONS, place]["values_left"]


def test_the_command_attacks_both_together_and_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    path, config = tmp_path / "all.jsonl", tmp_path / "gateway.toml"
    record(path)
    streams = json.dumps(TABLES["streams"]).replace('":', '" =').replace("true", "true")
    config.write_text(f'network.source = "grid:8x8"\nstreams = {streams}\n')
    call = ["windows", str(path), str(path), "-c", str(config), "--with-positions", "--json", "-"]
    ran = CliRunner().invoke(app, call)
    assert ran.exit_code == 0, ran.output
    assert '"positions with records"' in ran.stdout
    refused = CliRunner().invoke(app, [*call, "--with", "fleet"])
    assert refused.exit_code == 1
    with pytest.raises(SettingsError, match="none has positions that the audit can read"):
        audit(path, TABLES | {"inputs": [{"device_from": "payload", "topic": "positions"}]})
    kept = [line for line in path.read_text().splitlines() if '"positions/' not in line]
    path.write_text("\n".join(kept) + "\n")
    with pytest.raises(InputError, match="no window has a vehicle in a class and in a region"):
        audit(path)
