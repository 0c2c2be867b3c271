"""Repeated columns against a naive twin, and which columns repeat a quasi-identifier."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.repeated_columns import (
    RankedColumn,
    Repetition,
    TriedRecords,
    repetition,
    trial,
)
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

K = 10
Draw = np.random.Generator
Make = Callable[[IntArray, IntArray, IntArray, Draw], "IntArray | FloatArray | BoolArray"]
MINORITY = 0.2


def naive_guess(
    seen: list[int], wanted: list[int], others: list[int], me: int, *, number: bool
) -> int:
    """Return what is guessed of a record by the others."""
    if not others:
        return 0
    distance = {i: abs(seen[i] - seen[me]) for i in others}
    nearest = min(distance.values())
    values = {seen[i] for i in others if distance[i] == nearest}
    alike = [wanted[i] for i in others if seen[i] == max(values)]
    if number:
        return sorted(alike)[(len(alike) - 1) // 2]
    times = Counter(alike)
    return max(times, key=lambda value: (times[value], value))


def naive_success(
    of: list[int], x: list[int], q: list[int], fold: list[int], *, by_known: bool, number: bool
) -> list[float]:
    """Return how probably each record is picked; `number`: whether what is guessed is one."""
    seen, wanted = (q, x) if by_known else (x, q)
    n = range(len(of))
    guess = [
        naive_guess(seen, wanted, [i for i in n if fold[i] != fold[me]], me, number=number)
        for me in n
    ]
    found = []
    for me in n:
        expected, read = (guess[me], x) if by_known else (q[me], guess)
        distance = {i: abs(read[i] - expected) for i in n if of[i] == of[me]}
        least = min(distance.values())
        picked = [i for i in distance if distance[i] == least]
        if not number and least:
            picked = list(distance)
        found.append(1 / len(picked) if me in picked else 0.0)
    return found


small = st.integers(0, 4)


@given(
    st.lists(st.tuples(st.integers(0, 2), small, small, st.integers(0, 1)), min_size=2, max_size=9),
    st.tuples(st.booleans(), st.booleans()),
)
def test_picking_by_a_repeated_column_equals_its_naive_twin(
    rows: list[tuple[int, int, int, int]], way: tuple[bool, bool]
) -> None:
    by_known, number = way
    of, x, q, fold = (np.array(each, np.int64) for each in zip(*rows, strict=True))
    drawn = TriedRecords(np.arange(len(of)), of, fold)
    found = repetition(
        drawn,
        RankedColumn(x, number),
        RankedColumn(q, number),
        by_known=by_known,
        k=2,
        rng=np.random.default_rng(0),
    )
    known = x if by_known else q
    size = Counter(of.tolist())
    alike = Counter(zip(of.tolist(), known.tolist(), strict=True))
    apart = [i for i, each in enumerate(of.tolist()) if alike[each, int(known[i])] < size[each]]
    success = naive_success(
        of.tolist(), x.tolist(), q.tolist(), fold.tolist(), by_known=by_known, number=number
    )
    assert found.n == len(apart)
    if apart:
        assert found.success == pytest.approx(np.mean([success[i] for i in apart]))


def attacked(
    make: Make,
    qi: str,
    *,
    n: int,
    seed: int = 1,
) -> Repetition:
    """Attack a column beside classes of ten that are alike in postcode, age and sex; the worst."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 78, n), rng.integers(0, 2, n)
    postcode = rng.integers(0, 20, n)
    order = np.lexsort((age, postcode // 4))
    class_of = np.empty(n, np.int64)
    class_of[order] = np.minimum(np.arange(n) // K, n // K - 1)
    known = {"age": (age, True), "zip": (postcode, False), "sex": (sex, False)}[qi]
    drawn = trial(class_of, np.arange(n), rng=rng)
    cells = make(age, postcode, sex, rng)
    column = RankedColumn(np.unique(cells, return_inverse=True)[1], cells.dtype != bool)
    of = RankedColumn(np.unique(known[0], return_inverse=True)[1], known[1])
    both = [repetition(drawn, column, of, by_known=way, k=K, rng=rng) for way in (False, True)]
    return max(both, key=lambda each: (each.repeats, each.told))


REPEATED: dict[str, tuple[str, Make]] = {
    "a copy": ("zip", lambda _, postcode, *__: postcode),
    "a town": ("zip", lambda _, postcode, *__: (postcode * 7 + 3) % 20),
    "a region": ("zip", lambda _, postcode, *__: postcode // 2),
    "a year of birth": ("age", lambda age, *_: 2024 - age),
    "an age group": ("age", lambda age, *_: age // 2),
    "an age in months": ("age", lambda age, _, __, rng: age * 12 + rng.integers(0, 12, len(age))),
    "a title": ("sex", lambda _, __, sex, ___: sex > 0),
}
HONEST: dict[str, tuple[str, Make]] = {
    "anything": ("zip", lambda age, *_: np.arange(len(age)) % 3),
    "an illness of age": ("age", lambda age, _, __, rng: age // 20 + rng.integers(-1, 2, len(age))),
    "an illness of one sex": (
        "sex",
        lambda _, __, sex, rng: (sex > 0) & (rng.random(len(sex)) < MINORITY),
    ),
    "a height": ("sex", lambda _, __, sex, rng: (sex * 13 + rng.normal(165, 6, len(sex))).round()),
    "an income": (
        "age",
        lambda age, _, __, rng: (age * 100 + rng.normal(0, 800, len(age))).round(),
    ),
    "a number of each row": ("zip", lambda age, _, __, rng: rng.permutation(len(age))),
}


@pytest.mark.parametrize("n", [400, 30_000])
@pytest.mark.parametrize("kind", REPEATED)
def test_a_column_that_says_what_a_quasi_identifier_says_repeats_it(kind: str, n: int) -> None:
    qi, make = REPEATED[kind]
    found = attacked(make, qi, n=n)
    assert found.repeats
    assert found.told > found.told_shuffled + 0.5


@pytest.mark.parametrize("n", [60, 400, 30_000])
@pytest.mark.parametrize("kind", HONEST)
def test_a_column_that_goes_with_a_quasi_identifier_does_not_repeat_it(kind: str, n: int) -> None:
    qi, make = HONEST[kind]
    for seed in range(1 if n > 1_000 else 10):
        assert not attacked(make, qi, n=n, seed=seed).repeats


def test_a_column_that_splits_no_class_below_k_repeats_nothing_that_is_hidden() -> None:
    rng = np.random.default_rng(1)
    n = 1_000
    country = np.arange(n) // 100 % 2
    class_of = np.repeat(np.arange(n // 200), 200)
    drawn = trial(class_of, np.arange(n), rng=rng)
    column = RankedColumn(country, numeric=False)
    found = repetition(drawn, column, column, by_known=True, k=K, rng=rng)
    assert (found.told, found.share_below, found.repeats) == (1.0, 0.0, False)


def test_nothing_published_tells_nothing() -> None:
    rng = np.random.default_rng(1)
    drawn = trial(np.full(3, -1), np.arange(3), rng=rng)
    column = RankedColumn(np.zeros(0, np.int64), numeric=True)
    found = repetition(drawn, column, column, by_known=False, k=K, rng=rng)
    assert (found.n, found.told, found.repeats) == (0, 0.0, False)
