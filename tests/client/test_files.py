"""Recordings, networks, data frames and files for maps."""

import json
import sys
from pathlib import Path
from typing import Any

import geopandas
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
import shapely

from anonymizer import client
from anonymizer.client.messages import Collector
from anonymizer.client.network import from_parts
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.extras import MissingExtraError
from anonymizer.networks import load_network
from anonymizer.networks.publication import geojson, geoparquet, parts
from anonymizer.outputs.current.current_groups import CurrentGroups
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import DeviceMessage, GroupMessage
from tests.cli.support import anonymizer
from tests.client.paper import message, releases, street

GRID = load_network("grid:6x6")
VERSION = network_version(GRID)
STREET = client.read_network(street())


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def recording() -> list[bytes]:
    """Return what `mosquitto_sub -v` prints of a gateway: the network, messages, and others."""
    about, bodies = parts(GRID, most_bytes=4096)
    assert len(bodies) > 1
    names = GRID.node_id.tolist()
    return [
        b"anonymizer/status online",
        b"anonymizer/network " + about.encoded(),
        *(b"anonymizer/network/parts/%d %s" % (i, body) for i, body in enumerate(bodies)),
        b"cloaked/current/1 (null)",
        b"cloaked/positions " + message("ab", names[:3], network=VERSION),
        b'cloaked/counts {"v": 1, "time": 5, "counts": []}',
        b"cloaked/positions " + message("cd", names[3:9], 10, 40, network=VERSION),
    ]


def test_a_recorded_stream_brings_its_network(tmp_path: Path) -> None:
    found = client.read(write(tmp_path / "stream.txt", *recording()))
    assert found.network.version == VERSION
    assert found.devices() == 4
    assert found.left_out == {"not understood": 2, "other topic": 1}


def test_the_network_is_the_same_from_wherever_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "n.geojson").write_bytes(geojson(GRID))
    (tmp_path / "n.parquet").write_bytes(geoparquet(GRID))
    about, bodies = parts(GRID, most_bytes=4096)
    direct = client.read_network(GRID)
    assert client.read_network(direct) is direct
    for other in (
        client.read_network(tmp_path / "n.geojson"),
        client.read_network(str(tmp_path / "n.parquet")),
        client.read_network("grid:6x6"),
        from_parts(about.network, bodies),
    ):
        assert other.version == direct.version == VERSION
        assert other.node_id.tolist() == direct.node_id.tolist()
        assert other.lat == pytest.approx(direct.lat, abs=1e-7)
        assert other.lon == pytest.approx(direct.lon, abs=1e-7)
        assert (other.u.tolist(), other.v.tolist()) == (direct.u.tolist(), direct.v.tolist())
        assert other.length_m == pytest.approx(direct.length_m, abs=0.01)
        assert np.array(other.line) == pytest.approx(np.array(direct.line), abs=1e-7)


def test_what_the_gateway_and_the_command_line_encode_is_understood(tmp_path: Path) -> None:
    """The gateway's own classes, so that a field that is renamed there is noticed here."""
    stats = {"speed_mps": {"mean": 8.0, "p25": 7.0, "p75": 9.0}}
    stamp: dict[str, Any] = {"v": 1, "network": VERSION, "group": "G", "until": 60.0}
    group = GroupMessage(30.0, 2, [0, 1], ["a", "b"], stats, {"no2": [1.0, None]}, **stamp)
    line = DeviceMessage("c", 31.5, [2, 3], 2, stats, {"no2": 5.0}, until=61.5)
    suppressed = DeviceMessage("", 31.5, (), 0)
    lines = [msgspec.json.encode(each) for each in (group, line, suppressed)]
    current = CurrentGroups(topic="t", network=VERSION, grace_s=1.0)
    current.see([Outgoing("t", lines[0])])
    lines += [message.payload for message in current.messages(now=32.0)]
    found = client.read(write(tmp_path / "release.jsonl", *lines), network=GRID)
    # The snapshot does not name c, which is of another run.
    assert [found.devices(at) for at in (29, 30, 31.9, 32, 60)] == [0, 2, 3, 2, 0]
    assert found.left_out == {"suppressed": 1}
    frame = found.to_polars()
    assert frame["k"].to_list() == [2, 2, 2]
    assert frame["no2"].to_list() == [1, None, 5]
    assert frame["speed_mps_p75"].to_list() == [9, 9, 9]
    assert found.speeds()["mean"].tolist() == [8, 8]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "line 2: is not a message of the contract"),
        (b"secret", "line 2: is neither a message nor a topic and its message"),
        (b'{"time": "secret", "region": [1]}', "line 2: is not a message of the contract"),
        (b'{"v": 2, "time": 0}', "line 2: a message has version 2"),
    ],
)
def test_a_bad_line_is_named_and_not_quoted(tmp_path: Path, line: bytes, says: str) -> None:
    path = write(tmp_path / "release.jsonl", message("ab", [10]), line)
    with pytest.raises(InputError, match=says) as caught:
        client.read(path)
    assert "secret" not in str(caught.value)


