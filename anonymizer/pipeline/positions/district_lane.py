"""The lane of a district: its inputs in any order, its ticks in order, its state as bytes.

A worker keeps some lanes. A lane closes a tick when all sources have stated that they have nothing
more for it, and all districts have sent their broadcasts about the tick before: what it publishes
then depends on what was sent, and on nothing else. If a source or district stays silent for too
long, the tick closes without it, and says so: devices on their way between districts wait then, and
no promise is broken.

A lane is moved by its snapshot. What is published and the snapshot after it belong together: store
both or neither, with the offsets up to which the inputs were read. Inputs may be read again.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.positions.district import (
    Claims,
    District,
    DistrictTick,
    Message,
    Received,
)
from anonymizer.algorithms.positions.district_routing import Rows, join_rows
from anonymizer.domain.arrays import IntArray

_ARRAY = 1
"""Code of an array among the extensions of msgpack."""


class Batch(NamedTuple):
    """The rows of a tick that a source sends to a district.

    Attributes
    ----------
    source
        Number of the source, from 0.
    tick
        The source has sent all of this tick and of those before.
    leader_of
        Leader of each district at this tick.
    rows
        Those of the tick for the district.
    """

    source: int
    tick: int
    leader_of: IntArray
    rows: Rows


class Broadcast(NamedTuple):
    """The messages of a district to the others about a tick, and its counts.

    Attributes
    ----------
    sender, tick
        Number of the district and of the tick.
    complete
        Whether it had heard all sources.
    messages
        By the number of the district that each is for.
    n_in
        Devices in each district that it leads, shape (districts,).
    """

    sender: int
    tick: int
    complete: bool
    messages: dict[int, Message]
    n_in: IntArray


class Closed(NamedTuple):
    """A tick of a district that has closed: its result, and what to send to all districts."""

    result: DistrictTick
    broadcast: Broadcast


class DistrictLane:
    """Collects the inputs of one district and closes its ticks.

    Parameters
    ----------
    district
        New, or to be restored.
    n_districts, n_sources
        How many districts there are, each of which broadcasts, and how many sources.
    start_s, interval_s
        Tick t closes at `start_s + t * interval_s`, unix seconds.
    wait_s
        How long a tick waits after the previous one closed before it closes without those that are
        silent.
    """

    def __init__(
        self,
        district: District,
        *,
        n_districts: int,
        n_sources: int,
        start_s: float,
        interval_s: float,
        wait_s: float,
    ) -> None:
        self.district = district
        self._n_districts = n_districts
        self._start_s, self._interval_s, self._wait_s = start_s, interval_s, wait_s
        self._tick = 0
        self._heard = [-1] * n_sources
        self._rows: dict[int, list[Rows]] = {}
        self._leaders: dict[int, IntArray] = {-1: np.arange(n_districts)}
        self._broadcasts: dict[int, dict[int, Broadcast]] = {}
        self._since_s: float | None = None

    @property
    def tick(self) -> int:
        """The tick that closes next."""
        return self._tick

    def take(self, batch: Batch) -> None:
        """Take a batch; batches of one source come in the order of ticks, and some again."""
        if batch.tick <= self._heard[batch.source]:
            return
        self._heard[batch.source] = batch.tick
        # What comes after its tick has closed belongs to the next one.
        tick = max(batch.tick, self._tick)
        self._rows.setdefault(tick, []).append(batch.rows)
        self._leaders[batch.tick] = batch.leader_of

    def read(self, broadcast: Broadcast) -> None:
        """Read a broadcast; those about ticks that are over are too late."""
        if broadcast.tick >= self._tick - 1:
            self._broadcasts.setdefault(broadcast.tick, {})[broadcast.sender] = broadcast

    def close(self, at_s: float) -> Closed | None:
        """Close the next tick if it is complete, or if it has waited for too long.

        Parameters
        ----------
        at_s
            Seconds by any clock of this process that never goes back.
        """
        if self._since_s is None:
            self._since_s = at_s
        broadcasts = self._broadcasts.get(self._tick - 1, {})
        heard = min(self._heard) >= self._tick
        all_broadcast = self._tick == 0 or len(broadcasts) == self._n_districts
        if not (heard and all_broadcast) and at_s - self._since_s <= self._wait_s:
            return None
        number = self.district.number
        messages = [
            broadcasts[sender].messages[number]
            for sender in sorted(broadcasts)
            if number in broadcasts[sender].messages
        ]
        complete = all_broadcast and all(each.complete for each in broadcasts.values())
        known = max(tick for tick in self._leaders if tick <= self._tick)
        result = self.district.tick(
            join_rows(self._rows.pop(self._tick, [])),
            Received(messages, complete),
            self._leaders[known],
            now=self._start_s + self._tick * self._interval_s,
        )
        closed = Closed(result, Broadcast(number, self._tick, heard, result.messages, result.n_in))
        self._broadcasts.pop(self._tick - 1, None)
        self._leaders = {tick: at for tick, at in self._leaders.items() if tick >= known}
        self._tick += 1
        self._since_s = at_s
        return closed

    def snapshot(self) -> bytes:
        """Return the whole state of the lane.

        It holds where devices are: store it like the raw positions.
        """
        return _PACK(
            {
                "district": self.district.state(),
                "tick": self._tick,
                "heard": self._heard,
                "rows": [(tick, [list(rows) for rows in of]) for tick, of in self._rows.items()],
                "leaders": list(self._leaders.items()),
                "broadcasts": [
                    [
                        broadcast.sender,
                        broadcast.tick,
                        broadcast.complete,
                        [
                            (to, list(message.claims), list(message.handover))
                            for to, message in broadcast.messages.items()
                        ],
                        broadcast.n_in,
                    ]
                    for broadcasts in self._broadcasts.values()
                    for broadcast in broadcasts.values()
                ],
            }
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a lane of the same district."""
        state = _UNPACK(snapshot)
        self.district.restore(state["district"])
        self._tick, self._heard = state["tick"], state["heard"]
        self._rows = {tick: [Rows(*rows) for rows in of] for tick, of in state["rows"]}
        self._leaders = dict(state["leaders"])
        self._broadcasts, self._since_s = {}, None
        for sender, tick, complete, messages, n_in in state["broadcasts"]:
            to_each = {
                to: Message(Claims(*claims), Rows(*handover)) for to, claims, handover in messages
            }
            self.read(Broadcast(sender, tick, complete, to_each, n_in))


def _to_extension(value: Any) -> Any:  # noqa: ANN401  any array
    if isinstance(value, np.ndarray):
        head = value.dtype.str.encode()
        return msgspec.msgpack.Ext(_ARRAY, bytes([len(head)]) + head + value.tobytes())
    raise TypeError(f"{type(value)} cannot be part of a snapshot")


def _from_extension(code: int, data: memoryview) -> Any:  # noqa: ANN401  any array
    if code != _ARRAY:
        raise ValueError("not a snapshot of a lane")
    head = 1 + data[0]
    return np.frombuffer(bytearray(data[head:]), np.dtype(bytes(data[1:head]).decode()))


_PACK = msgspec.msgpack.Encoder(enc_hook=_to_extension).encode
_UNPACK = msgspec.msgpack.Decoder(ext_hook=_from_extension).decode
