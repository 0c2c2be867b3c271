"""The published network: complete, within the size of a packet, and readable by others."""

import json
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.publication import geojson, geoparquet, parts

GRID = load_network("grid:4x5")


def features_of(text: bytes) -> list[dict[str, Any]]:
    body = json.loads(text)
    assert body["type"] == "FeatureCollection"
    found: list[dict[str, Any]] = body["features"]
    return found


def one_way() -> Any:  # noqa: ANN401  the type is the loader's
    return from_arrays(
        node_id=np.array(["a", "b", "c"]),
        lat=np.array([60.0, 60.0, 60.001]),
        lon=np.array([24.0, 24.001, 24.001]),
        u=np.array([1, 1]),
        v=np.array([0, 2]),
        length_m=np.array([60.0, np.nan]),
        speed_mps=np.array([10.0, 12.5]),
        forward=np.array([True, True]),
        backward=np.array([False, True]),
    )


def test_the_whole_network_is_drawn() -> None:
    body = json.loads(geojson(GRID))
    assert body["network"] == network_version(GRID)
    kinds = [each["properties"]["kind"] for each in body["features"]]
    assert kinds == ["node"] * GRID.n_nodes + ["road"] * GRID.n_roads
    at = {each["id"]: each["geometry"]["coordinates"] for each in body["features"][: GRID.n_nodes]}
    for road in body["features"][GRID.n_nodes :]:
        said = road["properties"]
        assert road["geometry"]["coordinates"] == [at[said["u"]], at[said["v"]]]


def test_a_one_way_road_says_in_which_direction() -> None:
    [first, second] = features_of(geojson(one_way()))[3:]
    # The road is listed from its smaller node; it may be driven from b to a only.
    assert (first["properties"]["u"], first["properties"]["v"]) == ("a", "b")
    assert (first["properties"]["forward"], first["properties"]["backward"]) == (False, True)
    assert (second["properties"]["forward"], second["properties"]["backward"]) == (True, True)


@pytest.mark.parametrize("most_bytes", [4096, 5000, 1_000_000])
def test_parts_fit_into_a_packet_and_make_up_the_whole(most_bytes: int) -> None:
    about, found = parts(GRID, most_bytes=most_bytes)
    assert about.parts == len(found)
    assert max(map(len, found)) <= most_bytes
    assert [json.loads(part)["part"] for part in found] == list(range(len(found)))
    assert {json.loads(part)["network"] for part in found} == {about.network}
    assert {json.loads(part)["of"] for part in found} == {about.parts}
    together = [feature for part in found for feature in features_of(part)]
    assert together == features_of(geojson(GRID))
    assert (about.n_nodes, about.n_roads) == (GRID.n_nodes, GRID.n_roads)


def test_a_node_that_fits_into_no_part_has_its_own() -> None:
    network = from_arrays(
        node_id=np.array(["a" * 5000, "b"]),
        lat=np.zeros(2) + 1,
        lon=np.zeros(2) + 1,
        u=np.array([0]),
        v=np.array([1]),
        length_m=np.array([1.0]),
        speed_mps=np.array([1.0]),
        forward=np.array([True]),
        backward=np.array([True]),
    )
    _, found = parts(network, most_bytes=4096)
    assert [len(features_of(part)) for part in found] == [1, 1, 1]
    assert len(found[1]) < 4096 < len(found[0])


def test_geoparquet_has_the_metadata_and_the_geometry_of_its_standard(tmp_path: Path) -> None:
    content = geoparquet(one_way())
    path = tmp_path / "roads.parquet"
    path.write_bytes(content)
    metadata = pl.read_parquet_metadata(path)
    geo = json.loads(metadata["geo"])
    assert geo["version"] == "1.1.0"
    assert geo["columns"][geo["primary_column"]]["encoding"] == "WKB"
    assert metadata["network"] == network_version(one_way())
    frame = pl.read_parquet(BytesIO(content))
    assert frame["kind"].to_list() == ["node"] * 3 + ["road"] * 2
    line = frame["geometry"][3]
    assert struct.unpack("<BIIdddd", line) == (1, 2, 2, 24.0, 60.0, 24.001, 60.0)


def test_the_version_follows_from_the_network_alone() -> None:
    assert network_version(one_way()) == network_version(one_way())
    assert network_version(GRID) != network_version(load_network("grid:5x4"))
    moved = np.array(GRID.lat)
    moved[3] += 1e-6
    assert network_version(GRID) != network_version(load_like(GRID, moved))


def load_like(network: Any, lat: Any) -> Any:  # noqa: ANN401  one column replaced
    from dataclasses import replace  # noqa: PLC0415

    return replace(network, lat=lat)


def test_a_network_without_coordinates_cannot_be_drawn() -> None:
    nowhere = load_like(GRID, np.full(GRID.n_nodes, np.nan))
    with pytest.raises(InputError, match="no coordinates"):
        geojson(nowhere)
