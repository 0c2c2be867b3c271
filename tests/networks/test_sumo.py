import gzip
from pathlib import Path

import numpy as np
import pytest
from pyproj import Proj

from anonymizer.errors import InputError
from anonymizer.networks import load_network
from tests.networks.twins import arcs

UTM_33 = "+proj=utm +zone=33 +ellps=WGS84 +datum=WGS84 +units=m +no_defs"
CAR, TRAM = "passenger", "tram"


PLACES = {"a": (100, 200), "b": (300, 200), "c": (300, 500), "d": (0, 0)}


def edge(
    name: str, start: str, end: str, allow: str = CAR, *, function: str = "", bend: str = ""
) -> str:
    first, last = (",".join(map(str, PLACES.get(end, (0, 0)))) for end in (start, end))
    shape = f"{first} {bend} {last}"
    attributes = f' function="{function}"' if function else f' from="{start}" to="{end}"'
    return (
        f'<edge id="{name}"{attributes} priority="1">'
        f'<lane id="{name}_0" index="0" allow="{allow}" speed="13.5" length="70.5"'
        f' shape="{shape}"/></edge>'
    )


def junction(name: str, x: float, y: float) -> str:
    return (
        f'<junction id="{name}" type="priority" x="{x}" y="{y}" incLanes="" intLanes="" shape=""/>'
    )


EDGES = (
    edge(":b_0", "", "", function="internal")
    + edge("ab", "a", "b")
    + edge("ba", "b", "a")
    + edge("bc", "b", "c")
    + edge("cd", "c", "d", TRAM)
)
JUNCTIONS = "".join(junction(name, *place) for name, place in PLACES.items())


def write(path: Path, body: str, projection: str = UTM_33) -> str:
    location = (
        '<location netOffset="-390000,-5810000" convBoundary="0,0,1000,1000"'
        f' origBoundary="13,52,14,53" projParameter="{projection}"/>'
    )
    content = f'<net version="1.0">{location}{body}</net>'.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


@pytest.mark.parametrize("name", ["a.net.xml", "a.net.xml.gz"])
def test_edges_for_cars_become_roads_by_direction(tmp_path: Path, name: str) -> None:
    network = load_network(write(tmp_path / name, EDGES + JUNCTIONS), max_spacing_m=0)
    assert network.node_id.tolist() == ["a", "b", "c"]
    assert arcs(network) == [
        (0, 1, 70.5, True),
        (1, 0, 70.5, True),
        (1, 2, 70.5, True),
        (2, 1, 70.5, False),
    ]
    assert set(network.speed_mps.tolist()) == {13.5}
    assert network.account == "4 edges: 3 open to passenger cars, 1 closed to them"


def test_junctions_lie_where_the_projection_puts_them(tmp_path: Path) -> None:
    network = load_network(write(tmp_path / "a.net.xml", EDGES + JUNCTIONS), max_spacing_m=0)
    x, y = Proj(UTM_33)(network.lon, network.lat)
    np.testing.assert_allclose(x, [390_100, 390_300, 390_300], atol=1e-3)
    np.testing.assert_allclose(y, [5_810_200, 5_810_200, 5_810_500], atol=1e-3)


def test_a_bent_edge_keeps_its_bend_and_gets_nodes_that_both_directions_share(
    tmp_path: Path,
) -> None:
    # The two directions are drawn three metres apart; each is 200 + 300 m long.
    there = edge("ac", "a", "c", bend="300,200")
    back = edge("ca", "c", "a", bend="303,197")
    network = load_network(write(tmp_path / "a.net.xml", there + back + JUNCTIONS))
    assert network.node_id.tolist() == ["a", "c", "~1", "~2", "~3", "~4"]
    assert network.n_roads == 5
    assert network.drivable.all()
    assert network.shapes is not None
    corners = Proj(UTM_33)(network.shapes.lon, network.shapes.lat)
    np.testing.assert_allclose(corners, [[390_300], [5_810_200]], atol=4)


def test_a_network_without_a_projection_has_no_coordinates(tmp_path: Path) -> None:
    network = load_network(write(tmp_path / "a.net.xml", EDGES + JUNCTIONS, projection="!"))
    assert not network.has_coordinates
    assert network.n_roads == 2


def test_a_network_without_roads_for_cars_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.net.xml", edge("cd", "c", "d", TRAM) + JUNCTIONS)
    with pytest.raises(InputError, match="has no road"):
        load_network(path)


@pytest.mark.parametrize(
    ("body", "projection", "complaint"),
    [
        (EDGES + JUNCTIONS, "+proj=nonsense", "no projection that is known: write"),
        (EDGES, UTM_33, "begins or ends at no junction"),
    ],
)
def test_a_network_that_contradicts_itself_is_refused(
    tmp_path: Path, body: str, projection: str, complaint: str
) -> None:
    path = write(tmp_path / "a.net.xml", body, projection)
    with pytest.raises(InputError, match=complaint) as refusal:
        load_network(path)
    assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.net.xml", b"hello"),
        ("a.net.xml", b"<net/>"),
        ("a.net.xml.gz", b"hello"),
        ("a.net.xml.gz", gzip.compress(b"<net version='1.0'/>" * 50, mtime=0)[:-9]),
    ],
)
def test_what_is_not_a_sumo_network_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        load_network(str(path))
    assert str(refusal.value) == f"{path}: is not a SUMO network"
