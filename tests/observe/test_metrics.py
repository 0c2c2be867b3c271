import math
from collections.abc import Iterable

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from anonymizer.observe.metrics import FlowCollector, public_registry
from anonymizer.pipeline.ledger import FINAL
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow_stats import GROUP, N_PARTS, STAGES, TICK
from tests.observe.collected import busy_rig, registry_of
from tests.pipeline.positions.support import NOW, Rig, delivery


def ours(families: Iterable[Metric]) -> dict[str, Metric]:
    return {family.name: family for family in families if family.name.startswith("anonymizer")}


def scraped(rig: Rig, *, connected: bool = True) -> dict[str, Metric]:
    text = generate_latest(registry_of(rig, connected=connected)).decode()
    return ours(text_families(text))


def value(metrics: dict[str, Metric], name: str) -> float:
    [sample] = metrics[name].samples
    return float(sample.value)


def test_the_exported_counts_are_those_of_the_flow() -> None:
    metrics = scraped(busy_rig())
    counted = {
        (s.labels["outcome"], s.labels["reason"]): s.value
        for s in metrics["anonymizer_positions"].samples
        if s.name == "anonymizer_positions_total" and s.value
    }
    assert counted == {
        ("published", ""): 4,
        ("duplicate", ""): 1,
        ("invalid", "no_device"): 1,
    }
    assert value(metrics, "anonymizer_received") == 9
    assert value(metrics, "anonymizer_held") == 3
    assert value(metrics, "anonymizer_messages_out") == 2
    assert value(metrics, "anonymizer_inbox_messages") == 2
    assert value(metrics, "anonymizer_devices_present") == 4
    assert value(metrics, "anonymizer_devices_on_graph") == 4
    assert value(metrics, "anonymizer_queued_ticks") == 1


def test_what_is_exported_adds_up_at_every_moment() -> None:
    assert value(scraped(Rig()), "anonymizer_accounting_imbalance") == 0
    metrics = scraped(busy_rig())
    settled = sum(s.value for s in metrics["anonymizer_positions"].samples)
    held = value(metrics, "anonymizer_held")
    assert value(metrics, "anonymizer_received") == settled + held
    assert value(metrics, "anonymizer_accounting_imbalance") == 0


def test_a_lost_position_shows_as_an_imbalance() -> None:
    rig = busy_rig()
    rig.inbox.take()
    assert value(scraped(rig), "anonymizer_accounting_imbalance") == 2


@pytest.mark.parametrize("connected", [True, False])
def test_the_connection_is_exported(*, connected: bool) -> None:
    assert value(scraped(Rig(), connected=connected), "anonymizer_broker_connected") == connected


def test_no_label_holds_anything_but_what_is_known_beforehand() -> None:
    outcomes, reasons = zip(*(outcome.label for outcome in FINAL), strict=True)
    allowed = {
        "outcome": set(outcomes),
        "reason": set(reasons),
        "stage": set(STAGES),
        "percentile": {"0", "1", "50"},
        "attribute": {"speed_mps"},
        "input": {"1"},
        "waited_for": {TICK, GROUP},
        "band": {"0-3", "4-9", "10+", "0+"},
        "part": {str(part) for part in range(N_PARTS)},
    }
    declared = [{"name": "speed_mps", "lo": 0, "hi": 50}]
    for family in [*scraped(busy_rig()).values(), *scraped(Rig(readings=declared)).values()]:
        for sample in family.samples:
            for label, text in sample.labels.items():
                assert label == "le" or text in allowed[label]


def test_the_operator_alone_reads_where_devices_are_dense() -> None:
    rig = Rig(adka={"density_steps": [2, 4], "k_values": [3, 2, 2]})
    rig.publish(*(delivery(f"d{i}", 12, NOW) for i in range(3)), delivery("d4", 0, NOW))
    metrics = scraped(rig)
    nodes, devices = (metrics[f"anonymizer_density_{of}"].samples for of in ("nodes", "devices"))
    density = rig.flow.mobile.engine.operator.density
    assert sum(s.value for s in nodes) == density.network.n_nodes
    assert sum(s.value for s in devices) == density.n_devices > 0
    assert {s.labels["band"] for s in nodes} == {"0-1", "2-3", "4+"}
    for band, lo, hi in (("0-1", 0, 1), ("2-3", 2, 3), ("4+", 4, 99)):
        held = (density.n_near >= lo) & (density.n_near <= hi)
        assert sum(s.value for s in nodes if s.labels["band"] == band) == held.sum()
    assert len({s.labels["part"] for s in nodes}) <= N_PARTS
    assert not any(
        family.samples for name, family in anybody_sees(rig).items() if "density" in name
    )


