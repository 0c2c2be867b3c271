"""The records flow with its store: accounts, crashes, and what is published."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import Classes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.records import Records
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.anonymize_window import warm_up
from anonymizer.pipeline.records.declaration import declare
from anonymizer.pipeline.records.flow import MOST_RECENT, RecentMessages, RecordFlow
from anonymizer.pipeline.records.inbox import Arrived, RecordInbox
from anonymizer.pipeline.records.window_model import Asked, WindowModel
from anonymizer.settings import LimitSettings, StreamSettings
from tests.app.gateway.records import assert_classes_keep, assert_each_window_has_one_partition
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, TYPES, Sent, stream, traffic
from tests.pipeline.records.support import NOW, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.store.close()


@contextmanager
def rig_for(**changes: Any) -> Iterator[Rig]:  # noqa: ANN401  settings of any kind
    with tempfile.TemporaryDirectory() as folder:
        made = Rig(Path(folder), **changes)
        yield made
        made.store.close()


def one(vehicle: str, ts: float = 1.0, source: str = "profile", **values: object) -> Sent:
    return Sent(vehicle, source, ts, values or {"age": 30})


def test_one_topic_may_speak_for_many_vehicles_up_to_its_share(tmp_path: Path) -> None:
    source = {"name": "exits", "topic": "exits", "vehicle": "plate", "tells": ["age"]}
    limits = LimitSettings(max_ids_per_topic=6).model_copy(update={"max_device_id_chars": 4})
    age = FLEET["attributes"][2]
    rig = Rig(tmp_path, limits=limits, sources=[source], attributes=[age], per="record")

    def exit_of(plate: object, age: int = 30) -> Delivery:
        body = {"ts": 1.0 + age, "age": age, "plate": plate}
        return Delivery("exits", json.dumps(body).encode(), 0)

    rig.take_raw([exit_of(f"v{i % 8}", 30 + i) for i in range(16)])
    rig.take_raw([exit_of("v0", 60), exit_of("", 61), exit_of(None, 62), exit_of("12345", 63)])
    assert rig.accounts() == {
        "received": 20, "suppressed/over_share": 4, "invalid/no_device": 3,
    }  # fmt: skip
    rig.close(silent=True)
    assert [message["k"] for message in rig.classes()] == [6]
    assert not any(b"v0" in payload for payload in rig.publish())
    # Ids are counted anew in the next window.
    rig.take_raw([exit_of(f"w{i}", 80) for i in range(6)])
    assert rig.accounts()["received"] == 26
    assert rig.accounts()["suppressed/over_share"] == 4
    rig.store.close()


def test_every_part_of_a_fleet_is_published(rig: Rig) -> None:
    parts = list(traffic(n_vehicles=30, n_windows=3, seed=1))
    rig.take(*parts)
    assert rig.close() == 2
    assert rig.close(silent=True) == 1
    classes = assert_each_window_has_one_partition(rig.publish())
    for window, messages in classes.items():
        of_window = [p for p in parts if window <= p.ts < window + LENGTH_S]
        assert_classes_keep(messages, of_window, k=4, d=2, l=1)
        assert sum(m["count"] for m in messages) == 30
    assert rig.accounts() == {"received": 270, "published": 270}
    assert rig.state.stats.last["records"] == 30


def test_a_message_describes_a_class_and_nothing_else(rig: Rig) -> None:
    rig.take(*traffic(n_vehicles=12, n_windows=1, seed=2))
    rig.close(silent=True)
    for number, message in enumerate(rig.classes()):
        assert set(message) == {
            "stream", "window", "class", "of", "message", "k", "count", "qis", "sensitive",
        }  # fmt: skip
        assert message["window"] == [0, 60]
        assert (message["class"], message["message"]) == (number, number + 1)
        assert set(message["qis"]) == {"type", "region", "age", "speed"}
        assert set(message["qis"]["type"]) == {"values"}
        assert set(message["qis"]["age"]) == {"range"}
    assert "veh-" not in json.dumps(rig.classes())


def test_the_order_of_arrival_does_not_change_what_is_published() -> None:
    parts = list(traffic(n_vehicles=25, n_windows=1, seed=3))
    published = []
    for seed in range(3):
        with rig_for() as rig:
            rig.take(*(parts[i] for i in np.random.default_rng(seed).permutation(len(parts))))
            rig.close(silent=True)
            published.append(rig.publish())
    assert published[0] == published[1] == published[2]


def test_sensitive_values_are_a_multiset_in_the_order_of_their_domain(rig: Rig) -> None:
    faults = ["engine", "none", None, "tyres", "none"]
    for i, fault in enumerate(faults):
        rig.take(
            one(f"v{i}", source="telemetry", speed=i, fault=fault),
            one(f"v{i}", age=20 + i),
            one(f"v{i}", source="registration", type="car" if i % 2 else "van", region="north")
            if i
            else one("v0", source="registration", type="bus", region="south"),
        )
    rig.close(silent=True)
    [message] = rig.classes()
    assert message["sensitive"] == {"fault": ["none", "none", "tyres", "engine", None]}


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (Delivery("records/profile/v", b"{", 1), "invalid/malformed"),
        (Delivery("records/profile/v", b'{"ts": 1, "age": 500}', 1), "invalid/out_of_domain"),
        (Delivery("records/profile/", b'{"ts": 1}', 1), "invalid/no_device"),
        (Delivery(f"records/profile/{'v' * 300}", b'{"ts": 1}', 1), "invalid/no_device"),
        (Delivery("records/profile/v", b" " * 300_000, 1), "invalid/too_large"),
        (Delivery("records/profile/v", b'{"ts": 1e10}', 1), "invalid/future_time"),
        (Delivery("records/profile/v", b'{"ts": -5}', 1), "invalid/ancient_time"),
    ],
)
def test_an_invalid_message_is_counted_with_its_reason(
    rig: Rig, sent: Delivery, outcome: str
) -> None:
    rig.take_raw([sent])
    assert rig.accounts() == {"received": 1, outcome: 1}


def test_messages_that_belong_to_no_stream_have_their_own_accounts(rig: Rig) -> None:
    rig.take_raw([Delivery("elsewhere/v", b"{}", 1)])
    assert rig.store.accounts() == {"": {"received": 1, "invalid/unknown_topic": 1}}
    rig.flow.take(Arrived([], Counter({-1: 2, 0: 3})), now=NOW, at_s=0.0)
    assert rig.store.accounts()[""]["suppressed/overload"] == 2
    assert rig.accounts() == {"received": 3, "suppressed/overload": 3}


def test_a_part_of_a_closed_window_is_late(rig: Rig) -> None:
    rig.take(one("v", ts=1))
    rig.close(silent=True)
    rig.take(one("w", ts=2))
    assert rig.accounts() == {"received": 2, "suppressed/no_class": 1, "late": 1}


def test_a_message_delivered_again_is_a_duplicate_even_if_its_window_has_closed(
    rig: Rig,
) -> None:
    fresh, bad = one("v", ts=1), Delivery("records/profile/v", b"{", 7)
    older = one("v", ts=0.5)
    rig.take(fresh, older)
    rig.take_raw([bad])
    for _ in range(2):
        before = rig.accounts()
        rig.take(fresh, older)
        rig.take_raw([bad])
        after = rig.accounts()
        assert after.pop("duplicate") == before.pop("duplicate", 0) + 3
        assert after.pop("received") == before.pop("received") + 3
        assert after == before
        rig.close(silent=True)


def test_after_a_crash_a_repeated_part_is_a_duplicate_or_late_and_changes_no_record(
    rig: Rig,
) -> None:
    first, second = one("v", ts=1), one("v", ts=LENGTH_S + 1)
    rig.take(first, second)
    rig.close(silent=True)
    third = one("v", ts=3 * LENGTH_S)
    rig.take(third)
    before = rig.accounts()
    rig.crash()
    rig.take(first, second, third)
    assert rig.accounts() == before | {"received": 6, "late": 2, "duplicate": 1}
    assert rig.state.n_held == 1


def repeated(recent: RecentMessages, messages: Sequence[Delivery]) -> list[bool]:
    return recent.repeated(PackedDeliveries.of(messages))


def test_a_message_is_recognized_among_as_many_as_a_client_can_have_in_flight() -> None:
    recent = RecentMessages()
    messages = [Delivery("t", b"%d" % i, 1) for i in range(MOST_RECENT + 1)]
    assert not any(repeated(recent, messages[:-1]))
    assert all(repeated(recent, messages[:-1]))
    last, first = messages[-1], messages[0]
    other = Delivery("u", first.payload, 1)
    assert repeated(recent, [last, first, other, other]) == [False, True, False, True]
    assert repeated(recent, [first._replace(receipt=0)] * 2) == [False, False]


def test_what_is_remembered_of_messages_is_bounded() -> None:
    recent = RecentMessages()
    repeated(recent, [Delivery("t", b"%d" % i, 1) for i in range(2 * MOST_RECENT + 1)])
    assert not any(repeated(recent, [Delivery("t", b"0", 1)]))
    assert len(recent) <= 2 * MOST_RECENT


def test_a_second_report_within_the_window_replaces_the_first_or_is_superseded(rig: Rig) -> None:
    rig.take(one("v", ts=2), one("v", ts=3, age=40), one("v", ts=1, age=50))
    assert rig.accounts() == {"received": 3, "suppressed/superseded": 2}
    rig.take(one("v", ts=3, age=40), qos=0)
    assert rig.accounts()["duplicate"] == 1
    assert [part.ts for part in rig.store.recall(
        "fleet", shape=rig.stream.shape, n_sources=3
    ).parts] == [3.0]  # fmt: skip


def test_records_and_windows_are_bounded_and_refused_parts_are_counted() -> None:
    with rig_for(max_records=2) as rig:
        rig.take(*(one(f"v{i}", ts=1) for i in range(3)))
        assert rig.accounts() == {"received": 3, "suppressed/overload": 1}
        rig.take(one("v0", ts=2, age=31))
        assert rig.accounts() == {
            "received": 4,
            "suppressed/overload": 1,
            "suppressed/superseded": 1,
        }
    with rig_for(lateness_s=480) as rig:
        newest = [one(f"v{i % 4}", ts=1000 + 60 * i) for i in range(10)]
        rig.take(*newest, one("v0", ts=700), one("v0", ts=1600))
        assert rig.accounts() == {"received": 12, "suppressed/too_many_windows": 1}
        assert rig.flow.n_due == 1


def test_fewer_than_k_vehicles_are_not_published(rig: Rig) -> None:
    rig.take(*traffic(n_vehicles=3, n_windows=1, seed=0))
    rig.close(silent=True)
    assert rig.accounts() == {"received": 9, "suppressed/no_class": 9}
    assert rig.publish() == []


def test_a_vehicle_without_a_required_part_is_left_out() -> None:
    sources = [{**s, "needed": s["name"] == "telemetry"} for s in FLEET["sources"]]
    with rig_for(sources=sources) as rig:
        rig.take(*traffic(n_vehicles=10, n_windows=1, seed=0), one("alone"), one("late", ts=3))
        rig.close(silent=True)
        rig.publish()
        assert rig.accounts() == {"received": 32, "published": 30, "suppressed/incomplete": 2}


def test_a_missing_part_is_published_as_missing_and_does_not_count_as_a_value(rig: Rig) -> None:
    parts = [p for p in traffic(n_vehicles=12, n_windows=1, seed=5) if p.source != "profile"]
    rig.take(*parts, *(one(f"veh-000{i}", age=20 + i) for i in range(4)))
    rig.close(silent=True)
    messages = rig.classes()
    assert sum(m["count"] for m in messages) in (0, 12)
    for message in messages:
        age = message["qis"]["age"]
        assert age.get("missing", False) in (True, False)
        assert age["range"][0] < age["range"][1]
    assert any(m["qis"]["age"].get("missing") for m in messages)


class Careless(WindowModel):
    """Makes every record a class of its own, except for the first five."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,  # noqa: ARG002
    ) -> Int32Array:
        assert measures.shape == (records.n, 0)
        assert seed
        assert not time_left()
        return np.maximum(np.arange(records.n, dtype=np.int32) - 4, 0).astype(np.int32)


