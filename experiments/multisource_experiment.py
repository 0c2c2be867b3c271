"""Multi-source experiment: (k,d)-anonymity and (k,l,d)-diversity of a table from two sources.

"Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied Sciences
14(8), 3230, 2024: utility and time over k, d, l, the number of quasi-identifiers and of records.
Its tables 4 to 7 are in `leak_tables`.

References
----------
.. [1] V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from types import MappingProxyType

import numpy as np

from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.releases.released_classes import publish
from anonymizer.audit.mathematics.linkability import Knowledge, Leak, link
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from experiments.compared_methods import Method, compile_methods, form_classes
from experiments.kept_steps import KeptSteps, Progress
from experiments.leak_tables import LeakRow, printed_rows, releases
from experiments.multisource_tables import Reading, Study
from experiments.printed_figures import ADULT, CENSUS, K_OF, D, L

KS = MappingProxyType({ADULT: (10, 20, 30, 40, 50), CENSUS: (100, 125, 150, 175, 200)})
DS = (1, 2, 3, 4, 5)
LS = (2, 3, 4, 5)
SHARES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, order=True)
class Trial:
    """One set of classes to form.

    Attributes
    ----------
    shape
        Which table: `ADULT`, the user's or one like it, or `CENSUS`.
    n_qis, share
        Number of quasi-identifiers, from one source and the other by turns, and share of the
        records.
    """

    shape: str
    reading: Reading
    method: Method
    n_qis: int
    k: int
    d: int = D
    l: int = 1  # noqa: E741  the field's name for it
    share: float = 1.0

    def __str__(self) -> str:
        """Name it by all that it depends on."""
        of = "" if self.share == 1.0 else f", {self.share:g} of the records"
        missing = "" if self.reading is Reading.PAPER else f", {self.reading}"
        return (
            f"{self.shape}: {self.method}, k = {self.k}, d = {self.d}, l = {self.l}, "
            f"{self.n_qis} quasi-identifiers{of}{missing}"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a trial."""

    trial: Trial
    repeat: int
    """Number of the repeat. The first has the records in their own order, the others in a random
    one: where records are equal to the algorithm, their order decides."""
    measures: Measures
    """Measures of the classes."""
    misclassified: float | None
    """Share of the records whose sensitive value is not the most frequent one of their class, or
    which are suppressed: the classification metric [1]_. None: nothing is sensitive."""
    leaks: tuple[Leak, ...]
    """Values of one source that Algorithm 1, the adversary of the paper, learns from the other;
    empty but for the first repeat."""
    seconds: float
    """CPU time to form the classes, without coding the table. It is that of one core, and what else
    the machine does hardly changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """The values that are tried of one parameter, while the others are the paper's defaults."""

    ks: Mapping[str, Sequence[int]] = field(default_factory=lambda: KS)
    """By table: `ADULT` and `CENSUS`."""
    ds: Sequence[int] = DS
    ls: Sequence[int] = LS
    shares: Sequence[float] = SHARES
    """Shares of the records, above 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is tried."""

    repeats: int = 10
    """Runs of each trial."""
    best_s: float = 2.0
    """Time budget of each search, in seconds of CPU; 0: `best` is left out."""
    seed: int = 1
    """Seed of the random orders and searches. Equal plans give equal results, except for times and
    what `best` finds in its time."""
    ranges: Ranges = field(default_factory=Ranges)


@dataclass(frozen=True, slots=True)
class Multisource:
    """Results that tables and plots are made from."""

    studies: dict[str, Study]
    """The tables, by shape."""
    plan: Plan
    runs: tuple[Run, ...]
    leak_rows: tuple[LeakRow, ...]
    done: float = 1.0
    """Share of the steps that are done, 0 to 1."""


def trials(study: Study, shape: str, *, best: bool, ranges: Ranges | None = None) -> list[Trial]:
    """Return the trials of a table: over k, d, l, quasi-identifiers and records.

    Trials of l are left out as far as there are not enough sensitive values. Mondrian is not tried
    on the Census.

    Parameters
    ----------
    best
        Whether `best` is tried.
    ranges
        None: those of the paper, as far as its text gives them.
    """
    ranges = ranges or Ranges()
    records, schema = study.of[Reading.PAPER]
    k, n_qis, ks = K_OF[shape], len(schema.qis), ranges.ks[shape]
    searches = [Method.BEST] if best else []
    plain = [Method.HILBERT, *searches, *([Method.MONDRIAN] if shape == ADULT else [])]
    diverse = [Method.HILBERT, Method.PRINTED, *searches]
    base = partial(Trial, shape, Reading.PAPER)
    found = {base(m, n_qis, k, l=each) for m in diverse for each in ranges.ls}
    for method, diversity in [*((m, 1) for m in plain), *((m, L) for m in diverse)]:
        of = partial(base, method, l=diversity)
        found |= {of(n_qis, each) for each in ks}
        found |= {of(n_qis, k, share=share) for share in ranges.shares}
        found |= {of(n_qis, k, d) for d in ranges.ds}
        found |= {of(n, k) for n in range(2, n_qis + 1)}
    if shape == ADULT:
        found |= {base(m, n_qis, each, 1) for m in plain for each in ks}
        for method in (Method.HILBERT, *searches):
            found |= {Trial(shape, Reading.SAFE, method, n_qis, k, d) for d in ranges.ds}
    most = min((len(np.unique(column)) for column in records.sensitive.T), default=1)
    return sorted(trial for trial in found if trial.l <= most)


