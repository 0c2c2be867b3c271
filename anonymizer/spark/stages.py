"""What workers do with batches of a table: code them, form classes, check and publish them.

Each function takes Arrow data and returns Arrow data, and knows nothing of Spark. A batch of coded
records has, by name: `range`; `person`, where the table has identifiers; `q0`, `q1`, ..., the codes
of the quasi-identifiers; `s0`, ..., the index of each sensitive value in the survey; `o0`, ..., the
kept columns; `m0`, ..., the measures. Formed records also have `class`, `border` and `key`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.division import Division
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.ranges import at_borders, form, settle
from anonymizer.algorithms.records.task import ModelTarget, TimeBudget
from anonymizer.app.anonymize.class_labels import Labelling
from anonymizer.app.anonymize.label_verification import n_faulty
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.publication import CLASS_COLUMN, Publication, publish
from anonymizer.app.anonymize.statistics import measured, with_summaries
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Records
from anonymizer.errors import GuaranteeError
from anonymizer.files.coded_table import CodedTable, Declared, open_codes
from anonymizer.files.tables import TextTable
from anonymizer.spark.report import figures
from anonymizer.spark.survey import TABLE, TableSurvey

PERSON = "person"
AT_ONCE = 100_000
"""Records that are worth a call of the functions for tables."""
_KEY_BITS = 63
_SEED = 7
"""Of the checksum, the same on all workers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Job:
    """What a worker must know of a release."""

    declared: Declared
    plan: ReleasePlan
    survey: TableSurvey
    former: Former
    labelling: Labelling
    """`declared`, `plan`, `survey`, `former`, `labelling`: the columns, the settings, the first
    pass, and what follows from them."""
    has_labels: bool
    """Whether classes with the same labels are one class."""
    work_per_record: float | None
    """Of a search; None: the method does not search."""
    salt: bytes
    """Secret of this release: classes are sorted by numbers that it makes random, so that their
    order reveals nothing."""
    clock: Callable[[], float]
    """Returns seconds that never go back, for the time budget of a search."""

    def records(self, frame: pl.DataFrame) -> Records:
        """Return coded records."""
        n, schema = len(frame), self.former.schema
        sensitive = [
            self.survey.columns[attribute.name].code[frame[f"s{j}"].to_numpy()]
            for j, attribute in enumerate(schema.sensitive)
        ]
        person = np.arange(n, dtype=np.int32)
        if PERSON in frame.columns:
            person = np.unique(frame[PERSON].to_numpy(), return_inverse=True)[1].astype(np.int32)
        return Records(
            _side_by_side([frame[f"q{j}"].to_numpy() for j in range(len(schema.qis))], n),
            _side_by_side(sensitive, n),
            person,
        )

    def open(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the columns that are published as they are."""
        sensitive = [
            self.survey.columns[name].shown.gather(frame[f"s{j}"]).alias(name)
            for j, name in enumerate(self.declared.sensitive)
        ]
        kept = [frame[f"o{j}"].alias(name) for j, name in enumerate(self.declared.keep)]
        return pl.DataFrame([*sensitive, *kept])

    def coded(self, frame: pl.DataFrame) -> CodedTable:
        """Return coded records with all that is needed to publish them."""
        shown = self.open(frame)
        return CodedTable(
            records=self.records(frame),
            schema=self.former.schema,
            row=np.arange(len(frame)),
            n_rows=len(frame),
            left_out={},
            open=shown,
            open_code=open_codes(shown, len(frame), TABLE),
            origin=self.survey.origin(self.declared),
            read_as={name: each.read_as for name, each in self.survey.columns.items()},
        )

    def target(self, shown: pl.DataFrame) -> ModelTarget | None:
        """Return the label of each record that `cells` learns."""
        if self.plan.target is None:
            return None
        return ModelTarget(shown[self.plan.target].cast(pl.String).fill_null("").to_numpy())

    def time_left(self) -> TimeBudget:
        """Return the time budget of a search of one range, which begins now."""
        return TimeBudget(self.plan.time_budget_s, self.clock)


def frames(batches: Iterable[Any], *, at_once: int = AT_ONCE) -> Iterator[pl.DataFrame]:
    """Yield the rows of Arrow batches, many at once."""
    held: list[pl.DataFrame] = []
    for batch in batches:
        if batch.num_rows:
            held.append(pl.DataFrame(pl.from_arrow(batch)))
        if sum(map(len, held)) >= at_once:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def code(frame: pl.DataFrame, job: Job) -> pl.DataFrame:
    """Return coded records without their range; `frame` has the columns of the table.

    Raises
    ------
    InputError
        If a measure is not a number.
    """
    declared, columns = job.declared, job.survey.columns
    coded: dict[str, Any] = {PERSON: frame[PERSON]} if PERSON in frame.columns else {}
    for j, name in enumerate(declared.qis):
        coded[f"q{j}"] = columns[name].code[columns[name].index_of(frame[name])]
    for j, name in enumerate(declared.sensitive):
        coded[f"s{j}"] = columns[name].index_of(frame[name])
    for j, name in enumerate(declared.keep):
        coded[f"o{j}"] = frame[name]
    measures = measured(TextTable(TABLE, frame), declared, job.plan.measures)
    for j in range(len(job.plan.measures)):
        coded[f"m{j}"] = measures[:, j].copy()
    return pl.DataFrame(coded)


def sampled(batches: Iterable[Any], job: Job, *, stride: int) -> Iterator[Any]:
    """Yield the codes, and the target where there is one, of every so many records."""
    seen = 0
    for frame in frames(batches):
        some = frame.gather_every(stride, (-seen) % stride) if len(frame) else frame
        seen += len(frame)
        coded = code(some, job)
        chosen = coded.select([f"q{j}" for j in range(len(job.former.schema.qis))])
        if (target := job.target(job.open(coded))) is not None:
            chosen = chosen.with_columns(pl.Series("target", target.values))
        yield from _batches(chosen)


def in_parts(batches: Iterable[Any], job: Job, division: Division) -> Iterator[Any]:
    """Yield coded records with their range."""
    for frame in frames(batches):
        coded = code(frame, job)
        turn = np.arange(len(coded))
        if PERSON in coded.columns:
            turn = coded[PERSON].to_numpy() & np.int64(2**31 - 1)
        qi = _side_by_side(
            [coded[f"q{j}"].to_numpy() for j in range(len(job.former.schema.qis))], len(coded)
        )
        range_of = division.ranges_of(qi, turn)
        yield from _batches(coded.with_columns(pl.Series("range", range_of)))


def form_range(table: Any, job: Job) -> Any:  # noqa: ANN401  pyarrow is an extra
    """Return the records of one range with their classes."""
    frame = pl.DataFrame(pl.from_arrow(table))
    records, shown = job.records(frame), job.open(frame)
    class_of = form(
        records,
        job.former,
        open_code=open_codes(shown, len(frame), TABLE),
        target=job.target(shown),
        time_left=job.time_left(),
        work_per_record=job.work_per_record,
    )
    border = at_borders(records, job.former.schema, class_of)
    return _formed(frame, records, class_of, border, job)


def settle_group(table: Any, job: Job) -> Any:  # noqa: ANN401  likewise
    """Return the records that meet at borders with their new classes; `range` is their group."""
    frame = pl.DataFrame(pl.from_arrow(table))
    records, shown = job.records(frame), job.open(frame)
    former = frame["range"].cast(pl.Int64) * 2**32 + frame["class"]
    number = former.rank("dense").cast(pl.Int32).to_numpy()
    class_of = settle(
        records,
        job.former,
        np.where(frame["class"].to_numpy() == SUPPRESSED, SUPPRESSED, number).astype(np.int32),
        open_code=open_codes(shown, len(frame), TABLE),
        target=job.target(shown),
        time_left=job.time_left(),
        work_per_record=job.work_per_record,
    )
    # Below 0, so that no range has the number of a group.
    frame = frame.with_columns(range=-1 - pl.col("group")).drop("group")
    return _formed(frame, records, class_of, np.zeros(len(frame), bool), job)


class VerifiedPartition(NamedTuple):
    """What was verified of one partition of the sorted records."""

    first_class: int
    n_classes: int
    """`first_class`, `n_classes`: number of its first class in the release, and how many it has."""
    checksum: int
    """See `_checksum`."""


def _checksum(classes: Iterable[pl.DataFrame]) -> int:
    """Return a number that depends on which records are in which class, and not on their order."""
    total = 0
    for frame in classes:
        rows = frame.select(pl.exclude("border")).hash_rows(seed=_SEED).to_numpy()
        total += int(rows.sum(dtype=np.uint64))
    return total % 2**64


def checked(batches: Iterable[Any], job: Job, *, partition: int) -> Iterator[Any]:
    """Verify the classes of one partition of the sorted records; yield one row of figures.

    Raises
    ------
    GuaranteeError
        If a class does not meet the criteria.
    """
    parts, keys, checksum = [], [], 0
    for frame, class_of in _whole_classes(batches, job):
        records = job.records(frame)
        checksum = (checksum + _checksum([frame])) % 2**64
        job.former.verify(records, class_of)
        parts.append(figures(measure(records, job.former.schema, class_of)))
        keys += [frame["key"][0], frame["key"][-1]]
    if parts:
        row = {
            "first": keys[0],
            "last": keys[-1],
            "parts": json.dumps(parts),
            "checksum": str(checksum),
        }
        yield from _batches(
            pl.DataFrame({"partition": [partition]}, {"partition": pl.Int32}).with_columns(
                **{name: pl.lit(value) for name, value in row.items()}
            )
        )


def published(
    batches: Iterable[Any], job: Job, *, partition: int, verified: Mapping[int, VerifiedPartition]
) -> Iterator[Any]:
    """Yield the rows of the release of one partition of the sorted records.

    The partition is held in memory until it is known to be the one that was verified: where a
    worker has died, Spark may have made it anew.

    Parameters
    ----------
    verified
        What was verified of each partition that has any records.

    Raises
    ------
    GuaranteeError
        If there are other classes than those that were verified, or a label does not cover its
        class. No row has been yielded then.
    """
    classes = list(_whole_classes(batches, job))
    number, n_classes, checksum = verified.get(partition, VerifiedPartition(0, 0, 0))
    n_found = sum(int(class_of[-1]) + 1 for _, class_of in classes)
    if n_found != n_classes or _checksum(frame for frame, _ in classes) != checksum:
        raise GuaranteeError(
            "Spark made other classes than were verified, after it had lost these: nothing of them"
            " is published; anonymize the table again"
        )
    for frame, class_of in classes:
        coded = job.coded(frame)
        found = publish(coded, class_of, job.former.cost, job.labelling)
        rows = _with_statistics(found, coded, frame, job) if job.has_labels else found.as_text()
        yield from _batches(rows.with_columns(pl.col(CLASS_COLUMN) + number))
        number += int(class_of[-1]) + 1


def _with_statistics(
    found: Publication, coded: CodedTable, frame: pl.DataFrame, job: Job
) -> pl.DataFrame:
    """Return the rows with counts and means, after verifying the labels."""
    first = np.unique(found.frame[CLASS_COLUMN].to_numpy(), return_index=True)[1]
    labels = [found.frame[qi.name].gather(first).to_list() for qi in coded.schema.qis]
    if n_faulty(coded, found.class_of, labels, job.plan.promise.k, job.labelling):
        raise GuaranteeError("a label does not cover its class")
    names = job.plan.measures
    values = [frame[f"m{j}"].to_numpy() for j in range(len(names))]
    measures = np.column_stack([np.zeros((len(frame), 0)), *values])
    rows, _ = with_summaries(found, coded, measures, names, k=job.plan.promise.k)
    return replace(found, frame=rows).as_text()


def _whole_classes(batches: Iterable[Any], job: Job) -> Iterator[tuple[pl.DataFrame, Int32Array]]:
    """Yield records, many at once but no class in parts, and the class of each from 0."""
    held = pl.DataFrame()
    for frame in frames(batches):
        held = pl.concat([held, frame]) if len(held) else frame
        new = _starts(held, job)
        last = int(np.flatnonzero(new)[-1])
        if last:
            yield held[:last], (np.cumsum(new[:last]) - 1).astype(np.int32)
            held = held[last:]
    if len(held):
        yield held, (np.cumsum(_starts(held, job)) - 1).astype(np.int32)


def _starts(frame: pl.DataFrame, job: Job) -> BoolArray:
    """Return which records are the first of their class."""
    new = np.zeros(len(frame), bool)
    new[0] = True
    for name in ("key",) if job.has_labels else ("key", "range", "class"):
        column = frame[name].to_numpy()
        new[1:] |= column[1:] != column[:-1]
    return new


def _formed(
    frame: pl.DataFrame, records: Records, class_of: Int32Array, border: BoolArray, job: Job
) -> Any:  # noqa: ANN401  likewise
    out = frame.with_columns(
        pl.Series("class", class_of),
        pl.Series("border", border),
        pl.Series("key", _keys(frame, records, class_of, job)),
    )
    return out.to_arrow(compat_level=pl.CompatLevel.oldest())


def _keys(frame: pl.DataFrame, records: Records, class_of: Int32Array, job: Job) -> IntArray:
    """Return the number by which the class of each record is sorted; 0 where it has none.

    Equal for classes with the same labels, where a model has labels. Otherwise it depends on the
    class and the secret of the release alone.
    """
    n_classes = int(class_of.max(initial=SUPPRESSED)) + 1
    if not n_classes:
        return np.zeros(len(class_of), np.int64)
    if job.has_labels:
        general = generalize(records.qi, classes_of(class_of), job.former.schema, job.former.cost)
        texts = [job.labelling.texts(general, j) for j in range(len(job.former.schema.qis))]
        names = [json.dumps(each).encode() for each in zip(*texts, strict=True)]
    else:
        names = [f"{frame['range'][0]}:{c}".encode() for c in range(n_classes)]
    digests = [blake2b(name, digest_size=8, key=job.salt).digest() for name in names]
    number = np.frombuffer(b"".join(digests), np.uint64) >> np.uint64(64 - _KEY_BITS)
    key: IntArray = np.append(number.astype(np.int64), 0)[class_of]
    return key


def _batches(frame: pl.DataFrame) -> Iterator[Any]:
    yield from frame.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _side_by_side(columns: list[Any], n: int) -> Int32Array:
    return np.ascontiguousarray(np.column_stack([np.zeros((n, 0)), *columns]), np.int32)
