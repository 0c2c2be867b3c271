"""Runs stages as an application of Quix Streams: outputs, state and offsets in one transaction.

Each key of the input topics names a stage, which stays in memory (`resident.py`). The consumer
group gives the partitions to the workers. A worker that dies is replaced after the session's
timeout; one that comes back under its name within that time goes on with its own partitions, and
nobody else is interrupted. Messages that a stage sends carry the time of the input that made it
send them: everything after the bridges is determined by what the bridges wrote, and by the order in
the partitions.

A runner that loses Kafka, or that Kafka has given up because it was silent for too long, begins
again with a new application, as a new process would, until it is told to end.
"""

import json
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import structlog

from anonymizer.cluster.application import StageApplication, make_changelogs, translated
from anonymizer.cluster.dropping import Dropped, encode_dropped
from anonymizer.cluster.ending import ends_in_time
from anonymizer.cluster.erasing import Eraser
from anonymizer.cluster.journals import Journals
from anonymizer.cluster.kafka import MESSAGE_BYTES
from anonymizer.cluster.patience import Patience
from anonymizer.cluster.recovery import hasten_recovery
from anonymizer.cluster.resident import Input, Resident, State
from anonymizer.cluster.topics import Topic, partition_of
from anonymizer.cluster.worker_metrics import Observed
from anonymizer.errors import TransportError
from anonymizer.extras import extra
from anonymizer.pipeline.stage import Send, Stage
from anonymizer.transport.kafka_problems import KafkaLostError

with extra("cluster"):
    from quixstreams import message_context

_LONG_S = 10.0
"""Time for one input beyond which it is logged."""
_LARGEST_BYTES = MESSAGE_BYTES - (64 << 10)
"""Of the content of a message; Kafka also counts its key and headers."""


class Stages(NamedTuple):
    """All stages that read a topic, whoever runs them.

    Attributes
    ----------
    make
        Returns a new stage for a key.
    keys
        Of all of them.
    heals
        See `Resident`.
    takes_long
        Whether a stage may work on an input for seconds.
    """

    make: Callable[[bytes], Stage]
    keys: Sequence[bytes]
    heals: bool = False
    takes_long: Callable[[bytes], bool] = lambda _: False


