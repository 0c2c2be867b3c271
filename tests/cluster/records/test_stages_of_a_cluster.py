"""Records in a cluster: what one process publishes, or safe classes; accounts always add up."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.window_intersection import WindowIntersection
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.records.due_windows import takes_long
from anonymizer.cluster.records.searches_by_work import longest_take_s
from anonymizer.cluster.records.stream_stage import stream_stages
from anonymizer.cluster.transactions import consumer_options
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import label_of
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.pipeline.records.flow import RecordFlow
from anonymizer.pipeline.records.inbox import Arrived
from anonymizer.pipeline.records.release_messages import ReleasedClasses
from anonymizer.settings import LimitSettings, StreamSettings
from anonymizer.store import RecordStore
from tests.cluster.records.cluster import (
    SECRET,
    START,
    TICK_S,
    Cluster,
    Row,
    by_tick,
    settings_for,
    summaries,
)
from tests.lanes import each_of_both
from tests.pipeline.records.made import FAULTS, FLEET, LENGTH_S, REGIONS, TYPES, Sent, fleet
from tests.pipeline.records.tolls import DAY_S, MIDNIGHT_S, TOLL, exits

schedules = st.lists(st.integers(0, 1023), max_size=200)
N_TICKS_OF_WINDOW = int(LENGTH_S / TICK_S)


def changing() -> dict[str, Any]:
    """Return the fleet without lasting attributes."""
    return {"attributes": [{**each, "lasting": False} for each in FLEET["attributes"]]}


KINDS: dict[str, dict[str, Any]] = {
    "cohorts": {},
    "report": {"cumulative": "report"},
    "changing": changing(),
    "kld": {
        **changing(),
        "model": "kld",
        "promise": {"k": 4, "d": 2, "l": 2},
        "sources": [{**each, "needed": each["name"] == "profile"} for each in FLEET["sources"]],
    },
    "lasting fault": {
        "attributes": [
            {**each, "lasting": each["name"] == "fault"} for each in FLEET["attributes"]
        ],
        "promise": {"k": 4, "d": 2, "l": 2},
        "model": "kld",
    },
    "payload": {
        "sources": [
            {**each, "topic": "records/{source}", "vehicle": "of.id"} for each in FLEET["sources"]
        ]
    },
    "best": {**changing(), "method": "best"},
    "open": {
        "attributes": [
            {"name": "type", "values": "any"}
            if each["name"] == "type"
            else {**each, "lasting": False}
            for each in FLEET["attributes"]
        ]
    },
    "cells": {"model": "cells", "method": "tree", "cumulative": "report"},
    "cells in cohorts": {"model": "cells", "method": "tree", "labels": "range"},
    "closeness": {"model": "kld", "promise": {"k": 4, "d": 2, "l": 2, "t": 0.3}},
}


def journeys(*, n: int, n_windows: int, seed: int) -> Iterator[tuple[float, Delivery]]:
    """Yield what vehicles send that come and go: twice, late, in bad form, or in part."""
    rng = np.random.default_rng(seed)
    kind, home, age = (rng.integers(0, m, 2 * n) for m in (4, 4, 60))
    here = list(range(n))
    for window in range(n_windows):
        # Some leave, others come; in one window a source is silent.
        here = [v + n if v < n and rng.random() < 0.05 else v for v in here]
        for v in here:
            says: dict[str, dict[str, Any]] = {
                "registration": {"type": TYPES[kind[v]], "region": REGIONS[home[v]]},
                "profile": {"age": 20 + int(age[v])},
                "telemetry": {
                    "speed": round(float(rng.uniform(0, 50)), 1),
                    "fault": FAULTS[int(rng.integers(0, 4))],
                },
            }
            for source, values in says.items():
                if rng.random() < 0.1 or (source == "registration" and window == 2):
                    continue
                at_s = (window + float(rng.uniform(0, 0.99))) * LENGTH_S
                part = Sent(f"veh-{v:04}", source, round(START + at_s, 3), values).delivery()
                yield at_s, part
                if rng.random() < 0.1:
                    yield at_s, part
                if rng.random() < 0.03:
                    yield at_s + 2 * LENGTH_S, part
                if rng.random() < 0.03:
                    yield at_s, Delivery(part.topic, b"{", 0)
                    yield at_s, Delivery("nobody/knows", b"{}", 0)


def in_payload(delivery: Delivery) -> Delivery:
    """Return a message whose payload names the vehicle, not its topic."""
    topic, _, vehicle = delivery.topic.rpartition("/")
    if not delivery.payload.startswith(b'{"ts'):
        return delivery._replace(topic=topic)
    says = json.loads(delivery.payload) | {"of": {"id": vehicle}}
    return delivery._replace(topic=topic, payload=json.dumps(says).encode())


@dataclass(frozen=True)
class World:
    """A stream, what arrives, and what one process publishes of it."""

    stream: Stream
    arrivals: Sequence[Sequence[Delivery]]
    payloads: Sequence[bytes]
    accounts: dict[str, int]
    summaries: Sequence[dict[str, float]]


class _Store(RecordStore):
    """A store whose key is that of the cluster."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, keep_published_s=1e9)
        self.secret = SECRET


