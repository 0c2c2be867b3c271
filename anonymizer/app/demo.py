"""The demo: a broker, the simulator, the gateway and an analyst, each over the wire."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

from anonymizer.app.compilation import Progress, call_kernels
from anonymizer.app.demo_methods import StreamSnapshot, toll_rows
from anonymizer.app.gateway.daemon_thread import in_daemon_thread
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.live_map.rates import FlowSnapshot, take_snapshot
from anonymizer.child_processes import ending_with_parent
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import TransportError
from anonymizer.kernel_background import Background, compiling_in_background
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import network_for
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.settings.all_methods import all_methods
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import running_broker

T = TypeVar("T")

_LOOK_EVERY_S = 0.5
_CONNECT_S = 15.0
_N_SENSORS = 20
K_FLOOR = 5
"""As `anonymizer init` writes it; ADKA itself is shown as published."""
_OTHER_MODES = ("snapshot", "adka")
"""Region modes shown in addition to `session`, the default."""
_WINDOWS = {"window_s": 10.0, "lateness_s": 1.0}
"""Short windows of records, because a person is waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """Parameters of a demo."""

    network: str = "city:2500"
    """Road network on which the devices move."""
    n_devices: int = 1000
    rate_hz: float = 1.0
    """`n_devices`, `rate_hz`: number of devices, and reports per second of each."""
    seed: int = 1
    """Of the traffic."""
    duration_s: float | None = None
    """Seconds from the first position on; None: until it is stopped."""
    http_port: int = 0
    """0: any free one."""
    broker: Literal["auto", "mosquitto", "embedded"] = "auto"
    """`auto`: Mosquitto if it is installed, else the embedded broker."""
    compare: bool = True
    """Whether to run the other region modes too, each in a gateway of its own on the same traffic,
    so that the map can switch between them."""


@dataclass(slots=True)
class Subscriber:
    """A subscriber that remembers the last message."""

    n_messages: int = 0
    last: str = ""

    def see(self, deliveries: Sequence[Delivery]) -> None:
        """Receive messages."""
        self.n_messages += len(deliveries)
        self.last = deliveries[-1].payload.decode()


@dataclass(frozen=True, slots=True)
class Scene:
    """The parts of a running demo that can be shown."""

    broker: str
    http_url: str
    """`broker`, `http_url`: name of the broker, and address of the gateway."""
    beat_s: float
    """Seconds between two releases of a group."""
    analyst: Subscriber
    """Subscriber to the regions alone."""
    classes: Mapping[str, Subscriber] = field(default_factory=dict)
    """Subscriber to each stream of records, by its name."""
    gateway: Gateway | None = None
    """The gateway itself."""
    tolls: list[Mapping[str, Any]] = field(default_factory=list)
    """The first rows that the toll API answered at the end."""

    def streams(self) -> list[StreamSnapshot]:
        """Return what became of the records of each stream so far."""
        records = self.gateway.records if self.gateway else None
        return [StreamSnapshot.of(state) for state in records.flow.states] if records else []


class _Clock:
    """Counts the seconds since the first position: before it there is nothing to measure."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._began: float | None = None

    def snapshot(self) -> FlowSnapshot:
        now = time.monotonic()
        if self._began is None and self._gateway.ledger.n_received:
            self._began = now
        return take_snapshot(
            self._gateway.flow,
            n_waiting=self._gateway.inbox.n_waiting,
            seconds=0.0 if self._began is None else now - self._began,
        )


async def run_demo(
    plan: DemoPlan,
    stop: asyncio.Event,
    *,
    begin: Callable[[Scene], None],
    show: Callable[[FlowSnapshot], None],
    compiling: Progress = lambda _done, _all: None,
) -> FlowSnapshot:
    """Run the demo until `stop` or its duration; return the last snapshot, after the drain.

    Parameters
    ----------
    show
        Called with a snapshot twice a second from then on.
    compiling
        Called while kernels are compiled, in any thread: only the first start on a machine does it.

    Raises
    ------
    InputError, SettingsError
        If the plan cannot be carried out.
    TransportError
        If a part does not come up, or ends by itself.
    asyncio.CancelledError
        If it is stopped before the gateway is made.
    """
    network = load_network(plan.network)
    async with AsyncExitStack() as stack:
        name, broker = await stack.enter_async_context(running_broker(plan.broker))
        # It starts before anybody receives it, so that both compile their kernels meanwhile.
        simulators = [
            await stack.enter_async_context(_simulator(plan, broker, *what))
            for what in _traffic(plan)
        ]
        background = stack.enter_context(compiling_in_background(compiling))
        folder = stack.enter_context(TemporaryDirectory(prefix="anonymizer-demo-"))
        store = Path(folder) / "records.sqlite"
        settings = Settings.model_validate(_tables(plan, broker) | {"store": {"path": store}})
        streams = declared_streams(settings)
        gateway = await _unless(stop, partial(_ready, settings, network, streams))
        if gateway is None:
            raise asyncio.CancelledError
        analyst = await stack.enter_async_context(
            _subscriber(broker, "analyst", settings.output.topic)
        )
        classes = {
            each.name: await stack.enter_async_context(
                _subscriber(broker, each.name, each.output_topic)
            )
            for each in settings.streams
        }
        drain = asyncio.Event()
        clock = _Clock(gateway)
        async with asyncio.TaskGroup() as group:
            group.create_task(gateway.run(drain), name="gateway")
            problem = await _up(gateway)
            if not problem:
                others = [
                    Settings.model_validate(_tables_of_other(plan, broker, mode))
                    for mode in _OTHER_MODES
                    if plan.compare
                ]
                url = gateway.http.url if gateway.http else ""
                beat_s = settings.session.beat_s
                scene = Scene(name, url, beat_s, analyst, classes, gateway)
                begin(scene)
                beside = _beside(gateway, others, network, background, drain)
                group.create_task(beside, name="other gateways")
                problem = await _watch(clock, show, stop, simulators, plan.duration_s)
                scene.tolls.extend(await asyncio.to_thread(toll_rows, url))
            for simulator in simulators:
                await _end(simulator)
            drain.set()
    if problem:
        raise TransportError(problem)
    return clock.snapshot()


def _ready(settings: Settings, network: RoadNetwork, streams: Sequence[Stream] = ()) -> Gateway:
    network = network_for(settings.region.mode, network)
    gateway = Gateway(settings, network, streams, demo=True)
    gateway.warm_up()
    return gateway


async def _beside(
    gateway: Gateway,
    others: Sequence[Settings],
    network: RoadNetwork,
    background: Background,
    drain: asyncio.Event,
) -> None:
    """Run other gateways, which the map of the first shows too, once kernels are compiled.

    As plain Python, one gateway keeps a core busy enough.
    """
    modes = [gateway.screen.mode, *(settings.region.mode for settings in others)]
    await _unless(drain, partial(call_kernels, modes))
    while background.n_kernels_waiting and not drain.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await drain.wait()
    async with asyncio.TaskGroup() as group:
        for settings in others:
            other = await _unless(drain, partial(_ready, settings, network))
            if other is not None:
                gateway.show_beside(other)
                group.create_task(other.run(drain), name="gateway")


async def _unless(stop: asyncio.Event, work: Callable[[], T]) -> T | None:
    """Return the result of work that a thread does, or None as soon as it is to stop."""
    doing = asyncio.ensure_future(in_daemon_thread(work))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([doing, stopped], return_when=asyncio.FIRST_COMPLETED)
        return None if stopped.done() else doing.result()
    finally:
        doing.cancel()
        stopped.cancel()


async def _up(gateway: Gateway) -> str:
    """Wait for a gateway; return what is wrong, or nothing."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            await gateway.until_connected()
    except TimeoutError:
        return "the gateway was not let in by the demo's own broker"
    return ""


