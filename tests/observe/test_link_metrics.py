from prometheus_client import generate_latest

from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.metrics import new_registry
from anonymizer.pipeline.ports import LinkCounts, Loss


def test_every_link_and_every_cause_has_a_series_from_the_start() -> None:
    counts = LinkCounts(n_connections=3, n_sessions_lost=1, n_too_large=4)
    counts.lost[Loss.TAKEN_OVER] += 2
    registry = new_registry(LinkCollector({"positions": LinkCounts(), "records": counts}))
    lines = generate_latest(registry).decode().splitlines()
    for name, link, cause, n in (
        ("connections", "positions", "", 0),
        ("connections", "records", "", 3),
        ("sessions_lost", "records", "", 1),
        ("too_large", "records", "", 4),
        ("connections_lost", "records", 'cause="taken_over",', 2),
        ("connections_lost", "records", 'cause="unacknowledged",', 0),
        ("connections_lost", "positions", 'cause="taken_over",', 0),
        ("connections_lost", "positions", 'cause="other",', 0),
    ):
        assert f'anonymizer_broker_{name}_total{{{cause}link="{link}"}} {n}.0' in lines


def test_drops_of_the_broker_are_exported_once_it_has_told_them() -> None:
    told: list[int | None] = [None, 0, 7]
    registry = new_registry(LinkCollector({}, drops=lambda: told.pop(0)))
    seen = [registry.get_sample_value("anonymizer_broker_dropped_total") for _ in range(3)]
    assert seen == [None, 0.0, 7.0]
