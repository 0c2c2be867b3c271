"""A joiner as a stage: raw parts in, rows for the ranges of closed windows out.

A joiner has all parts of its vehicles, from all sources, and what is remembered of them from window
to window. It places parts as they come. What became of them it learns from the ranges, so that
received = published + suppressed + invalid + late + duplicate + held at every moment, in each
joiner and over all.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.raw_batches import RAW, STATEMENTS, Raw, decode_raw
from anonymizer.cluster.records.joined_stream import JoinedStream
from anonymizer.cluster.records.window_messages import (
    Close,
    Plan,
    RangeAnswer,
    Recall,
    Survey,
    TickState,
    decode,
    encode,
)
from anonymizer.cluster.records.window_ranges import stage_of, staged
from anonymizer.cluster.stage import Send, reading, refuse
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.positions.tick.device_zones import takes_no_part
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.settings import Settings
from anonymizer.settings.base import id_levels

UNMATCHED = ""
"""Name of the accounts of messages that belong to no stream."""


class Frontier:
    """The last tick that all bridges have stated.

    `n_behind`: by how many ticks the newest statement is before it, because a clock was ahead.
    A bridge that has stated nothing for `wait_s` seconds, of the inputs' time, is not waited for.
    """

    def __init__(self, *, wait_s: float) -> None:
        self._wait_s = wait_s
        self.tick: int | None = None
        self.n_behind = 0
        self._stated: dict[str, tuple[int, float]] = {}

    def passes(self, raw: Raw, *, now: float) -> bool:
        """Take what a bridge states; return whether the frontier has moved."""
        before = self._stated.get(raw.bridge, (raw.tick, now))[0]
        self._stated[raw.bridge] = max(before, raw.tick), now
        self.n_behind = 0 if self.tick is None else max(0, self.tick - raw.tick)
        if raw.last:
            del self._stated[raw.bridge]
        since = now - self._wait_s
        self._stated = {name: at for name, at in self._stated.items() if at[1] >= since}
        tick = min((tick for tick, _ in self._stated.values()), default=raw.tick)
        if self.tick is not None and tick <= self.tick:
            return False
        self.tick = tick
        return True

    @property
    def bridges(self) -> Collection[str]:
        """The bridges that are waited for."""
        return self._stated.keys()

    def state(self) -> list[object]:
        """Return all that changes."""
        return [self.tick, [[name, *at] for name, at in self._stated.items()]]

    def restore(self, tick: int | None, stated: Sequence[tuple[str, int, float]]) -> None:
        """Go on from a state."""
        self.tick, self._stated = tick, {name: (last, at) for name, last, at in stated}


class Absent:
    """The vehicles that take no part, by the statements that bridges pass on.

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


