"""The first pass over a table on Spark: what it counts, and in how many jobs."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from anonymizer.files.coded_table import Declared
from anonymizer.spark.survey import count_values
from tests.spark.session import Session, local_spark

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


def test_values_of_every_kind_are_counted_as_they_are(spark: Session, tmp_path: Path) -> None:
    people = pl.DataFrame(
        {
            "age": [30, 30, None, 31],
            "pay": [1.5, 1.5, None, 2.25],
            "town": ["a", "", None, "a"],
            "smoker": [True, False, None, True],
        }
    )
    people.write_parquet(tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    counted = count_values(frame, Declared(qis=("age", "pay", "town"), sensitive=("smoker",)))
    assert list(counted) == people.columns
    for name, found in counted.items():
        expected = people[name].value_counts(name="count").cast({"count": pl.Int64})
        assert_frame_equal(found, expected, check_row_order=False)


def test_the_values_of_seventy_columns_are_counted_in_a_few_jobs(spark: Session) -> None:
    n = 70
    names = tuple(f"c{j}" for j in range(n))
    frame = spark.createDataFrame([tuple(range(n))] * 3, ", ".join(f"{name} int" for name in names))
    spark.sparkContext.setJobGroup("counts", "values of seventy columns")
    counted = count_values(frame, Declared(qis=names, sensitive=()))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("counts")
    assert {name: found.rows() for name, found in counted.items()} == {
        name: [(j, 3)] for j, name in enumerate(names)
    }
    assert len(jobs) <= 15
