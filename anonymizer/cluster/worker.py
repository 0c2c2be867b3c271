"""Worker: runs the stages that the consumer group gives it, monitored over HTTP."""

import asyncio
import fcntl
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.app.compilation import compile_kernels
from anonymizer.app.gateway.preflight import check_files, read_registries, read_secrets
from anonymizer.app.gateway.start_log import StartLog
from anonymizer.app.gateway.starting import Startup
from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.input_times import InputTimes
from anonymizer.cluster.kafka import (
    OperatorTopics,
    check_options,
    ensure_topics,
    own_topics,
    worker_secret,
)
from anonymizer.cluster.kafka_inflow import KafkaInflow, kafka_inputs
from anonymizer.cluster.kafka_outflow import Destinations, kafka_outputs
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.positions.lane_stage import LaneStage, lane_stages
from anonymizer.cluster.positions.source_stage import SourceStage, source_stages
from anonymizer.cluster.positions.stage_outputs import takes_long as takes_long_in_lane
from anonymizer.cluster.records.due_windows import takes_long
from anonymizer.cluster.records.searches_by_work import longest_take_s
from anonymizer.cluster.records.stream_routing import together
from anonymizer.cluster.records.stream_stage import StreamStage, stream_stages, warm_up_stages
from anonymizer.cluster.resident import StageEvents, StandstillError
from anonymizer.cluster.runner import Runner, Stages
from anonymizer.cluster.stage import Stage
from anonymizer.cluster.topic_reader import TopicReader
from anonymizer.cluster.topics import Kind, Topic, key_of, stage_of, topic_by_kind, topics_of
from anonymizer.cluster.transactions import Transactions
from anonymizer.cluster.worker_metrics import StageAccounts, WorkerCollector, public_of_worker
from anonymizer.crashes import CRASHES
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.observe.logs import configure_logs
from anonymizer.observe.metrics import new_registry, public_registry
from anonymizer.outputs.file_routes import file_routes
from anonymizer.outputs.registry import asked_for
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.tick.meaning import network_digest
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import Settings, zones_of
from anonymizer.transport.kafka_clients import client_options
from anonymizer.web import HttpServer, create_application
from anonymizer.web.token import read_token

_COMMITS_PER_TICK = 5
"""A tick passes two transactions, one of a source and one of a lane."""
_AWAY_S = 10.0
"""Time without a connection to Kafka after which the worker is not ready."""


def run_worker(settings: Settings, *, name: str, state_dir: Path) -> None:
    """Run a worker until SIGTERM.

    A second process of the same `name` and folder stands by, and takes over when the first has
    ended. `state_dir` has a lock, and what this worker knows of Kafka; it is made if it is missing,
    and holds no data. SettingsError if the settings cannot be used, or ask for what there is not in
    a cluster; TransportError if another worker has this name, or a stage cannot go on.
    """
    configure_logs(settings.log)
    check_cluster(settings)
    check_options(settings)
    secret = worker_secret(settings)
    _make_private(state_dir)
    CRASHES.remember(state_dir / name)
    startup = Startup(settings.http) if settings.http.enabled else None
    if startup is not None:
        _serve_in_thread(startup.server)
        structlog.get_logger().info("listening", url=startup.server.url)
        startup.doing = "reads the network"
    with StartLog() as start:
        start.tell("reads the network")
        network, streams = check_files(settings)
        if startup is not None:
            startup.doing = "compiles kernels"
        start.tell("compiles kernels")
        compile_kernels()
        warm_up_stages(streams)
    zoned = with_zones(network, zones_of(settings.zones))
    worker = Worker(settings, zoned, streams, secret, name=name, state_dir=state_dir)
    with ExitStack() as stack:
        if startup is not None:
            startup.server.show(_application(settings, worker, stack))
        # What is loaded by now is no garbage.
        gc.collect()
        gc.freeze()
        worker.run()


def _application(settings: Settings, worker: "Worker", stack: ExitStack) -> FastAPI:
    """Return health, metrics and the files of outputs; `stack` ends what reads these."""
    token = read_token(settings.http)
    held = HeldFiles()
    if routes := file_routes(settings, held.newest, token=token):
        reader = TopicReader(client_options(settings.kafka), topics_of(settings).files, held.keep)
        stack.callback(reader.close)
    return create_application(
        worker.registry(exact=False),
        exact=worker.registry(exact=True),
        token=token,
        alive=worker.why_dead,
        ready=worker.why_not_ready,
        more=routes,
    )


