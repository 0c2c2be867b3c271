"""A simulated cluster of records: bridges, stages, and the topics between them, as a schedule says.

Every stage has one log of inputs, as it has one partition in Kafka. Stages read their logs as far
as the schedule lets them, bridges send when it says so, and a stage that crashes goes back to its
last snapshot and takes again what it had read since. One step of the schedule is one number; when a
schedule ends, all that is still under way arrives.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

from anonymizer.cluster.positions.raw_batches import RAW, Raw, decode_out, encode_raw
from anonymizer.cluster.records.due_windows import decode_due, takes_long
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.cluster.records.stream_stage import StreamStage, stream_stages
from anonymizer.cluster.stage import Send
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.release_messages import ReleasedClasses, decode_release
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.settings import Settings
from tests import naive

SECRET = b"of this test, and of no other...."
START = 1_200.0
TICK_S = 10.0
N_BRIDGES = 2
_SILENT_TICKS = 10


def settings_for(tick_s: float = TICK_S) -> Settings:
    """Return settings for ticks of a length."""
    made = Settings()
    return made.model_copy(
        update={
            "cluster": made.cluster.model_copy(update={"wait_s": 2.5 * tick_s}),
            "tick": made.tick.model_copy(update={"interval_s": tick_s}),
        }
    )


class Row(NamedTuple):
    """A record of a closed window, and what became of it."""

    window: int
    key: bytes
    cells: Int32Array
    outcome: int


@dataclass
class Process:
    """A stage and its log; it has read up to `at`, and up to `safe` by its last snapshot."""

    stage: StreamStage
    snapshot: bytes = b""
    log: list[tuple[bytes, float]] = field(default_factory=list)
    sent: list[list[Send]] = field(default_factory=list)
    safe: int = 0

    @property
    def at(self) -> int:
        return len(self.sent)


class Cluster:
    """Runs streams as a schedule says.

    Parameters
    ----------
    streams
        The declared streams.
    arrivals
        What arrives in each tick at any of the bridges.
    start
        When the first tick begins, unix seconds.
    watch
        Whether the accounts are checked at every step.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        arrivals: Sequence[Sequence[Delivery]],
        settings: Settings,
        *,
        start: float = START,
        watch: bool = True,
    ) -> None:
        self._arrivals, self._watch = arrivals, watch
        self._start, self._tick_s = start, settings.tick.interval_s
        self._make: Callable[[int], StreamStage] = stream_stages(settings, streams, secret=SECRET)
        self._routing = StreamRouting([stream.settings for stream in streams])
        self.processes = [Process(self._make(i)) for i in range(self._routing.n_stages)]
        for number in range(self._routing.n_stages):
            self.keep(number)
        self.now = start
        self.next_tick = [0] * N_BRIDGES
        self.n_crashes = self.n_received = 0
        self.out: list[bytes] = []
        self.rows: list[Row] = []
        self.releases: list[ReleasedClasses | PublishedWindow] = []

    @property
    def stages(self) -> list[StreamStage]:
        return [process.stage for process in self.processes]

    def run(self, schedule: Iterable[int] = ()) -> None:
        """Follow a schedule, then let everything arrive."""
        for number in schedule:
            self.step(number)
        # Some ticks follow, so that whatever came last has been silent for long enough.
        while min(self.next_tick) < len(self._arrivals) + _SILENT_TICKS:
            for bridge in range(N_BRIDGES):
                self.send(bridge)
            self.read_all()
        self.read_all()

    def step(self, number: int) -> None:
        """Do one of the things that may happen next."""
        kind, number = number % 8, number // 8
        key = number % len(self.processes)
        process, which = self.processes[key], number // len(self.processes)
        if kind == 0:
            if self.next_tick[which % N_BRIDGES] < len(self._arrivals):
                self.send(which % N_BRIDGES)
        elif kind == 1:
            (self.crash, self.keep, self.repeat)[which % 3](key)
        else:
            n = 1 + which % 3 if kind < 5 else len(process.log)
            for _ in range(n):
                self.read(key)

    def send(self, bridge: int) -> None:
        """Let a bridge send its next tick."""
        tick = self.next_tick[bridge]
        self.next_tick[bridge] += 1
        self.now = max(self.now, self._start + (tick + 1) * self._tick_s)
        mine = [
            each
            for batch in self._arrivals[tick : tick + 1]
            for each in batch
            if crc32(each.topic.encode() + each.payload) % N_BRIDGES == bridge
        ]
        self.n_received += len(mine)
        of_stage: defaultdict[int, list[Delivery]] = defaultdict(list)
        n_stages = self._routing.n_stages
        stages = self._routing.parts_of(PackedDeliveries.of(mine), n_stages).tolist()
        for each, stage in zip(mine, stages, strict=True):
            of_stage[stage].append(each)
        for stage in range(n_stages):
            at_s = self._start + (tick + 0.5) * self._tick_s
            raw = Raw(f"bridge-{bridge}", tick, False, [Arrivals(at_s, of_stage[stage])])
            self.processes[stage].log.append((encode_raw(raw), self.now))

    def read(self, key: int) -> bool:
        """Let a stage take its next input; return whether there was one."""
        process = self.processes[key]
        if process.at == len(process.log):
            return False
        value, at_s = process.log[process.at]
        if takes_long(value):
            self.rows += self._rows_of(key, value)
        sends = process.stage.take(value, at_s=at_s)
        process.sent.append(sends)
        for send in sends:
            if send.to == "out":
                self.out += [message.payload for message in decode_out(send.value)]
            elif send.to == "release":
                self.releases.append(decode_release(send.value))
            else:
                assert send.to == "stream"
                self.processes[send.number].log.append((send.value, at_s))
        if self._watch:
            check_balance(process.stage)
        return True

    def _rows_of(self, key: int, value: bytes) -> Iterator[Row]:
        """Yield the records of a window that is due, as a stage of the same state has them."""
        due, snapshot = decode_due(value), self.processes[key].stage.snapshot()
        joined, closing = (self._twin(key, snapshot)._streams[due.stream] for _ in range(2))
        if due.window in joined._due and (closed := closing.close(due.window)) is not None:
            there = joined.take(due.window).meant()
            for each in zip(there.vehicle, there.cells, closed.outcome.tolist(), strict=True):
                yield Row(due.window, *each)

    def _twin(self, key: int, snapshot: bytes) -> StreamStage:
        stage = self._make(key)
        stage.restore(snapshot)
        return stage

    def read_all(self) -> None:
        read = True
        while read:
            # Not `any` of a generator: all stages take their turns.
            read = sum(self.read(key) for key in range(len(self.processes))) > 0

    def keep(self, key: int) -> None:
        """Take a snapshot of a stage."""
        process = self.processes[key]
        process.snapshot, process.safe = process.stage.snapshot(), process.at

    def crash(self, key: int) -> None:
        """Lose a stage, and build it again from its last snapshot and what it has read since."""
        self.n_crashes += 1
        process = self.processes[key]
        process.stage = self._twin(key, process.snapshot)
        read = process.log[process.safe : process.at]
        for (value, at_s), sends in zip(read, process.sent[process.safe :], strict=True):
            assert process.stage.take(value, at_s=at_s) == sends, "it would have sent the same"

    def repeat(self, key: int) -> None:
        """Let what the stage has told itself come again."""
        process = self.processes[key]
        process.log += [each for each in process.log[-9:] if each[0][:1] != RAW][:1]

    def accounts(self) -> Counter[str]:
        """Return the counts of all stages by outcome, with `held`, over all streams."""
        total: Counter[str] = Counter()
        for stage in self.stages:
            for _, ledger, n_held in stage.ledgers:
                total.update({outcome.name: n for outcome, n in ledger.counts().items() if n})
                total["received"] += ledger.n_received
                total["held"] += n_held
        return +total


def check_balance(stage: StreamStage) -> None:
    for _, ledger, n_held in stage.ledgers:
        counts, n_received = ledger.counts(), ledger.n_received
        assert naive.imbalance(counts, received=n_received, held=n_held) == 0


def by_tick(
    deliveries: Iterable[tuple[float, Delivery]], *, n_ticks: int, tick_s: float = TICK_S
) -> list[list[Delivery]]:
    """Return deliveries by the tick in which they arrive, seconds after the start."""
    ticks: list[list[Delivery]] = [[] for _ in range(n_ticks)]
    for at_s, delivery in deliveries:
        ticks[int(at_s / tick_s)].append(delivery)
    return ticks


def summaries(cluster: Cluster) -> list[Mapping[str, Any]]:
    """Return the summaries of the released windows, in their order."""
    found = [each for each in cluster.releases if isinstance(each, PublishedWindow)]
    return [each.summary for each in sorted(found, key=lambda each: each.window)]
