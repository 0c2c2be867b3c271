"""Processes under test that can be killed and started again, and what Kafka has committed."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from confluent_kafka import Consumer, KafkaError, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from anonymizer.cluster.topics import stage_of

DEADLINE_S = 300.0
"""For what takes seconds: two cores may be shared by many."""


class Processes:
    """Programs by name; each writes what it says into a file of the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of: dict[str, tuple[subprocess.Popen[bytes], Sequence[str]]] = {}

    def start(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *command], stdout=log, stderr=subprocess.STDOUT
            )
        self._of[name] = process, command

    def restart(self, name: str) -> None:
        """End it as `kill -9` does, and start it again."""
        process, command = self._of[name]
        process.kill()
        process.wait()
        self.start(name, *command)

    def revive(self) -> int:
        """Start again what has ended by itself; return how many."""
        ended = [name for name, (process, _) in self._of.items() if process.poll() is not None]
        for name in ended:
            self.restart(name)
        return len(ended)

    def send_signal(self, name: str, number: int) -> None:
        """Send it a signal."""
        self._of[name][0].send_signal(number)

    def stop(self, name: str) -> int:
        """End it in order, and return its exit code."""
        process, _ = self._of.pop(name)
        process.terminate()
        return process.wait(DEADLINE_S)

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def kill(self, *names: str) -> None:
        """End some, or all of them."""
        for name in names or tuple(self._of):
            process, _ = self._of.pop(name)
            process.kill()
            process.wait()


@contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """Kill what was started in the block when it ends."""
    running = Processes(folder)
    try:
        yield running
    finally:
        running.kill()


class Committed:
    """Reads the committed values of a topic while the block runs, by number of the stage.

    `at` has the time of the monotonic clock at which each was there.
    """

    def __init__(self, address: str, topic: str, n_partitions: int) -> None:
        self.values: defaultdict[int, list[bytes]] = defaultdict(list)
        self.at: list[float] = []
        self._places = [TopicPartition(topic, n, 0) for n in range(n_partitions)]
        self._read_to: dict[int, int] = {}
        self._done = Event()
        options: dict[str, Any] = {
            "bootstrap.servers": address,
            "group.id": f"{topic}.reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,  # else `close` waits for a Kafka that is dead
            "enable.partition.eof": True,
        }
        self._consumer: Any = Consumer(options)
        # Kafka's client serves one thread at a time, and the one that polls would never let go.
        self._asks: Any = Consumer(options)
        self._consumer.assign(self._places)
        self._thread = Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                self.values[stage_of(message.key())[1]].append(message.value())
                self.at.append(monotonic())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._read_to[message.partition()] = message.offset()

    def has_all(self) -> bool:
        """Return whether all has been read that is committed now."""
        return all(
            self._read_to.get(place.partition, -1)
            >= self._asks.get_watermark_offsets(place, timeout=60)[1]
            for place in self._places
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()
        self._asks.close()


def answer(port: int, path: str, *, token: str, status: int = 200) -> str | None:
    """Return what a process answers to a request with a status; None if it does not."""
    request = Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urlopen(request, timeout=60) as answered:  # noqa: S310  of this test
            return str(answered.read().decode()) if answered.status == status else None
    except HTTPError as error:
        with error:
            return str(error.read().decode()) if error.code == status else None
    except (OSError, HTTPException):  # it may also end a connection while it starts
        return None


def metrics_of(ports: Iterable[int], *, token: str) -> dict[str, float]:
    """Return sums over processes of what the operator sees; nothing while one is starting."""
    total: dict[str, float] = {}
    for port in ports:
        text = answer(port, "/metrics", token=token)
        if text is None:
            return {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                total[sample.name] = total.get(sample.name, 0.0) + sample.value
    return total


def wait_until(condition: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Return when a condition holds; fail after the deadline."""
    deadline = monotonic() + deadline_s
    while not condition():
        assert monotonic() < deadline, f"not in time: {what}"
        sleep(0.05)
