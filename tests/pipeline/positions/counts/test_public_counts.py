"""Public counts never show fewer than k, and nothing about zones, whatever happens."""

import json
import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.live_map.rates import SPAN_S, RateMeter
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.pipeline.accounting import BatchHistogram, Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.counts.public_counts import (
    OTHER,
    Figures,
    PublicCounts,
    exact_figures,
    join,
    public_share,
    public_step,
)
from anonymizer.pipeline.positions.tick.flow_stats import TICK
from anonymizer.settings import Settings
from tests.pipeline.positions.support import NOW, Rig, delivery, flow_settings

STEP = 10
ABOUT_PLACES = [Outcome.SUPPRESSED__PRIVACY_ZONE, Outcome.SUPPRESSED__TRIP_END]


def figures_of(counts: dict[Outcome, int]) -> Figures:
    """Return exact figures of a flow with these outcomes and nothing else."""
    flow, ledger = Rig().flow, Ledger()
    for outcome, n in counts.items():
        ledger.receive(n)
        ledger.settle(outcome, n)
    return exact_figures(flow, ledger, n_waiting=0)


def shown(*rounds: dict[Outcome, int]) -> PublicCounts:
    """Return public counts after a turn with each of these outcomes."""
    public = PublicCounts(figures_of({}), step=STEP)
    for counts in rounds:
        public.turn(figures_of(counts))
    return public


@given(st.dictionaries(st.sampled_from(list(Outcome)[1:]), st.integers(0, 200)))
def test_what_is_shown_is_a_whole_number_of_steps_and_not_too_much(
    counts: dict[Outcome, int],
) -> None:
    public = shown(counts, {}).shown
    exact = join(figures_of(counts).n_of)
    assert public.n_of.keys() == exact.keys()
    for label, n in public.n_of.items():
        assert n % STEP == 0
        if label == Outcome.SUPPRESSED__UNVERIFIED.label:
            assert exact[label] <= n < exact[label] + STEP
        else:
            assert exact[label] - STEP < n <= exact[label]
    unshown = exact.get(OTHER, 0) % STEP
    assert public.n_received == (sum(counts.values()) - unshown) // STEP * STEP
    assert public.imbalance == 0


@given(st.integers(0, 100), st.integers(0, 100))
def test_zones_and_trip_ends_cannot_be_told_from_other_reasons(n: int, more: int) -> None:
    for outcome in ABOUT_PLACES:
        one = shown({outcome: n, Outcome.SUPPRESSED__NEVER_GROUPED: more}, {}).shown
        other = shown({Outcome.SUPPRESSED__OFF_GRAPH: n + more}, {}).shown
        assert one.n_of == other.n_of
        assert outcome.label not in one.n_of
        assert one.n_of[OTHER] == (n + more) // STEP * STEP


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 300)), max_size=8))
def test_what_fewer_than_k_devices_send_from_a_zone_moves_nothing_however_long(
    turns: list[tuple[int, int]],
) -> None:
    within = seen = shown_by_k = 0
    public = PublicCounts(figures_of({}), step=STEP, share=7)
    for n_within, n_seen in turns:
        within, seen = within + n_within, seen + n_seen
        shown_by_k += STEP * 7 * (n_within == STEP * 7)
        public.turn(figures_of({Outcome.SUPPRESSED__OFF_GRAPH: within, Outcome.PUBLISHED: seen}))
        public.flush()
        assert public.shown.n_of[OTHER] == shown_by_k
        assert public.shown.n_received == seen // STEP * STEP + shown_by_k


def test_of_refusals_by_input_none_depends_on_where_a_device_is() -> None:
    refusals = {
        (1, Outcome.SUPPRESSED__OFF_GRAPH.label): 50,
        (1, Outcome.INVALID__MALFORMED.label): 25,
    }
    public = PublicCounts(replace(figures_of({}), refused=refusals), step=STEP).shown
    assert public.refused == {(1, Outcome.INVALID__MALFORMED.label): 20}


def test_counts_are_shown_one_turn_late() -> None:
    outcome = Outcome.INVALID__MALFORMED
    assert not shown({outcome: 30}).not_published()
    assert shown({outcome: 30}, {outcome: 50}).not_published() == {"invalid/malformed": 30}
    public = shown({outcome: 30}, {outcome: 50})
    public.flush()
    assert public.not_published() == {"invalid/malformed": 50}


def test_the_light_audit_is_shown_by_k_and_a_defect_at_once() -> None:
    exact = replace(figures_of({}), n_followed=27, n_below_k=1, hidden_to_k_least=1.9)
    public = PublicCounts(exact, step=STEP).shown
    assert (public.n_followed, public.n_below_k, public.hidden_to_k_least) == (20, 10, 1.0)
    assert math.isnan(shown().shown.hidden_to_k_least)
    assert not public.stage_s


def test_what_was_published_is_no_rejection() -> None:
    counts = {Outcome.PUBLISHED: 40, Outcome.LATE: 20, Outcome.DUPLICATE: 5}
    assert shown(counts, {}).not_published() == {"late": 20}