def one_process(
    stream: Stream,
    arrivals: Sequence[Sequence[Delivery]],
    folder: Path,
    *,
    start: float = START,
    tick_s: float = TICK_S,
) -> World:
    store = _Store(folder / "records.sqlite")
    flow = RecordFlow([stream], store, LimitSettings(), max_unpublished=10**6, at_s=start)
    # A search of so few records ends by itself, if it has the time.
    left = 1.0 if stream.settings.method == "best" else 0.0
    payloads: list[bytes] = []
    found = []
    for tick, batch in enumerate(arrivals):
        at_s = start + (tick + 1) * tick_s
        flow.take(Arrived([batch]), now=at_s - tick_s / 2, at_s=at_s)
        for due in flow.due(at_s=at_s):
            memories = flow.memories(due)
            closing = flow.anonymize(due, memories, time_left=lambda: left, clock=lambda: 0.0)
            flow.close(due, closing, now=at_s)
            found.append(dict(closing.summary))
            waiting = flow.waiting(limit=10**6)
            flow.published(waiting, now=at_s)
            payloads += [each.message.payload for each in waiting]
    counts = Counter[str]()
    for of_stream in store.accounts().values():
        counts.update(of_stream)
    store.close()
    return World(stream, arrivals, payloads, dict(counts), found)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@cache
def world(kind: str, folder: Path, seed: int = 1, n: int = 60, n_windows: int = 4) -> World:
    stream = declare(fleet(**KINDS[kind]))
    n_ticks = (n_windows + 3) * N_TICKS_OF_WINDOW + 4
    sent = journeys(n=n, n_windows=n_windows, seed=seed)
    if kind == "payload":
        sent = ((at_s, in_payload(each)) for at_s, each in sent)
    at = folder / f"{kind}-{seed}-{n}"
    at.mkdir(exist_ok=True)
    return one_process(stream, by_tick(sent, n_ticks=n_ticks), at)


def cluster_of(made: World) -> Cluster:
    return Cluster([made.stream], made.arrivals, settings_for())


