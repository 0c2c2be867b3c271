"""The truth behind a release: where every device was at each tick, known only to the auditor."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NOWHERE = -1
TIME_SLACK_S = 1e-6
"""Published times are decimal fractions; the nearest float may differ from the tick's own."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Truth:
    """Positions of the devices, and the device behind each pseudonym."""

    place: Int32Array
    """Node of each device at each tick, `NOWHERE` if it is not present, shape (ticks, devices).
    Present are the devices on the air, and *ghosts*, which are silent but still published, at their
    last known node."""
    on_air: BoolArray
    """Whether the device reported on the graph within the time to live, same shape."""
    device_of: IntArray | None
    """Device of each pseudonym, shape (pseudonyms,); None without the auditor's map. Ghosts that
    are silent for longer than the time to live are then not present."""
    device_of_record: IntArray | None = None
    """Device of each record, shape (records,), where a pseudonym has several; `device_of` has the
    first of them. None: that of its pseudonym."""

    @property
    def n_devices(self) -> int:
        """Number of devices in the trace."""
        return int(self.place.shape[1])

    def devices_of_records(self, observed: Observed) -> IntArray:
        """Return the device of each record of the release, shape (records,).

        Raises
        ------
        ValueError
            The devices of the pseudonyms are not known.
        """
        if self.device_of is None:
            raise ValueError("the devices of the pseudonyms are not known")
        if self.device_of_record is not None:
            return self.device_of_record
        return self.device_of[observed.pseudonym_of]


def follow_devices(
    observed: Observed,
    *,
    device: IntArray,
    ts: FloatArray,
    node: Int32Array,
    n_devices: int,
    ttl_s: float,
    device_of: IntArray | None = None,
    device_of_record: IntArray | None = None,
) -> Truth:
    """Return the truth behind a release.

    Parameters
    ----------
    observed
        The release, which has the ticks. A position counts from the first tick that is not
        before it.
    device, ts, node
        Device (below `n_devices`), unix seconds and node (negative if off the graph) of each
        reported position, shape (n,), in any order. Among positions of a device at the same time
        the larger node counts.
    ttl_s
        A device that is silent for longer is off the air.
    device_of, device_of_record
        Device of each pseudonym, if known, and of each record, see `Truth`.

    Notes
    -----
    O(n log n + ticks * devices), 9 bytes a tick and device.
    """
    order = np.lexsort((node, ts))
    place, last_node, on_air = _follow(
        observed.time, device[order], ts[order], node[order], n_devices, ttl_s, TIME_SLACK_S
    )
    truth = Truth(place, on_air, device_of, device_of_record)
    if device_of is not None:
        at = (observed.tick_of, truth.devices_of_records(observed))
        place[at] = last_node[at]
    return truth


def follow_in_districts(
    observed: Observed,
    *,
    device: IntArray,
    ts: FloatArray,
    node: Int32Array,
    district_of_node: Int32Array,
    ttl_s: float,
    device_of: IntArray | None = None,
    leave: bool = True,
) -> Truth:
    """Return the truth as districts know it: a device counts once in each that it was in.

    To a district, a device that is in another has left the map, and is covered where it was last.
    So a pseudonym of a snapshot, which can cross a border, is of another device in each district.
    The parameters are those of `follow_devices`; `district_of_node` has shape (nodes,). Without
    `leave`, a device counts where it was last until its presence ends.
    """
    n = int(district_of_node.max()) + 1
    order = np.lexsort((node, ts, device))
    device, ts, node = device[order], ts[order], node[order]
    district = np.where(node >= 0, district_of_node[np.maximum(node, 0)], NOWHERE)
    # A device that is off the graph is so for the district in which it was last.
    row = np.maximum.accumulate(np.where(district != NOWHERE, np.arange(len(node)), NOWHERE))
    row[(row != NOWHERE) & (device[row] != device)] = NOWHERE
    body = np.where(row != NOWHERE, device * n + district[row], NOWHERE)
    crosses = (np.diff(device) == 0) & (np.diff(body) != 0) & (body[:-1] != NOWHERE)
    leaves = np.flatnonzero(crosses & leave)
    away = np.full(len(leaves), NOWHERE, np.int32)
    known = body != NOWHERE
    bodies = np.concatenate([body[known], body[leaves]])
    published = None
    if device_of is not None:
        first_node = observed.node[observed.first_node_of[observed.region_of]]
        published = device_of[observed.pseudonym_of] * n + district_of_node[first_node]
    every = np.unique(bodies if published is None else np.concatenate([bodies, published]))
    of_record = None if published is None else np.searchsorted(every, published)
    return follow_devices(
        observed,
        device=np.searchsorted(every, bodies),
        ts=np.concatenate([ts[known], ts[leaves + 1]]),
        node=np.concatenate([node[known], away]),
        n_devices=len(every),
        ttl_s=ttl_s,
        device_of=None if of_record is None else of_record[observed.first_record_of[:-1]],
        device_of_record=of_record,
    )


@kernel
def _follow(
    time: FloatArray,
    device: IntArray,
    ts: FloatArray,
    node: Int32Array,
    n_devices: int,
    ttl_s: float,
    slack_s: float,
) -> tuple[Int32Array, Int32Array, BoolArray]:
    place = np.full((len(time), n_devices), NOWHERE, np.int32)
    last_node = np.full((len(time), n_devices), NOWHERE, np.int32)
    on_air = np.zeros((len(time), n_devices), np.bool_)
    known = np.full(n_devices, NOWHERE, np.int32)
    on_graph = np.zeros(n_devices, np.bool_)
    heard_at = np.full(n_devices, -np.inf)
    i = 0
    for t in range(len(time)):
        while i < len(ts) and ts[i] <= time[t] + slack_s:
            d = device[i]
            heard_at[d] = ts[i]
            on_graph[d] = node[i] >= 0
            if on_graph[d]:
                known[d] = node[i]
            i += 1
        for d in range(n_devices):
            last_node[t, d] = known[d]
            if on_graph[d] and heard_at[d] >= time[t] - ttl_s - slack_s:
                on_air[t, d] = True
                place[t, d] = known[d]
    return place, last_node, on_air
