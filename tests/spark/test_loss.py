"""Spark loses as little as one process does, both with their defaults."""

from pathlib import Path
from typing import Any

import pytest

from anonymizer import anonymize as anonymize_in_memory
from anonymizer.spark import anonymize
from benchmarks.made_people import made
from tests.spark.session import local_spark

pytestmark = pytest.mark.timeout(1_800)

N = 20_000


def test_four_ranges_lose_at_most_three_in_a_hundred_more_than_one_process(tmp_path: Path) -> None:
    people = made(N)
    people.write_parquet(tmp_path / "people.parquet")
    qi = [name for name in people.columns if name != "illness"]
    asked: dict[str, dict[str, Any]] = {
        "kd": {},
        "kaca": {},
        "cells": {"d": 1, "target": "illness"},
    }
    with local_spark(tmp_path / "spark") as spark:
        frame = spark.read.parquet(str(tmp_path / "people.parquet")).repartition(4)
        for model, options in asked.items():
            options |= {"qi": qi, "sa": "illness", "k": 10, "model": model}
            whole = anonymize_in_memory(people, **options).report.gcp.range
            with anonymize(frame, rows_per_range=N // 4, **options) as release:
                report = release.report
            print(model, report.n_ranges, report.gcp["range"], whole)  # noqa: T201
            assert report.n_ranges >= 4
            assert report.gcp["range"] <= 1.03 * whole, model