def test_kernels_are_compiled_for_a_k_of_any_size() -> None:
    made = stream(promise={"k": 40_000})
    warm_up(made, WindowModel(made))


@pytest.mark.parametrize(
    "changes", [{"model": "kd"}, {"model": "cells"}, {"model": "cells", "labels": "range"}]
)
def test_classes_are_numbered_in_the_order_of_their_published_values(
    changes: dict[str, Any],
) -> None:
    with rig_for(promise={"k": 4, "d": 1}, method="auto", cumulative="report", **changes) as rig:
        rig.take(*traffic(n_vehicles=150, n_windows=1, seed=6))
        rig.close(silent=True)
        values = [
            json.dumps(m["qis"], sort_keys=True, separators=(",", ":")) for m in rig.classes()
        ]
        assert len(values) > 5
        assert values == sorted(values)


class Untruthful(WindowModel):
    """Publishes the generalized values of the first class for every class."""

    def generalized(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        return super().generalized(records, classes)[:1] * len(classes)


@pytest.mark.parametrize("cost", ["range", "taxonomy"])
def test_a_class_with_untrue_generalized_values_is_suppressed(cost: str) -> None:
    with rig_for(promise={"k": 4}, cost=cost) as rig:
        rig.state.model = Untruthful(rig.stream)
        rig.take(*traffic(n_vehicles=60, n_windows=1, seed=6))
        rig.close(silent=True)
        (message,) = rig.classes()
        assert rig.state.stats.n_unverified > 3
        accounts = rig.accounts()
        assert accounts["suppressed/unverified"] == 180 - 3 * message["count"]


def test_a_class_that_breaks_its_promise_is_suppressed_whole_and_counted() -> None:
    with rig_for(promise={"k": 4, "d": 1}, cumulative="report") as rig:
        rig.state.model = Careless(rig.stream)
        rig.take(*traffic(n_vehicles=12, n_windows=1, seed=6))
        rig.close(silent=True)
        assert [m["count"] for m in rig.classes()] == [5]
        assert rig.accounts() == {"received": 36, "suppressed/unverified": 21}
        assert rig.state.stats.n_unverified == 7


@pytest.mark.parametrize("room", [-1, 0])
def test_a_window_is_withheld_exactly_if_more_classes_would_wait_than_may(room: int) -> None:
    parts = list(traffic(n_vehicles=30, n_windows=1, seed=6))
    with rig_for() as rig:
        rig.take(*parts)
        rig.close(silent=True)
        n_classes = len(rig.publish())
    with rig_for(max_unpublished=n_classes + room) as rig:
        rig.take(*parts)
        rig.close(silent=True)
        assert len(rig.publish()) == (0 if room < 0 else n_classes)
        outcome = "suppressed/undelivered" if room < 0 else "published"
        assert rig.accounts() == {"received": 90, outcome: 90}


def lasting_values(classes: list[dict[str, Any]], vehicle: Sent) -> set[str]:
    """Return the types of a vehicle that are possible after all classes it may be in."""
    kind = vehicle.values["type"]
    published = (set(m["qis"]["type"]["values"]) for m in classes)
    possible = [values for values in published if kind in values]
    return set.intersection(*possible) if possible else set()


@pytest.mark.parametrize("model", ["kd", "cells"])
@pytest.mark.parametrize("mode", ["report", "enforce"])
def test_what_windows_reveal_together_is_reported_and_prevented_on_request(
    mode: str, model: str
) -> None:
    short = 0.0
    labels = {"labels": "range"} if model == "cells" else {}
    with rig_for(cumulative=mode, model=model, method="auto", **labels) as rig:
        for window in range(8):
            rig.take(
                *(
                    replace(part, ts=part.ts + window * LENGTH_S)
                    for part in traffic(n_vehicles=40, n_windows=1, seed=7)
                    if part.source != "telemetry"
                ),
                *(
                    part
                    for part in traffic(
                        n_vehicles=40, n_windows=1, seed=window, start=window * LENGTH_S
                    )
                    if part.source == "telemetry"
                ),
            )
            rig.close(silent=True)
            rig.crash()  # the histories are in the store
            rig.publish()
            short += json.loads(
                rig.store._db.execute(
                    "SELECT summary FROM windows ORDER BY window DESC LIMIT 1"
                ).fetchone()[0]
            )["too_little_left"]
        accounts = rig.accounts()
    assert (short > 0) == (mode == "report")
    assert accounts["published"] > 0.5 * accounts["received"]


def test_a_new_vehicle_finds_a_class_among_vehicles_that_stay_together() -> None:
    fleet = list(traffic(n_vehicles=40, n_windows=1, seed=7))
    new = [replace(part, vehicle="new") for part in fleet if part.vehicle == "veh-0003"]
    with rig_for(cumulative="enforce") as rig:
        for window, parts in enumerate((fleet, [*fleet, *new])):
            rig.take(*(replace(part, ts=part.ts + window * LENGTH_S) for part in parts))
            rig.close(silent=True)
        rig.publish()
        assert rig.accounts() == {"received": 243, "published": 243}


@pytest.mark.parametrize(("days", "remembered"), [(3, 40), (365, 40), (368, 0)])
def test_a_vehicle_that_comes_back_within_a_year_keeps_the_cover_of_its_cohort(
    days: int, remembered: int
) -> None:
    fleet = list(traffic(n_vehicles=40, n_windows=1, seed=7))
    others = [replace(part, vehicle=f"other-{part.vehicle}") for part in fleet]
    with rig_for(cumulative="enforce") as rig:
        # A leap of more than 30 days would be a clock that was put forward.
        passing = [(day * 1440, others) for day in (*range(20, days, 20), days)]
        for window, parts in ((0, fleet), *passing, (days * 1440 + 1, fleet)):
            now = window * LENGTH_S
            rig.take(*(replace(part, ts=part.ts + now) for part in parts), now=NOW + now)
            rig.clock_s += 1000.0
            (due,) = rig.flow.due(at_s=rig.clock_s)
            memories = rig.flow.memories(due)
            closing = rig.flow.anonymize(due, memories, time_left=lambda: 0.0, clock=lambda: 0.0)
            rig.flow.close(due, closing, now=NOW)
            assert len(closing.memory) == 40
        assert len(memories) == remembered


ATTRIBUTES = FLEET["attributes"]


@pytest.mark.parametrize(
    ("attributes", "remembered"),
    [
        (ATTRIBUTES[:-1], 40),
        ([{**ATTRIBUTES[2], "hi": 99}, *ATTRIBUTES[:2], *ATTRIBUTES[3:]], 40),
        ([{**a, "lasting": a["name"] == "type"} for a in ATTRIBUTES], 0),
        ([{**ATTRIBUTES[0], "values": ["tram", *TYPES]}, *ATTRIBUTES[1:]], 0),
    ],
    ids=["one less", "another order and range", "one lasts no more", "another lasting value"],
)
def test_covers_outlast_another_declaration_under_which_they_mean_the_same(
    tmp_path: Path, attributes: list[dict[str, Any]], remembered: int
) -> None:
    told = {a["name"] for a in attributes}
    sources = [{**s, "tells": [t for t in s["tells"] if t in told]} for s in FLEET["sources"]]
    fleet = list(traffic(n_vehicles=40, n_windows=1, seed=7))
    changed: dict[str, Any] = {"attributes": attributes, "sources": sources}
    for window, declared in enumerate(({}, changed)):
        rig = Rig(tmp_path, cumulative="enforce", **declared)
        rig.take(*(replace(part, ts=part.ts + window * LENGTH_S) for part in fleet))
        rig.clock_s += 1000.0
        (due,) = rig.flow.due(at_s=rig.clock_s)
        memories = rig.flow.memories(due)
        closing = rig.flow.anonymize(due, memories, time_left=lambda: 0.0, clock=lambda: 0.0)
        rig.flow.close(due, closing, now=NOW)
        rig.store.close()
    assert len(memories) == remembered


def test_a_crash_before_a_window_is_committed_leaves_it_open_to_be_closed_again(
    rig: Rig,
) -> None:
    rig.take(*traffic(n_vehicles=10, n_windows=1, seed=1))
    rig.close(silent=True, crash_before_commit=True)
    assert rig.state.n_held == 30
    assert rig.close(silent=True) == 1
    assert sum(m["count"] for m in rig.classes()) == 10


def test_after_a_crash_the_same_bytes_are_published_again(rig: Rig) -> None:
    rig.take(*traffic(n_vehicles=10, n_windows=1, seed=1))
    rig.close(silent=True)
    before = [w.message for w in rig.flow.waiting(limit=99)]
    rig.crash()
    assert [w.message for w in rig.flow.waiting(limit=99)] == before
    assert len(rig.publish(most=1)) == 1
    rig.crash()
    assert [w.message for w in rig.flow.waiting(limit=99)] == before[1:]


def test_classes_of_a_stream_that_is_no_longer_declared_are_still_published(rig: Rig) -> None:
    rig.take(*traffic(n_vehicles=10, n_windows=1, seed=1))
    rig.close(silent=True)
    others = RecordFlow([], rig.store, LimitSettings(), max_unpublished=9, at_s=0.0)
    others.published(others.waiting(limit=99), now=NOW)
    assert rig.accounts() == {"received": 30, "published": 30}


STEPS = st.lists(
    st.sampled_from(
        ["take", "take", "take", "close", "silent", "publish", "crash", "lose", "late"]
    ),
    max_size=25,
)


@settings(max_examples=30)
@given(STEPS, st.integers(0, 10**6))
def test_every_part_is_accounted_for_once_whatever_crashes(steps: list[str], seed: int) -> None:
    parts = list(traffic(n_vehicles=8, n_windows=4, seed=seed))
    rng = np.random.default_rng(seed)
    published: list[bytes] = []
    sent = n_repeats = 0
    with rig_for() as rig:
        for step in steps:
            chunk = parts[sent : sent + int(rng.integers(1, 40))]
            if step == "take":
                rig.take(*chunk)
                sent += len(chunk)
            elif step == "crash":
                rig.crash()
                # Messages that were stored but perhaps not acknowledged come again.
                before = Counter(rig.accounts())
                repeats = parts[max(0, sent - int(rng.integers(0, 30))) : sent]
                rig.take(*repeats)
                changes = Counter(rig.accounts()) - before
                assert changes.pop("received", 0) == len(repeats)
                assert sum(changes.values()) == len(repeats)
                assert set(changes) <= {"duplicate", "late"}
                n_repeats += len(repeats)
            elif step == "lose":
                rig.close(silent=True, crash_before_commit=True)
            elif step == "publish":
                published += rig.publish(most=int(rng.integers(1, 5)))
            else:
                rig.close(silent=step == "silent")
        rig.close(silent=True)
        published += rig.publish()
        accounts = rig.accounts()
        assert rig.state.n_held == 0
    assert accounts.pop("received", 0) == sum(accounts.values()) == sent + n_repeats
    suppressed = {"suppressed/no_class", "suppressed/cumulative", "suppressed/silent_source"}
    assert set(accounts) <= {"published", "late", "duplicate"} | suppressed
    for messages in assert_each_window_has_one_partition(published).values():
        assert all(m["k"] >= 4 for m in messages)


@pytest.mark.parametrize("cumulative", ["enforce", "report"])
@pytest.mark.parametrize("silent", SOURCES)
def test_a_source_that_stops_costs_its_own_attributes_alone(silent: str, cumulative: str) -> None:
    told = {source["name"]: source["tells"] for source in FLEET["sources"]}
    with rig_for(cumulative=cumulative) as rig:
        for window in range(4):
            parts = traffic(n_vehicles=40, n_windows=1, seed=7)
            stopped = window in {1, 2}
            rig.take(
                *(
                    replace(part, ts=part.ts + window * LENGTH_S)
                    for part in parts
                    if not (stopped and part.source == silent)
                )
            )
            rig.close(silent=True)
            assert rig.state.stats.last["silent_sources"] == stopped
            assert rig.state.stats.silent == ({SOURCES.index(silent)} if stopped else set())
            assert rig.state.stats.last["published"] >= 38
        for message in map(json.loads, rig.publish()):
            stopped = message["window"][0] in {LENGTH_S, 2 * LENGTH_S}
            for source, names in told.items():
                for name in names:
                    assert says_missing(message, name) == (stopped and source == silent)


def says_missing(message: dict[str, Any], name: str) -> bool:
    """Return whether a class says that values of an attribute are missing."""
    if name in message["sensitive"]:
        return None in message["sensitive"][name]
    label = message["qis"][name]
    return label.get("missing", False) or "?" in (label.get("values") or ())


@pytest.mark.parametrize(("few", "column"), [("profile", "age"), ("telemetry", "fault")])
def test_what_a_silent_source_still_tells_of_fewer_than_k_vehicles_is_withheld(
    few: str, column: str
) -> None:
    """Nothing is promised of its attributes in this window."""
    with rig_for() as rig:
        parts = list(traffic(n_vehicles=40, n_windows=1, seed=5))
        rest = [p for p in parts if p.source != few or p.vehicle in {"veh-0001", "veh-0002"}]
        rig.take(*rest, next(p for p in parts if p.source == few and p.vehicle == "veh-0003"))
        rig.close(silent=True)
        assert rig.state.stats.last["silent_sources"] == 1
        classes = [json.loads(payload) for payload in rig.publish()]
        assert sum(each["count"] for each in classes) == 40
        counted = {"received": 83, "published": 80, "suppressed/silent_source": 3}
        assert rig.accounts() == counted
        told = [{**each["qis"], **each["sensitive"]}[column] for each in classes]
        assert all(each == {"values": ["?"]} or set(each) == {None} for each in told)


def test_a_source_that_was_silent_when_cohorts_were_founded_joins_them_later() -> None:
    fleet = list(traffic(n_vehicles=40, n_windows=1, seed=7))
    with rig_for() as rig:
        for window in range(4):
            rig.take(
                *(
                    replace(part, ts=part.ts + window * LENGTH_S)
                    for part in fleet
                    if window or part.source != "registration"
                )
            )
            rig.close(silent=True)
            assert rig.state.stats.last["published"] >= 38
        rig.publish()
        last = [m for m in rig.classes() if m["window"][0] == 3 * LENGTH_S]
        assert all(len(m["qis"]["type"]["values"]) >= 2 for m in last)


HEALTH = declare(
    StreamSettings.model_validate(
        {
            **FLEET,
            "name": "health",
            "sources": [{"name": "telemetry", "tells": ["heat"]}],
            "attributes": [{"name": "heat", "lo": 0, "hi": 200}],
        }
    )
)


def test_a_record_that_two_streams_read_is_received_and_settled_in_each(tmp_path: Path) -> None:
    made = Rig(tmp_path, others=[HEALTH])
    fleet, health = made.flow.states
    n = 12

    def telemetry(vehicle: int, **values: object) -> Delivery:
        body = {"ts": 1.0, "speed": 5.0, "fault": "none", "heat": 7 * vehicle, **values}
        return Delivery(f"records/telemetry/v{vehicle}", json.dumps(body).encode(), 1 + vehicle)

    both = [telemetry(i) for i in range(n)]
    made.take_raw(both)
    made.take(*(one(f"v{i}", source="registration", type="car", region="east") for i in range(n)))
    assert (fleet.accounts.n_received, health.accounts.n_received) == (2 * n, n)
    made.crash()  # both take it in one transaction
    fleet, health = made.flow.states
    assert (fleet.n_held, health.n_held) == (2 * n, n)
    made.take_raw([telemetry(0, speed=-1.0, ts=1.5)])
    wrong = [state.accounts.n(Outcome.INVALID__OUT_OF_DOMAIN) for state in (fleet, health)]
    assert wrong == [1, 0]  # an outcome in each
    assert health.accounts.n_received == n + 1
    made.take_raw([telemetry(0, speed=-1.0, ts=1.5)])  # which the broker delivers again
    again = [state.accounts.n(Outcome.DUPLICATE) for state in (fleet, health)]
    assert again == [1, 1]
    made.close(silent=True)
    made.publish()
    assert (fleet.n_held, health.n_held) == (0, 0)
    assert health.accounts.n(Outcome.PUBLISHED) == n
    made.store.close()


def test_what_is_refused_is_refused_to_every_stream_that_reads_it(tmp_path: Path) -> None:
    made = Rig(tmp_path, others=[HEALTH])
    inbox = RecordInbox(1, streams_of=made.flow.streams_of)
    topics = ("records/telemetry/v0", "records/telemetry/v0", "records/profile/v0", "nowhere")
    inbox.put([Delivery(topic, b"{}", 0) for topic in topics])
    inbox.close()
    arrived = asyncio.run(inbox.take())
    assert arrived is not None
    made.flow.take(arrived, now=NOW, at_s=0.0)
    made.check()
    lost = [state.accounts.n(Outcome.SUPPRESSED__OVERLOAD) for state in made.flow.states]
    assert lost[0] - lost[1] in {0, 1}
    assert sum(lost) + made.flow.unmatched.n_settled + 2 >= len(topics)
    assert lost[1] == 1
    made.store.close()


@pytest.mark.parametrize("method", ["hilbert", "auto", "best"])
@pytest.mark.parametrize("bound", ["max_share", "max_source_share"])
def test_of_a_value_that_is_too_frequent_a_part_goes_and_nobody_else(
    method: str, bound: str
) -> None:
    source = {"name": "all", "tells": ["type", "region"]}
    both = [{**each, "lasting": False} for each in FLEET["attributes"][:2]]
    changes = {"sources": [source], "attributes": both, "method": method, "budget_s": 0.1}
    rows = [("car", "north")] * 40 + [(TYPES[1 + i % 3], "south") for i in range(12)]
    parts = [one(f"v{i}", 1.0, "all", type=t, region=r) for i, (t, r) in enumerate(rows)]
    with rig_for(**changes, promise={"k": 4, "d": 2, bound: 0.5}) as rig:
        rig.take(*parts)
        rig.close(silent=True)
        rig.publish()
        accounts = rig.accounts()
    assert accounts == {"received": 52, "published": 24, "suppressed/too_frequent": 28}
