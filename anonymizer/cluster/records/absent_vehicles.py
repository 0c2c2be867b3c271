"""Vehicles that take no part, by the statements that bridges pass on."""

from collections.abc import Callable, Collection, Sequence

from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.pipeline.positions.tick.device_zones import takes_no_part
from anonymizer.settings.base import id_levels


class AbsentVehicles:
    """Those that take no part.

    Every bridge passes on every statement. One may be behind the others, so a vehicle takes part
    again when no bridge that is there says otherwise.

    Parameters
    ----------
    topic
        Of the statements.
    key
        Returns what stands for an id of a vehicle; empty if the id is not usable.
    """

    def __init__(self, topic: str, key: Callable[[str], bytes]) -> None:
        self._levels, self._key = id_levels(topic), key
        self._said_by: dict[bytes, set[str]] = {}
        """Bridges that have last passed on that a vehicle takes no part."""

    def heed(self, raw: Raw, *, bridges: Collection[str]) -> dict[str, bool]:
        """Return whether each vehicle in a message of a bridge takes no part."""
        said = takes_no_part(
            (each for batch in raw.arrivals for each in batch.deliveries), self._levels
        )
        found = {}
        for vehicle, is_absent in said.items():
            key = self._key(vehicle)
            by = {each for each in self._said_by.pop(key, ()) if each in bridges}
            (by.add if is_absent else by.discard)(raw.bridge)
            if by:
                self._said_by[key] = by
            found[vehicle] = bool(by)
        return found

    def state(self) -> list[object]:
        """Return all that changes."""
        return [[key, sorted(by)] for key, by in self._said_by.items()]

    def restore(self, state: Sequence[tuple[bytes, Sequence[str]]]) -> None:
        """Go on from a state."""
        self._said_by = {key: set(by) for key, by in state}