def test_a_file_without_regions_and_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="publishes no region"):
        client.read(write(tmp_path / "empty.jsonl", b""))
    with pytest.raises(InputError, match="cannot be read"):
        client.read(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        client.read_network(tmp_path / "nowhere.geojson")
    with pytest.raises(InputError, match="anonymizer network export"):
        client.read_network(write(tmp_path / "n.geojson", b"{}"))
    with pytest.raises(InputError, match="anonymizer network export"):
        client.read_network(write(tmp_path / "n.parquet", b"{}"))


def test_another_network_is_refused_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "release.jsonl", message("ab", [0], network="0" * 16))
    with pytest.raises(InputError, match=r"about network 0000.*anonymizer network export"):
        client.read(path, network=GRID)
    path = write(
        tmp_path / "release.jsonl",
        message("ab", [0], network="0" * 16),
        message("cd", [0], network="1" * 16),
    )
    with pytest.raises(InputError, match=r"2 networks .0000.*separately"):
        client.read(path)


@pytest.mark.parametrize("region", ["adka", "snapshot"])
def test_a_release_of_cloak_names_its_network_and_no_other_is_taken(
    region: str, tmp_path: Path
) -> None:
    """Whose nodes are all in the other one, too, and mean something else there."""
    trace, out = tmp_path / "trace.csv", tmp_path / "release.jsonl"
    rows = [f"d{i},{1_800_000_000},{i % 9}" for i in range(40)]
    trace.write_text("\n".join(["device_id,ts,node", *rows]) + "\n")
    words = "--region", region, "--seed", "1", "--out", out
    assert anonymizer("cloak", trace, "--network", "grid:5x5", *words).returncode == 0
    assert client.read(out, network="grid:5x5").network.n_nodes == 25
    with pytest.raises(InputError, match=r"about network \w{16}, and network \w{16} is given"):
        client.read(out, network="grid:8x8")
    done = anonymizer("audit", "stream", trace, out, "--network", "grid:8x8", "--mode", region)
    assert done.returncode == 2, done.stderr
    assert "is of another network" in done.stderr


def test_without_a_network_counts_work_and_places_are_an_error(tmp_path: Path) -> None:
    found = client.read(write(tmp_path / "release.jsonl", message("ab", [10])))
    assert found.devices() == 2
    assert len(found.to_pandas()) == 2
    with pytest.raises(InputError, match=r"public_network.enabled"):
        found.to_geopandas()
    with pytest.raises(InputError, match="no geometries"):
        found.table().write(tmp_path / "x.geojson")


def test_a_region_of_another_network_that_does_not_say_so_is_an_error() -> None:
    found = releases(message("ab", [99]), network=STREET)
    with pytest.raises(InputError, match=r"a node that network .* lacks"):
        found.heat_map(STREET.grid(500))


def paper() -> client.Releases:
    readings = {"speed_mps": {"mean": 8.0, "p25": 7.0, "p75": 9.0}}
    return releases(
        message("ab", [10, 11], readings=readings, values={"no2": [12.0, None]}),
        message("cd", [11, 13], 1.5, float(2**31), network=STREET.version),
        network=STREET,
    )


def test_data_frames_of_all_kinds_have_the_same_rows() -> None:
    found = paper()
    frame, other, places = found.to_pandas(), found.to_polars(), found.to_geopandas()
    assert list(frame.columns) == other.columns == list(places.columns)[:-1]
    assert frame["pseudonym"].tolist() == other["pseudonym"].to_list() == list("abcd")
    assert str(frame["time"].iloc[2]) == "1970-01-01 00:00:01.500000+00:00"
    assert other["time"][2].isoformat() == "1970-01-01T00:00:01.500000+00:00"
    assert frame["region"].tolist() == [[10, 11], [10, 11], [11, 13], [11, 13]]
    assert other["speed_mps_mean"].to_list() == [8, 8, None, None]
    assert other["no2"].to_list() == [12, None, None, None]
    assert places.crs.to_epsg() == 4326
    # Both ends of a road are in the first region; the nodes of the second have none in common.
    assert places.geometry.iloc[0].wkt == "MULTILINESTRING ((0 0, 0.009 0))"
    assert places.geometry.iloc[2].length == 0
    assert len(places.geometry.iloc[2].geoms) == 2


def test_files_for_maps_are_read_back(tmp_path: Path) -> None:
    heat = paper().heat_map(STREET.grid(1500))
    for name in ("heat.geojson", "heat.parquet", "heat.csv"):
        heat.write(tmp_path / name)
    from_json = geopandas.read_file(tmp_path / "heat.geojson", engine="pyogrio")
    assert from_json["devices"].tolist() == heat["devices"].tolist()
    assert from_json.crs.to_epsg() == 4326
    frame = pl.read_parquet(tmp_path / "heat.parquet")
    geo = json.loads(pl.read_parquet_metadata(tmp_path / "heat.parquet")["geo"])
    assert geo["primary_column"] == "geometry"
    assert geo["columns"]["geometry"]["geometry_types"] == ["Polygon"]
    shapes = shapely.from_wkb(frame["geometry"].to_list())
    assert shapely.equals(shapes, from_json.geometry.to_numpy()).all()
    table = pd.read_csv(tmp_path / "heat.csv")
    assert table["latitude"].tolist() == pytest.approx([s.centroid.y for s in shapes])
    assert table["longitude"].tolist() == pytest.approx([s.centroid.x for s in shapes])
    assert table["time"].tolist() == ["1970-01-01T00:00:01.500Z"] * len(heat)
    with pytest.raises(InputError, match="must end in"):
        heat.write(tmp_path / "heat.shp")


