import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.id_succession import LEAST
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.outputs.counts import SafePublisher
from anonymizer.outputs.output import Publisher
from anonymizer.outputs.trips import TripsPublisher
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow_stats import GROUP, TICK
from tests.algorithms.positions.releases import FixedCloak
from tests.examples import many
from tests.naive import Group
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery, flow_settings


def test_two_devices_of_one_node_are_published_in_one_message() -> None:
    rig = Rig()
    [message] = rig.publish(delivery("a", 12, NOW), delivery("b", 12, NOW))
    assert message["time"] == NOW
    assert message["k"] == 2
    assert message["region"] == [12]
    assert len(set(message["pseudonyms"])) == 2
    assert rig.outcomes() == {"PUBLISHED": 2}


@pytest.mark.parametrize("forms", [[], ["device"]])
def test_no_device_id_and_no_coordinate_leaves(forms: list[str]) -> None:
    rig = Rig(output={"forms": forms})
    rig.put(*(delivery(f"secret-{i}", i % 25, NOW) for i in range(100)))
    output = rig.tick()
    assert output.messages
    for message in output.messages:
        assert b"secret" not in message.payload
        body = json.loads(message.payload)
        assert set(body) <= {
            *("time", "k", "region", "pseudonyms", "pseudonym"),
            *("v", "network", "group", "until"),
        }
        assert body["until"] > NOW
        numbers = [body["time"], body["k"], body["v"], *body["region"]]
        assert all(number == NOW or isinstance(number, int) for number in numbers)
    assert "secret" not in repr(output)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (delivery("b", 12, NOW - 61), "INVALID__ANCIENT_TIME"),
        (delivery("b", 12, NOW + 6), "INVALID__FUTURE_TIME"),
        (delivery("b", 12, retained=True), "INVALID__RETAINED"),
        (Delivery("positions/b", b'{"lat": 60.0, "lon": 25.0}', 0), "SUPPRESSED__OFF_GRAPH"),
        (delivery("b", 0, NOW), "SUPPRESSED__REGION_TOO_LARGE"),
        (delivery("a", 0, NOW), "DUPLICATE"),
        (delivery("a", 0, NOW - 1), "LATE"),
    ],
)
def test_what_cannot_be_published_is_settled_with_its_reason(
    message: Delivery, reason: str
) -> None:
    rig = Rig(region={"mode": "adka", "max_nodes": 1})
    rig.publish(delivery("a", 12, NOW), delivery("c", 12, NOW))
    assert rig.publish(message) == []
    assert rig.outcomes() == {"PUBLISHED": 2, reason: 1}


def test_of_one_tick_the_newest_position_of_a_device_wins_whatever_the_order() -> None:
    for order in (1, -1):
        rig = Rig()
        moves = [delivery("a", 0, NOW - 2), delivery("a", 12, NOW - 1)][::order]
        [message] = rig.publish(delivery("b", 12, NOW), *moves)
        assert message["region"] == [12]
        assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__SUPERSEDED": 1}


def test_of_undated_messages_the_last_is_the_newest_from_the_first_tick_on() -> None:
    rig = Rig()
    for now in (NOW, NOW + 0.1, NOW + 100):
        [message] = rig.publish(
            delivery("a", 0), delivery("a", 3), delivery("a", 12), delivery("b", 12), now=now
        )
        assert message["region"] == [12]
    assert rig.outcomes() == {"PUBLISHED": 6, "SUPPRESSED__SUPERSEDED": 6}


def test_undated_messages_are_believed_after_a_warm_up_at_another_time() -> None:
    rig = Rig()
    rig.tick(now=0.0)
    assert len(rig.publish(delivery("a", 12), delivery("b", 12), delivery("b", 12))) == 1


def test_a_full_table_of_devices_refuses_newcomers_and_forgets_nobody() -> None:
    rig = Rig(presence={"max_devices": 2})
    rig.publish(delivery("a", 12, NOW), delivery("b", 12, NOW), delivery("c", 12, NOW))
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__OVERLOAD": 1}
    assert rig.flow.view.n_devices == 2
    later = NOW + 121
    rig.publish(delivery("c", 12, later), now=later)
    assert rig.outcomes()["SUPPRESSED__OVERLOAD"] == 2, "a place is free from the next tick on"
    assert rig.flow.view.n_devices == 0
    rig.publish(delivery("c", 12, later), delivery("d", 12, later), now=later)
    assert rig.outcomes()["PUBLISHED"] == 4


