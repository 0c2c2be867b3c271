"""`serve`: a gateway as a service of the operating system."""

import asyncio
import signal

import structlog

from anonymizer.app.checking import check_files
from anonymizer.app.gateway import Gateway
from anonymizer.observe.logs import configure_logs
from anonymizer.settings import Settings


async def serve_until_told(settings: Settings) -> None:
    """Run a gateway until SIGTERM or SIGINT; the second signal does not wait for the drain.

    Raises
    ------
    SettingsError
        Before anything is connected.
    """
    configure_logs(settings.log)
    log = structlog.get_logger()
    network = check_files(settings)
    log.info("network loaded", nodes=network.n_nodes, roads=network.n_roads)
    if settings.region.mode == "bfs":
        log.warning(
            "region mode bfs hides devices from nobody who knows the algorithm",
            promise="every region holds k devices, nothing more",
        )
    gateway = Gateway(settings, network)
    gateway.warm_up()
    await gateway.run(stop_at_signal())


def stop_at_signal() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the second one does what it does by default."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    return stop
