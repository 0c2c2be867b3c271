"""A fleet that is restored from its state at every tick publishes what one that runs on does."""

from itertools import product
from typing import Any

import pytest

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.factory import mobile_fleet
from anonymizer.pipeline.positions.tick.fleet import Fleet
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings, zones_of
from tests.cluster.positions.cluster import NETWORK, PROTECTED, SECRET, START, World, statements
from tests.cluster.positions.cluster import settings as settings_of
from tests.lanes import each_of_both


class Run:
    """Drives a fleet by hand through what devices send."""

    def __init__(self, settings: Settings, *, restored: bool) -> None:
        self.ledger, self._settings, self._restored = Ledger(), settings, restored
        self._decoder = Decoder(
            TopicRouter(settings.inputs),
            settings.limits,
            self.ledger,
            attribute_of={each.name: i for i, each in enumerate(settings.readings)},
        )
        self._fleet = self._new()

    def _new(self) -> Fleet:
        zoned = with_zones(NETWORK, zones_of(self._settings.zones))
        return Fleet(mobile_fleet(self._settings, NETWORK), zoned, self.ledger, secret=SECRET)

    def tick(self, number: int, batch: list[Any]) -> list[Outgoing]:
        now = float(START + number + 1)
        decoded = self._decoder.decode([Arrivals(number + 0.5, batch)]).of[Treatment.MOBILE]
        fleet = self._fleet
        if fleet.device_zones is not None:
            fleet.device_zones.put(statements(number))
        tick = fleet.engine.tick(fleet.locate(decoded, since=now - 1, now=now))
        messages = fleet.publish(tick, wall_ahead_s=0.0).messages
        fleet.forget(tick, now=now)
        if self._restored:
            state = pack(fleet.state())
            self._fleet = self._new()
            self._fleet.restore(unpack(state))
        return messages

    @property
    def n_held(self) -> int:
        return self._fleet.n_held


CLOAKS = [*product(["adka", "snapshot", "session"], [1, 4])]
"""Modes, and numbers of districts."""


@pytest.mark.parametrize(("cloak", "protected"), each_of_both(CLOAKS, ["readings", "all", "ids"]))
def test_a_restored_fleet_goes_on_alike(cloak: tuple[str, int], protected: str) -> None:
    mode, districts = cloak
    assert protected in PROTECTED
    settings = settings_of(mode, protected=protected)
    region = settings.region.model_copy(update={"districts": districts})
    settings = settings.model_copy(update={"region": region})
    whole, restored = Run(settings, restored=False), Run(settings, restored=True)
    n = 0
    for number, batch in enumerate(World(mode, n_ticks=14, seed=2, protected=protected).arrivals):
        expected = whole.tick(number, batch)
        assert restored.tick(number, batch) == expected
        n += len(expected)
    assert n > 50
    assert restored.ledger.counts() == whole.ledger.counts()
    assert restored.n_held == whole.n_held
