"""Recorded traces: which device was where, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, Int8Array, Int32Array, IntArray
from anonymizer.domain.network import NodeIndex, NodeNames, RoadNetwork
from anonymizer.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The valid rows of a recorded trace, by time; rows of one instant keep the file's order."""

    device_id: tuple[str, ...]
    """Distinct device ids, in order of first appearance."""
    device_of: IntArray
    """Index into `device_id` of each row, shape (n,)."""
    ts: FloatArray
    """Unix seconds, finite, never falling, shape (n,)."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: degrees as recorded, finite but not checked further, shape (n,); all NaN in a
    trace that names nodes."""
    node: NodeNames | None = None
    """Node names, shape (n,): int64 if all are integers, else text; None in a trace of
    coordinates."""
    n_unusable: int = 0
    """Rows that were left out because a value is missing, NaN or infinite."""
    readings: Mapping[str, FloatArray] = field(default_factory=dict)
    """The requested readings by name of the column: finite, NaN for no reading, each of shape
    (n,)."""
    located: Int32Array | None = None
    """Node index of each row, negative off the graph, shape (n,), where it is known already; None:
    it follows from the coordinates or names."""
    network: NDArray[np.str_] | None = None
    """Source of the network on which the device of each row moves, shape (n,), for networks of
    several; None: it is not told."""
    read_as: tuple[str, ...] = ()
    """What was found of the form of its columns, in words."""

    @property
    def n_rows(self) -> int:
        """Number of valid rows."""
        return len(self.ts)

    @property
    def n_devices(self) -> int:
        """Number of distinct devices."""
        return len(self.device_id)

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return f"Trace({self.n_rows} rows, {self.n_devices} devices)"


def named_nodes(trace: Trace, network: RoadNetwork) -> Int32Array | None:
    """Return the node of each row of a trace that tells nodes; None for one of coordinates.

    Raises `InputError` if the network lacks a node that the trace names, or if the trace has
    coordinates and the network has none.
    """
    if trace.located is not None:
        return trace.located
    if trace.node is None:
        if not network.has_coordinates:
            raise InputError("the network has no coordinates: the trace must name nodes")
        return None
    node = NodeIndex(network.node_id).find(trace.node)
    if n_unknown := int((node < 0).sum()):
        raise InputError(f"the network lacks the node of {n_unknown} rows of the trace")
    return node.astype(np.int32)


def layers_of(trace: Trace, network: RoadNetwork) -> Int8Array | None:
    """Return the layer of each row of a trace of coordinates; None where there is one network.

    Raises `InputError` if the trace does not say it, names another network, or a device has two.
    """
    if not network.layers:
        return None
    if trace.network is None:
        raise InputError("there are several networks: the trace needs a column network")
    sources = [layer.source for layer in network.layers]
    layer = np.full(trace.n_rows, -1, np.int8)
    for number, source in enumerate(sources):
        layer[trace.network == source] = number
    if (layer < 0).any():
        raise InputError(f"the trace names a network that is none of {', '.join(sources)}")
    if len(np.unique(np.stack([trace.device_of, layer]), axis=1).T) > trace.n_devices:
        raise InputError("the trace names two networks for a device")
    return layer


def check_one_network(network: RoadNetwork) -> None:
    """Raise `InputError` if a network consists of several: figures would mix their devices."""
    if network.layers:
        raise InputError("there are several networks: take each with the trace of its devices")
