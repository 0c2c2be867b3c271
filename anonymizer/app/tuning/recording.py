"""Recorded messages of a stream, from a file or a broker, joined as the gateway joins them."""

import asyncio
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import pack
from typing import NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.app.tuning.bench import Bench, Trained, Window, split_windows
from anonymizer.domain.criteria.registry import BY_D
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.records import Records
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.files.tables import KNOWN_ENDINGS, read_table
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.anonymize_window import complete
from anonymizer.pipeline.records.declaration import MOST_CLASSES, Stream
from anonymizer.pipeline.records.join import Joined, OpenRecords
from anonymizer.pipeline.records.own_records import own_records
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.pipeline.records.topics import RecordRoute, RecordRouter, topic_filter
from anonymizer.settings import BrokerSettings, LimitSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of

_KEY = b"tune"
"""Key of digests that are never stored: equal records give equal results."""
_ANY_STREAM = ""
"""The key of a vehicle is the same in all streams, so that an audit of two can follow it."""
_NO_TOPIC = "no_topic_of_the_stream"
_CUT_OFF = "records_of_windows_not_heard_whole"
_LEAST_WITH_ENDS = 3


@discreet
class RecordedMessage(NamedTuple):
    """One message of a topic."""

    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordedWindows:
    """Windows of a stream, the oldest first."""

    number: tuple[int, ...]
    """Number of each window."""
    windows: tuple[Joined, ...]
    """The joined records of each window."""
    left_out: dict[str, int]
    """Number of parts and records that are in no window, by reason."""

    def without_ends(self) -> "RecordedWindows":
        """Return the same without the first and the last window, if there are others.

        Neither was received in full by a listener that starts and stops at any time.
        """
        if len(self.windows) < _LEAST_WITH_ENDS:
            return self
        cut = self.windows[0].n + self.windows[-1].n
        left_out = {**self.left_out, _CUT_OFF: cut}
        return RecordedWindows(self.number[1:-1], self.windows[1:-1], left_out)


