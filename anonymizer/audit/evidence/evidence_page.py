"""HTML page of evidence: a first screen in plain words, then each attack beside its control."""

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from anonymizer.audit.attack import Criterion
from anonymizer.audit.evidence.evidence import Audited, Conclusion, EvidenceReport, Result
from anonymizer.audit.evidence.evidence_plot import MARKS, drawing, gauge, lanes
from anonymizer.audit.evidence.evidence_words import (
    ANSWERS,
    ASKS,
    NOT_SAID,
    best_of,
    checks,
    control,
    exposed,
    gained,
    interval,
    kinds_of,
    name_of,
    names_of,
    percent,
    promises,
    public,
    succeeds,
    verdict,
)

LIGHT = {
    "line": "#c4c7cc", "soft": "#f3f4f6", "ink": "#222222", "paper": "#ffffff",
    "success": "#b3470f", "interval": "#eab08f", "control": "#2f5f94",
    "bad": "#b00020", "good": "#1b6e3c",
}  # fmt: skip
"""Colours on a light screen and on paper, by their use."""
DARK = {
    "line": "#565b63", "soft": "#23262b", "ink": "#e4e4e4", "paper": "#16181c",
    "success": "#f0935a", "interval": "#7d4726", "control": "#8db7e8",
    "bad": "#ff8a94", "good": "#7fd6a0",
}  # fmt: skip
"""Colours on a dark screen."""

_NUMBERS = ("success", "95%", "control", "most exposed")
"""Columns of the tables of attacks; on narrow screens a row is a list, and names those it has."""

_STYLE = """
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 0.2rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 0.2rem; }
h3 { font-size: 1rem; margin: 0; } p { margin: 0.3rem 0 0.6rem; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(13.5rem, 1fr));
  gap: 0.8rem; padding: 0; margin: 0.4rem 0; list-style: none; }
.answers li { background: var(--soft); border-radius: 6px; padding: 0.6rem 0.9rem;
  border-left: 5px solid var(--line); }
.answers li.bad { border-color: var(--bad); } .answers li.held { border-color: var(--good); }
.answers p { margin: 0.2rem 0; } .answer { font-weight: 600; } .bad .answer { color: var(--bad); }
.verdict { font-size: 1.2rem; font-weight: 600; color: var(--good); margin: 0.6rem 0; }
.verdict.bad { color: var(--bad); } .named { font-size: 0.85rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; padding: 0; list-style: none; }
.legend svg { width: 24px; height: 16px; vertical-align: -2px; margin-right: 0.4rem; }
.drawing { width: 100%; display: block; margin: 0.4rem 0; }
.drawing text { font-size: 13px; fill: var(--ink); } .drawing .tick { font-size: 12px; }
.axis { stroke: var(--line); stroke-width: 1.5; } .interval { fill: var(--interval); }
.control { stroke: var(--control); stroke-width: 4; } .success { fill: var(--success); }
.success { stroke: var(--paper); stroke-width: 1; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: 0.6rem 0; }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line);
  text-align: left; vertical-align: top; overflow-wrap: normal; }
th { font-weight: 600; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.hash { font-family: ui-monospace, monospace; font-size: 0.8rem; overflow-wrap: anywhere; }
@media screen and (max-width: 40rem) {
  body { margin: 1rem auto; } .attacks thead { display: none; }
  .attacks :is(table, tbody, tr, td) { display: block; } .attacks td:empty { display: none; }
  .attacks td, .attacks td.n { border: 0; padding: 0.1rem 0; text-align: left; }
  .attacks tr { border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .attacks td[data-is]::before { content: attr(data-is) ": "; font-weight: 600; }
}
@media print {
  body { max-width: none; margin: 0; font-size: 11pt; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  .scroll { overflow: visible; } .answers { grid-template-columns: 1fr 1fr; }
  .answers li, tr, .drawing { break-inside: avoid; } h2 { break-after: avoid; }
}
"""


