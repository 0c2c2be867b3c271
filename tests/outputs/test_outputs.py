"""What each output makes of its own of what several sources state, and what a new one needs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer import cluster
from anonymizer.app.contract import asyncapi, channels
from anonymizer.audit.evidence.outputs import kept, outputs_of
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.arrays import IntArray
from anonymizer.errors import GuaranteeError
from anonymizer.networks import load_network
from anonymizer.outputs import counts, registry, streets
from anonymizer.outputs.cloud_events import EventHeaders
from anonymizer.outputs.counts import CountsOutput
from anonymizer.outputs.counts.private_counts import BUDGET
from anonymizer.outputs.output import (
    OVERLOAD,
    PUBLISHED,
    UNVERIFIED,
    HeldFile,
    Publisher,
    SeenTick,
    StatedWindow,
)
from anonymizer.outputs.streets import StreetsOutput
from anonymizer.outputs.trips import TripsOutput
from anonymizer.pipeline.positions.tick import flow
from anonymizer.settings import Settings
from tests.cluster.positions.cluster import Cluster, World
from tests.cluster.positions.test_stage_outputs import (
    SECRET,
    SETTINGS,
    some_passages,
    some_trips,
)
from tests.outputs.occupancy import TOPIC
from tests.outputs.private import NoNoise
from tests.outputs.short_copies import TOPIC as SIZES
from tests.pipeline.positions.support import Rig, delivery

NETWORK = load_network("grid:12x12")
PRIVATE: dict[str, Any] = {
    "privacy": "dp",
    "every_s": 10,
    "period_s": 40,
    "cells": 16,
    "trip_areas": 2,
    "device_intervals": 2,
}


def body_of(made: Any) -> dict[str, Any]:  # noqa: ANN401  what a publisher makes
    [one] = made
    found: dict[str, Any] = json.loads(one.content if isinstance(one, HeldFile) else one.payload)
    return found


@pytest.mark.parametrize(("one", "other", "told"), [(5, 3, 5), (3, 5, 5), (2, 2, 3)])
def test_trips_have_the_largest_k_that_was_promised(one: int, other: int, told: int) -> None:
    """A source was started again with a smaller k, after the trips had been made."""
    publisher = TripsOutput(SETTINGS, NETWORK).publisher(secret=SECRET)
    contents = [some_trips(i, 60)._replace(k=k) for i, k in enumerate((one, other), 1)]
    assert body_of(publisher.publish(7, contents))["k"] == told


@pytest.mark.parametrize(("one", "other"), [(9, 4), (4, 9), (9, 9)])
def test_streets_have_the_largest_k_that_was_promised(one: int, other: int) -> None:
    publisher = StreetsOutput(SETTINGS, NETWORK).publisher(secret=SECRET)
    contents = [some_passages(i, 60)._replace(k=k) for i, k in enumerate((one, other), 1)]
    rows = body_of(publisher.publish(7, contents))["features"]
    assert {row["properties"]["privacy"] for row in rows} == {"k=9"}
    assert min(row["properties"]["devices_low"] for row in rows) >= 9


def test_a_device_that_two_sources_state_is_one() -> None:
    output, some = StreetsOutput(SETTINGS, NETWORK), some_passages(1, 9)
    once, twice = (
        [
            [row["properties"][f"devices_{end}"] for end in ("low", "high")]
            for row in body_of(output.publisher(secret=SECRET).publish(7, contents))["features"]
        ]
        for contents in ([some], [some, some])
    )
    assert once == twice
    assert len(once) > 1


def test_trips_that_were_stated_in_other_cells_are_left_out_and_counted() -> None:
    """All were started again with another k, so with other cells of the same network."""
    changed = SETTINGS.counts.model_copy(update={"k": 12})
    again = TripsOutput(SETTINGS.model_copy(update={"counts": changed}), NETWORK)
    publisher = again.publisher(secret=SECRET)
    assert publisher.publish(7, [some_trips(1, 9)]) == ()
    assert sum(publisher.n_windows.values()) == 1
    assert publisher.n_windows[PUBLISHED] == 0


def test_an_hour_that_fails_the_check_is_counted_and_the_next_one_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> bytes:
        raise GuaranteeError("about few devices")

    output = StreetsOutput(SETTINGS, NETWORK)
    publisher = output.publisher(secret=SECRET)
    monkeypatch.setattr(streets, "safe_hours", fails)
    assert publisher.publish(7, [some_passages(1, 9)]) == ()
    monkeypatch.undo()
    after = output.publisher(secret=SECRET)
    after.restore(unpack(pack(publisher.state())))
    assert after.publish(8, [some_passages(1, 9, hour=8)])
    assert after.n_windows == Counter({UNVERIFIED: 1, PUBLISHED: 1})


def private(monkeypatch: pytest.MonkeyPatch, **table: Any) -> Publisher:  # noqa: ANN401  settings of any kind
    """Return a publisher that keeps its budget in its state, without noise."""
    monkeypatch.setattr(counts, "noise_of", lambda _: NoNoise())
    settings = Settings.model_validate({"counts": PRIVATE | table})
    return CountsOutput(settings, NETWORK).publisher(secret=SECRET)


def numbers(*n: int) -> IntArray:
    """Return how many devices are in the first cells; none: there are too many to remember."""
    found = np.zeros(16 + 4, np.int64)
    found[: len(n)] = n
    return found if n else np.zeros(0, np.int64)


def test_private_counts_begin_with_the_period_after_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher = private(monkeypatch)
    for interval in (5, 6, 7):  # nobody knows what was published before in this period
        body = body_of(publisher.publish(interval, [numbers(1), numbers(2)]))
        assert (body["suppressed"], "devices" in body) == (BUDGET, False)
    body = body_of(publisher.publish(8, [numbers(1, 5), numbers(2)]))
    assert body["devices"][:3] == [3, 5, 0]
    assert publisher.n_windows == Counter({BUDGET: 3, PUBLISHED: 1})


def test_private_counts_are_charged_once_whatever_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, spent = private(monkeypatch), []
    for interval in range(5, 16):
        body = body_of(publisher.publish(interval, [numbers(1), numbers(2)]))
        spent.append((body["privacy"]["epsilon_spent"], body.get("suppressed")))
        after = private(monkeypatch)
        after.restore(unpack(pack(publisher.state())))
        publisher = after
    assert [each for each, _ in spent[3:7]] == [0.01, 0.02, 0.02, 0.02]
    assert {why for _, why in spent[3:]} == {None}
    other = private(monkeypatch, epsilon=2.0)
    publisher.publish(16, [numbers(1), numbers(2)])
    other.restore(unpack(pack(publisher.state())))
    body = body_of(other.publish(17, [numbers(1), numbers(2)]))
    assert body["suppressed"] == BUDGET, "made for another budget"
    assert "suppressed" not in body_of(other.publish(20, [numbers(1), numbers(2)]))


def test_a_source_with_too_many_devices_ends_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = private(monkeypatch)
    publisher.publish(7, [numbers(1), numbers(1)])
    assert body_of(publisher.publish(8, [numbers(1), numbers()]))["suppressed"] == OVERLOAD
    assert "devices" in body_of(publisher.publish(9, [numbers(1), numbers(1)]))


def test_what_is_stated_and_seen_shows_nothing_of_a_device() -> None:
    content, passages = some_trips(1, 3), some_passages(1, 3)
    assert repr(content) == "StatedTrips(...)"
    assert repr(passages) == "StatedPassages(...)"
    assert repr(StatedWindow(7, content)) == "StatedWindow(...)"
    located: Any = ["a place"]
    assert "place" not in repr(SeenTick(located, None, 0.0))


# A new output is one module, and a line of the registry.


@pytest.fixture
def occupied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OUTPUTS, "tests.outputs.occupancy", lambda _: True)


@pytest.mark.usefixtures("occupied")
def test_a_new_output_is_in_the_contract_the_promises_the_metrics_and_the_flow() -> None:
    settings = Settings.model_validate({"output": {"forms": ["cloudevents"]}})
    assert TOPIC in {channel.address for channel in channels(settings)}
    assert "Occupancy" in json.dumps(asyncapi(settings))
    assert EventHeaders(settings).kind_of[TOPIC] == "Occupancy"
    assert f"`{TOPIC}`" in {each.where for each in outputs_of(settings)}
    assert kept(settings)["occupancy"] == "in memory, for an hour"
    rig = Rig(counts={"k": 2})
    told = [
        message
        for second in range(10)
        for message in rig.publish(
            *(delivery(f"d{i}", i % 25) for i in range(30)), now=1_800_000_000.0 + second
        )
        if "devices" in message
    ]
    assert [sum(each["devices"]) for each in told] == [30, 30]
    [figure] = rig.outputs.figures()
    assert (figure.name, rig.outputs.figures()[figure]) == ("occupancy_hours", {"": 2})


@pytest.mark.usefixtures("occupied")
def test_a_new_output_is_that_of_one_process_in_a_cluster_without_a_further_line() -> None:
    world = World("session", n_ticks=12, seed=3)
    assert any(b'"devices"' in payload for payload in world.expected)
    stages = Cluster(world)
    stages.run([])
    assert Counter(stages.published) == world.expected


# New copies are one module, and a line of the registry.


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.COPIES, "tests.outputs.short_copies", lambda _: True)


@pytest.mark.usefixtures("sized")
def test_new_copies_are_in_the_contract_the_promises_and_the_flow() -> None:
    assert SIZES in {channel.address for channel in channels(Settings())}
    assert any(f"`{SIZES}`" in each.where for each in outputs_of(Settings()))
    told = Rig().publish(*(delivery(f"d{i}", i % 25) for i in range(30)))
    sizes = Counter(each["n"] for each in told if "n" in each)
    assert sizes == Counter(len(each["pseudonyms"]) for each in told if "pseudonyms" in each)
    assert sizes


@pytest.mark.usefixtures("sized")
def test_new_copies_are_those_of_one_process_in_a_cluster_without_a_further_line() -> None:
    world = World("session", n_ticks=12, seed=3)
    assert any(b'{"n":' in payload for payload in world.expected)
    stages = Cluster(world)
    stages.run([])
    assert Counter(stages.published) == world.expected


def test_neither_flow_nor_stage_knows_an_output_or_a_copy_by_name() -> None:
    modules = [*registry.OUTPUTS, *registry.COPIES]
    words = [f"outputs.{module.rpartition('.')[2]}" for module in modules]
    words += ["trips_out", "streets_s", "counts.enabled", "echo", "ngsi_ld"]
    files = [*Path(cluster.__path__[0]).rglob("*.py"), Path(flow.__file__)]
    for path in files:
        found = [word for word in words if word in path.read_text()]
        assert not found, path.name
