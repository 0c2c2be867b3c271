"""Messages about regions and trips: decoding, and how long each one holds.

The rules are those of the contract (docs/analyst.md): the newest message about a pseudonym holds
until its `until`; a complete snapshot of the current groups names all current pseudonyms.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from anonymizer.errors import InputError

VERSION: Final = 1
"""Version of the messages that are understood."""
NOT_UNDERSTOOD, ELSEWHERE, SUPPRESSED = "not understood", "other topic", "suppressed"
"""Reasons to leave out a message: not of the contract, not about regions, a line without region."""
_TRIPS_KEPT_S = 86_400.0
"""Trips are forgotten so much later than regions: a window of them is an hour."""


_ABSENT: Final = msgspec.Raw()


class _Body(msgspec.Struct, frozen=True, gc=False):
    """Fields of all kinds of messages that matter here; those that are there tell the kind."""

    v: int = VERSION
    time: float | None = None
    until: float | None = None
    network: str | None = None
    group: str | None = None
    k: int = 0
    region: msgspec.Raw = _ABSENT
    pseudonyms: list[str] | None = None
    pseudonym: str = ""
    readings: dict[str, dict[str, float]] | None = None
    values: dict[str, list[float | None] | float | None] | None = None
    groups: list["_Body"] | None = None
    """Of a snapshot of the current groups."""
    part: int = -1
    of: int = 0
    parts: int | None = None
    problem: str = ""
    """Of the description of the network: how many parts, and why there are none."""
    features: msgspec.Raw = _ABSENT
    """Of a part of the network."""
    window_s: float = 0.0
    """Of a message about trips."""

    @property
    def names(self) -> list[str]:
        """Pseudonyms of a message about a region."""
        return [self.pseudonym] if self.pseudonyms is None else self.pseudonyms


class PlaceSpan(msgspec.Struct, frozen=True, gc=False):
    """Neighbouring cells of the network, from `first` to `last`."""

    first: int
    last: int


class ToldTrips(msgspec.Struct, frozen=True, gc=False):
    """Trips of one class; `start`: between which times they began, unix seconds."""

    origin: PlaceSpan
    destination: PlaceSpan
    start: tuple[float, float]
    devices: int
    roads: list[tuple[int | str, int | str]]


class ToldWindow(msgspec.Struct, frozen=True, gc=False):
    """Trips that ended in the `window_s` before `time`, unix seconds."""

    time: float
    window_s: float
    network: str
    k: int
    n_cells: int
    trips: list[ToldTrips]
    more: int | None = None

    @property
    def most_more(self) -> int:
        """How many more devices there may be than a class says."""
        return self.k - 1 if self.more is None else self.more


@dataclass(slots=True, repr=False)
class Columns:
    """Messages about regions, and the pseudonyms that they name.

    Attributes
    ----------
    time, until, k, region, group, readings, network
        Of each message; `region` is an index of `regions`, `network` a version or None.
    message, pseudonym, end, values
        Of each record, which is one pseudonym of a message: index of the message, name, time after
        which something else is known, own published readings.
    regions
        Names of the nodes of each distinct region.
    """

    time: list[float] = field(default_factory=list)
    until: list[float] = field(default_factory=list)
    k: list[int] = field(default_factory=list)
    region: list[int] = field(default_factory=list)
    group: list[str | None] = field(default_factory=list)
    readings: list[Mapping[str, Mapping[str, float]] | None] = field(default_factory=list)
    network: list[str | None] = field(default_factory=list)
    message: list[int] = field(default_factory=list)
    pseudonym: list[str] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    values: list[Mapping[str, float | None] | None] = field(default_factory=list)
    regions: list[tuple[int | str, ...]] = field(default_factory=list)

    def since(self, moment: float) -> "Columns":
        """Return what still held at a moment or came later."""
        return self.only([i for i, until in enumerate(self.until) if until >= moment])

    def only(self, kept: Sequence[int]) -> "Columns":
        """Return some messages, by their indices."""
        number = {old: new for new, old in enumerate(kept)}
        records = [j for j, i in enumerate(self.message) if i in number]
        region: dict[int, int] = {}
        for i in kept:
            region.setdefault(self.region[i], len(region))
        return Columns(
            time=[self.time[i] for i in kept],
            until=[self.until[i] for i in kept],
            k=[self.k[i] for i in kept],
            region=[region[self.region[i]] for i in kept],
            group=[self.group[i] for i in kept],
            readings=[self.readings[i] for i in kept],
            network=[self.network[i] for i in kept],
            message=[number[self.message[j]] for j in records],
            pseudonym=[self.pseudonym[j] for j in records],
            end=[self.end[j] for j in records],
            values=[self.values[j] for j in records],
            regions=[self.regions[r] for r in region],
        )


class Collector:
    """Collects messages in the order in which they arrive.

    Attributes
    ----------
    columns
        The messages about regions so far.
    trips
        The messages about trips, by the ends of their windows.
    left_out
        How many messages were left out, by reason.
    """

    def __init__(self) -> None:
        self.columns = Columns()
        self.trips: dict[float, ToldWindow] = {}
        self.left_out: Counter[str] = Counter()
        self._decode = msgspec.json.Decoder(_Body).decode
        self._region_of: dict[bytes, int] = {}
        self._newest: dict[str, int] = {}
        self._about: _Body | None = None
        self._parts: dict[tuple[str, int], dict[int, bytes]] = {}
        """Of each network and number of parts into which it was cut; 0: that was not said."""
        self._alive: dict[int, set[str]] = {}
        """Pseudonyms in each part of the newest snapshot."""
        self._snapshot_time = float("-inf")

    def take(self, payload: bytes) -> bool:
        """Take in a message; return whether it was understood.

        Raises
        ------
        InputError
            If its version is not one that this client understands.
        """
        try:
            body = self._decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.left_out[NOT_UNDERSTOOD] += 1
            return False
        for each in (body, *(body.groups or ())):
            if each.v != VERSION:
                raise InputError(
                    f"a message has version {each.v} of the contract, and this client reads "
                    f"version {VERSION}: install the release of the client that the gateway has"
                )
        if len(body.region):
            return self._take_region(body)
        if body.groups is not None and body.time is not None:
            self._take_snapshot(body, body.groups, body.time)
        elif body.parts is not None and body.network:
            self._about = body
            cuts = {(body.network, n) for n in (0, body.parts)}
            self._parts = {cut: kept for cut, kept in self._parts.items() if cut in cuts}
        elif len(body.features) and body.part >= 0 and body.network:
            self._parts.setdefault((body.network, body.of), {})[body.part] = payload
        elif body.window_s:
            return self._take_trips(payload)
        else:
            self.left_out[ELSEWHERE] += 1
        return True

    def network_parts(self) -> tuple[str, list[bytes]] | None:
        """Return version and parts of the published network; None until all have come."""
        about = self._about
        if about is None or about.network is None or not about.parts:
            return None
        found, wanted = self._found(about), range(about.parts)
        return (about.network, [found[i] for i in wanted]) if len(found) >= about.parts else None

    def network_missing(self) -> str:
        """Return why there is no network yet."""
        about = self._about
        if about is None:
            return "no network has been published"
        if not about.parts:
            return f"the gateway cannot publish its network: {about.problem}"
        n = len(self._found(about))
        return f"{n} of {about.parts} parts of the published network have come"

    def _found(self, about: _Body) -> dict[int, bytes]:
        """Return the parts that have come of an announced network."""
        cuts = [(about.network or "", n) for n in (0, about.parts or 0)]
        return max(
            (
                {i: part for i, part in self._parts.get(cut, {}).items() if i < (about.parts or 0)}
                for cut in cuts
            ),
            key=len,
        )

    def forget(self, before: float) -> None:
        """Drop what was over at a moment, and trips of a day before it."""
        self.columns = self.columns.since(before)
        kept_from = before - _TRIPS_KEPT_S
        self.trips = {at: each for at, each in self.trips.items() if at >= kept_from}
        self._region_of.clear()
        self._newest = {name: j for j, name in enumerate(self.columns.pseudonym)}

    def _take_trips(self, payload: bytes) -> bool:
        try:
            told = msgspec.json.decode(payload, type=ToldWindow)
        except (msgspec.MsgspecError, RecursionError):
            self.left_out[NOT_UNDERSTOOD] += 1
            return False
        self.trips[told.time] = told
        return True

    def _take_region(self, body: _Body) -> bool:
        names, time, columns = body.names, body.time, self.columns
        try:
            region = self._region(body.region)
        except (msgspec.MsgspecError, RecursionError):
            time = None
        lists = [each for each in (body.values or {}).values() if isinstance(each, list)]
        if time is None or any(len(each) != len(names) for each in lists):
            self.left_out[NOT_UNDERSTOOD] += 1
            return False
        if region is None or not any(names):
            self.left_out[SUPPRESSED] += 1
            return True
        new = [i for i, name in enumerate(names) if name and self._is_new(name, time)]
        if not new:
            return True
        columns.time.append(time)
        until = float("inf") if body.until is None else body.until
        columns.until.append(until)
        columns.k.append(body.k)
        columns.region.append(region)
        columns.group.append(body.group)
        columns.readings.append(body.readings)
        columns.network.append(body.network)
        for i in new:
            self._newest[names[i]] = len(columns.pseudonym)
            columns.message.append(len(columns.time) - 1)
            columns.pseudonym.append(names[i])
            columns.end.append(until)
            columns.values.append(_own(body.values, i) if body.values else None)
        return True

    def _is_new(self, name: str, time: float) -> bool:
        """Return whether a message is newer than the newest about a pseudonym.

        Messages of one gateway come in order; those that come again are in snapshots, or retained.
        """
        newest = self._newest.get(name)
        return newest is None or time > self.columns.time[self.columns.message[newest]]

    def _region(self, raw: msgspec.Raw) -> int | None:
        """Return the number of a region, None for an empty one; it is decoded only once."""
        key = bytes(raw)
        number = self._region_of.get(key)
        if number is None:
            names = msgspec.json.decode(key, type=list[int | str])
            if not names:
                return None
            number = self._region_of[key] = len(self.columns.regions)
            self.columns.regions.append(tuple(names))
        return number

    def _take_snapshot(self, body: _Body, groups: Sequence[_Body], time: float) -> None:
        """Take in a part of a snapshot; what a whole one does not name has ended.

        A retained one comes again after a reconnection, and does not end newer messages.
        """
        if time < self._snapshot_time:
            return
        if time > self._snapshot_time:
            self._alive, self._snapshot_time = {}, time
        self._alive[body.part] = {name for each in groups for name in each.names}
        for each in groups:
            self._take_region(each)
        if len(self._alive) < body.of:
            return
        columns, alive = self.columns, set().union(*self._alive.values())
        for name in self._newest.keys() - alive:
            record = self._newest[name]
            if columns.time[columns.message[record]] <= time:
                columns.end[record] = min(columns.end[record], time)


def _own(values: Mapping[str, Any], member: int) -> dict[str, float | None]:
    """Return the own readings of a member: one of a list, or that of a message about a device."""
    return {name: each[member] if isinstance(each, list) else each for name, each in values.items()}