def read_messages(path: Path) -> Iterator[RecordedMessage]:
    """Yield the messages of a file: JSON lines of `topic` and `payload`, or a table of the two.

    A payload is an object, or text that contains one.

    Raises `InputError` if the file cannot be read, or a line is invalid; the message has its
    number.
    """
    if path.name.lower().endswith(KNOWN_ENDINGS):
        frame = read_table(path, ["topic", "payload"]).frame
        for row, (topic, payload) in enumerate(frame.iter_rows(), start=1):
            if not isinstance(topic, str) or not isinstance(payload, str | bytes):
                raise InputError(f"{path}: row {row}: must have topic and payload")
            yield RecordedMessage(topic, payload.encode() if isinstance(payload, str) else payload)
        return
    read = msgspec.json.Decoder(_Line).decode
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    try:
                        message = read(line)
                        yield RecordedMessage(message.topic, _payload(message.payload))
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                        raise InputError(
                            f"{path}: line {number}: must be JSON with topic and payload"
                        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


class _Line(msgspec.Struct):
    topic: str
    payload: msgspec.Raw


def _payload(raw: msgspec.Raw) -> bytes:
    payload = bytes(raw)
    return msgspec.json.decode(payload, type=str).encode() if payload.startswith(b'"') else payload


def key_of(vehicle: str, *, limits: LimitSettings) -> bytes:
    """Return the key that stands for the id of a vehicle in `joined_windows`; empty if unusable."""
    router = RecordRouter(
        [], secret=_KEY, max_id_chars=limits.max_device_id_chars, names=[_ANY_STREAM]
    )
    return router.key(0, plain_id(vehicle))


def joined_windows(
    stream: Stream, messages: Iterable[RecordedMessage], *, limits: LimitSettings
) -> RecordedWindows:
    """Return the windows of messages. No message is late, because all are present.

    Notes
    -----
    A record without a part from a needed source is left out, as in the gateway.
    """
    left_out: Counter[str] = Counter()
    records = OpenRecords(
        n_sources=len(stream.settings.sources),
        limit=sys.maxsize,
        apart=stream.settings.per == "record",
    )
    for part in _parts(stream, messages, limits, left_out):
        settled, _ = records.put(part)
        if settled != Outcome.HELD:
            left_out[_named(settled)] += 1
    return _windows(stream, records, left_out)


def any_state(
    stream: Stream, messages: Iterable[RecordedMessage], *, limits: LimitSettings
) -> RecordedWindows:
    """Return the windows of messages with each record as it was after each of its parts.

    Any of these may be the one that the gateway had when the window closed: what came later was
    late. The parts are those that came by then, in the order of the recording.
    """
    n_sources = len(stream.settings.sources)
    states = OpenRecords(n_sources=n_sources, limit=sys.maxsize, apart=False)
    apart, now = stream.settings.per == "record", dict[tuple[int, bytes], dict[int, PartRow]]()
    for part in _parts(stream, messages, limits, Counter()):
        key = part.vehicle + pack("<d", part.ts) * apart
        parts = now.setdefault((part.window, key), {})
        known = parts.get(part.source)
        if known is None or known.ts <= part.ts:
            parts[part.source] = part
            for each in parts.values():
                states.put(each._replace(vehicle=key + pack("<q", part.number)))
    return _windows(stream, states, Counter())


def _parts(
    stream: Stream,
    messages: Iterable[RecordedMessage],
    limits: LimitSettings,
    left_out: Counter[str],
) -> Iterator[PartRow]:
    """Yield the parts in messages; what is none is counted by its reason."""
    router = RecordRouter(
        [stream.settings],
        secret=_KEY,
        max_id_chars=limits.max_device_id_chars,
        names=[_ANY_STREAM],
    )
    for number, message in enumerate(messages, start=1):
        routes = router.routes_of(message.topic)
        if not routes or not (routes[0].vehicle or routes[0].topic):
            left_out[_NO_TOPIC] += 1
            continue
        (route,) = routes
        if len(message.payload) > limits.max_payload_bytes:
            left_out[_named(Outcome.INVALID__TOO_LARGE)] += 1
            continue
        part = _part(stream, route, message.payload, router)
        if isinstance(part, Outcome):
            left_out[_named(part)] += 1
            continue
        vehicle, ts, cells = part
        window = stream.rule.window_of(ts)
        yield PartRow(number, window, vehicle, route.source, ts, cells)


def _windows(stream: Stream, records: OpenRecords, left_out: Counter[str]) -> RecordedWindows:
    numbers = sorted(records.windows())
    missing = [attribute.missing for attribute in stream.attributes]
    joined = [
        _complete(stream, records.take(w, columns_of=stream.columns_of, missing=missing), left_out)
        for w in numbers
    ]
    return RecordedWindows(tuple(numbers), tuple(joined), dict(sorted(left_out.items())))


def _part(
    stream: Stream, route: RecordRoute, payload: bytes, router: RecordRouter
) -> tuple[bytes, float, bytes] | Outcome:
    """Return the key of the vehicle, the time and the cells of a part, or why it is none."""
    reader = stream.readers[route.source]
    if not route.topic:
        part = reader.read(payload)
        return part if isinstance(part, Outcome) else (route.vehicle, *part)
    named = reader.read_named(payload)
    if isinstance(named, Outcome):
        return named
    vehicle = router.key(route.stream, plain_id(named[0]))
    return (vehicle, *named[1]) if vehicle else Outcome.INVALID__NO_DEVICE


def _complete(stream: Stream, joined: Joined, left_out: Counter[str]) -> Joined:
    outcome, kept = complete(stream, joined)
    for value, n in Counter(np.delete(outcome, kept).tolist()).items():
        left_out[_named(Outcome(value))] += n
    return Joined(
        joined.cells[kept],
        [joined.vehicle[i] for i in kept.tolist()],
        joined.person[kept],
        joined.n_parts[kept],
        joined.reported[kept],
    )


def bench_of_stream(
    stream: Stream, recorded: RecordedWindows, trained: Trained, *, seed: int
) -> Bench:
    """Return the bench of a stream; each window is anonymized separately, as in the gateway.

    Raises
    ------
    InputError
        If no window has a record, or there are too few to hold some out.
    SettingsError
        If the target is not a sensitive attribute or measure, or has too many values.
    """
    settings, column = stream.settings, target_column(stream, trained.target)
    names = [attribute.name for attribute in stream.attributes]
    if column is None and settings.target in names:  # no model is tested, but the tree learns it
        column = names.index(settings.target)
    windows = [_window(stream, joined, column, seed) for joined in recorded.windows if joined.n]
    if not windows:
        raise InputError(f"streams: {stream.settings.name}: no record is in any window")
    kept: tuple[Window, ...] = tuple(windows)
    test_windows: tuple[Window, ...] = ()
    if trained.target is not None:
        kept, test_windows = split_windows(windows, share=trained.held_out, seed=seed)
        settings = settings.model_copy(update={"target": trained.target})
    asked, counts_alone = stream.settings.promise, MODELS[settings.model].counts_alone
    return Bench(
        schema=stream.schema,
        windows=kept,
        test_windows=test_windows,
        base=stream.promise,
        # It has no such bound, but other models have.
        stated={} if counts_alone else {each.name: getattr(asked, each.name) for each in BY_D},
        # Without readers: they cannot be sent to another process.
        stream=replace(stream, readers=(), settings=settings),
        learner=trained.learner,
        seed=seed,
    )


def _window(stream: Stream, joined: Joined, column: int | None, seed: int) -> Window:
    """Return a window of one record of each vehicle, drawn as in the gateway."""
    own = own_records(joined.person, joined.vehicle, seed)
    first, behind = len(stream.schema.qis), len(stream.schema.qis) + len(stream.schema.sensitive)
    cells = joined.cells.copy()
    cells[:, first:behind] = stream.schema_codes(cells[:, first:behind])
    records = Records(
        np.ascontiguousarray(cells[:, :first]),
        np.ascontiguousarray(cells[:, first:behind]),
        joined.person,
    )
    learned = np.zeros(records.n, np.int32) if column is None else cells[:, column]
    return Window(records, np.ascontiguousarray(learned)).only(np.flatnonzero(own))


def target_column(stream: Stream, target: str | None) -> int | None:
    """Return the column of the target, or None.

    Raises `SettingsError` if it is not a sensitive attribute or measure, or has too many values.
    """
    if target is None:
        return None
    attributes = (*stream.schema.qis, *stream.schema.sensitive, *stream.measures)
    names = [attribute.name for attribute in attributes]
    if target not in names[len(stream.schema.qis) :]:
        raise SettingsError("target: must be a sensitive attribute or a measure of the stream")
    column = names.index(target)
    if attributes[column].size > MOST_CLASSES + 1:  # one for the missing marker
        raise SettingsError(f"target: has more than {MOST_CLASSES} values")
    return column


def _named(outcome: Outcome) -> str:
    return outcome.name.lower().replace("__", "_")


MOST_MESSAGES = 2_000_000
"""Most messages to receive: then the tap ends."""


async def tap(
    broker: BrokerSettings, stream: Stream, *, seconds: float, patience_s: float = 15.0
) -> list[RecordedMessage]:
    """Return the messages on the topics of a stream in the next seconds.

    Parameters
    ----------
    patience_s
        Longest time to connect to the broker.

    Raises
    ------
    TransportError
        If the broker cannot be reached.

    Notes
    -----
    Listens next to a running gateway, with its own client id and at QoS 0: it takes no message
    from another client, and the broker stores none for it. Nothing is stored.
    """
    heard: list[RecordedMessage] = []
    full = asyncio.Event()

    def deliver(deliveries: Sequence[Delivery]) -> None:
        room = MOST_MESSAGES - len(heard)
        live = (each for each in deliveries if not each.retained)
        heard.extend([RecordedMessage(each.topic, each.payload) for each in live][:room])
        if len(heard) >= MOST_MESSAGES:
            full.set()

    here = broker.model_copy(update={"session_expiry_s": 0, "client_id": "anonymizer"})
    link = MqttLink(
        here,
        client_id=client_id_of(here, key=secrets.token_bytes(32), role="tune"),
        subscriptions=[(topic_filter(source), 0) for source in stream.settings.sources],
        deliver=deliver,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="tap")
        try:
            async with asyncio.timeout(patience_s):
                await link.until_connected()
            await asyncio.wait([group.create_task(full.wait(), name="full")], timeout=seconds)
        except TimeoutError:
            reached = False
        else:
            reached = True
        full.set()
        await link.close()
    if not reached:
        raise TransportError(f"the broker cannot be reached within {patience_s:g} s")
    return heard
