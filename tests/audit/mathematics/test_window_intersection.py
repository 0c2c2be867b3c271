"""The intersection attack on windows: cases on paper, and a naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics import window_intersection
from anonymizer.audit.mathematics.window_intersection import Read, WindowIntersection
from anonymizer.domain.records import Schema
from tests.algorithms.records.made import categories

SCHEMA = Schema((categories("town", "abcd"), categories("kind", "wxyz")), (), ((0,), (1,)))
"""Two sources, an attribute each. `kind` lasts."""
Window = tuple[list[tuple[tuple[int, int], tuple[int, int]]], dict[bytes, tuple[int, int]]]
"""First and last code of town and kind of each class, and what vehicles reported."""


def attack(windows: list[Window], *, d: int = 2) -> Read:
    mounted = WindowIntersection(SCHEMA, ["kind"], d=d)
    for classes, reported in windows:
        labels = [ReleasedLabels.of([[label[j]] for label in classes]) for j in (0, 1)]
        qi = np.array(list(reported.values()), np.int32).reshape(-1, 2)
        mounted.window(labels, list(reported), qi)
    [read] = mounted.read()
    return read


def test_windows_that_leave_one_value_together_tell_it() -> None:
    # Who knows the town finds one class in each window: its kinds are w or x, then x or y.
    first: Window = ([((0, 1), (0, 1)), ((2, 3), (0, 3))], {b"v": (0, 1)})
    second: Window = ([((0, 0), (1, 2)), ((1, 3), (0, 3))], {b"v": (0, 1)})
    assert attack([first]) == Read("kind", 1, 0, 0)
    assert attack([first], d=3) == Read("kind", 1, 0, 1)
    together = attack([first, second])
    assert together == Read("kind", 1, 1, 1)
    assert together.share == 1.0


def test_a_class_that_also_fits_keeps_its_values_possible() -> None:
    both: Window = ([((0, 1), (0, 1)), ((0, 3), (2, 3))], {b"v": (0, 1)})
    assert attack([both, both], d=4) == Read("kind", 1, 0, 0)


def test_what_changed_starts_anew_and_what_was_not_published_is_no_victim() -> None:
    classes = [((0, 3), (0, 1))]
    assert attack([(classes, {b"v": (0, 1), b"out": (0, 3)})]).n_victims == 1
    narrow: Window = ([((0, 3), (1, 1))], {b"v": (0, 1)})
    changed: Window = ([((0, 3), (0, 3))], {b"v": (0, 2)})
    assert attack([narrow]).n_read == 1
    assert attack([narrow, changed]).n_read == 0
    assert attack([]).share == 0.0


def test_lists_that_leave_one_value_together_tell_it_to_who_knows_all_sources() -> None:
    schema = Schema(SCHEMA.qis, (categories("fault", "abcd"),), SCHEMA.sources)
    mounted = WindowIntersection(schema, ["fault"], d=2, l=3)
    # Both windows have one class that fits; the second one's others have all faults.
    for first, listed in (((0, 0), (0, 1)), ((0, 1), (1, 2))):
        labels = [ReleasedLabels.of([[first], [(2, 3)]]) for _ in schema.qis]
        lists = ReleasedLabels.of([[(code, code) for code in listed], [(0, 3)]])
        mounted.window([*labels, lists], [b"v"], np.array([[0, 0, 1]], np.int32))
        assert mounted.read()[0].n_short == 1
    assert mounted.read() == [Read("fault", 1, 1, 1)]


code = st.integers(0, 3)
label = st.tuples(code, code).map(lambda ends: (min(ends), max(ends)))
window = st.tuples(
    st.lists(st.tuples(label, label), min_size=1, max_size=4),
    st.dictionaries(st.sampled_from([b"u", b"v", b"w"]), st.tuples(code, code), max_size=3),
)


def naive_read(windows: list[Window], *, d: int) -> Read:
    left: dict[bytes, tuple[int, set[int]]] = {}
    for classes, reported in windows:
        for vehicle, (town, kind) in reported.items():
            fits = [(t, k) for t, k in classes if t[0] <= town <= t[1]]
            if not any(k[0] <= kind <= k[1] for _, k in fits):
                continue
            allowed = {c for _, k in fits for c in range(k[0], k[1] + 1)}
            known, before = left.get(vehicle, (kind, allowed))
            left[vehicle] = (kind, allowed & before if known == kind else allowed)
    right = [len(values) for kind, values in left.values() if kind in values]
    return Read("kind", len(left), right.count(1), sum(n < d for n in right))


@pytest.mark.parametrize("most_cells", [1, 2**24])
def test_it_reads_what_the_naive_twin_reads(
    most_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_intersection, "_MOST_CELLS", most_cells)

    @given(st.lists(window, max_size=4), st.integers(1, 4))
    def compare(windows: list[Window], d: int) -> None:
        assert attack(windows, d=d) == naive_read(windows, d=d)

    compare()
