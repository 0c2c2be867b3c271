"""Privacy zones in a source of a cluster: those of the settings, and those of its devices."""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from anonymizer.algorithms.positions.district_operator import Keys
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.cluster.positions.zone_statements import ZoneStatements
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.pipeline.positions.tick.zone_places import ZonePlaces
from anonymizer.settings import DeviceZoneSettings

MakePlaces: TypeAlias = Callable[[Keys], ZonePlaces]


class SourceZones:
    """The zones of a source, and where the devices inside them count.

    Parameters
    ----------
    settings
        Of zones that devices own.
    devices
        Those of the source.
    make_places
        Returns where devices in the zones of the settings count; None: there are no such zones.
    passing_s
        For so long a device counts as passing through, seconds.
    """

    def __init__(
        self,
        settings: DeviceZoneSettings,
        devices: DeviceTable,
        make_places: MakePlaces | None,
        *,
        passing_s: float,
    ) -> None:
        self._passing_s = passing_s
        self._places = make_places(devices.keys) if make_places else None
        self._owned = DeviceZones(settings, devices) if settings.enabled else None
        self._statements = ZoneStatements(self._owned) if self._owned else None

    def put(self, raw: Raw) -> None:
        """Take in what a bridge passes on about zones that devices own.

        Raises
        ------
        ValueError
            If the settings allow no such zones.
        """
        if self._statements is None:
            raise ValueError("bridges pass zones of devices on, which the settings do not allow")
        self._statements.put(raw)

    def apply(self, tick: int, *, bridges: Collection[str]) -> None:
        """Let statements take effect, see `ZoneStatements.apply`."""
        if self._statements is not None:
            self._statements.apply(tick, bridges=bridges)

    def cover(
        self, positions: Positions, node: Int32Array, *, now: float
    ) -> tuple[Int32Array, BoolArray]:
        """Return the node at which each position counts, and which are inside zones, shape (n,).

        Parameters
        ----------
        positions, node
            Those of a tick, and where they are; `IN_ZONE` in zones of the settings.
        now
            Unix seconds.
        """
        if self._owned is not None:
            node = self._owned.keep_out(positions, node)
        hidden = node == IN_ZONE
        if self._places is not None:
            node = self._places.cover(positions, node, now=now, passing_s=self._passing_s)
        return node, hidden

    def forget(self, slots: Int32Array) -> None:
        """Clear freed slots."""
        for each in (self._places, self._owned):
            if each is not None:
                each.forget(slots)

    def state(self) -> dict[str, Any]:
        """Return what changes. It says where devices want privacy: store it like raw positions."""
        return {name: None if part is None else part.state() for name, part in self._parts()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, part in self._parts():
            if part is not None and state[name] is not None:
                part.restore(state[name])

    def _parts(self) -> list[tuple[str, Any]]:
        return [
            ("places", self._places),
            ("owned", self._owned),
            ("statements", self._statements),
        ]
