import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.release_lines import Released, read_auditor_map, read_release
from anonymizer.networks import load_network
from tests.graphs import network_of

GRID = load_network("grid:3x3")
GOOD = {"pseudonym": "secret-name", "time": 1.5, "region": [4, 1], "k": 2}

regions = st.lists(st.integers(0, 8), max_size=3, unique=True)
lines = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), regions, st.integers(1, 9)),
    unique_by=lambda line: line[:2],
).filter(lambda drawn: any(region for _, _, region, _ in drawn))


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path, network: RoadNetwork = GRID) -> list[tuple[str, float, list[int], int]]:
    """Return the records as (pseudonym, time, node indices, k)."""
    return told(read_release(path, network))


def told(released: Released) -> list[tuple[str, float, list[int], int]]:
    observed = released.observed
    return [
        (
            released.pseudonym[observed.pseudonym_of[i]],
            float(observed.time[observed.tick_of[i]]),
            observed.node[slice(*observed.first_node_of[observed.region_of[i] :][:2])].tolist(),
            int(observed.k[i]),
        )
        for i in range(observed.n_records)
    ]


@given(lines)
def test_what_is_published_is_read_back_by_pseudonym_and_time(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, int, list[int], int]]
) -> None:
    path = write(
        tmp_path_factory.getbasetemp() / "drawn.jsonl",
        *({"pseudonym": p, "time": t, "region": region, "k": k} for p, t, region, k in drawn),
    )
    released = read_release(path, GRID)
    published = [line for line in drawn if line[2]]
    order = list(dict.fromkeys(line[0] for line in published))
    expected = sorted(published, key=lambda line: (order.index(line[0]), line[1]))
    assert told(released) == [(p, float(t), region, k) for p, t, region, k in expected]
    assert released.pseudonym == tuple(order)
    assert released.n_suppressed == len(drawn) - len(published)


told_of = st.dictionaries(st.sampled_from("xy"), st.none() | st.floats(-9, 9))


@given(st.data(), lines)
def test_values_stand_beside_the_record_they_came_with(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    drawn: list[tuple[str, int, list[int], int]],
) -> None:
    told = [data.draw(st.none() | told_of) for _ in drawn]
    path = write(
        tmp_path_factory.getbasetemp() / "values.jsonl",
        *(
            {"pseudonym": p, "time": t, "region": region, "k": k}
            | ({} if values is None else {"values": values})
            for (p, t, region, k), values in zip(drawn, told, strict=True)
        ),
    )
    released = read_release(path, GRID)
    observed = released.observed
    values_of = {
        line[:2]: values or {} for line, values in zip(drawn, told, strict=True) if line[2]
    }
    assert released.values.keys() == {name for values in values_of.values() for name in values}
    for name, column in released.values.items():
        expected = [
            values_of[released.pseudonym[p], int(observed.time[t])].get(name)
            for p, t in zip(observed.pseudonym_of.tolist(), observed.tick_of.tolist(), strict=True)
        ]
        assert [None if np.isnan(x) else x for x in column.tolist()] == expected


def test_a_release_without_values_has_none_and_other_fields_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "plain.jsonl", GOOD | {"readings": {"x": {"count": 2}}, "note": []})
    assert read_release(path, GRID).values == {}


def test_a_region_is_one_region_however_it_is_spaced(tmp_path: Path) -> None:
    path = tmp_path / "spaced.jsonl"
    path.write_text(
        '{"pseudonym":"a","time":1,"region":[4,1],"k":2}\n'
        '{"pseudonym":"b","time":1,"region":[ 4, 1 ],"k":2}\n'
    )
    assert read_release(path, GRID).observed.n_regions == 1


def test_nodes_are_found_by_the_names_the_network_gives_them(tmp_path: Path) -> None:
    named = network_of(3, [(0, 1), (1, 2)])
    text = RoadNetwork(
        node_id=np.array(["x", "y", "z"]),
        **{
            name: getattr(named, name)
            for name in RoadNetwork.__dataclass_fields__
            if name != "node_id"
        },
    )
    path = write(tmp_path / "named.jsonl", GOOD | {"region": ["z", "x"]})
    assert read(path, text) == [("secret-name", 1.5, [2, 0], 2)]