def test_a_refused_message_takes_no_place_in_the_table_of_devices() -> None:
    rig = Rig()
    rig.publish(delivery("a", 12, NOW - 1000), delivery("b", 12, NOW + 1000))
    assert rig.flow.view.n_devices == 0


def test_a_device_that_leaves_the_graph_counts_for_as_long_as_a_silent_one() -> None:
    for leaves in (True, False):
        rig = Rig()
        rig.publish(delivery("a", 12, NOW), delivery("b", 12, NOW))
        away = json.dumps(a_position(12) | {"lat": NETWORK.lat[12] + 0.005}).encode()
        elsewhere = [Delivery("positions/a", away, 0)] * leaves
        for after_s, n_on_graph in ((1, 2), (119, 2), (121, 1), (122, 1)):
            now = NOW + after_s
            found = rig.publish(*elsewhere, delivery("b", 12, now), now=now)
            assert (rig.flow.view.n_devices_on_graph, len(found)) == (n_on_graph, n_on_graph - 1)


def test_pseudonyms_change_with_the_epoch_and_not_before() -> None:
    rig = Rig(session={"epoch_s": 300})
    start = NOW - NOW % 300

    def names_at(now: float) -> set[str]:
        [message] = rig.publish(delivery("a", 12, now), delivery("b", 12, now), now=now)
        return set(message["pseudonyms"])

    assert names_at(start) == names_at(start + 299)
    assert not names_at(start + 299.5) & names_at(start + 300)


def test_overload_leaves_the_newest_position_of_each_device() -> None:
    rig = Rig(queue_limit=2)
    rig.put(*(delivery("ab"[i % 2], 12, NOW + i / 10, receipt=i + 1) for i in range(5)))
    output = rig.tick()
    assert output.receipts == [4, 5]
    rig.settle(output, [True])
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__OVERLOAD": 3}


def test_what_the_broker_does_not_take_counts_as_undelivered() -> None:
    rig = Rig()
    rig.put(*(delivery(name, node, NOW) for name, node in [("a", 0), ("b", 0), ("c", 1)]))
    output = rig.tick()
    assert len(output.messages) == 2
    delivered = [b'"region":[0]' in message.payload for message in output.messages]
    rig.settle(output, delivered)
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__UNDELIVERED": 1}
    assert rig.flow.stats.n_messages_out == 1


def test_an_output_that_is_given_up_counts_as_undelivered_whole() -> None:
    rig = Rig()
    rig.put(delivery("a", 12, NOW), delivery("b", 12, NOW))
    rig.settle(rig.tick(), [])
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2}
    assert rig.flow.stats.latency_s[TICK].n == 0


def test_a_broken_promise_is_counted_and_nothing_of_it_is_published() -> None:
    lie = FixedCloak([Group(2, [12], [0, 1]), Group(2, [0], [2])])
    rig = Rig()
    rig.flow.mobile.engine.operator = CloakingOperator(
        NETWORK, lie, pace=Pace(ttl_s=100, epoch_s=0), k_floor=2
    )
    messages = rig.publish(*(delivery(*row, NOW) for row in [("a", 12), ("b", 12), ("c", 0)]))
    assert [message["region"] for message in messages] == [[12]]
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__UNVERIFIED": 1}


def test_what_is_measured_is_measured_of_what_is_published() -> None:
    rig = Rig()
    rig.publish(*(delivery(name, 12, NOW) for name in "abc"))
    stats = rig.flow.stats
    assert (stats.region_nodes.n, stats.region_nodes.total) == (1, 1.0)
    assert (stats.k_asked.total, stats.k_reached.total) == (2.0, 3.0)
    assert stats.latency_s[TICK].n == 3
    assert {stage: histogram.n for stage, histogram in stats.stage_s.items()} == {
        "decode": 1,
        "locate": 1,
        "cloak": 1,
        "encode": 1,
        "publish": 1,
    }
    assert stats.last_tick_s > 0


devices = st.sampled_from(["a", "b", "c", "", "d" * 300])
times = st.sampled_from([None, NOW, NOW - 1, NOW - 59, NOW - 500, NOW + 3, NOW + 500])
good_bodies = st.builds(a_position, st.integers(0, 24), times).map(json.dumps)
bodies = (
    good_bodies.map(str.encode)
    | st.lists(good_bodies, max_size=4).map(lambda parts: f"[{','.join(parts)}]".encode())
    | st.binary(max_size=20)
    | st.sampled_from([b'{"lat": 0, "lon": 0}', b'{"lat": 60.2, "lon": 1e3}', b"[" * 5000, b"[]"])
)
topics = devices.map("positions/{}".format) | st.just("elsewhere/a")
arrivals = st.builds(Delivery, topics, bodies, st.integers(0, 5), st.booleans())
# A batch that arrives, a tick, or the answer of the broker to the oldest output.
flow_steps = st.lists(arrivals, max_size=6) | st.just("tick") | st.lists(st.booleans(), min_size=9)