async def _watch(
    clock: _Clock,
    show: Callable[[FlowSnapshot], None],
    stop: asyncio.Event,
    simulators: Sequence[asyncio.subprocess.Process],
    duration_s: float | None,
) -> str:
    """Look until `stop` or the end of the duration; return what went wrong, or nothing."""
    while not stop.is_set():
        for simulator in simulators:
            if simulator.returncode is not None:
                said = await simulator.stderr.read() if simulator.stderr else b""
                last = said.decode(errors="replace").strip().splitlines()[-1:]
                return last[0] if last else f"the simulator ended (exit {simulator.returncode})"
        now = clock.snapshot()
        show(now)
        if duration_s is not None and now.seconds >= duration_s:
            break
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await stop.wait()
    return ""


@asynccontextmanager
async def _subscriber(broker: BrokerSettings, name: str, topic: str) -> AsyncIterator[Subscriber]:
    """Let somebody subscribe to a topic while the block runs."""
    subscriber = Subscriber()
    link = MqttLink(broker, client_id=name, deliver=subscriber.see, subscriptions=[(topic, 0)])
    running = asyncio.create_task(link.run(), name=name)
    try:
        yield subscriber
    finally:
        await link.close()
        await running


def _traffic(plan: DemoPlan) -> list[tuple[str, ...]]:
    """Return the command of each simulator that runs."""
    size = ("--devices", str(plan.n_devices), "--rate", str(plan.rate_hz))
    return [("run", "--all", *size, "--sensors", str(_N_SENSORS))]


@asynccontextmanager
async def _simulator(
    plan: DemoPlan, broker: BrokerSettings, *command: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a simulator as a program of its own."""
    process = await asyncio.create_subprocess_exec(
        *ending_with_parent(
            [
                *(sys.executable, "-m", "simulator", *command, "--quiet"),
                *("--network", plan.network, "--seed", str(plan.seed)),
                *("--broker", broker.url, "--mqtt", broker.version),
            ]
        ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is for us; we end it ourselves
    )
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, if it has not ended, and wait for that."""
    with suppress(ProcessLookupError):
        process.terminate()
    await process.communicate()


def _tables(plan: DemoPlan, broker: BrokerSettings) -> dict[str, Any]:
    """Return the settings of the demo: those of `init --all`, with shorter windows."""
    every = all_methods(**_WINDOWS)
    return every | {
        "network": {"source": plan.network},
        "broker": broker,
        "inputs": [{}, *every["inputs"]],
        "http": {"port": plan.http_port},
        "adka": {"k_floor": K_FLOOR},
    }


def _tables_of_other(plan: DemoPlan, broker: BrokerSettings, mode: str) -> dict[str, Any]:
    """Return the settings of a gateway that cloaks in another region mode."""
    names = {"client_id": f"anonymizer-{mode}", "status_topic": f"anonymizer-{mode}/status"}
    return _tables(plan, broker) | {
        "broker": broker.model_copy(update=names),
        "inputs": [{}],
        "readings": [],
        "streams": [],
        "region": {"mode": mode},
        "adka": {"k_floor": K_FLOOR if mode != "adka" else 2},
        "output": {"topic": f"cloaked-{mode}/positions"},
        "http": {"host": ""},
    }
