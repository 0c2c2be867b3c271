"""Intake of parts: a message is read, placed in its window, and joined to its record."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from anonymizer.algorithms.windows import Windows
from anonymizer.codecs.record_parts import Part, PartReader
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.id_shares import IdShares
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import OpenRecords
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.pipeline.records.topics import Route
from anonymizer.settings import LimitSettings


class Placed(NamedTuple):
    """What became of a message.

    Attributes
    ----------
    outcome
        What is settled by it, `HELD` if nothing is.
    added
        The part that is held from now on; None: it is not.
    gone
        Number of the held part that it replaces; 0: of none.
    """

    outcome: Outcome
    added: PartRow | None = None
    gone: int = 0


class PartIntake:
    """Takes the messages of one stream.

    Parameters
    ----------
    stream, limits
        The stream, and the limits of a message.
    key
        Returns the key that stands for an id of a vehicle; empty if the id is not usable.
    windows, records
        Where parts are placed and joined.
    next_part
        Number of the next part.
    """

    def __init__(
        self,
        stream: Stream,
        limits: LimitSettings,
        *,
        key: Callable[[str], bytes],
        windows: Windows,
        records: OpenRecords,
        next_part: int = 1,
    ) -> None:
        self._stream, self._limits, self._key = stream, limits, key
        self._windows, self._records = windows, records
        self._shares = IdShares(kept_s=stream.settings.window_s)
        self.next_part = next_part

    def state(self) -> dict[str, Any]:
        """Return what changes, but for the windows and the records."""
        return {"next_part": self.next_part, "shares": self._shares.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.next_part = state["next_part"]
        self._shares.restore(state["shares"])

    def place(self, route: Route, payload: bytes, *, now: float, at_s: float) -> Placed:
        """Join the part in a message, or say why it is not kept.

        Parameters
        ----------
        now, at_s
            The wall clock in unix seconds, and the seconds of a monotonic clock.
        """
        read = self._read(route, payload, at_s)
        if isinstance(read, Outcome):
            return Placed(read)
        vehicle, part = read
        window, outcome = self._windows.place(route.source, part[0], now=now, at_s=at_s)
        if outcome is not Outcome.HELD:
            return Placed(outcome)
        row = PartRow(self.next_part, window, vehicle, route.source, *part)
        outcome, gone = self._records.put(row)
        if gone == row.number:
            return Placed(outcome)
        self.next_part += 1
        return Placed(outcome, row, gone)

    def _read(self, route: Route, payload: bytes, at_s: float) -> tuple[bytes, Part] | Outcome:
        """Return the key of the vehicle of a message, and the part."""
        if not route.vehicle and not route.topic:
            return Outcome.INVALID__NO_DEVICE
        if len(payload) > self._limits.max_payload_bytes:
            return Outcome.INVALID__TOO_LARGE
        reader = self._stream.readers[route.source]
        if route.topic:
            return self._named(reader, payload, route.topic, at_s)
        part = reader.read(payload)
        return part if isinstance(part, Outcome) else (route.vehicle, part)

    def _named(
        self, reader: PartReader, payload: bytes, topic: bytes, at_s: float
    ) -> tuple[bytes, Part] | Outcome:
        """Return the key of the vehicle that a payload names, and the part."""
        named = reader.read_named(payload)
        if isinstance(named, Outcome):
            return named
        stated, part = named
        vehicle = self._key(stated)
        if not vehicle:
            return Outcome.INVALID__NO_DEVICE
        share = self._limits.max_ids_per_topic
        if not self._shares.admits(topic, vehicle, share=share, at_s=at_s):
            return Outcome.SUPPRESSED__OVER_SHARE
        return vehicle, part
