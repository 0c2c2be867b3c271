"""Dumps of MQTT: what `mosquitto_sub` printed of the topics of inputs, read as a trace.

Each line is a message: `-v` prints topic and payload, `-F '%U %t %p'` (or `%I`) a time before them,
and `-F %j` or `%J` an object. The inputs of the settings say what is in it, as for the gateway.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import polars as pl
from msgspec import Raw

from anonymizer.codecs.times import unix_s
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import MOTION, Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.traces import KNOWN_ENDINGS, TRACE_SCHEMA, trace_of
from anonymizer.pipeline.positions.decode.halves import Halves
from anonymizer.pipeline.positions.decode.topics import Route, TopicRouter

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_TRIED = 20
"""Lines that tell whether a file is a dump."""
_LINE = re.compile(rb"(?:(\d{9,10}(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+) )?(\S+) (.+)", re.DOTALL)


@discreet
class _Printed(msgspec.Struct):
    topic: str
    payload: Raw
    tst: str | None = None


@discreet
class _Message(NamedTuple):
    """A message; `arrival_s` is NaN where nobody printed it."""

    topic: str
    payload: bytes
    arrival_s: float


_PRINTED = msgspec.json.Decoder(_Printed)
_TEXT = msgspec.json.Decoder(str)


def is_dump(path: Path, settings: "Settings") -> bool:
    """Return whether the first lines of a file are messages; False for tables by their ending."""
    if path.name.lower().endswith((*KNOWN_ENDINGS, ".gz")):
        return False
    router = TopicRouter(settings.inputs)
    try:
        with path.open("rb") as lines:
            first = [_message_of(line) for line in islice(_stated(lines), _TRIED)]
    except OSError:
        return False
    return any(
        each is not None and (router.match(each.topic) or each.payload[:1] in {b"{", b"["})
        for each in first
    )


def read_dump(
    path: Path,
    settings: "Settings",
    *,
    secrets: Mapping[Path, Sequence[bytes]] = MappingProxyType({}),
) -> Trace:
    """Read a dump of messages; about 10 µs each, in memory.

    Parameters
    ----------
    settings
        Its inputs read the messages, and its readings are read.
    secrets
        Of inputs with `key_file`, by the file.

    Raises
    ------
    InputError
        If no message is a position with a time. The message tells what to do.
    """
    names = list(dict.fromkeys([*(each.name for each in settings.readings), *MOTION]))
    reader = _Reader(settings, secrets)
    with path.open("rb") as lines:
        found = [
            (device, at, fix.lat, fix.lon, *((fix.readings or {}).get(each) for each in names))
            for line in _stated(lines)
            for device, at, fix in reader.positions(line)
        ]
    if not found:
        raise InputError(f"{path}: {reader.why_none()}")
    schema = TRACE_SCHEMA | dict.fromkeys(names, pl.Float64)
    frame = pl.DataFrame(found, schema=schema, orient="row")
    trace = trace_of(frame, readings=[each.name for each in settings.readings], path=path)
    return replace(trace, n_unusable=reader.n_refused, read_as=(reader.account(len(found)),))


def _stated(lines: Iterator[bytes]) -> Iterator[bytes]:
    return (line for each in lines if (line := each.strip(b"\r\n")))


def _message_of(line: bytes) -> _Message | None:
    """Return the message that a line is, None if it is none."""
    if line.startswith(b"{"):
        try:
            said = _PRINTED.decode(line)
            payload = bytes(said.payload)
            if payload.startswith(b'"'):
                payload = _TEXT.decode(payload).encode()
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        return _Message(said.topic, payload, _seconds(said.tst or ""))
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    at, topic, payload = found.groups()
    return _Message(topic.decode("utf-8", "replace"), payload, _seconds((at or b"").decode()))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        found = unix_s(re.sub(r"Z(?=[+-])", "", text))  # Mosquitto 2.0: ...00.123456Z+0100
        return nan if found is None else found


class _Reader:
    """Reads messages as the inputs of the settings say, and counts what cannot be used."""

    def __init__(self, settings: "Settings", secrets: Mapping[Path, Sequence[bytes]]) -> None:
        self._router = TopicRouter(settings.inputs, secrets=secrets)
        self._route_of: dict[str, Route | None] = {}
        self._halves: dict[str, Halves] = {}
        self._refused: Counter[str] = Counter()
        self._n_messages = 0

    def positions(self, line: bytes) -> Iterator[tuple[str, float, Fix]]:
        """Yield device, time (unix seconds) and fix of each position in a line."""
        self._n_messages += 1
        message = _message_of(line)
        if message is None:
            self._refused["no message"] += 1
            return
        topic = message.topic
        if topic not in self._route_of:
            self._route_of[topic] = self._router.find(topic)
        route = self._route_of[topic]
        if route is None:
            self._refuse(Outcome.INVALID__UNKNOWN_TOPIC)
            return
        for fix in route.decode(topic, message.payload):
            yield from self._position(route, fix, message.arrival_s)

    def _position(
        self, route: Route, fix: Fix | Outcome, arrival_s: float
    ) -> Iterator[tuple[str, float, Fix]]:
        if isinstance(fix, Outcome):
            self._refuse(fix)
            return
        device = plain_id(fix.device or "") if route.device is None else route.device
        if not device:
            self._refuse(Outcome.INVALID__NO_DEVICE)
            return
        at = arrival_s if fix.ts is None else fix.ts
        if isnan(at):
            self._refused["no time"] += 1
            return
        if route.join_s:
            whole = self._halves.setdefault(
                device, Halves(route.join_s, by_arrival=route.bare is not None)
            ).joined(device, fix, at_s=at)
            if isinstance(whole, Outcome):
                self._refuse(whole)
                return
            fix = whole
        if isnan(fix.lat):
            self._refuse(Outcome.INVALID__NOT_A_POSITION)
            return
        yield device, at, fix

    def _refuse(self, why: Outcome) -> None:
        self._refused[why.label[1].replace("_", " ") or why.label[0]] += 1

    @property
    def n_refused(self) -> int:
        """How many messages, or positions of one, were of no use."""
        return self._refused.total()

    def account(self, n_positions: int) -> str:
        """Return how many messages there were, and what became of them."""
        refused = ", ".join(f"{n:,} {why}" for why, n in self._refused.most_common())
        more = f"; not used: {refused}" if refused else ""
        return f"{self._n_messages:,} messages of MQTT with {n_positions:,} positions{more}"

    def why_none(self) -> str:
        """Return what to do, as there is no position at all."""
        why, _ = self._refused.most_common(1)[0] if self._refused else ("", 0)
        if why == "no time":
            return "payloads state no time: print that of arrival, mosquitto_sub -F '%U %t %p'"
        if why == "unknown topic":
            return "no input has these topics: state --config with [[inputs]] that read them"
        return f"no message is a position: {self.account(0)}"
