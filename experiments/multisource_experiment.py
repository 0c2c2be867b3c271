"""The paper's experiment: (k,d)-anonymity and (k,l,d)-diversity of a table from two sources.

The tables of the multi-source experiment: a file of the user's, or a made one.

Made tables in the shape of the two that the paper uses: skewed, correlated, full of repeats.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import numpy as np

from anonymizer.algorithms.attacks.linkability import Knowledge, Leak, link
from anonymizer.algorithms.attacks.released_classes import publish
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Attribute, Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.hierarchies import read_hierarchies, read_orders
from anonymizer.files.tables import read_table

ADULT_ROWS = 32_561
CENSUS_ROWS = 2_458_285

_N_PROFILES = 64
_KEPT = 0.7
"""Share of the values that a record has from its profile, the rest are its own."""


@dataclass(frozen=True, slots=True)
class _Column:
    """An attribute to make: code v is about (v + 1) ** -skew times as frequent as code 0."""

    name: str
    size: int
    skew: float
    numeric_from: int | None = None
    missing: bool = False

    def attribute(self, *, markers_are_values: bool) -> Attribute:
        position = np.arange(self.size, dtype=np.float64)
        if self.numeric_from is not None:
            return Attribute(self.name, position + self.numeric_from)
        label = [f"{self.name} {v + 1}" for v in range(self.size)]
        marked = self.missing and not markers_are_values
        if self.missing:
            label[-1] = "?"
        return Attribute(self.name, position, tuple(label), self.size - 1 if marked else NO_CODE)

    @property
    def weights(self) -> FloatArray:
        weight = (1.0 + np.arange(self.size)) ** -self.skew
        return np.asarray(weight / weight.sum())


_ADULT = (
    _Column("age", 74, 0.3, numeric_from=17),
    _Column("workclass", 9, 1.6, missing=True),
    _Column("marital-status", 7, 1.2),
    _Column("occupation", 15, 0.5, missing=True),
    _Column("relationship", 6, 0.9),
    _Column("native-country", 42, 2.2, missing=True),
    _Column("race", 5, 2.0),
)
_CENSUS = (
    _Column("dAge", 8, 0.2),
    _Column("dAncstry1", 12, 0.8),
    _Column("dAncstry2", 13, 2.0),
    _Column("iClass", 10, 1.2),
    _Column("dDepart", 6, 0.5),
    _Column("dHispanic", 10, 2.5),
    _Column("dPoverty", 3, 0.5),
)


def adult_like(
    n: int = ADULT_ROWS, *, seed: int, markers_are_values: bool = False
) -> tuple[Records, Schema]:
    """Return a made table of six quasi-identifiers of two sources, one of them numeric."""
    return _made(_ADULT, n, seed, markers_are_values=markers_are_values)


def census_like(n: int = CENSUS_ROWS, *, seed: int) -> tuple[Records, Schema]:
    """Return a made table of six small categories of two sources: few tuples, many repeats."""
    return _made(_CENSUS, n, seed, markers_are_values=True)


def _made(
    columns: Sequence[_Column], n: int, seed: int, *, markers_are_values: bool
) -> tuple[Records, Schema]:
    """Return records of which each has most of its values from one of a few profiles."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / (1.0 + np.arange(_N_PROFILES))
    profile = rng.choice(_N_PROFILES, n, p=weight / weight.sum())
    cells: Int32Array = np.empty((n, len(columns)), np.int32)
    for j, column in enumerate(columns):
        typical = rng.choice(column.size, _N_PROFILES, p=column.weights)
        own = rng.choice(column.size, n, p=column.weights)
        cells[:, j] = np.where(rng.random(n) < _KEPT, typical[profile], own)
    attributes = [c.attribute(markers_are_values=markers_are_values) for c in columns]
    records = Records(
        qi=np.ascontiguousarray(cells[:, :-1]),
        sensitive=np.ascontiguousarray(cells[:, -1:]),
        person=np.arange(n, dtype=np.int32),
    )
    return records, Schema(tuple(attributes[:-1]), tuple(attributes[-1:]), ((0, 1, 2), (3, 4, 5)))


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
    problem = make_problem(records.only(np.arange(min(records.n, 100))), schema, Promise(k=2))
    for method in Method:
        _classes(method, problem, schema)


def _run(study: Study, trial: Trial) -> Run:
    records, schema = study.of[trial.reading]
    problem = make_problem(records, schema, Promise(k=trial.k, d=trial.d, l=trial.l))
    class_of, seconds = _timed(partial(_classes, trial.method, problem, schema))
    leaks = link(publish(records, schema, class_of), schema, records, class_of)
    return Run(
        trial=trial,
        measures=measure(records, schema, class_of),
        leaks=tuple(x for x in leaks if x.knows is Knowledge.LABELS and x.learned is not None),
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
            problem = make_problem(part, schema, Promise(k=K, d=D, l=l))
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


ADULT_SOURCES = (
    ("age", "workclass", "marital-status"),
    ("occupation", "relationship", "native-country"),
)
ADULT_SENSITIVE = "race"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFiles:
    """A table, and what is told of it.

    Attributes
    ----------
    table
        csv or parquet.
    taxonomy, order
        JSON files of hierarchies and of the order of categories; None: there is none, and
        categories are in the order of their hierarchy or of the alphabet.
    sources
        The quasi-identifiers that each of two sources tells.
    sensitive
        The sensitive attribute; None: there is none, and no (k,l,d)-diversity.
    """

    table: Path
    taxonomy: Path | None = None
    order: Path | None = None
    sources: Sequence[Sequence[str]] = ADULT_SOURCES
    sensitive: str | None = ADULT_SENSITIVE


def read_study(files: StudyFiles) -> Study:
    """Read a table in both readings.

    Raises
    ------
    InputError
        If a file cannot be read, or does not fit another.
    SettingsError
        If there are not two sources, or an attribute is declared twice.
    """
    if len(files.sources) != 2:
        raise SettingsError("the experiment is one of two sources")
    qis = tuple(name for source in files.sources for name in source)
    sensitive = () if files.sensitive is None else (files.sensitive,)
    table = read_table(files.table, (*qis, *sensitive))
    hierarchies = {} if files.taxonomy is None else read_hierarchies(files.taxonomy)
    orders = {} if files.order is None else read_orders(files.order)
    of = {}
    for reading in Reading:
        declared = Declared(
            qis=qis,
            sensitive=sensitive,
            sources=files.sources,
            hierarchies=hierarchies,
            orders=orders,
            markers_are_values=reading is Reading.PAPER,
        )
        coded = code_table(table, declared)
        of[reading] = coded.records, coded.schema
    adult = len(table) == ADULT_ROWS and tuple(map(tuple, files.sources)) == ADULT_SOURCES
    return Study(name=files.table.name, adult=adult, of=of)


def made_study(n: int, *, seed: int) -> Study:
    """Return a made table in the shape of Adult."""
    of = {
        reading: adult_like(n, seed=seed, markers_are_values=reading is Reading.PAPER)
        for reading in Reading
    }
    return Study(name="a made table in the shape of Adult", adult=False, of=of)
