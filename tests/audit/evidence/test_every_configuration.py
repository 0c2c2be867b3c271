"""The watch runs on whatever may be set, on none, one and many devices, and always reports."""

import random
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from anonymizer.audit.attack import Subject
from anonymizer.audit.evidence.live_sample import attacked, sampled
from anonymizer.audit.registry import attacks_on
from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings
from tests.audit.evidence.sampled import WATCH
from tests.lanes import each_of_both
from tests.pipeline.positions.support import NETWORK, NOW, Rig, delivery, flow_settings

TABLES = ("adka", "counts", "presence", "region", "session", "trips", "trips_out")
"""What decides what is published of positions."""
SHORT, LONG = 3, 80
JOINT: dict[str, Any] = {
    "trips_out": {"every_s": 60.0},
    "counts": {"privacy": "k", "every_s": 10.0},
}


def choices(schema: dict[str, Any], whole: dict[str, Any]) -> list[Any]:
    """Return some values of a setting, by its JSON Schema."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    found: list[Any] = list(schema.get("enum", [schema["const"]] if "const" in schema else []))
    for each in schema.get("anyOf", []):
        found += choices(each, whole)
    if schema.get("type") == "boolean":
        found += [False, True]
    if schema.get("type") in {"integer", "number"}:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        default = schema.get("default") or low or 1
        some = [low, default, 2 * default, default / 2, low + 1, 60]
        found += [int(each) if schema["type"] == "integer" else float(each) for each in some]
    return found


def configuration(seed: int) -> dict[str, Any]:
    """Return settings that differ from the defaults in some values of each table."""
    rng, whole = random.Random(seed), Settings.model_json_schema()  # noqa: S311  no secret
    tables: dict[str, Any] = {}
    for name in TABLES:
        of = whole["$defs"][whole["properties"][name]["$ref"].rpartition("/")[2]]["properties"]
        for key, schema in rng.sample(sorted(of.items()), len(of)):
            values = choices(schema, whole)
            if not values or rng.random() < 0.5:
                continue
            tried = {**tables, name: {**tables.get(name, {}), key: rng.choice(values)}}
            try:
                if flow_settings(**WATCH, **tried).counts.has_noise:
                    continue  # it keeps a budget in a file
                Rig(**WATCH, **tried)  # some fit no network of this size
            except (ValidationError, ValueError, SettingsError):
                continue
            tables = tried
    return tables


def sample_of(tables: dict[str, Any], n_devices: int, n_ticks: int) -> SampledTraffic:
    """Return what devices on a walk leave, a report every two seconds; none: an empty sample."""
    rig = Rig(**WATCH, **tables)
    walk = np.random.default_rng(0)
    node = walk.integers(0, 25, n_devices)
    for t in range(n_ticks):
        moves = walk.random(n_devices) < 0.5
        node[moves] = walk.integers(0, 25, int(moves.sum()))
        now = NOW + 2 * t
        rig.publish(*(delivery(f"d{i}", int(v), now) for i, v in enumerate(node)), now=now)
    assert rig.flow.sample is not None
    return rig.flow.sample.traffic() or SampledTraffic([], [])


def check(tables: dict[str, Any], n_devices: int, n_ticks: int) -> None:
    traffic = sample_of(tables, n_devices, n_ticks)
    report = attacked(traffic, NETWORK, flow_settings(**WATCH, **tables))
    assert report.failed == ()
    if not traffic.released:
        told = ", ".join(report.left_out)
        assert all(each.name in told for each in attacks_on(Subject.POSITIONS))
        assert sampled(traffic).released.observed.n_records == 0
    else:
        assert report.findings


@pytest.mark.parametrize(("n_devices", "n_ticks"), each_of_both([0, 1, 5, 30], [SHORT, LONG]))
def test_trips_and_counts_are_attacked_also_without_a_trip(n_devices: int, n_ticks: int) -> None:
    for region in ("adka", "session"):
        check({**JOINT, "region": {"mode": region, "min_nodes": 2}}, n_devices, n_ticks)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_devices", [0, 1, 12])
def test_some_configurations_report(seed: int, n_devices: int) -> None:
    check(configuration(seed), n_devices, SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("n_ticks", [SHORT, LONG])
@pytest.mark.parametrize("n_devices", [0, 1, 5, 200])
@pytest.mark.parametrize("seed", range(30))
def test_every_configuration_reports(seed: int, n_devices: int, n_ticks: int) -> None:
    check(configuration(seed), n_devices, n_ticks)
