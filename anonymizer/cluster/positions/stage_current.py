"""Current groups over several districts: each states what holds in it, and one publishes it all.

At every interval, a lane states the messages that hold. One of the lanes publishes them when it has
heard all of the others, in the parts that one process publishes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.outputs.current.current_groups import (
    CurrentParts,
    LiveMessages,
    together,
)
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings

CURRENT = b"N"
"""First byte of an encoded `StatedPiece`."""
COLLECTING_LANE = 0
"""The district that publishes what all state."""
_PIECE_BYTES = 512 * 1024
"""Of the messages in one `StatedPiece`, unless one is larger: Kafka takes 1 MiB by default."""
_NEVER = -(1 << 62)


@discreet
class StatedPiece(NamedTuple):
    """A piece of what holds in a district.

    `lane`, `turn`: number of the district and of the interval; `at_s`: when it holds, unix seconds;
    `is_last`: no other piece of the same follows.
    """

    lane: int
    turn: int
    at_s: float
    is_last: bool
    payloads: Sequence[bytes]


_ENCODER = msgspec.msgpack.Encoder()
_PIECES = msgspec.msgpack.Decoder(StatedPiece)


def encode_stated(stated: StatedPiece) -> bytes:
    """Return a piece as bytes."""
    return CURRENT + _ENCODER.encode(stated)


def decode_stated(value: bytes, *, n_lanes: int) -> StatedPiece:
    """Return the piece that was encoded.

    Raises `ValueError` if it is none.
    """
    try:
        stated = _PIECES.decode(memoryview(value)[1:])
    except (ValueError, msgspec.MsgspecError):
        stated = None
    if value[:1] != CURRENT or stated is None or not 0 <= stated.lane < n_lanes:
        raise ValueError("this states no messages") from None
    return stated


class LaneCurrent:
    """What holds in one district."""

    def __init__(self, settings: Settings, number: int) -> None:
        self._every_s = settings.current.every_s
        self._number = number
        self._live = LiveMessages(grace_s=2 * settings.tick.interval_s)
        self._turn = _NEVER

    def see(self, messages: Iterable[Outgoing], *, now: float) -> Iterator[StatedPiece]:
        """Take in the messages of a tick; yield what holds if an interval has begun.

        `now`: unix seconds, by the clock of the published times.
        """
        self._live.see(messages)
        turn = int(now // self._every_s)
        if turn > self._turn:
            self._turn = turn
            payloads = self._live.payloads(now=now)
            piece = np.cumsum([0, *map(len, payloads)])[:-1] // _PIECE_BYTES
            cuts = [*(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(payloads)]
            for first, end in zip([0, *cuts], cuts, strict=False):
                is_last = end == len(payloads)
                yield StatedPiece(self._number, turn, now, is_last, payloads[first:end])

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {"turn": self._turn, "live": self._live.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._turn = state["turn"]
        self._live.restore(state["live"])


class CollectedCurrent:
    """What holds in all districts, and the retained messages that state it."""

    def __init__(self, settings: Settings, network: RoadNetwork) -> None:
        self._parts = CurrentParts(topic=settings.topics.current, network=network_version(network))
        self.n_lanes = n_lanes = settings.region.districts
        self._coming: list[list[bytes]] = [[] for _ in range(n_lanes)]
        """The pieces of each district of a turn that is not complete."""
        self._stated: list[dict[int, tuple[float, list[bytes]]]] = [{} for _ in range(n_lanes)]
        """When and what each district has stated, by turn; from the last one published on."""
        self._last = [_NEVER] * n_lanes
        self._published = _NEVER

    def take(self, stated: StatedPiece) -> list[Outgoing]:
        """Take in a piece; return the messages of all intervals that every district has reached.

        Those of a district come in order, and some again.
        """
        lane, turn = stated.lane, stated.turn
        if turn <= self._last[lane]:
            return []
        self._coming[lane] += stated.payloads
        if not stated.is_last:
            return []
        self._stated[lane][turn] = stated.at_s, self._coming[lane]
        self._coming[lane], self._last[lane] = [], turn
        turns = {each for of in self._stated for each in of}
        due = sorted(each for each in turns if self._published < each <= min(self._last))
        # Before the first turn of one of them, it is not known what holds there.
        due = [each for each in due if all(min(of) <= each for of in self._stated)]
        return [message for each in due for message in self._publish(each)]

    def _publish(self, turn: int) -> list[Outgoing]:
        self._published = turn
        hold = []
        for lane, of in enumerate(self._stated):
            newest = max(each for each in of if each <= turn)
            self._stated[lane] = {each: of[each] for each in of if each >= newest}
            hold.append(of[newest])
        payloads = together(each for _, each in hold)
        return self._parts.messages(payloads, now=max(at_s for at_s, _ in hold))

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece."""
        return {
            "coming": self._coming,
            "stated": [[[turn, *said] for turn, said in of.items()] for of in self._stated],
            "last": self._last,
            "published": [self._published, self._parts.n_parts],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._coming, self._last = state["coming"], state["last"]
        self._stated = [
            {turn: (at_s, payloads) for turn, at_s, payloads in of} for of in state["stated"]
        ]
        self._published, self._parts.n_parts = state["published"]
