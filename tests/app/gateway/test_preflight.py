"""What `check` tries: effects of settings, not only their form."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.app.gateway.preflight import check_files
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.cli.support import anonymizer

NETWORK = "grid:20x20"
ROADS = load_network(NETWORK)
MIDDLE = float(ROADS.lat.mean()), float(ROADS.lon.mean())


def checked(*zones: dict[str, Any]) -> None:
    check_files(Settings.model_validate({"network": {"source": NETWORK}, "zones": zones}))


def circle(lat: float, lon: float, radius_m: float = 300.0) -> dict[str, Any]:
    return {"circle": {"lat": lat, "lon": lon, "radius_m": radius_m}}


def polygon(lat: float, lon: float, half: float = 0.002) -> dict[str, Any]:
    signs = ((-1, -1), (-1, 1), (1, 1), (1, -1))
    return {"polygon": [[lat + half * a, lon + half * b] for a, b in signs]}


@pytest.mark.parametrize("shape", [circle, polygon])
def test_a_zone_with_exchanged_coordinates_is_refused_with_what_would_help(shape: Any) -> None:  # noqa: ANN401
    lat, lon = MIDDLE
    checked(shape(lat, lon))
    with pytest.raises(SettingsError, match="latitude and longitude exchanged") as refused:
        checked(shape(lat, lon), shape(lon, lat))
    said = str(refused.value)
    assert said.startswith("zones (no. 2): there is no road of the network in it")
    [n] = re.findall(r"hold ([\d,]+) nodes", said)
    assert int(n.replace(",", "")) > 0
    for number in np.round([lat, lon], 3):
        assert str(number) not in said
    # The hint, followed to its end.
    checked(shape(lat, lon), shape(lat, lon))


@pytest.mark.parametrize("shape", [circle, polygon])
def test_a_zone_far_from_every_road_is_refused_without_a_hint(shape: Any) -> None:  # noqa: ANN401
    with pytest.raises(SettingsError, match=r"protects nothing$"):
        checked(shape(-40.0, 170.0))


def test_a_small_zone_beside_a_road_is_fine_even_without_a_node() -> None:
    u, v = 0, int(ROADS.neighbour_of[0])
    between = (ROADS.lat[u] + ROADS.lat[v]) / 2, (ROADS.lon[u] + ROADS.lon[v]) / 2
    checked(circle(float(between[0]), float(between[1]), 5.0))


def test_check_says_which_k_is_published_and_what_zones_hold(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(
        '[network]\nsource = "grid:20x20"\n[adka]\nk_values = [10, 5, 2]\nk_floor = 7\n[[zones]]\n'
        f"circle = {{ lat = {MIDDLE[0]}, lon = {MIDDLE[1]}, radius_m = 300.0 }}\n"
    )
    said = anonymizer("check", "--config", tmp_path / "gateway.toml")
    assert said.returncode == 0, said.stderr
    assert "k: 7 to 10, by density\n" in said.stdout
    assert "warning: adka.k_floor = 7 overrules 5, 2 of adka.k_values\n" in said.stdout
    assert re.search(r"zones \(no\. 1\): [1-9]\d* nodes of the network are in it\n", said.stdout)
