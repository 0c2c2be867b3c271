"""Evidence of findings that are made up."""

from pathlib import Path

from anonymizer.audit.evidence import EvidenceReport, evidence_of
from anonymizer.audit.findings import AuditReport, Finding, RegionStatistics

MADE = "2026-01-01T00:00:00+00:00"


def written(folder: Path, *findings: Finding) -> Path:
    """Write a report on positions with these findings."""
    regions = RegionStatistics(
        nodes_mean=9, nodes_median=8, nodes_max=20,
        extent_m_mean=None, extent_m_median=None, extent_m_max=None,
    )  # fmt: skip
    report = AuditReport(
        mode="session", holds=not any(each.fails for each in findings), n_records=10,
        n_suppressed=0, suppressed_share=0, n_pseudonyms=5, n_devices=5, n_ticks=2, n_sampled=5,
        regions=regions, findings=findings, left_out=(),
    )  # fmt: skip
    path = folder / "audit.json"
    path.write_text(report.model_dump_json())
    return path


def of(folder: Path, *findings: Finding) -> EvidenceReport:
    return evidence_of([written(folder, *findings)], made=MADE)
