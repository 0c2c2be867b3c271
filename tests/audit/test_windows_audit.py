"""The audit of published windows, from recordings of a stream, on the command line and in code."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.testing import CliRunner

from anonymizer.audit.findings import Finding, WindowsAuditReport
from anonymizer.audit.windows_audit import audit_windows
from anonymizer.cli.audit import app
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.settings import LimitSettings
from tests.app.gateway.records import write_records_settings
from tests.pipeline.records.made import FLEET, Sent, stream, traffic
from tests.pipeline.records.support import Rig

TOPIC = "anonymized/fleet"


@cache
def recorded(cumulative: str, *, n_windows: int = 8, **changes: Any) -> tuple[str, ...]:  # noqa: ANN401  settings
    """Return a recording of a stream over some windows: what it received and what it published."""
    parts = list(traffic(n_vehicles=40, n_windows=n_windows, seed=1))
    with TemporaryDirectory() as folder:
        rig = Rig(Path(folder), cumulative=cumulative, **changes)
        rig.take(*parts)
        rig.close()
        rig.close(silent=True)
        published = rig.publish()
        rig.store.close()
    return (*map(_received, parts), *(_line(TOPIC, payload) for payload in published))


def recorded_kaca() -> tuple[str, ...]:
    """Return a recording of a stream of `kaca`."""
    return recorded.__wrapped__("report", model="kaca", method="auto", promise={"k": 4})


def _received(part: Sent) -> str:
    return _line(part.topic, part.payload)


def _line(topic: str, payload: bytes) -> str:
    return json.dumps({"topic": topic, "payload": json.loads(payload)})


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def audit(path: Path, cumulative: str, **changes: Any) -> Any:  # noqa: ANN401  a report
    declared = stream(cumulative=cumulative, **changes)
    return audit_windows(declared, published=path, truth=path, limits=LimitSettings())


def together(report: WindowsAuditReport) -> list[Finding]:
    """The findings of the attacks on windows together."""
    return [f for f in report.findings if f.attack.startswith(("windows together", "known"))]


def class_of_faults(
    window: int, faults: dict[str, int], *, count: int | None = None
) -> dict[str, Any]:
    """A class as published, of vehicles with these faults."""
    values = [fault for fault, n in sorted(faults.items()) for _ in range(n)]
    qis = {"age": {"range": [20, 60]}}
    n = len(values)
    return {
        "window": [window, window + 60], "class": 0, "of": 1, "message": 1, "k": n,
        "count": count or n, "qis": qis, "sensitive": {"fault": values},
    }  # fmt: skip


def audit_of(tmp_path: Path, faults: dict[str, int], **asked: Any) -> WindowsAuditReport:  # noqa: ANN401
    """Audit one class of a stream of ages and faults."""
    n_own = asked.pop("n_own", 0)
    attributes = [a for a in FLEET["attributes"] if a["name"] in {"age", "fault"}]
    source = {"name": "telemetry", "tells": ["age", "fault"]}
    made = stream(attributes=attributes, sources=[source], **asked.pop("settings", {}))
    published = class_of_faults(0, faults, **asked)
    lines = [_line(TOPIC, json.dumps(published).encode())]
    for i, fault in enumerate(published["sensitive"]["fault"]):
        payload = json.dumps({"ts": 1.0, "age": 20 + i % 41, "fault": fault}).encode()
        lines.append(_line(f"records/telemetry/v{i}", payload))
    path = write(tmp_path / "one.jsonl", lines)
    limits = LimitSettings()
    return audit_windows(made, published=path, truth=path, limits=limits, n_owned=n_own)


def test_a_class_with_more_records_than_vehicles_fails_the_audit(tmp_path: Path) -> None:
    fair = audit_of(tmp_path, {"brakes": 5, "engine": 5})
    assert fair.holds
    heavy = audit_of(tmp_path, {"brakes": 5, "engine": 5}, count=99)
    assert not heavy.holds
    [found] = heavy.failures
    assert (found.attack, found.figures["share_max"]) == ("heavy vehicles", 90 / 99)


def audit_of_ten(tmp_path: Path, **said: Any) -> WindowsAuditReport:  # noqa: ANN401  fields
    """Audit one class of ten vehicles, true but for what is said of it."""
    attributes = [a for a in FLEET["attributes"] if a["name"] in {"age", "fault"}]
    attributes.append({"name": "toll", "role": "measure", "lo": 0, "hi": 50})
    source = {"name": "telemetry", "tells": ["age", "fault", "toll"]}
    made = stream(attributes=attributes, sources=[source], promise={"k": 5, "d": 2, "l": 2})
    true = class_of_faults(0, {"brakes": 5, "engine": 5})
    sums = {"measures": {"toll": {"n": 10, "sum": 55, "mean": 5.5}}}
    lines = [_line(TOPIC, json.dumps(true | sums | said).encode())]
    for i, fault in enumerate(true["sensitive"]["fault"]):
        payload = json.dumps({"ts": 1.0, "age": 20 + i, "fault": fault, "toll": i + 1}).encode()
        lines.append(_line(f"records/telemetry/v{i}", payload))
    path = write(tmp_path / "ten.jsonl", lines)
    return audit_windows(made, published=path, truth=path, limits=LimitSettings())


@pytest.mark.parametrize(
    ("said", "failing"),
    [
        ({}, set()),
        (
            {"k": 1, "count": 1, "sensitive": {"fault": ["brakes"]}, "measures": {}},
            {("k", None), ("l", "fault")},
        ),
        (
            {"qis": {"age": {"range": [20, 20]}}},
            {("k", None), ("d", "age"), ("labels", None), ("truth", "fault"), ("truth", "toll")},
        ),
        ({"of": 2}, {("truth", "of")}),
        ({"sensitive": {"fault": ["engine"] * 10}}, {("l", "fault"), ("truth", "fault")}),
        ({"measures": {"toll": {"n": 10, "sum": 56, "mean": 5.6}}}, {("truth", "toll")}),
        ({"measures": {"toll": {"n": 10, "sum": 55, "mean": 9.0}}}, {("truth", "toll")}),
    ],
)
def test_a_class_that_breaks_the_promise_or_is_not_as_received_fails_the_audit(
    said: dict[str, Any], failing: set[tuple[str, str | None]], tmp_path: Path
) -> None:
    report = audit_of_ten(tmp_path, **said)
    assert {(f.attack, f.attribute) for f in report.failures} == failing
    assert report.holds is not bool(failing)


@pytest.mark.parametrize("n_late", [0, 5])
def test_an_honest_recording_with_parts_that_came_late_or_anew_passes(
    tmp_path: Path, n_late: int
) -> None:
    """What the gateway had when the window closed is not what was stated last."""
    parts = list(traffic(n_vehicles=40, n_windows=4, seed=1))
    newer = [
        Sent(f"veh-{i:04d}", source, 119.0 + early, values)
        for early in (-1, 0)
        for i in range(20)
        for source, values in (
            ("profile", {"age": 89 + early}),
            ("telemetry", {"speed": 49.5 + early, "fault": "engine"}),
        )
    ]
    late = newer[len(newer) // 2 :][: 2 * n_late]
    names = {part.vehicle for part in parts}
    assert {part.vehicle for part in newer} <= names
    rig = Rig(tmp_path, cumulative="report")
    rig.take(*sorted([*parts, *newer[: len(newer) // 2]], key=lambda part: part.ts))
    rig.close()
    rig.take(*late)
    rig.close(silent=True)
    published = rig.publish()
    accounts = rig.accounts()
    rig.store.close()
    lines = [*map(_received, sorted([*parts, *newer[: len(newer) // 2]], key=lambda p: p.ts))]
    lines += [*map(_received, late), *(_line(TOPIC, payload) for payload in published)]
    report = audit(write(tmp_path / "late.jsonl", lines), "report")
    assert accounts.get("late", 0) == len(late)
    about = [each for each in report.findings if each.attack in {"labels", "truth"}]
    assert about
    assert not [each for each in about if each.fails]


def test_a_listed_value_outside_the_domain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not fit the declared attributes"):
        audit_of_ten(tmp_path, sensitive={"fault": ["other"] * 10})


def test_windows_leave_l_values_of_a_lasting_sensitive_attribute_where_that_is_enforced(
    tmp_path: Path,
) -> None:
    lasting = {
        "attributes": [{**a, "lasting": a["name"] == "fault"} for a in FLEET["attributes"]],
        "promise": {"k": 4, "d": 2, "l": 2},
    }
    holds = {}
    for cumulative in ("enforce", "report"):
        lines = recorded.__wrapped__(cumulative, **lasting)
        path = write(tmp_path / cumulative, lines)
        [found] = together(audit(path, cumulative, **lasting))
        assert (found.attack, found.attribute) == ("windows together", "fault")
        assert found.required is (cumulative == "enforce")
        holds[cumulative] = found.figures["n_below_l"] == 0
        assert audit(path, "enforce", **lasting).holds is holds[cumulative]
    assert holds == {"enforce": True, "report": False}


@pytest.mark.parametrize(
    ("faults", "promise", "failing"),
    [
        ({"brakes": 40, "engine": 1}, {"l": 2}, {"l"}),
        ({"brakes": 40, "engine": 4}, {"l": 2}, set()),
        ({"brakes": 10, "engine": 5}, {"l": 2, "entropy_l": 1.8}, {"entropy l"}),
        ({"brakes": 6, "engine": 2}, {}, {"k"}),
        ({"brakes": 20, "engine": 20}, {"max_share": 0.025}, {"max share"}),
        ({"brakes": 20, "engine": 20}, {"min_spread": {"age": 38}}, {"min spread"}),
        ({"brakes": 20, "engine": 20}, {"t": 0.04}, {"t"}),
    ],
)
def test_who_owns_three_of_a_class_attacks_every_criterion(
    faults: dict[str, int], promise: dict[str, Any], failing: set[str], tmp_path: Path
) -> None:
    loose = {"max_share": 1.0, "max_source_share": 1.0}
    settings = {"promise": {"k": 7, "d": 2, "k_extra": 3} | loose | promise}
    report = audit_of(tmp_path, faults, settings=settings, n_own=3)
    found = {f.attack.partition(" against ")[2] for f in report.failures} - {""}
    assert found == failing
    assert report.holds is not bool(failing)
    less = {"promise": settings["promise"] | {"k_extra": 0}}
    assert audit_of(tmp_path, faults, settings=less, n_own=3).holds  # nobody promised it


def test_windows_of_cohorts_leave_d_values_of_every_vehicle(tmp_path: Path) -> None:
    report = audit(write(tmp_path / "all.jsonl", recorded("enforce")), "enforce")
    assert report.holds
    assert [(f.attack, f.attribute) for f in together(report)] == [
        ("windows together", "type"),
        ("windows together", "region"),
        ("known company", "type"),
        ("known company", "region"),
    ]
    assert all(f.required and f.figures["n_below_d"] == 0 for f in together(report))
    assert all(f.figures["n_vehicles"] == 40 for f in together(report))
    assert report.n_windows == 8


@pytest.mark.parametrize(
    "model",
    [{"model": "kaca"}, {"model": "cells", "labels": "range"}],
    ids=lambda model: model["model"],
)
def test_windows_of_other_models_leave_d_values_by_default(
    model: dict[str, Any], tmp_path: Path
) -> None:
    changes = model | {"method": "auto", "promise": {"k": 4}, "budget_s": 0.001}
    path = write(tmp_path / "all.jsonl", recorded.__wrapped__("enforce", **changes))
    report = audit(path, "enforce", **changes)
    assert report.holds
    assert {f.attack for f in together(report)} == {"windows together", "known company"}
    assert all(f.required and f.figures["n_below_d"] == 0 for f in together(report))
    assert all(f.figures["n_vehicles"] == 40 for f in together(report))


@pytest.mark.parametrize("model", ["kd", "kaca"])
def test_who_owns_as_many_vehicles_as_the_margin_reads_none_of_the_others(
    model: str, tmp_path: Path
) -> None:
    plain = {"model": model, "method": "auto", "budget_s": 0.001, "promise": {"k": 4, "d": 2}}
    margin = plain | {"promise": {"k": 4, "d": 2, "k_extra": 2}}
    found = {}
    for name, changes in (("plain", plain), ("margin", margin)):
        path = write(tmp_path / name, recorded.__wrapped__("enforce", **changes))
        found[name] = audit_windows(
            stream(cumulative="enforce", **changes),
            published=path,
            truth=path,
            limits=LimitSettings(),
            n_owned=2,
        )
    owners = {
        name: [f for f in report.findings if "its own" in f.attack]
        for name, report in found.items()
    }
    assert all(f.figures["n_vehicles"] == 38 for each in owners.values() for f in each)
    assert not any(f.required for f in owners["plain"])  # nobody promised it
    assert all(f.required for f in owners["margin"])
    assert sum(f.figures["n_below_d"] or 0 for f in owners["margin"]) == 0
    assert found["margin"].holds


def test_windows_that_are_only_reported_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", recorded("report"))
    reported = audit(path, "report")
    assert reported.holds  # nothing was promised
    assert sum(f.figures["n_read"] or 0 for f in together(reported)) > 0
    claimed = audit(path, "enforce")
    assert not claimed.holds
    assert claimed.failures


def test_two_values_left_break_a_promise_of_three_although_none_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", recorded("enforce"))
    report = audit(path, "enforce", promise={"k": 4, "d": 3})
    assert {f.attribute for f in together(report) if f.fails} == {"type", "region"}
    assert sum(f.figures["n_read"] or 0 for f in together(report)) == 0
    assert not report.holds


def test_windows_of_kaca_are_read_by_their_labels(tmp_path: Path) -> None:
    kaca: dict[str, Any] = {"model": "kaca", "method": "auto", "promise": {"k": 4}}
    report = audit(write(tmp_path / "all.jsonl", recorded_kaca()), "report", **kaca)
    assert report.holds  # nothing was promised
    assert all(f.figures["n_vehicles"] == 40 for f in together(report))
    assert sum(f.figures["n_read"] or 0 for f in together(report)) > 0


def test_the_command_fails_where_windows_reveal_a_vehicle(tmp_path: Path) -> None:
    config = write_records_settings(tmp_path / "g.toml", "mqtt://127.0.0.1:1", store=tmp_path / "s")
    for cumulative, code in (("enforce", 0), ("report", 1)):
        path = write(tmp_path / f"{cumulative}.jsonl", recorded(cumulative))
        words = ["windows", path, path, "--config", config, "--json", tmp_path / "out"]
        ended = CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(word) for word in words])
        assert isinstance(ended.exception, GuaranteeError) is bool(code)
        assert "windows together" in ended.output
        report = json.loads((tmp_path / "out").read_text())
        assert report["holds"] is (code == 0)


def test_what_cannot_be_attacked_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", recorded("enforce"))
    with pytest.raises(SettingsError, match="the labels of cells do not say what a class holds"):
        audit(path, "report", model="cells", method="auto")
    lasting_none = [{**a, "lasting": False} for a in FLEET["attributes"]]
    assert together(audit(path, "report", attributes=lasting_none)) == []
    received = write(tmp_path / "received.jsonl", recorded("enforce")[:9])
    with pytest.raises(InputError, match="no window of fleet is also in"):
        audit(received, "enforce")
    bad = write(tmp_path / "bad.jsonl", [_line(TOPIC, b"{}")])
    with pytest.raises(InputError, match="has a message that is no class"):
        audit(bad, "enforce")
    other = {"window": [0, 60], "qis": {"type": {"values": ["car"]}}}
    unlike = write(
        tmp_path / "unlike.jsonl",
        [*recorded("enforce")[:200], _line(TOPIC, json.dumps(other).encode())],
    )
    with pytest.raises(InputError, match="does not fit the declared attributes"):
        audit(unlike, "enforce")