@given(st.lists(flow_steps, max_size=15), st.integers(1, 12))
@many(2)
def test_the_accounting_adds_up_at_every_moment_whatever_arrives(
    sequence: list[list[Delivery] | str | list[bool]], queue_limit: int
) -> None:
    rig = Rig(queue_limit=queue_limit, presence={"max_devices": 2})
    outputs = []
    for step, what in enumerate(sequence):
        if what == "tick":
            outputs.append(rig.tick(now=NOW + step))
        elif what and isinstance(what[0], bool):
            if outputs:
                output = outputs.pop(0)
                rig.settle(output, _answers(what, len(output.messages)))
        else:
            rig.put(*(d for d in what if isinstance(d, Delivery)))
        assert rig.flow.n_held == sum(output.n_positions for output in outputs)
    for output in [*outputs, rig.tick(now=NOW + 20)]:
        rig.settle(output, [])
    assert rig.flow.n_held == 0
    assert rig.ledger.n_received == rig.ledger.n_settled


def _answers(what: Sequence[object], n: int) -> list[bool]:
    return [bool(answer) for answer in what][:n]


EPOCH = NOW - NOW % 60
"""When an epoch begins."""


def session_rig(**region: object) -> Rig:
    """Return a flow in session mode whose epochs all begin at `EPOCH` plus full minutes."""
    return Rig(
        region={"mode": "session", "min_nodes": 1, **region},
        session={"epoch_s": 60},
    )


def pair_at(now: float, *, nodes: tuple[int, int] = (12, 13)) -> list[Delivery]:
    return [delivery("a", nodes[0], now), delivery("b", nodes[1], now)]


def test_in_a_session_all_pseudonyms_of_a_group_are_published_whoever_reports() -> None:
    rig = session_rig()
    [born] = rig.publish(*pair_at(EPOCH), now=EPOCH)
    for i, who in enumerate("abba", 1):
        [message] = rig.publish(delivery(who, 12, EPOCH + i), now=EPOCH + i)
        assert message["pseudonyms"] == born["pseudonyms"]
    assert rig.outcomes() == {"PUBLISHED": 6}


def test_in_a_session_pseudonyms_change_for_all_with_the_epoch() -> None:
    rig = session_rig()
    [born] = rig.publish(*pair_at(EPOCH), now=EPOCH)
    [last] = rig.publish(*pair_at(EPOCH + 59.9), now=EPOCH + 59.9)
    [new] = rig.publish(*pair_at(EPOCH + 60), now=EPOCH + 60)
    assert last["pseudonyms"] == born["pseudonyms"]
    assert not set(new["pseudonyms"]) & set(born["pseudonyms"])


def test_a_newcomer_is_held_and_published_with_the_first_release_of_its_group() -> None:
    rig = session_rig()
    rig.publish(*pair_at(EPOCH), now=EPOCH)
    for i in (10, 20, 30):
        assert rig.publish(delivery("c", 12, EPOCH + i), now=EPOCH + i) == []
        assert (rig.flow.n_held, rig.flow.view.n_newcomers) == (1, 1)
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__SUPERSEDED": 2}
    [message] = rig.publish(now=EPOCH + 60)
    assert len(message["pseudonyms"]) == 3
    assert (rig.flow.n_held, rig.flow.view.n_newcomers) == (0, 0)
    assert rig.outcomes() == {"PUBLISHED": 3, "SUPPRESSED__SUPERSEDED": 2}
    stats = rig.flow.stats
    assert (stats.latency_s[TICK].n, stats.latency_s[GROUP].n) == (2, 1), "waiting is no latency"


def test_a_newcomer_that_leaves_before_its_group_came_was_never_grouped() -> None:
    rig = session_rig()
    rig.publish(delivery("c", 12, EPOCH), now=EPOCH)
    assert rig.flow.n_held == 1
    rig.publish(now=EPOCH + 121)
    assert (rig.flow.n_held, rig.flow.view.n_devices) == (0, 0)
    assert rig.outcomes() == {"SUPPRESSED__NEVER_GROUPED": 1}