class Runner:
    """Runs the stages whose partitions the group assigns to this worker.

    When a snapshot is committed, the inputs that it contains are deleted in Kafka: they are raw
    data, and kept without a time limit for stages that may be restarted after days.

    Parameters
    ----------
    kafka
        Options of librdkafka that connect: `bootstrap.servers`, encryption, login.
    group
        Name of the consumer group, and part of the names of the state's topics.
    name
        Of this worker, unique in the group and the same after a restart.
    state_dir
        Where states are kept; if it is empty, they are read from Kafka.
    inputs
        For each input topic, its stages.
    outputs
        All topics that stages send to.
    address
        Returns the name of the topic, and the key, for a message.
    dropped
        Topic for what is said about inputs that were dropped.
    commit_s
        Time between two transactions. Until one ends, nobody sees its outputs.
    prepare
        Called before every attempt, to make what has to be there in Kafka.
    each_second
        Called about once a second in the thread of `run`, between two inputs.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        *,
        group: str,
        name: str,
        state_dir: Path,
        inputs: Mapping[Topic, Stages],
        outputs: tuple[Topic, ...],
        address: Callable[[Send], tuple[str, bytes]],
        dropped: Topic,
        commit_s: float,
        prepare: Callable[[], None] = lambda: None,
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        self.observed = Observed()
        self._prepare, self._each_second = prepare, each_second
        self._kafka, self._group, self._name = dict(kafka), group, name
        self._state_dir, self._commit_s = state_dir, commit_s
        self._inputs, self._outputs, self._address = inputs, {*outputs, dropped}, address
        self._keys: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        for topic, stages in inputs.items():
            self.observed.n_taken[topic.name] = 0
            for key in stages.keys:
                self._keys[topic.name, partition_of(key, topic.n_partitions)].append(key)
        self._ending = Event()

    def run(self) -> None:
        """Run until SIGTERM, then commit what was taken. Wait for Kafka while it is away.

        Call it in the main thread.

        Raises
        ------
        StandstillError
            If a stage cannot go on, because inputs that it needs are not there.
        TransportError
            If another worker has this name, or a stage sends what Kafka does not take.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.set())
        with ends_in_time():
            self._run_until_told()

    def _run_until_told(self) -> None:
        seen, patience = self.observed, Patience()
        while not self._ending.is_set():
            try:
                self._attempt()
            except KafkaLostError as error:
                if self._ending.is_set():
                    _LOG.warning("ended without Kafka; it is to be taken again", reason=str(error))
                    return
                seen.waits = str(error)
                wait_s = patience.next_s()
                _LOG.warning("waits for Kafka", reason=str(error), seconds=round(wait_s, 1))
                self._pause(wait_s)

    def _pause(self, wait_s: float) -> None:
        """Wait, and show that this thread is alive."""
        until = time.monotonic() + wait_s
        while not self._ending.is_set() and time.monotonic() < until:
            self.observed.polled_at = time.monotonic()
            self._ending.wait(min(1.0, until - time.monotonic()))

    def _attempt(self) -> None:
        """Run an application until it is told to end, or fails.

        Raises
        ------
        KafkaLostError
            If that is for lack of Kafka.
        """
        known = self._state_dir / self._name / f"{self._group}.topics.json"
        journals = Journals(
            {**self._kafka, "group.id": f"{self._group}.again"}, known, waited=self._note_restored
        )
        try:
            with translated():
                self._prepare()
                for topic in self._inputs:
                    journals.check(topic.name)
                seen = self.observed  # until now it shows since when nothing has come
                seen.owned, seen.residents, seen.lag = frozenset(), {}, {}
                self._new_application(journals).run()
        finally:
            journals.close()

    def _note_restored(self, seconds: float) -> None:
        self.observed.restoring_s += seconds

    def _new_application(self, journals: Journals) -> Any:  # noqa: ANN401  the library's
        application = StageApplication(
            self._kafka,
            group=self._group,
            name=self._name,
            state_dir=self._state_dir,
            commit_s=self._commit_s,
            statistics=self._count_lag,
            ending=self._ending,
        )
        hasten_recovery(application)
        self._watch_assignments(application, journals)
        self._watch_commits(application)
        self._watch_inputs(application)
        make_changelogs(self._kafka, self._group, tuple(self._inputs))
        topics = {
            topic.name: application.stage_topic(topic) for topic in {*self._inputs, *self._outputs}
        }

        def send_on(frame: Any) -> None:  # noqa: ANN401  the library's
            frame.to_topic(
                lambda send, *_: topics[self._address(send)[0]],
                key=lambda send: self._address(send)[1],
            )

        for topic, stages in self._inputs.items():
            frame = application.dataframe(topics[topic.name])
            # A key of no stage would make one, or a twin of one in another partition.
            strangers = frame.filter(lambda *row: not self._is_addressed(*row), metadata=True)
            send_on(strangers.apply(self._drop_stranger, expand=True, metadata=True))
            known = frame.filter(self._is_addressed, metadata=True)
            take = self._taker(topic.name, stages, journals)
            send_on(known.apply(take, expand=True, stateful=True, metadata=True))
        return application

    def _is_addressed(self, _value: object, key: bytes | None, *_: object) -> bool:
        """Return whether the present message names a stage whose inputs are in its partition."""
        context = message_context()
        return key in self._keys[context.topic, context.partition]

    def _drop_stranger(
        self, value: bytes | None, _key: object, at_ms: int, *_: object
    ) -> list[Send]:
        self.observed.counts.n_dropped["unaddressed"] += 1
        return self._drop(
            Input(message_context().offset, value or b"", at_ms / 1000), "unaddressed"
        )

    def _drop(self, given: Input, why: str) -> list[Send]:
        """Say that the present input was dropped: in the log, and in Kafka."""
        context = message_context()
        said = Dropped(
            context.topic, context.partition, given.offset, given.at_s, len(given.value), why
        )
        _LOG.error("an input was dropped", **said._asdict())
        return [Send("dropped", 0, encode_dropped(said))]

    def _watch_assignments(self, application: Any, journals: Journals) -> None:  # noqa: ANN401
        # Quix Streams has no public calls for this.
        seen = self.observed
        assign = application._on_assign  # noqa: SLF001

        def watch(consumer: Any, partitions: list[Any]) -> None:  # noqa: ANN401
            # Not only with the first input: of a topic that was made anew there may be none.
            for topic in self._inputs:
                journals.check(topic.name)
            seen.n_assigned += 1
            seen.owned = frozenset(
                (each.topic, each.partition)
                for each in partitions
                if not each.topic.startswith("changelog__")
            )
            assign(consumer, partitions)
            seen.waits = ""
            seen.residents = {
                place: resident
                for place, resident in seen.residents.items()
                if place[:2] in seen.owned
            }
            self._doubt()
            _LOG.info("partitions assigned", partitions=sorted(map(list, seen.owned)))

        application._on_assign = watch  # noqa: SLF001
        for name in ("_on_revoke", "_on_lost"):
            setattr(application, name, self._then_doubt(getattr(application, name)))

    def _then_doubt(self, taken_away: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*arguments: object) -> None:
            taken_away(*arguments)
            self._doubt()  # it may not have been committed

        return wrapped

    def _doubt(self) -> None:
        for resident in self.observed.residents.values():
            resident.doubt()

    def _watch_commits(self, application: Any) -> None:  # noqa: ANN401  the library's
        """Let inputs be deleted after each transaction.

        Those that were covered when the one before ended: its end is then in all partitions, so
        that whoever restores a state finds no older one.
        """
        context = application._processing_context  # noqa: SLF001  there is no public call
        eraser = Eraser(self._kafka, self.observed.deletions)
        commit = context.commit_checkpoint
        covered: dict[tuple[str, int], int] = {}

        def commit_and_erase(*, force: bool = False, revoking: bool = False) -> None:
            nonlocal covered
            before, is_empty = context.checkpoint, context.checkpoint.empty()
            commit(force=force, revoking=revoking)
            # While partitions are taken away it may not have been committed.
            if context.checkpoint is not before and not is_empty and not revoking:
                eraser.erase(covered)
                covered = self._covered()

        context.commit_checkpoint = commit_and_erase

    def _watch_inputs(self, application: Any) -> None:  # noqa: ANN401  the library's
        """Commit before an input on which a stage may work for long.

        Kafka ends a transaction after `TRANSACTION_S`, counted from its first output, and with it
        the worker. The next one would come to the same input, and end in the same way.
        """
        consumer, seen = application._consumer, self.observed  # noqa: SLF001
        takes_long = {topic.name: stages.takes_long for topic, stages in self._inputs.items()}
        poll = consumer.poll_row

        def poll_and_commit(**options: Any) -> Any:  # noqa: ANN401  of the library
            row = poll(**options)
            if row is None:
                return row
            resident = seen.residents.get((row.topic, row.partition, row.key))
            value = row.value or b""
            if resident is None or not resident.is_sure or takes_long[row.topic](value):
                context = application._processing_context  # noqa: SLF001
                context.commit_checkpoint(force=True)
            return row

        consumer.poll_row = poll_and_commit

    def _covered(self) -> dict[tuple[str, int], int]:
        """Return the first offset of each partition that snapshots do not contain, where known."""
        residents, found = self.observed.residents, {}
        for place in self.observed.owned:
            of_place = [residents.get((*place, key)) for key in self._keys[place]]
            covered = [-1 if each is None else each.covered for each in of_place]
            if min(covered, default=-1) >= 0:
                found[place] = min(covered) + 1
        return found

    def _taker(
        self, topic: str, stages: Stages, journals: Journals
    ) -> Callable[[bytes | None, bytes, int, Any, State], list[Send]]:
        seen = self.observed

        def take(
            value: bytes | None, key: bytes, at_ms: int, _: object, state: State
        ) -> list[Send]:
            context = message_context()
            partition: int = context.partition
            resident = seen.residents.get((topic, partition, key))
            if resident is None:
                resident = seen.residents[topic, partition, key] = Resident(
                    lambda: stages.make(key),
                    journals.of(topic, partition, key),
                    self._drop,
                    seen.counts,
                    heals=stages.heals,
                )
            began = seen.taking_since = time.monotonic()
            sends = resident.take(Input(context.offset, value or b"", at_ms / 1000), state)
            seen.taking_since = None
            if (took_s := time.monotonic() - began) > _LONG_S:
                _LOG.warning(
                    "a stage took long, and others of this worker waited for it",
                    stage=key.decode(),
                    seconds=round(took_s, 1),
                )
            check_sizes(sends, by=key)
            seen.n_taken[topic] += 1
            for send in sends:
                seen.n_sent[send.to] = seen.n_sent.get(send.to, 0) + 1
            return sends

        return take

    def _count_lag(self, text: str) -> None:
        seen = self.observed
        seen.polled_at = time.monotonic()
        if is_connected(text):
            seen.connected_at = seen.polled_at
        seen.lag = {place: lag for place, lag in lags_of(text).items() if place in seen.owned}
        self._each_second()


