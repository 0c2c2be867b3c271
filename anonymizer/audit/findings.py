"""Findings of an audit, and the reports on positions, tables and windows, as written to JSON."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

from anonymizer.audit.judged_files import Judged
from anonymizer.domain.region_modes import RegionMode, mode_named
from anonymizer.files.meanings import Fold

Mode: TypeAlias = RegionMode
Adversary: TypeAlias = Literal["on_air", "off_air"]
Figure: TypeAlias = int | float | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, self.model_dump())


class Finding(_Part):
    """The result of one attack by one adversary.

    Attributes
    ----------
    attack
        `soundness`, `k`, `centre`, `prefix`, `inversion`, `session`, `intersection`,
        `matching`, `re-identification`, `linking`, `velocity`, `tracking`, `timing`,
        `subtraction`, `density leak`, `zone holes`, `zone ends`, `homes`, `leaving`,
        `habits`, `values` or `positions with counts`; of trips, `trip owner`, `trip destination`,
        `trips of two days`, `all trips but one` and `trips with positions`; of counts,
        `aggregate trajectories` and `aggregate membership`; of traffic by street and hour, `few on
        a road`, `all passages but one` and `last speed`; of windows of records, the criteria,
        `labels`, `truth`, `windows together`, `known company` and `heavy vehicles`; of two streams,
        `releases together`, each `alone`, and the control `releases of two vehicles`; of a stream
        and positions, `positions with records`, each `alone`, and the control `positions of another
        vehicle`.
    adversary
        `on_air` assumes that a publishing device is on the air, `off_air` does not; None if it
        makes no difference.
    attribute
        For `values`: the reading that was attacked; several together are joined by ` + `. For
        tables and windows: the attribute.
    figures
        By name. Shares and probabilities are 0 to 1; ages and distances have their unit in the
        name. None: there was nothing to measure.
    bar
        The condition that must hold, in words; None: the figures are only reported.
    holds
        Whether the figures meet the bar; None if there is no bar or nothing to measure.
    required
        Whether the mode promises it; `holds` is reported in any case.
    """

    attack: str
    adversary: Adversary | None = None
    attribute: str | None = None
    figures: dict[str, Figure]
    bar: str | None = None
    holds: bool | None = None
    required: bool = False

    @property
    def fails(self) -> bool:
        """Whether a promise of the mode is broken."""
        return self.required and self.holds is False

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.fails:
            return "fails"
        if self.required and self.holds:
            return "holds"
        if self.holds is None:
            return "reported" if self.bar is None else "no case"
        return "would hold" if self.holds else "would fail"


def required(
    attack: str,
    figures: dict[str, Figure],
    bar: str,
    *,
    holds: bool,
    asked: bool = True,
    of: str | None = None,
) -> Finding:
    """Return a finding that must hold if that is asked, and is reported else; `of`: attribute."""
    return Finding(
        attack=attack,
        attribute=of,
        figures=figures,
        bar=bar if asked else None,
        holds=bool(holds) if asked else None,
        required=asked,
    )


class RegionStatistics(_Part):
    """Sizes of the published regions, over records.

    Distances are the largest between two nodes of a region; None without coordinates.
    """

    nodes_mean: float
    nodes_median: float
    nodes_max: int
    extent_m_mean: float | None
    extent_m_median: float | None
    extent_m_max: float | None


class AuditReport(_Part):
    """The report on a stream. Equal inputs, options and seed give equal reports.

    Attributes
    ----------
    mode
        Whose promises were required.
    holds
        Whether all findings that the mode requires hold.
    n_records, n_suppressed, suppressed_share
        Published and suppressed lines of the release, and the share of the latter.
    n_pseudonyms, n_devices, n_ticks
        Pseudonyms that published, devices of the trace, distinct times of publishing.
    n_sampled
        Pseudonyms whose records the centre, prefix and velocity attacks used.
    regions
        Sizes of the regions.
    findings
        In the order of the list at `Finding.attack`.
    left_out
        Attacks that need the auditor's map, if it was not given; `values of NAME` also if the
        settings do not declare the attribute or the trace lacks its readings.
    failed
        Attacks that ended with an error, or were not reached, and why: nothing is known of them.
    not_asked
        Attacks that were not mounted, as the mode does not promise to resist them and only a
        summary was asked for.
    judged
        SHA-256 of the release; None: it was no file of a command, as of a gateway.
    """

    mode: Annotated[Mode, BeforeValidator(mode_named)]
    holds: bool
    n_records: int
    n_suppressed: int
    suppressed_share: float
    n_pseudonyms: int
    n_devices: int
    n_ticks: int
    n_sampled: int
    regions: RegionStatistics
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    judged: Judged | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break a promise of the mode."""
        return tuple(finding for finding in self.findings if finding.fails)