def test_a_newcomer_that_waits_when_the_flow_closes_was_never_grouped() -> None:
    rig = session_rig()
    rig.publish(delivery("c", 12, EPOCH), now=EPOCH)
    rig.flow.close()
    rig.check()
    assert rig.flow.n_held == 0
    assert rig.outcomes() == {"SUPPRESSED__NEVER_GROUPED": 1}


def test_a_held_position_that_the_broker_does_not_take_counts_as_undelivered() -> None:
    rig = session_rig()
    rig.publish(delivery("a", 12, EPOCH), now=EPOCH)
    rig.put(delivery("b", 12, EPOCH + 60))
    output = rig.tick(now=EPOCH + 60)
    assert (output.n_positions, output.n_direct) == (2, 1)
    rig.settle(output, [False])
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2}


def test_a_silent_member_keeps_its_pseudonym_and_its_place_in_the_table_of_devices() -> None:
    rig = Rig(
        region={"mode": "session", "min_nodes": 1},
        session={"epoch_s": 100},
        presence={"max_devices": 2},
    )
    start = NOW - NOW % 100
    [born] = rig.publish(*pair_at(start), now=start)
    later = start + 99
    [message] = rig.publish(delivery("a", 7, later), delivery("c", 7, later), now=later)
    assert message["pseudonyms"] == born["pseudonyms"]
    assert set(message["region"]) >= {7, 13}
    assert rig.outcomes() == {"PUBLISHED": 3, "SUPPRESSED__OVERLOAD": 1}
    assert rig.publish(now=start + 100) == []
    rig.publish(now=start + 121)
    assert rig.flow.view.n_devices == 1
    rig.publish(delivery("c", 7, start + 122), now=start + 122)
    assert rig.outcomes()["SUPPRESSED__OVERLOAD"] == 1
    assert rig.flow.n_held == 1


def test_a_group_above_the_cap_is_settled_and_its_pseudonyms_never_come_back() -> None:
    rig = session_rig(max_nodes=3, place_devices=1)
    near = (3, 8)  # in one window
    [born] = rig.publish(*pair_at(EPOCH, nodes=near), now=EPOCH)
    assert rig.publish(*pair_at(EPOCH + 1, nodes=(0, 24)), now=EPOCH + 1) == []
    assert rig.publish(*pair_at(EPOCH + 2, nodes=near), now=EPOCH + 2) == [], (
        "nor while it would live"
    )
    assert rig.flow.n_held == 0
    [again] = rig.publish(*pair_at(EPOCH + 60, nodes=near), now=EPOCH + 60)
    assert not set(again["pseudonyms"]) & set(born["pseudonyms"])
    assert rig.outcomes() == {
        "PUBLISHED": 4,
        "SUPPRESSED__REGION_TOO_LARGE": 4,
    }


@pytest.mark.parametrize("mode", ["snapshot", "session"])
def test_the_mode_of_the_settings_is_the_mode_of_the_flow(mode: str) -> None:
    rig = Rig(region={"mode": mode, "min_nodes": 4, "k_extra": 1})
    trio = [delivery(name, 12, NOW) for name in "abc"]
    assert rig.publish(*trio[:2]) == []
    messages = rig.publish(*trio) or rig.publish(now=NOW + 60)
    [message] = messages
    assert message["k"] == 2
    assert len(message["region"]) >= 4
    assert len(message["pseudonyms"]) == 3


walkers = st.builds(
    lambda device, node, ago: (device, node, ago),
    st.sampled_from("abcdefgh"),
    st.integers(0, 24),
    st.sampled_from([0.0, 0.0, 0.0, 3.0]),
)
ticks = st.tuples(st.lists(walkers, max_size=6), st.sampled_from([1, 7, 30, 70]))


@given(
    st.sampled_from(["snapshot", "session"]),
    st.sampled_from([3, 8, 25]),
    st.lists(st.tuples(ticks, st.booleans()), max_size=12),
)
@many(1.5)
def test_with_devices_that_wait_and_groups_that_end_the_accounting_adds_up_at_every_moment(
    mode: str,
    max_nodes: int,
    sequence: list[tuple[tuple[list[tuple[str, int, float]], int], bool]],
) -> None:
    rig = Rig(
        region={"mode": mode, "min_nodes": 2, "max_nodes": max_nodes},
        session={"epoch_s": 60},
        presence={"ttl_s": 90},
    )
    now = NOW
    for (reports, seconds), delivered in sequence:
        now += seconds
        rig.put(*(delivery(device, node, now - ago) for device, node, ago in reports))
        output = rig.tick(now=now)
        in_hand = output.n_positions
        waiting = rig.flow.n_held - in_hand
        assert waiting <= rig.flow.view.n_devices_on_graph
        rig.settle(output, [delivered] * len(output.messages))
        assert rig.flow.n_held == waiting
    rig.flow.close()
    rig.check()
    assert rig.flow.n_held == 0
    assert rig.ledger.n_received == rig.ledger.n_settled


