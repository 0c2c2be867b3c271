"""Several audits of one gateway as one: what a day comes to."""

import pytest

from anonymizer.audit.attack import Criterion
from anonymizer.audit.evidence.evidence import Result, pooled_results
from anonymizer.audit.stream_summary import wilson


def at(hour: int, success: float | None, n: int | None = 100, **more: object) -> Result:
    figures = {"n": n, "success": success, "control": 0.1, "holds": None, "exposed": None} | more
    return Result.model_validate(
        {
            "source": f"{hour}.json", "attack": "linking", "adversary": None, "attribute": None,
            "criterion": Criterion.LINKABILITY, "asks": "?", "low": None, "high": None,
            "against": "chance", "exposed_control": None, "bar": None, "promised": False,
            "figures": {},
        } | figures
    )  # fmt: skip


def test_shares_are_those_of_all_trials_together() -> None:
    (pooled,) = pooled_results([at(1, 0.3, 100), at(2, 0.1, 300, control=0.2)])
    assert pooled.success == pytest.approx(0.15)
    assert pooled.control == pytest.approx(0.175)
    assert pooled.n == 400
    assert (pooled.low, pooled.high) == wilson(0.15, 400)
    assert pooled.source == "2 audits"


def test_a_promise_that_one_hour_broke_is_broken() -> None:
    hours = [at(1, 0.0, holds=True, promised=True), at(2, 0.5, holds=False, promised=True)]
    for order in (hours, hours[::-1]):
        (pooled,) = pooled_results(order)
        assert pooled.broken


def test_the_figures_are_those_of_the_hour_above_its_bar_although_another_gained_more() -> None:
    calm, above = {"success": 0.9}, {"success": 0.2}
    hours = [at(1, 0.9, holds=True, figures=calm), at(2, 0.2, holds=False, figures=above)]
    for order in (hours, hours[::-1]):
        (pooled,) = pooled_results(order)
        assert (pooled.figures, pooled.holds) == (above, False)


def test_most_exposed_is_who_was_so_in_the_worst_hour() -> None:
    morning = at(1, 0.5, exposed=0.4, exposed_control=0.3)
    (pooled,) = pooled_results([morning, at(2, 0.1, exposed=0.9, exposed_control=0.2)])
    assert (pooled.exposed, pooled.exposed_control) == (0.9, 0.2)
    (of_k,) = pooled_results([at(1, 0.0, exposed=1.5), at(2, 0.0, exposed=1.1)])
    assert of_k.exposed == 1.1


def test_attacks_stay_apart_and_what_was_not_measured_stays_unknown() -> None:
    other = at(1, None, None)
    pooled = pooled_results([at(1, 0.2), other.model_copy(update={"attack": "velocity"})])
    assert [each.attack for each in pooled] == ["linking", "velocity"]
    assert (pooled[1].success, pooled[1].n, pooled[1].holds) == (None, None, None)
