import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.cells.representatives import is_missing, representatives
from anonymizer.algorithms.records.attributes import banded, banded_attribute, in_bands
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.domain.records import Records, Schema
from tests.algorithms.cells import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, records

WITH_GAPS = Schema((numbers("age", 1, 2, 3, 4, missing=True), *SCHEMA.qis[1:]), (), ((0, 1, 2),))


@given(records(), st.data(), st.sampled_from([SCHEMA, WITH_GAPS]))
def test_a_class_is_represented_by_its_median_and_its_most_frequent_categories(
    table: Records, data: st.DataObject, schema: Schema
) -> None:
    drawn = data.draw(st.lists(st.integers(-1, 3), min_size=table.n, max_size=table.n))
    known = [-1, *sorted(set(drawn) - {-1})]
    class_of = np.array([known.index(c) - 1 for c in drawn], np.int32)
    found = representatives(table.qi, classes_of(class_of), schema)
    assert found.shape == (len(known) - 1, 3)
    for c in range(len(known) - 1):
        for j, qi in enumerate(schema.qis):
            member = np.flatnonzero(class_of == c).tolist()
            assert found[c, j] == naive.representative(table, j, qi, member)


def test_a_representative_is_missing_where_most_members_are() -> None:
    age = WITH_GAPS.qis[0]
    np.testing.assert_array_equal(is_missing(np.array([5.0, 4.0]), age), [True, False])
    np.testing.assert_array_equal(is_missing(np.zeros(2), categories("x", "ab")), [False, False])


@given(
    st.lists(st.integers(-9, 9), max_size=20),
    st.lists(st.integers(-6, 6), unique=True, max_size=5).map(sorted),
)
def test_a_value_is_in_the_band_above_every_edge_that_it_has_reached(
    values: list[int], edges: list[int]
) -> None:
    bands = banded(values, edges)
    assert bands.tolist() == [sum(edge <= value for edge in edges) for value in values]
    attribute = banded_attribute("dose", edges)
    assert attribute.size == len(edges) + 1
    assert attribute.numeric
    assert (bands < attribute.size).all()


@pytest.mark.parametrize("missing", [True, False])
def test_a_code_is_in_the_band_of_its_number_and_the_marker_in_none(*, missing: bool) -> None:
    bands, band = in_bands(numbers("dose", 1, 2, 4, missing=missing), [2.0])
    assert band.tolist() == [0, 1, 1, 2][: 3 + missing]
    assert (bands.size, bands.missing) == ((3, 2) if missing else (2, -1))


@pytest.mark.parametrize("edges", [[2, 1], [1, 1], [float("nan")], [float("inf")], [[1.0]]])
def test_edges_that_do_not_rise_are_refused(edges: list[float]) -> None:
    with pytest.raises(ValueError, match="must be finite and rise"):
        banded([1.0], edges)


def test_what_is_no_number_is_in_no_band() -> None:
    with pytest.raises(ValueError, match="in no band"):
        banded([float("nan")], [1.0])
