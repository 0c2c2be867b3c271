"""Both engines behind the same few verbs: our workers, and a Flink of our stages."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.positions.raw_batches import decode_out
from anonymizer.cluster.topics import PARTITIONER, Kind, key_of, stage_of, topics_of
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import load_settings
from benchmarks.flink.packed import Packed
from tests.cluster.kafka import free_ports
from tests.cluster.processes import wait_until

ENGINES = ("ours", "flink")
HERE = Path(__file__).parent
_ERASE_S = 60.0
_LARGE = {"max.message.bytes": str(16 << 20)}


class Engine(Protocol):
    """Runs the stages of a settings file on a Kafka."""

    name: str
    has_manager: bool
    """Whether a program divides the work."""
    published: "Published"

    def start(self, n_workers: int) -> None:
        """Start with so many workers."""

    def feed(self, values: Sequence[bytes], *, at_s: float, to: Kind = "source") -> None:
        """Send what a bridge sends to each source, or to each stream."""

    def begin_anew(self) -> bool:
        """Do what an operator does after Kafka came back empty; return whether states survive."""

    def says(self) -> str:
        """Return why the engine does not work, as its operator is told; empty if it works."""

    def places(self) -> dict[str, list[bytes]]:
        """Return all that is kept now, by where."""

    def kill_worker(self) -> None:
        """End a worker as `kill -9` does, and start it again."""

    def freeze_worker(self, seconds: float) -> None:
        """Let a worker stand still, and go on."""

    def kill_manager(self) -> None:
        """Do the same to what divides the work."""

    def resume(self, config: Path, n_workers: int) -> None:
        """Stop in order, and go on with other settings or workers."""

    def revive(self) -> int:
        """Start again what has ended by itself; return how many times that was, so far."""

    def stop(self) -> None:
        """End everything."""

    @property
    def pids(self) -> list[int]:
        """Of all its processes."""


class Asked(NamedTuple):
    """Which engine: `ours` or `flink`, where it may write, and the environment of Flink."""

    name: str
    folder: Path
    environment: Path

    def engine(self, config: Path, home: Path) -> Engine:
        """Return it, not started yet."""
        if self.name == "ours":
            return Ours(config, home)
        return Flink(config, home, environment=self.environment)


class Published:
    """Reads what is committed in a topic: messages for MQTT by lane, and when each came."""

    def __init__(self, servers: str, topic: str, n_partitions: int, *, packed: bool) -> None:
        self.messages: defaultdict[int, list[Outgoing]] = defaultdict(list)
        self.came: list[tuple[float, Outgoing]] = []
        self._packed = packed
        self._servers, self._topic, self._n_partitions = servers, topic, n_partitions
        self.open()

    def open(self) -> None:
        """Read the topic from its beginning."""
        self._done = Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"{self._topic}.reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 10,
                "log_level": 0,
            }
        )
        self._consumer.assign(
            [TopicPartition(self._topic, n, 0) for n in range(self._n_partitions)]
        )
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            kind, number, value = self._said(message)
            if kind == "out":
                some = list(decode_out(value))
                self.messages[number] += some
                self.came += [(time.time(), each) for each in some]

    def _said(self, message: Any) -> tuple[str, int, bytes]:  # noqa: ANN401  of the library
        if not self._packed:
            return *stage_of(message.key()), message.value()
        said = Packed.of(message.value())
        return said.kind, said.number, said.value

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self.came)

    def close(self) -> None:
        """Disconnect."""
        self._done.set()
        self._thread.join()
        self._consumer.close()


class _Programs:
    """Programs by name, each in a session of its own, so that its children are known."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self._folder, self._environment = folder, {**os.environ, **(environment or {})}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._command_of: dict[str, tuple[str, ...]] = {}
        self.n_revived = 0

    def start(self, name: str, *command: str) -> None:
        self._command_of[name] = command
        with (self._folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(  # noqa: S603  of this benchmark
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def end(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a program, and what it has started."""
        program = self.running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        program.wait()

    def revive(self) -> None:
        """Start again what has ended by itself, as a supervisor does."""
        for name in [name for name, each in self.running.items() if each.poll() is not None]:
            self.n_revived += 1
            self.start(name, *self._command_of[name])

    def end_all(self) -> None:
        for name in list(self.running):
            self.end(name)

    @property
    def pids(self) -> list[int]:
        """Of all processes in their sessions."""
        sessions = {program.pid for program in self.running.values()}
        return [pid for pid in _all_pids() if _session_of(pid) in sessions]


def _all_pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").glob("[0-9]*")]


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


class Ours:
    """Workers of this package."""

    name = "ours"
    has_manager = False

    def __init__(self, config: Path, folder: Path) -> None:
        self.settings = load_settings(config)
        self._config, self._folder = config, folder
        ensure_topics(self.settings)
        self._topics = topics_of(self.settings)
        self._servers = self.settings.kafka.servers
        self.published = Published(self._servers, *self._topics.out, packed=False)
        self._producer = self._connected()
        self._programs = _Programs(folder)

    def _connected(self) -> Producer:
        return Producer(
            {"bootstrap.servers": self._servers, "partitioner": PARTITIONER, **_PRODUCER}
        )

    def start(self, n_workers: int) -> None:
        """See `Engine`."""
        for number in range(n_workers):
            self._start(f"w{number}")

    def _start(self, name: str) -> None:
        command = (sys.executable, "-m", "anonymizer", "worker", "-c", str(self._config))
        self._programs.start(name, *command, "--name", name, "--state", self._state)

    @property
    def _state(self) -> str:
        return str(self._folder / "state")

    def feed(self, values: Sequence[bytes], *, at_s: float, to: Kind = "source") -> None:
        """See `Engine`."""
        topic = self._topics.sources if to == "source" else self._topics.parts
        for number, value in enumerate(values):
            key = key_of(to, number, topic.n_partitions)
            self._producer.produce(topic.name, value, key, timestamp=int(at_s * 1000))
        self._producer.flush()

    def begin_anew(self) -> bool:
        """See `Engine`: as the alert ClusterStateLost says."""
        names = list(self._programs.running)
        for name in names:
            self._programs.end(name, signal.SIGTERM)
        command = (sys.executable, "-m", "anonymizer", "cluster", "erase", "--yes")
        where = ("--config", str(self._config), "--state", self._state)
        self._programs.start("erase", *command, *where)
        if self._programs.running.pop("erase").wait(_ERASE_S):
            raise RuntimeError((self._folder / "erase.log").read_text(encoding="utf-8"))
        ensure_topics(self.settings)
        self.published.close()
        self.published.open()
        self._producer = self._connected()
        for name in names:
            self._start(name)
        return False

    def says(self) -> str:
        """See `Engine`."""
        log = (self._folder / "w0.log").read_text(encoding="utf-8")
        port = re.findall(r"http://127\.0\.0\.1:(\d+)", log)[-1]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError:
            return ""

    def places(self) -> dict[str, list[bytes]]:
        """See `Engine`."""
        return values_in(self._servers, self.settings.kafka.group)

    def kill_worker(self) -> None:
        """See `Engine`."""
        self._programs.end("w0")
        self._start("w0")

    def freeze_worker(self, seconds: float) -> None:
        """See `Engine`."""
        _freeze(self._programs.running["w0"].pid, seconds)

    def kill_manager(self) -> None:
        """See `Engine`."""
        raise SystemExit("ours has no manager to kill: leave out `manager`")

    def resume(self, config: Path, n_workers: int) -> None:
        """See `Engine`."""
        self._config = config
        for name in list(self._programs.running):  # all: one left over has the old settings
            self._programs.end(name, signal.SIGTERM)
        self.start(n_workers)

    def revive(self) -> int:
        """See `Engine`."""
        self._programs.revive()
        return self._programs.n_revived

    def stop(self) -> None:
        """See `Engine`."""
        self._programs.end_all()
        self.published.close()

    @property
    def pids(self) -> list[int]:
        """See `Engine`."""
        return self._programs.pids


class Flink:
    """A session cluster of Flink with ZooKeeper, a worker being a TaskManager of one slot."""

    name = "flink"
    has_manager = True

    def __init__(self, config: Path, folder: Path, *, environment: Path) -> None:
        self.settings = load_settings(config)
        self._config, self._folder, self._environment = config, folder, environment
        self.home = next(environment.glob("lib/python3*/site-packages/pyflink"))
        kafka = self.settings.kafka
        self._raw, self._sent = f"{kafka.group}.raw", f"{kafka.group}.sent"
        self._n_begun = 0
        self._make_topics()
        self.published = Published(kafka.servers, self._sent, 1, packed=True)
        self._producer = Producer({"bootstrap.servers": kafka.servers, **_PRODUCER})
        self._rest, rpc, zookeeper, quorum, leader = free_ports(5)
        conf = folder / "conf"
        shutil.copytree(self.home / "conf", conf, dirs_exist_ok=True)
        opens = _java_options((self.home / "conf" / "config.yaml").read_text(encoding="utf-8"))
        settings = (HERE / "config.yaml").read_text(encoding="utf-8")
        (conf / "config.yaml").write_text(
            settings.format(
                opens=opens,
                rest=self._rest,
                rpc=rpc,
                zookeeper=zookeeper,
                folder=folder,
                python=environment / "bin" / "python",
            ),
            encoding="utf-8",
        )
        (conf / "zoo.cfg").write_text(
            f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={folder}/zookeeper\n"
            f"clientPort={zookeeper}\nserver.1=localhost:{quorum}:{leader}\n",
            encoding="utf-8",
        )
        self._programs = _Programs(
            folder,
            {
                "FLINK_CONF_DIR": str(conf),
                "FLINK_LOG_DIR": str(folder),
                "FLINK_HOME": str(self.home),
                "NUMBA_CACHE_DIR": str(environment / "numba"),
                "PATH": f"{environment}/bin:{os.environ['PATH']}",
            },
        )

    def _make_topics(self) -> None:
        n_parts = self.settings.cluster.n_parts
        make_topics(self.settings.kafka.servers, {self._raw: n_parts, self._sent: 1})

    def start(self, n_workers: int) -> None:
        """See `Engine`."""
        self._bin("zookeeper", "zookeeper.sh", "start-foreground", "1")
        self._bin("manager", "jobmanager.sh", "start-foreground")
        for number in range(n_workers):
            self._bin(f"w{number}", "taskmanager.sh", "start-foreground")
        self._submit(n_workers)

    def _bin(self, name: str, program: str, *arguments: str) -> None:
        self._programs.start(name, str(self.home / "bin" / program), *arguments)

    def _submit(self, n_workers: int, savepoint: str = "") -> None:
        wait_until(
            lambda: len(self._asked("taskmanagers").get("taskmanagers", [])) >= n_workers,
            "TaskManagers",
        )
        before = ("-s", savepoint, "--allowNonRestoredState") if savepoint else ()
        job = ("-py", str(HERE / "job.py"), "-pyfs", f"{HERE}/packed.py,{HERE}/stage_function.py")
        numbers = (str(self._config), str(self.settings.cluster.n_parts), str(self._n_begun))
        self._flink("run", "-d", "-p", str(n_workers), *before, *job, *numbers)
        wait_until(self._runs, "the job", deadline_s=600)

    def _flink(self, *command: str) -> str:
        self._bin("flink", "flink", *command)
        program = self._programs.running.pop("flink")
        if program.wait(600):
            raise RuntimeError((self._folder / "flink.log").read_text(encoding="utf-8")[-3000:])
        return (self._folder / "flink.log").read_text(encoding="utf-8")

    def _asked(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://localhost:{self._rest}/{path}", timeout=5) as said:
                return dict(json.load(said))
        except OSError:
            return {}

    def _jobs(self) -> list[str]:
        found = self._asked("jobs").get("jobs", [])
        return [
            each["id"] for each in found if each["status"] not in {"FINISHED", "FAILED", "CANCELED"}
        ]

    def _runs(self) -> bool:
        return any(self.tasks() == Counter({"RUNNING": n}) for n in range(1, 20))

    def tasks(self) -> Counter[str]:
        """Return how many tasks of the job are in each state."""
        jobs = self._jobs()
        vertices = self._asked(f"jobs/{jobs[0]}").get("vertices", []) if jobs else []
        return Counter(
            state for each in vertices for state, n in each["tasks"].items() for _ in range(n)
        )

    def begin_anew(self) -> bool:
        """See `Engine`: go on from the last checkpoint, without where Kafka was read."""
        jobs = self._jobs()
        self._flink("cancel", *jobs)
        self._make_topics()
        self.published.close()
        self.published.open()
        self._producer = Producer({"bootstrap.servers": self.settings.kafka.servers, **_PRODUCER})
        self._n_begun += 1
        whole = (self._folder / "checkpoints" / jobs[0]).glob("chk-*/_metadata")
        last = max((each.parent for each in whole), key=lambda each: int(each.name[4:]))
        self._submit(1, f"file://{last}")
        return True

    def says(self) -> str:
        """See `Engine`."""
        for job in self._jobs():
            if not self._runs():
                found = self._asked(f"jobs/{job}/exceptions?maxExceptions=1")
                entries = found.get("exceptionHistory", {}).get("entries", [])
                return str(entries[0]["stacktrace"]) if entries else ""
        return ""

    def places(self) -> dict[str, list[bytes]]:
        """See `Engine`."""
        files = [each for each in (self._folder / "checkpoints").rglob("*") if each.is_file()]
        kept = {"checkpoints": [each.read_bytes() for each in files]}
        return kept | values_in(self.settings.kafka.servers, self.settings.kafka.group)

    def feed(self, values: Sequence[bytes], *, at_s: float, to: Kind = "source") -> None:
        """See `Engine`."""
        for number, value in enumerate(values):
            packed = bytes(Packed(to, number, at_s, value))
            self._producer.produce(self._raw, packed, partition=number, timestamp=int(at_s * 1000))
        self._producer.flush()

    def kill_worker(self) -> None:
        """See `Engine`."""
        self._programs.end("w0")
        self._bin("w0", "taskmanager.sh", "start-foreground")

    def freeze_worker(self, seconds: float) -> None:
        """See `Engine`."""
        _freeze(self._programs.running["w0"].pid, seconds)

    def kill_manager(self) -> None:
        """See `Engine`."""
        self._programs.end("manager")
        self._bin("manager", "jobmanager.sh", "start-foreground")

    def resume(self, config: Path, n_workers: int) -> None:
        """See `Engine`."""
        self._config = config
        said = self._flink(
            "stop", "--savepointPath", f"file://{self._folder}/savepoints", *self._jobs()
        )
        savepoint = said.rpartition("Path: ")[2].split()[0]
        for number in range(n_workers):
            if f"w{number}" not in self._programs.running:
                self._bin(f"w{number}", "taskmanager.sh", "start-foreground")
        self._submit(n_workers, savepoint)

    def revive(self) -> int:
        """See `Engine`."""
        self._programs.revive()
        return self._programs.n_revived

    def stop(self) -> None:
        """See `Engine`."""
        self._programs.end_all()
        self.published.close()

    @property
    def pids(self) -> list[int]:
        """See `Engine`."""
        return self._programs.pids


_PRODUCER = {
    "enable.idempotence": True,
    "message.max.bytes": 16 << 20,
    "compression.type": "lz4",
    "log_level": 0,
}


def make_topics(servers: str, n_of: dict[str, int]) -> None:
    """Make topics with so many partitions, and wait until they are there."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics(
        [NewTopic(name, n, config=_LARGE) for name, n in n_of.items()]
    ).values():
        made.result()
    wait_until(lambda: n_of.keys() <= admin.list_topics(timeout=30).topics.keys(), "topics")


def values_in(servers: str, prefix: str) -> dict[str, list[bytes]]:
    """Return what can be read in the topics that have a prefix in their names, by topic."""
    found: dict[str, list[bytes]] = {}
    options = {"bootstrap.servers": servers, "group.id": f"{prefix}.looks", "log_level": 0}
    reader = Consumer({**options, "enable.partition.eof": True, "enable.auto.commit": False})
    for name, topic in reader.list_topics(timeout=30).topics.items():
        if prefix not in name:
            continue
        found[name] = []
        places = [TopicPartition(name, n, OFFSET_BEGINNING) for n in topic.partitions]
        reader.assign(places)
        n_left = len(places)
        while n_left and (message := reader.poll(30)) is not None:
            if message.error() is not None:
                n_left -= 1
            else:
                found[name].append(message.value() or b"")
    reader.close()
    return found


def _java_options(config: str) -> str:
    """Return what Flink's own settings tell Java."""
    return next(
        line.partition("all:")[2].strip() for line in config.splitlines() if "all: --add" in line
    )


def _freeze(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
