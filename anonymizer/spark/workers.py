"""What Spark calls on its workers, and the columns of what it gets back.

Spark recognizes the kind of a function by its annotations, which name types of an extra, and takes
only texts with 32-bit offsets.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from anonymizer.algorithms.records.division import Division
from anonymizer.app.anonymize.publication import CLASS_COLUMN
from anonymizer.app.anonymize.statistics import COUNT_COLUMN, MEAN_PREFIX
from anonymizer.spark import stages
from anonymizer.spark.stages import PERSON, Job, VerifiedPartition

SparkFrame: TypeAlias = Any
"""A `pyspark.sql.DataFrame`; pyspark is an extra."""


def coded_schema(table: SparkFrame, job: Job, *, formed: bool = False) -> Any:  # noqa: ANN401
    """Return the columns of coded or formed records, see `stages`."""
    from pyspark.sql import types  # noqa: PLC0415  an extra

    schema = types.StructType()
    if PERSON in table.columns:
        schema.add(PERSON, types.LongType())
    for j in range(len(job.declared.qis)):
        schema.add(f"q{j}", types.IntegerType())
    for j in range(len(job.declared.sensitive)):
        schema.add(f"s{j}", types.IntegerType())
    for j, name in enumerate(job.declared.keep):
        schema.add(f"o{j}", table.schema[name].dataType)
    for j in range(len(job.plan.measures)):
        schema.add(f"m{j}", types.DoubleType())
    schema.add("range", types.IntegerType())
    if formed:
        schema.add("class", types.IntegerType())
        schema.add("border", types.BooleanType())
        schema.add("key", types.LongType())
    return schema


def release_schema(frame: SparkFrame, job: Job) -> Any:  # noqa: ANN401
    """Return the columns of a release of the records of `frame`."""
    from pyspark.sql import types  # noqa: PLC0415  an extra

    schema = types.StructType().add(CLASS_COLUMN, types.LongType())
    for name in job.declared.qis:
        schema.add(name, types.StringType())
    for name in (*job.declared.sensitive, *job.declared.keep):
        schema.add(name, frame.schema[name].dataType)
    if job.has_labels:
        schema.add(COUNT_COLUMN, types.LongType())
        for name in job.plan.measures:
            schema.add(f"{MEAN_PREFIX}{name}", types.DoubleType())
    return schema


def sampled(job: Job, stride: int) -> Callable[..., Any]:
    """Return `stages.sampled` for batches of the table."""
    return _over_batches(partial(stages.sampled, job=job, stride=stride))


def in_parts(job: Job, division: Division) -> Callable[..., Any]:
    """Return `stages.in_parts` for batches of the table."""
    return _over_batches(partial(stages.in_parts, job=job, division=division))


def form_range(job: Job) -> Callable[..., Any]:
    """Return `stages.form_range` for the records of a range."""
    return _over_group(stages.form_range, job)


def settle_group(job: Job) -> Callable[..., Any]:
    """Return `stages.settle_group` for the records that meet."""
    return _over_group(stages.settle_group, job)


def checked(job: Job) -> Callable[..., Any]:
    """Return `stages.checked` for a partition of the sorted records."""
    return _over_batches(lambda batches: stages.checked(batches, job, partition=_partition()))


def published(job: Job, verified: Mapping[int, VerifiedPartition]) -> Callable[..., Any]:
    """Return `stages.published` for a partition of the sorted records."""
    return _over_batches(
        lambda batches: stages.published(batches, job, partition=_partition(), verified=verified)
    )


def _over_batches(stage: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[..., Any]:
    import pyarrow as pa  # noqa: PLC0415  an extra

    def over_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in stage(batches):
            yield from _plain(pa.Table.from_batches([batch])).to_batches()

    return over_batches


def _over_group(stage: Callable[[Any, Job], Any], job: Job) -> Callable[..., Any]:
    import pyarrow as pa  # noqa: PLC0415  an extra

    def over_group(table: pa.Table) -> pa.Table:
        return _plain(stage(table, job))

    return over_group


def _partition() -> int:
    from pyspark import TaskContext  # noqa: PLC0415  an extra

    context = TaskContext.get()
    assert context is not None  # noqa: S101  on a worker there is one
    return int(context.partitionId())


def _plain(table: Any) -> Any:  # noqa: ANN401  likewise
    """Return a table with texts of 32-bit offsets, which are those of Spark."""
    import pyarrow as pa  # noqa: PLC0415  an extra

    large = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    fields = [each.with_type(large.get(each.type, each.type)) for each in table.schema]
    return table.cast(pa.schema(fields))
