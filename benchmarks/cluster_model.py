"""Model of a cluster: what each program costs, and a simulation of how long messages take.

The costs are fitted to runs of one and two workers (`python -m benchmarks cluster`). What the model
says about more is a prediction, which the tests compare with runs of four.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls

from anonymizer.domain.arrays import FloatArray

Row = Mapping[str, Any]
"""A row of the benchmark's first table, by the names of its columns."""
COMMITS_PER_S = 5.0
"""Of a worker: its transactions are a fifth of a tick of one second apart."""
_STEP_S = 0.002
_SILENT = 3
"""Ticks at the beginning of a simulation that are not counted."""


class Layout(NamedTuple):
    """A cluster and its load."""

    rate_per_s: float
    """Positions per second."""
    n_sources: int
    n_districts: int
    n_workers: int
    n_bridges: int = 1
    """`n_sources`, `n_districts`, `n_workers`, `n_bridges`: how many there are of each."""
    tick_s: float = 1.0
    """Length of a tick."""

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the layout of a stored run."""
        return cls(row["sent/s"], row["sources"], row["districts"], row["workers"])

    @property
    def messages_per_s(self) -> float:
        """Messages that stages take: they grow with the stages, not with the positions.

        Each source takes one of each bridge and each district, and each district one of each
        source.
        """
        return self.n_sources * (self.n_bridges + 2 * self.n_districts) / self.tick_s

    @property
    def batches_per_s(self) -> float:
        """Partitions that are written to in a tick, by each writer, per second.

        Every worker writes to the partitions of all stages, and a bridge a batch to each source.
        """
        of_workers = self.n_workers * self.n_stages
        return (of_workers + self.n_bridges * self.n_sources) / self.tick_s

    @property
    def n_stages(self) -> int:
        """Sources and districts: each has a partition, whose state is stored."""
        return self.n_sources + self.n_districts


def _terms(program: str, layout: Layout) -> list[float]:
    """Return what a program's work grows with; its costs are a factor of each, in seconds."""
    at = layout
    return {
        "bridge": [float(at.n_bridges), at.rate_per_s],
        "workers": [float(at.n_workers), float(at.n_stages), at.messages_per_s, at.rate_per_s],
        # A worker fetches whenever there is something, and ends its transactions.
        "kafka": [1.0, float(at.n_workers), at.batches_per_s, at.rate_per_s],
    }[program]


PROGRAMS = ("bridge", "workers", "kafka")
"""Those whose cost is modelled; that of the MQTT broker and the devices is given."""


class Costs(NamedTuple):
    """CPU seconds for each unit of what a program's work grows with, see `_terms`."""

    of: Mapping[str, FloatArray]
    """By program."""
    given_s: Mapping[str, float]
    """CPU seconds a position of each program that is no part of the cluster."""
    share_of_sources: float
    """Share of a worker's work that sources do; districts do the rest."""
    hop_s: float = 0.0
    """Time from the commit of a message in Kafka until who reads it has it."""

    @classmethod
    def fitted(
        cls, rows: Sequence[Row], *, share_of_sources: float, given: Sequence[str] = ()
    ) -> Self:
        """Return the costs that explain some runs best; every run counts alike.

        Parameters
        ----------
        rows
            Runs with equal numbers of positions in a message, of several layouts and rates.
        share_of_sources
            See `Costs`.
        given
            Names of the other programs.
        """
        of = {}
        for program in PROGRAMS:
            used = np.array([row[f"{program}, µs"] * 1e-6 * row["sent/s"] for row in rows])
            terms = np.array([_terms(program, Layout.of(row)) for row in rows])
            # None is negative: no work makes a program cheaper.
            of[program] = nnls(terms / used[:, None], np.ones(len(rows)))[0]
        fastest = max(rows, key=lambda row: float(row["sent/s"]))
        given_s = {name: fastest[f"{name}, µs"] * 1e-6 for name in given}
        return cls(of, given_s, share_of_sources)

    def cores(self, program: str, layout: Layout) -> float:
        """Return how many cores a program uses, of all its processes together."""
        return float(np.dot(self.of[program], _terms(program, layout)))

    def us(self, program: str, layout: Layout) -> float:
        """Return its CPU time, µs for each position."""
        return self.cores(program, layout) / layout.rate_per_s * 1e6

    def all_cores(self, layout: Layout) -> float:
        """Return how many cores everything uses, devices and MQTT broker included."""
        ours = sum(self.cores(program, layout) for program in PROGRAMS)
        return ours + sum(self.given_s.values()) * layout.rate_per_s


class Simulated(NamedTuple):
    """What a simulation shows."""

    delay_s: FloatArray
    """Of what each district publishes at each tick, from the end of the tick."""
    backlog_s: float
    """CPU time that waits at the end."""


class _Event(NamedTuple):
    """Something of a stage that is ready: what the bridge, a source or a district has sent."""

    kind: str
    number: int
    tick: int


class _Program:
    """Work that waits for the processor, first come first served, and what follows from it."""

    def __init__(self) -> None:
        self.work: list[tuple[float, _Event | None]] = []

    @property
    def waiting_s(self) -> float:
        return sum(seconds for seconds, _ in self.work)

    def add(self, seconds: float, then: _Event | None = None) -> None:
        if self.work and self.work[-1][1] is None and then is None:
            self.work[-1] = (self.work[-1][0] + seconds, None)
        else:
            self.work.append((seconds, then))

    def run(self, seconds: float) -> list[_Event]:
        """Work for so long; return what has been finished."""
        done: list[_Event] = []
        while self.work and seconds > 0:
            left, then = self.work[0]
            if left > seconds:
                self.work[0] = (left - seconds, then)
                break
            seconds -= left
            del self.work[0]
            if then is not None:
                done.append(then)
        return done


