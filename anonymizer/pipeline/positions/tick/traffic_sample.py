"""The newest traffic of a flow, kept in memory for attacks on it.

It holds who was where, so it is treated like raw positions: it is never written to a disk, never
logged, and forgotten by age. Devices appear by key, places by node.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.release import Release
from anonymizer.pipeline.ledger import NOT_PUBLISHED, NOT_THE_NEWEST
from anonymizer.pipeline.positions.tick.engine import TickRelease
from anonymizer.pipeline.positions.tick.intake import LocatedPositions

MOST_BYTES = 64 << 20
"""Of a sample."""
MOST_PLACES = 40_000_000
"""Of devices times ticks: what an attack must hold at once to know where everybody was."""
DeviceKeys = NDArray[np.uint64]


@discreet
class SampledTick(NamedTuple):
    """The input and the output of a tick.

    `device`, `node`: key of the device and node (negative off the graph) of each report that
    counted. `until_s`: until when each region holds; `event_s`: when the positions were current;
    unix seconds.
    """

    event_s: float
    device: DeviceKeys
    node: Int32Array
    release: Release
    member_device: DeviceKeys
    until_s: FloatArray
    n_suppressed: int
    n_devices: int

    @property
    def n_bytes(self) -> int:
        """Bytes of its columns."""
        release = self.release
        of_release = release.k, release.node, release.member, release.version
        columns = (self.device, self.node, self.member_device, self.until_s, *of_release)
        return sum(each.nbytes for each in columns)

    @property
    def n_places(self) -> int:
        """How many places an attack must keep in memory for it."""
        return self.n_devices if self.release.n_groups else 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampledTraffic:
    """A sample of traffic."""

    reports: Sequence[SampledTick]
    released: Sequence[SampledTick]


class TrafficSample:
    """Keeps the traffic of the last seconds, or of fewer where that is too much to hold.

    Releases are kept for `keep_s`, reports for `before_s` longer: devices that were silent when the
    sample begins are where they were last. Beyond `most_bytes` and `most_places` the oldest ticks
    are forgotten.

    Notes
    -----
    `see` may be called in another thread than the rest. 12 bytes a report, 20 a member and 4 a node
    of a region. An attack takes up to 1 GB.
    """

    def __init__(
        self,
        *,
        keep_s: float,
        before_s: float,
        keys: Callable[[Int32Array], DeviceKeys],
        most_bytes: int = MOST_BYTES,
        most_places: int = MOST_PLACES,
    ) -> None:
        self._keep_s, self._before_s, self._keys = keep_s, before_s, keys
        self._most_bytes, self._most_places = most_bytes, most_places
        self._ticks: deque[SampledTick] = deque()
        self._n_bytes = self._n_places = 0
        self._complete = True
        """Whether nothing has been forgotten yet."""
        self._lock = Lock()

    def see(self, located: LocatedPositions, tick: TickRelease, *, n_devices: int) -> None:
        """Take in a tick, before its slots are given to other devices."""
        counts = ~NOT_THE_NEWEST[tick.outcome]
        seen = SampledTick(
            event_s=tick.event_s,
            device=self._keys(located.positions.slot[counts]),
            # In a privacy zone a device is where it counts: more must not be known of it.
            node=located.counted_at[counts],
            release=tick.release,
            member_device=self._keys(tick.release.member),
            until_s=tick.until_s,
            n_suppressed=int(NOT_PUBLISHED[tick.outcome].sum()),
            n_devices=n_devices,
        )
        with self._lock:
            if len(seen.node) or seen.release.n_groups:
                self._ticks.append(seen)
                self._n_bytes += seen.n_bytes
                self._n_places += seen.n_places
            self._forget(tick.event_s - self._keep_s - self._before_s)

    def clear(self) -> None:
        """Forget all traffic: somebody who is in it takes no part any more.

        A group that contains them may go on until it ends. Only what follows is attacked. If one
        device alone were forgotten, its groups would have a member of whom nothing is known, and
        whoever reads the sample would see who has left.
        """
        with self._lock:
            self._ticks.clear()
            self._n_bytes = self._n_places = 0
            self._complete = False

    def _forget(self, until_s: float) -> None:
        while self._ticks and (
            self._ticks[0].event_s < until_s
            or self._n_bytes > self._most_bytes
            or self._n_places > self._most_places
        ):
            oldest = self._ticks.popleft()
            self._n_bytes -= oldest.n_bytes
            self._n_places -= oldest.n_places
            self._complete = False

    def traffic(self) -> SampledTraffic | None:
        """Return the sample as it is now; None if it has no release."""
        with self._lock:
            ticks, complete = list(self._ticks), self._complete
        if not ticks:
            return None
        since_s = ticks[-1].event_s - self._keep_s
        if not complete:
            since_s = max(since_s, ticks[0].event_s + self._before_s)
        released = [each for each in ticks if each.release.n_groups and each.event_s >= since_s]
        attacked = [each for each in ticks if len(each.node)]
        return SampledTraffic(attacked, released) if released else None
