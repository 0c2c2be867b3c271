"""Decoding of deliveries into columns of positions.

Usual messages are read by compiled kernels (`compiled_reader`). Every other message is decoded by
its codec, by itself: a joined payload would fail as a whole on one bad record. Both ways lead to
the same positions and the same counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs

from anonymizer.codecs.times import second_reading
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.id_shares import IdShares
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries, in_groups, receipts_of
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.compiled_reader import NO_LAYOUT, READING, Found, Reader
from anonymizer.pipeline.positions.decode.decoded import (
    Decoded,
    DecodedTick,
    InputCounts,
    device_of,
)
from anonymizer.pipeline.positions.decode.halves import Halves
from anonymizer.pipeline.positions.decode.headings import accuracies, headings, with_motion
from anonymizer.pipeline.positions.decode.senders import OF_PAYLOAD, UNKNOWN, Senders
from anonymizer.pipeline.positions.decode.topics import NO_INPUT, Route, TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals

if TYPE_CHECKING:
    from anonymizer.settings import LimitSettings

_LEAST_REPEAT_S, _MOST_AGE_S = 1800.0, 10_800.0
"""The least that clocks repeat, of Lord Howe Island; older times are late whichever they are."""


@discreet
class _Rows(NamedTuple):
    """Positions of some messages; see `Decoded` for what is not said here."""

    message: IntArray
    input: Int32Array
    is_claim: BoolArray
    sender: IntArray
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    zoneless: BoolArray
    reading_row: IntArray
    reading_attribute: IntArray
    reading_value: FloatArray

    def taken(self, index: IntArray) -> "_Rows":
        """Return these of the rows, in this order."""
        row_of = np.full(len(self.message), -1)
        row_of[index] = np.arange(len(index))
        row = row_of[self.reading_row]
        order = np.argsort(row, kind="stable")[np.count_nonzero(row < 0) :]
        columns = [column[index] for column in self[:_N_OF_POSITIONS]]
        of_readings = (column[order] for column in self[_N_OF_POSITIONS + 1 :])
        return _Rows._make([*columns, row[order], *of_readings])


_N_OF_POSITIONS = _Rows._fields.index("reading_row")
"""The other columns are of readings."""


def _joined(parts: Sequence[_Rows]) -> _Rows:
    """Return the rows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(len(part.message) for part in parts)]).tolist()
    shifted = [
        part._replace(reading_row=part.reading_row + n)
        for part, n in zip(parts, first, strict=False)
    ]
    return _Rows._make(map(np.concatenate, zip(*shifted, strict=True)))


_READING_TYPES = (np.int64, np.int64, np.float64)


@dataclass(slots=True, repr=False)
class _Lists:
    """Positions as the codecs return them, one after the other."""

    message: list[int] = field(default_factory=list)
    input: list[int] = field(default_factory=list)
    is_claim: list[bool] = field(default_factory=list)
    sender: list[int] = field(default_factory=list)
    ts: list[float] = field(default_factory=list)
    lat: list[float] = field(default_factory=list)
    lon: list[float] = field(default_factory=list)
    zoneless: list[bool] = field(default_factory=list)
    reading_row: list[int] = field(default_factory=list)
    reading_attribute: list[int] = field(default_factory=list)
    reading_value: list[float] = field(default_factory=list)

    def rows(self) -> _Rows:
        """Return them as columns."""
        of_positions = (np.int64, np.int32, np.bool_, np.int64, *[np.float64] * 3, np.bool_)
        types = (*of_positions, *_READING_TYPES)
        columns = (getattr(self, name) for name in _Rows._fields)
        return _Rows._make(np.array(items, of) for items, of in zip(columns, types, strict=True))


_NO_ROWS = _Lists().rows()


@discreet
class Refused(NamedTuple):
    """Devices of which messages were refused, each once for an input and an outcome.

    Sender and `names` as in `Decoded`; an empty name stands for nobody.
    """

    sender: list[int]
    input: list[int]
    outcome: list[int]
    names: list[str]