def check_safe(cluster: Cluster, made: World) -> None:
    """Check all that is published against the records, by code that made nothing of it.

    No record is lost or counted twice, no class is below the promise or published twice, and
    windows together leave d values of every vehicle.
    """
    stream = made.stream
    accounts = cluster.accounts()
    assert accounts["received"] == cluster.n_received
    messages = [json.loads(payload) for payload in cluster.out]
    numbers = sorted(message["message"] for message in messages)
    assert numbers == list(range(1, len(messages) + 1)), "no number is left out or used twice"
    assert Counter(cluster.out) == Counter(
        payload
        for each in cluster.releases
        if isinstance(each, ReleasedClasses)
        for payload in each.payloads
    )
    lasting = [each.name for each in stream.schema.qis if each.name in stream.lasting]
    attack = WindowIntersection(stream.schema, lasting, d=stream.promise.d)
    of_window: defaultdict[int, list[Row]] = defaultdict(list)
    for row in cluster.rows:
        of_window[row.window].append(row)
    for window, records in sorted(of_window.items()):
        classes = [m for m in messages if m["window"] == list(stream.rule.span(window))]
        assert sorted(m["class"] for m in classes) == list(range(len(classes)))
        assert {m["of"] for m in classes} <= {len(classes)}
        published = [row for row in records if row.outcome == Outcome.PUBLISHED]
        assert sum(m["count"] for m in classes) == len(published)
        check_classes(stream, classes, published, attack)
        keys = [row.key for row in records]
        assert len(keys) == len(set(keys)) or stream.settings.per == "record"
    if stream.lasting and stream.settings.enforces:
        assert all(each.n_short == 0 for each in attack.read())


def check_classes(
    stream: Stream,
    classes: Sequence[dict[str, Any]],
    published: Sequence[Row],
    attack: WindowIntersection,
) -> None:
    """Check the classes of a window; neither labels of open domains nor representatives."""
    if not classes:
        return
    promise = stream.promise
    for message in classes:
        assert message["count"] >= message["k"] >= promise.k
        for values in message["sensitive"].values():
            assert len(values) == message["count"]
            assert len(set(values) - {None}) >= promise.l or set(values) == {None}
    if stream.open_columns or '"value":' in json.dumps([each["qis"] for each in classes]):
        return
    qi = np.stack([row.cells for row in published])[:, : len(stream.schema.qis)]
    labels = []
    for attribute in stream.schema.qis:
        reader = ValueReader(attribute)
        column = [message["qis"][attribute.name] for message in classes]
        labels.append(ReleasedLabels.of([reader.runs(value) for value in column]))
    for c, message in enumerate(classes):
        of = np.full(len(qi), c, np.int32)
        # A silent source: all its values are missing, and its part of the promise is not made.
        at = [
            j
            for j, qi_ in enumerate(stream.schema.qis)
            if not _is_missing(labels[j], c, qi_.missing)
        ]
        said = _as_published(stream, labels, of, qi)
        covered = np.logical_and.reduce([labels[j].covers(of, said[:, j]) for j in at])
        assert covered.sum() >= message["count"]
        for j in at:
            values = np.unique(said[covered, j])
            assert (values != stream.schema.qis[j].missing).sum() >= promise.d
    silent = [
        j for j, qi_ in enumerate(stream.schema.qis) if _is_missing(labels[j], 0, qi_.missing)
    ]
    shown = qi.copy()
    for j in silent:
        shown[:, j] = stream.schema.qis[j].missing
    attack.window(labels, [row.key for row in published], shown)


def _as_published(
    stream: Stream, labels: Sequence[ReleasedLabels], of: Int32Array, qi: Int32Array
) -> Int32Array:
    """Return the cells with those missing that their cohort withholds: its cover lacks them."""
    said = qi.copy()
    for j, qi_ in enumerate(stream.schema.qis):
        if qi_.name in stream.lasting:
            said[~labels[j].covers(of, qi[:, j]), j] = qi_.missing
    return said


def _is_missing(labels: ReleasedLabels, c: int, missing: int) -> bool:
    a, b = labels.first_of[c : c + 2].tolist()
    return bool((labels.lo[a:b] == missing).all() and (labels.hi[a:b] == missing).all())


def check_settled(cluster: Cluster, made: World) -> None:
    check_safe(cluster, made)
    assert cluster.accounts()["held"] == 0
    assert all(
        Outcome[name] is not Outcome.SUPPRESSED__UNVERIFIED
        for name in cluster.accounts()
        if name not in {"received", "held"}
    )


