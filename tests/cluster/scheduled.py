"""A simulated cluster: stages with a log of inputs each, as a schedule says.

Every stage has one log of inputs, as it has one partition in Kafka. Stages read their logs as far
as the schedule lets them, bridges send when it says so, and a stage that crashes goes back to its
last snapshot and takes again what it had read since. One step of the schedule is one number; when a
schedule ends, all that is still under way arrives.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from anonymizer.cluster.positions.raw_batches import RAW, STATEMENTS
from anonymizer.cluster.stage import Send, Stage

N_BRIDGES = 2
_KeyT = TypeVar("_KeyT")
_StageT = TypeVar("_StageT", bound=Stage)


@dataclass
class Process(Generic[_StageT]):
    """A stage and its log; it has read up to `at`, and up to `safe` by its last snapshot."""

    stage: _StageT
    snapshot: bytes = b""
    log: list[tuple[bytes, float]] = field(default_factory=list)
    sent: list[list[Send]] = field(default_factory=list)
    safe: int = 0

    @property
    def at(self) -> int:
        return len(self.sent)


class Scheduled(ABC, Generic[_KeyT, _StageT]):
    """Runs stages as a schedule says, until bridges have sent `n_ticks`."""

    processes: Mapping[_KeyT, Process[_StageT]]
    n_ticks: int
    now: float

    def __init__(self) -> None:
        self.next_tick = [0] * N_BRIDGES
        self.n_crashes = self.n_received = 0

    @abstractmethod
    def made(self, key: _KeyT) -> _StageT:
        """Return a stage that knows nothing yet."""

    @abstractmethod
    def send(self, bridge: int) -> None:
        """Let a bridge send its next tick, if there is one."""

    @abstractmethod
    def taken(self, key: _KeyT, at_s: float, sends: list[Send]) -> None:
        """Pass on what a stage has sent after an input."""

    def run(self, schedule: Iterable[int] = ()) -> None:
        """Follow a schedule, then let everything arrive."""
        for number in schedule:
            self.step(number)
        while min(self.next_tick) < self.n_ticks:
            for bridge in range(N_BRIDGES):
                self.send(bridge)
            self.read_all()
        self.read_all()

    def step(self, number: int) -> None:
        """Do one of the things that may happen next."""
        kind, number = number % 8, number // 8
        key = list(self.processes)[number % len(self.processes)]
        process, which = self.processes[key], number // len(self.processes)
        if kind == 0:
            self.send(which % N_BRIDGES)
        elif kind == 1:
            (self.crash, self.keep, self.repeat)[which % 3](key)
        else:
            # Much arrives at one stage, while the others wait.
            n = 1 + which % 3 if kind < 5 else len(process.log)
            for _ in range(n):
                self.read(key)

    def read(self, key: _KeyT) -> bool:
        """Let a stage take its next input; return whether there was one."""
        process = self.processes[key]
        if process.at == len(process.log):
            return False
        value, at_s = process.log[process.at]
        self.before(key, value)
        sends = process.stage.take(value, at_s=at_s)
        process.sent.append(sends)
        self.taken(key, at_s, sends)
        return True

    def before(self, key: _KeyT, value: bytes) -> None:
        """Look at a stage before it takes an input."""

    def read_all(self) -> None:
        read = True
        while read:
            # Not `any` of a generator: all stages take their turns.
            read = sum(self.read(key) for key in self.processes) > 0

    def keep(self, key: _KeyT) -> None:
        """Take a snapshot of a stage."""
        process = self.processes[key]
        process.snapshot, process.safe = process.stage.snapshot(), process.at

    def restored(self, key: _KeyT, snapshot: bytes) -> _StageT:
        """Return a stage as it was."""
        stage = self.made(key)
        stage.restore(snapshot)
        return stage

    def crash(self, key: _KeyT) -> None:
        """Lose a stage, and build it again from its last snapshot and what it has read since."""
        self.n_crashes += 1
        process = self.processes[key]
        process.stage = self.restored(key, process.snapshot)
        read = process.log[process.safe : process.at]
        for (value, at_s), sends in zip(read, process.sent[process.safe :], strict=True):
            assert process.stage.take(value, at_s=at_s) == sends, "it would have sent the same"

    def repeat(self, key: _KeyT) -> None:
        """Let what a stage has sent come again."""
        log = self.processes[key].log
        log += [each for each in log[-9:] if each[0][:1] not in (RAW, STATEMENTS)][:1]
