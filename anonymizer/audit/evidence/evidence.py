"""What audits found, under the criteria of anonymization, each beside its control."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import permutations
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from anonymizer import __version__
from anonymizer.audit.attack import ALONE, OF_ONE, UNKNOWN, Criterion, Question, name_of
from anonymizer.audit.findings import (
    AuditReport,
    Figure,
    Finding,
    TableAuditReport,
    WindowsAuditReport,
)
from anonymizer.audit.judged_files import Judged, digest_of, digests_of
from anonymizer.audit.registry import question_of
from anonymizer.audit.repeating_columns import in_words
from anonymizer.audit.stream_summary import wilson
from anonymizer.errors import InputError


class _Stream(AuditReport):
    model_config = ConfigDict(extra="ignore")  # `--utility` adds its figures


_Report: TypeAlias = TableAuditReport | WindowsAuditReport | _Stream | list[Finding]
_REPORTS: TypeAdapter[_Report] = TypeAdapter(_Report)


class Conclusion(StrEnum):
    """What the attacks of one criterion come to."""

    BROKEN = "a promise is broken"
    ABOVE = "an attack succeeds above its bar"
    HELD = "every attack that has a bar stays below it"
    REPORTED = "attacked, without a bar"
    OPEN = "not attacked"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Result(_Part):
    """What one attack found."""

    source: str
    """File of the audit."""
    attack: str
    adversary: str | None
    attribute: str | None
    """`attack`, `adversary`, `attribute`: as in the finding."""
    criterion: Criterion
    asks: str
    """`criterion`, `asks`: the question that it belongs to, and what it asks itself."""
    success: float | None
    """Share or probability of success, 0 to 1; None: it has none, see `figures`."""
    low: float | None
    high: float | None
    """`low`, `high`: interval of 95 % of the success (Wilson); None without a number of trials.
    Trials of one device depend on each other, so the interval is rather too narrow."""
    n: int | None
    """Number of trials."""
    control: float | None
    """Success of the same attack where it can find nothing but chance."""
    against: str
    """What the control is, in words."""
    exposed: float | None
    """Success with the most exposed tenth, or the least number of devices in multiples of k."""
    exposed_control: float | None
    """What the success with the most exposed tenth is compared with, if it is one."""
    bar: str | None
    holds: bool | None
    promised: bool
    """`bar`, `holds`, `promised`: as in the finding: the condition, whether it is met, and whether
    the mode promises it."""
    figures: dict[str, Figure]
    """All figures of the finding."""

    @property
    def broken(self) -> bool:
        """Whether a promise is broken."""
        return self.promised and self.holds is False

    @property
    def gain(self) -> float | None:
        """How much more often the attack succeeds than its control."""
        if self.success is None or self.control is None:
            return None
        return self.success - self.control


class Audited(_Part):
    """An audit that the evidence rests on: what was published, in words and figures."""

    source: str
    sha256: str
    kind: Literal["positions", "counts", "table", "records"]
    figures: dict[str, str]
    left_out: tuple[str, ...]


class EvidenceReport(_Part):
    """Everything that the audits found."""

    version: str
    made: str
    """`version`, `made`: version of this software, and when the evidence was put together (ISO
    8601)."""
    holds: bool
    """Whether no promise is broken."""
    answers: dict[Criterion, Conclusion]
    """By criterion."""
    audited: tuple[Audited, ...]
    files: dict[str, str]
    """`audited`, `files`: the audits, and the SHA-256 of files that they judged, and of the
    settings."""
    results: tuple[Result, ...]
    """Of all attacks, the broken promises first."""
    apart: tuple[str, ...] = ()
    """Publications that must not both be public, in words: together they tell what neither tells
    alone, beyond the bar or, if there is none, beyond the control."""
    pooled: bool = False
    """Whether the audits are of one gateway, at one time after the other."""


def evidence_of(
    audits: Iterable[Path],
    *,
    made: str,
    files: Iterable[Path] = (),
    settings: Path | None = None,
    pooled: bool = False,
) -> EvidenceReport:
    """Return the evidence of some audits.

    Parameters
    ----------
    audits
        Reports as the commands `anonymizer audit` write them with `--json`.
    files, settings
        Releases that the audits judged, and a file of settings: their digests are told.
    pooled
        Whether the audits are of one gateway at one time after the other: each attack is then one
        result, see `pooled_results`.

    Raises
    ------
    InputError
        If a file cannot be read or is no such report, one is given twice, none is, or none judged
        one of `files`.
    """
    texts = ((path, _read(path)) for path in audits)
    return evidence_from(texts, made=made, files=files, settings=settings, pooled=pooled)


def evidence_from(
    audits: Iterable[tuple[Path, bytes]],
    *,
    made: str,
    files: Iterable[Path] = (),
    settings: Path | None = None,
    pooled: bool = False,
) -> EvidenceReport:
    """Return the evidence of audits that are read already, see `evidence_of`."""
    audited, results = [], []
    judged: dict[Path, Judged | None] = {}
    seen: set[bytes] = set()
    for path, text in audits:
        if text in seen and not pooled:
            raise InputError(f"{path}: this audit is given twice: name it once")
        seen.add(text)
        try:
            report = _REPORTS.validate_json(text)
        except ValidationError:
            raise InputError(f"{path}: is no report of `anonymizer audit` as JSON") from None
        if report == []:
            raise InputError(f"{path}: reports no attack")
        judged[path] = {} if isinstance(report, list) else report.judged
        findings = report if isinstance(report, list) else report.findings
        if isinstance(report, TableAuditReport):
            findings = [_as_share(each, report.n_persons) for each in findings]
        audited.append(_audited(path, hashlib.sha256(text).hexdigest(), report))
        results += list(results_of(_name_of(path), findings))
    if not audited:
        raise InputError("no report of `anonymizer audit` is given")
    if pooled:
        results = pooled_results(results)
    bound = digests_of(files, judged)
    if settings is not None and (digest := digest_of(settings)) is not None:
        bound[settings] = digest
    results.sort(key=lambda each: (not each.broken, each.holds is not False))
    return EvidenceReport(
        version=__version__,
        made=made,
        holds=not any(each.broken for each in results),
        answers={each: _answer([r for r in results if r.criterion is each]) for each in Criterion},
        audited=tuple(audited),
        files={_name_of(path): digest for path, digest in bound.items()},
        results=tuple(results),
        apart=tuple(_apart(results, audited)),
        pooled=pooled,
    )


def _apart(results: list[Result], audited: list[Audited]) -> Iterable[str]:
    """Return what must not both be public, each once."""
    stream_of = {each.source: each.figures.get("stream", each.source) for each in audited}
    alone: dict[tuple[str, str | None], float] = {}
    for each in results:
        if each.attack.endswith(ALONE) and each.success is not None:
            key = each.source, each.attribute
            alone[key] = max(alone.get(key, 0.0), each.success)
    found: dict[str, None] = {}
    for each in results:
        joint = (question_of(each.attack) or UNKNOWN).together
        if not joint:
            continue
        by_one = alone.get((each.source, each.attribute), 0.0)
        too_much = each.holds is False
        if each.bar is None and each.success is not None and each.low is not None:
            too_much = each.low > max(each.control or 0.0, by_one)
        if too_much:
            found[f"{joint} {stream_of[each.source].replace(', ', ' and ')}"] = None
    return found


def pooled_results(results: Iterable[Result]) -> list[Result]:
    """Return one result for each attack, of all times at which it was mounted.

    Shares of success are those of all trials together. What was most exposed is that of the worst
    time, and so are the other figures; a bar holds if it held every time.
    """
    of_attack: dict[tuple[str, str | None, str | None], list[Result]] = {}
    for each in results:
        of_attack.setdefault((each.attack, each.adversary, each.attribute), []).append(each)
    return [_pool(each) for each in of_attack.values()]


def _pool(times: list[Result]) -> Result:
    worst = max(times, key=lambda each: (each.broken, each.holds is False, each.gain or 0.0))
    exposed = [each for each in times if each.exposed is not None]
    is_multiple_of_k = worst.exposed_control is None
    if exposed:
        most = (min if is_multiple_of_k else max)(exposed, key=lambda each: each.exposed or 0.0)
        worst = worst.model_copy(
            update={"exposed": most.exposed, "exposed_control": most.exposed_control}
        )
    tried = [each for each in times if each.n and each.success is not None]
    n = sum(each.n or 0 for each in tried)
    if n:
        success = sum((each.success or 0.0) * (each.n or 0) for each in tried) / n
        low, high = wilson(success, n)
        control = worst.control
        if all(each.control is not None for each in tried):
            control = sum((each.control or 0.0) * (each.n or 0) for each in tried) / n
        update = {"success": success, "low": low, "high": high, "n": n, "control": control}
        worst = worst.model_copy(update=update)
    known = [each.holds for each in times if each.holds is not None]
    return worst.model_copy(
        update={
            "source": f"{len(times)} audits",
            "holds": all(known) if known else None,
            "promised": any(each.promised for each in times),
        }
    )


def _name_of(path: Path) -> str:
    """Return the name of a file as text, whatever the locale makes of it."""
    return os.fsencode(path.name).decode(errors="replace")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def results_of(source: str, findings: Iterable[Finding]) -> Iterable[Result]:
    """Yield what findings of one audit come to, each beside its control."""
    findings = list(findings)
    figures_of = {(each.attack, each.adversary, each.attribute): each.figures for each in findings}
    questions = [question_of(each.attack) for each in findings]
    controls = {question.control_finding for question in questions if question is not None}
    for each, known in zip(findings, questions, strict=True):
        if each.attack in controls:
            continue
        found = (known or (OF_ONE if each.attack.endswith(ALONE) else UNKNOWN)).at(each.figures)
        control = _largest(each.figures, found.control, found.chance)
        by_other = figures_of.get((found.control_finding, each.adversary, each.attribute))
        if by_other is not None:
            control = by_other.get("share_read")
        if found.borrows is not None:
            lender, name = found.borrows
            control = figures_of.get((lender, each.adversary, each.attribute), {}).get(name)
        yield _result(source, each, found, control)


def _as_share(finding: Finding, n_persons: int) -> Finding:
    """Return a finding on a table with the share of its persons about whom it found something."""
    n = finding.figures.get("n_people")
    share = {} if n is None or not n_persons else {"share_of_people": n / n_persons}
    return finding.model_copy(update={"figures": finding.figures | share})


def _result(source: str, finding: Finding, question: Question, control: Figure) -> Result:
    success = _largest(finding.figures, question.success)
    n = int(finding.figures.get(question.n) or 0)
    low, high = (None, None) if success is None or not n else wilson(success, n)
    return Result(
        source=source,
        attack=finding.attack,
        adversary=finding.adversary,
        attribute=finding.attribute,
        criterion=question.criterion,
        asks=question.asks,
        success=success,
        low=low,
        high=high,
        n=n or None,
        control=None if success is None else control,
        against=question.against,
        exposed=finding.figures.get(question.exposed),
        exposed_control=finding.figures.get(question.exposed_control),
        bar=finding.bar,
        holds=finding.holds,
        promised=finding.required,
        figures=finding.figures,
    )


def _largest(
    figures: Mapping[str, Figure], names: Iterable[str], otherwise: float | None = None
) -> float | None:
    known = [figure for name in names if (figure := figures.get(name)) is not None]
    return float(max(known)) if known else otherwise


def _answer(results: list[Result]) -> Conclusion:
    if any(each.broken for each in results):
        return Conclusion.BROKEN
    if any(each.holds is False for each in results):
        return Conclusion.ABOVE
    if any(each.holds for each in results):
        return Conclusion.HELD
    return Conclusion.REPORTED if results else Conclusion.OPEN


def _by_all_columns(report: TableAuditReport) -> str:
    """Say how well a row is told by whoever knows more than its quasi-identifiers."""
    for each in report.findings:
        if each.attack == "rows by all columns":
            highest, average = each.figures["highest"], each.figures["average"]
            return (
                f" Whoever also knows what it says in {each.attribute} picks their row with up to"
                f" {highest or 0.0:.1%}, and {average or 0.0:.1%} on average."
            )
    if any(each.attack == "truth" for each in report.findings):
        return " Whoever knows more of them was not tried."
    return ""


_KEPT_ALTHOUGH = {"direct identifiers": "it holds", "repeated columns": "it repeats"}


def _kept_anyway(report: TableAuditReport) -> str:
    """Say which columns that single out are published, and why."""
    kept = ((each.attribute or "", each.attack) for each in report.findings if each.bar is None)
    return "".join(
        f" Published although {_KEPT_ALTHOUGH[name_of(attack)]} {_in_brackets(attack)}: {name}; "
        f"the reason given: {reason}."
        for name, attack in kept
        if name_of(attack) in _KEPT_ALTHOUGH and (reason := _reason(report, name))
    )


def _reason(report: TableAuditReport, name: str) -> str:
    """Return why a column, or some that tell something together, are published, if it is said."""
    of = report.kept_anyway
    named = [each for each in of if each in name]  # of many reasons, the few that it may be
    together = {in_words(names): names for n in (2, 3) for names in permutations(named, n)}
    return "; ".join(of[each] for each in together.get(name, (name,)) if each in of)


def _in_brackets(attack: str) -> str:
    return attack.partition("(")[2].removesuffix(")")


def _utility(report: TableAuditReport) -> str:
    """Say what a reader of a table gets right."""
    said = ""
    if report.columns:
        wrong = [each.distribution for each in report.columns]
        pairs = [each.pairs for each in report.columns if each.pairs is not None]
        said = " Counts of its rows by one column are wrong about "
        said += f"{min(wrong):.0%} to {max(wrong):.0%} of the rows"
        said += f", by two columns about {min(pairs):.0%} to {max(pairs):.0%}." if pairs else "."
    if report.model is not None:
        of = report.model
        said += (
            f" A decision tree that learned {of.target} from it scores {of.release:.2f}, from the "
            f"original {of.original:.2f}, without learning {of.guessing:.2f}."
        )
    return said


def _audited(path: Path, digest: str, report: _Report) -> Audited:
    kind: Literal["positions", "counts", "table", "records"]
    left_out: tuple[str, ...] = ()
    figures: dict[str, str] = {}
    if isinstance(report, AuditReport):
        kind, left_out = "positions", (*report.left_out, *report.failed)
        across = report.regions.extent_m_mean
        figures = {
            "mode": report.mode,
            "records": f"{report.n_records:,}",
            "suppressed": f"{report.suppressed_share:.1%}" if report.suppressed_share else "None",
            "pseudonyms": f"{report.n_pseudonyms:,}",
            "devices": f"{report.n_devices:,}",
            "nodes": f"{report.regions.nodes_mean:,.0f}",
            "across": "of unknown size" if across is None else f"{across:,.0f} m across",
        }
    elif isinstance(report, TableAuditReport):
        kind = "table"
        figures = {
            "rows": f"{report.n_rows:,}",
            "suppressed": f"{report.suppressed_share:.1%}" if report.suppressed_share else "None",
            "persons": f"{report.n_persons:,}",
            "classes": f"{report.n_classes:,}",
            "least": f"{report.size_min:,}",
            "prosecutor": f"{1 / max(report.size_min, 1):.1%}",
            "marketer": f"{report.n_classes / max(report.n_published, 1):.1%}",
            "utility": _utility(report),
            "others": _by_all_columns(report),
            "anyway": _kept_anyway(report),
        }
    elif isinstance(report, WindowsAuditReport):
        kind = "records"
        figures = {
            "stream": report.stream,
            "windows": f"{report.n_windows:,}",
            "classes": f"{report.n_classes:,}",
        }
        left_out = tuple(
            f"{n:,} recorded messages ({why.replace('_', ' ')})"
            for why, n in report.left_out.items()
            if n
        )
    else:
        kind = "counts"
    return Audited(
        source=_name_of(path), sha256=digest, kind=kind, figures=figures, left_out=left_out
    )
