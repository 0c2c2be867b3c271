"""H3 places: cells of an area and their neighbours."""

import json
from pathlib import Path

import h3
import numpy as np
import pytest

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.h3_places import MAX_CELLS

BOX = "46.40,6.50,46.45,6.65"
LAKE = [[6.50, 46.40], [6.65, 46.40], [6.60, 46.45], [6.50, 46.40]]
ISLAND = [[6.58, 46.41], [6.60, 46.41], [6.60, 46.43], [6.58, 46.41]]


def test_places_are_the_cells_of_the_box_and_roads_lead_to_those_that_they_touch() -> None:
    network = load_network(f"h3:8:{BOX}")
    middles = [h3.cell_to_latlng(cell) for cell in network.node_id.tolist()]
    assert np.allclose(middles, np.column_stack([network.lat, network.lon]))
    # Every cell whose middle is in the box, found from a larger box in another way.
    around = h3.grid_disk(h3.latlng_to_cell(46.425, 6.575, 8), 20)
    inside = {
        cell
        for cell in around
        if 46.40 < (at := h3.cell_to_latlng(cell))[0] < 46.45 and 6.50 < at[1] < 6.65
    }
    assert set(network.node_id.tolist()) == inside
    for i, cell in enumerate(network.node_id.tolist()):
        arcs = slice(network.first_arc_of[i], network.first_arc_of[i + 1])
        joined = set(network.node_id[network.neighbour_of[arcs]].tolist())
        assert joined == {other for other in inside if h3.are_neighbor_cells(cell, other)}


def test_every_position_in_the_area_is_located_in_its_nearest_place() -> None:
    network = load_network(f"h3:8:{BOX}")
    rng = np.random.default_rng(5)
    lat, lon = rng.uniform(46.40, 46.45, 500), rng.uniform(6.50, 6.65, 500)
    # A snap limit of 1 m would leave holes in the middle of cells that are 900 m wide.
    node = NodeLocator(network, limit_m=1.0).locate(lat, lon)
    away = haversine_m(lat[:, None], lon[:, None], network.lat[None, :], network.lon[None, :])
    assert (node != OFF_GRAPH).all()
    # Along the line, not as the crow flies: between two places that are about as near, either.
    found = away[np.arange(500), node]
    assert (found <= away.min(axis=1) + 30).all()
    assert (NodeLocator(network, limit_m=1.0).locate(lat + 0.1, lon) == OFF_GRAPH).all()


@pytest.mark.parametrize(
    "document",
    [
        {"type": "Polygon", "coordinates": [LAKE, ISLAND]},
        {"type": "MultiPolygon", "coordinates": [[LAKE, ISLAND]]},
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [LAKE, ISLAND]}},
                {"type": "Feature", "geometry": {"type": "Point", "coordinates": [6.5, 46.4]}},
            ],
        },
    ],
)
def test_an_area_may_be_drawn_with_holes(tmp_path: Path, document: object) -> None:
    path = tmp_path / "lake.geojson"
    path.write_text(json.dumps(document))
    network = load_network(f"h3:10:{path}")
    whole = {"type": "Polygon", "coordinates": [LAKE]}
    island = set(h3.geo_to_cells({"type": "Polygon", "coordinates": [ISLAND]}, 10))
    assert len(island) > 10
    assert set(network.node_id.tolist()) == set(h3.geo_to_cells(whole, 10)) - island


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("h3:9", "RESOLUTION:AREA"),
        (f"h3:16:{BOX}", "RESOLUTION:AREA"),
        ("h3:9:46,6,47", "RESOLUTION:AREA"),
        ("h3:9:47,6,46,7", "south, west, north and east"),
        ("h3:9:46,6,46.5,nan", "south, west, north and east"),
        ("h3:9:nowhere.geojson", "there is no file"),
        ("h3:1:46.40,6.50,46.41,6.51", "no cell of resolution 1; take a finer one"),
        ("h3:15:35,-10,60,30", "cells of resolution 15, more than 5,000,000"),
    ],
)
def test_an_area_that_cannot_be_used_is_refused(source: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as refusal:
        load_network(source)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1]",
        '{"type": "Point", "coordinates": [6, 46]}',
        '{"type": "Polygon", "coordinates": [[["a", 1]]]}',
    ],
)
def test_a_file_without_polygons_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(text)
    with pytest.raises(InputError, match=r"polygon|GeoJSON"):
        load_network(f"h3:9:{path}")


def test_cells_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    cells = h3.geo_to_cells

    def counted(area: object, resolution: int) -> list[str]:
        found: list[str] = cells(area, resolution)
        made.append(len(found))
        return found

    monkeypatch.setattr(h3, "geo_to_cells", counted)
    with pytest.raises(InputError, match="more than"):
        load_network("h3:12:46.20,6.14,46.52,6.93")
    assert max(made) < MAX_CELLS / 100
