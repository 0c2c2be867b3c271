"""The search on a stream: windows from a file or from the broker."""

import asyncio
import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anonymizer.app.tuning.bench import Trained
from anonymizer.app.tuning.recording import (
    RecordedMessage,
    RecordedWindows,
    bench_of_stream,
    joined_windows,
    read_messages,
    tap,
)
from anonymizer.app.tuning.trial import Row, try_row
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.anonymize_window import anonymize
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.settings import BrokerSettings, LimitSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import QuickBrokerSettings, broker
from tests.end_to_end import DEADLINE_S
from tests.pipeline.records.made import FAULTS, FLEET, LENGTH_S, Sent, fleet, stream, traffic

__all__ = ["broker"]

LIMITS = LimitSettings()


def sent(n_vehicles: int = 30, n_windows: int = 3) -> list[Sent]:
    return list(traffic(n_vehicles=n_vehicles, n_windows=n_windows, seed=1))


def messages(parts: Sequence[Sent]) -> list[RecordedMessage]:
    return [RecordedMessage(part.topic, part.payload) for part in parts]


def test_messages_make_the_records_that_their_vehicles_told() -> None:
    parts = sent()
    declared = stream()
    recorded = joined_windows(declared, messages(parts), limits=LIMITS)
    assert recorded.left_out == {}
    assert [joined.n for joined in recorded.windows] == [30, 30, 30]
    faults = [
        sorted(p.values["fault"] for p in parts if p.ts // LENGTH_S == w and "fault" in p.values)
        for w in range(3)
    ]
    told = [sorted(FAULTS[code] for code in joined.cells[:, 4]) for joined in recorded.windows]
    assert told == faults
    backwards = joined_windows(declared, messages(parts)[::-1], limits=LIMITS)
    for one, other in zip(recorded.windows, backwards.windows, strict=True):
        assert (one.cells == other.cells).all()


def test_vehicles_may_be_named_by_payloads() -> None:
    parts = sent()
    sources = fleet().model_dump(mode="json", exclude_none=True)["sources"]
    named = [dict(each, topic=f"feeds/{each['name']}", vehicle="id") for each in sources]
    told = [
        RecordedMessage(
            f"feeds/{part.source}",
            json.dumps({"ts": part.ts, "id": part.vehicle, **part.values}).encode(),
        )
        for part in parts
    ]
    recorded = joined_windows(
        stream(sources=named),
        [*told, RecordedMessage("feeds/profile", b'{"ts": 1}')],
        limits=LIMITS,
    )
    by_topic = joined_windows(stream(), messages(parts), limits=LIMITS)
    assert recorded.left_out == {"invalid_no_device": 1}
    for one, other in zip(recorded.windows, by_topic.windows, strict=True):
        assert (one.cells == other.cells).all()


def test_what_is_in_no_window_is_counted_with_its_reason() -> None:
    parts = messages(sent())
    first = parts[0]
    needed = [dict(source, needed=True) for source in fleet().model_dump(mode="json")["sources"]]
    recorded = joined_windows(
        stream(sources=needed),
        [
            *parts[1:],
            parts[5],
            RecordedMessage("elsewhere/1", b"{}"),
            RecordedMessage(first.topic, b"no JSON"),
            RecordedMessage(first.topic, b"[" * 300_000),
        ],
        limits=LIMITS,
    )
    assert recorded.left_out == {
        "duplicate": 1,
        "invalid_malformed": 1,
        "invalid_too_large": 1,
        "no_topic_of_the_stream": 1,
        "suppressed_incomplete": 1,
    }


def test_every_window_is_tried_and_the_last_ones_judge() -> None:
    recorded = joined_windows(stream(), messages(sent(n_windows=5)), limits=LIMITS)
    made = bench_of_stream(stream(), recorded, Trained(target="fault"), seed=0)
    assert (len(made.windows), len(made.test_windows), made.n) == (4, 1, 120)
    (trial,) = try_row(made, Row("kld", 5, 2, (), (2,)), max_deletion=1.0)
    assert trial.reached_k >= 5
    assert trial.reached_l >= 2
    assert trial.score is not None
    alone = bench_of_stream(stream(), recorded, Trained(), seed=0)
    assert (len(alone.windows), alone.test_windows) == (5, ())


def test_of_what_was_heard_for_a_while_the_windows_that_were_cut_off_are_left_out() -> None:
    recorded = joined_windows(stream(), messages(sent(n_windows=4)), limits=LIMITS)
    inner = recorded.without_ends()
    assert (inner.number, len(inner.windows)) == (recorded.number[1:-1], 2)
    assert inner.left_out == {"records_of_windows_not_heard_whole": 60}
    assert inner.without_ends() is inner


@pytest.mark.parametrize(
    ("model", "diverse"), [("kd", 1), ("kld", 2), ("kaca", 1), ("cells", 1), ("cells", 2)]
)
def test_classes_are_those_that_the_gateway_publishes(model: str, diverse: int) -> None:
    d = 2 if model == "kld" else 1
    declared = stream(
        model=model,
        method="auto",
        promise={"k": 5, "d": d, "l": diverse},
        cumulative="report",  # windows are tried one by one
    )
    (joined,) = joined_windows(declared, messages(sent(n_windows=1)), limits=LIMITS).windows
    published = anonymize(
        declared,
        WINDOW_MODELS[model](declared),
        joined,
        {},
        span=(0.0, LENGTH_S),
        first_message=1,
        seed=0,
        time_left=lambda: 0.0,
        clock=lambda: 0.0,
    )
    recorded = RecordedWindows((0,), (joined,), {})
    made = bench_of_stream(stream(), recorded, Trained(), seed=0)
    (trial,) = try_row(made, Row(model, 5, d, (), (diverse,)), max_deletion=1.0)
    assert trial.n_classes == len(published.messages)
    assert trial.gcp == pytest.approx(published.summary["gcp"])
    assert trial.reached_k == published.summary["k"]


def test_cells_that_learn_a_measure_are_those_that_the_gateway_publishes() -> None:
    fuel = {"name": "fuel", "role": "measure", "lo": 0, "hi": 500}
    sources = [*FLEET["sources"][:2], {"name": "telemetry", "tells": ["speed", "fault", "fuel"]}]
    changes = {
        "attributes": [*FLEET["attributes"], fuel],
        "sources": sources,
        "model": "cells",
        "method": "auto",
        "promise": {"k": 4, "l": 2},
        "cumulative": "report",
    }
    parts = [
        replace(part, values=part.values | {"fuel": 9 * int(part.values["speed"])})
        if "speed" in part.values
        else part
        for part in sent(n_vehicles=80, n_windows=1)
    ]
    seen = {}
    for target in ("fuel", ""):
        declared = stream(**changes, target=target)
        recorded = joined_windows(declared, messages(parts), limits=LIMITS)
        published = anonymize(
            declared,
            WINDOW_MODELS["cells"](declared),
            recorded.windows[0],
            {},
            span=(0.0, LENGTH_S),
            first_message=1,
            seed=0,
            time_left=lambda: 0.0,
            clock=lambda: 0.0,
        )
        made = bench_of_stream(declared, recorded, Trained(), seed=0)
        (trial,) = try_row(made, Row("cells", 4, 1, (), (2,)), max_deletion=1.0)
        assert trial.n_classes == len(published.messages)
        assert trial.gcp == pytest.approx(published.summary["gcp"])
        seen[target] = trial.gcp
    assert seen["fuel"] != seen[""]
    with pytest.raises(SettingsError, match="more than 100 values"):
        bench_of_stream(declared, recorded, Trained(target="fuel"), seed=0)


def test_a_stream_of_kaca_is_tried_without_a_quasi_identifier_too() -> None:
    recorded = joined_windows(stream(), messages(sent()), limits=LIMITS)
    made = bench_of_stream(stream(), recorded, Trained(), seed=0)
    (trial,) = try_row(made, Row("kaca", 5, 1, ("age", "type"), (1,)), max_deletion=1.0)
    assert trial.lossless
    assert trial.gcp >= 0.5


@pytest.mark.parametrize("target", ["none", "age"])
def test_a_target_that_is_none_is_refused(target: str) -> None:
    recorded = joined_windows(stream(), messages(sent()), limits=LIMITS)
    with pytest.raises(SettingsError, match="target"):
        bench_of_stream(stream(), recorded, Trained(target=target), seed=0)


def test_a_stream_of_which_nothing_came_is_refused() -> None:
    with pytest.raises(InputError, match="no record"):
        bench_of_stream(stream(), joined_windows(stream(), [], limits=LIMITS), Trained(), seed=0)


def test_messages_are_read_as_objects_as_text_and_from_a_table(tmp_path: Path) -> None:
    parts = messages(sent(n_vehicles=2, n_windows=1))
    objects, texts, table = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.csv"))
    said = [{"topic": each.topic, "payload": json.loads(each.payload)} for each in parts]
    objects.write_text("".join(f"{json.dumps(each)}\n\n" for each in said))
    quoted = [{"topic": each.topic, "payload": each.payload.decode()} for each in parts]
    texts.write_text("".join(json.dumps(each) + "\n" for each in quoted))
    with table.open("w", newline="") as file:
        written = csv.DictWriter(file, ["topic", "payload"])
        written.writeheader()
        written.writerows(quoted)
    assert list(read_messages(texts)) == list(read_messages(table)) == parts
    read = [(each.topic, json.loads(each.payload)) for each in read_messages(objects)]
    assert read == [(each["topic"], each["payload"]) for each in said]


@pytest.mark.parametrize("line", ["no JSON", '{"topic": "x"}', '{"topic": 1, "payload": {}}'])
def test_a_line_that_is_no_message_is_named_by_its_number_and_not_quoted(
    line: str, tmp_path: Path
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"topic": "x", "payload": {}}\n' + line + "\n")
    with pytest.raises(InputError, match="line 2: must be JSON") as raised:
        list(read_messages(path))
    assert line not in str(raised.value)


async def test_a_tap_hears_what_the_topics_carry_and_nothing_that_was_kept(
    broker: LocalBroker,
) -> None:
    settings = BrokerSettings(url=broker.url)
    parts = sent(n_vehicles=4, n_windows=1)
    link = MqttLink(settings, client_id="fleet", deliver=lambda _: None)
    running = asyncio.create_task(link.run())
    await link.until_connected()
    old = Outgoing("records/profile/old", b"{}", retain=True)
    await link.publish([old], qos=1, timeout_s=DEADLINE_S)
    outgoing = [Outgoing(part.topic, part.payload) for part in parts]
    for seconds in (2, 8, 32):  # a busy machine may stand still while it listens
        hearing = asyncio.create_task(tap(settings, stream(), seconds=seconds))
        while not hearing.done():  # the tap says to nobody that it listens
            await link.publish(outgoing, qos=1, timeout_s=DEADLINE_S)
            await asyncio.wait([hearing], timeout=0.05)
        heard = hearing.result()
        if len(heard) >= 2 * len(parts):
            break
    await link.close()
    await running
    assert {each.topic for each in heard} == {part.topic for part in parts}
    recorded = joined_windows(stream(), heard, limits=LIMITS)
    assert [joined.n for joined in recorded.windows] == [4]
    assert np.unique(recorded.windows[0].person).size == 4


async def test_a_tap_without_a_broker_says_so() -> None:
    with pytest.raises(TransportError, match="cannot be reached"):
        await tap(
            QuickBrokerSettings(url="mqtt://127.0.0.1:9", longest_wait_s=3.0),
            stream(),
            seconds=1,
            patience_s=0.3,
        )
