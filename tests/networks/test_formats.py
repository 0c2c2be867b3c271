from pathlib import Path

import pytest

from anonymizer.errors import InputError
from anonymizer.networks import load_network


@pytest.mark.parametrize(
    "source",
    [
        "grid:",
        "grid:5",
        "grid:0x5",
        "grid:5x0",
        "grid:-1x5",
        "grid:05x5",
        "grid:5x5x5",
        "grid:9999x9999",
    ],
)
def test_a_grid_of_no_size_is_refused_with_an_example(source: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_network(source)
    assert str(refusal.value).startswith(f"{source}: a grid is ROWSxCOLUMNS, such as 5x5")


@pytest.mark.parametrize(
    "source", ["city:", "city:x", "city:0", "city:3", "city:9000000", "city:10:", "city:10:x"]
)
def test_a_city_of_no_size_is_refused_with_an_example(source: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_network(source)
    assert str(refusal.value).startswith(f"{source}: a city is NODES or NODES:SEED, such as 10000")


def test_a_single_point_is_no_network() -> None:
    with pytest.raises(InputError, match=r"^grid:1x1: has no road$"):
        load_network("grid:1x1")


@pytest.mark.parametrize("ending", ["graphml", "osm.pbf", "net.xml"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, ending: str) -> None:
    source = str(tmp_path / f"nowhere.{ending}")
    with pytest.raises(InputError) as refusal:
        load_network(source)
    assert str(refusal.value) == f"{source}: there is no such file"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.osm").mkdir()
    with pytest.raises(InputError, match="there is no such file"):
        load_network(str(tmp_path / "a.osm"))


@pytest.mark.parametrize("source", ["", "nowhere", "map.dxf", "tree:5"])
def test_an_unknown_form_is_refused_with_the_known_ones(source: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_network(source)
    for known in (".graphml", ".osm.pbf", ".net.xml", "PREFIX_edges", "grid:", "city:"):
        assert known in str(refusal.value)
    assert "\n" not in str(refusal.value)
