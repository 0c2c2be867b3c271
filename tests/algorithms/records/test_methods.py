"""The registry of methods: the default method, and the time budget of a search."""

import subprocess
import sys
from math import inf

import pytest

from anonymizer.algorithms.records.methods import AUTO, MODELS, TimeBudget, searches


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


def test_names_and_defaults_are_cheap_to_import() -> None:
    code = (
        "import sys, anonymizer.algorithms.records.methods\n"
        "print([m for m in ('numpy', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
