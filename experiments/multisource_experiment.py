"""The paper's experiment: (k,d)-anonymity and (k,l,d)-diversity of a table from two sources."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from anonymizer.algorithms.attacks.linkability import Knows, Leak, link
from anonymizer.algorithms.attacks.released_classes import publish
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.algorithms.records.problem import Problem, pose
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from experiments.made_tables import census_like

KS = (10, 20, 30, 40, 50)
DS = (1, 2, 3, 4, 5)
LS = (2, 3, 4, 5)
K, D = 20, 2
"""What is kept where another figure varies."""

_TIMED_S = 0.3
_SHARES = (0.25, 0.5, 0.75, 1.0)

Progress = Callable[[float, str], None]
"""Told how much is done, 0 to 1, and what is being done now."""


class Method(StrEnum):
    """How classes are formed."""

    HILBERT = "hilbert"
    """The paper's: Algorithm 2, with l Algorithm 3."""
    MONDRIAN = "mondrian"
    """What it is compared with."""


class Reading(StrEnum):
    """What the missing marker is."""

    PAPER = "as published"
    """One more value, which counts towards d."""
    SAFE = "marker no value"
    """No value: what this product promises."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """A table of two sources, in each reading.

    Attributes
    ----------
    name
        As it is told in the results.
    adult
        Whether it is the table of the paper, with the figures of which it can be compared.
    of
        Records and schema by reading; the same codes, but for what is missing.
    """

    name: str
    adult: bool
    of: dict[Reading, tuple[Records, Schema]]

    @property
    def n(self) -> int:
        """Number of records."""
        return self.of[Reading.PAPER][0].n


@dataclass(frozen=True, slots=True, order=True)
class Trial:
    """One set of classes to form."""

    reading: Reading
    method: Method
    k: int
    d: int = 1
    l: int = 1  # noqa: E741  the field's name for it


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a trial.

    Attributes
    ----------
    measures
        Of the classes.
    leaks
        What Algorithm 1 finds from each source on the other, the listing's adversary.
    seconds
        Best time to form the classes; the table is coded and the problem posed.
    """

    trial: Trial
    measures: Measures
    leaks: tuple[Leak, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a made table of the Census's shape takes along the curve, k and d as usual."""

    n: int
    l: int  # noqa: E741  the field's name for it
    n_classes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Multisource:
    """Everything the tables and plots are made of."""

    study: Study
    runs: tuple[Run, ...]
    timings: tuple[Timing, ...]


def trials(study: Study) -> list[Trial]:
    """Return all that is tried on a table: over k, over d and, as far as there are values, l."""
    records, schema = study.of[Reading.PAPER]
    paper = partial(Trial, Reading.PAPER)
    found = [paper(method, k, d) for method in Method for k in KS for d in (1, D)]
    found += [paper(method, K, d) for method in Method for d in DS]
    found += [Trial(Reading.SAFE, Method.HILBERT, K, d) for d in DS]
    if schema.sensitive:
        n_values = min(len(np.unique(column)) for column in records.sensitive.T)
        found += [paper(Method.HILBERT, K, D, l) for l in LS if l <= n_values]  # noqa: E741
    return sorted(set(found))


def run_multisource(
    study: Study, *, census_rows: int, seed: int, progress: Progress = lambda _done, _what: None
) -> Multisource:
    """Form, measure and attack the classes of every trial, and time a large made table.

    Parameters
    ----------
    study
        Of two sources.
    census_rows
        Records of the large table; 0: leave it out.
    seed
        Of the large table. Equal arguments give equal results, but for the times.
    """
    every = trials(study)
    _warm(study)
    n_steps = len(every) + (len(_SHARES) if census_rows else 0)
    runs = []
    for step, trial in enumerate(every):
        progress(step / n_steps, f"{trial.method}, k = {trial.k}, d = {trial.d}, l = {trial.l}")
        runs.append(_run(study, trial))
    timings = []
    for step, timing in enumerate(_timings(census_rows, seed) if census_rows else ()):
        progress((len(every) + step // 2) / n_steps, f"a made table of {census_rows:,} records")
        timings.append(timing)
    progress(1.0, "done")
    return Multisource(study, tuple(runs), tuple(timings))


def _warm(study: Study) -> None:
    """Compile what is going to be timed."""
    records, schema = study.of[Reading.PAPER]
    problem = pose(records.only(np.arange(min(records.n, 100))), schema, Promise(k=2))
    for method in Method:
        _classes(method, problem, schema)


def _run(study: Study, trial: Trial) -> Run:
    records, schema = study.of[trial.reading]
    problem = pose(records, schema, Promise(k=trial.k, d=trial.d, l=trial.l))
    class_of, seconds = _timed(partial(_classes, trial.method, problem, schema))
    leaks = link(publish(records, schema, class_of), schema, records, class_of)
    return Run(
        trial=trial,
        measures=measure(records, schema, class_of),
        leaks=tuple(x for x in leaks if x.knows is Knows.LABELS and x.learned is not None),
        seconds=seconds,
    )


def _classes(method: Method, problem: Problem, schema: Schema) -> Int32Array:
    if method is Method.MONDRIAN:
        return mondrian(problem)
    codes = problem.cells[:, : problem.n_qis]
    return sweep(problem, hilbert_order(codes, [a.size for a in schema.qis]))


def _timings(n: int, seed: int) -> Iterator[Timing]:
    """Time growing parts of one table, with and without a sensitive attribute to diversify."""
    table, schema = census_like(n, seed=seed)
    for share in _SHARES:
        part = table.only(np.arange(round(n * share)))
        for l in (1, 2):  # noqa: E741  the field's name for it
            problem = pose(part, schema, Promise(k=K, d=D, l=l))
            class_of, seconds = _timed(partial(_classes, Method.HILBERT, problem, schema))
            yield Timing(part.n, l, int(class_of.max(initial=-1)) + 1, seconds)


def _timed(work: Callable[[], Int32Array]) -> tuple[Int32Array, float]:
    """Return the result, and the best of as many runs as there is time for, one at least."""
    took: list[float] = []
    began = time.perf_counter()
    while not took or (len(took) < 4 and time.perf_counter() - began < _TIMED_S):
        start = time.perf_counter()
        result = work()
        took.append(time.perf_counter() - start)
    return result, min(took)


def varied(runs: Sequence[Run], **kept: object) -> list[Run]:
    """Return the runs whose trial has these values, in order."""
    return [run for run in runs if all(getattr(run.trial, n) == v for n, v in kept.items())]
