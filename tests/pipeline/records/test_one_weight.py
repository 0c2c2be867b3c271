"""A vehicle that reports often weighs as much as any other in everything that is published."""

import json
import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.pipeline.records.join import numbered
from anonymizer.pipeline.records.own_records import own_records
from tests.lanes import each_of_both
from tests.pipeline.records.made import FAULTS, LENGTH_S, Sent
from tests.pipeline.records.support import Rig
from tests.pipeline.records.tolls import MIDNIGHT_S, SECTIONS, TOLL, exits

N_WINDOWS, N_OTHERS, K = 6, 60, 10
ATTRIBUTES: list[dict[str, Any]] = [
    {"name": "speed", "lo": 0, "hi": 50, "step": 0.5},
    {"name": "age", "lo": 18, "hi": 90},
    {"name": "fault", "values": list(FAULTS), "role": "sensitive"},
    {"name": "load", "role": "measure", "lo": 0, "hi": 1000},
]
MODELS: dict[str, dict[str, Any]] = {
    "kd": {"promise": {"k": K, "d": 2}},
    "kld": {"promise": {"k": K, "d": 2, "l": 2}},
    "entropy": {"promise": {"k": K, "d": 2, "l": 2, "entropy_l": 2}, "model": "kld"},
    "kaca": {"promise": {"k": K, "l": 2}},
    "cells": {"promise": {"k": K, "l": 2}, "target": ""},
}


def world(seed: int, *, times: int, alike: bool) -> list[Sent]:
    """Yield windows of a fleet in which one vehicle reports `times` times, each time `brakes`."""
    rng = np.random.default_rng(seed)
    sent = []
    for window in range(N_WINDOWS):
        for v in range(N_OTHERS + 1):
            often = v == N_OTHERS
            speed, age = float(rng.integers(0, 101)) / 2, int(rng.integers(18, 91))
            for i in range(times if often else 1 + int(rng.integers(3))):
                values = {
                    "speed": speed if alike else float(rng.integers(0, 101)) / 2,
                    "age": age,
                    "fault": "brakes" if often else FAULTS[int(rng.integers(4))],
                    "load": 900 if often else int(rng.integers(0, 100)),
                }
                ts = window * LENGTH_S + round(0.1 + i * 0.5 + v * 0.001, 3)
                sent.append(Sent("often" if often else f"v{v}", "telemetry", ts, values))
    return sent


def published(name: str, sent: Sequence[Sent]) -> list[dict[str, Any]]:
    """Return the classes of all windows of a stream of records."""
    changes = {"model": name} | MODELS[name]
    source = {"name": "telemetry", "tells": [a["name"] for a in ATTRIBUTES]}
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(
            Path(folder), sources=[source], attributes=ATTRIBUTES, per="record",
            method="auto", budget_s=1.0, **changes,
        )  # fmt: skip
        rig.take(*sent)
        rig.close(silent=True)
        accounts = rig.accounts()
        found = [json.loads(payload) for payload in rig.publish()]
        n_vehicles = sum(message["k"] for message in found)
        assert accounts["suppressed/repeated"] == len(sent) - N_WINDOWS * (N_OTHERS + 1)
        assert n_vehicles + accounts.get("suppressed/no_class", 0) == N_WINDOWS * (N_OTHERS + 1)
        rig.store.close()
    return found


@pytest.mark.parametrize(("name", "alike"), each_of_both(MODELS, [True, False]))
def test_every_list_count_and_sum_has_one_record_of_each_vehicle(name: str, *, alike: bool) -> None:
    found = published(name, world(1, times=90, alike=alike))
    assert len({message["window"][0] for message in found}) == N_WINDOWS
    for message in found:
        faults = message["sensitive"]["fault"]
        assert message["count"] == message["k"] == len(faults) >= K
        load = message["measures"]["load"]
        assert load is None or load["n"] == message["k"]
        assert message.get("own", message["k"]) == message["k"]
    assert sum(m["k"] for m in found) <= N_WINDOWS * (N_OTHERS + 1)
    told = [m for m in found if m["measures"]["load"]]
    assert all(m["measures"]["load"]["sum"] < 900 + 100 * m["k"] for m in told)