def test_suppressed_lines_are_counted_and_not_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "some.jsonl", GOOD, GOOD | {"region": [], "k": 0})
    released = read_release(path, GRID)
    assert (released.observed.n_records, released.n_suppressed) == (1, 1)
    assert "secret-name" not in repr(released)


def test_progress_is_told_by_the_line(tmp_path: Path) -> None:
    many = 120_000
    path = tmp_path / "many.jsonl"
    line = json.dumps(GOOD | {"region": [], "k": 0}) + "\n"
    path.write_text(line * many + json.dumps(GOOD) + "\n")
    steps: list[int] = []
    read_release(path, GRID, progress=steps.append)
    assert many - 50_000 < sum(steps) <= many


def refusal(read_it: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_it(path)
    message = str(caught.value)
    assert "\n" not in message
    assert "secret" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"region": [4, 99]},
            (
                "line 2: names a node that the network lacks: the release is of another network, "
                "or of another mode (adka knows junctions alone)"
            ),
        ),
        ({"region": [4, 4]}, "line 2: region is not a list of distinct nodes"),
        ({"region": "secret"}, "line 2: region is not a list of distinct nodes"),
        ({"region": [["secret"]]}, "line 2: region is not a list of distinct nodes"),
        ({"k": 0}, "line 2: a published region has a time and a k >= 1"),
        ({"k": 2**31}, "line 2: is not a line of such a file"),
        ({"time": "secret"}, "line 2: is not a line of such a file"),
        ({"pseudonym": None}, "line 2: is not a line of such a file"),
        ({"values": {"x": "secret"}}, "line 2: is not a line of such a file"),
        ({"values": [1.0]}, "line 2: is not a line of such a file"),
        ({"values": {"x": float("inf")}}, "line 2: is not a line of such a file"),
    ],
)
def test_a_line_that_cannot_be_judged_is_refused_by_its_number(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    path = write(tmp_path / "bad.jsonl", GOOD, GOOD | {"pseudonym": "other"} | change)
    assert refusal(lambda p: read_release(p, GRID), path) == reason


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe", b'{"time": 1}', b"[]", b"\n"])
def test_what_is_no_release_at_all_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(text)
    assert refusal(lambda p: read_release(p, GRID), path) == "line 1: is not a line of such a file"


def test_a_release_without_a_region_is_nothing_to_audit(tmp_path: Path) -> None:
    path = write(tmp_path / "none.jsonl", GOOD | {"region": [], "k": 0})
    reason = refusal(lambda p: read_release(p, GRID), path)
    assert reason == "publishes no region, there is nothing to audit"


def test_a_pseudonym_that_publishes_twice_at_one_time_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "twice.jsonl", GOOD, GOOD | {"region": [0]}, GOOD | {"time": 2})
    reason = refusal(lambda p: read_release(p, GRID), path)
    assert reason == "a pseudonym publishes twice at one time, 1 times"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.jsonl"
    assert refusal(lambda p: read_release(p, GRID), path).startswith("cannot be read: No such file")
    assert refusal(lambda p: devices(p, ["a"]), path).startswith("cannot be read: No such file")


def devices(path: Path, pseudonym: list[str]) -> list[int]:
    device_of = read_auditor_map(path, pseudonym=pseudonym, device_id=["secret-0", "secret-1"])
    return [int(device) for device in device_of]


def test_the_map_gives_each_pseudonym_its_device(tmp_path: Path) -> None:
    path = write(
        tmp_path / "map.jsonl",
        {"pseudonym": "a", "device": "secret-1"},
        {"pseudonym": "unused", "device": "secret-9"},
        {"pseudonym": "b", "device": "secret-0"},
        {"pseudonym": "c", "device": "secret-1"},
        {"pseudonym": "a", "device": "secret-1"},
    )
    assert devices(path, ["c", "b", "a"]) == [1, 0, 1]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "lacks 1 of 1 pseudonyms of the release"),
        ([("a", "secret-7")], "names 1 devices that the trace lacks"),
        ([("a", "secret-0"), ("a", "secret-1")], "line 2: a pseudonym is two devices"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_without_naming_anyone(
    tmp_path: Path, rows: list[tuple[str, str]], reason: str
) -> None:
    path = write(tmp_path / "m.jsonl", *({"pseudonym": p, "device": d} for p, d in rows))
    assert refusal(lambda p: devices(p, ["a"]), path) == reason