def simulate(
    costs: Costs, layout: Layout, *, n_cores: float, n_ticks: int = 40, seed: int = 1
) -> Simulated:
    """Let all programs share the cores of one machine; follow each tick from its end to MQTT.

    Parameters
    ----------
    costs, layout
        What runs.
    n_cores
        Cores that all programs share evenly; none uses more than one, but for Kafka.
    n_ticks
        Ticks simulated.
    seed
        Of the moments at which workers commit.

    Notes
    -----
    A tick passes Kafka three times. The sources of a worker take what the bridge has sent, the
    districts take what the sources have sent, once the transactions of all workers are over, and
    the bridge what the districts have sent. Work that does not belong to a tick, such as that of
    the MQTT broker, arrives evenly. The simulation goes on in steps of 2 ms, in which the programs
    that have something to do share the cores.
    """
    return _Simulation(costs, layout, n_cores=n_cores, seed=seed).run(n_ticks)


class _Simulation:
    def __init__(self, costs: Costs, layout: Layout, *, n_cores: float, seed: int) -> None:
        self._layout, self._hop_s, self._n_cores = layout, costs.hop_s, n_cores
        rng = np.random.default_rng(seed)
        self._others = {name: _Program() for name in ("bridge", "kafka", *costs.given_s)}
        self._inflow = {
            "bridge": costs.cores("bridge", layout),
            "kafka": costs.cores("kafka", layout),
            **{name: each * layout.rate_per_s for name, each in costs.given_s.items()},
        }
        n = layout.n_workers
        self._workers = [_Program() for _ in range(n)]
        a_tick_s = costs.cores("workers", layout) * layout.tick_s
        self._source_s = a_tick_s * costs.share_of_sources / layout.n_sources
        self._district_s = a_tick_s * (1 - costs.share_of_sources) / layout.n_districts
        self._commit_at = rng.uniform(0, layout.tick_s / COMMITS_PER_S, n)
        self._uncommitted: list[list[_Event]] = [[] for _ in range(n)]
        self._arriving: list[tuple[float, _Event]] = []
        self._n_batches_of: dict[int, int] = {}
        self._delay_s: list[float] = []

    def run(self, n_ticks: int) -> Simulated:
        layout = self._layout
        end_s = n_ticks * layout.tick_s
        n_steps = round(end_s / _STEP_S)
        next_tick = 1
        for step in range(n_steps):
            now = step * _STEP_S
            if now >= next_tick * layout.tick_s:
                for source in range(layout.n_sources):
                    self._send(now, _Event("source", source, next_tick))
                next_tick += 1
            self._deliver(now)
            self._share()
            self._commit(now)
        everyone = [*self._others.values(), *self._workers]
        return Simulated(np.array(self._delay_s), sum(each.waiting_s for each in everyone))

    def _send(self, now: float, what: _Event) -> None:
        self._arriving.append((now + self._hop_s, what))

    def _deliver(self, now: float) -> None:
        """Give what has arrived to who takes it."""
        there = [what for at, what in self._arriving if at <= now]
        self._arriving = [each for each in self._arriving if each[0] > now]
        for what in there:
            kind, number, tick = what
            if kind == "source":
                self._worker_of(number).add(self._source_s, what)
            elif kind == "batches":
                self._n_batches_of[tick] = self._n_batches_of.get(tick, 0) + 1
                if self._n_batches_of[tick] == self._layout.n_sources:
                    for district in range(self._layout.n_districts):
                        done = _Event("district", district, tick)
                        self._worker_of(district).add(self._district_s, done)
            elif tick > _SILENT:
                self._delay_s.append(now - tick * self._layout.tick_s)

    def _worker_of(self, number: int) -> _Program:
        return self._workers[number % len(self._workers)]

    def _share(self) -> None:
        """Let all that have something to do work for a step."""
        for name, inflow in self._inflow.items():
            self._others[name].add(inflow * _STEP_S)
        busy = [each for each in (*self._others.values(), *self._workers) if each.work]
        share_s = min(1.0, self._n_cores / max(1, len(busy))) * _STEP_S
        # What those do not need that have little to do is left for the others.
        spare_s = sum(max(0.0, share_s - each.waiting_s) for each in busy)
        hungry = sum(each.waiting_s > share_s for each in busy)
        most_s = min(_STEP_S, share_s + spare_s / max(1, hungry))
        for name, program in self._others.items():
            program.run(_STEP_S * self._n_cores if name == "kafka" else most_s)
        for number, worker in enumerate(self._workers):
            self._uncommitted[number] += worker.run(most_s)

    def _commit(self, now: float) -> None:
        """Let workers end their transactions: then others see what they have sent."""
        for number, done in enumerate(self._uncommitted):
            if now < self._commit_at[number]:
                continue
            self._commit_at[number] += self._layout.tick_s / COMMITS_PER_S
            for what in done:
                sent = "batches" if what.kind == "source" else "out"
                self._send(now, what._replace(kind=sent))
            done.clear()
