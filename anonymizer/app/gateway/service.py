"""Service: runs a gateway until a signal (SIGTERM, SIGINT), and reloads settings on SIGHUP."""

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from anonymizer.app.compilation import call_kernels
from anonymizer.app.gateway.daemon_thread import in_daemon_thread
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.preflight import check_files
from anonymizer.crashes import CRASHES
from anonymizer.errors import AnonymizerError, SettingsError
from anonymizer.kernel_background import compiling_in_background
from anonymizer.observe.logs import configure_logs
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.settings.reload import change
from anonymizer.settings.streams import sharing
from anonymizer.transport.local_brokers import broker_if_none

if TYPE_CHECKING:
    from anonymizer.app.gateway.start_log import StartLog
    from anonymizer.app.gateway.starting import Startup


async def serve_until_told(
    settings: Settings, reread: Callable[[], Settings], start: "StartLog | None" = None
) -> None:
    """Run a gateway until SIGTERM or SIGINT; a second signal ends it without draining.

    Parameters
    ----------
    reread
        Reads the settings again on SIGHUP, or raises SettingsError.
    start
        Logs what the start is doing, until it is over.

    Raises
    ------
    SettingsError
        If the settings cannot be used; nothing has been connected then.
    """
    configure_logs(settings.log)
    if settings.streams or "path" in settings.store.model_fields_set:
        CRASHES.remember(settings.store.path)
    # It waits until there is something to reload; see __main__.py.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        async with AsyncExitStack() as stack:
            stack.enter_context(compiling_in_background(_compiling))
            startup = None
            if settings.http.enabled:
                # FastAPI takes a third of a second to load, and a gateway may be without HTTP.
                from anonymizer.app.gateway.starting import Startup  # noqa: PLC0415  see above

                startup = Startup(settings.http)
                await stack.enter_async_context(startup.server.serving())
            gateway = await in_daemon_thread(lambda: _prepared(settings, startup, start))
            if start is not None:
                start.end()
            reload_at_signal(gateway, settings, reread)
            await gateway.run(stop_at_signal())
    except BaseExceptionGroup as group:
        raise_known(group)
        raise


def _compiling(done: int, asked: int) -> None:
    """Log when kernels run as plain Python, and when no longer."""
    if (done, asked) == (0, 1):
        structlog.get_logger().info(
            "compiling kernels in the background", until_then="they run as plain Python"
        )
    elif done == asked:
        structlog.get_logger().info("kernels are compiled", n=done)


def _warn(settings: Settings) -> None:
    """Log what these settings let others find out."""
    log = structlog.get_logger()
    if settings.inputs and settings.region.mode == "adka":
        log.warning(
            "region mode adka hides devices from nobody who knows the algorithm",
            promise="every region holds k devices, nothing more",
        )
    for stream in settings.streams:
        if stream.unprotected:
            log.warning(
                "windows together may reveal the lasting attributes of vehicles",
                stream=stream.name,
                cumulative="report",
            )
    for one, other in sharing(settings.streams):
        if values := one.values_shared_with(other):
            log.warning(
                "classes of two streams can be intersected",
                streams=[one.name, other.name],
                attributes=values,
            )


def _prepared(
    settings: Settings, startup: "Startup | None", start: "StartLog | None" = None
) -> Gateway:
    """Return the gateway, ready to run: files read, kernels compiled."""
    log = structlog.get_logger()

    def tell(doing: str) -> None:
        if startup is not None:
            startup.doing = doing
        if start is not None:
            start.tell(doing)

    tell("reads the network")
    network, streams = check_files(settings)
    if settings.inputs:
        read = {"of": network.account} if network.account else {}
        log.info("network loaded", nodes=network.n_nodes, roads=network.n_roads, **read)
    _warn(settings)
    tell("warms up")
    gateway = Gateway(settings, network, streams, http=startup.server if startup else None)
    gateway.warm_up()
    if settings.inputs:
        call_kernels([settings.region.mode])
    # What is loaded by now is no garbage. To visit it all stops every thread for 0.1 to 0.2 s.
    gc.collect()
    gc.freeze()
    return gateway


async def serve_with_broker(
    settings: Settings, reread: Callable[[], Settings], start: "StartLog | None" = None
) -> None:
    """Run a gateway as `serve_until_told`, and a broker for it if none answers at its address.

    Raises
    ------
    SettingsError
        As `serve_until_told`, or if a broker is missing that cannot be started here.
    TransportError
        If the broker does not start.
    """
    configure_logs(settings.log)
    async with broker_if_none(settings.broker) as (name, broker):
        if name:
            structlog.get_logger().info("no broker answered, so one was started", broker=name)
        await serve_until_told(
            settings.model_copy(update={"broker": broker}),
            lambda: reread_with(broker, settings, reread()),
            start,
        )


def reread_with(broker: BrokerSettings, stated: Settings, wanted: Settings) -> Settings:
    """Return settings that were read again, with the broker that runs in place of the stated one.

    Unless they state another broker than at the start: that is a change like any other.
    """
    same = wanted.broker == stated.broker
    return wanted.model_copy(update={"broker": broker}) if same else wanted


def raise_known(group: BaseExceptionGroup[BaseException]) -> None:
    """Raise the error that concerns the operator, such as a full disk, by itself; if any."""
    known = group.subgroup(AnonymizerError)
    while known is not None:
        first = known.exceptions[0]
        if not isinstance(first, ExceptionGroup):
            raise first from None
        known = first


def stop_at_signal(*more: signal.Signals) -> asyncio.Event:
    """Return an event that SIGTERM, SIGINT or another sets; a second has its default effect."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    numbers = (signal.SIGTERM, signal.SIGINT, *more)

    def handle() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, handle)
    return stop


def reload_at_signal(gateway: Gateway, settings: Settings, reread: Callable[[], Settings]) -> None:
    """Reload settings on SIGHUP if all that differs may change, and log the result."""
    log = structlog.get_logger()
    running = settings

    def handle() -> None:
        nonlocal running
        try:
            wanted = change(running, reread())
        except SettingsError as error:
            log.error("settings not reloaded", problem=str(error))  # noqa: TRY400  it is one line
            return
        running = wanted.settings
        gateway.adopt(running)
        changed = {key: {"from": old, "to": new} for key, (old, new) in wanted.changed.items()}
        # Logged whatever the level: an auditor needs it.
        configure_logs(running.log.model_copy(update={"level": "info"}))
        log.info("settings reloaded", changed=changed)
        configure_logs(running.log)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