def run_multisource(
    studies: dict[str, Study],
    plan: Plan,
    *,
    kept: KeptSteps | None = None,
    progress: Progress = lambda _done, _what: None,
    partial_results: Callable[[Multisource], None] = lambda _so_far: None,
) -> Multisource:
    """Form, measure and attack the classes of every trial, and of the rivals.

    One repeat of every trial and the rivals come first, so that every line of every plot has its
    points before further repeats only narrow its band.

    Parameters
    ----------
    studies
        Tables of two sources, by shape: `ADULT`, and `CENSUS` if wanted.
    kept
        What is known from before; None: nothing. A step is a trial and repeat, or a rival.
    partial_results
        Called after each step with the results so far.
    """
    kept = kept or KeptSteps(None, {})
    steps = list(_steps(studies, plan))
    for study in studies.values():
        compile_methods(*study.of[Reading.PAPER])
    runs: list[Run] = []
    rows = [row for shape, study in studies.items() for row in printed_rows(study, shape)]
    for step, (kind, what, find) in enumerate(steps):
        progress(step / len(steps), what)
        found = kept.result(kind, what, find)
        (runs if isinstance(found, Run) else rows).append(found)  # type: ignore[arg-type]
        done = (step + 1) / len(steps)
        ordered = sorted(rows, key=lambda row: (row.table, not row.by_the_paper))
        so_far = Multisource(studies, plan, tuple(runs), tuple(ordered), done)
        partial_results(so_far)
    progress(1.0, "done")
    return so_far


_Step = tuple[type[Run] | type[LeakRow], str, Callable[[], Run | LeakRow]]
"""Kind of the result, what it is of, and what finds it."""


def _steps(studies: dict[str, Study], plan: Plan) -> Iterator[_Step]:
    for repeat in range(plan.repeats):
        for shape, study in studies.items():
            for trial in trials(study, shape, best=plan.best_s > 0, ranges=plan.ranges):
                run = partial(_run, study, trial, repeat, plan)
                yield Run, f"{trial}, repeat {repeat + 1}", run
            if repeat == 0:
                for name, find in releases(study, shape, best_s=plan.best_s, seed=plan.seed):
                    yield LeakRow, f"{shape}: {name}", find


def varied(runs: Sequence[Run], over: str, **kept: object) -> list[tuple[float, list[Run]]]:
    """Return each value of one field of the trials with its runs, rising.

    The other fields have the values of `kept`, else those of most trials: d = 2, l = 1, all
    quasi-identifiers and records.
    """
    n_qis = max((run.trial.n_qis for run in runs), default=0)
    usual = {"reading": Reading.PAPER, "n_qis": n_qis, "d": D, "l": 1, "share": 1.0}
    fixed = {name: value for name, value in (usual | kept).items() if name != over}
    of: dict[float, list[Run]] = {}
    for run in runs:
        if all(getattr(run.trial, name) == value for name, value in fixed.items()):
            of.setdefault(getattr(run.trial, over), []).append(run)
    return sorted(of.items())


def _run(study: Study, trial: Trial, repeat: int, plan: Plan) -> Run:
    records, schema = _part(*study.of[trial.reading], trial)
    if repeat:
        rng = np.random.default_rng([plan.seed, repeat])
        records = records.only(rng.permutation(records.n))
    promise = Promise(k=trial.k, d=trial.d, l=trial.l)
    started = time.process_time()
    class_of = form_classes(
        records, schema, promise, trial.method, best_s=plan.best_s, seed=plan.seed + repeat
    )
    seconds = time.process_time() - started
    leaks = () if repeat else link(publish(records, schema, class_of), schema, records, class_of)
    return Run(
        trial=trial,
        repeat=repeat,
        measures=measure(records, schema, class_of),
        misclassified=misclassified(class_of, records.sensitive[:, 0])
        if schema.sensitive
        else None,
        leaks=tuple(x for x in leaks if x.knows is Knowledge.LABELS and x.learned is not None),
        seconds=seconds,
    )


def misclassified(class_of: Int32Array, value: Int32Array) -> float:
    """Return the classification metric of some classes, 0 to 1, by one value of each record."""
    kept = class_of >= 0
    pairs = np.column_stack([class_of[kept], value[kept]])
    each, n = np.unique(pairs, axis=0, return_counts=True)
    most = np.zeros(int(class_of.max(initial=-1)) + 1, np.int64)
    np.maximum.at(most, each[:, 0], n)
    return 1.0 - float(most.sum()) / max(len(class_of), 1)


def _part(records: Records, schema: Schema, trial: Trial) -> tuple[Records, Schema]:
    """Return the trial's share of the records, and its quasi-identifiers."""
    part = records.only(np.arange(round(records.n * trial.share)))
    by_turns = [j for turn in zip_longest(*schema.sources) for j in turn if j is not None]
    kept = sorted(by_turns[: trial.n_qis])
    sources = tuple(tuple(kept.index(j) for j in source if j in kept) for source in schema.sources)
    return (
        replace(part, qi=np.ascontiguousarray(part.qi[:, kept])),
        replace(schema, qis=tuple(schema.qis[j] for j in kept), sources=sources),
    )
