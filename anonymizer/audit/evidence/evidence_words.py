"""Evidence in words, most of them for somebody who knows no word of the field."""

from collections.abc import Iterable

from anonymizer.audit.attack import NOTHING, UNKNOWN, Criterion
from anonymizer.audit.evidence.evidence import Audited, Conclusion, EvidenceReport, Result
from anonymizer.audit.registry import question_of

ASKS = {
    Criterion.SINGLING_OUT: "Can somebody be told apart from all others?",
    Criterion.LINKABILITY: "Can two records be recognized as those of one person?",
    Criterion.INFERENCE: "Can something be learned about a person, such as a place?",
    Criterion.TRUTH: "Is what is published true?",
}

_SUCCEEDS = {
    Criterion.SINGLING_OUT: "somebody can be told apart from all others",
    Criterion.LINKABILITY: "two records can be recognized as those of one person",
    Criterion.INFERENCE: "something can be learned about a person",
    Criterion.TRUTH: "part of what is published is not true",
}

_LEAST = 0.0005
"""Shares below that would be written like none at all."""
_COUNTED = "Every case was looked at, so this is no estimate."
MOST_CHECKS = 3
"""Told on the first screen of one criterion."""

ANSWERS = {
    Conclusion.BROKEN: "a promise is broken",
    Conclusion.ABOVE: "more than the limit; nothing is promised",
    Conclusion.HELD: "within all limits",
    Conclusion.REPORTED: "measured, no limit is set",
    Conclusion.OPEN: "not tried",
}

NOT_SAID = """\
An attack that does not succeed proves nothing of attacks that nobody mounted. The adversaries \
here know the algorithm and its settings, how other devices move, and of a row what each attack \
names.
Success is measured on the data that were audited. Another fleet, hour or network may differ.
Trials of one device depend on each other, so intervals may be too narrow.
Not judged here: whether data are anonymous in the sense of a law. That needs the purpose, who \
gets the data, and what else they have.""".splitlines()

_MODES = {
    "session": "Promised (session): for as long as a device keeps a made-up name, at least k "
    "devices share all of its areas; each message states its k. Not promised: to hide "
    "roughly where a device is, when it reports, or that it is among these devices.",
    "snapshot": "Promised (snapshot): at each moment, at least k devices publish the same area; "
    "each message states its k. Not promised: that this lasts. Whoever knows where a device "
    "was at some moments can find its made-up name, and follow it for as long as it keeps that "
    "name.",
    "adka": "Promised (adka): each area contains at least k devices; each message states its k. "
    "Not promised: that a device is hidden among these. Whoever knows how areas are made can "
    "work out from an area which device it was made for, and follow that device for as long as it "
    "keeps its made-up name. Do not give this to anybody who must not know where a device is.",
}
"""What a mode promises and what it does not."""

_PUBLIC = {
    "positions": "{records} messages about where {devices} devices were. No message names a "
    "device: it names an area in which the device was (on average {nodes} road junctions, "
    "{across}), and gives the device a made-up name that changes ({pseudonyms} of them). "
    "{suppressed} of the positions were held back.",
    "table": "A table of {persons} persons. Its rows form {classes} groups of at least {least} "
    "rows that look the same. {suppressed} of {rows} rows were left out. Whoever knows that "
    "somebody is in it, and their quasi-identifiers, picks their row with a probability of at most "
    "{prosecutor}, and {marketer} on average.{others}{anyway}{utility}",
    "records": "{classes} groups of vehicles that look the same, of the stream {stream}, in "
    "{windows} periods of time.",
    "counts": "Numbers of devices, by place and time.",
}


def public(audited: Audited) -> str:
    """Say what was published."""
    return _PUBLIC[audited.kind].format_map(audited.figures)


def promises(audited: Audited) -> str:
    """Say what is promised of positions, and what is not; empty for anything else."""
    return _MODES.get(audited.figures.get("mode", ""), "")


def succeeds(results: Iterable[Result]) -> str:
    """Say what attacks that succeed come to, each question once, in the order of the questions."""
    found = {each.criterion for each in results}
    return "; ".join(said for criterion, said in _SUCCEEDS.items() if criterion in found)


def name_of(result: Result) -> str:
    """Return the name of an attack, with what it attacks and who mounts it."""
    more = [each for each in (result.attribute, result.adversary) if each]
    return f"{result.attack} ({', '.join(more).replace('_', ' ')})" if more else result.attack