def is_connected(statistics: str) -> bool:
    """Return whether Kafka's client has a connection to any broker."""
    return any(each["state"] == "UP" for each in json.loads(statistics)["brokers"].values())


def lags_of(statistics: str) -> dict[tuple[str, int], int]:
    """Return how far Kafka's client is behind in each partition, as far as it knows.

    Its own `consumer_lag` grows for ever: it does not see what transactions commit. So what counts
    is what it has passed on. The marks of transactions count as messages.
    """
    found = {}
    for topic, each in json.loads(statistics)["topics"].items():
        for number, partition in each["partitions"].items():
            taken = max(partition["app_offset"], partition["committed_offset"])
            if taken >= 0 and partition["ls_offset"] >= 0:
                found[topic, int(number)] = max(0, partition["ls_offset"] - taken)
    return found


def check_sizes(sends: Iterable[Send], *, by: bytes) -> None:
    """Check that Kafka takes what a stage sends.

    Raises
    ------
    TransportError
        If it does not. The stage cannot go on without the message: others wait for it.
    """
    for send in sends:
        if len(send.value) > _LARGEST_BYTES:
            raise TransportError(
                f"cluster: {by.decode()} sends a message of {len(send.value)} bytes to {send.to}"
                f" {send.number}, and {_LARGEST_BYTES} is the limit: choose larger numbers of"
                " sources, districts, joiners or ranges, and another prefix"
            )


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
