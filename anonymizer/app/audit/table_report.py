"""What an audit of a published table found."""

from pydantic import BaseModel, ConfigDict

from anonymizer.app.audit.findings import Finding


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LossFigures(_Part):
    """Information loss in the three forms, 0 to 1 (GCP); a row left out counts 1."""

    range: float
    set: float
    taxonomy: float


class TableAuditReport(_Part):
    """What an audit of a published table found. Equal files and options give equal reports.

    Attributes
    ----------
    holds
        Whether every finding that was asked for does.
    n_rows, n_published, suppressed_share
        Rows of the original and of the release, and the share that is not in it.
    n_persons
        Distinct persons of the original; its rows where no identifier is named.
    n_classes, size_min, size_median, size_max
        Equivalence classes, and their sizes in rows.
    gcp, dm
        Information loss and discernibility (the sum of the squared class sizes; a row left out
        counts as many as there are rows), from the values that are there.
    findings
        One for each attack, and each part of a promise and attribute.
    """

    holds: bool
    n_rows: int
    n_published: int
    suppressed_share: float
    n_persons: int
    n_classes: int
    size_min: int
    size_median: float
    size_max: int
    gcp: LossFigures
    dm: int
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break what was asked for."""
        return tuple(finding for finding in self.findings if finding.fails)
