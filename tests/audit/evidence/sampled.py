"""A gateway that samples its own traffic for attacks."""

from typing import Any

import numpy as np

from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings
from tests.pipeline.positions.support import NOW, Rig, delivery, flow_settings

N, TICKS = 12, 40
SESSION: dict[str, Any] = {
    "region": {"mode": "session", "min_nodes": 2},
    "session": {"beat_s": 0, "epoch_s": 20},
}
WATCH: dict[str, Any] = {"watch": {"evidence_s": 60, "reports": "evidence"}}


def traffic_of(**tables: dict[str, Any]) -> tuple[SampledTraffic, Settings, list[dict[str, Any]]]:
    """Return a sample of devices that walk over the grid, and the messages about them."""
    rig = Rig(**(WATCH | tables))
    walk = np.random.default_rng(0)
    node, messages = walk.integers(0, 25, N), []
    for t in range(TICKS):
        moves = walk.random(N) < 0.5
        node[moves] = walk.integers(0, 25, int(moves.sum()))
        said = [delivery(f"d{i}", int(node[i]), NOW + t) for i in range(N)]
        messages += rig.publish(*said, now=NOW + t)
    assert rig.flow.sample is not None
    traffic = rig.flow.sample.traffic()
    assert traffic is not None
    return traffic, flow_settings(**WATCH, **tables), messages
