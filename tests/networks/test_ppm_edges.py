"""Maps of the privacy protection module as road networks."""

from pathlib import Path

import pytest

from anonymizer.errors import InputError
from anonymizer.networks import load_network

HEAD = "type,id,geography,attributes\n"
MAP = (
    HEAD
    + """edge,0,0;60.0;24.0:1;60.001;24.0,way_type=motorway:way_id=A
edge,1,0;60.001;24.0:1;60.002;24.0:2;60.002;24.002,way_type=service:way_id=A
"""
)


def write(folder: Path, text: str) -> str:
    path = folder / "map.edges"
    path.write_text(text)
    return str(path)


def test_places_are_nodes_whatever_their_ids_and_every_road_is_two_way(tmp_path: Path) -> None:
    network = load_network(write(tmp_path, MAP), max_spacing_m=0)
    assert network.node_id.tolist() == [0, 1, 2, 3]
    assert network.lat.tolist() == [60.0, 60.001, 60.002, 60.002]
    assert (network.n_roads, network.n_components) == (3, 1)
    assert network.drivable.all()
    assert max(network.speed_mps) > 5 * min(network.speed_mps)
    assert network.length_m.tolist() == pytest.approx([111.2] * 5 + [111.2], abs=0.5)


def test_long_roads_have_nodes_in_between(tmp_path: Path) -> None:
    assert load_network(write(tmp_path, MAP), max_spacing_m=60).n_nodes == 7


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + "circle,1,0;60;24:5,a=b", "line 2: only edges are roads"),
        (HEAD + "edge,1,0;60;24", "line 2: has 3 columns"),
        (HEAD + "edge,1,0;60:1;61;24,a=b", "line 2: is no row of points"),
        (HEAD + "edge,1,0;60;north:1;61;24,a=b", "line 2: is no row of points"),
        (HEAD + "edge,1,0;600;24:1;61;24,a=b", "WGS84"),
        (HEAD, "no road"),
    ],
)
def test_what_is_no_map_of_roads_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_network(write(tmp_path, text))
