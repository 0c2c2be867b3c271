"""Utility of columns, against a reader who writes out every row that a class may hold."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.released_classes import publish
from anonymizer.audit.table_utility import model_utility, utility_of
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import SettingsError
from tests.algorithms.records.made import SCHEMA, records


def _classes(n: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    drawn = np.random.default_rng(seed).integers(-1, max(1, n // 4) + 1, n)
    found = np.full(n, -1, np.int32)
    for number, c in enumerate(sorted({int(x) for x in drawn if x >= 0})):
        found[drawn == c] = number
    return found


@given(records(), st.integers(0, 99))
def test_the_distances_are_those_of_a_reader_who_writes_out_every_value(
    table: Records, seed: int
) -> None:
    class_of = _classes(table.n, seed)
    seen = publish(table, SCHEMA, class_of)
    found = utility_of(table, SCHEMA, seen, class_of)
    kept = [i for i in range(table.n) if class_of[i] >= 0]
    codes = [
        [
            sorted(
                {
                    code
                    for run in range(labels.first_of[c], labels.first_of[c + 1])
                    for code in range(labels.lo[run], labels.hi[run] + 1)
                }
            )
            for c in range(seen.n_classes)
        ]
        for labels in seen.qi
    ]
    for j, utility in enumerate(found):
        read: Counter[int] = Counter()
        for i in kept:
            allowed = codes[j][class_of[i]]
            for code in allowed:
                read[code] += 1 / len(allowed) / len(kept)  # type: ignore[assignment]
        true = Counter(table.qi[:, j].tolist())
        far = sum(abs(read[code] - true[code] / table.n) for code in range(SCHEMA.qis[j].size))
        assert utility.distribution == pytest.approx(far / 2)
        assert utility.pairs is not None
        assert 0 <= utility.pairs <= 1 + 1e-9


def test_a_release_of_the_rows_themselves_is_no_distance_away() -> None:
    rng = np.random.default_rng(3)
    qi = np.repeat(rng.integers(0, 4, (20, 2)), 2, axis=0).astype(np.int32)
    schema = Schema(
        qis=(
            Attribute("a", np.arange(4.0)),
            Attribute("b", np.arange(4.0)),
        ),
        sensitive=(),
        sources=((0,), (1,)),
    )
    table = Records(qi, np.zeros((40, 0), np.int32), np.arange(40, dtype=np.int32))
    class_of = np.repeat(np.arange(20), 2).astype(np.int32)
    for utility in utility_of(table, schema, publish(table, schema, class_of), class_of):
        assert utility.distribution == pytest.approx(0)
        assert utility.pairs == pytest.approx(0)
        assert utility.correlation == pytest.approx(0)


def test_a_column_of_one_value_correlates_with_nothing() -> None:
    x = np.repeat(np.arange(10), 4).astype(np.int32)
    schema = Schema(
        qis=(Attribute("a", np.arange(10.0)), Attribute("b", np.array([0.1, 0.2]))),
        sensitive=(),
        sources=((0,), (1,)),
    )
    columns = np.column_stack([x, np.zeros(40, np.int32)])
    table = Records(columns, np.zeros((40, 0), np.int32), np.arange(40, dtype=np.int32))
    found = utility_of(table, schema, publish(table, schema, x), x)
    assert [each.correlation for each in found] == [0, 0]


def test_one_class_of_all_keeps_no_correlation_and_no_pair() -> None:
    x = np.repeat(np.arange(10), 4).astype(np.int32)
    schema = Schema(
        qis=(
            Attribute("a", np.arange(10.0)),
            Attribute("b", np.arange(10.0)),
        ),
        sensitive=(),
        sources=((0,), (1,)),
    )
    table = Records(
        np.column_stack([x, x]), np.zeros((40, 0), np.int32), np.arange(40, dtype=np.int32)
    )
    class_of = np.zeros(40, np.int32)
    for utility in utility_of(table, schema, publish(table, schema, class_of), class_of):
        assert utility.distribution == pytest.approx(0)  # it is even, as the reader takes it to be
        assert utility.correlation == pytest.approx(1)
        assert utility.pairs == pytest.approx(0.9)  # a tenth of the joint distribution is right


def test_a_model_learns_from_fine_classes_what_it_learns_from_the_original() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 40, 800).astype(np.int32)
    secret = (x >= 20).astype(np.int32)
    schema = Schema(
        qis=(Attribute("x", np.arange(40.0)),),
        sensitive=(Attribute("s", np.arange(2.0), label=("no", "yes")),),
        sources=((0,),),
    )
    table = Records(x[:, None], secret[:, None], np.arange(800, dtype=np.int32))
    fine, coarse = (x // 4).astype(np.int32), np.zeros(800, np.int32)
    good = model_utility(table, schema, publish(table, schema, fine), fine, "s", seed=0)
    bad = model_utility(table, schema, publish(table, schema, coarse), coarse, "s", seed=0)
    assert good.original == good.release == 1.0
    assert bad.original == 1.0
    assert bad.release == pytest.approx(bad.guessing)
    with pytest.raises(SettingsError, match="must be a sensitive attribute"):
        model_utility(table, schema, publish(table, schema, fine), fine, "x", seed=0)
