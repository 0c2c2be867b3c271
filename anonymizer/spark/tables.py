"""Anonymization of a data frame of Spark: the order of the passes, and what is checked at the end.

1. Survey: the distinct values of each column and their counts. The driver codes them.
2. Sample: codes of records evenly spread over the table. The driver divides the table by them.
3. Coding and forming: each record gets its range; each range is anonymized by one worker.
4. Borders: what found no class meets what is next to it.
5. Check: the records are sorted by class; every class is verified again, and they are counted.
6. Publishing: the rows of the release, when they are asked for. They must be those of step 5.

What is checked lies on the disks of two executors, so that the loss of one changes nothing. If both
are lost, Spark makes the classes anew, and they may be other ones: then nothing is published.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, Unpack

import numpy as np
import polars as pl

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.division import Division, divide
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.methods import searches
from anonymizer.algorithms.records.ranges import NO_GROUP, meetings
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.api.keywords import RangeKeywords, takes_keywords
from anonymizer.app.anonymize.class_forming import former_of, work_in
from anonymizer.app.anonymize.class_labels import labelling_of
from anonymizer.app.anonymize.plan import ReleasePlan, declared_of, make_plan
from anonymizer.app.anonymize.report_figures import words_of_persons, words_of_reading
from anonymizer.app.anonymize.table_anonymization import check_target, model_of, with_method
from anonymizer.app.table_options import TableOptions
from anonymizer.domain.records import Records
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.extras import extra
from anonymizer.files.coded_table import Declared
from anonymizer.files.meanings import Fold
from anonymizer.files.person_keys import n_alike
from anonymizer.files.tables import no_column
from anonymizer.spark import workers
from anonymizer.spark.memory import check_memory
from anonymizer.spark.nobodies import without_nobodies
from anonymizer.spark.persons import person_column
from anonymizer.spark.report import RangesReport, added
from anonymizer.spark.stages import AT_ONCE, PERSON, Job, VerifiedPartition
from anonymizer.spark.survey import TABLE, TableSurvey, states, survey
from anonymizer.spark.workers import SparkFrame

ROWS_PER_RANGE = 500_000
"""Default size of a range, which one worker holds in memory."""
_SAMPLE = 2**19
"""Records by which the table is divided."""
_TIME = r"^(?:\d{4}[-/]\d{1,2}[-/]\d{1,2}[T ]+)?([01]?\d|2[0-3]):([0-5]\d)(?::.*)?$"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SparkRelease:
    """A verified release."""

    frame: SparkFrame
    """Its rows, a data frame of Spark that is computed when it is written; the rows of a class
    follow each other within a partition."""
    report: RangesReport
    """The criteria that were reached, and the information loss."""
    _held: ExitStack

    def close(self) -> None:
        """Free what Spark holds of the release on its disks; `frame` cannot be used afterwards."""
        self._held.close()

    def __enter__(self) -> Self:
        """Return the release."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()


@takes_keywords(TableOptions)
def anonymize(
    frame: SparkFrame,
    *,
    rows_per_range: int = ROWS_PER_RANGE,
    **options: Unpack[RangeKeywords],
) -> SparkRelease:
    """Anonymize a data frame of Spark, of any size: every person is one of at least k.

    Parameters
    ----------
    frame
        The records, of text, numbers or booleans. It is read several times and must not change.
    rows_per_range
        Records that are anonymized together. More of them lose less and need more memory.

    All others are those of `anonymizer.anonymize`; a search does as much for each record as there.
    What is chosen by looking at the whole table is not available: `prefer_share`, `weights` and
    `suppress`; and `measures` are for `kaca` alone.

    Returns
    -------
    release
        Close it when its rows have been written.

    Raises
    ------
    InputError
        If the table cannot be used, its values are too long for a worker, or no class meets the
        criteria.
    SettingsError
        If an option is out of its range or does not fit the others, or an extra is not installed.
    GuaranteeError
        If independent verification finds a class that does not meet the criteria, or a record is
        missing. Spark wraps errors of its workers in exceptions of its own.
    """
    with extra("spark"):
        import pyspark.sql  # noqa: F401, PLC0415  an extra
    _use_this_python(frame)
    asked = TableOptions(**options)
    declared, plan = declared_of(asked), make_plan(asked)
    return _anonymize(frame, declared, plan, rows_per_range, time.monotonic)


