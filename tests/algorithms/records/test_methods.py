"""The registry of methods: the default method, and the time budget of a search."""

import subprocess
import sys
from math import inf

import numpy as np
import pytest

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.class_methods import warm_up
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.methods import AUTO, searches
from anonymizer.algorithms.records.task import ModelTarget, TimeBudget
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records.made import SCHEMA


@pytest.mark.parametrize("name", [None, AUTO])
@pytest.mark.parametrize(
    ("n", "time_budget_s", "method"),
    [
        (100_000, 2.0, "best"),
        (100_001, 2.0, "hilbert"),
        (1_000_000, 2.0, "hilbert"),
        (1_000_000, 5.0, "best"),
        (2_500_000, 20.0, "best"),
        (10, 0.0, "hilbert"),
    ],
)
def test_a_search_is_the_default_where_it_has_time_to_gain_something(
    name: str | None, n: int, time_budget_s: float, method: str
) -> None:
    for model in ("kd", "kld"):
        assert MODELS[model].method_name(name, n=n, time_budget_s=time_budget_s) == method
    assert MODELS["kaca"].method_name(name, n=n, time_budget_s=time_budget_s) == "fast"
    assert MODELS["cells"].method_name(name, n=n, time_budget_s=time_budget_s) == "tree"


def test_a_method_that_is_named_is_used_whatever_the_time() -> None:
    for model in MODELS.values():
        for name in model.methods:
            assert model.method_name(name, n=10**9, time_budget_s=0.0) == name
    assert [name for name in MODELS["kd"].methods if searches(name)] == ["best"]


def test_a_time_budget_is_used_up_by_the_clock_and_knows_whether_it_ended_a_search() -> None:
    now = 5.0
    budget, endless = TimeBudget(4.0, lambda: now), TimeBudget(inf, lambda: now)
    assert (budget(), TimeBudget(0.0, lambda: now)()) == (1.0, 0.0)
    now = 8.0
    assert (budget(), endless(), budget.ended_search) == (0.25, 1.0, False)
    now = 9.5
    assert (budget(), budget.ended_search, endless.ended_search) == (0.0, True, False)


@pytest.mark.parametrize(
    ("model", "method"), [(model, name) for model in MODELS for name in MODELS[model].methods]
)
def test_every_method_forms_classes_of_enough_persons(model: str, method: str) -> None:
    rng = np.random.default_rng(5)
    n = 24
    table = Records(
        qi=np.stack([rng.integers(0, qi.size, n) for qi in SCHEMA.qis], axis=1).astype(np.int32),
        sensitive=rng.integers(0, 2, (n, len(SCHEMA.sensitive))).astype(np.int32),
        person=np.arange(n, dtype=np.int32),
    )
    promise = Promise(k=3)
    warm_up(method, SCHEMA, promise)
    former = Former(schema=SCHEMA, promise=promise, model=MODELS[model], method=method)
    class_of = former.classes(
        table,
        time_left=TimeBudget(1.0, iter(range(1000)).__next__),
        target=ModelTarget(rng.integers(0, 2, n)),
    )
    sizes = np.bincount(class_of[class_of != SUPPRESSED])
    assert sizes.sum() >= n - 2
    assert sizes.min() >= 3


def test_names_and_defaults_are_cheap_to_import() -> None:
    code = (
        "import sys, anonymizer.algorithms.models.registry\n"
        "print([m for m in ('numpy', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