class JoinerStage:
    """Runs one joiner.

    `secret` is the key of the digests of vehicles, and of the seeds.
    """

    def __init__(
        self, settings: Settings, streams: Sequence[Stream], *, number: int, secret: bytes
    ) -> None:
        self.number = number
        self._n_range_stages = settings.cluster.n_parts
        self._unmatched = Ledger()
        self._frontier = Frontier(wait_s=settings.cluster.wait_s)
        self._interval_s = settings.tick.interval_s
        self._now = -float("inf")
        self._router = RecordRouter(
            [stream.settings for stream in streams],
            secret=secret,
            max_id_chars=settings.limits.max_device_id_chars,
        )
        zones = settings.device_zones
        self._absent = (
            Absent(zones.filter_topic, partial(self._router.key, 0)) if zones.enabled else None
        )
        self._streams = [
            JoinedStream(
                stream,
                i,
                joiner=number,
                n_joiners=settings.cluster.n_parts,
                key=partial(self._router.key, i),
                limits=settings.limits,
                records_per_range=settings.cluster.records_per_range,
                secret=secret,
            )
            for i, stream in enumerate(streams)
        ]

    @property
    def ledgers(self) -> list[tuple[str, Ledger, int]]:
        """Name, accounts and held parts of each stream, and of messages that belong to none."""
        own = [(each.stream.settings.name, each.ledger, each.n_held) for each in self._streams]
        return [*own, (UNMATCHED, self._unmatched, 0)]

    @property
    def behind_s(self) -> float:
        """Seconds for which no window closes, because a clock was ahead by as much."""
        return self._frontier.n_behind * self._interval_s

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        return {}

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a bridge, a planner or a range; return the messages to send in turn."""
        if value[:1] == RAW:
            with reading():
                raw = decode_raw(value)
            self._now = max(self._now, at_s)
            return list(self._read(raw))
        if value[:1] == STATEMENTS and self._absent is not None:
            with reading():
                raw = decode_raw(value, of=STATEMENTS)
            self._now = max(self._now, at_s)
            self._heed(self._absent, raw)
            return []
        with reading():
            message = decode(value)
            stream = self._streams[message.stream]
            if not isinstance(message, Close | Plan | RangeAnswer | Recall):
                refuse()
        self._now = max(self._now, at_s)
        if isinstance(message, Close):
            return _surveyed(stream.close(message))
        if isinstance(message, Plan):
            sends = [
                Send(
                    "range", stage_of(rows.stream, rows.range_, self._n_range_stages), encode(rows)
                )
                for rows in stream.plan(message)
            ]
            return sends + _surveyed(stream.next_survey())
        if isinstance(message, RangeAnswer):
            stream.book(message)
            return _surveyed(stream.next_survey())
        return [Send("planner", message.stream, encode(stream.held(message)))]

    def _heed(self, absent: Absent, raw: Raw) -> None:
        """Erase what is held of vehicles that take no part, and refuse them from now on."""
        said = absent.heed(raw, bridges=self._frontier.bridges)
        for vehicle, is_absent in said.items():
            for number, stream in enumerate(self._streams):
                key = self._router.key(number, vehicle)
                if not is_absent:
                    stream.readmit(key)
                elif key:
                    stream.withdraw(key)

    def _read(self, raw: Raw) -> Iterator[Send]:
        self._router.forget(at_s=self._now)
        for arrivals in raw.arrivals:
            parts, others = self._router.divided(PackedDeliveries.of(arrivals.deliveries))
            for (_, outcome), n in others.items():  # of no stream: nothing is known to be repeated
                self._unmatched.receive(n)
                self._unmatched.settle(outcome, n)
            for number, of_stream in parts.items():
                self._streams[number].place(of_stream, now=arrivals.at_s, at_s=self._now)
        if not self._frontier.passes(raw, now=self._now) or self._frontier.tick is None:
            return
        for number, stream in enumerate(self._streams):
            state = TickState(number, self.number, self._frontier.tick, self._now, *stream.seen())
            yield Send("planner", number, encode(state))

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw records: store it like them."""
        return pack_state(
            f"joiner {self.number}",
            {
                "now": self._now,
                "unmatched": self._unmatched.state(),
                "frontier": self._frontier.state(),
                "absent": None if self._absent is None else self._absent.state(),
                "streams": [stream.state() for stream in self._streams],
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same joiner."""
        state = unpack_state(f"joiner {self.number}", snapshot)
        self._now = state["now"]
        self._unmatched.restore(state["unmatched"])
        self._frontier.restore(*state["frontier"])
        if self._absent is not None and state["absent"] is not None:
            self._absent.restore(state["absent"])
        for stream, of_stream in zip(self._streams, state["streams"], strict=True):
            stream.restore(of_stream)


def _surveyed(survey: Survey | None) -> list[Send]:
    return [] if survey is None else [Send("planner", survey.stream, encode(survey))]


def joiner_stages(
    settings: Settings, streams: Sequence[Stream], *, secret: bytes
) -> Callable[[int], JoinerStage]:
    """Return a function that makes the joiner of a number.

    `secret` is the same for all stages. SettingsError if a stream asks for what there is not in a
    cluster.
    """
    those = staged(streams)
    return lambda number: JoinerStage(settings, those, number=number, secret=secret)
