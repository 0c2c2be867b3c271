"""The live flow over districts: accounts that add up, and messages that no order changes."""

import json
from itertools import count, islice
from random import Random

import numpy as np
import pytest

from anonymizer.domain.release import Release
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import ReadingSettings, zones_of
from tests import naive
from tests.algorithms.positions.cloaks.driving import traffic
from tests.pipeline.positions.support import NOW, flow_settings

NETWORK = load_network("grid:10x10")
REPORTS = list(islice(traffic(NETWORK, 60, seed=4, says=0.6), 30))
AWAY = {"lat": 10.0, "lon": 10.0}


def published(mode: str, *, order: Random) -> list[list[bytes]]:
    """Return the messages of each tick; the accounts are checked after every step."""
    settings = flow_settings(
        region={"mode": mode, "districts": 4, "min_nodes": 1},
        session={"epoch_s": 8, "beat_s": 3},
        presence={"ttl_s": 12, "max_behind_s": 5},
    )
    ledger, seconds = Ledger(), count()
    inbox = Inbox(10_000, ledger)
    flow = PositionFlow(
        settings,
        with_zones(NETWORK, zones_of(settings.zones)),
        ledger,
        secret=b"of this test",
        monotonic=lambda: float(next(seconds)),
    )

    def check() -> None:
        held = inbox.n_waiting + flow.n_held
        assert naive.imbalance(ledger.counts(), received=ledger.n_received, held=held) == 0

    ticks = []
    for tick, where in enumerate([*REPORTS, *({} for _ in range(15))]):
        deliveries = []
        for device, node in where.items():
            place = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
            said = (AWAY if node < 0 else place) | {"ts": NOW + tick}
            deliveries.append(Delivery(f"positions/d{device}", json.dumps(said).encode(), 0, False))
        order.shuffle(deliveries)
        inbox.put([*deliveries, *deliveries[:3]], at_s=0.0)
        output = flow.tick(inbox.take(), now=NOW + tick)
        check()
        flow.settle(output, [True] * len(output.messages), seconds=0.0)
        check()
        ticks.append([message.payload for message in output.messages])
    flow.close()
    check()
    assert flow.n_held == 0
    return ticks


@pytest.mark.parametrize("mode", ["snapshot", "session"])
def test_the_order_of_messages_changes_no_byte_of_what_is_published(mode: str) -> None:
    first, second = (published(mode, order=Random(seed)) for seed in (1, 2))  # noqa: S311
    assert first == second
    assert sum(map(len, first)) > 20


def test_a_device_counts_once_in_the_readings_of_an_instant_where_it_is() -> None:
    speed = ReadingSettings(name="speed", lo=0.0, hi=9.0, step=1.0, statistics=("count", "max"))
    readings = GroupReadings([speed])
    slot, zeros = np.arange(5, dtype=np.int32), np.zeros(5, np.int64)
    readings.note(np.arange(5), zeros, np.arange(5.0), slot=slot, ts=np.full(5, NOW))
    # Two districts have the last device in a group; it has left the first.
    member, first = np.array([0, 1, 4, 2, 3, 4], np.int32), np.array([0, 3, 6])
    node, no_node = np.zeros(0, np.int32), np.zeros(3, np.int64)
    release = Release(np.full(2, 2, np.int32), no_node, node, first, member, zeros)
    present = np.array([True, True, False, True, True, True])
    found = readings.summarize(release, since=NOW - 1, present=present)
    assert found is not None
    assert [each["speed"] for each in found.groups] == [
        {"count": 2.0, "max": 1.0},
        {"count": 3.0, "max": 4.0},
    ]
