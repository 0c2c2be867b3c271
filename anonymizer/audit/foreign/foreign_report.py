"""What was found in a release of others: for a terminal, as a page, and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from html import escape

from anonymizer.audit.evidence.evidence_page import framed
from anonymizer.audit.evidence.evidence_plot import Lane, drawing
from anonymizer.audit.foreign.attack import NotMounted, Verdict, judged
from anonymizer.audit.foreign.registry import attacks
from anonymizer.audit.foreign.release import BareRelease, CountRelease, ForeignCase

_NO_PROOF = "That is no proof that it is safe: it is what these attacks find."


@dataclass(frozen=True, slots=True)
class ForeignReport:
    """What attacks on a release found."""

    read: str
    """What was read, in words."""
    verdicts: tuple[Verdict, ...]
    """Of each attack that was mounted, those that find something first."""
    not_mounted: Mapping[str, str]
    """Why each of the others was not, by its name."""

    @property
    def headline(self) -> str:
        """What was found, of whom, how surely: one sentence, or two."""
        if not self.verdicts:
            return "Nothing could be tried on this release, for the reasons that are listed."
        n, n_broken = len(self.verdicts), sum(each.broken for each in self.verdicts)
        if n_broken:
            broken = f"{n_broken} of {n} attacks find" if n > 1 else "The one attack finds"
            return f"{self.verdicts[0].sentence} {broken} more than chance."
        best = max(self.verdicts, key=lambda each: each.n)
        attacks_ = "The one attack finds" if n == 1 else f"None of {n} attacks finds"
        more = "no more" if n == 1 else "more"
        return f"{attacks_} {more} than chance would, on up to {best.n:,}. {_NO_PROOF}"

    def json(self) -> dict[str, object]:
        """Return it for programs."""
        return {
            "headline": self.headline,
            "read": self.read,
            "attacks": [{**asdict(each), "broken": each.broken} for each in self.verdicts],
            "not_mounted": dict(self.not_mounted),
        }


def attacked(case: ForeignCase) -> ForeignReport:
    """Mount all attacks that apply."""
    verdicts, not_mounted = [], {}
    for attack in attacks():
        if not isinstance(case.release, attack.needs):
            continue
        trials = attack.mount(case)
        if isinstance(trials, NotMounted):
            not_mounted[attack.name] = trials.reason
        else:
            of_ids = case.truth is None and attack.who == "people"  # nobody knows who is who
            named = replace(attack, who="ids") if of_ids else attack
            verdicts.append(judged(named, trials, seed=case.seed))
    verdicts.sort(key=lambda each: not each.broken)
    return ForeignReport(_read(case), tuple(verdicts), not_mounted)


def _read(case: ForeignCase) -> str:
    found = case.release
    if isinstance(found, CountRelease):
        said = f"Read as counts: {len(found.count):,} of {found.n_areas:,} areas"
        said += f" at {found.n_times:,} times"
        said += ", with noise" if found.is_noisy else ""
    else:
        trace = found.trace
        ids = "runs" if isinstance(found, BareRelease) else "ids"
        said = f"Read as {found.form}: {trace.n_rows:,} positions of {trace.n_devices:,} {ids}"
        if n := trace.n_unusable:
            said += f" ({n:,} rows without an id, a time or a place on earth are left out)"
        said = "; ".join([said, *trace.read_as])
    judged_by = "what it betrays about itself" if case.truth is None else "the truth"
    return f"{said}. Judged by {judged_by}."


def text(report: ForeignReport) -> str:
    """Return the report for a terminal."""
    lines = [report.headline, "", report.read, ""]
    for each in report.verdicts:
        mark = "FOUND  " if each.broken else "chance "
        worst = f"most exposed tenth {each.worst:.0%}, by chance {each.worst_control:.0%}"
        note = f"; {each.note}" if each.note else ""
        lines += [f"{mark} {each.attack}: {each.sentence}", f"        {worst}{note}"]
    lines += [f"not tried: {name}: {why}" for name, why in report.not_mounted.items()]
    return "\n".join(lines) + "\n"


def page(report: ForeignReport) -> str:
    """Return the report as HTML; it loads nothing from elsewhere."""
    lanes = [
        Lane(each.attack, each.success, each.low, each.high, each.control, "chance")
        for each in report.verdicts
    ]
    kind = " bad" if report.verdicts and report.verdicts[0].broken else ""
    parts = [
        "<h1>Does this blur hold?</h1>",
        f'<p class="verdict{kind}">{escape(report.headline)}</p>',
        f"<p>{escape(report.read)}</p>",
        drawing(lanes, title="attacks beside chance") if lanes else "",
        "<p>Dot: how often the attack succeeds, with its interval of 99 %. Line: chance.</p>",
        _table(report),
        "".join(
            f"<p>Not tried: {escape(name)}: {escape(why)}.</p>"
            for name, why in report.not_mounted.items()
        ),
    ]
    return framed("Does this blur hold?", parts)


def _table(report: ForeignReport) -> str:
    head = ("attack", "success", "99 %", "chance", "most exposed tenth", "its chance")
    return (
        "<table><thead><tr>"
        + "".join(f"<th scope=col>{each}</th>" for each in head)
        + "</tr></thead><tbody>"
        + "".join(_row(each) for each in report.verdicts)
        + "</tbody></table>"
    )


def _row(verdict: Verdict) -> str:
    numbers = (
        f"{verdict.success:.1%}",
        f"{verdict.low:.1%} to {verdict.high:.1%}",
        f"{verdict.control:.1%}",
        f"{verdict.worst:.1%}",
        f"{verdict.worst_control:.1%}",
    )
    words = " ".join(filter(None, (verdict.asks, verdict.sentence, _sentence(verdict.note))))
    return (
        f"<tr><td><b>{escape(verdict.attack)}</b><br>{escape(words)}</td>"
        + "".join(f"<td class=n>{each}</td>" for each in numbers)
        + "</tr>"
    )


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}." if note else ""