def test_the_entropy_of_what_is_published_is_that_of_the_promise() -> None:
    found = published("entropy", world(2, times=90, alike=True))
    least = min(entropy(message["sensitive"]["fault"]) for message in found)
    assert least >= math.log(2) - 1e-9


def entropy(values: Sequence[object]) -> float:
    n = len(values)
    return -sum(c / n * math.log(c / n) for c in Counter(values).values())


@pytest.mark.parametrize(("name", "alike"), each_of_both(MODELS, [True, False]))
def test_who_reports_often_is_neither_found_nor_read_better_than_who_reports_once(
    name: str, *, alike: bool
) -> None:
    """The adversary looks for the class with most records, and for what is most frequent there."""
    read = {}
    for times in (1, 90):
        found = [m for s in (3, 4, 5) for m in published(name, world(s, times=times, alike=alike))]
        excess = [message["count"] - message["k"] for message in found]
        assert max(excess) == min(excess) == 0  # no class stands out
        most = [Counter(m["sensitive"]["fault"]).most_common(1)[0] for m in found]
        read[times] = float(np.mean([value == "brakes" for value, _ in most]))
    assert read[90] <= read[1] + 0.15  # four values: chance is .25


def test_the_shuttle_of_a_toll_stream_is_not_found_by_its_exits(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **TOLL)
    once = list(exits(n=120, n_trucks=10_000, seed=8))
    shuttle = [
        type(once[0])("shuttle", SECTIONS[1], once[0].at.replace(hour=h), 77_700)
        for h in range(6, 22, 2)
    ]
    sent = [*once, *shuttle]
    rig.take_raw([each.delivery(i) for i, each in enumerate(sent, 1)])
    rig.close(silent=True)
    found = rig.classes()
    assert {m["window"][0] for m in found} == {MIDNIGHT_S}
    assert all(m["count"] == m["k"] == m["truck_count"] == m["own"] for m in found)
    assert rig.accounts()["suppressed/repeated"] == 7 + len(once) - len({e.truck for e in once})
    near = [m for m in found if m["avg_toll"] is not None and abs(m["avg_toll"] / 777 - 1) < 0.3]
    assert not near  # its toll is no mean
    rig.store.close()


keys = st.lists(st.integers(0, 6), min_size=1, max_size=30)


@settings(max_examples=200)
@given(keys, st.integers(0, 2**32 - 1), st.randoms())
def test_own_records_are_one_of_each_vehicle_whatever_the_others_send(
    vehicles: list[int],
    seed: int,
    random: Any,  # noqa: ANN401  of hypothesis
) -> None:
    names = [digest(v) + bytes([i]) for i, v in enumerate(vehicles)]
    own = drawn_of(names, seed)
    assert Counter(n[:16] for n, is_own in zip(names, own, strict=True) if is_own) == dict.fromkeys(
        {n[:16] for n in names}, 1
    )
    kept = [i for i in range(len(names)) if vehicles[i] == vehicles[0] or random.random() < 0.5]
    fewer = drawn_of([names[i] for i in kept], seed)
    drawn = [names[i] for i in range(len(names)) if own[i] and vehicles[i] == vehicles[0]]
    again = [names[i] for i, o in zip(kept, fewer, strict=True) if o and vehicles[i] == vehicles[0]]
    assert drawn == again  # nobody else's records draw anew


def test_each_record_of_a_vehicle_is_drawn_equally_often() -> None:
    names = [digest(7) + bytes([i]) for i in range(4)]
    drawn = np.array([np.flatnonzero(drawn_of(names, seed))[0] for seed in range(4000)])
    assert np.abs(np.bincount(drawn, minlength=4) / 4000 - 0.25).max() < 0.03


def test_a_vehicle_cannot_choose_its_own_record_by_the_time_it_states() -> None:
    drawn = {
        tuple(drawn_of([digest(7) + bytes([first + i]) for i in range(4)], 5))
        for first in range(50)
    }
    assert len(drawn) == 1


def drawn_of(names: list[bytes], seed: int) -> list[bool]:
    drawn: list[bool] = own_records(numbered([n[:16] for n in names]), names, seed).tolist()
    return drawn


def digest(vehicle: int) -> bytes:
    return bytes([vehicle]) * 7 + vehicle.to_bytes(9, "big")