def test_it_is_known_how_long_positions_have_come_in_and_none_has_gone_out() -> None:
    rig = Rig()

    def arrive(at_s: float, *devices: str) -> None:
        rig.inbox.put([delivery(device, 12, NOW + at_s) for device in devices], at_s=at_s)
        output = rig.tick(now=NOW + at_s)
        rig.settle(output, [True] * len(output.messages))

    assert rig.flow.silence.lasted_s(100.0, flows_s=60.0) == 0
    arrive(100.0, "a")
    arrive(130.0, "a")
    assert rig.flow.silence.lasted_s(150.0, flows_s=60.0) == 50
    arrive(160.0, "a", "b")
    assert rig.flow.silence.lasted_s(170.0, flows_s=60.0) == 0
    output = rig.tick(now=NOW + 170)
    rig.settle(output, [])
    arrive(300.0, "a")
    arrive(340.0, "a")
    assert rig.flow.silence.lasted_s(400.0, flows_s=60.0) == 100
    assert rig.flow.silence.lasted_s(400.1, flows_s=60.0) == 0


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_wall_clock_that_is_put_and_put_back_makes_nothing_late(
    *, dated: bool, jump_s: float
) -> None:
    rig = Rig(output={"time_step_s": 2})
    wall_ahead_s = [0.0, 0.0, jump_s, jump_s, jump_s, 0.0, 0.0, 0.0]
    for i, ahead_s in enumerate(wall_ahead_s):
        now = NOW + i
        wall_s = now + ahead_s
        # Devices learn the time from where the gateway does.
        rig.put(*(delivery(device, 12, wall_s if dated else None) for device in "ab"))
        output = rig.tick(now=now, wall_ahead_s=ahead_s)
        rig.settle(output, [True] * len(output.messages))
        assert [json.loads(m.payload)["time"] for m in output.messages] == [wall_s - wall_s % 2]
    assert rig.outcomes() == {"PUBLISHED": 2 * len(wall_ahead_s)}


@pytest.mark.parametrize("margin", [0, 3])
def test_a_reload_of_the_margin_reaches_groups_counts_and_trips(margin: int) -> None:
    tables: dict[str, Any] = {"counts": {"privacy": "k", "k": 5}, "trips_out": {"every_s": 600}}
    rig = Rig(region={"mode": "session"}, **tables)
    region = {"mode": "session", "k_extra": margin}
    rig.flow.adopt(flow_settings(region=region, **tables))
    regions = []
    for second in range(1, 40, 3):
        now = NOW + second
        said = rig.publish(*(delivery(f"d{i}", 6 * i, now) for i in range(4)), now=now)
        regions += [message["region"] for message in said if "region" in message]
    assert bool(regions) is (margin == 0), "a group needs two devices, and the margin"
    for each in rig.outputs._publisher_of.values():
        assert promised_by(each) == 5 + margin


def promised_by(publisher: Publisher) -> int:
    if isinstance(publisher, SafePublisher):
        return 5 + publisher._messages.k_extra
    assert isinstance(publisher, TripsPublisher)
    return publisher._k


@pytest.mark.parametrize("noticed", [True, False])
def test_once_it_is_noticed_that_ids_change_no_old_id_is_company_for_its_successor(
    *, noticed: bool
) -> None:
    """Two vehicles; one changes its id when it is older than devices count."""
    rig = Rig(inputs=[{"ids_change_s": None}], adka={"density_steps": [], "k_values": [3]})
    succession = rig.flow.mobile.intake.succession
    regions = 0
    for second in range(0, 200, 2):
        if second == 140 and noticed:
            succession._verdicts = np.ones(LEAST, np.int64)
        other = "b" if second < 160 else "c"
        now = NOW + second
        said = rig.publish(delivery("a", 12, now), delivery(other, 12, now), now=now)
        regions += sum("region" in message for message in said)
        assert not regions or second >= 160
    assert succession.ids_change is noticed
    assert bool(regions) is not noticed
