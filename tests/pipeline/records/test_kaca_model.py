"""KACA windows: what is published of trucks that leave motorways, re-checked from the exits."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.algorithms.records.classes import classes_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.flow import Due
from anonymizer.pipeline.records.kaca_model import Clustering
from anonymizer.pipeline.records.window_classes import totals_of
from anonymizer.pipeline.records.window_model import Asked
from tests.pipeline.records.support import Rig
from tests.pipeline.records.tolls import DAY_S, MIDNIGHT_S, SECTIONS, TOLL, Exit, exits

K = 5


class Spy(Clustering):
    """Remembers what it did."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        class_of = super().classes(records, measures, time_left=time_left, seed=seed, asked=asked)
        class_of = self.joined(records, class_of)
        SEEN.append((records, class_of, seed))
        return class_of


SEEN: list[tuple[Records, Int32Array, int]] = []


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    SEEN.clear()
    made = Rig(tmp_path, **TOLL)
    made.state.model = Spy(made.stream)
    yield made
    made.store.close()


def take(rig: Rig, sent: list[Exit]) -> None:
    rig.take_raw([each.delivery(i) for i, each in enumerate(sent, start=1)])


def test_totals_are_of_at_least_k_trucks_however_many_exits_one_has(rig: Rig) -> None:
    [toll] = rig.stream.measures
    class_of, codes = np.zeros(K, np.int32), np.zeros((K, 1), np.int32)
    one, many = np.zeros(K, np.int32), np.arange(K, dtype=np.int32)
    assert totals_of(rig.stream, class_of, one, codes) == [{toll.name: None}]
    [total] = totals_of(rig.stream, class_of, many, codes)
    assert total[toll.name] is not None


def test_one_truck_does_not_crowd_the_others_out_for_the_day(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **TOLL | {"max_records": 200})
    take(rig, list(exits(n=1000, n_trucks=1, seed=1)))
    others = [replace(e, truck=f"other-{i}") for i, e in enumerate(exits(n=20, n_trucks=1, seed=2))]
    take(rig, others)
    assert rig.accounts() == {"received": 1020, "suppressed/over_share": 900}
    assert rig.state.n_held == 120
    rig.crash()
    take(rig, list(exits(n=1, n_trucks=1, seed=3)))
    assert rig.accounts()["suppressed/over_share"] == 901
    rig.store.close()


