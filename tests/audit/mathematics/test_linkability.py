"""The linkability attack against its naive twin, and on tables made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.releases.released_classes import ReleasedLabels, publish
from anonymizer.audit.mathematics import linkability
from anonymizer.audit.mathematics.linkability import Knowledge, Leak, homogeneity, link
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records.made import SCHEMA, numbers
from tests.algorithms.records.partitions import partitions
from tests.audit.mathematics.naive_linkability import labels_of, learned


def leaks(
    table: Records, class_of: Int32Array, schema: Schema = SCHEMA, *, tree: bool = False
) -> tuple[Leak, ...]:
    return link(publish(table, schema, class_of, by_hierarchy=tree), schema, table, class_of)


def one(found: tuple[Leak, ...], knows: Knowledge, known: int, learned: int | None) -> Leak:
    (leak,) = [x for x in found if (x.knows, x.known, x.learned) == (knows, known, learned)]
    return leak


def table_of(*rows: tuple[int, ...]) -> Records:
    """Return a table with columns age, work, home and illness, one row per person."""
    cells = np.array(rows, np.int32).reshape(len(rows), 4)
    person = np.arange(len(rows), dtype=np.int32)
    return Records(np.ascontiguousarray(cells[:, :3]), np.ascontiguousarray(cells[:, 3:]), person)


@pytest.mark.parametrize("tree", [False, True])
@given(release=partitions())
def test_a_label_allows_exactly_the_codes_of_the_naive_twin(
    *, tree: bool, release: tuple[Records, Int32Array]
) -> None:
    table, class_of = release
    published = publish(table, SCHEMA, class_of, by_hierarchy=tree)
    expected = labels_of(table, SCHEMA, class_of, tree=tree)
    assert published.n_classes == len(expected)
    attributes = (*SCHEMA.qis, *SCHEMA.sensitive)
    for j, labels in enumerate((*published.qi, *published.sensitive)):
        code = np.arange(attributes[j].size, dtype=np.int32)
        for c, label in expected.items():
            inside = labels.covers(np.full(len(code), c, np.int32), code)
            assert set(np.flatnonzero(inside).tolist()) == label[j]


@pytest.mark.parametrize("tree", [False, True])
@given(release=partitions())
def test_the_attack_learns_exactly_the_cells_of_the_naive_twin(
    *, tree: bool, release: tuple[Records, Int32Array]
) -> None:
    table, class_of = release
    found = leaks(table, class_of, tree=tree)
    assert len(found) == 2 * 2 * 2  # two sources, two adversaries, two targets
    for leak in found:
        cells = learned(
            table,
            SCHEMA,
            class_of,
            knows=leak.knows,
            source=SCHEMA.sources[leak.known],
            tree=tree,
        )
        columns = (3,) if leak.learned is None else SCHEMA.sources[leak.learned]
        mine = {(i, j) for i, j in cells if j in columns}
        assert leak.n_cells_of == tuple(sum(j == c for _, j in mine) for c in columns)
        assert leak.n_cells == len(mine)
        assert leak.n_people == len({int(table.person[i]) for i, _ in mine})


@given(release=partitions())
def test_an_adversary_who_also_knows_the_labels_learns_no_less(
    release: tuple[Records, Int32Array],
) -> None:
    found = leaks(*release)
    for leak in found:
        if leak.knows is Knowledge.VALUES:
            stronger = one(found, Knowledge.LABELS, leak.known, leak.learned)
            assert all(a <= b for a, b in zip(leak.n_cells_of, stronger.n_cells_of, strict=True))


def test_all_classes_with_equal_labels_are_candidates_not_only_the_last() -> None:
    # Both classes have ages 0 to 1; the first has only home 0, the second only home 1.
    table = table_of((0, 0, 0, 0), (1, 1, 0, 1), (0, 0, 1, 0), (1, 1, 1, 1))
    found = leaks(table, np.array([0, 0, 1, 1], np.int32))
    assert one(found, Knowledge.LABELS, 0, 1).n_cells == 0
    found = leaks(table, np.array([0, 0, SUPPRESSED, SUPPRESSED], np.int32))
    assert one(found, Knowledge.LABELS, 0, 1).n_cells_of == (2,)
    assert one(found, Knowledge.LABELS, 0, 1).n_people == 2


def test_a_class_is_a_candidate_if_its_range_covers_a_value_that_it_does_not_contain() -> None:
    # Only the first class contains age 1, but the range of the second, 0 to 2, covers it.
    table = table_of((1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1), (2, 1, 1, 1))
    found = leaks(table, np.array([0, 0, 1, 1], np.int32))
    # True values leave both classes as candidates for age 1, but only one for ages 0 and 2.
    assert one(found, Knowledge.VALUES, 0, 1).n_cells_of == (2,)
    assert one(found, Knowledge.LABELS, 0, 1).n_cells_of == (4,)


def test_a_missing_value_cannot_leak_and_does_not_protect_the_other_value_of_its_class() -> None:
    marker = SCHEMA.qis[1].missing
    table = table_of((0, marker, 0, 0), (1, 2, 0, 1), (2, marker, 1, 0), (3, marker, 1, 1))
    found = leaks(table, np.array([0, 0, 1, 1], np.int32))
    assert one(found, Knowledge.LABELS, 1, 0).n_cells_of == (0, 1)


def test_all_classes_are_candidates_even_if_there_are_more_than_a_word_has_bits() -> None:
    # Only the last of 130 classes contradicts what the 129 others reveal about everybody.
    n = 130
    schema = Schema(
        qis=(numbers("a", *range(3)), numbers("b", *range(3))), sensitive=(), sources=((0,), (1,))
    )
    qi = np.zeros((2 * n, 2), np.int32)
    qi[1::2, 0] = 1
    no_values = np.zeros((2 * n, 0), np.int32)
    class_of = np.repeat(np.arange(n), 2).astype(np.int32)
    table = Records(qi, no_values, np.arange(2 * n, dtype=np.int32))
    assert one(leaks(table, class_of, schema), Knowledge.VALUES, 0, 1).n_people == 2 * n
    qi[-1, 1] = 1
    assert one(leaks(table, class_of, schema), Knowledge.VALUES, 0, 1).n_people == 0


@given(release=partitions())
def test_nothing_leaks_if_every_class_has_two_values_of_every_attribute(
    release: tuple[Records, Int32Array],
) -> None:
    table, class_of = release
    for c in range(class_of.max(initial=-1) + 1):
        of = class_of == c
        for column, a in zip((*table.qi.T, *table.sensitive.T), _attributes(), strict=True):
            if len(set(column[of].tolist()) - {a.missing}) < 2:
                class_of = np.where(of, SUPPRESSED, class_of).astype(np.int32)
    _, class_of[class_of >= 0] = np.unique(class_of[class_of >= 0], return_inverse=True)
    assert not any(leak.n_cells for leak in leaks(table, class_of))


def _attributes() -> tuple[Attribute, ...]:
    return (*SCHEMA.qis, *SCHEMA.sensitive)


@pytest.mark.parametrize("ill", [0, 1])
def test_homogeneous_classes_are_counted_with_their_people(ill: int) -> None:
    table = table_of((0, 0, 0, ill), (1, 1, 0, ill), (0, 0, 1, 0), (1, 1, 1, 2), (0, 0, 0, 2))
    class_of = np.array([0, 0, 1, 1, SUPPRESSED], np.int32)
    (found,) = homogeneity(publish(table, SCHEMA, class_of), SCHEMA, table, class_of)
    assert (found.n_classes, found.n_people) == (1, 2)


def test_a_label_of_several_runs_covers_the_codes_of_all_of_them() -> None:
    labels = ReleasedLabels(np.array([0, 2]), np.array([0, 4]), np.array([1, 4]))
    inside = labels.covers(np.zeros(5, np.int32), np.arange(5, dtype=np.int32))
    assert inside.tolist() == [True, True, False, False, True]


@given(partitions())
def test_the_size_of_the_domain_does_not_change_what_leaks(
    made: tuple[Records, Int32Array],
) -> None:
    table, class_of = made
    few = Schema(
        qis=(numbers("age", *range(4), missing=True), *SCHEMA.qis[1:]),
        sensitive=SCHEMA.sensitive,
        sources=SCHEMA.sources,
    )
    many = replace(few, qis=(numbers("age", *range(4000), missing=True), *SCHEMA.qis[1:]))
    spread_out = table.qi * np.array([1000, 1, 1], np.int32)
    wide = Records(spread_out, table.sensitive, table.person)
    assert leaks(wide, class_of, many) == leaks(table, class_of, few)


@pytest.mark.parametrize("at_once", [None, 7])
def test_a_large_release_is_linked_as_the_naive_twin_links_it(
    at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if at_once:  # tuples and classes, of which there are hundreds here
        for name in ("_TUPLES", "_FIRST", "_MOST"):
            monkeypatch.setattr(linkability, name, at_once)
    rng = np.random.default_rng(8)
    n = 400
    qi = np.column_stack([rng.integers(0, a.size, n) for a in SCHEMA.qis]).astype(np.int32)
    for spread in (1, 40, 400):  # classes of neighbours in a column, and of anybody
        by = np.argsort(qi[:, 0] * 400 + rng.integers(0, spread, n))
        class_of = np.empty(n, np.int32)
        class_of[by] = np.arange(n) // 2
        sensitive = (class_of % 3)[:, None].astype(np.int32)
        table = Records(qi, sensitive, np.arange(n, dtype=np.int32))
        for leak in leaks(table, class_of):
            cells = learned(
                table, SCHEMA, class_of, knows=leak.knows, source=SCHEMA.sources[leak.known],
                tree=False,
            )  # fmt: skip
            columns = (3,) if leak.learned is None else SCHEMA.sources[leak.learned]
            assert leak.n_cells == sum(j in columns for _, j in cells)
