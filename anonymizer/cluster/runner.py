"""Runs the stages of a worker: it takes inputs from Kafka, and sends what the stages make of them.

Each key of the input topics names a stage, which stays in memory (`resident.py`). The consumer
group gives the partitions to the workers. A worker that dies is replaced after the session's
timeout; one that comes back under its name within that time goes on with its own partitions, and
nobody else is interrupted. Messages that a stage sends carry the time of the input that made it
send them: everything after the bridges is determined by what the bridges wrote, and by the order in
the partitions.

A runner that loses Kafka, or that Kafka has given up because it was silent for too long, begins
again as a new process would, until it is told to end.
"""

import json
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import structlog

from anonymizer.cluster.dropping import Dropped, encode_dropped
from anonymizer.cluster.ending import STUCK_S, ends_in_time, ends_when_stuck
from anonymizer.cluster.erasing import Eraser
from anonymizer.cluster.journals import Journals
from anonymizer.cluster.kafka import ensure_changelogs
from anonymizer.cluster.patience import Patience
from anonymizer.cluster.resident import Input, Resident, StageEvents
from anonymizer.cluster.stage import Send, Stage
from anonymizer.cluster.topics import Topic, partition_of
from anonymizer.cluster.transactions import (
    FencedError,
    Places,
    Transactions,
    lags_of,
    translated,
)
from anonymizer.cluster.worker_metrics import WorkDone
from anonymizer.domain.discreet import discreet
from anonymizer.errors import TransportError
from anonymizer.extras import extra
from anonymizer.transport.kafka_clients import MESSAGE_BYTES
from anonymizer.transport.kafka_problems import KafkaLostError

with extra("kafka"):
    from confluent_kafka.admin import AdminClient

_REST_S = 0.01
"""Longest time between two looks at what is read besides."""
_LONG_S = 10.0
"""Time for one input beyond which it is logged."""
_SILENT_S = 60.0
"""Time without a sign from the thread of the stages after which the worker is to be restarted."""
_FENCED_S, _MOST_FENCED = 120.0, 5
"""A worker ends when others have taken its place under its name so often within this time."""
_LARGEST_BYTES = MESSAGE_BYTES - (64 << 10)
"""Of the content of a message; Kafka also counts its key and headers."""


class Stages(NamedTuple):
    """All stages that read a topic, whoever runs them.

    `written_with`: see `Resident`; `takes_long`: whether a stage may work on an input for seconds.
    """

    make: Callable[[bytes], Stage]
    keys: Sequence[bytes]
    takes_long: Callable[[bytes], bool] = lambda _: False
    written_with: Mapping[str, Any] = MappingProxyType({})


@discreet
class Addressed(NamedTuple):
    """A message of Kafka: its topic, key and value."""

    topic: str
    key: bytes | None
    value: bytes


