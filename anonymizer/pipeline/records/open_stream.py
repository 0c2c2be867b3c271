"""The open windows of a stream: parts are read, placed in windows, and joined to records.

A pure state machine, the same for everybody who runs streams. One process stores what `place`
returns, part by part (`StreamState`); a stage of a cluster is restored from `state`
(`StagedStream`).
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.windows import NEVER, Windows
from anonymizer.codecs.record_parts import Part, PartReader
from anonymizer.domain.arrays import IntArray, UInt8Array
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.id_shares import IdShares
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined, OpenRecords
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.pipeline.records.topics import RecordRoute
from anonymizer.settings import LimitSettings


class KeptPart(NamedTuple):
    """A part that is held from now on, and the number of the held part that it replaces, or 0."""

    part: PartRow
    gone: int


class OpenStream:
    """The open windows of one stream.

    `key` returns the key that stands for an id of a vehicle; empty if the id is not usable.
    `newest`, `floor`, `released`, `in_ticks`: where the windows begin, which are closed besides,
    and when they close, see `Windows`; `parts`: those of open windows that are known already.
    """

    def __init__(
        self,
        stream: Stream,
        limits: LimitSettings,
        *,
        key: Callable[[str], bytes],
        accounts: Ledger,
        at_s: float,
        in_ticks: bool = False,
        newest: Sequence[float] = (),
        floor: int = NEVER,
        parts: Sequence[PartRow] = (),
        released: Sequence[range] = (),
    ) -> None:
        self.stream, self._limits, self._key = stream, limits, key
        self._accounts = accounts
        self._shares = IdShares(kept_s=stream.settings.window_s)
        self.records = OpenRecords.of(stream.settings)
        self.records.restore(parts)
        self.windows = Windows(
            stream.rule,
            newest or [-inf] * len(stream.settings.sources),
            at_s=at_s,
            floor=floor,
            opened=self.records.windows(),
            released=released,
            in_ticks=in_ticks,
        )
        self._next_part = max((part.number for part in parts), default=0) + 1
        self._n_closing = 0
        self._withdrawn: set[bytes] = set()

    @property
    def n_held(self) -> int:
        """Number of parts in open windows, and in closed ones as far as they are not settled."""
        return self.records.n_parts + self._n_closing

    def place(
        self, messages: Sequence[tuple[RecordRoute, bytes]], *, now: float, at_s: float
    ) -> list[KeptPart]:
        """Join the parts in messages, and settle those that are not kept; return the others.

        `messages`: route and payload of each, in order of arrival; `now`: unix seconds; `at_s`:
        monotonic seconds.
        """
        kept: list[KeptPart] = []
        settled = [
            outcome
            for route, payload in messages
            if (outcome := self._place(route, payload, now, at_s, kept)) is not Outcome.HELD
        ]
        self._accounts.receive(len(messages))
        self._accounts.settle_all(np.array(settled, np.uint8))
        return kept

    def withdraw(self, vehicle: bytes) -> list[PartRow]:
        """Refuse a vehicle from now on, and forget what is held of it; return these parts."""
        self._withdrawn.add(vehicle)
        gone = self.records.withdraw(vehicle)
        self._accounts.settle(Outcome.SUPPRESSED__PRIVACY_ZONE, len(gone))
        return gone

    def readmit(self, vehicle: bytes) -> None:
        """Accept a vehicle again."""
        self._withdrawn.discard(vehicle)

    def take(self, window: int) -> Joined:
        """Remove a closed window and return its records, which `settle` has to settle."""
        joined = self.records.take_of(self.stream, window)
        self._n_closing += int(joined.n_parts.sum())
        return joined

    def settle(self, n_parts: IntArray, outcome: UInt8Array) -> None:
        """Settle records of a closed window.

        `n_parts`, `outcome`: number of parts of each record, and its `Outcome`, shape (n,).
        """
        for each in np.unique(outcome[n_parts > 0]).tolist():
            self._accounts.settle(Outcome(each), int(n_parts[outcome == each].sum()))
        self._n_closing -= int(n_parts.sum())

    def settle_silent(self, closing: Closing) -> None:
        """Settle what is withheld of published records, as its source has fallen silent."""
        silent = np.full(len(closing.n_silent), Outcome.SUPPRESSED__SILENT_SOURCE, np.uint8)
        self.settle(closing.n_silent, silent)

    def state(self) -> dict[str, Any]:
        """Return all that changes, but for the accounts."""
        return {
            "parts": list(self.records.parts()),
            "windows": self.windows.state(),
            "next_part": self._next_part,
            "shares": self._shares.state(),
            "n_closing": self._n_closing,
            "withdrawn": sorted(self._withdrawn),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.records = OpenRecords.of(self.stream.settings)
        self.records.restore(PartRow(*part) for part in state["parts"])
        self.windows.restore(state["windows"])
        self._next_part = state["next_part"]
        self._shares.restore(state["shares"])
        self._n_closing = state["n_closing"]
        self._withdrawn = set(state["withdrawn"])

    def _place(
        self, route: RecordRoute, payload: bytes, now: float, at_s: float, kept: list[KeptPart]
    ) -> Outcome:
        """Join the part in a message, or say why it is not kept; return what is settled by it."""
        read = self._read(route, payload, at_s)
        if isinstance(read, Outcome):
            return read
        vehicle, part = read
        if vehicle in self._withdrawn:
            return Outcome.SUPPRESSED__PRIVACY_ZONE
        window, outcome = self.windows.place(
            route.source, part[0], now=now, at_s=at_s, vehicle=vehicle
        )
        if outcome is not Outcome.HELD:
            return outcome
        row = PartRow(self._next_part, window, vehicle, route.source, *part)
        outcome, gone = self.records.put(row)
        if gone != row.number:
            self._next_part += 1
            kept.append(KeptPart(row, gone))
        return outcome

    def _read(
        self, route: RecordRoute, payload: bytes, at_s: float
    ) -> tuple[bytes, Part] | Outcome:
        """Return the key of the vehicle of a message, and the part."""
        if not route.vehicle and not route.topic:
            return Outcome.INVALID__NO_DEVICE
        if len(payload) > self._limits.max_payload_bytes:
            return Outcome.INVALID__TOO_LARGE
        reader = self.stream.readers[route.source]
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
        vehicle = self._key(plain_id(stated))
        if not vehicle:
            return Outcome.INVALID__NO_DEVICE
        if not self._shares.admits(topic, vehicle, share=self._limits.max_ids_per_topic, at_s=at_s):
            return Outcome.SUPPRESSED__OVER_SHARE
        return vehicle, part
