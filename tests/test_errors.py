"""What errors quote comes from files and strangers: it is bounded, and moves no cursor."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import AnonymizerError, GuaranteeError, InputError, SettingsError
from anonymizer.networks import load_network
from tests.cli.support import anonymizer

LONG = 1_000_000
KINDS = (AnonymizerError, InputError, SettingsError, GuaranteeError)


@given(st.sampled_from(KINDS), st.text(max_size=40), st.integers(0, 3_000))
def test_a_message_is_bounded_and_printable_and_whole_where_it_can_be(
    kind: type[AnonymizerError], text: str, n: int
) -> None:
    quoted = text * n
    said = str(kind(quoted))
    assert len(said) <= 2_100
    assert all(each.isprintable() or each in "\n\t" for each in said)
    if len(quoted) <= 2_000 and quoted.isprintable():
        assert said == quoted
    assert str(pickle.loads(pickle.dumps(kind(quoted)))) == said  # noqa: S301  our own


@pytest.mark.parametrize("name", ["x" * LONG, "\x1b[2J" * 1000, "a\rb"])
def test_a_node_of_a_megabyte_costs_a_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "town_nodes.csv").write_text("node_id,lat,lon\nhere,60,24\nthere,60.01,24\n")
    (tmp_path / "town_edges.csv").write_text(f'u,v\nhere,"{name}"\n')
    with pytest.raises(InputError) as caught:
        load_network(str(tmp_path / "town"))
    assert len(str(caught.value)) <= 2_100
    assert "\x1b" not in str(caught.value)
    told = anonymizer("network", "export", tmp_path / "town", "--out", tmp_path / "a.geojson")
    assert told.returncode == 2
    assert "which is not among the nodes" in told.stderr
    assert len(told.stderr) <= 2_500
    assert "\x1b" not in told.stderr
