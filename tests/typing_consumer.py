"""A program that uses the public names: mypy, run by `make check`, checks it as a user's would be.

Nothing runs it. `assert_type` fails the check where a name is lost, or has become `Any`.
"""

from pathlib import Path
from typing import assert_type

import networkx as nx

import anonymizer
from anonymizer import (
    AnonymizedTable,
    AnonymizeReport,
    AuditReport,
    CloakedTrace,
    CloakReport,
    InputError,
    RoadNetwork,
    Settings,
    TableAuditReport,
    anonymize,
    audit_stream,
    audit_table,
    cloak,
    load_network,
    load_settings,
)


def positions(trace: Path) -> AuditReport:
    network = assert_type(load_network("grid:10x10"), RoadNetwork)
    assert_type(load_network(nx.path_graph(3)), RoadNetwork)
    settings = assert_type(load_settings(options={"adka": {"k_floor": 5}}), Settings)
    cloaked = assert_type(
        cloak(trace, network, region="snapshot", settings=settings, tick_s=2), CloakedTrace
    )
    assert_type(cloaked.report, CloakReport)
    assert_type(cloaked.report.outcomes["published"], int)
    return assert_type(audit_stream(cloaked, trace, network, mode="snapshot"), AuditReport)


def records(table: str) -> tuple[AnonymizeReport, TableAuditReport]:
    try:
        release = assert_type(anonymize(table, qi=["age"], k=5, sa="illness"), AnonymizedTable)
    except InputError as error:
        raise anonymizer.AnonymizerError from error
    anonymize(table, qi="age", k="5")  # type: ignore[arg-type]
    anonymize(table, qi="age")  # type: ignore[call-arg]
    anonymize(table, qi="age", k=5, kk=5)  # type: ignore[call-arg]
    report = assert_type(audit_table(release, table, qi="age", k=5), TableAuditReport)
    assert_type([finding.holds for finding in report.findings], list[bool | None])
    return release.report, report


assert_type(anonymizer.__version__, str)
assert_type(anonymizer.Anonymizer("kd", k=5), anonymizer.Anonymizer)