def anybody_sees(rig: Rig) -> dict[str, Metric]:
    """Return what is exported without a token."""
    collector = FlowCollector(
        rig.flow,
        rig.inbox,
        n_queued_ticks=int,
        connected=bool,
        figures=lambda: rig.flow.public_figures.shown,
    )
    return ours(text_families(generate_latest(public_registry(collector)).decode()))


@pytest.mark.parametrize(
    "payload",
    [
        delivery("d0", 12, NOW - 1).payload,
        b'{"lat": 10.0, "lon": 24.9}',
        b"?",
        delivery("d0", 12, NOW + 1).payload,
    ],
    ids=["late", "far from every road", "malformed", "published"],
)
def test_two_scrapes_do_not_show_that_one_device_has_reported(payload: bytes) -> None:
    rig = Rig(
        region={"mode": "snapshot", "min_nodes": 1}, readings=[{"name": "a", "lo": 0, "hi": 5}]
    )
    rig.publish(*(delivery(f"d{i}", 12, NOW) for i in range(12)))
    rig.publish(*(delivery(f"d{i}", 12, NOW + 0.5) for i in range(1, 9)), now=NOW + 1)
    exact, public = scraped(rig), anybody_sees(rig)
    rig.put(Delivery("positions/d0", payload, 0))
    output = rig.tick(now=NOW + 2)
    rig.settle(output, [True] * len(output.messages))
    assert scraped(rig) != exact
    seen = anybody_sees(rig)
    changed = {name for name in public if seen[name] != public[name]}
    # Every tick; and what everybody sees in a message: a group that holds k devices.
    of_ticks = {"anonymizer_ticks", "anonymizer_age_of_information_seconds"}
    of_groups = {f"anonymizer_{name}" for name in OF_GROUPS} if output.messages else set()
    assert changed <= of_ticks | of_groups


OF_GROUPS = (
    *("messages_out", "k_asked", "k_reached", "region_nodes", "region_metres"),
    "pseudonym_age_seconds",
)
"""What describes published groups."""


def test_no_device_and_no_coordinate_is_exported() -> None:
    text = generate_latest(registry_of(busy_rig())).decode()
    assert "secret" not in text
    assert "60.1" not in text


def test_histograms_are_cumulative_and_end_at_infinity() -> None:
    metrics = scraped(busy_rig())
    for name, n in (
        ("anonymizer_region_metres", 3),
        ("anonymizer_region_nodes", 3),
        ("anonymizer_k_asked", 3),
        ("anonymizer_k_reached", 3),
    ):
        samples = metrics[name].samples
        counts = [s.value for s in samples if s.name.endswith("_bucket")]
        edges = [float(s.labels["le"]) for s in samples if s.name.endswith("_bucket")]
        assert counts == sorted(counts)
        assert edges == sorted(set(edges))
        assert edges[-1] == math.inf
        assert counts[-1] == n
        assert [s.value for s in samples if s.name.endswith("_count")] == [n]
    stages = {s.labels["stage"] for s in metrics["anonymizer_stage_seconds"].samples}
    assert stages == set(STAGES)


def test_openmetrics_is_well_formed_too() -> None:
    text = exposition.generate_latest(registry_of(busy_rig())).decode()  # type: ignore[no-untyped-call]
    families = ours(openmetrics_families(text))  # type: ignore[no-untyped-call]
    assert families.keys() == scraped(busy_rig()).keys()


def test_the_process_is_watched_beside_the_flow() -> None:
    assert b"process_cpu_seconds_total" in generate_latest(registry_of(Rig()))
