"""Tables that no machine holds, anonymized on Apache Spark with the methods for other tables.

`anonymize` takes a data frame of Spark and returns one. See docs/spark.md.
"""

from anonymizer.spark.report import RangesReport
from anonymizer.spark.tables import ROWS_PER_RANGE, SparkRelease, anonymize

__all__ = ["ROWS_PER_RANGE", "RangesReport", "SparkRelease", "anonymize"]
