"""A real Apache Kafka of one node on this machine, that can be killed and started again.

Its jars come from Maven: `make test-cluster` copies them to `JARS`.
"""

import shutil
import signal
import socket
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

from anonymizer.transport.local_brokers import free_port

JARS = Path(sys.prefix) / "kafka"
_START_S = 120.0
"""Two cores may be shared by many; on idle ones it takes four seconds."""
_QUICK = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of Java for a Kafka that starts quickly."""


class Kafka:
    """Broker and controller in one process, at addresses that stay the same.

    Parameters
    ----------
    folder
        For its configuration and data.
    jars
        Where Kafka's jars are.
    java
        Options of Java.
    beside
        The first node of the same cluster: this one is a broker alone. None: it is the first.
    settings
        Further ones of Kafka's server.
    """

    def __init__(
        self,
        folder: Path,
        *,
        jars: Path = JARS,
        java: Sequence[str] = _QUICK,
        beside: "Kafka | None" = None,
        **settings: str,
    ) -> None:
        self._folder = folder
        self._command = ("java", *java, "-cp", f"{jars}/*")
        broker, controller = free_ports(2)
        self.address = f"127.0.0.1:{broker}"
        """For `bootstrap.servers`."""
        self._controller: str = beside._controller if beside else f"127.0.0.1:{controller}"
        self._id: str = beside._id if beside else _cluster_id()
        listeners = f"PLAINTEXT://{self.address}"
        lines = {
            "process.roles": "broker" if beside else "broker,controller",
            "node.id": f"{broker}" if beside else "1",
            "listeners": listeners if beside else f"{listeners},CONTROLLER://{self._controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{self._controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{folder}/data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            # As docs/scaling.md says: of somebody dead, not ten seconds later.
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self._config = folder / "server.properties"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it on its data, if it has any, and wait until it can be reached."""
        if not (self._folder / "data").exists():
            self._java("kafka.tools.StorageTool", "format", f"--cluster-id={self._id}", "-c").wait(
                _START_S
            )
        self._process = self._java("kafka.Kafka")
        deadline = monotonic() + _START_S
        while not self._answers():
            if monotonic() > deadline or self._process.poll() is not None:
                self.kill()
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            sleep(0.05)

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def lose_everything(self) -> None:
        """End it at once, and empty its disk: the next start is that of a new Kafka."""
        self.kill()
        self._id = _cluster_id()
        shutil.rmtree(self._folder / "data")

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        """Send a signal to its process."""
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_START_S)
            self._process = None

    def _java(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*self._command, *command, str(self._config)], stdout=log, stderr=subprocess.STDOUT
            )

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False


@contextmanager
def running_kafka(
    folder: Path, *, jars: Path = JARS, java: Sequence[str] = _QUICK, **settings: str
) -> Iterator[Kafka]:
    """Run a Kafka in a folder while the block runs; see `Kafka`."""
    kafka = Kafka(folder, jars=jars, java=java, beside=None, **settings)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()


@contextmanager
def running_replicas(
    folder: Path, n: int, *, java: Sequence[str] = _QUICK
) -> Iterator[list[Kafka]]:
    """Run so many brokers while the block runs, each with all that there is.

    Whoever leads a partition does so until it ends.
    """
    copies = {
        "auto_leader_rebalance_enable": "false",
        "default_replication_factor": f"{n}",
        "min_insync_replicas": f"{(n + 1) // 2}",
        "offsets_topic_replication_factor": f"{n}",
        "transaction_state_log_replication_factor": f"{n}",
        "transaction_state_log_min_isr": f"{(n + 1) // 2}",
    }
    with ExitStack() as stack:
        brokers: list[Kafka] = []
        for number in range(n):
            here = folder / f"broker-{number}"
            here.mkdir()
            first = brokers[0] if brokers else None
            brokers.append(Kafka(here, jars=JARS, java=java, beside=first, **copies))
            stack.callback(brokers[-1].kill)
            brokers[-1].start()
        yield brokers


def _cluster_id() -> str:
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


def free_ports(n: int) -> list[int]:
    """Return ports that were free a moment ago, all different.

    No outgoing connection is given one of them: not before what is to have it starts, nor while it
    is dead.
    """
    ports: set[int] = set()
    while len(ports) < n:
        ports.add(free_port())
    return list(ports)
