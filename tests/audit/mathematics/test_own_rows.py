"""Own rows: what is left of others once an adversary's rows are taken away, by counting plainly."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.own_rows import Exposed, in_its_class, of_own
from anonymizer.domain.arrays import Int32Array

ROWS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=14
)
Row = tuple[int, int, int]


def arrays(rows: list[Row]) -> tuple[Int32Array, Int32Array, Int32Array]:
    of, who, value = np.array(rows, np.int32).T
    return of, who, value[:, None]


def left_of(rows: list[Row], own: set[int]) -> dict[int, tuple[set[int], set[int]]]:
    """Return the other people of each class, and their values."""
    left: dict[int, tuple[set[int], set[int]]] = {}
    for of, who, value in rows:
        if of >= 0 and who not in own:
            people, values = left.setdefault(of, (set(), set()))
            people.add(who)
            values.add(value)
    return left


@given(ROWS, st.sets(st.integers(0, 7)))
def test_who_owns_rows_reads_what_is_left_without_them(rows: list[Row], own: set[int]) -> None:
    of, who, value = arrays(rows)
    left = left_of(rows, own).values()
    assert of_own(of, who, value, np.isin(who, list(own))) == Exposed(
        persons_min=min((len(people) for people, _ in left), default=len(rows)),
        n_alone=sum(len(people) == 1 for people, _ in left),
        n_read=(sum(len(people) for people, values in left if len(values) == 1),),
    )


@given(ROWS, st.integers(0, 3))
def test_nobody_with_as_many_people_in_a_class_reads_more_than_the_bound(
    rows: list[Row], n_own: int
) -> None:
    of, who, value = arrays(rows)
    bound = in_its_class(of, who, value, n_own)
    n_alone = n_read = 0
    for each in {row[0] for row in rows} - {-1}:
        mine = [row for row in rows if row[0] == each]
        people = {row[1] for row in mine}
        if len(people) <= n_own:
            continue
        left = [left_of(mine, {*own})[each] for own in combinations(people, n_own)]
        assert min(len(them) for them, _ in left) >= bound.persons_min
        n_alone += any(len(them) == 1 for them, _ in left)
        n_read += max(len(them) * (len(values) == 1) for them, values in left)
    assert bound.n_alone == n_alone
    assert bound.n_read[0] >= n_read


def test_a_class_in_which_one_value_stands_out_is_read_by_whoever_owns_the_others() -> None:
    of = np.zeros(6, np.int32)
    who = np.arange(6, dtype=np.int32)
    flu = np.array([[0], [0], [0], [0], [1], [2]], np.int32)
    assert in_its_class(of, who, flu, 1).n_read == (0,)
    assert in_its_class(of, who, flu, 2) == Exposed(4, 0, (4,))
    assert in_its_class(of, who, flu, 5) == Exposed(1, 1, (4,))