def page(evidence: EvidenceReport) -> str:
    """Return the evidence as HTML; it loads nothing from elsewhere, and can be printed."""
    parts = [
        "<h1>What this release gives away</h1>",
        f"<p>Made {_moment(evidence.made)} by anonymizer {escape(evidence.version)}.</p>",
        _verdict(evidence),
        "<h2>What is public</h2>",
        _times(evidence),
        *(_published(each) for each in evidence.audited[-1 if evidence.pooled else 0 :]),
        "<h2>What somebody who attacks it gains, and how sure that is</h2>",
        "<ul class=answers>" + "".join(_answer(evidence, each) for each in Criterion) + "</ul>",
        _legend(),
        *(_attacks(evidence, each) for each in Criterion),
        "<h2>What this does not say</h2>",
        "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in NOT_SAID) + "</ul>",
        _hashes(evidence),
    ]
    return framed("What this release gives away", parts)


def framed(title: str, parts: Iterable[str]) -> str:
    """Return a whole page in the style of the evidence, without the parts that are empty."""
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_style()}</style></head>\n"
        "<body><main>\n" + "\n".join(part for part in parts if part) + "\n</main></body></html>\n"
    )


def _style() -> str:
    light, dark = (
        ":root { " + " ".join(f"--{use}: {colour};" for use, colour in colours.items()) + " }"
        for colours in (LIGHT, DARK)
    )
    screen = "@media screen and (prefers-color-scheme: dark)"
    return f":root {{ color-scheme: light dark; }} {light}\n{screen} {{ {dark} }}{_STYLE}"


def _moment(iso: str) -> str:
    return f"on {datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


def _verdict(evidence: EvidenceReport) -> str:
    broken = [each for each in evidence.results if each.broken]
    above = [each for each in evidence.results if each.holds is False and not each.broken]
    kept = sum(each.promised and each.holds is True for each in evidence.results)
    said = '<p class="verdict">No promise is broken.</p>'
    if broken:
        said = f'<p class="verdict bad">A promise is broken: {escape(succeeds(broken))}.</p>'
    elif above:
        said = '<p class="verdict bad">No promise is broken. But attacks succeed against which '
        said += f"nothing is promised: {escape(succeeds(above))}.</p>"
    n = sum(each.promised and each.holds is not None for each in evidence.results)
    said += f"<p>Of {len(evidence.results)} attacks and checks, "
    said += f"{n} are about what is promised" if n else "none is about a promise"
    said += f"; {kept if broken else 'all'} of these turned out well" if n else ""
    said += f", and {n - kept} failed." if broken else "."
    if broken and above:
        said += f" Not promised, and above the limit: {escape(succeeds(above))}."
    for result in broken:
        if result.attack.startswith("direct identifiers ("):
            held = result.attack.partition("(")[2].removesuffix(")")
            name = escape(result.attribute or "")
            said += f'</p><p class="verdict bad">Published as it is: {name}'
            said += f", which holds {escape(held)}."
        elif result.attack.startswith("repeated columns ("):
            told = result.attack.partition("(")[2].removesuffix(")")
            said += '</p><p class="verdict bad">Published beside the labels: '
            said += f"{escape(result.attribute or '')}, which says nearly what {escape(told)} says."
    for each in evidence.apart:
        said += f'</p><p class="verdict bad">These two must not both be public: {escape(each)}.'
    return f"{said}</p>"