def test_what_a_stage_has_told_itself_and_comes_again_is_nothing_new(folder: Path) -> None:
    made = world("cohorts", folder, n=24)
    cluster = cluster_of(made)
    cluster.run()
    [process] = cluster.processes.values()
    told = [each for each in process.log if takes_long(each[0])]
    assert len(told) >= 4
    for value, at_s in told:
        before = process.stage.snapshot()
        assert process.stage.take(value, at_s=at_s) == []
        assert process.stage.snapshot() == before


def test_a_window_at_which_the_stage_failed_is_settled_with_the_next_and_not_published(
    folder: Path,
) -> None:
    made = world("changing", folder, n=24)
    cluster, whole = cluster_of(made), cluster_of(made)
    whole.run()
    [process] = cluster.processes.values()
    n_failed = 0
    while min(cluster.next_tick) < len(made.arrivals):
        for bridge in range(len(cluster.next_tick)):
            cluster.send(bridge)
        while process.at < len(process.log):
            if takes_long(process.log[process.at][0]) and not n_failed:
                n_failed += 1
                process.log.pop(process.at)  # as the runner drops an input at which it fails
            else:
                cluster.read(0)
    assert cluster.accounts()["held"] == 0
    assert cluster.accounts()["SUPPRESSED__UNVERIFIED"] > 24
    assert cluster.accounts()["received"] == whole.accounts()["received"]
    contents = [[{**json.loads(each), "message": 0} for each in of.out] for of in (cluster, whole)]
    first = contents[1][0]["window"]
    assert contents[0] == [each for each in contents[1] if each["window"] != first]


def test_a_stage_forgets_who_was_not_published_for_a_year(folder: Path) -> None:
    made = world("cohorts", folder, n=24)
    cluster = cluster_of(made)
    year = int(366 * 86_400 / LENGTH_S)
    last = {b"in time".ljust(16): 30 - year, b"too long ago".ljust(16): -year}
    [stage] = cluster.stages
    state = unpack_state("stream 0", stage.snapshot())
    state["streams"][0]["memories"] = [[who, window, b""] for who, window in last.items()]
    stage.restore(pack_state("stream 0", state))
    cluster.run()
    state = unpack_state("stream 0", stage.snapshot())
    known = {who for who, *_ in state["streams"][0]["memories"]}
    assert known & last.keys() == {b"in time".ljust(16)}
    assert len(known) > 1


