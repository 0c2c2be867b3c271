"""Workers started with settings under which stored states mean something else stand still."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymizer.cluster.resident import Input, Resident, StageEvents, StandstillError
from anonymizer.cluster.topics import Kind
from anonymizer.cluster.worker import written_with
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.cluster.residents import Inputs, said
from tests.cluster.stages import Sums

NETWORK = load_network("grid:12x12")
SECRET, OTHER_SECRET = bytes(range(1, 33)), bytes(range(32))
READINGS = [{"name": name, "lo": 0.0, "hi": 9.0} for name in ("speed", "load")]
GIVEN: dict[str, Any] = {
    "counts": {"privacy": "k", "every_s": 60, "streets_s": 3600, "cells": 16},
    "trips_out": {"every_s": 600},
    "region": {"districts": 2, "min_nodes": 5},
    "readings": READINGS,
}
HARMLESS: dict[str, Any] = {
    "counts": {"k": 7},
    "region": {"k_extra": 2},
    "presence": {"ttl_s": 90},
    "adka": {"k_floor": 7},
}


def settings(**changed: dict[str, Any]) -> Settings:
    tables = {
        name: {**GIVEN.get(name, {}), **changed.get(name, {})} if name != "readings" else READINGS
        for name in GIVEN.keys() | changed.keys()
    }
    return Settings.model_validate(tables)


def settled(
    kind: Kind, given: Settings, network: RoadNetwork = NETWORK, secret: bytes = SECRET
) -> dict[str, Any]:
    return written_with(kind, given, network, secret)


def goes_on(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Let a stage take an input, and a worker with other settings the next one."""
    journal = Inputs()
    for offset, each in enumerate((then, now)):
        stage = Resident(Sums, journal, said, StageEvents(), written_with=each)
        stage.take(Input(offset, b"a", 0.0))
        stage.take(Input(offset, b"a", 1000.0))


def others() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a key, and what a worker writes down that has another value there."""
    yield "cluster.secret_file", settled("lane", settings(), secret=OTHER_SECRET)
    yield "network.source", settled("lane", settings(), load_network("grid:12x13"))
    loaded = replace(NETWORK, load_at=np.ones(NETWORK.n_nodes))
    yield "network.source", settled("lane", settings(), loaded)
    for table, name, value in (
        ("tick", "interval_s", 2.0),
        ("cluster", "n_parts", 3),
        ("region", "mode", "snapshot"),
        ("region", "min_nodes", 6),
        ("counts", "every_s", 30),
        ("counts", "cells", 32),
        ("counts", "streets_s", 1800),
        ("trips_out", "every_s", 300),
    ):
        yield f"{table}.{name}", settled("lane", settings(**{table: {name: value}}))
    drawn = replace(NETWORK, drivable=~NETWORK.drivable)
    yield "network.source", settled("lane", settings(), drawn)
    noisy = {"privacy": "dp", "streets_s": 0}
    yield "counts.privacy", settled("lane", settings(counts=noisy))
    areas = settled("lane", settings(counts=noisy | {"trip_areas": 4}))
    yield "counts.privacy, counts.trip_areas", areas
    yield "trips", settled("lane", settings(trips={"gap_s": 500}))
    turned = settings().model_copy(update={"readings": settings().readings[::-1]})
    yield "readings", settled("lane", turned)


@pytest.mark.parametrize(("key", "now"), [*others()])
def test_a_worker_with_another_setting_stands_still_and_names_it(
    key: str, now: dict[str, Any]
) -> None:
    with pytest.raises(StandstillError, match=rf"written with another {key}\. See .* Upgrade"):
        goes_on(settled("lane", settings()), now)


def test_a_worker_goes_on_with_settings_that_change_the_meaning_of_nothing_stored() -> None:
    then = settled("source", settings())
    goes_on(then, settled("source", settings(**HARMLESS)))
    goes_on(
        then,
        settled(
            "source",
            Settings.model_validate({"readings": READINGS, "region": GIVEN["region"]}),
        ),
    )  # nothing is counted any more
    other = load_network("grid:12x13")
    goes_on(settled("stream", settings()), settled("stream", settings(), other))


def test_the_secret_is_not_written_down() -> None:
    assert SECRET.hex() not in json.dumps(settled("lane", settings()))
