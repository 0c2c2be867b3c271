"""Compilation ahead: the kernels of the positions flow are called before a position needs them.

A small flow lives for half a minute of its own time. In the background (`kernel_background`) each
of its calls asks for machine code and goes on as plain Python, so all of it is compiled on all
cores at once.
"""

import json
from collections.abc import Callable, Sequence

from anonymizer.kernel_background import compiling_in_background
from anonymizer.networks.grids import grid
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.newest_messages import newest_of_each_topic
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import Settings, zones_of
from anonymizer.transport import packets

Progress = Callable[[int, int], None]
"""Called with the number of kernels that are compiled, and of all that were asked for."""
_SOME_TIME_S = 1_800_000_000.0
_SECONDS = 30
"""Until groups have formed, and found their company."""


def compile_kernels(progress: Progress = lambda _done, _asked: None) -> None:
    """Compile the kernels of the positions flow that the cache on disk does not have, on all cores.

    Returns when they are. Whatever is missed here is compiled at its first call.
    """
    with compiling_in_background(progress) as background:
        call_kernels()
        background.wait()


def call_kernels(modes: Sequence[str] = ("session",)) -> None:
    """Call the kernels of a tick, with the types that it passes, in these region modes."""
    for mode in modes:
        _make_releases(mode)
    packet = packets.encode_publish(Outgoing("a", bytes(1 << 16)), mid=1, version5=True)
    list(packets.PacketReader(version5=True, limit_bytes=1 << 20).feed(packet))


def _make_releases(mode: str) -> None:
    """Let a flow of its own release some devices on a small grid."""
    network, ledger = grid("5x5"), Ledger()
    settings = Settings.model_validate(
        {"region": {"mode": mode}, "adka": {"density_steps": [], "k_values": [2]}}
    )
    flow = PositionFlow(
        settings,
        with_zones(network, zones_of(settings.zones)),
        ledger,
        secret=b"of nobody",
        monotonic=lambda: 0.0,
    )
    for second in range(_SECONDS):
        inbox = Inbox(1 << 10, ledger)
        told = [
            Delivery(f"positions/{node}", json.dumps({"lat": lat, "lon": lon}).encode(), 0)
            for node, (lat, lon) in enumerate(zip(network.lat, network.lon, strict=True))
        ]
        packed = [PackedDeliveries.of(told)]
        newest_of_each_topic(packed * 2, is_shared=None, most=1 << 10, max_bytes=1 << 20)
        inbox.put(packed[0], at_s=float(second))
        output = flow.tick(inbox.take(), now=_SOME_TIME_S + second)
        flow.settle(output, [True] * len(output.messages), seconds=0.0)
