"""Current groups: what has been published and still holds, for subscribers that come later.

It contains published messages and nothing else, so it cannot tell more than they do.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from anonymizer.pipeline.ports import PART_BYTES, Outgoing

FORM_VERSION = 1


class _Message(msgspec.Struct, frozen=True):
    """A message about a group, or about one device."""

    group: str
    time: float
    until: float
    pseudonyms: tuple[str, ...] = ()
    pseudonym: str = ""


class _Kept(msgspec.Struct, eq=False):
    """A published message, and the pseudonyms that no newer message names."""

    until: float
    payload: bytes
    names: set[str]


_DECODE = msgspec.json.Decoder(_Message).decode


class LiveMessages:
    """The newest published message about each pseudonym.

    `grace_s`: how long a message is kept beyond its `until`: the next one may be on its way.
    """

    def __init__(self, *, grace_s: float) -> None:
        self._grace_s = grace_s
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._holder_of: dict[str, tuple[str, str]] = {}

    def see(self, messages: Iterable[Outgoing]) -> None:
        """Take in published messages, in their order."""
        for message in messages:
            body = _DECODE(message.payload)
            key = (body.group, body.pseudonym)
            names = set(body.pseudonyms) or {body.pseudonym}
            for name in names:
                self._leave(name, key)
                self._holder_of[name] = key
            self._kept.pop(key, None)  # the newest message comes last
            self._kept[key] = _Kept(body.until, message.payload, names)

    def _leave(self, name: str, key: tuple[str, str]) -> None:
        """Take a pseudonym out of the message that names it, unless that is to be replaced."""
        holder = self._holder_of.get(name)
        if holder is None or holder == key:
            return
        kept = self._kept[holder]
        kept.names.discard(name)
        if not kept.names:
            del self._kept[holder]

    def payloads(self, *, now: float) -> list[bytes]:
        """Return the messages that hold at this time, in order, and forget the others."""
        return [payload for _, payload in self.held(now=now)]

    def held(self, *, now: float) -> list[tuple[int, bytes]]:
        """Return the same, each after the number of pseudonyms that no newer message names."""
        for key in [k for k, kept in self._kept.items() if kept.until + self._grace_s < now]:
            for name in self._kept.pop(key).names:
                del self._holder_of[name]
        return [(len(kept.names), kept.payload) for kept in self._kept.values()]

    def clear(self) -> None:
        """Forget all messages."""
        self._kept.clear()
        self._holder_of.clear()

    def state(self) -> list[Any]:
        """Return what changes with each message."""
        return [[*key, kept.until, kept.payload, sorted(kept.names)]
                for key, kept in self._kept.items()]  # fmt: skip

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self.clear()
        for group, pseudonym, until, payload, names in state:
            self._kept[group, pseudonym] = _Kept(until, payload, set(names))
            self._holder_of |= dict.fromkeys(names, (group, pseudonym))


def together(held: Iterable[Sequence[bytes]]) -> list[bytes]:
    """Return the messages that hold together, given those that each of several publishers states.

    Of two messages that name a pseudonym the one with the later time counts.
    """
    payloads = sorted((each for of in held for each in of), key=lambda each: _DECODE(each).time)
    live = LiveMessages(grace_s=math.inf)
    live.see(Outgoing("", payload) for payload in payloads)
    return live.payloads(now=0.0)


class CurrentParts:
    """The retained messages that state what holds.

    They are on `topic` with `/0`, `/1`, ... behind it. `n_parts` are those of the last call of
    `messages`, which the broker keeps.
    """

    def __init__(self, *, topic: str, network: str) -> None:
        self._topic = topic
        self._network = network
        self.n_parts = 0

    def messages(
        self, payloads: Sequence[bytes], *, now: float, part_bytes: int = PART_BYTES
    ) -> list[Outgoing]:
        """Return the retained messages that state what holds at this time.

        `now` is in unix seconds, by the clock of the published times. Each part has at most
        `part_bytes` unless a single message needs more. At least one part, and an empty message for
        each part of the previous call that is no longer needed, which makes the broker forget it.
        """
        parts = list(self._parts(payloads, part_bytes))
        found = [
            Outgoing(f"{self._topic}/{i}", self._body(part, i, len(parts), now), retain=True)
            for i, part in enumerate(parts)
        ]
        stale = range(len(parts), self.n_parts)
        self.n_parts = len(parts)
        return found + [Outgoing(f"{self._topic}/{i}", b"", retain=True) for i in stale]

    def _parts(self, payloads: Sequence[bytes], part_bytes: int) -> Iterator[list[bytes]]:
        room = part_bytes - len(self._body([], 0, 10**6, 1e10))
        part: list[bytes] = []
        used = 0
        for payload in payloads:
            if part and used + len(payload) + 1 > room:
                yield part
                part, used = [], 0
            part.append(payload)
            used += len(payload) + 1
        yield part

    def _body(self, part: list[bytes], number: int, n_parts: int, now: float) -> bytes:
        head = msgspec.json.encode(
            {
                "v": FORM_VERSION,
                "time": round(now, 3),
                "network": self._network,
                "part": number,
                "of": n_parts,
            }
        )
        return head[:-1] + b',"groups":[' + b",".join(part) + b"]}"


class CurrentGroups:
    """What one process has published and still holds."""

    def __init__(self, *, topic: str, network: str, grace_s: float) -> None:
        self.topic = topic
        self._live = LiveMessages(grace_s=grace_s)
        self._parts = CurrentParts(topic=topic, network=network)

    def see(self, messages: Iterable[Outgoing]) -> None:
        """Take in published messages, in their order."""
        self._live.see(messages)

    def messages(self, *, now: float, part_bytes: int = PART_BYTES) -> list[Outgoing]:
        """Return the retained messages that state what holds at this time, unix seconds."""
        return self._parts.messages(self._live.payloads(now=now), now=now, part_bytes=part_bytes)

    def close(self, *, now: float) -> list[Outgoing]:
        """Return the retained messages that state that no group is left."""
        self._live.clear()
        return self.messages(now=now)
