"""Where every device truly was at each tick at which something was published."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NOWHERE = -1
TIME_SLACK_S = 1e-6
"""A published time is a decimal fraction; its nearest float may lie beside the tick's own."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Truth:
    """What the auditor knows and the adversary wants.

    Attributes
    ----------
    place
        Node of each device at each tick, `NOWHERE` when it is not there, shape (ticks,
        devices). There is who is on the air, and who is silent but still published (a
        *ghost*): at its last known node.
    on_air
        Whether the device reported within the time to live, and on the graph, same shape.
    device_of
        Who each pseudonym is, shape (pseudonyms,); None without the auditor's map. Ghosts
        longer silent than the time to live are then unknown, and count nowhere.
    """

    place: Int32Array
    on_air: BoolArray
    device_of: IntArray | None

    @property
    def n_devices(self) -> int:
        """Devices in the trace."""
        return int(self.place.shape[1])


def follow_devices(
    observed: Observed,
    *,
    device: IntArray,
    ts: FloatArray,
    node: Int32Array,
    n_devices: int,
    ttl_s: float,
    device_of: IntArray | None = None,
) -> Truth:
    """Return the truth behind what was observed.

    Parameters
    ----------
    observed
        Gives the ticks; a position counts from the first tick whose time is not before it.
    device, ts, node
        Device (below `n_devices`), unix seconds and node of each reported position, negative
        when off the graph, shape (n,), in any order. Of positions of one time the larger node
        counts.
    ttl_s
        A device not heard of for longer is off the air.
    device_of
        Who each pseudonym is, if known.

    Notes
    -----
    O(n log n + ticks * devices), 9 bytes a tick and device.
    """
    order = np.lexsort((node, ts))
    place, last_node, on_air = _follow(
        observed.time, device[order], ts[order], node[order], n_devices, ttl_s, TIME_SLACK_S
    )
    if device_of is not None:
        at = (observed.tick_of, device_of[observed.pseudonym_of])
        place[at] = last_node[at]
    return Truth(place, on_air, device_of)


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
