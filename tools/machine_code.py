"""Machine code of the kernels that a start needs, made where a wheel or an image is built.

    NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= python -m tools.machine_code FOLDER

It is for the Python, the numba and the numpy that run this, and for any processor of that level;
whoever has others compiles, as without it. In a wheel or an image it lies where
`kernel_cache.SHIPPED` says.
"""

import gc
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numba.core.dispatcher import Dispatcher

from anonymizer.algorithms.records import class_methods
from anonymizer.app.compilation import call_kernels
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.cluster.records.stream_stage import warm_up_stages
from anonymizer.kernel_cache import KernelCache
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import network_for
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings
from anonymizer.settings.all_methods import all_methods
from simulator.encoding import positions_to
from simulator.fleet import FleetSource
from simulator.sensors import SensorNetwork
from simulator.traffic import Traffic

_MODES = ("session", "snapshot", "adka")
_DEVICES, _SENSORS = 2000, 20
"""More than the tables of a start have room for."""


def make_machine_code(folder: Path) -> None:
    """Write the machine code of a gateway, its records and the simulator into a folder.

    What the machine's cache has is copied. Where anything was compiled, a process that only loads
    does that: it has no kernel that is part of others.
    """
    call_all()
    kernels = _loaded()
    if any(sum(kernel.stats.cache_misses.values()) for kernel in kernels):
        again = get_context("spawn").Process(target=_copy_loaded, args=(folder,))
        again.start()
        again.join()
        if again.exitcode:
            sys.exit(again.exitcode)
    else:
        _copy_all(kernels, folder)


def _loaded() -> list[Dispatcher]:
    return [each for each in gc.get_objects() if isinstance(each, Dispatcher)]


def _copy_loaded(folder: Path) -> None:
    call_all()
    _copy_all(_loaded(), folder)


def _copy_all(kernels: list[Dispatcher], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kernel in kernels:
        cached = KernelCache(kernel)
        for sig in kernel.overloads:
            file = cached._file(sig)  # noqa: SLF001  as it is named where it is looked for
            for place in cached._readable():  # noqa: SLF001
                with suppress(FileNotFoundError):
                    shutil.copyfile(place / file, folder / file)
                    break


def call_all() -> None:
    """Call the kernels of a start: of a demo with all methods, of its first windows, of a pod."""
    call_kernels(_MODES)
    network, now = load_network("city:2500"), time.time()
    fleet = FleetSource(Traffic(network, _DEVICES), rate_hz=1.0)
    reports = fleet.take(1.0, limit=_DEVICES)
    encode = positions_to("positions/{device}", fleet.device_id)
    sent = encode(reports, np.full(len(reports), now))
    sensors = SensorNetwork(network, _SENSORS, rate_hz=1.0)
    sent += sensors.encode(sensors.take(1.0, limit=_SENSORS), np.full(_SENSORS, now))
    told = PackedDeliveries.of([Delivery(*message[:2], 0) for message in sent])
    for mode in _MODES:
        with tempfile.TemporaryDirectory() as work:
            more = {"http": {"host": ""}, "store": {"path": f"{work}/records.sqlite"}}
            settings = Settings.model_validate(all_methods() | more | {"region": {"mode": mode}})
            streams = declared_streams(settings)
            gateway = Gateway(settings, network_for(mode, network), streams)
            gateway.warm_up()
            gateway.inbox.put(told, at_s=time.monotonic())
            gateway.flow.tick(gateway.inbox.take(), now=now)
    for stream in streams:
        class_methods.warm_up("best", stream.schema, stream.promise)
    warm_up_stages(streams)


if __name__ == "__main__":
    make_machine_code(Path(sys.argv[1]))