class Worker:
    """The runner of the stages, and what is known about it.

    `secret` is the key of the pseudonyms, and of the digests of vehicles.
    """

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        streams: Sequence[Stream],
        secret: bytes,
        *,
        name: str,
        state_dir: Path,
    ) -> None:
        topics = topic_by_kind(settings)
        self._settings, self._name = settings, name
        self._longest_take_s = longest_take_s(settings.streams)
        self._accounts = StageAccounts(0, 0, {}, {})
        self._times = InputTimes(longest_s=settings.cluster.wait_s + settings.tick.interval_s)
        self._own = OperatorTopics({}, {})
        self._read = kafka_inputs(settings)
        counts = StageEvents()
        self._destinations = Destinations(topics, kafka_outputs(settings), counts)
        self._runner = Runner(
            client_options(settings.kafka),
            group=f"{settings.kafka.group}.workers",
            name=name,
            state_dir=state_dir,
            inputs={
                topics[kind]: _all_stages(kind, topics[kind], make, settings)._replace(
                    written_with=written_with(kind, settings, zoned.network, secret)
                )
                for kind, make in stage_makers(settings, zoned, streams, secret).items()
            },
            address=self._destinations.of,
            commit_s=settings.tick.interval_s / _COMMITS_PER_TICK,
            longest_take_s=self._longest_take_s,
            counts=counts,
            reads=self._reads if self._read else None,
            prepare=self._prepare,
            each_second=self._account,
        )
        self._log = structlog.get_logger().bind(worker=name)
        self._turn = state_dir / f"{name}.lock"
        self._stands_by = False

    def _prepare(self) -> None:
        """Make the cluster's topics, and look at the operator's own."""
        ensure_topics(self._settings)
        self._own = own_topics(self._settings, self._read, kafka_outputs(self._settings).values())
        self._destinations.largest = self._own.largest

    def _reads(self, link: Transactions) -> KafkaInflow:
        return KafkaInflow(
            self._settings,
            client_options(self._settings.kafka),
            name=self._name,
            link=link,
            observed=self._runner.observed,
            n_partitions=self._own.n_partitions,
        )

    def run(self) -> None:
        """Run until SIGTERM; see `Runner.run`. While another process is this worker, stand by."""
        with self._turn.open("w") as turn:
            self._await(turn)
            self._log.info("worker started")
            self._runner.observed.polled_at = time.monotonic()
            try:
                self._runner.run()
            except StandstillError as error:
                self._stand_still(str(error))
                raise
            self._log.info("worker stopped")

    def _stand_still(self, why: str) -> None:
        """Wait for SIGTERM: a restart would change nothing, and metrics say what is the matter."""
        self._runner.observed.stands_still = why
        self._log.error("stands still", reason=why)
        self._runner.until_told()

    def _await(self, turn: TextIO) -> None:
        """Wait until no other process holds the file: the system frees what a dead one held."""
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stands_by = True
            self._log.info("stands by: another process is this worker")
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._stands_by = False

    def registry(self, *, exact: bool) -> CollectorRegistry:
        """Return the metrics: all, or those that anybody may read."""
        own = WorkerCollector(self._runner.observed, lambda: self._accounts)
        return new_registry(own) if exact else public_registry(public_of_worker(own))

    def why_dead(self) -> list[str]:
        """Return why the worker should be restarted, if it should."""
        if self._stands_by or self._runner.observed.stands_still:
            return []
        return [why] if (why := self._runner.why_stuck()) else []

    def why_not_ready(self) -> list[str]:
        """Return why the worker does not work yet, if it does not."""
        if self._stands_by:
            return ["stands by: another process is this worker"]
        if self._runner.observed.stands_still:
            return [self._runner.observed.stands_still]
        seen = self._runner.observed
        away_s = time.monotonic() - seen.connected_at
        problems = {
            f"waits for Kafka: {seen.waits}": bool(seen.waits),
            "Kafka: no partitions assigned yet": seen.n_assigned == 0 and not seen.waits,
            f"Kafka: no connection for {away_s:.0f} s": away_s > _AWAY_S and not seen.waits,
        }
        found = [problem for problem, there_is in problems.items() if there_is]
        return found + self._times.problems + self.why_dead()

    def _account(self) -> None:
        """Add up the stages; it runs in their thread, so they are between two inputs."""
        n_received = n_held = 0
        n_of, n_events = Counter[Outcome](), Counter[tuple[str, str]]()
        ledgers: dict[str, Ledger] = {}
        n_held_of = Counter[str]()
        for (_, _, key), resident in self._runner.observed.residents.items():
            stage = resident.stage
            if stage is None:
                continue
            if isinstance(stage, SourceStage):
                n_received += stage.ledger.n_received
                n_held += stage.n_held
                n_of.update(stage.ledger.counts())
            if isinstance(stage, StreamStage):
                for stream, ledger, n in stage.ledgers:
                    ledgers.setdefault(stream, Ledger()).add(ledger)
                    n_held_of[stream] += n
            kind, _ = stage_of(key)
            n_events.update({(kind, name): n for name, n in _counters(stage).items()})
        parts = [(stream, ledger, n_held_of[stream]) for stream, ledger in ledgers.items()]
        self._accounts = StageAccounts(n_received, n_held, n_of, n_events, parts)
        seen = self._runner.observed
        stages = [each.stage for each in seen.residents.values() if each.stage is not None]
        self._times.look(stages, parts, owned=seen.owned)