def _answer(evidence: EvidenceReport, criterion: Criterion) -> str:
    answer = evidence.answers[criterion]
    kind = {Conclusion.BROKEN: "bad", Conclusion.ABOVE: "bad", Conclusion.HELD: "held"}.get(
        answer, ""
    )
    mine = [each for each in evidence.results if each.criterion is criterion]
    best, failed = best_of(evidence, criterion), [each for each in mine if each.holds is False]
    if best is not None and not best.success and not best.control:
        best = None
    by_figure = ""
    if best is not None:
        unlimited = "" if best.holds is not None else " No limit is set for that."
        by_figure = f"<p>{escape(best.asks)} {escape(gained(best))}{unlimited}</p>"
        by_figure += gauge(next(lanes([best])))
    to_tell = mine if best is None else [each for each in failed if each.asks != best.asks]
    said = "".join(f"<p>{escape(each)}</p>" for each in checks(to_tell)) if to_tell else ""
    shown = by_figure + said if best in failed else said + by_figure
    for how, those in (
        ("Broken", [each for each in failed if each.broken]),
        ("Above the limit", [each for each in failed if not each.broken]),
    ):
        if those:
            named = escape(kinds_of(those))
            shown += f'<p class="named">{how} in the tables below: {named}.</p>'
    return (
        f'<li class="{kind}"><h3>{escape(ASKS[criterion])}</h3>'
        f'<p class="answer">{escape(criterion.capitalize())}: {escape(ANSWERS[answer])}</p>'
        f"{shown}</li>"
    )


def _times(evidence: EvidenceReport) -> str:
    """Say how often what is public was attacked, if one gateway did that again and again."""
    if not evidence.pooled:
        return ""
    n, last = len(evidence.audited), evidence.audited[-1].source
    return (
        f"<p>It was attacked {n} times, and the figures below are of all times together. "
        f"The last time ({escape(last)}), this was public:</p>"
    )


def _published(audited: Audited) -> str:
    text = f"<p>{escape(public(audited))}</p>"
    if promised := promises(audited):
        text += f"<p>{escape(promised)}</p>"
    if audited.left_out:
        left_out = escape(", ".join(audited.left_out))
        text += f"<p>Not attacked, or left out of the attack: {left_out}.</p>"
    return text


def _legend() -> str:
    marks = (
        f'<li><svg viewBox="0 0 24 16" aria-hidden="true">{mark}</svg>{escape(words)}</li>'
        for mark, words in MARKS.items()
    )
    return f"<ul class=legend>{''.join(marks)}</ul>"


def _attacks(evidence: EvidenceReport, criterion: Criterion) -> str:
    mine = [each for each in evidence.results if each.criterion is criterion]
    if not mine:
        return ""
    title = f"{criterion.capitalize()}: attacks beside their controls"
    drawn = [lane for lane in lanes(mine) if lane.success or lane.control]
    drawn.sort(key=lambda lane: (lane.control or 0.0) - lane.success)
    never = [each for each in mine if each.success == 0 and not each.control]
    return (
        f"<h2>{escape(criterion.capitalize())}</h2><p>{escape(ASKS[criterion])}</p>"
        + (drawing(drawn, title=title) if drawn else "")
        + (f"<p>Never: {escape(names_of(never))}.</p>" if never else "")
        + '<div class="scroll attacks" tabindex="0" role="region" '
        f'aria-label="attacks: {escape(criterion)}"><table><thead><tr>'
        + "".join(f"<th scope=col>{each}</th>" for each in ("attack", *_NUMBERS, "verdict"))
        + "</tr></thead><tbody>"
        + "".join(_row(each) for each in mine)
        + "</tbody></table></div>"
    )


def _row(result: Result) -> str:
    numbers = (percent(result.success), interval(result), control(result), exposed(result))
    return (
        f"<tr><td><b>{escape(name_of(result))}</b><br>{escape(result.asks)}</td>"
        + "".join(
            f'<td class=n data-is="{name}">{escape(each)}</td>'
            for name, each in zip(_NUMBERS, numbers, strict=True)
        )
        + f"<td>{escape(verdict(result))}</td></tr>"
    )


def _hashes(evidence: EvidenceReport) -> str:
    files: Iterable[tuple[str, str]] = [
        *((each.source, each.sha256) for each in evidence.audited),
        *evidence.files.items(),
    ]
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td class=hash>{digest}</td></tr>" for name, digest in files
    )
    return (
        "<h2>Files</h2><table><thead><tr><th scope=col>file</th><th scope=col>SHA-256</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )
