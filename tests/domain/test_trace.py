"""Traces that name nodes or have coordinates, and the nodes of a network by their names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network import NodeIndex, NodeNames
from anonymizer.domain.trace import Trace, named_nodes
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from tests.graphs import network_of

ISLANDS = network_of(3, [(0, 1)])


def trace_of(node: NodeNames | None) -> Trace:
    n = 2 if node is None else len(node)
    ts, nowhere = np.zeros(n), np.full(n, np.nan)
    return Trace(("somebody",), np.zeros(n, np.int64), ts, nowhere, nowhere, node=node)


@given(st.lists(st.integers(-5, 5), unique=True, max_size=8), st.lists(st.integers(-6, 6)))
def test_a_node_is_found_by_its_name_as_a_number_and_as_text(
    names: list[int], wanted: list[int]
) -> None:
    expected = [names.index(name) if name in names else -1 for name in wanted]
    have, want = np.array(names, np.int64), np.array(wanted, np.int64)
    for index, asked in (
        (NodeIndex(have), want),
        (NodeIndex(have), want.astype(np.str_)),
        (NodeIndex(have.astype(np.str_)), want),
        (NodeIndex(have.astype(np.str_)), want.astype(np.str_)),
    ):
        assert index.find(asked).tolist() == expected


texts = st.text("ab", max_size=4)


@given(st.lists(texts, unique=True, max_size=8), st.lists(texts), st.integers(0, 9))
def test_a_node_is_found_by_its_name_however_long_others_are(
    names: list[str], wanted: list[str], extra: int
) -> None:
    expected = [names.index(name) if name in names else -1 for name in wanted]
    long = ["ab" * extra] if extra > 2 else []
    for have, want in ((names, wanted + long), (names + long, wanted)):
        found = NodeIndex(np.array(have, np.str_)).find(np.array(want, np.str_))
        assert found[: len(wanted)].tolist() == expected
        assert (found[len(wanted) :] == -1).all()


def test_one_name_of_a_megabyte_widens_no_others() -> None:
    short, long = np.full(100_000, "a", np.str_), np.array(["b" * 1_000_000, "a"], np.str_)
    assert (NodeIndex(long).find(short) == 1).all()
    assert NodeIndex(np.array(["a"])).find(long).tolist() == [-1, 0]


def test_a_trace_of_nodes_names_them_in_the_network() -> None:
    names = ISLANDS.node_id
    found = named_nodes(trace_of(names[[2, 0, 2]]), ISLANDS)
    assert found is not None
    assert found.tolist() == [2, 0, 2]


def test_rows_whose_node_the_network_lacks_are_counted_in_one_line() -> None:
    unknown = np.array([10_000, 20_000], np.int64)
    with pytest.raises(InputError, match=r"^the network lacks the node of 2 rows of the trace$"):
        named_nodes(trace_of(unknown), ISLANDS)


def test_coordinates_need_a_network_with_coordinates() -> None:
    assert named_nodes(trace_of(None), load_network("grid:2x2")) is None
    with pytest.raises(InputError, match="the trace must name nodes"):
        named_nodes(trace_of(None), ISLANDS)


def test_a_trace_tells_how_much_it_holds_and_neither_device_nor_place() -> None:
    trace = trace_of(np.array([0, 1], np.int64))
    assert (trace.n_rows, trace.n_devices) == (2, 1)
    assert repr(trace) == "Trace(2 rows, 1 devices)"