def stage_makers(
    settings: Settings, zoned: ZonedNetwork, streams: Sequence[Stream], secret: bytes
) -> dict[Kind, Callable[[int], Stage]]:
    """Return what makes the stages that the settings need, by their kind."""
    found: dict[Kind, Callable[[int], Stage]] = {}
    if settings.inputs:
        payload_secrets = read_secrets(settings)
        found["source"] = source_stages(
            settings,
            zoned,
            secret=secret,
            registries=read_registries(settings),
            payload_secrets=payload_secrets,
        )
        found["lane"] = lane_stages(settings, zoned, secret=secret)
    if streams:
        found["stream"] = stream_stages(settings, streams, secret=secret)
    return found


def written_with(
    kind: Kind, settings: Settings, network: RoadNetwork, secret: bytes
) -> dict[str, Any]:
    """Return the settings without which snapshots of a kind of stage mean something else.

    By their keys. Under another secret a device has another key and would count twice. Not k: what
    was stated says its own, and groups end by themselves where they were formed under other
    settings (see `SessionCloak.restore`).
    """
    found = {
        "cluster.secret_file": blake2b(b"snapshots", key=secret, digest_size=8).hexdigest(),
        "cluster.n_parts": settings.cluster.n_parts,
        "tick.interval_s": settings.tick.interval_s,
    }
    if kind not in {"source", "lane"}:
        return found
    found["network.source"] = network_digest(network)
    for name in ("districts", "mode", "cloak"):
        found[f"region.{name}"] = getattr(settings.region, name)
    if any(each.payload and each.payload.join_s for each in settings.inputs):
        found["inputs"] = [
            each.topic for each in settings.inputs
        ]  # halves are known by their order
    if settings.region.districts > 1:
        found["region.min_nodes"] = settings.region.min_nodes
    found["readings"] = [each.name for each in settings.readings]
    found["trips"] = settings.trips.model_dump(mode="json")
    for output in asked_for(settings):
        found |= output.meaning(settings)
    return found


def _counters(stage: Stage) -> Mapping[str, int]:
    known = SourceStage | LaneStage | StreamStage
    return stage.counters if isinstance(stage, known) else {}


def _all_stages(
    kind: Kind, topic: Topic, make: Callable[[int], Stage], settings: Settings
) -> Stages:
    n = len(together(settings.streams)) if kind == "stream" else topic.n_partitions
    keys = [key_of(kind, number, topic.n_partitions) for number in range(n)]
    long = takes_long_in_lane if kind == "lane" else takes_long
    return Stages(_by_key(kind, make), keys, takes_long=long)


def _by_key(kind: str, make: Callable[[int], Stage]) -> Callable[[bytes], Stage]:
    def of_key(key: bytes) -> Stage:
        found, number = stage_of(key)
        if found != kind:
            raise ValueError("a stage of another kind")
        return make(number)

    return of_key


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