class Decoder:
    """Decodes the arrivals of a tick; settles rejected positions with their reasons.

    Readings that are not in `attribute_of` are left out; `ids_kept_s`: see `IdShares`.
    """

    def __init__(
        self,
        router: TopicRouter,
        limits: "LimitSettings",
        ledger: Ledger,
        *,
        attribute_of: Mapping[str, int] = MappingProxyType({}),
        ids_kept_s: float = inf,
    ) -> None:
        self.senders = Senders(router)
        self.inputs = InputCounts(len(router.routes))
        """What messages came to; those of valid positions are not counted here."""
        self._n_declared = len(attribute_of)
        self._attribute_of = with_motion(attribute_of)
        self.n_unusable: IntArray = np.zeros(self._n_declared, np.int64)
        """By declared reading: how many were stated, and were no number that could be used."""
        self._shares = IdShares(kept_s=ids_kept_s)
        self._halves = [
            Halves(route.join_s, by_arrival=route.bare is not None) if route.join_s else None
            for route in router.routes
        ]
        self._router = router
        self._limits = limits
        self._ledger = ledger
        self._refused: set[tuple[int | str, int, Outcome]] = set()
        layouts = [layout for layout in router.layouts if layout is not None]
        self._reader = Reader(layouts, self._attribute_of)
        # The last item is that of `NO_INPUT`.
        self._layout_of = np.full(len(router.layouts) + 1, NO_LAYOUT, np.int32)
        self._layout_of[:-1][[bool(layout) for layout in router.layouts]] = np.arange(len(layouts))
        self._ids_change = np.array(router.ids_change, np.bool_)
        self._treatment_of = np.array([route.treatment for route in router.routes], np.int32)

    def limit(self, limits: "LimitSettings") -> None:
        """Use these limits from now on."""
        self._limits = limits

    def forget(self, *, at_s: float, kept_s: float) -> None:
        """Forget silent devices, see `NameTable.forget`; what was decoded is invalid then."""
        for halves in filter(None, self._halves):
            halves.forget(at_s=at_s, kept_s=kept_s)
        self._refused.clear()
        self.senders.forget(at_s=at_s, kept_s=kept_s)

    def take_refused(self) -> dict[Treatment, Refused]:
        """Return whose messages were refused since the previous call, by treatment, if any were."""
        refused, self._refused = self._refused, set()
        found: dict[Treatment, Refused] = {}
        for by, input_, outcome in refused:
            treatment = Treatment(self._treatment_of[input_])
            of = found.setdefault(treatment, Refused([], [], [], []))
            if isinstance(by, str):
                of.names.append(by)
                by = -len(of.names)  # noqa: PLW2901  the number of a name
            of.sender.append(by)
            of.input.append(input_)
            of.outcome.append(outcome)
        return found

    def state(self) -> dict[str, Any]:
        """Return what later messages are treated by; the rest is found again."""
        state = self._shares.state()
        if any(self._halves):
            state["halves"] = [None if each is None else each.state() for each in self._halves]
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; before any message."""
        self._shares.restore(state)
        for halves, kept in zip(self._halves, state.get("halves", ()), strict=False):
            if halves is not None and kept is not None:
                halves.restore(kept)

    def decode(self, batches: Sequence[Arrivals]) -> DecodedTick:
        """Return the valid positions. No content of a message makes it raise."""
        names: list[str] = []
        receipts: list[int] = []
        n_messages = 0
        parts, times_s = [], []
        arrived_s = np.array([batch.at_s for batch in batches], np.float64)
        for messages, batch_of in in_groups([batch.deliveries for batch in batches]):
            receipts += receipts_of(messages)
            rows = self._rows(messages, arrived_s[batch_of], names)
            times_s.append(arrived_s[batch_of[rows.message]])
            parts.append(rows._replace(message=rows.message + n_messages) if n_messages else rows)
            n_messages += len(batch_of)
        if not parts:
            return DecodedTick([self._decoded(_NO_ROWS, np.zeros(0), names) for _ in Treatment], [])
        everything, at_s = self._with_numbers(_joined(parts)), np.concatenate(times_s)
        treatment = self._treatment_of[everything.input]
        of = []
        for each in Treatment:
            index = np.flatnonzero(treatment == each)
            rows = _NO_ROWS if not len(index) else everything
            if 0 < len(index) < len(treatment):
                rows = everything.taken(index)
            of.append(self._decoded(rows, at_s[index], names))
            if each is Treatment.MOBILE and len(rows.reading_row):
                of_rows = (rows.reading_row, rows.reading_attribute, rows.reading_value)
                n, index_of = len(index), self._attribute_of
                of[-1].heading = headings(*of_rows, n=n, index_of=index_of)
                of[-1].accuracy_m = accuracies(*of_rows, n=n, index_of=index_of)
        return DecodedTick(of, receipts)

    def date(self, decoded: Decoded, *, now: float, wall_ahead_s: float = 0.0) -> None:
        """Date decoded positions by the gateway's clock, see `on_clock`.

        A local time of the hour that clocks repeat in autumn is the occurrence nearer to `now`.
        """
        ts, input_ = decoded.ts, decoded.input
        if input_ is not None and any(self._router.zones):
            age_s, ts = now + wall_ahead_s - ts, ts.copy()
            for row in np.flatnonzero((age_s > _LEAST_REPEAT_S / 2) & (age_s < _MOST_AGE_S)):
                zone = self._router.zones[input_[row]]
                again = ts[row] if zone is None else second_reading(float(ts[row]), zone)
                if abs(now + wall_ahead_s - again) < age_s[row]:
                    ts[row] = again
        decoded.ts = on_clock(ts, now=now, wall_ahead_s=wall_ahead_s)

    def _decoded(self, rows: _Rows, at_s: FloatArray, names: list[str]) -> Decoded:
        """Return rows as positions, with the readings that are declared."""
        readings = (rows.reading_row, rows.reading_attribute, rows.reading_value)
        if len(rows.reading_row):
            declared = rows.reading_attribute < self._n_declared
            readings = (readings[0][declared], readings[1][declared], readings[2][declared])
        columns = (rows.sender, rows.ts, rows.lat, rows.lon, at_s, *readings, names)
        decoded = Decoded(self.senders, *columns, input=rows.input, message=rows.message)
        if rows.is_claim.any():
            decoded.hearsay = rows.is_claim
        if rows.zoneless.any():
            decoded.zoneless = rows.zoneless
        if self._ids_change.any():
            decoded.id_changes = self._ids_change[rows.input]
        return decoded

    def _with_numbers(self, rows: _Rows) -> _Rows:
        """Return rows without the readings that are no numbers; count these."""
        if not len(rows.reading_value):
            return rows
        usable = ~np.isnan(rows.reading_value)
        if usable.all():
            return rows
        lost = rows.reading_attribute[~usable]
        self.n_unusable += np.bincount(lost, minlength=len(self._attribute_of))[: self._n_declared]
        of_readings = (column[usable] for column in rows[_N_OF_POSITIONS:])
        return _Rows._make([*rows[:_N_OF_POSITIONS], *of_readings])

    def _rows(self, messages: PackedDeliveries, at_s: FloatArray, names: list[str]) -> _Rows:
        """Return the positions of some messages, in order of arrival."""
        topic = self.senders.topics(messages)
        input_, n_chars = self.senders.input_of(topic), self.senders.n_chars_of(topic)
        usable = (n_chars > 0) & (n_chars <= self._limits.max_device_id_chars)
        found = self._reader.read(
            np.frombuffer(messages.stream, np.uint8),
            messages.columns.bounds,
            messages.columns.retained,
            np.where(usable | (n_chars == OF_PAYLOAD), self._layout_of[input_], NO_LAYOUT),
            max_payload_bytes=self._limits.max_payload_bytes,
            max_positions=self._limits.max_positions,
        )
        # Until it is decoded, a message counts as one.
        self._ledger.receive(len(found.positions) - (len(topic) - len(found.left)))
        rows = self._named(messages.stream, found, topic, names)
        if len(found.left):
            left, stated = _Lists(), list[str]()
            columns = (each[found.left].tolist() for each in (topic, input_, n_chars))
            of = zip(found.left.tolist(), *columns, messages.only(found.left), strict=True)
            for i, sender, index, n, delivery in of:
                if sender == UNKNOWN:
                    index, n = self.senders.found(delivery.topic)  # noqa: PLW2901  not stored
                self._decode(
                    delivery,
                    left,
                    stated,
                    message=i,
                    topic=sender,
                    input_=index,
                    n_chars=n,
                    at_s=float(at_s[i]),
                )
            rows = _joined([rows, self._numbered(left.rows(), stated, names)])
            rows = rows.taken(np.argsort(rows.message, kind="stable"))
        return self._within_shares(rows, messages, topic, at_s, names)

    def _named(self, stream: bytes, found: Found, topic: IntArray, names: list[str]) -> _Rows:
        """Return what the compiled reader has found, without the positions of nobody."""
        at = found.positions
        sender = topic[at["message"]]
        input_ = self.senders.input_of(sender)
        is_claim = self.senders.n_chars_of(sender) == OF_PAYLOAD
        ts, lat, lon = (np.ascontiguousarray(at[name]) for name in ("ts", "lat", "lon"))
        zoneless = np.zeros(len(at), np.bool_)  # numbers have no zone
        rows = _Rows(
            at["message"].astype(np.int64), input_, is_claim, sender, ts, lat, lon, zoneless,
            *(np.ascontiguousarray(found.readings[name]) for name in READING.names or ()),
        )  # fmt: skip
        if not is_claim.any():
            return rows
        n_chars = at["end"] - at["start"]
        named = ~is_claim | (n_chars > 0) & (n_chars <= self._limits.max_device_id_chars)
        claims = np.flatnonzero(is_claim & named)
        spans = np.stack([at["start"][claims], at["end"][claims]], axis=1)
        sender[claims] = self.senders.ids(stream, spans, input_[claims])
        named[claims] = self.senders.n_chars_of(sender[claims]) > 0
        for row in claims[sender[claims] == UNKNOWN].tolist():
            names.append(plain_id(stream[at["start"][row] : at["end"][row]].decode()))
            sender[row], named[row] = -len(names), bool(names[-1])
        nobody = np.full(np.count_nonzero(~named), Outcome.INVALID__NO_DEVICE, np.uint8)
        self._ledger.settle_all(nobody)
        self.inputs.settle_all(input_[~named], nobody)
        return rows if named.all() else rows.taken(np.flatnonzero(named))

    def _numbered(self, rows: _Rows, stated: Sequence[str], names: list[str]) -> _Rows:
        """Return rows with the numbers of their senders, as far as there is room for more."""
        if not stated:
            return rows
        encoded = [device.encode("utf-8", "surrogatepass") for device in stated]
        cuts = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
        spans = np.stack([cuts[:-1], cuts[1:]], axis=1)
        unnumbered = np.flatnonzero(rows.sender < 0)
        found = self.senders.ids(b"".join(encoded), spans, rows.input[unnumbered])
        for i in np.flatnonzero(found == UNKNOWN).tolist():
            names.append(stated[i])
            found[i] = -len(names)
        rows.sender[unnumbered] = found
        return rows

    def _decode(
        self,
        delivery: Delivery,
        out: _Lists,
        stated: list[str],
        *,
        message: int,
        topic: int,
        input_: int,
        n_chars: int,
        at_s: float,
    ) -> None:
        """Append the valid positions of one message, settle the others.

        Ids of devices that have no number yet are appended to `stated`, and their rows get -1.
        """
        if input_ == NO_INPUT:
            self._ledger.settle(Outcome.INVALID__UNKNOWN_TOPIC)
            self.inputs.settle(NO_INPUT, Outcome.INVALID__UNKNOWN_TOPIC)
            return
        route = self._router.routes[input_]
        is_claim = n_chars == OF_PAYLOAD
        device = ""
        halves = self._halves[input_]
        if not is_claim and (topic == UNKNOWN or route.places is not None or halves is not None):
            device = self._router.device(delivery.topic)
        fixes = self._fixes(route, delivery)
        self._ledger.receive(len(fixes) - 1)
        for fix in fixes:
            if is_claim and isinstance(fix, Fix):
                device = plain_id(fix.device or "")
                n_chars = len(device)
            # Nobody knows how old a retained half without a time is.
            is_dated = isinstance(fix, Fix) and not (delivery.retained and fix.ts is None)
            if halves is not None and device and isinstance(fix, Fix) and is_dated:
                fix = halves.joined(device, fix, at_s=at_s)  # noqa: PLW2901  instead of its half
            checked = self._checked(fix, route, device, n_chars, retained=delivery.retained)
            if not isinstance(checked, Fix):
                self._ledger.settle(checked)
                self.inputs.settle(input_, checked)
                by = device if is_claim or topic == UNKNOWN else topic
                self._refused.add((by, input_, checked))
                continue
            number = UNKNOWN if is_claim else topic
            if number == UNKNOWN:
                stated.append(device)
            self._append(checked, out, message=message, input_=input_, sender=number)
            out.is_claim.append(is_claim)

    def _checked(
        self, fix: Fix | Outcome, route: Route, device: str, n_chars: int, *, retained: bool
    ) -> Fix | Outcome:
        """Return a fix where its device is, or why it is refused."""
        if not isinstance(fix, Fix):
            return fix
        if not 0 < n_chars <= self._limits.max_device_id_chars:
            return Outcome.INVALID__NO_DEVICE
        if retained and (fix.ts is None or fix.ts < 0):  # before it arrived at the broker
            return Outcome.INVALID__RETAINED
        if route.places is not None and device in route.places:
            lat, lon = route.places[device]
            return structs.replace(fix, lat=lat, lon=lon)
        return Outcome.INVALID__NO_FIX if isnan(fix.lat) else fix

    def _append(self, fix: Fix, out: _Lists, *, message: int, input_: int, sender: int) -> None:
        if fix.readings:
            self._take_readings(fix.readings, out)
        if fix.unusable:
            self._take_readings(dict.fromkeys(fix.unusable, nan), out)
        out.message.append(message)
        out.input.append(input_)
        out.sender.append(sender)
        out.ts.append(nan if fix.ts is None else fix.ts)
        out.lat.append(fix.lat)
        out.lon.append(fix.lon)
        out.zoneless.append(fix.zoneless)

    def _take_readings(self, readings: Mapping[str, float], out: _Lists) -> None:
        """Append the declared readings of the position that will be appended next."""
        for name, value in readings.items():
            attribute = self._attribute_of.get(name)
            if attribute is not None:
                out.reading_row.append(len(out.message))
                out.reading_attribute.append(attribute)
                out.reading_value.append(value)

    def _fixes(self, route: Route, delivery: Delivery) -> Sequence[Fix | Outcome]:
        """Return the positions of a message, or the one reason to reject it as a whole."""
        if len(delivery.payload) > self._limits.max_payload_bytes:
            return (Outcome.INVALID__TOO_LARGE,)
        fixes = route.decode(delivery.topic, delivery.payload)
        return fixes if len(fixes) <= self._limits.max_positions else (Outcome.INVALID__TOO_LARGE,)

    def _within_shares(
        self,
        rows: _Rows,
        messages: PackedDeliveries,
        topic: IntArray,
        at_s: FloatArray,
        names: list[str],
    ) -> _Rows:
        """Return the positions without those of ids that their topics must not name."""
        claims = np.flatnonzero(rows.is_claim)
        if not len(claims):
            return rows
        ids, topic = rows.sender[claims], topic[rows.message[claims]]
        ends = self._shares.ends(at_s[-1])
        if ends:
            self.senders.forbid()
        new = np.flatnonzero((self.senders.named_by(ids) != topic) | (topic == UNKNOWN))
        if not len(new):
            return rows
        admitted = np.ones(len(rows.message), np.bool_)
        bounds = messages.columns.bounds
        for i in new.tolist():
            row = claims[i]
            start, end = bounds[rows.message[row], :2].tolist()
            admitted[row] = self._shares.admits(
                messages.stream[start:end],
                device_of(self.senders, int(ids[i]), names),
                share=self._limits.max_ids_per_topic,
                at_s=float(at_s[rows.message[row]]),
            )
        if not ends:  # else some were counted before the count began anew
            new = new[admitted[claims[new]]]
            self.senders.allow(ids[new], topic[new])
        kept = np.flatnonzero(admitted)
        self._ledger.settle(Outcome.SUPPRESSED__OVER_SHARE, len(admitted) - len(kept))
        return rows if len(kept) == len(admitted) else rows.taken(kept)


def on_clock(ts: FloatArray, *, now: float, wall_ahead_s: float = 0.0) -> FloatArray:
    """Return times as unix seconds, by a clock that devices' clocks are ahead of.

    `ts`: unix seconds, NaN for none, below 0: so many seconds before `now`, shape (n,).
    """
    before = ts < 0
    if wall_ahead_s:
        ts = ts - np.where(before, 0.0, wall_ahead_s)
    return np.where(before, now + ts, ts) if before.any() else ts


def date_the_undated(
    ts: FloatArray, device: IntArray | Int32Array, *, since: float, now: float
) -> FloatArray:
    """Return the times with NaN replaced, those of each device spread over `(since, now]`.

    The last undated message of a device is its newest and gets `now`; those before it follow in
    order of arrival, at even distances. What a device gets does not depend on the others, so that
    it is the same wherever they are handled. If the clock did not advance, all get `now`.

    `ts`: unix seconds, NaN for none, in order of arrival; `device`: equal numbers for equal
    devices; shape (n,).
    """
    undated = np.flatnonzero(np.isnan(ts))
    if not len(undated):
        return ts
    order = undated[np.argsort(device[undated], kind="stable")]
    begins = np.flatnonzero(np.diff(device[order], prepend=device[order[0]] - 1))
    n = np.diff(np.append(begins, len(order)))
    turn = np.repeat(begins + n, n) - 1 - np.arange(len(order))
    dated = ts.copy()
    dated[order] = now - max(now - since, 0.0) * (turn / np.repeat(n, n))
    return dated
