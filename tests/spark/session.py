"""A session of Spark on this machine, with two workers."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Session: TypeAlias = Any
Frame: TypeAlias = Any
"""Of pyspark, which the environment of the type checker has not."""


@contextmanager
def local_spark(folder: Path, *, memory: str = "1g", master: str = "local[2]") -> Iterator[Session]:
    """Start Spark; its files go to `folder`, and its driver may use `memory`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  not in every environment

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()