def names_of(results: Iterable[Result]) -> str:
    """Return the names of attacks, each once."""
    return ", ".join(dict.fromkeys(map(name_of, results)))


def kinds_of(results: Iterable[Result]) -> str:
    """Return the attacks without what they attack and who mounts them, each once."""
    return ", ".join(dict.fromkeys(each.attack for each in results))


def percent(share: float | None) -> str:
    """Return a share in per cent; empty if there is none."""
    if share is None:
        return ""
    return "less than 0.1%" if 0 < share < _LEAST else f"{share:.1%}"


def interval(result: Result) -> str:
    """Return the interval of 95%; empty if there is none."""
    return "" if result.low is None else f"{percent(result.low)} to {percent(result.high)}"


def control(result: Result) -> str:
    """Return what the control reaches, and what it is; empty if there is none."""
    return "" if result.control is None else f"{percent(result.control)}: {result.against}"


def exposed(result: Result) -> str:
    """Return the success with the most exposed tenth, or the least devices in multiples of k."""
    if result.exposed is None:
        return ""
    if result.criterion is Criterion.SINGLING_OUT:
        return f"{result.exposed:.2f} k"
    against = f"; {result.against} {percent(result.exposed_control)}"
    return percent(result.exposed) + (against if result.exposed_control is not None else "")


def verdict(result: Result) -> str:
    """Return whether an attack stays below its bar, and whether that was promised."""
    bar = f" (bar: {result.bar})" if result.bar else ""
    if result.broken:
        return f"promise broken{bar}"
    if result.holds is False:
        return f"above its bar, not promised{bar}"
    if result.holds:
        return f"{'promised and kept' if result.promised else 'below its bar'}{bar}"
    return "reported"


def checks(results: Iterable[Result]) -> list[str]:
    """Say of checks what they ask and what the answer is, each once; of some how many are left.

    They are attacks that never succeed, and conditions that are met or not; first those that are
    not.
    """
    ordered = sorted(results, key=lambda each: (not each.broken, each.holds is not False))
    told = dict.fromkeys(f"{each.asks} {said}" for each in ordered if (said := _said(each)))
    left = len(told) - MOST_CHECKS
    first = list(told)[:MOST_CHECKS]
    if not told:
        return ["Measured below; no limit was asked for."]
    return [*first, f"{left} more {'is' if left == 1 else 'are'} below."] if left > 0 else first


def _said(result: Result) -> str:
    """Answer what a check asks; empty if there is neither a limit nor a success to tell of."""
    good, bad = ("Yes", "No") if result.criterion is Criterion.TRUTH else ("No", "Yes")
    if result.holds is not None:
        as_promised = f"{good}, as promised." if result.promised else f"{good}."
        broken = "that breaks a promise" if result.promised else "that is not promised"
        return as_promised if result.holds else f"{bad}; {broken}."
    return "Never." if result.success == 0 else ""


def best_of(evidence: EvidenceReport, criterion: Criterion) -> Result | None:
    """Return the attack to tell of first; None if none has a success and a control.

    It is one that breaks a promise, else one above its bar, else one that gains most over its
    control. What tells of crowds, and what never happens and never should, come last.
    """
    mine = [each for each in evidence.results if each.criterion is criterion]
    return max(
        (each for each in mine if each.gain is not None),
        key=lambda each: (
            each.broken,
            each.holds is False,
            bool(each.success or each.control),
            not (question_of(each.attack) or UNKNOWN).of_crowd,
            each.gain or 0.0,
        ),
        default=None,
    )


def gained(result: Result) -> str:
    """Say how much an attack gains over its control, and how sure that is."""
    said = f"Yes in {percent(result.success)} of the cases"
    if result.against == NOTHING:
        return f"{said}, in place of none. {_COUNTED}"
    said += f" ({result.against}: {percent(result.control)})."
    if result.low is None or result.high is None or result.control is None:
        return f"{said} {_COUNTED}"
    if result.low > result.control:
        sure = "more than chance explains"
    elif result.high < result.control:
        sure = "less than chance would reach"
    else:
        sure = "no more than chance explains"
    return (
        f"{said} That is {sure}: after {result.n:,} tries, the true share is between "
        f"{percent(result.low)} and {percent(result.high)} (95% sure)."
    )
