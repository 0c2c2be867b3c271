"""A simulated cluster of records: bridges, stages, and the topics between them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from anonymizer.cluster.positions.raw_batches import Raw, decode_out, encode_raw
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
from tests.cluster.scheduled import N_BRIDGES, Process, Scheduled

SECRET = b"of this test, and of no other...."
START = 1_200.0
TICK_S = 10.0
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


class Cluster(Scheduled[int, StreamStage]):
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
        super().__init__()
        self._arrivals, self._watch = arrivals, watch
        # Some ticks follow, so that whatever came last has been silent for long enough.
        self.n_ticks = len(arrivals) + _SILENT_TICKS
        self._start, self._tick_s = start, settings.tick.interval_s
        self._make: Callable[[int], StreamStage] = stream_stages(settings, streams, secret=SECRET)
        self._routing = StreamRouting([stream.settings for stream in streams])
        self.processes = {i: Process(self._make(i)) for i in range(self._routing.n_stages)}
        for number in self.processes:
            self.keep(number)
        self.now = start
        self.out: list[bytes] = []
        self.rows: list[Row] = []
        self.releases: list[ReleasedClasses | PublishedWindow] = []

    @property
    def stages(self) -> list[StreamStage]:
        return [process.stage for process in self.processes.values()]

    def made(self, key: int) -> StreamStage:
        return self._make(key)

    def send(self, bridge: int) -> None:
        tick = self.next_tick[bridge]
        if tick >= self.n_ticks:
            return
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

    def before(self, key: int, value: bytes) -> None:
        if takes_long(value):
            self.rows += self._rows_of(key, value)

    def taken(self, key: int, at_s: float, sends: list[Send]) -> None:
        for send in sends:
            if send.to == "out":
                self.out += [message.payload for message in decode_out(send.value)]
            elif send.to == "release":
                self.releases.append(decode_release(send.value))
            else:
                assert send.to == "stream"
                self.processes[send.number].log.append((send.value, at_s))
        if self._watch:
            check_balance(self.processes[key].stage)

    def _rows_of(self, key: int, value: bytes) -> Iterator[Row]:
        """Yield the records of a window that is due, as a stage of the same state has them."""
        due, snapshot = decode_due(value), self.processes[key].stage.snapshot()
        joined, closing = (self.restored(key, snapshot)._streams[due.stream] for _ in range(2))
        if due.window in joined._due and (closed := closing.close(due.window)) is not None:
            there = joined.take(due.window).meant()
            for each in zip(there.vehicle, there.cells, closed.outcome.tolist(), strict=True):
                yield Row(due.window, *each)

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