class Reads(Protocol):
    """What a worker reads beside the inputs of its stages, see `kafka_inflow.KafkaInflow`."""

    def read(self) -> bool:
        """Read what has arrived; return whether there was anything."""
        ...

    def state_last(self) -> None:
        """Say that nothing more will come."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


class Runner:
    """Runs the stages whose partitions the group assigns to this worker.

    When a snapshot is committed, the inputs that it contains are deleted in Kafka: they are raw
    data, and kept without a time limit for stages that may be restarted after days.

    `name` is unique in the group and the same after a restart. `address` returns what a message of
    a stage is in Kafka; those to `dropped` say which inputs were dropped. Outputs are seen when a
    transaction ends, every `commit_s`. A stage may work for `longest_take_s` on one input: a worker
    that is silent for longer loses its partitions, and a change in the group waits for one that
    works; `stuck_s`: see `ends_when_stuck`. `reads` returns what is read besides in these
    transactions; `prepare` is called before every attempt, to make what has to be there in Kafka,
    `each_second` about once a second in the thread of `run`, between two inputs.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        *,
        group: str,
        name: str,
        state_dir: Path,
        inputs: Mapping[Topic, Stages],
        address: Callable[[Send], Iterable[Addressed]],
        commit_s: float,
        longest_take_s: float,
        stuck_s: float = STUCK_S,
        counts: StageEvents | None = None,
        reads: Callable[[Transactions], Reads] | None = None,
        prepare: Callable[[], None] = lambda: None,
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        self.observed = WorkDone(counts=counts or StageEvents())
        self._prepare, self._each_second = prepare, each_second
        self._kafka, self._group, self._name = dict(kafka), group, name
        self._state_dir, self._commit_s = state_dir, commit_s
        self._longest_take_s, self._stuck_s = longest_take_s, stuck_s
        self._make_reads = reads
        self._inputs, self._address = tuple(inputs), address
        self._stages = {topic.name: stages for topic, stages in inputs.items()}
        self._keys: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        for topic, stages in inputs.items():
            self.observed.n_taken[topic.name] = 0
            for key in stages.keys:
                self._keys[topic.name, partition_of(key, topic.n_partitions)].append(key)
        self._ending = Event()
        self._fenced_at: list[float] = []

    def run(self) -> None:
        """Run until SIGTERM, then commit what was taken. Wait for Kafka while it is away.

        Call it in the main thread. If that is stuck, the process ends; see `ends_when_stuck`.

        StandstillError if a stage cannot go on, because inputs that it needs are not there;
        TransportError if another worker has this name, or a stage sends what Kafka does not take.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.set())
        with ends_in_time(), ends_when_stuck(self.why_stuck, within_s=self._stuck_s):
            self._run_until_told()

    def until_told(self) -> None:
        """Return when this process is told to end, or at once if it has been, since `run` began."""
        self._ending.wait()

    def why_stuck(self) -> str:
        """Return for how long there was no sign from the thread of the stages, if for too long."""
        seen = self.observed
        silent_s = time.monotonic() - seen.polled_at
        most_s = _SILENT_S if seen.taking_since is None else self._longest_take_s
        return f"stages: nothing for {silent_s:.0f} s" if silent_s > most_s else ""

    def _run_until_told(self) -> None:
        seen, patience = self.observed, Patience()
        while not self._ending.is_set():
            try:
                self._attempt()
            except KafkaLostError as error:
                self._note_fenced(error)
                if self._ending.is_set():
                    _LOG.warning("ended without Kafka; it is to be taken again", reason=str(error))
                    return
                seen.waits = str(error)
                wait_s = patience.next_s()
                _LOG.warning("waits for Kafka", reason=str(error), seconds=round(wait_s, 1))
                self._pause(wait_s)

    def _note_fenced(self, error: KafkaLostError) -> None:
        """End if another worker takes this place again and again, since that one is alive."""
        if not isinstance(error, FencedError):
            return
        now = time.monotonic()
        self._fenced_at = [at for at in self._fenced_at if now - at < _FENCED_S] + [now]
        if len(self._fenced_at) >= _MOST_FENCED:
            raise TransportError(
                "Kafka: another worker has this name, and both cannot work: end one of them, or"
                " give it a name of its own (--name)"
            ) from error

    def _pause(self, wait_s: float) -> None:
        """Wait, and show that this thread is alive."""
        until = time.monotonic() + wait_s
        while not self._ending.is_set() and time.monotonic() < until:
            self._is_alive()
            self._ending.wait(min(1.0, until - time.monotonic()))

    def _is_alive(self) -> None:
        self.observed.polled_at = time.monotonic()

    def _attempt(self) -> None:
        """Take inputs until told to end, or until something fails.

        Raises `KafkaLostError` if that is for lack of Kafka.
        """
        with translated(), ExitStack() as stack:
            self._prepare()
            self._is_alive()
            ensure_changelogs(self._kafka, self._group, self._inputs)
            admin = stack.enter_context(AdminClient(dict(self._kafka)))
            self._link = link = Transactions(
                self._kafka,
                group=self._group,
                name=self._name,
                silent_s=self._longest_take_s,
                assigned=self._on_assigned,
                revoked=self._on_revoked,
                statistics=self._on_statistics,
            )
            stack.callback(link.close)
            self._journals = Journals(
                self._kafka,
                self._group,
                self._state_dir / self._name / f"{self._group}.topics.json",
                admin=admin,
                store=link.store,
                waited=self._note_restored,
            )
            stack.callback(self._journals.close)
            self._check_topics()
            self._eraser = Eraser(admin, self.observed.deletions)
            self._erasable: dict[tuple[str, int], int] = {}
            seen = self.observed  # until now it shows since when nothing has come
            seen.owned, seen.residents, seen.lag = frozenset(), {}, {}
            seen.read, seen.read_lag = frozenset(), {}
            link.join([topic.name for topic in self._inputs])
            reads = self._make_reads(link) if self._make_reads else None
            if reads is not None:
                stack.callback(reads.close)
            self._serve(reads)

    def _serve(self, reads: Reads | None) -> None:
        due_at = time.monotonic() + self._commit_s
        rest_s = self._commit_s if reads is None else _REST_S
        while not self._ending.is_set():
            message = self._link.poll(max(0.0, min(rest_s, due_at - time.monotonic())))
            if message is not None:
                self._take(message)
            now = time.monotonic()
            if reads is not None and (message is None or now >= due_at):
                # What stages have still to take comes first.
                rest_s = 0.0 if reads.read() else _REST_S
            if now >= due_at:
                self._commit()
                due_at = now + self._commit_s
        if reads is not None:
            reads.state_last()
        self._commit()

    def _take(self, message: Any) -> None:  # noqa: ANN401  of the library
        """Let a stage take an input, and send what it sends."""
        topic, partition, key = message.topic(), message.partition(), message.key()
        _, at_ms = message.timestamp()
        given = Input(message.offset(), message.value() or b"", at_ms / 1000)
        if key in self._keys[topic, partition]:
            resident = self._resident_of(topic, partition, key, given)
            self._link.take(topic, partition, given.offset)
            sends = self._taken(resident, key, given)
            check_sizes(sends, by=key)
            self.observed.n_taken[topic] += 1
            self.observed.n_sent.update(send.to for send in sends)
        else:  # it would make a new stage, or a twin of one in another partition
            self._link.take(topic, partition, given.offset)
            self.observed.counts.n_dropped["unaddressed"] += 1
            sends = _dropped(topic, partition, given, "unaddressed")
        for send in sends:
            for each in self._address(send):
                self._link.send(*each, at_ms=at_ms)

    def _resident_of(self, topic: str, partition: int, key: bytes, given: Input) -> Resident:
        """Return the stage that is to take an input; commit if it may work on it for long.

        Kafka ends a transaction after `TRANSACTION_S`, counted from its first output, and with it
        the worker. The next one would come to the same input, and end in the same way.
        """
        stages, residents = self._stages[topic], self.observed.residents
        place = topic, partition, key
        if place not in residents or stages.takes_long(given.value):
            self._commit()
        if place not in residents:
            residents[place] = Resident(
                lambda: stages.make(key),
                self._journals.of(*place),
                lambda given, why: _dropped(topic, partition, given, why),
                self.observed.counts,
                written_with=stages.written_with,
            )
        return residents[place]

    def _taken(self, resident: Resident, key: bytes, given: Input) -> list[Send]:
        began = self.observed.taking_since = time.monotonic()
        try:
            sends = resident.take(given)
        finally:
            self.observed.taking_since = None
            self._is_alive()
        if (took_s := time.monotonic() - began) > _LONG_S:
            _LOG.warning(
                "a stage took long, and others of this worker waited for it",
                stage=key.decode(),
                seconds=round(took_s, 1),
            )
        return sends

    def _commit(self) -> None:
        """Commit, and let inputs be deleted.

        Those that were covered when the transaction before ended: its end is then in all
        partitions, so that whoever restores a state finds no older one.
        """
        if self._link.commit():
            self._eraser.erase(self._erasable)
            self._erasable = self._covered()

    def _covered(self) -> dict[tuple[str, int], int]:
        """Return the first offset of each partition that snapshots do not contain, where known."""
        residents, found = self.observed.residents, {}
        for place in self.observed.owned:
            of_place = [residents.get((*place, key)) for key in self._keys[place]]
            covered = [-1 if each is None else each.covered for each in of_place]
            if min(covered, default=-1) >= 0:
                found[place] = min(covered) + 1
        return found

    def _check_topics(self) -> None:
        """Check that no topic was created anew: its inputs must not be taken."""
        for topic in self._inputs:
            self._journals.check(topic.name)
            self._is_alive()

    def _on_assigned(self, places: Places, same: Places) -> None:
        """Go on with the stages whose inputs nobody has taken meanwhile, and forget the others."""
        self._check_topics()
        seen = self.observed
        seen.n_assigned += 1
        seen.owned, seen.waits = places, ""
        seen.residents = {
            place: resident for place, resident in seen.residents.items() if place[:2] in same
        }
        _LOG.info("partitions assigned", partitions=sorted(map(list, seen.owned)))

    def _on_revoked(self) -> None:
        self.observed.owned = frozenset()

    def _note_restored(self, seconds: float) -> None:
        self.observed.restoring_s += seconds

    def _on_statistics(self, text: str) -> None:
        seen = self.observed
        self._is_alive()
        if is_connected(text):
            seen.connected_at = seen.polled_at
        seen.lag = {place: lag for place, lag in lags_of(text).items() if place in seen.owned}
        self._each_second()


def is_connected(statistics: str) -> bool:
    """Return whether Kafka's client has a connection to any broker."""
    return any(each["state"] == "UP" for each in json.loads(statistics)["brokers"].values())


def check_sizes(sends: Iterable[Send], *, by: bytes) -> None:
    """Check that Kafka takes what a stage sends.

    Raises `TransportError` if it does not. The stage cannot go on without the message: others wait
    for it.
    """
    for send in sends:
        if len(send.value) > _LARGEST_BYTES:
            raise TransportError(
                f"cluster: {by.decode()} sends a message of {len(send.value)} bytes to {send.to}"
                f" {send.number}, and {_LARGEST_BYTES} is the limit: choose larger numbers of"
                " sources or districts, and another prefix"
            )


def _dropped(topic: str, partition: int, given: Input, why: str) -> list[Send]:
    """Say that an input was dropped: in the log, and in Kafka."""
    said = Dropped(topic, partition, given.offset, given.at_s, len(given.value), why)
    _LOG.error("an input was dropped", **said._asdict())
    return [Send("dropped", 0, encode_dropped(said))]


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
