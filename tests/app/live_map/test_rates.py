"""What a flow did over the last few seconds, against plain counting."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.live_map.rates import SPAN_S, RateMeter, _between
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import BatchHistogram
from tests.pipeline.positions.support import NOW, Rig, delivery

EDGES = (1.0, 2.0, 4.0, 8.0)
VALUES = st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 8.0, 20.0]))


@given(before=VALUES, since=VALUES, q=st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_taken_over_what_came_since_alone(
    before: list[float], since: list[float], q: float
) -> None:
    histogram = BatchHistogram(EDGES)
    histogram.observe(before)
    then = histogram.cumulative()
    histogram.observe(since)
    spread = _between(histogram, then, histogram.cumulative())
    if not since:
        assert spread.at(q) is None
        assert spread.within(q) is None
        return
    ranked = sorted(since)
    true = ranked[max(0, int(np.ceil(q * len(ranked))) - 1)]
    edge = min([edge for edge in EDGES if edge >= true], default=EDGES[-1])
    assert spread.at(q) == edge
    within = spread.within(q)
    assert within is not None
    below = max([e for e in EDGES if e < edge], default=0.0)
    assert below <= within <= edge


def test_rates_are_of_the_last_seconds_and_none_are_told_before_there_are_enough() -> None:
    rig = Rig()
    taker = RateMeter(rig.flow)
    for second in range(12):
        rig.publish(
            *(delivery(f"d{i}", 12, NOW + second) for i in range(4)),
            delivery("", 12, NOW + second),
            now=NOW + second,
        )
        pulse = taker.take(float(second))
        if second < 2:
            assert pulse.rate_in is None
            assert pulse.suppressed == {}
    assert pulse.rate_in == pytest.approx(5)
    assert pulse.rate_out == pytest.approx(4)
    assert pulse.suppressed == {"invalid no device": pytest.approx(1)}
    assert (pulse.n_devices, pulse.k_median, pulse.k_least) == (4, 4, 4)
    assert pulse.region_mean is not None
    # Half a minute of silence: what was before does not count as now.
    assert taker.take(42.0).rate_in is None


def test_what_is_not_published_is_told_by_outcome_and_reason() -> None:
    rig = Rig()
    taker = RateMeter(rig.flow)
    taker.take(0.0)
    wanted: Counter[str] = Counter()
    for outcome in Outcome:
        if outcome not in {Outcome.HELD, Outcome.PUBLISHED}:
            rig.ledger.settle(outcome, 2 * int(SPAN_S))
            wanted[" ".join(filter(None, outcome.label)).replace("_", " ")] = 2
    assert taker.take(SPAN_S).suppressed == pytest.approx(wanted)


def test_before_anything_has_happened_nothing_is_measured() -> None:
    pulse = RateMeter(Rig().flow).take(0.0)
    assert pulse.latency_p50_ms is None
    assert pulse.region_mean is None
    assert pulse.k_median is None
    assert (pulse.n_devices, pulse.n_newcomers) == (0, 0)
