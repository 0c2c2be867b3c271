"""The toy in the documentation: it runs, keeps what it promises, and names real files."""

import json
import math
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "toy_gateway.py"
TOY = runpy.run_path(str(PATH))

vehicles = st.sampled_from(["a", "b", "c"])
positions = st.tuples(vehicles, st.integers(0, 5), st.integers(0, 4))
messages = st.lists(st.one_of(positions, st.just(None)), max_size=12)


def said(position: tuple[str, int, int] | None) -> tuple[str, bytes]:
    if position is None:
        return "positions/a", b"{"
    device, junction, ts = position
    place = {"ts": ts, "lat": TOY["LAT"][junction], "lon": TOY["LON"]}
    return f"positions/{device}", json.dumps(place).encode()


def test_it_prints_one_message_of_two_vehicles(capsys: pytest.CaptureFixture[str]) -> None:
    TOY["main"]()
    first, accounts = capsys.readouterr().out.splitlines()
    told = json.loads(first)
    assert (told["k"], len(told["pseudonyms"]), len(told["region"])) == (2, 2, 4)
    assert "veh-" not in first + accounts


@given(st.lists(messages, max_size=4))
def test_every_message_is_accounted_for_and_every_region_holds_k(
    ticks: list[list[tuple[str, int, int] | None]],
) -> None:
    density: Any = TOY["Density"]()
    pseudonym_of = {"a": "x", "b": "y", "c": "z"}
    for n, arrived in enumerate(ticks):
        out, outcomes = TOY["tick"](
            [said(each) for each in arrived], density, now=float(n), pseudonym_of=pseudonym_of
        )
        assert outcomes.total() == len(arrived)
        for each in map(json.loads, out):
            inside = sum(at in each["region"] for at in density.junction_of.values())
            assert inside >= each["k"] == 2
            assert len(each["pseudonyms"]) >= 2


@pytest.mark.parametrize("lat", [math.nan, "x", None, 61.0])
def test_what_cannot_be_used_is_refused_without_a_value(lat: object) -> None:
    arrived = [("positions/a", json.dumps({"ts": 1.0, "lat": lat, "lon": 24.0}).encode())]
    out, outcomes = TOY["tick"](arrived, TOY["Density"](), now=1.0, pseudonym_of={})
    assert out == []
    assert set(outcomes) <= {"invalid/schema", "suppressed/off_graph"}


def test_it_names_files_that_exist_and_is_short_enough_to_be_read() -> None:
    text = PATH.read_text()
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text)
    assert len(named) >= 8
    for name in set(named) - {"anonymizer/"}:
        near = [ROOT / "anonymizer" / name, ROOT / "anonymizer/algorithms/positions" / name]
        assert any(path.exists() for path in near), name
    assert len(text.splitlines()) <= 300
