"""Metrics as they are collected."""

from prometheus_client import CollectorRegistry

from anonymizer.observe.metrics import FlowCollector, new_registry
from tests.pipeline.positions.support import NOW, Rig, delivery


def busy_rig() -> Rig:
    """Return a rig that has published, suppressed and refused, and holds something everywhere."""
    rig = Rig()
    rig.publish(*(delivery(f"secret-{i}", 12, NOW) for i in range(3)))
    rig.publish(delivery("secret-4", 0, NOW), delivery("", 12, NOW), delivery("secret-1", 12, NOW))
    rig.put(delivery("secret-1", 12, NOW + 1))
    rig.tick(now=NOW + 1)
    rig.put(delivery("secret-2", 12, NOW + 2), delivery("secret-3", 12, NOW + 2))
    return rig


def registry_of(rig: Rig, *, connected: bool = True) -> CollectorRegistry:
    collector = FlowCollector(
        rig.flow, rig.inbox, n_queued_ticks=lambda: 1, connected=lambda: connected
    )
    return new_registry(collector)