def braked(*, n: int, n_windows: int) -> Iterator[tuple[float, Delivery]]:
    """Yield what a fleet sends while one vehicle keeps the times of a source back."""
    n_ticks = n_windows * N_TICKS_OF_WINDOW
    for at_s, each in journeys(n=n, n_windows=n_windows, seed=1):
        if "/registration/" not in each.topic and at_s < n_ticks * TICK_S:
            yield at_s, each
    for tick in range(n_ticks):
        # The start of the oldest window that may still be open: lateness, silence, and a tick.
        oldest_s = max(0.0, (tick * TICK_S - 45) // LENGTH_S) * LENGTH_S
        says = {"type": TYPES[0], "region": REGIONS[0]}
        yield tick * TICK_S, Sent("veh-9999", "registration", START + oldest_s, says).delivery()


def test_a_vehicle_on_the_brake_holds_windows_as_briefly_in_a_cluster_as_in_one_process(
    folder: Path,
) -> None:
    n_windows = 8
    at = folder / "braked"
    at.mkdir()
    sent = by_tick(braked(n=24, n_windows=n_windows), n_ticks=n_windows * N_TICKS_OF_WINDOW)
    made = one_process(declare(fleet(**KINDS["report"])), sent, at)
    cluster = cluster_of(made)
    while min(cluster.next_tick) < len(sent):
        for bridge in range(len(cluster.next_tick)):
            cluster.send(bridge)
        cluster.read_all()
    assert len(made.summaries) == n_windows - 1, "all but the window of the present are closed"
    assert len(summaries(cluster)) == len(made.summaries)
    assert sorted(cluster.out) == sorted(made.payloads)


@pytest.mark.parametrize(("kind", "n"), each_of_both(sorted(KINDS), [60, 200]))
def test_a_stage_publishes_what_one_process_does(kind: str, n: int, folder: Path) -> None:
    made = world(kind, folder, n=n)
    cluster = cluster_of(made)
    cluster.run()
    assert cluster.out == list(made.payloads)
    assert len(made.payloads) > 10
    check_settled(cluster, made)
    found = [dict(each) for each in summaries(cluster)]
    assert found == [{k: v for k, v in each.items() if k != "seconds"} for each in made.summaries]
    accounts = cluster.accounts()
    for outcome in set(Outcome) - {Outcome.HELD}:
        assert accounts[outcome.name] == made.accounts.get(label_of(outcome), 0), outcome.name
    assert accounts["received"] == made.accounts["received"]


def test_each_stream_has_a_stage_and_those_that_may_read_one_message_have_one(
    folder: Path,
) -> None:
    made = world("changing", folder, n=24)
    topic = f"other/{made.stream.settings.sources[0].topic}"
    renamed = {"sources": [{**each, "topic": topic} for each in FLEET["sources"]]}
    streams = [
        declare(fleet(**KINDS["changing"], **more))
        for more in ({"name": "one"}, {"name": "other", **renamed}, {"name": "two"})
    ]
    arrivals = [
        [*batch, *(each._replace(topic=f"other/{each.topic}") for each in batch)]
        for batch in made.arrivals
    ]
    cluster = Cluster(streams, arrivals, settings_for())
    cluster.run()
    names = [[name for name, *_ in stage.ledgers] for stage in cluster.stages]
    assert names == [["one", "two", ""], ["other", ""]]
    of: defaultdict[str, list[bytes]] = defaultdict(list)
    for payload in cluster.out:
        stream = json.loads(payload)["stream"]
        of[stream].append(payload.replace(f'"stream":"{stream}"'.encode(), b'"stream":"fleet"'))
    assert len(of) == len(streams)
    assert all(len(each) == len(made.payloads) for each in of.values())


def test_a_topic_names_its_share_of_vehicles_also_after_a_restart() -> None:
    made = settings_for()
    limits = made.limits.model_copy(update={"max_ids_per_topic": 6})
    arrivals = [
        [
            in_payload(Sent(f"veh-{v}", "profile", START + tick, {"age": 30}).delivery())
            for v in range(40)
        ]
        for tick in range(2)
    ]
    stream = declare(fleet(**KINDS["payload"]))
    cluster = Cluster([stream], arrivals, made.model_copy(update={"limits": limits}))
    for bridge in (0, 1, 0, 1):
        cluster.send(bridge)
        cluster.read_all()
        cluster.crash(0)
        cluster.keep(0)
    accounts = cluster.accounts()
    assert accounts["SUPPRESSED__OVER_SHARE"] == 2 * (40 - 6)
    assert accounts["held"] + accounts["SUPPRESSED__SUPERSEDED"] == 2 * 6


def tolls(folder: Path, *, n: int, n_trucks: int) -> tuple[World, float]:
    """Return a stream of toll exits, in which a truck has several records, and its ticks."""
    tick_s, first_day = DAY_S / 4, datetime(2023, 1, 3)  # noqa: DTZ001  local, as in payloads
    stream = declare(StreamSettings.model_validate(TOLL | {"idle_s": DAY_S}))
    sent = (
        ((each.at - first_day).total_seconds() + tick_s / 2, each.delivery())
        for each in exits(n=n, n_trucks=n_trucks, seed=1, n_days=2)
    )
    arrivals = by_tick(sent, n_ticks=20, tick_s=tick_s)
    return one_process(stream, arrivals, folder, start=MIDNIGHT_S, tick_s=tick_s), tick_s


@pytest.mark.parametrize(("n", "n_trucks"), [(150, 60), (400, 20)])
def test_a_truck_has_one_exit_in_a_window(n: int, n_trucks: int, tmp_path: Path) -> None:
    made, tick_s = tolls(tmp_path, n=n, n_trucks=n_trucks)
    cluster = Cluster([made.stream], made.arrivals, settings_for(tick_s), start=MIDNIGHT_S)
    cluster.run()
    check_settled(cluster, made)
    assert cluster.out == list(made.payloads)
    assert min(json.loads(payload)["own"] for payload in cluster.out) >= 5
    assert cluster.accounts()["SUPPRESSED__REPEATED"] > 0


@settings(max_examples=2, deadline=None)
@given(schedules)
def test_no_schedule_breaks_a_promise_or_an_account(folder: Path, schedule: list[int]) -> None:
    for kind in ("cohorts", "changing"):
        made = world(kind, folder, n=24)
        cluster = cluster_of(made)
        cluster.run(schedule)
        check_settled(cluster, made)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_thousands_of_schedules(kind: str, folder: Path) -> None:
    n_schedules = int(os.environ.get("ANONYMIZER_SCHEDULES", "350"))
    n_crashes = 0
    for seed in range(n_schedules):
        random = Random(seed)  # noqa: S311  a schedule, not a secret
        schedule = [random.randrange(1024) for _ in range(random.randrange(600))]
        made = world(kind, folder, seed=seed % 5, n=30)
        cluster = cluster_of(made)
        cluster.run(schedule)
        n_crashes += cluster.n_crashes
        check_settled(cluster, made)
    assert n_crashes > n_schedules


def test_a_stage_may_work_for_twice_its_longest_search_and_240_seconds_at_least() -> None:
    assert longest_take_s([]) == 240.0
    assert longest_take_s([fleet(method="best", budget_s=120), fleet(method="best")]) == 240.0
    assert longest_take_s([fleet(method="best", budget_s=600), fleet(method="best")]) == 1200.0
    # `auto` does not search in a cluster.
    assert longest_take_s([fleet(method="auto", budget_s=600)]) == 240.0
    told = consumer_options({}, group="g", name="a", silent_s=1200.0)
    assert told["max.poll.interval.ms"] == 1_500_000


def test_an_operator_may_say_how_kafka_is_read() -> None:
    own = {"fetch.queue.backoff.ms": "100"}
    told = [consumer_options(of, group="g", name="a", silent_s=240.0) for of in (own, {})]
    assert [each["fetch.queue.backoff.ms"] for each in told] == ["100", 10]


def test_a_stage_is_restored_from_its_own_bytes_and_from_no_others(folder: Path) -> None:
    made = world("cohorts", folder)
    cluster = cluster_of(made)
    for _ in range(9):
        for bridge in (0, 1):
            cluster.send(bridge)
    cluster.read_all()
    [stage] = cluster.stages
    cluster.keep(0)
    cluster.crash(0)
    assert cluster.stages[0].snapshot() == stage.snapshot()
    stage.restore(stage.snapshot())
    assert stage.snapshot() == cluster.processes[0].snapshot
    settings = made.stream.settings.model_copy(update={"name": "another"})
    for other_stream in (replace(made.stream, settings=settings), replace(made.stream, shape="")):
        other_stage = stream_stages(settings_for(), [other_stream], secret=SECRET)(0)
        with pytest.raises(ValueError, match="was declared in another way"):
            other_stage.restore(stage.snapshot())
    for other in (b"", b"x", msgspec.msgpack.encode({}), b"\x81"):
        with pytest.raises(ValueError, match="no snapshot"):
            stage.restore(other)
    with pytest.raises(ValueError, match="no input of this stage"):
        stage.take(b"?", at_s=0.0)
