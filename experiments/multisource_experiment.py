"""Multi-source experiment: (k,d)-anonymity and (k,l,d)-diversity of a table from two sources.

"Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied Sciences
14(8), 3230, 2024. The table is the user's file, or a made one in the shape of one of the two tables
of the paper: skewed, correlated, with many repeated records.
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
from anonymizer.algorithms.records.methods import MODELS, Task
from anonymizer.algorithms.records.problem import make_problem
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
"""Share of the values that a record takes from its profile; the rest are drawn for it alone."""


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
    """Return records, each of which takes most of its values from one of a few profiles."""
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
"""Fixed values where another parameter varies."""

_TIMED_S = 0.3
_SHARES = (0.25, 0.5, 0.75, 1.0)

Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and the name of the current step."""


class Method(StrEnum):
    """Methods of model `kd` that are compared."""

    HILBERT = "hilbert"
    """The paper's Algorithm 2; with l, Algorithm 3."""
    MONDRIAN = "mondrian"
    """The baseline."""


class Reading(StrEnum):
    """Meaning of the missing marker."""

    PAPER = "as published"
    """A value like any other, which counts towards d."""
    SAFE = "marker no value"
    """Not a value, as this product promises."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """A table of two sources, in each reading.

    Attributes
    ----------
    name
        Name in the results.
    adult
        Whether it is the table of the paper, so that figures can be compared.
    of
        Records and schema by reading: the same codes, except for the missing marker.
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
    """Results of a trial.

    Attributes
    ----------
    measures
        Measures of the classes.
    leaks
        Values of one source that Algorithm 1, the adversary of the paper, learns from the other.
    seconds
        Shortest time to form the classes, without coding the table and stating the problem.
    """

    trial: Trial
    measures: Measures
    leaks: tuple[Leak, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Time of `hilbert` on a made table in the shape of Census, with the fixed k and d."""

    n: int
    l: int  # noqa: E741  the field's name for it
    n_classes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Multisource:
    """Results that tables and plots are made from."""

    study: Study
    runs: tuple[Run, ...]
    timings: tuple[Timing, ...]


def trials(study: Study) -> list[Trial]:
    """Return the trials of a table: over k, over d, and over l as far as there are values."""
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
        A table of two sources.
    census_rows
        Number of records of the large table; 0: leave it out.
    seed
        Seed of the large table. Equal arguments give equal results, except for the times.
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
    """Compile the methods before they are timed."""
    records, schema = study.of[Reading.PAPER]
    task = _task(records.only(np.arange(min(records.n, 100))), schema, Promise(k=2))
    for method in Method:
        _classes(method, task)


def _run(study: Study, trial: Trial) -> Run:
    records, schema = study.of[trial.reading]
    task = _task(records, schema, Promise(k=trial.k, d=trial.d, l=trial.l))
    class_of, seconds = _timed(partial(_classes, trial.method, task))
    leaks = link(publish(records, schema, class_of), schema, records, class_of)
    return Run(
        trial=trial,
        measures=measure(records, schema, class_of),
        leaks=tuple(x for x in leaks if x.knows is Knowledge.LABELS and x.learned is not None),
        seconds=seconds,
    )


def _task(records: Records, schema: Schema, promise: Promise) -> Task:
    problem = make_problem(records, schema, promise)
    return Task(records=records, schema=schema, promise=promise, problem=problem)


def _classes(method: Method, task: Task) -> Int32Array:
    return MODELS["kd"].methods[method](task)


def _timings(n: int, seed: int) -> Iterator[Timing]:
    """Time growing parts of one table, with and without a sensitive attribute to diversify."""
    table, schema = census_like(n, seed=seed)
    for share in _SHARES:
        part = table.only(np.arange(round(n * share)))
        for l in (1, 2):  # noqa: E741  the field's name for it
            task = _task(part, schema, Promise(k=K, d=D, l=l))
            class_of, seconds = _timed(partial(_classes, Method.HILBERT, task))
            yield Timing(part.n, l, int(class_of.max(initial=-1)) + 1, seconds)


def _timed(work: Callable[[], Int32Array]) -> tuple[Int32Array, float]:
    """Return the result, and the shortest of as many runs as fit in the time, at least one."""
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
    """A table and its declaration.

    Attributes
    ----------
    table
        csv or parquet.
    taxonomy, order
        JSON files of hierarchies and of the order of categories. None: categories are in the
        order of their hierarchy, or in alphabetical order.
    sources
        The quasi-identifiers of each of two sources.
    sensitive
        The sensitive attribute. None: there is none, and no (k,l,d)-diversity.
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
        If a file cannot be read, or contradicts another.
    SettingsError
        If there are not two sources, or an attribute is declared twice.
    """
    if len(files.sources) != 2:
        raise SettingsError("the experiment requires two sources")
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
