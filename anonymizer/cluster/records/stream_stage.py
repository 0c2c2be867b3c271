"""Streams of records as a stage: raw parts in, classes of closed windows out.

A stage has all parts of its streams, from all sources and bridges, and does what one process does
(`pipeline/records`), with its state in the snapshot and the journal of the stage::

    bridges                          stage
       |---- Raw ---------------------->|   parts are placed; a tick that all have stated is over
       |                                |-- DueWindow to itself: the watermark has passed its end
       |                                |<- DueWindow: it is joined, anonymized, verified
       |                                |-- classes, to MQTT and to those who answer queries

Time is that of the inputs. received = published + suppressed + invalid + late + duplicate + held
holds after each of them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf

from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.raw_batches import (
    RAW,
    STATEMENTS,
    Raw,
    decode_raw,
    encode_out,
    in_parts,
)
from anonymizer.cluster.records.absent_vehicles import AbsentVehicles
from anonymizer.cluster.records.due_windows import DueWindow, decode_due, encode_due
from anonymizer.cluster.records.frontier import Frontier
from anonymizer.cluster.records.searches_by_work import by_work
from anonymizer.cluster.records.staged_stream import StagedStream
from anonymizer.cluster.records.stream_routing import together
from anonymizer.cluster.stage import Send, reading
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.records.anonymize_window import Closing, warm_up
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.flow import UNMATCHED
from anonymizer.pipeline.records.release_messages import (
    ReleasedClasses,
    encode_classes,
    encode_window,
)
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.settings import Settings


class StreamStage:
    """Runs streams that may read one message; most are alone.

    `secret` is the key of the digests of vehicles, and of the seeds.
    """

    def __init__(
        self, settings: Settings, streams: Sequence[Stream], *, number: int, secret: bytes
    ) -> None:
        self.number = number
        self._unmatched = Ledger()
        self._frontier = Frontier(wait_s=settings.cluster.wait_s)
        self._interval_s = settings.tick.interval_s
        self._now = -inf
        self._router = RecordRouter(
            [stream.settings for stream in streams],
            secret=secret,
            max_id_chars=settings.limits.max_device_id_chars,
        )
        zones = settings.device_zones
        self._absent = (
            AbsentVehicles(zones.filter_topic, partial(self._router.key, 0))
            if zones.enabled
            else None
        )
        self._streams = [
            StagedStream(
                stream, key=partial(self._router.key, i), limits=settings.limits, secret=secret
            )
            for i, stream in enumerate(streams)
        ]
        names = ("windows", "records", "classes", "unverified_classes")
        self._counts = dict.fromkeys(names, 0)

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
        return dict(self._counts)

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a bridge, or its own; return the messages to send in turn."""
        if value[:1] == RAW:
            with reading():
                raw = decode_raw(value)
            self._go_on(at_s)
            return list(self._read(raw))
        if value[:1] == STATEMENTS and self._absent is not None:
            with reading():
                raw = decode_raw(value, of=STATEMENTS)
            self._go_on(at_s)
            self._heed(self._absent, raw)
            return []
        with reading():
            due = decode_due(value)
            stream = self._streams[due.stream]
        self._go_on(at_s)
        closing = stream.close(due.window)
        return [] if closing is None else list(self._published(stream.stream, due.window, closing))

    def _go_on(self, at_s: float) -> None:
        """Take over the time of an input; with the first, sources begin to be waited for."""
        if self._now == -inf:
            for stream in self._streams:
                stream.windows.begin(at_s=at_s)
        self._now = max(self._now, at_s)

    def _heed(self, absent: AbsentVehicles, raw: Raw) -> None:
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
        if not self._frontier.passes(raw, now=self._now):
            return
        for number, stream in enumerate(self._streams):
            for window in stream.pass_tick(at_s=self._now):
                yield Send("stream", self.number, encode_due(DueWindow(number, window)))

    def _published(self, stream: Stream, window: int, closing: Closing) -> Iterator[Send]:
        """Yield a window for MQTT, and for those who answer queries."""
        name = stream.settings.name
        self._counts["windows"] += 1
        self._counts["records"] += len(closing.outcome)
        self._counts["classes"] += len(closing.messages)
        self._counts["unverified_classes"] += closing.n_unverified
        for part in in_parts(closing.messages):
            released = ReleasedClasses(name, window, [message.payload for message in part])
            yield Send("out", self.number, encode_out(part))
            yield Send("release", self.number, encode_classes(released))
        summary = {key: value for key, value in closing.summary.items() if key != "seconds"}
        span = stream.rule.span(window)
        release = PublishedWindow(name, window, *span, self._now, summary)
        yield Send("release", self.number, encode_window(release))

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw records: store it like them."""
        return pack_state(
            f"stream {self.number}",
            {
                "now": self._now,
                "unmatched": self._unmatched.state(),
                "frontier": self._frontier.state(),
                "absent": None if self._absent is None else self._absent.state(),
                "streams": [stream.state() for stream in self._streams],
                "counts": self._counts,
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same stage.

        Raises `ValueError` if it is of another stage, or of other streams.
        """
        state = unpack_state(f"stream {self.number}", snapshot)
        self._now = state["now"]
        self._unmatched.restore(state["unmatched"])
        self._frontier.restore(*state["frontier"])
        if self._absent is not None and state["absent"] is not None:
            self._absent.restore(state["absent"])
        for stream, of_stream in zip(self._streams, state["streams"], strict=True):
            stream.restore(of_stream)
        self._counts = dict(state["counts"])


def stream_stages(
    settings: Settings, streams: Sequence[Stream], *, secret: bytes
) -> Callable[[int], StreamStage]:
    """Return a function that makes the stage of a number; `secret` is the same for all."""
    members = together([stream.settings for stream in streams])

    def stage(number: int) -> StreamStage:
        own = [streams[i] for i in members[number]]
        return StreamStage(settings, own, number=number, secret=secret)

    return stage


def warm_up_stages(streams: Sequence[Stream]) -> None:
    """Compile what the first window of each stream needs, on a synthetic one.

    Kafka ends a transaction in which a stage compiles.
    """
    for stream in map(by_work, streams):
        some = stream.in_window(dict.fromkeys(stream.open_columns, "0123456789"))
        warm_up(some, WINDOW_MODELS[some.settings.model](some))
