"""What a reader of labels gets right, against one who writes out every value."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.column_utility import (
    distance,
    mean_places,
    pair_distances,
    shares_of_codes,
)
from anonymizer.algorithms.releases.released_classes import ReleasedLabels, publish
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records.made import SCHEMA, records


def allowed(labels: ReleasedLabels, c: int) -> list[int]:
    """Return the codes that the label of a class allows, one by one."""
    runs = range(labels.first_of[c], labels.first_of[c + 1])
    return [code for run in runs for code in range(labels.lo[run], labels.hi[run] + 1)]


def in_pairs(table: Records) -> Int32Array:
    return (np.arange(table.n) // 2).astype(np.int32)


@given(records())
def test_shares_and_means_are_those_of_the_written_out_values(table: Records) -> None:
    class_of = in_pairs(table)
    seen, size = publish(table, SCHEMA, class_of), np.bincount(class_of)
    for attribute, labels in zip(SCHEMA.qis, seen.qi, strict=True):
        codes = [allowed(labels, c) for c in range(seen.n_classes)]
        read = np.zeros(attribute.size)
        for c, each in enumerate(codes):
            read[each] += size[c] / len(each) / table.n
        assert shares_of_codes(labels, size, attribute.size) == pytest.approx(read)
        means = [attribute.position[each].mean() for each in codes]
        assert mean_places(labels, attribute.position) == pytest.approx(means)


def test_the_distance_is_half_of_what_must_move() -> None:
    assert distance(np.array([0.5, 0.5, 0]), np.array([0.25, 0.25, 0.5])) == 0.5
    assert distance(np.array([1.0, 0]), np.array([0, 1.0])) == 1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=12))
def test_pairs_of_short_columns_are_compared_value_by_value(rows: list[tuple[int, int]]) -> None:
    schema = Schema(
        qis=(
            Attribute("a", np.arange(5.0), tuple("abcde")),
            Attribute("b", np.arange(4.0), tuple("wxyz")),
        ),
        sensitive=(),
        sources=((0,), (1,)),
    )
    n, codes = len(rows), np.array(rows, np.int32)
    table = Records(codes, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
    class_of = in_pairs(table)
    seen = publish(table, schema, class_of)
    read, true = np.zeros((5, 4)), np.zeros((5, 4))
    for i, (a, b) in enumerate(rows):
        true[a, b] += 1 / n
        pairs = list(product(*(allowed(labels, int(class_of[i])) for labels in seen.qi)))
        for pair in pairs:
            read[pair] += 1 / len(pairs) / n
    found = pair_distances(seen.qi, schema.qis, class_of, codes)
    assert found[0, 1] == found[1, 0] == pytest.approx(np.abs(read - true).sum() / 2)
    assert (np.diag(found) == 0).all()


def test_pairs_of_numbers_are_compared_by_tenths_of_the_records() -> None:
    schema = Schema(
        qis=(Attribute("a", np.arange(100.0)), Attribute("b", np.arange(100.0))),
        sensitive=(),
        sources=((0,), (1,)),
    )
    codes = np.repeat(np.arange(100), 2)[:, None].repeat(2, axis=1).astype(np.int32)
    table = Records(codes, np.zeros((200, 0), np.int32), np.arange(200, dtype=np.int32))
    # Classes within a tenth of the records tell the tenth of each; one of all tells nothing.
    for n_classes, expected in ((100, 0.0), (10, 0.0), (1, 0.9)):
        class_of = (np.arange(200) * n_classes // 200).astype(np.int32)
        seen = publish(table, schema, class_of)
        found = pair_distances(seen.qi, schema.qis, class_of, codes)
        assert found[0, 1] == pytest.approx(expected)
