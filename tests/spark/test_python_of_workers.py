"""Workers on this machine run the Python that runs here, whatever `python3` is on the path.

A frame that Python made of rows already needs workers: these come from `createDataFrame`, before
anybody asks for a release. So the one here is made by Spark alone.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)

_ANONYMIZES = """
from pyspark.sql import SparkSession
from anonymizer.spark import anonymize

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
people = spark.range(60).selectExpr("20 + id % 9 as age", "substring('xyz', 1 + id % 3, 1) as home")
with anonymize(people, qi=["age", "home"], k=5, time_budget_s=0) as release:
    print("published", release.frame.count())
spark.stop()
"""


def test_workers_need_no_pyspark_python(tmp_path: Path) -> None:
    wrong = tmp_path / "python3"
    wrong.write_text("#!/bin/sh\nexit 1\n")
    wrong.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if "PYSPARK" not in name}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", _ANONYMIZES],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["published", "60"]
