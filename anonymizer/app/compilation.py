"""Compilation ahead of the first position: kernels of the positions flow, on all cores.

numba compiles a kernel at its first call and keeps the machine code on disk. One process compiles
one kernel at a time, so the first start of a gateway would take the sum of all. Here each job is
a small call that compiles the kernels of one module, in a process of its own.
"""

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context

import numpy as np

from anonymizer.algorithms.kernels import is_compiled
from anonymizer.algorithms.positions import (
    adka,
    atoms,
    density,
    device_partition,
    grouping,
    regions,
    spanning_forest,
)
from anonymizer.child_processes import end_with_parent
from anonymizer.codecs.layouts import LAYOUTS
from anonymizer.networks.grids import grid
from anonymizer.pipeline import ports
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.newest_messages import newest_of_each_topic
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.decode import compiled_reader, senders
from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.settings import InputSettings
from anonymizer.transport import packets

Progress = Callable[[int, int], None]
"""Called with the number of jobs that are done, and of all jobs."""


def compile_kernels(progress: Progress = lambda _done, _all: None) -> None:
    """Compile the kernels of the positions flow that the cache on disk does not have.

    Returns at once if it has them all. Whatever is missed here is compiled at its first call.
    """
    jobs = [job for module, job in _JOBS.items() if not is_compiled(module)]
    if not jobs:
        return
    progress(0, len(jobs))
    workers = min(len(jobs), os.cpu_count() or 1)
    # Where no process can be started or one is killed, the first calls compile.
    with (
        suppress(BrokenExecutor, OSError),
        ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool,
    ):
        futures = [pool.submit(job) for job in jobs]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            progress(done, len(jobs))


def _begin() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the process that waits."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# The arguments have the types that the flow passes: other types would compile another version.
_NETWORK = grid("2x3")
_ROWS = np.array([0, _NETWORK.n_nodes])
_NODES = np.arange(_NETWORK.n_nodes, dtype=np.int32)


def _compile_grouping() -> None:
    forest = spanning_forest.SpanningForest(np.zeros_like(_NODES), _NODES)
    devices = np.ones_like(_NODES)
    grouping.form_groups(forest, devices, devices, min_nodes=1, max_nodes=len(_NODES))


def _compile_regions() -> None:
    one = atoms.Atoms(np.zeros(len(_NODES), np.int64), _ROWS, _NODES)
    levels = atoms.stack_levels([one], _NETWORK)
    level = np.zeros(len(_NODES), np.int64)
    regions.cover(_NETWORK, levels, _ROWS, _NODES, level, max_nodes=len(_NODES))


def _compile_partition() -> None:
    none = np.zeros(0, np.int32)
    device_partition.partition(np.zeros((0, 2)), none, _NETWORK.component_of[:0])


def _compile_forest() -> None:
    spanning_forest.spanning_forest(_NETWORK)


def _compile_adka() -> None:
    devices = density.DensityMap.empty(_NETWORK)
    devices.advance(_NODES, np.zeros(len(_NODES)), _NODES)
    k = adka.DensityRule((), (2,), 2).k_for(devices.n_near[_NODES])
    adka.grow_regions(devices, _NODES, k, max_nodes=len(_NODES))


def _messages() -> ports.PackedDeliveries:
    return ports.PackedDeliveries.of([Delivery("positions/a", b'{"lat":1,"lon":2}', 0)])


def _compile_reader() -> None:
    stream, columns = np.frombuffer(_messages().stream, np.uint8), _messages().columns
    layout, limits = np.zeros(1, np.int32), {"max_payload_bytes": 99, "max_positions": 1}
    reader = compiled_reader.Reader([LAYOUTS["native"]], {})
    reader.read(stream, columns.bounds, columns.retained, layout, **limits)


def _compile_senders() -> None:
    known = senders.Senders(TopicRouter([InputSettings()]))
    known.slots(known.topics(_messages()), DeviceTable(secret=b"", max_devices=1))
    for at_s in (0.0, 1.0):
        known.forget(at_s=at_s, kept_s=1.0)


def _compile_packets() -> None:
    packet = packets.encode_publish(Outgoing("a", bytes(1 << 16)), mid=1, version5=True)
    list(packets.PacketReader(version5=True, limit_bytes=1 << 20).feed(packet))


def _compile_packed() -> None:
    newest_of_each_topic([_messages()] * 2, is_shared=None, most=1, max_bytes=99)


_JOBS: Mapping[str, Callable[[], None]] = {
    # The longest first.
    compiled_reader.__name__: _compile_reader,
    grouping.__name__: _compile_grouping,
    regions.__name__: _compile_regions,
    device_partition.__name__: _compile_partition,
    spanning_forest.__name__: _compile_forest,
    adka.__name__: _compile_adka,
    senders.__name__: _compile_senders,
    packets.__name__: _compile_packets,
    ports.__name__: _compile_packed,
}
"""By the module whose kernels it compiles."""
