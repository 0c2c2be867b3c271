"""Real taxis: blurs of others are broken by `attack`, and a release of the gateway is not."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit.foreign.foreign_report import ForeignReport, attacked
from anonymizer.audit.foreign.forms import road_regions
from anonymizer.audit.foreign.readers import recordings
from anonymizer.audit.foreign.release import AnyRelease, ForeignCase
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map
from anonymizer.files.traces import trace_of
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.blur_schemes import SCHEMES
from tests.lanes import some

pytestmark = pytest.mark.data
BROKEN = (
    "precision bits",
    "Gaussian offsets",
    "planar Laplace",
    "random rays",
    "an offset each",
    "ids rotated",
    "cells without ids",
)
"""Taxis have no homes: schemes that hide one are left out."""
N_TAXIS, HOURS = 120, 3


@pytest.fixture(scope="module")
def taxis() -> Trace:
    """Return taxis in San Francisco of some hours of a morning."""
    path = Path(os.environ["ANONYMIZER_DATA"], "traces", "cabspotting_sf_2008-05-19_20.parquet")
    frame = pl.read_parquet(path)
    begin = float(frame["ts"].min() or 0) + 8 * 3600  # type: ignore[arg-type]  # a number
    frame = frame.filter(
        pl.col("ts").is_between(begin, begin + HOURS * 3600)
        & pl.col("lat").is_between(37.70, 37.82)
        & pl.col("lon").is_between(-122.52, -122.37)
    )
    some = sorted(frame["device_id"].unique().to_list())[:N_TAXIS]
    return trace_of(frame.filter(pl.col("device_id").is_in(some)).drop("occupied"))


@pytest.fixture(scope="module")
def roads() -> RoadNetwork:
    return load_network(str(Path(os.environ["ANONYMIZER_DATA"], "networks", "san_francisco")))


def _report(release: AnyRelease, taxis: Trace, owner: np.ndarray | None) -> ForeignReport:
    return attacked(ForeignCase(release, taxis, None, owner=owner))


@pytest.mark.parametrize("name", some(BROKEN, ["precision bits", "cells without ids"]))
def test_a_blur_of_real_taxis_is_broken(name: str, taxis: Trace) -> None:
    scheme = next(each for each in SCHEMES if each.name == name)
    release, owner = scheme.publish(taxis, np.random.default_rng(1))
    report = _report(release, taxis, np.arange(taxis.n_devices) if owner is None else owner)
    assert any(each.broken for each in report.verdicts), report.headline


def test_a_release_of_the_gateway_of_real_taxis_is_not(
    taxis: Trace, roads: RoadNetwork, tmp_path: Path
) -> None:
    out, named = tmp_path / "out.jsonl", tmp_path / "map.jsonl"
    cloak_trace(
        replace(taxis, node=None), roads, Settings(), tick_s=30.0, seed=1, out=out,
        auditor_map=named,
    )  # fmt: skip
    release = road_regions.FORM.read(out, recordings.READER.read(out), {}, roads)
    case = ForeignCase(release, taxis, roads)
    names = case.points.device_id
    owner = read_auditor_map(named, pseudonym=names, device_id=taxis.device_id)
    report = _report(release, taxis, owner)
    assert len(report.verdicts) >= 2
    assert not any(each.broken for each in report.verdicts), report.headline