def test_counters_never_go_back_when_the_step_grows() -> None:
    public = shown({Outcome.LATE: 20})
    public.step = 12
    public.turn(figures_of({Outcome.LATE: 21}))
    public.flush()
    assert public.not_published() == {"late": 20}
    public.turn(figures_of({Outcome.LATE: 25}))
    public.flush()
    assert public.not_published() == {"late": 24}


def test_every_number_of_devices_and_groups_is_shown_in_steps() -> None:
    exact = replace(
        figures_of({}),
        n_waiting=19,
        n_devices_on_graph=39,
        n_newcomers=13,
        n_fixed_devices=27,
        n_without_room=1,
        n_clamped=np.array([9, 21]),
        n_left_out=np.array([11, 8]),
    )
    public = PublicCounts(exact, step=STEP).shown
    assert (public.n_waiting, public.n_devices_on_graph) == (10, 30)
    assert (public.n_newcomers, public.n_fixed_devices, public.n_without_room) == (10, 20, 10)
    assert public.n_clamped.tolist() == [0, 20]
    assert public.n_left_out.tolist() == [10, 0]


def test_a_single_device_changes_nothing_that_is_shown() -> None:
    rig, more = Rig(), Rig()
    for each, n in ((rig, 12), (more, 13)):
        each.publish(*(delivery(f"d{i}", 12, NOW) for i in range(n)))
        each.put(delivery("d1", 12, NOW + 1))
    seen = []
    for each in (rig, more):
        figures = exact_figures(each.flow, each.ledger, n_waiting=each.inbox.n_waiting)
        public = PublicCounts(figures, step=STEP).shown
        assert (public.n_devices, public.n_devices_on_graph, public.n_waiting) == (None, 10, 0)
        assert public.latency_s[TICK].n == 10
        seen.append((public.n_of, public.n_received, public.n_held, public.n_newcomers))
    assert seen[0] == seen[1]


def test_a_trip_that_may_end_in_a_zone_moves_nothing_until_it_is_published() -> None:
    roads = load_network("grid:12x12")
    rig = Rig(roads=roads, trips={"enabled": True})
    start = exact_figures(rig.flow, rig.ledger, n_waiting=0)
    public = PublicCounts(start, step=STEP, share=330)
    meter = RateMeter(rig.flow, step=STEP, share=3 * int(SPAN_S) + 3)
    rates = []
    for third in range(330):
        node, now = 24 + third // 30, NOW + third / 3
        says = {"lat": roads.lat[node], "lon": roads.lon[node], "ts": now}
        payload = json.dumps(says).encode()
        rig.publish(Delivery("positions/one", payload, 0, retained=False), now=now)
        rates.append(meter.take(third / 3).rate_in)
    assert rig.flow.n_in_trips > 3 * STEP
    figures = exact_figures(rig.flow, rig.ledger, n_waiting=0)
    assert (figures.n_received, figures.imbalance) == (330, 0)
    public.turn(figures)
    public.flush()
    assert (public.shown.n_received, public.shown.n_held) == (0, 0)
    assert set(rates) == {None, 0.0}


def test_a_device_that_reports_often_at_an_end_of_its_trip_moves_no_count_of_suppressed() -> None:
    rig = Rig(trips={"enabled": True}, tick={"interval_s": 5.0})
    start = exact_figures(rig.flow, rig.ledger, n_waiting=0)
    share = public_share(flow_settings(tick={"interval_s": 5.0}), within_s=10)
    public = PublicCounts(start, step=STEP, share=share)
    for tick in range(1, 13):
        now = NOW + 5.0 * tick
        rig.publish(*(delivery("one", 12, now - 0.1 * i) for i in range(50)), now=now)
        if tick % 2 == 0:
            public.turn(exact_figures(rig.flow, rig.ledger, n_waiting=0))
    public.flush()
    assert rig.outcomes() == {"SUPPRESSED__TRIP_END": 12, "SUPPRESSED__SUPERSEDED": 588}
    assert public.shown.n_of[OTHER] == 0


@given(st.lists(st.floats(0.01, 9)), st.integers(1, 12))
def test_a_histogram_in_steps_keeps_its_order_and_tells_no_more(
    values: list[float], step: int
) -> None:
    exact = BatchHistogram([0.1, 1, 5], interpolate=True)
    exact.observe(np.array(values))
    coarse = exact.in_steps(step)
    for n, whole in zip(exact.cumulative(), coarse.cumulative(), strict=True):
        assert whole == n - n % step
    middles = (0.1, (0.1 * 1) ** 0.5, (1 * 5) ** 0.5, 5)
    assert np.isclose(coarse.total, np.dot(coarse.counts, middles))


def test_the_step_is_the_largest_k_of_the_settings_and_the_share_what_a_device_sends() -> None:
    tables = {"adka": {"k_values": [12, 3], "density_steps": [4]}, "region": {"k_extra": 2}}
    assert public_step(Settings.model_validate(tables)) == 14
    settings = Settings.model_validate({"tick": {"interval_s": 4}})
    assert public_share(settings, within_s=10) == 4