def test_every_geometry_is_written_alike_as_text_and_as_bytes(tmp_path: Path) -> None:
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    shapes: list[dict[str, Any]] = [
        {"type": "Point", "coordinates": [1.0, 2.0]},
        {"type": "LineString", "coordinates": [[0.0, 1.0], [2.0, 3.0]]},
        {"type": "Polygon", "coordinates": [square]},
        {"type": "MultiPolygon", "coordinates": [[square], [square]]},
        {"type": "MultiLineString", "coordinates": [[[0.0, 1.0], [2.0, 3.0]]]},
    ]
    table = client.Table({"x": np.arange(5)}, shapes)
    frame = table.to_geopandas()
    assert [shapely.geometry.mapping(each)["type"] for each in frame.geometry] == [
        each["type"] for each in shapes
    ]
    same = shapely.from_geojson([json.dumps(each) for each in shapes])
    assert shapely.equals_exact(frame.geometry.to_numpy(), same).all()
    table.write(tmp_path / "all.csv")
    assert len(pl.read_csv(tmp_path / "all.csv")) == 5


def test_cells_cover_their_nodes() -> None:
    network = client.read_network(GRID)
    for cells in (network.grid(120.0), network.h3(10)):
        shapes = shapely.from_geojson([json.dumps(each) for each in cells.geometry])
        points = shapely.points(network.lon, network.lat)
        assert shapely.intersects(shapely.buffer(shapes[cells.cell_of], 1e-9), points).all()
        assert sorted(set(cells.cell_of.tolist())) == list(range(len(cells)))
    side = network.grid(120.0).geometry[0]["coordinates"][0]
    assert (side[2][1] - side[0][1]) * 111_195 == pytest.approx(120, rel=0.001)
    with pytest.raises(InputError, match="size_m"):
        network.grid(0)
    with pytest.raises(InputError, match="resolution"):
        network.h3(16)


def test_zones_of_ones_own(tmp_path: Path) -> None:
    west = shapely.box(-0.001, -1, 0.0135, 1)
    frame = geopandas.GeoDataFrame({"district": ["W"]}, geometry=[west], crs=4326)
    frame.to_file(tmp_path / "zones.geojson", engine="pyogrio")
    for source in (frame, frame.to_crs(3857), tmp_path / "zones.geojson"):
        cells = STREET.zones(source, name="district")
        assert (cells.name, cells.cell_of.tolist()) == (("W",), [0, 0, -1, -1])
    found = releases(message("ab", [11, 12]), network=STREET)
    heat = found.heat_map(cells)
    # The other half is outside of all zones.
    assert (list(heat["cell"]), list(heat["devices"])) == (["W"], [1])
    with pytest.raises(InputError, match="no property 'name'"):
        STREET.zones(frame, name="name")
    points = geopandas.GeoDataFrame({"district": ["W"]}, geometry=[shapely.Point(0, 0)], crs=4326)
    with pytest.raises(InputError, match="not a polygon"):
        STREET.zones(points, name="district")
    with pytest.raises(InputError, match="cannot be read"):
        STREET.zones(tmp_path / "nowhere.geojson", name="x")
    with pytest.raises(InputError, match="not GeoJSON"):
        STREET.zones(write(tmp_path / "bad.geojson", b"{"), name="x")


def test_a_missing_extra_is_named_and_the_rest_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "geopandas", "shapely"):
        monkeypatch.setitem(sys.modules, name, None)
    found = paper()
    for convert in (found.to_pandas, found.to_geopandas):
        with pytest.raises(MissingExtraError, match=r"anonymizer-gateway\[client\]"):
            convert()
    assert len(found.to_polars()) == len(found)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"anonymizer-gateway\[tables\]"):
        found.to_polars()


def test_a_notebook_shows_the_first_records() -> None:
    shown = paper()._repr_html_()
    assert shown.startswith("<p>Releases(4 records, 4 pseudonyms)</p><table>")
    assert shown.count("<tr>") == 5


def test_nothing_shows_a_place_or_a_pseudonym() -> None:
    found = paper()
    cells = STREET.grid(1500)
    columns = Collector().columns
    columns.pseudonym.append("secret")
    texts = [repr(each) for each in (found, found.table(), STREET, cells, columns)]
    assert texts[0] == "Releases(4 records, 4 pseudonyms)"
    assert texts[3] == "Cells(3 cells)"
    assert "0.009" not in "".join(texts)
    assert "secret" not in texts[4]