def test_each_class_is_true_of_the_exits_it_is_made_of(rig: Rig) -> None:
    sent = list(exits(n=2100, n_trucks=1700, seed=1))
    take(rig, sent)
    [due] = rig.flow.due(at_s=1e6)
    closing = rig.flow.anonymize(due, {}, time_left=lambda: 0.0, clock=lambda: 0.0)
    [(records, class_of, _)] = SEEN
    assert_same_exits(due, sent)
    told = rig.state.model.generalized(records, classes_of(class_of))
    class_number = {json.dumps(of, sort_keys=True): c for c, of in enumerate(told)}
    chosen = np.flatnonzero(closing.outcome != Outcome.SUPPRESSED__REPEATED)
    toll_of = due.joined.cells[chosen, 2]
    messages = [json.loads(m.payload) for m in closing.messages]
    assert len(messages) == class_of.max() + 1 == len(class_number)
    no_toll = rig.stream.measures[0].missing
    for message in messages:
        number = class_number[json.dumps(message["qis"], sort_keys=True)]
        inside = np.flatnonzero(class_of == number)
        trucks = set(records.person[inside].tolist())
        counts = {message[name] for name in ("truck_count", "vehicle_count", "k", "own", "count")}
        assert counts == {len(trucks)} == {len(inside)}
        assert len(trucks) >= K
        for code, minute in records.qi[inside].tolist():
            assert covers(message, SECTIONS[code], minute // 60)
        cents = [code for code in toll_of[inside].tolist() if code != no_toll]
        told = message["measures"]["avg_toll"]
        if told is None:  # of fewer than k trucks a mean would tell too much
            with_toll = inside[toll_of[inside] != no_toll]
            assert len(set(records.person[with_toll].tolist())) < K
            continue
        assert told["n"] == len(cents)
        assert Decimal(str(told["sum"])) * 100 == sum(cents)
        exact = Decimal(sum(cents)) / len(cents) / 100
        assert abs(Decimal(str(message["avg_toll"])) - exact) <= Decimal("0.00501")
        assert (message["k_anonymized"], message["algorithm"]) == (True, "KACA")
    n_trucks = len({each.truck for each in sent})
    assert sum(m["count"] for m in messages) == closing.summary["published"] == n_trucks
    assert closing.summary["records"] == 2100


def assert_same_exits(due: Due, sent: list[Exit]) -> None:
    """No exit is lost or changed on the way to the window, and its trucks are told apart."""
    per_truck: dict[str, list[Any]] = defaultdict(list)
    for each in sent:
        key = (SECTIONS.index(each.section), each.at.hour * 60 + each.at.minute, each.cents)
        per_truck[each.truck].append(key)
    per_person: dict[int, list[Any]] = defaultdict(list)
    for person, (section, minute, cents) in zip(
        due.joined.person.tolist(), due.joined.cells.tolist(), strict=True
    ):
        per_person[person].append((section, minute, None if cents == 100_001 else cents))

    def bag(of: dict[Any, list[Any]]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(sorted(keys, key=str)) for keys in of.values())

    assert bag(per_truck) == bag(per_person)


def covers(message: dict[str, Any], section: str, hour: int) -> bool:
    """Whether the words in a message, read by themselves, are true of an exit."""
    region = message["section_region"].removesuffix("区域")
    first, end = map(int, re.findall(r"\d\d", message["time_period"])[-2:])
    return (region == "全部" or section.startswith(region)) and (
        first <= hour < end if first < end else hour >= first or hour < end
    )


def test_days_are_local_and_a_truck_that_leaves_twice_is_one_truck(rig: Rig) -> None:
    day = list(exits(n=40, n_trucks=8, seed=2))
    late = Exit("truck-x", SECTIONS[0], day[0].at.replace(hour=23, minute=59), 100)
    take(rig, [*day, late])
    rig.close(silent=True)
    messages = rig.classes()
    assert {tuple(m["window"]) for m in messages} == {(MIDNIGHT_S, MIDNIGHT_S + DAY_S)}
    [message] = messages  # nine trucks are not twice five
    assert message["k"] == message["count"] == len({e.truck for e in [*day, late]})


def test_no_two_classes_of_a_window_are_labelled_alike(rig: Rig) -> None:
    """Forty minutes could be several classes, and their labels tell the hour alone."""
    eight = next(exits(n=1, n_trucks=1, seed=0)).at.replace(hour=8)
    of_hour = [Exit(f"t{i}", SECTIONS[0], eight.replace(minute=2 * i), 100) for i in range(20)]
    rig.state.model = Clustering(rig.stream)  # the spy joins classes itself
    later = [Exit(f"s{i}", SECTIONS[0], eight.replace(hour=20), 100) for i in range(10)]
    take(rig, [*of_hour, *later])
    rig.close(silent=True)
    assert sorted(message["k"] for message in rig.classes()) == [10, 20]


def test_fewer_trucks_than_k_are_suppressed_however_often_they_leave(rig: Rig) -> None:
    take(rig, list(exits(n=40, n_trucks=4, seed=3)))
    rig.close(silent=True)
    assert rig.classes() == []
    assert rig.accounts() == {
        "received": 40, "suppressed/no_class": 4, "suppressed/repeated": 36,
    }  # fmt: skip


def test_the_same_exit_sent_twice_is_a_duplicate_and_a_corrected_one_replaces_it(rig: Rig) -> None:
    day = list(exits(n=30, n_trucks=10_000, seed=4))
    again = Exit(day[0].truck, day[0].section, day[0].at, 12_345)
    take(rig, day)
    take(rig, [again])
    rig.take_raw([day[1].delivery(1000)])
    rig.close(silent=True)
    accounts = rig.accounts()
    assert accounts["received"] == 32
    assert accounts["suppressed/superseded"] == accounts["duplicate"] == 1
    assert sum(m["count"] for m in rig.classes()) == 30


def test_open_exits_survive_a_crash_and_leave_no_trace_when_they_are_published(rig: Rig) -> None:
    sent = list(exits(n=60, n_trucks=40, seed=5))
    take(rig, sent)
    rig.crash()
    assert rig.state.n_held == 60
    rig.close(silent=True)
    assert sum(m["count"] for m in rig.classes()) == len({each.truck for each in sent})
    rig.publish()
    stored = rig.path.read_bytes()
    assert not any(each.truck.encode() in stored for each in sent)


@pytest.mark.parametrize("window_s", [DAY_S, DAY_S / 2, 1.4 * DAY_S])
def test_no_time_is_released_twice_not_under_another_declaration_either(
    rig: Rig, window_s: float
) -> None:
    take(rig, list(exits(n=60, n_trucks=60, seed=6)))
    rig.close(silent=True)
    rig.publish()
    rig.store.close()
    other = Rig(
        rig.path.parent, **TOLL | {"promise": {"k": 6}, "window_s": window_s, "per": "vehicle"}
    )
    take(other, list(exits(n=60, n_trucks=60, seed=7)))
    assert other.accounts()["late"] == 60
    assert other.close(silent=True) == 0
    other.store.close()


def test_a_class_whose_words_do_not_cover_it_is_refused(rig: Rig) -> None:
    class Lying(Clustering):
        """Says of every class what is true of the first."""

        def _values(self, records: Records, classes: Any) -> Any:  # noqa: ANN401
            return [[column[0]] * len(column) for column in super()._values(records, classes)]

    day = [
        Exit(f"t{i}", SECTIONS[i // 5], MORNING.replace(hour=6 * (i // 5)), 100) for i in range(10)
    ]
    take(rig, day)
    [due] = rig.flow.due(at_s=1e6)
    rig.state.model = Lying(rig.stream)
    closing = rig.flow.anonymize(due, {}, time_left=lambda: 0.0, clock=lambda: 0.0)
    assert closing.n_unverified <= 1
    assert sum(closing.outcome == Outcome.PUBLISHED) + 5 * closing.n_unverified == 10


MORNING = next(exits(n=1, n_trucks=1, seed=0)).at


def test_a_mean_over_fewer_trucks_than_k_is_not_published(rig: Rig) -> None:
    day = [Exit(f"t{i}", SECTIONS[0], MORNING, 100 if i < 4 else None) for i in range(6)]
    take(rig, day)
    rig.close(silent=True)
    [message] = rig.classes()
    assert message["avg_toll"] is None
    assert message["measures"] == {"avg_toll": None}


def test_every_way_of_telling_and_comparing_can_be_set(tmp_path: Path) -> None:
    attributes = [dict(a) for a in TOLL["attributes"]]
    attributes[0] |= {"label": "plain"}
    attributes.append({"name": "real_money", "lo": 0, "hi": 50})
    source = TOLL["sources"][0] | {"tells": [*TOLL["sources"][0]["tells"], "real_money"]}
    rig = Rig(
        tmp_path,
        **TOLL
        | {"attributes": attributes, "sources": [source], "method": "kmeans", "language": "en"}
        | {"per": "vehicle"},
    )
    day = [
        Exit(f"t{i}", SECTIONS[0], MORNING.replace(hour=23 * (i % 2)), 100 if i else None)
        for i in range(8)
    ]
    take(rig, day)
    rig.close(silent=True)
    [message] = rig.classes()
    assert message["qis"] == {
        "section_region": {"values": ["G5615530120"]},
        "time_period": {"hours": [23, 1]},
        "real_money": {"range": [0, 0], "missing": True},
    }
    assert message["section_region"] == "{G5615530120}"
    assert message["time_period"] == "period (23-01)"
    assert (message["real_money"], message["own"]) == ("{[0-0]|?}", 8)
    rig.store.close()