class LossFigures(_Part):
    """Information loss (GCP) in its three forms, 0 to 1; a suppressed row counts 1."""

    range: float
    set: float
    taxonomy: float


class ColumnUtility(_Part):
    """What a reader of the labels gets right of a quasi-identifier; 0 is all, 1 nothing.

    Attributes
    ----------
    distribution
        Distance of the distribution of its values (total variation).
    pairs
        Mean distance of its joint distribution with another column; None: it is the only one.
    correlation
        Largest change of its correlation with another number; None: there are no two numbers.
    """

    name: str
    distribution: float
    pairs: float | None
    correlation: float | None


class ModelUtility(_Part):
    """Score of a decision tree that learned from the release, on original rows of other people.

    Attributes
    ----------
    target
        What it predicts; the score is the accuracy, of numbers R².
    original, guessing
        The same where it learned from the original, and without learning.
    """

    target: str
    original: float
    release: float
    guessing: float


class TableAuditReport(_Part):
    """The report on a published table. Equal files and options give equal reports.

    Attributes
    ----------
    holds
        Whether all required findings hold.
    n_rows, n_published, suppressed_share
        Rows of the original and of the release, and the share of suppressed rows.
    n_persons
        Distinct persons of the original; its rows if no identifier is named.
    n_classes, size_min, size_median, size_max
        Equivalence classes, and their sizes in rows.
    gcp, dm
        Information loss and discernibility (the sum of the squared class sizes; a suppressed row
        counts the number of rows), computed from the values in each class.
    findings
        One for each attack, and one for each part of a promise and attribute.
    columns, model
        Utility of each quasi-identifier, and of a model; None: no target was named.
    folds
        Writings of the original that count as one value.
    in_doubt
        What of the original may mean something else than it counts as.
    kept_anyway
        Why columns are published although they hold direct identifiers.
    judged
        SHA-256 of the release, not of those `--with` it; None: it was no file of a command.
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
    columns: tuple[ColumnUtility, ...] = ()
    model: ModelUtility | None = None
    folds: tuple[Fold, ...] = ()
    in_doubt: tuple[str, ...] = ()
    kept_anyway: dict[str, str] = {}
    judged: Judged | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break a required promise."""
        return tuple(finding for finding in self.findings if finding.fails)


class WindowsAuditReport(_Part):
    """The report on the published windows of a stream of records.

    Attributes
    ----------
    stream
        Name of the stream.
    holds
        Whether all required findings hold.
    n_windows, n_classes
        Windows that are in both recordings, and published classes.
    left_out
        Number of parts and records of the truth that are in no window, by reason.
    findings
        One for each criterion and attribute, and each lasting attribute.
    judged
        SHA-256 of the published recording; None: it was no file of a command.
    """

    stream: str
    holds: bool
    n_windows: int
    n_classes: int
    left_out: dict[str, int]
    findings: tuple[Finding, ...]
    judged: Judged | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break the promise."""
        return tuple(finding for finding in self.findings if finding.fails)
