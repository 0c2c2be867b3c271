"""What it costs to publish values per pseudonym is measured, by the real cloak and audit."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import AuditReport, Finding, Mode
from anonymizer.audit.attack import EVERY_MODE
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.stream_audit import promised_by
from anonymizer.audit.stream_case import _values
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.readings import SAFE_STATISTICS
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.app.worlds import wandering
from tests.audit.audited import audited as audited_in

WORLD = wandering(n_devices=60, n_ticks=30, seed=4)
TRACE = WORLD.trace()


def settings_of(
    *names: str, mode: Mode = "session", step: float | None = None, **tables: object
) -> Settings:
    """Return settings under which these readings, 0 to 60, stand beside pseudonyms."""
    reading = {"lo": 0, "hi": 60, "step": step, "statistics": [*SAFE_STATISTICS, "each"]}
    return Settings.model_validate(
        {
            "adka": {"density_steps": [], "k_values": [5]},
            "region": {"mode": mode},
            "presence": {"ttl_s": 20, "max_behind_s": 1},
            "session": {"epoch_s": 10, "beat_s": 0},
            "readings": [{"name": name, **reading} for name in names],
            **tables,
        }
    )


def sensing(**value_of_device: FloatArray) -> Trace:
    """Return the trace of devices that always sense the same."""
    return replace(
        TRACE,
        readings={name: value[TRACE.device_of] for name, value in value_of_device.items()},
    )


def cloaked(
    trace: Trace, settings: Settings, folder: Path, *, network: RoadNetwork = WORLD.network
) -> None:
    cloak_trace(
        trace,
        network,
        settings,
        tick_s=1.0,
        seed=0,
        out=folder / "PUB.jsonl",
        auditor_map=folder / "MAP.jsonl",
    )


def audited(
    trace: Trace,
    settings: Settings,
    folder: Path,
    *,
    network: RoadNetwork = WORLD.network,
    with_map: bool = True,
) -> AuditReport:
    mode = settings.region.mode
    return audited_in(
        folder, trace, network, mode=mode, with_map=with_map, sample=50, settings=settings
    )


def found(report: AuditReport) -> dict[str | None, Finding]:
    """Return the findings on values, by attribute."""
    return {finding.attribute: finding for finding in report.findings if finding.attack == "values"}


def figure(finding: Finding, name: str) -> float:
    value = finding.figures[name]
    assert value is not None
    return value


OF_DEVICE = np.arange(60.0)
ALIKE = np.full(60, 7.0)


def test_a_value_of_its_own_gives_every_device_away(tmp_path: Path) -> None:
    trace, settings = sensing(speed=OF_DEVICE), settings_of("speed")
    cloaked(trace, settings, tmp_path)
    report = audited(trace, settings, tmp_path)
    finding = found(report)["speed"]
    assert figure(finding, "success") == figure(finding, "instant_success") == 1
    assert figure(finding, "expected") <= 1 / 5
    assert figure(finding, "n") == report.n_pseudonyms
    assert figure(finding, "instant_n") == report.n_records
    assert finding.holds is False
    # It is the operator's choice: what the mode promises of regions, they keep.
    assert not finding.required
    assert report.holds


def test_a_value_that_all_have_tells_nothing(tmp_path: Path) -> None:
    trace, settings = sensing(speed=ALIKE), settings_of("speed")
    cloaked(trace, settings, tmp_path)
    finding = found(audited(trace, settings, tmp_path))["speed"]
    for when in ("", "instant_"):
        success, expected = figure(finding, f"{when}success"), figure(finding, f"{when}expected")
        assert success == pytest.approx(expected)
        assert 0 < expected <= 1 / 5
    assert finding.holds is True


def test_the_coarser_the_values_the_less_they_cost(tmp_path: Path) -> None:
    trace = sensing(speed=OF_DEVICE)
    success = []
    for step in (1.0, 20.0, 60.0):
        settings = settings_of("speed", step=step)
        cloaked(trace, settings, tmp_path)
        success.append(figure(found(audited(trace, settings, tmp_path))["speed"], "success"))
    assert 1 == success[0] > success[1] > success[2]


def test_one_who_knows_other_devices_values_finds_nobody(tmp_path: Path) -> None:
    settings = settings_of("speed")
    own, others = np.random.default_rng(0).uniform(0, 60, (2, 60))
    cloaked(sensing(speed=own), settings, tmp_path)
    report = audited(sensing(speed=others), settings, tmp_path)
    assert found(report)["speed"].holds is True


def test_several_attributes_are_looked_at_one_by_one_and_together(tmp_path: Path) -> None:
    rank = np.random.default_rng(0).permutation(60)
    trace = sensing(
        colour=(rank % 4).astype(np.float64), size=(rank // 4 % 4).astype(np.float64), other=ALIKE
    )
    settings = settings_of("colour", "size")
    cloaked(trace, settings, tmp_path)
    by_attribute = found(audited(trace, settings, tmp_path))
    assert list(by_attribute) == ["colour", "size", "colour + size"]
    colour, size, both = (figure(finding, "success") for finding in by_attribute.values())
    assert both > max(colour, size) + 0.2


@pytest.mark.parametrize("mode", ["snapshot", "adka"])
def test_where_lives_have_no_twins_the_instant_is_measured(tmp_path: Path, mode: Mode) -> None:
    trace, settings = sensing(speed=OF_DEVICE), settings_of("speed", mode=mode)
    cloaked(trace, settings, tmp_path)
    report = audited(trace, settings, tmp_path)
    finding = found(report)["speed"]
    twins = np.bincount(
        indistinguishable_classes(read_release(tmp_path / "PUB.jsonl", WORLD.network).observed)
    )
    assert figure(finding, "n") == twins[twins > 1].sum() < report.n_pseudonyms
    assert figure(finding, "instant_n") > 0
    assert figure(finding, "instant_expected") < 1
    if mode == "snapshot":
        assert figure(finding, "instant_success") == 1


def test_what_cannot_be_measured_is_left_out_by_name(tmp_path: Path) -> None:
    trace, settings = sensing(speed=OF_DEVICE, size=OF_DEVICE), settings_of("speed", "size")
    cloaked(trace, settings, tmp_path)
    unknown = audited(trace, settings, tmp_path, with_map=False)
    assert found(unknown) == {}
    assert {"values of speed", "values of size", "soundness"} <= set(unknown.left_out)
    undeclared = audited(trace, settings_of("size"), tmp_path)
    assert (list(found(undeclared)), undeclared.left_out) == (["size"], ("values of speed",))
    untrue = audited(replace(trace, readings={}), settings, tmp_path)
    assert (found(untrue), untrue.left_out) == ({}, ("values of speed", "values of size"))


def test_without_values_there_is_nothing_to_measure_and_nothing_left_out(tmp_path: Path) -> None:
    trace, settings = sensing(speed=OF_DEVICE), settings_of("speed")
    hidden = settings_of(readings=[{"name": "speed", "lo": 0, "hi": 60}])
    cloaked(trace, hidden, tmp_path)
    report = audited(trace, settings, tmp_path)
    assert (found(report), report.left_out) == ({}, ())


def test_no_mode_promises_anything_of_values() -> None:
    assert not any("values" in promised_by(mode) for mode in EVERY_MODE)


def test_what_a_device_is_known_to_have_sensed_is_what_was_published_of_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    value = rng.uniform(-9, 70, TRACE.n_rows)
    value[rng.random(TRACE.n_rows) < 0.4] = np.nan
    trace, settings = replace(TRACE, readings={"speed": value}), settings_of("speed", step=0.1)
    cloaked(trace, settings, tmp_path)
    released = read_release(tmp_path / "PUB.jsonl", WORLD.network)
    device_of = read_auditor_map(
        tmp_path / "MAP.jsonl", pseudonym=released.pseudonym, device_id=trace.device_id
    )
    [values] = _values(trace, released, settings, device_of)
    told = ~np.isnan(values.published)
    assert told.sum() > 500
    assert np.allclose(values.published[told], values.sensed[told], rtol=0, atol=1e-9)


def buses(folder: Path, *, side: int) -> Path:
    """Write an hour of Austin's buses, on the squares of a grid: there is no network of Austin."""
    recorded = Path(os.environ["ANONYMIZER_DATA"]) / "traces" / "austin_bus_2015_2016.parquet"
    start = pl.col("ts").min() + 3600
    hour = (
        pl.scan_parquet(recorded)
        .filter((pl.col("service_file") == "2016-03-22") & (pl.col("lat") != 0))
        .filter(pl.col("ts").is_between(start, start + 3600))
    )

    def squares(name: str) -> pl.Expr:
        low, high = pl.col(name).quantile(0.05), pl.col(name).quantile(0.95)
        return ((pl.col(name) - low) / (high - low) * side).floor().clip(0, side - 1)

    node = (squares("lat") * side + squares("lon")).cast(pl.Int64).alias("node")
    path = folder / "buses.parquet"
    hour.select("device_id", "ts", node, "speed_mps").collect().write_parquet(path)
    return path


@pytest.mark.data
@pytest.mark.soak
def test_the_speeds_of_real_buses_undo_the_anonymity_that_their_regions_keep(
    tmp_path: Path,
) -> None:
    trace = read_trace(buses(tmp_path, side=20), readings=["speed_mps"])
    network = load_network("grid:20x20")
    success = []
    for step in (None, 10.0):
        settings = settings_of(
            "speed_mps",
            step=step,
            presence={"ttl_s": 600},  # buses report every minute or two
            session={"epoch_s": 300},
        )
        cloaked(trace, settings, tmp_path, network=network)
        report = audited(trace, settings, tmp_path, network=network)
        assert report.holds
        finding = found(report)["speed_mps"]
        assert 0.15 < figure(finding, "expected") <= 0.2
        assert finding.holds is False
        success.append(figure(finding, "success"))
    assert success[0] > 0.9
    assert success[0] > success[1] + 0.05
