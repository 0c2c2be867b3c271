"""What a flow did over the last few seconds, against plain counting."""

from collections import Counter
from collections.abc import Callable

import pytest

from anonymizer.app.live_map.rates import SPAN_S, FlowRates, RateMeter, take_snapshot
from anonymizer.domain.outcomes import Outcome
from tests.pipeline.positions.support import NOW, Rig, delivery


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


def test_a_reader_without_the_token_sees_public_figures_alone() -> None:
    def told(n: int, silent: Callable[[], str] | None) -> FlowRates:
        at_s = 0.0
        rig = Rig(region={"mode": "session"}, monotonic=lambda: at_s)
        taker = RateMeter(rig.flow, silent=silent)
        for second in range(12):
            at_s = second + 0.9
            devices = [delivery(f"d{i}", 12, NOW + second) for i in range(13)]
            rig.publish(*devices, *[delivery("", 12, NOW + second)] * n, now=NOW + second)
            rates = taker.take(at_s)
        return rates

    public = told(0, str)
    assert public == told(5, str)
    assert told(0, None) != told(5, None)  # so the attack is known to work
    assert (public.rate_in, public.latency_p99_ms, public.n_below_k) == (None, None, None)
    assert public.suppressed == {}
    assert public.rate_out
    assert public.n_devices == 12


def test_of_exposed_pseudonyms_all_numbers_are_from_one_look() -> None:
    def told(n_exposed: int) -> FlowRates:
        rig = Rig(region={"mode": "adka"}, adka={"k_values": [5]})
        taker = RateMeter(rig.flow)
        for second, others in enumerate("ab"):
            # Whoever is seen with others each time is the only one in all regions.
            seen = [(f"d{i}", 12 if i >= n_exposed or not second else 4) for i in range(9)]
            seen += [(f"{others}{i}", 4) for i in range(9)]
            rig.publish(*(delivery(*each, NOW + second) for each in seen), now=NOW + second)
        return taker.take(1.0)

    assert [told(n).n_below_k for n in range(3)] == [0, 1, 2]
    for each in map(told, range(3)):
        assert (each.n_below_k or 0) <= (each.n_followed or 0)


def test_before_anything_has_happened_nothing_is_measured() -> None:
    pulse = RateMeter(Rig().flow).take(0.0)
    assert pulse.latency_p50_ms is None
    assert pulse.region_mean is None
    assert pulse.k_median is None
    assert (pulse.n_devices, pulse.n_newcomers) == (0, 0)


def test_a_snapshot_does_not_change_and_accounts_for_every_position() -> None:
    rig = Rig()
    before = take_snapshot(rig.flow, seconds=1.0)
    rig.put(delivery("a", 12, NOW), delivery("b", 12, NOW), delivery("", 12, NOW))
    waiting = take_snapshot(rig.flow, seconds=2.0, n_waiting=rig.inbox.n_waiting)
    output = rig.tick()
    in_hand = take_snapshot(rig.flow, seconds=3.0)
    rig.settle(output, [True])
    after = take_snapshot(rig.flow, seconds=4.0)
    snapshots = [before, waiting, in_hand, after]
    assert [each.n_held for each in snapshots] == [0, 3, 2, 0]
    assert [each.n_unaccounted for each in snapshots] == [0] * 4
    span = after.since(in_hand)
    assert (span.seconds, span.n_published, span.not_published) == (1.0, 2, {})
    assert after.not_published == {"invalid no device": 1}
    assert (before.region_nodes.n, after.region_nodes.n) == (0, 1)