def _use_this_python(frame: SparkFrame) -> None:
    """Let workers on this machine run the interpreter that runs here, unless another was named.

    Spark's own default is the first `python3` of the path, which may lack pyarrow or this package:
    it tries that for minutes.
    """
    if "PYSPARK_PYTHON" in os.environ or "SPARK_REMOTE" in os.environ:
        return
    context = getattr(frame.sparkSession, "sparkContext", None)
    if context is not None and context.master.startswith("local"):
        named = context.getConf().get("spark.pyspark.python")
        setattr(context, "pythonExec", named or sys.executable)  # noqa: B010  else vulture calls it unused


def _anonymize(
    frame: SparkFrame,
    declared: Declared,
    plan: ReleasePlan,
    rows_per_range: int,
    clock: Callable[[], float],
) -> SparkRelease:
    from pyspark import StorageLevel  # noqa: PLC0415  an extra

    if rows_per_range < 1:
        raise SettingsError("rows_per_range: must be at least 1")
    if plan.measures and not MODELS[plan.model].has_labels:
        raise SettingsError(f"measure: not available for model {plan.model} on Spark")
    if both := [name for name in plan.measures if name in declared.qis]:
        raise SettingsError(f"measure: on Spark, {both[0]} cannot be a quasi-identifier, too")
    seconds: dict[str, float] = {}
    table, joined = _prepared(frame, declared, plan, n_at_once=max(rows_per_range, AT_ONCE))
    n_rows = frame.count()
    with _timed(seconds, "survey", clock):
        seen = survey(table, declared, plan)
        n_named = seen.n
        table, n_silent = _stating(table, seen, declared, n_named)
        table = _one_row_each(table, plan.seed)
        n = table.count() if PERSON in table.columns else n_named - sum(n_silent.values())
        n_repeated = n_named - sum(n_silent.values()) - n
        if n < n_named:
            seen = survey(table, declared, plan)
        job = _job(table, seen, declared, plan, n=n, clock=clock)
    with _timed(seconds, "divide", clock):
        division = _division(table, job, n, rows_per_range)
    coded = table.mapInArrow(workers.in_parts(job, division), workers.coded_schema(table, job))
    formed = coded.groupBy("range").applyInArrow(
        workers.form_range(job), workers.coded_schema(table, job, formed=True)
    )
    with ExitStack() as held, ExitStack() as of_release:
        formed = formed.persist(StorageLevel.DISK_ONLY_2)
        held.callback(formed.unpersist)
        with _timed(seconds, "form", clock):
            settled, n_met = _settled(formed, job, division.n_ranges)
        n_parts = max(-(-n // rows_per_range), 1)
        classed = settled.where(f"class <> {SUPPRESSED}")
        ordered = classed.repartitionByRange(n_parts, "key").sortWithinPartitions(
            "key", "range", "class"
        )
        ordered = ordered.persist(StorageLevel.DISK_ONLY_2)
        of_release.callback(ordered.unpersist)
        with _timed(seconds, "check", clock):
            found, verified = _checked(ordered, job)
            n_left = settled.where(f"class = {SUPPRESSED}").count()
        if found["n"] + n_left != n:
            raise GuaranteeError(f"{TABLE}: of {n:,} records {found['n'] + n_left:,} came back")
        release = ordered.mapInArrow(
            workers.published(job, verified), workers.release_schema(frame, job)
        )
        report = _report(
            found,
            job,
            n_rows=n_rows,
            suppressed={
                "no_identifier": n_rows - n_named,
                **n_silent,
                "repeated": n_repeated,
                "promise": n_left,
            },
            n_ranges=division.n_ranges,
            n_met=n_met,
            seconds=seconds,
            joined=joined,
        )
        return SparkRelease(release, report, of_release.pop_all())


@contextmanager
def _timed(seconds: dict[str, float], step: str, clock: Callable[[], float]) -> Iterator[None]:
    began = clock()
    yield
    seconds[step] = round(clock() - began, 3)


def _prepared(
    frame: SparkFrame, declared: Declared, plan: ReleasePlan, *, n_at_once: int
) -> tuple[SparkFrame, tuple[Fold, ...]]:
    """Return the declared columns, times as short text, a number for each person.

    And which writings of identifiers count as one.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra
    from pyspark.sql.types import StringType, TimestampNTZType, TimestampType  # noqa: PLC0415

    wanted = [*declared.columns, *plan.measures]
    if absent := [name for name in wanted if name not in frame.columns]:
        raise no_column(TABLE, absent[0], frame.columns)
    table = frame.select(*wanted)
    check_memory(table, n_at_once)
    table = without_nobodies(table, declared)
    for name in declared.times:
        kind, cell = frame.schema[name].dataType, table[name]
        if isinstance(kind, TimestampType | TimestampNTZType):
            table = table.withColumn(name, sql.hour(cell) * 60 + sql.minute(cell))
        elif isinstance(kind, StringType):
            hour, minute = (sql.regexp_extract(sql.trim(cell), _TIME, part) for part in (1, 2))
            short = sql.concat_ws(":", hour, minute)
            table = table.withColumn(name, sql.when(hour == "", cell).otherwise(short))
    if declared.id is None:
        return table, ()
    person, joined = person_column(table, declared)
    named = table.withColumn(PERSON, person).drop(declared.id).where(f"{PERSON} is not null")
    return named, joined


def _one_row_each(table: SparkFrame, seed: int) -> SparkFrame:
    """Return one row of each person, drawn by the seed and the content of the rows alone."""
    from pyspark.sql import Window  # noqa: PLC0415  an extra
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    if PERSON not in table.columns:
        return table
    rows = Window.partitionBy(PERSON)
    drawn = sql.pmod(sql.xxhash64(sql.lit(seed), sql.col(PERSON)), sql.count("*").over(rows))
    at = sql.row_number().over(rows.orderBy(*table.columns)) - 1
    numbered = table.withColumn("_at", at).withColumn("_drawn", drawn)
    return numbered.where("_at = _drawn").drop("_at", "_drawn")


def _stating(
    table: SparkFrame, found: TableSurvey, declared: Declared, n: int
) -> tuple[SparkFrame, dict[str, int]]:
    """Return the records, see `code_table`, and how many rows are none, by reason."""
    qi = states(table, found, declared.qis)
    any_ = qi | states(table, found, declared.sensitive)
    n_any, n_qi = table.where(any_).count(), table.where(qi).count()
    if declared.markers_are_values:
        return table.where(any_), {"states_nothing": n - n_any}
    if not n_qi:
        raise InputError(f"{TABLE}: no row states a quasi-identifier of somebody")
    return table.where(qi), {"states_nothing": n - n_any, "states_no_qi": n_any - n_qi}


def _job(
    table: SparkFrame,
    found: TableSurvey,
    declared: Declared,
    plan: ReleasePlan,
    *,
    n: int,
    clock: Callable[[], float],
) -> Job:
    model = model_of(plan, found.schema)
    plan = with_method(plan, model)
    if plan.target is not None:
        shown = [*declared.sensitive, *declared.keep]
        check_target(plan.target, shown, lambda name: table.select(name).distinct().count())
    labelling = labelling_of(found.schema, declared, plan.labels, plan.language)
    former = former_of(
        *(plan, found.schema, model),
        features=labelling.features,
        usual_qi=found.usual_qi,
        usual=found.usual,
    )
    return Job(
        declared=declared,
        plan=plan,
        survey=found,
        former=former,
        labelling=labelling,
        has_labels=model.has_labels,
        work_per_record=_work_per_record(former, plan, n),
        salt=secrets.token_bytes(16),
        clock=clock,
    )


def _work_per_record(former: Former, plan: ReleasePlan, n: int) -> float | None:
    """Return what one process, given the whole table, would do for each record in a search."""
    if not searches(former.method):
        return None
    qi, sensitive = former.schema.qis, former.schema.sensitive
    nobody = Records(
        np.zeros((0, len(qi)), np.int32),
        np.zeros((0, len(sensitive)), np.int32),
        np.zeros(0, np.int32),
    )
    return work_in(plan.time_budget_s, former.problem(nobody)) / max(n, 1)


def _division(table: SparkFrame, job: Job, n: int, rows_per_range: int) -> Division:
    columns = [f"q{j} int" for j in range(len(job.former.schema.qis))]
    columns += ["target string"] if job.plan.target is not None else []
    stride = max(n // _SAMPLE, 1)
    some = table.mapInArrow(workers.sampled(job, stride), ", ".join(columns))
    sample = pl.DataFrame(pl.from_arrow(some.toArrow()))
    if not len(sample):
        raise InputError(f"{TABLE}: has no records")
    return divide(
        np.ascontiguousarray(sample.select(pl.col("^q[0-9]+$")).to_numpy(), np.int32),
        job.former,
        n_ranges=max(-(-n // rows_per_range), 1),
        target=ModelTarget(sample["target"].to_numpy()) if "target" in sample.columns else None,
    )


def _settled(formed: SparkFrame, job: Job, n_ranges: int) -> tuple[SparkFrame, int]:
    """Return the records with those that meet at borders settled, and how many these were."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    n_left, n_classes = [0] * n_ranges, [0] * n_ranges
    left = sql.sum((sql.col("class") == SUPPRESSED).cast("long"))
    for row in formed.groupBy("range").agg(left, sql.max("class")).collect():
        n_left[row[0]], n_classes[row[0]] = row[1], row[2] + 1
    group_of = meetings(n_left, n_classes)
    meeting = np.flatnonzero(group_of != NO_GROUP).tolist()
    if not meeting:
        return formed, 0
    meets = sql.col("range").isin(meeting) & (sql.col("border") | (sql.col("class") == SUPPRESSED))
    group = sql.array(*(sql.lit(int(each)) for each in group_of))[sql.col("range")]
    settled = (
        formed.where(meets)
        .withColumn("group", group)
        .groupBy("group")
        .applyInArrow(workers.settle_group(job), formed.schema)
    )
    return formed.where(~meets).unionByName(settled), sum(n_left)


def _checked(ordered: SparkFrame, job: Job) -> tuple[dict[str, Any], dict[int, VerifiedPartition]]:
    """Verify all classes; return their figures, and what was verified of each partition."""
    rows = ordered.mapInArrow(
        workers.checked(job),
        "partition int, first long, last long, parts string, checksum string",
    ).collect()
    if not rows:
        raise InputError(f"{TABLE}: no class that keeps the promise was found")
    rows.sort(key=lambda row: row["partition"])
    if any(one["last"] >= other["first"] for one, other in pairwise(rows)):
        raise GuaranteeError(f"{TABLE}: a class was divided: nothing is published")
    verified, number, parts = {}, 0, []
    for row in rows:
        found = json.loads(row["parts"])
        n_classes = sum(each["n_classes"] for each in found)
        verified[row["partition"]] = VerifiedPartition(number, n_classes, int(row["checksum"]))
        number += n_classes
        parts += found
    return added(parts), verified


def _report(
    found: Mapping[str, Any],
    job: Job,
    *,
    n_rows: int,
    suppressed: Mapping[str, int],
    n_ranges: int,
    n_met: int,
    seconds: Mapping[str, float],
    joined: Sequence[Fold],
) -> RangesReport:
    n_qis, n = len(job.declared.qis), found["n"]
    read_as = {name: each.read_as for name, each in job.survey.columns.items()}
    n_left = suppressed["promise"]
    return RangesReport(
        n=n_rows,
        n_published=n,
        suppressed={reason: count for reason, count in suppressed.items() if count},
        n_ranges=n_ranges,
        n_met=n_met,
        folds=[*joined, *(fold for each in job.survey.columns.values() for fold in each.folds)],
        warnings=[*words_of_reading(read_as), *words_of_persons(n_alike(joined))],
        n_classes=found["n_classes"],
        size_min=found["size_min"],
        size_max=found["size_max"],
        k=found["k"],
        d=dict(zip(job.declared.qis, found["d"], strict=True)),
        l=dict(zip(job.declared.sensitive, found["l"], strict=True)),
        max_share=dict(zip(job.declared.qis, found["max_share"], strict=True)),
        gcp={
            form: (lost + n_left * n_qis) / ((n + n_left) * n_qis)
            for form, lost in found["lost"].items()
        },
        gcp_published={form: lost / (n * n_qis) for form, lost in found["lost"].items()},
        seconds=seconds,
    )
