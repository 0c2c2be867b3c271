"""Worker: runs the sources and lanes that the consumer group gives it, monitored over HTTP."""

import asyncio
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.app.compilation import compile_kernels
from anonymizer.app.gateway.preflight import check_files, read_secrets
from anonymizer.app.gateway.starting import Startup
from anonymizer.cluster.kafka import client_options, ensure_topics, secret_of
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.runner import Runner
from anonymizer.cluster.topics import key_of, stage_of, topics_of
from anonymizer.cluster.worker_metrics import Accounts, WorkerCollector
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.observe.logs import configure_logs
from anonymizer.observe.metrics import new_registry
from anonymizer.pipeline.positions.lane_stage import LaneStage, lane_stages
from anonymizer.pipeline.positions.source_stage import SourceStage, source_stages
from anonymizer.pipeline.stage import Send, Stage
from anonymizer.settings import Settings, zones_of
from anonymizer.web import HttpServer, create_application
from anonymizer.web.auth import read_token

_COMMITS_PER_TICK = 5
"""A tick passes two transactions, one of a source and one of a lane."""
_STUCK_S = 60.0
"""Time without a sign from the thread of the stages after which the worker is to be restarted."""


def run_worker(settings: Settings, *, name: str, state_dir: Path) -> None:
    """Run a worker until SIGTERM.

    Parameters
    ----------
    settings
        The same for all workers and bridges of a cluster.
    name
        Unique among the workers, and the same after a restart.
    state_dir
        Folder for the state, which is made if it is missing; it holds raw data. What is lost in it
        is read from Kafka.

    Raises
    ------
    SettingsError
        If the settings cannot be used, or ask for what there is not in a cluster.
    TransportError
        If Kafka is not there for too long, or has given the partitions to another worker.
    """
    configure_logs(settings.log)
    check_cluster(settings)
    if settings.cluster.secret_file is None:
        raise SettingsError("cluster.secret_file: workers need one")
    secret = secret_of(settings.cluster.secret_file)
    _make_private(state_dir)
    startup = Startup(settings.http) if settings.http.enabled else None
    if startup is not None:
        _serve_in_thread(startup.server)
        startup.doing = "reads the network"
    network = check_files(settings).network
    compile_kernels()
    if startup is not None:
        startup.doing = "connects to Kafka"
    ensure_topics(settings)
    zoned = with_zones(network, zones_of(settings.zones))
    worker = Worker(settings, zoned, secret, name=name, state_dir=state_dir)
    if startup is not None:
        startup.server.show(
            create_application(
                worker.registry(exact=False),
                exact=worker.registry(exact=True),
                token=read_token(settings.http),
                alive=worker.why_dead,
                ready=worker.why_not_ready,
            )
        )
    # What is loaded by now is no garbage.
    gc.collect()
    gc.freeze()
    worker.run()


class Worker:
    """The runner of the stages, and what is known about it.

    Parameters
    ----------
    settings, name, state_dir
        See `run_worker`.
    zoned
        The network and its privacy zones.
    secret
        Key of the pseudonyms.
    """

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        secret: bytes,
        *,
        name: str,
        state_dir: Path,
    ) -> None:
        topics = topics_of(settings)
        self._accounts = Accounts(0, 0, {}, {})
        sources = source_stages(
            settings, zoned, secret=secret, payload_secrets=read_secrets(settings)
        )
        lanes = lane_stages(settings, zoned, secret=secret)
        self._runner = Runner(
            client_options(settings),
            group=f"{settings.cluster.prefix}.workers",
            name=name,
            state_dir=state_dir,
            inputs={
                topics.sources: _by_key("source", sources),
                topics.lanes: _by_key("lane", lanes),
            },
            outputs=(topics.out,),
            address=_addresses(settings),
            commit_s=settings.tick.interval_s / _COMMITS_PER_TICK,
            each_second=self._account,
        )
        self._log = structlog.get_logger().bind(worker=name)

    def run(self) -> None:
        """Run until SIGTERM; see `Runner.run`."""
        self._log.info("worker started")
        self._runner.run()
        self._log.info("worker stopped")

    def registry(self, *, exact: bool) -> CollectorRegistry:
        """Return the metrics, with the accounts or without."""
        return new_registry(
            WorkerCollector(self._runner.observed, lambda: self._accounts, exact=exact)
        )

    def why_dead(self) -> list[str]:
        """Return why the worker should be restarted, if it should."""
        silent_s = time.monotonic() - self._runner.observed.polled_at
        return [f"stages: nothing for {silent_s:.0f} s"] if silent_s > _STUCK_S else []

    def why_not_ready(self) -> list[str]:
        """Return why the worker does not work yet, if it does not."""
        waits = self._runner.observed.n_assigned == 0
        return ["Kafka: no partitions assigned yet"] * waits + self.why_dead()

    def _account(self) -> None:
        """Add up the stages; it runs in their thread, so they are between two inputs."""
        n_received = n_held = 0
        n_of, n_events = Counter[Outcome](), Counter[tuple[str, str]]()
        for resident in self._runner.observed.residents.values():
            stage = resident.stage
            if isinstance(stage, SourceStage):
                n_received += stage.ledger.n_received
                n_held += stage.n_held
                n_of.update(stage.ledger.counts())
            if isinstance(stage, SourceStage | LaneStage):
                kind = "source" if isinstance(stage, SourceStage) else "lane"
                n_events.update({(kind, name): n for name, n in stage.counters.items()})
        self._accounts = Accounts(n_received, n_held, n_of, n_events)


def _by_key(kind: str, make: Callable[[int], Stage]) -> Callable[[bytes], Stage]:
    def of_key(key: bytes) -> Stage:
        found, number = stage_of(key)
        if found != kind:
            raise ValueError("a stage of another kind")
        return make(number)

    return of_key


def _addresses(settings: Settings) -> Callable[[Send], tuple[str, bytes]]:
    sources, lanes, out = topics_of(settings)

    def address(send: Send) -> tuple[str, bytes]:
        if send.to == "source":
            return sources.name, key_of("source", send.number, sources.n_partitions)
        if send.to == "lane":
            return lanes.name, key_of("lane", send.number, lanes.n_partitions)
        return out.name, key_of("lane", send.number, out.n_partitions)

    return address


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise SettingsError(f"--state: {folder}: cannot be made: {reason}") from None


def _serve_in_thread(server: HttpServer) -> None:
    """Answer requests in a thread of their own: the stages keep the main thread."""

    async def serve() -> None:
        async with server.serving():
            await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(serve()), name="http", daemon=True).start()
