"""Every alert, in promtool's own unit tests: one that rings, one that does not."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from anonymizer.domain.outcomes import Outcome
from tests.deploy.files import ALERTS, DEPLOY, alert_rules
from tools.manual import alerts_page

HERE = {"job": "anonymizer", "instance": "gateway:8080"}
_PARTS = 'anonymizer_record_parts_total{stream="fleet", '
_PARTS_IN = 'anonymizer_record_parts_received_total{stream="fleet"}'
_LATENCY = 'anonymizer_latency_seconds_bucket{waited_for="tick", le="'
_AGE = 'anonymizer_age_of_information_seconds_bucket{le="'
_AGE_LIMIT = "anonymizer_age_of_information_limit_seconds"


@dataclass(frozen=True)
class Case:
    """Series as promtool writes them, a sample a minute, and whether it rings at the end."""

    alert: str
    series: dict[str, str]
    rings: bool
    at: str = "1h"
    labels: dict[str, str] = field(default_factory=dict)
    job: str = "anonymizer"
    summed: bool = False
    """Whether the alert is about several series together."""


def suppressed(reason: str) -> str:
    return f'anonymizer_positions_total{{outcome="suppressed", reason="{reason}"}}'


def connections_lost(cause: str) -> str:
    return f'anonymizer_broker_connections_lost_total{{link="records", cause="{cause}"}}'


LINK = {"link": "records"}
QUARANTINED = 'anonymizer_broker_quarantined_total{link="records"}'
TAKEN = LINK | {"cause": "taken_over"}
UNVERIFIED = {"outcome": "suppressed", "reason": "unverified"}
OVERLOAD = {"outcome": "suppressed", "reason": "overload"}
FLEET = {"stream": "fleet"}
PUBLISHED = 'anonymizer_positions_total{outcome="published"}'
LATE = 'anonymizer_positions_total{outcome="late"}'
LATE_TICKS = "anonymizer_ticks_late_total"
_INPUT_AT = 'anonymizer_worker_input_timestamp_seconds{topic="x.lanes", partition="3"}'
_REFUSED = 'anonymizer_bridge_refused_total{reason="too_large"}'
REJECTED = {"stage": "stream", "event": "unverified_classes"}
_REJECTED = 'anonymizer_worker_events_total{stage="stream", event="unverified_classes"}'
NOT_DELETED = {"result": "refused"}
_LOW = 'anonymizer_evidence{criterion="inference", figure="low"}'
_BY_CHANCE = 'anonymizer_evidence{criterion="inference", figure="control"}'
_EVIDENCE_AT = "anonymizer_evidence_timestamp_seconds"
_DROPPED = 'anonymizer_worker_dropped_total{reason="failed"}'
_DELETIONS = 'anonymizer_worker_deletions_total{result="refused"}'
CASES = [
    Case("ClusterMemberDown", {"up": "1+0x55 0+0x20"}, True, job="anonymizer-cluster"),
    Case("ClusterMemberDown", {"up": "1+0x80"}, False, job="anonymizer-cluster"),
    Case(
        "ClusterInputsLate",
        {_INPUT_AT: "0+60x50 3000+0x40"},
        True,
        labels={"topic": "x.lanes", "partition": "3"},
        summed=True,
    ),
    Case("ClusterInputsLate", {_INPUT_AT: "0+60x90"}, False),
    Case("ClusterInputsLate", {_INPUT_AT.replace("lanes", "ranges"): "0+0x90"}, False),
    Case("ClusterOutputWaits", {"anonymizer_bridge_lag": "1001+0x80"}, True, summed=True),
    Case("ClusterOutputWaits", {"anonymizer_bridge_lag": "1+0x80"}, False),
    Case("KafkaTakesNothing", {"anonymizer_bridge_paused": "0+0x55 1+0x20"}, True),
    Case("KafkaTakesNothing", {"anonymizer_bridge_wait_seconds": "0+0x55 60+60x20"}, True),
    Case(
        "KafkaTakesNothing",
        {"anonymizer_bridge_paused": "0+0x80", "anonymizer_bridge_wait_seconds": "1+0x80"},
        False,
    ),
    Case("ClusterRebalances", {"anonymizer_worker_assignments_total": "0+1x80"}, True),
    Case("ClusterRebalances", {"anonymizer_worker_assignments_total": "0+0x50 3+0x40"}, False),
    Case("ClusterRestores", {"anonymizer_worker_restoring_seconds_total": "0+12x80"}, True),
    Case("ClusterRestores", {"anonymizer_worker_restoring_seconds_total": "0+3x80"}, False),
    Case("ClusterStateLost", {"anonymizer_worker_begun_anew_total": "0+0x55 1+0x20"}, True),
    Case("ClusterStateLost", {"anonymizer_worker_begun_anew_total": "_x55 1+0x20"}, True),
    Case("ClusterStateLost", {"anonymizer_worker_begun_anew_total": "1+0x80"}, False),
    Case("ClusterStateLost", {"anonymizer_worker_stands_still": "0+0x55 1+0x20"}, True),
    Case("ClusterStateLost", {"anonymizer_worker_stands_still": "0+0x80"}, False),
    Case("ClusterInputsDropped", {_DROPPED: "0+0x55 1+0x20"}, True, labels={"reason": "failed"}),
    Case("ClusterInputsDropped", {_DROPPED: "1+0x80"}, False),
    Case("ClusterInputsKept", {_DELETIONS: "0+1x80"}, True, labels=NOT_DELETED),
    Case("ClusterInputsKept", {_DELETIONS: "0+0x20 3+0x60"}, False),
    Case("ClusterOutputRefused", {_REFUSED: "0+0x55 1+0x20"}, True, labels={"reason": "too_large"}),
    Case("ClusterOutputRefused", {_REFUSED: "1+0x80"}, False),
    Case("ClusterPromiseBroken", {_REJECTED: "0+0x55 1+0x20"}, True, labels=REJECTED),
    Case("ClusterPromiseBroken", {_REJECTED: "1+0x80"}, False),
    Case(
        "ClusterPromiseBroken",
        {'anonymizer_worker_events_total{stage="lane", event="unverified_hours"}': "0+0x55 1+0x20"},
        True,
        labels={"stage": "lane", "event": "unverified_hours"},
    ),
    Case("ClusterReleasesLate", {"anonymizer_bridge_releases_lag": "1001+0x80"}, True),
    Case("ClusterReleasesLate", {"anonymizer_bridge_releases_lag": "1+0x80"}, False),
    Case("ZonesLeftOut", {"anonymizer_zones_left_out": "0+0x50 7+0x20"}, True),
    Case("ZonesLeftOut", {"anonymizer_zones_left_out": "7+0x50 0+0x20"}, False),
    Case("PromiseBroken", {suppressed("unverified"): "0+0x55 1+0x20"}, True, labels=UNVERIFIED),
    Case(
        "PromiseBroken",
        {'anonymizer_records_unverified_classes_total{stream="fleet"}': "0+0x55 2+0x20"},
        True,
        labels=FLEET,
    ),
    Case(
        "PromiseBroken",
        {'anonymizer_trip_classes_total{reason="unverified"}': "0+0x55 1+0x20"},
        True,
        labels={"reason": "unverified"},
    ),
    Case("PromiseBroken", {'anonymizer_trip_classes_total{reason=""}': "0+1x80"}, False),
    Case(
        "PromiseBroken",
        {'anonymizer_counts_intervals_total{reason="unverified"}': "0+0x55 1+0x20"},
        True,
        labels={"reason": "unverified"},
    ),
    Case("PromiseBroken", {'anonymizer_counts_intervals_total{reason=""}': "0+1x80"}, False),
    Case("PromiseBroken", {suppressed("unverified"): "3+0x80", suppressed("x"): "0+1x80"}, False),
    Case(
        "SourceSilent",
        {'anonymizer_records_source_silent{stream="fleet", source="profile"}': "1+0x80"},
        True,
        labels=FLEET | {"source": "profile"},
    ),
    Case(
        "SourceSilent",
        {'anonymizer_records_source_silent{stream="fleet", source="profile"}': "0+0x80"},
        False,
    ),
    Case(
        "WindowsReveal",
        {'anonymizer_records_unprotected{stream="fleet"}': "1+0x80"},
        True,
        labels=FLEET,
    ),
    Case(
        "WindowsReveal",
        {'anonymizer_records_last_window{stream="fleet", figure="too_little_left"}': "3+0x80"},
        True,
        labels=FLEET | {"figure": "too_little_left"},
    ),
    Case(
        "WindowsReveal",
        {
            'anonymizer_records_unprotected{stream="fleet"}': "0+0x80",
            'anonymizer_records_last_window{stream="fleet", figure="too_little_left"}': "0+0x80",
        },
        False,
    ),
    Case("NothingPublished", {"anonymizer_received_total": "0+9x80", PUBLISHED: "5+0x80"}, True),
    Case("NothingPublished", {"anonymizer_received_total": "0+9x80", PUBLISHED: "0+1x80"}, False),
    Case("NothingPublished", {"anonymizer_received_total": "9+0x80", PUBLISHED: "5+0x80"}, False),
    Case(
        "NoRecordsPublished",
        {_PARTS_IN: "0+9x1600", _PARTS + 'outcome="published"}': "5+0x1600"},
        True,
        at="26h",
        labels=FLEET,
    ),
    Case(
        "NoRecordsPublished",
        {_PARTS_IN: "0+9x1600", _PARTS + 'outcome="published"}': "0+5x1600"},
        False,
        at="26h",
    ),
    Case("LateHigh", {"anonymizer_received_total": "0+9x80", LATE: "0+1x80"}, True),
    Case("LateHigh", {"anonymizer_received_total": "0+11x80", LATE: "0+1x80"}, False),
    Case(
        "LateHigh",
        {_PARTS_IN: "0+9x80", _PARTS + 'outcome="late"}': "0+1x80"},
        True,
        labels=FLEET,
    ),
    Case("TicksLate", {"anonymizer_ticks_total": "0+600x80", LATE_TICKS: "0+7x80"}, True),
    Case("TicksLate", {"anonymizer_ticks_total": "0+600x80", LATE_TICKS: "0+5x80"}, False),
    Case("AuditBelowK", {"anonymizer_audit_below_k": "1+0x80"}, True),
    Case("AuditBelowK", {"anonymizer_audit_below_k": "0+0x80"}, False),
    Case("EvidenceBroken", {"anonymizer_evidence_broken": "0x55 1x20"}, True),
    Case("EvidenceBroken", {"anonymizer_evidence_broken": "0x80"}, False),
    Case(
        "EvidenceGains",
        {_LOW: "0.31x80", _BY_CHANCE: "0.2x80"},
        True,
        labels={"criterion": "inference"},
    ),
    Case("EvidenceGains", {_LOW: "0.29x80", _BY_CHANCE: "0.2x80"}, False),
    Case("EvidenceMissing", {"anonymizer_evidence_overdue": "0x55 1x20"}, True),
    Case("EvidenceMissing", {"anonymizer_evidence_attacks_failed": "0x55 2x20"}, True),
    Case(
        "EvidenceMissing",
        {"anonymizer_evidence_overdue": "0x80", "anonymizer_evidence_attacks_failed": "0x80"},
        False,
    ),
    Case("EvidenceMissing", {_EVIDENCE_AT: "1x3000"}, True, at="49h"),
    Case("EvidenceMissing", {_EVIDENCE_AT: "0x3000"}, False, at="49h"),
    Case("EvidenceMissing", {_EVIDENCE_AT: "1x3000"}, False, at="47h"),
    Case("Crashed", {"anonymizer_crashes_total": "2+0x55 3+0x20"}, True),
    Case("Crashed", {"anonymizer_crashes_total": "2+0x80"}, False),
    Case("AccountingOutOfBalance", {"anonymizer_accounting_imbalance": "-1+0x80"}, True),
    Case(
        "AccountingOutOfBalance",
        {'anonymizer_record_parts_imbalance{stream="fleet"}': "1+0x80"},
        True,
        labels=FLEET,
    ),
    Case(
        "AccountingOutOfBalance",
        {
            "anonymizer_accounting_imbalance": "0+0x80",
            "anonymizer_record_parts_imbalance": "0+0x80",
        },
        False,
    ),
    Case(
        "PseudonymRotationOverdue",
        {
            "anonymizer_pseudonym_age_seconds": "0+60x80",
            "anonymizer_pseudonym_age_limit_seconds": "300+0x80",
        },
        True,
    ),
    Case(
        "PseudonymRotationOverdue",
        {
            "anonymizer_pseudonym_age_seconds": "320+0x80",
            "anonymizer_pseudonym_age_limit_seconds": "300+0x80",
        },
        False,
    ),
    # promtool's clock begins at 0.
    Case("KeyRotationOverdue", {"process_start_time_seconds": "-2592001+0x200"}, True, "2h"),
    Case("KeyRotationOverdue", {"process_start_time_seconds": "-2580000+0x200"}, False, "2h"),
    Case("GatewayDown", {"up": "1+0x50 0+0x20"}, True),
    Case("GatewayDown", {"up": "1+0x80"}, False),
    Case("ScrapedWithoutToken", {"up": "1+0x80"}, True),
    Case("ScrapedWithoutToken", {"up": "1+0x80"}, True, job="anonymizer-cluster"),
    Case("ScrapedWithoutToken", {"up": "1+0x80", "process_start_time_seconds": "1+0x80"}, False),
    Case("ScrapedWithoutToken", {"up": "0+0x80"}, False),
    Case("BrokerLost", {"anonymizer_broker_connected": "1+0x50 0+0x20"}, True),
    Case("BrokerLost", {"anonymizer_records_connected": "0+0x80"}, True),
    Case(
        "BrokerLost",
        {"anonymizer_broker_connected": "1+0x80", "anonymizer_records_connected": "1+0x80"},
        False,
    ),
    Case("SessionTakenOver", {connections_lost("taken_over"): "0+0x55 1+0x20"}, True, labels=TAKEN),
    Case(
        "SessionTakenOver",
        {'anonymizer_broker_sessions_lost_total{link="records"}': "0+0x55 1+0x20"},
        True,
        labels=LINK,
    ),
    Case(  # the first thing that a new process finds: the counter was never 0
        "SessionTakenOver",
        {'anonymizer_broker_sessions_lost_total{link="records"}': "_x55 1+0x20"},
        True,
        labels=LINK,
    ),
    Case(
        "SessionTakenOver",
        {'anonymizer_broker_sessions_lost_total{link="records"}': "1+0x80"},
        False,
    ),
    Case(
        "SessionTakenOver",
        {connections_lost("taken_over"): "1+0x80", connections_lost("other"): "0+1x80"},
        False,
    ),
    Case(
        "ConnectionUnstable",
        {connections_lost("malformed"): "0+1x80", connections_lost("closed"): "0+0x55 4+0x9"},
        True,
        labels=LINK | {"cause": "malformed"},
    ),
    Case(
        "ConnectionUnstable",
        {connections_lost("unacknowledged"): "0+0x55 1+0x9"},
        True,
        labels=LINK | {"cause": "unacknowledged"},
    ),
    Case(
        "ConnectionUnstable",
        {connections_lost("closed"): "0+0x55 4+0x9", connections_lost("refused"): "0+0x55 4+0x9"},
        False,
    ),
    Case(
        "PacketQuarantined",
        {QUARANTINED: "0+0x55 1+0x20"},
        True,
        labels=LINK,
    ),
    Case(
        "PacketQuarantined",
        {QUARANTINED: "1+0x80"},
        False,
    ),
    Case("BrokerDropsMessages", {"anonymizer_broker_dropped_total": "0+0x55 9+0x20"}, True),
    Case("BrokerDropsMessages", {"anonymizer_broker_dropped_total": "9+0x80"}, False),
    Case(
        "MessagesTooLarge",
        {'anonymizer_broker_too_large_total{link="records"}': "0+0x55 1+0x20"},
        True,
        labels=LINK,
    ),
    Case(
        "MessagesTooLarge", {'anonymizer_broker_too_large_total{link="records"}': "1+0x80"}, False
    ),
    Case("NothingReceived", {"anonymizer_received_total": "0+0x80", _PARTS_IN: "0+0x80"}, True),
    Case("NothingReceived", {"anonymizer_received_total": "0+0x80", _PARTS_IN: "1+0x80"}, False),
    Case("InputStopped", {"anonymizer_received_total": "0+9x30 279+0x60"}, True),
    Case("InputStopped", {_PARTS_IN: "0+9x20 189+0x60"}, True, labels=FLEET),
    Case("InputStopped", {"anonymizer_received_total": "0+9x80", _PARTS_IN: "0+1x80"}, False),
    Case("InputStopped", {"anonymizer_received_total": "0+0x80"}, False),
    Case(
        "LatencyHigh",
        {f'{_LATENCY}{le}"}}': f"0+{n}x80" for le, n in (("1", 98), ("10", 100), ("+Inf", 100))},
        True,
    ),
    Case(
        "LatencyHigh",
        {f'{_LATENCY}{le}"}}': f"0+{n}x80" for le, n in (("1", 100), ("10", 100), ("+Inf", 100))},
        False,
    ),
    Case(
        "AgeHigh",
        {
            **{
                f'{_AGE}{le}"}}': f"0+{n}x80" for le, n in (("50", 80), ("120", 100), ("+Inf", 100))
            },
            _AGE_LIMIT: "60+0x80",
        },
        True,
    ),
    Case(
        "AgeHigh",
        {
            **{
                f'{_AGE}{le}"}}': f"0+{n}x80" for le, n in (("50", 99), ("120", 100), ("+Inf", 100))
            },
            _AGE_LIMIT: "60+0x80",
        },
        False,
    ),
    Case("Overload", {suppressed("overload"): "0+1x80"}, True, labels=OVERLOAD),
    Case(
        "Overload",
        {_PARTS + 'outcome="suppressed", reason="overload"}': "0+1x80"},
        True,
        labels=FLEET | OVERLOAD,
    ),
    Case("Overload", {suppressed("overload"): "9+0x80", suppressed("off_graph"): "0+1x80"}, False),
    Case(
        "SuppressionHigh",
        {suppressed("off_graph"): "0+6x80", "anonymizer_received_total": "0+10x80"},
        True,
    ),
    Case(
        "SuppressionHigh",
        {
            suppressed("off_graph"): "0+4x80",
            suppressed("trip_end"): "0+5x80",
            "anonymizer_received_total": "0+10x80",
        },
        False,
    ),
    Case(
        "RecordSuppressionHigh",
        {_PARTS + 'outcome="suppressed", reason="no_class"}': "0+6x200", _PARTS_IN: "0+10x200"},
        True,
        "3h",
        labels=FLEET,
    ),
    Case(
        "RecordSuppressionHigh",
        {_PARTS + 'outcome="suppressed", reason="no_class"}': "0+4x200", _PARTS_IN: "0+10x200"},
        False,
        "3h",
    ),
    Case(
        "InvalidHigh",
        {
            'anonymizer_positions_total{outcome="invalid", reason="schema"}': "0+2x80",
            "anonymizer_received_total": "0+10x80",
        },
        True,
    ),
    Case(
        "InvalidHigh",
        {_PARTS + 'outcome="invalid", reason="schema"}': "0+2x80", _PARTS_IN: "0+10x80"},
        True,
        labels=FLEET,
    ),
    Case(
        "InvalidHigh",
        {
            'anonymizer_positions_total{outcome="invalid", reason="schema"}': "0+1x80",
            "anonymizer_received_total": "0+20x80",
        },
        False,
    ),
    Case(  # what `where` leaves out is meant to be left out
        "InvalidHigh",
        {
            'anonymizer_positions_total{outcome="invalid", reason="not_selected"}': "0+9x80",
            "anonymizer_received_total": "0+10x80",
        },
        False,
    ),
    Case("ClassesNotTaken", {"anonymizer_records_waiting_classes": "5+0x80"}, True),
    Case("ClassesNotTaken", {"anonymizer_records_waiting_classes": "5+0x58 0 5+0x20"}, False),
    Case("StoreGrowing", {"anonymizer_records_store_bytes": "11000000000+0x80"}, True),
    Case("StoreGrowing", {"anonymizer_records_store_bytes": "0+10000000x80"}, True),
    Case("StoreGrowing", {"anonymizer_records_store_bytes": "9000000000+1000x80"}, False),
    Case("StoreDiskFilling", {"anonymizer_records_store_free_bytes": "900000000+0x80"}, True),
    Case("StoreDiskFilling", {"anonymizer_records_store_free_bytes": "9e9-1e7x80"}, True),
    Case("StoreDiskFilling", {"anonymizer_records_store_free_bytes": "9e9-1e4x80"}, False),
    Case("RecordsWait", {"anonymizer_records_store_usable": "1+0x55 0+0x20"}, True),
    Case("RecordsWait", {"anonymizer_records_store_usable": "1+0x59 0 1+0x20"}, False),
]


def located(series: str, here: dict[str, str]) -> str:
    """Return a series with the labels that a scrape adds."""
    name, _, labels = series.removesuffix("}").partition("{")
    own = [f'{label}="{value}"' for label, value in here.items()]
    return f"{name}{{{', '.join([*own, *filter(None, [labels])])}}}"


@pytest.mark.parametrize(
    "file", ["check config prometheus.yml", *(f"check rules {f}" for f in ALERTS)]
)
def test_prometheus_takes_the_files_as_they_are(file: str, tmp_path: Path) -> None:
    *what, name = file.split()
    for each in ("prometheus.yml", *ALERTS):
        (tmp_path / each).write_bytes((DEPLOY / each).read_bytes())
    (tmp_path / "http.token").touch()
    ran = subprocess.run(
        ["promtool", *what, tmp_path / name], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_every_alert_rings_when_it_should_and_only_then(tmp_path: Path) -> None:
    # With its own rule alone: promtool evaluates all it is given, every minute of every case.
    rules = alert_rules()
    files = [written(tmp_path, alert, rule) for alert, rule in rules.items()]
    ran = subprocess.run(
        ["promtool", "test", "rules", *files], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {case.alert for case in CASES if case.rings} == rules.keys()
    assert {case.alert for case in CASES if not case.rings} == rules.keys()


def written(folder: Path, alert: str, rule: dict[str, Any]) -> Path:
    """Write the cases of an alert and its rule, and return the file of the cases."""
    rules, tests = folder / f"{alert}.yml", folder / f"{alert}_test.yml"
    rules.write_text(json.dumps({"groups": [{"name": alert, "rules": [rule]}]}))
    cases = [tried(case, rule) for case in CASES if case.alert == alert]
    tests.write_text(json.dumps({"rule_files": [str(rules)], "tests": cases}))
    return tests


def tried(case: Case, rule: dict[str, Any]) -> dict[str, Any]:
    """Return a case as promtool reads it."""
    here = HERE | {"job": case.job}
    ringing = {
        "exp_labels": {**rule["labels"], **({} if case.summed else here), **case.labels},
        "exp_annotations": rule["annotations"],
    }
    series = [
        {"series": located(series, here), "values": values}
        for series, values in case.series.items()
    ]
    expected = {
        "eval_time": case.at,
        "alertname": case.alert,
        "exp_alerts": [ringing] if case.rings else [],
    }
    return {"interval": "1m", "input_series": series, "alert_rule_test": [expected]}


def test_every_alert_says_what_to_do() -> None:
    page = alerts_page()
    for name, rule in alert_rules().items():
        assert rule["annotations"]["description"].strip()
        assert rule["annotations"]["runbook"] == f"alerts/#{name.lower()}"
        assert len(re.findall(rf"^#+ {name}$", page, re.MULTILINE)) == 1, name


def test_outcomes_and_reasons_are_those_that_exist() -> None:
    text = "".join((DEPLOY / file).read_text() for file in ALERTS)
    outcomes, reasons = zip(*(outcome.label for outcome in Outcome), strict=True)
    for label, known in (("outcome", outcomes), ("reason", reasons)):
        named = re.findall(rf'{label}(?:=|!=|=~|!~)"([^"]+)"', text)
        assert named
        assert {one for said in named for one in said.split("|")} <= set(known)
