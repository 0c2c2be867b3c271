"""A data protection impact assessment to begin with: filled from settings and findings.

It follows Article 35(7) of the GDPR. What only the operator knows stays an open question: one that
software only seemed to answer would not be asked again.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from anonymizer.audit.attack import Criterion
from anonymizer.audit.evidence.evidence import EvidenceReport
from anonymizer.audit.evidence.evidence_words import (
    ANSWERS,
    ASKS,
    NOT_SAID,
    control,
    exposed,
    interval,
    kinds_of,
    name_of,
    percent,
    public,
    verdict,
)
from anonymizer.audit.evidence.outputs import kept, outputs_of
from anonymizer.outputs.promised import Promised
from anonymizer.settings import Settings
from anonymizer.settings.base import is_loopback

OPEN = "- [ ] **Open:** "
"""How each question begins that only the operator can answer."""
_WHAT = """\
It has the order of Article 35(7) of the GDPR. **A line with an empty box is a question that only \
the operator can answer.** This is a template and no legal advice: what software fills in alone is \
no assessment."""
_NO_SETTINGS = "No settings file was given (`-c`). What is published, and how, is open as well."
_YES_NO = {True: "on", False: "**off**"}

_WHETHER = """\
Is an assessment required: is a high risk likely (Article 35(1)), is it one of the cases of 35(3), \
or on the list of your authority (35(4))? Say why, or why not.
Who is the controller, who are joint controllers and processors (Articles 26 and 28)?"""
_WHY = """\
What are the purposes, and which legitimate interests are pursued, if any?
What is the legal basis (Article 6)? Places can tell of health, religion or politics: does \
Article 9 apply?
Whose devices are they (customers, employees, children), how many, and where?
Who receives the outputs above: anybody, or named recipients under a contract? What else do they \
have that could be combined with them?
How long do the broker, Kafka, logs and recipients keep raw and published data?
Do data leave the European Economic Area (Chapter V)?"""
_NEEDED = """\
Why does the purpose need this output, at this resolution and age? Would counts do, or larger \
regions, or fewer attributes?
Why are k, the sizes and the lifetimes of pseudonyms above enough for these persons?
How are persons informed (Articles 13 and 14), and how do they get access, object, or take no part \
(Articles 15 to 22)?"""
_HARM = {
    Criterion.SINGLING_OUT: "Who could single a person out, with what knowledge, and what would "
    "follow for that person? How likely and how severe is it, and is what remains acceptable?",
    Criterion.LINKABILITY: "Who could link records of a person, within these outputs or with other "
    "data? How likely and how severe is it, and is what remains acceptable?",
    Criterion.INFERENCE: "What could be learned of a person (home, work, habits, a value), and "
    "what would follow? How likely and how severe is it, and is what remains acceptable?",
    Criterion.TRUTH: "Whom would a wrong figure harm, and who would notice it?",
}
_OTHERS = """\
What if raw data leak at the broker, in the network or at a device? The audits above do not cover \
that.
Are the audited data like those that will be published: fleet, hours, area, settings?
Are the data anonymous for each recipient, by all means reasonably likely to be used (Recital 26)? \
Until that is decided, treat them as personal data."""
_GUARDED = """\
Does the broker enforce who may read raw topics, and that a device publishes to its own alone?
Is the disk of the store encrypted, and who can log in to the machines?
Who watches the alerts, and what is done, and told to whom, when a promise is reported as broken \
(Articles 33 and 34)?
Which recipients promise not to re-identify, and how is that checked?
How often are audits repeated, and after which changes?"""
_DECIDED = """\
What does the data protection officer advise (Article 35(2))?
What do persons or their representatives say (Article 35(9)), or why were they not asked?
Does a high risk remain, so that the authority must be consulted first (Article 36(1))?
Decision, name, date and signature.
When is this reviewed: on which date, and on which changes of the risk (Article 35(11))?"""

_SOURCES = """\
Regulation (EU) 2016/679 (GDPR), Articles 35 and 36, Recital 26.
Article 29 Working Party, Guidelines on Data Protection Impact Assessment, WP 248 rev.01, 2017.
Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques, WP 216, 2014."""


def assessed(evidence: EvidenceReport, settings: Settings | None) -> str:
    """Return the template of an impact assessment, as Markdown.

    `settings`: of the gateway that published what was audited; None: they are not known.
    """
    outputs = [] if settings is None else outputs_of(settings)
    lines = [
        "# Data protection impact assessment: draft",
        "",
        f"Filled {evidence.made} by anonymizer {evidence.version}. {_WHAT}",
        *_part("1. Is it required?", [], _WHETHER),
        *_part("2. What is done, and why: Article 35(7)(a)", _done(settings, outputs), _WHY),
        *_part(
            "3. Is it needed, and proportionate: Article 35(7)(b)", _measured(evidence), _NEEDED
        ),
        *_part(
            "4. Risks for persons: Article 35(7)(c)", _risks(evidence, settings, outputs), _OTHERS
        ),
        *_part("5. Measures: Article 35(7)(d)", _measures(settings), _GUARDED),
        *_part("6. Advice, views and decision", [], _DECIDED),
        *_part("Files", _files(evidence), ""),
        *_part("Sources", [f"- {each}" for each in _SOURCES.splitlines()], ""),
    ]
    return "\n".join(lines) + "\n"


def mismatches(evidence: EvidenceReport, settings: Settings) -> list[str]:
    """Return what the settings publish and no audit attacked, and the other way round."""
    audited = [(each.kind, each.figures.get("stream")) for each in evidence.audited]
    outputs = outputs_of(settings)
    published = [(each.kind, each.stream) for each in outputs]
    found = [
        f"{each.name}: published, and not audited"
        for each in outputs
        if each.kind is not None and (each.kind, each.stream) not in audited
    ]
    for each in evidence.audited:
        mode = each.figures.get("mode")
        if each.kind != "table" and (each.kind, each.figures.get("stream")) not in published:
            found.append(f"{each.source}: audits {each.kind} that these settings do not publish")
        elif mode is not None and mode != settings.region.mode:
            found.append(
                f"{each.source}: audits the promise of mode `{mode}`, and the settings have "
                f"`{settings.region.mode}`"
            )
    return found


def _part(title: str, filled: Iterable[str], questions: str) -> Iterator[str]:
    filled = list(filled)
    yield from ("", f"## {title}", "", *filled, *([""] if filled and questions else []))
    for each in questions.splitlines():
        yield f"{OPEN}{each}"


def _table(*rows: Iterable[str]) -> Iterator[str]:
    """Yield a table of Markdown, the first row as its head."""
    for i, row in enumerate(rows):
        cells = [_cell(each) for each in row]
        yield f"| {' | '.join(cells)} |"
        if not i:
            yield f"|{'---|' * len(cells)}"


def _cell(text: str) -> str:
    """Return text that stays in one cell and is no markup of HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _done(settings: Settings | None, outputs: list[Promised]) -> Iterator[str]:
    if settings is None:
        yield _NO_SETTINGS
        return
    yield "What comes in:"
    yield ""
    for each in settings.inputs:
        way = f"Kafka `{each.kafka}`" if each.kafka else f"`{each.topic}`"
        yield f"- positions of {each.kind} devices, {way}, format `{each.codec}`"
    for stream in settings.streams:
        names = ", ".join(f"`{each.name}` ({each.role})" for each in stream.attributes)
        yield f"- records of vehicles, stream `{stream.name}`: {names}"
    yield from ("", "What goes out:", "")
    rows = ((each.name, each.where, each.promise, each.not_promised) for each in outputs)
    yield from _table(("output", "where", "promised", "not promised"), *rows)
    yield from ("", "What the gateway keeps:", "")
    yield from _table(("what", "how long"), *kept(settings).items())


def _measured(evidence: EvidenceReport) -> Iterator[str]:
    yield "What was published, as far as it was audited:"
    yield ""
    for each in evidence.audited:
        yield f"- {public(each)}"


def _risks(
    evidence: EvidenceReport, settings: Settings | None, outputs: list[Promised]
) -> Iterator[str]:
    broken = [each for each in evidence.results if each.broken]
    yield f"**A promise is broken: {kinds_of(broken)}.**" if broken else "No promise is broken."
    unfit = [] if settings is None else mismatches(evidence, settings)
    silent = [each.name for each in outputs if each.kind is None]
    if unfit or silent:
        yield ""
    for each in unfit:
        yield f"- **{each}**"
    if silent:
        yield f"- no audit of its own: {'; '.join(silent)}"
    for criterion in Criterion:
        yield from _criterion(evidence, criterion)
    yield from ("", "What these figures do not say:", "")
    for line in NOT_SAID:
        yield f"- {line}"


def _criterion(evidence: EvidenceReport, criterion: Criterion) -> Iterator[str]:
    answer = ANSWERS[evidence.answers[criterion]]
    yield from ("", f"### {criterion.capitalize()}: {answer}", "", ASKS[criterion], "")
    mine = [each for each in evidence.results if each.criterion is criterion]
    if mine:
        head = ("attack", "success", "95%", "control", "most exposed", "verdict")
        rows = (
            (
                f"**{name_of(each)}**: {each.asks}", percent(each.success), interval(each),
                control(each), exposed(each), verdict(each),
            )
            for each in mine
        )  # fmt: skip
        yield from (*_table(head, *rows), "")
    yield f"{OPEN}{_HARM[criterion]}"


def _measures(settings: Settings | None) -> Iterator[str]:
    if settings is None:
        yield _NO_SETTINGS
        return
    url = urlsplit(settings.broker.url)
    near = ", but it is on this machine" if is_loopback(url.hostname) else ""
    tls = "on" if url.scheme in {"mqtts", "wss"} else f"{_YES_NO[False]}{near}"
    zones, changing = len(settings.zones), any(each.ids_live_s for each in settings.inputs)
    rows = {
        "each group and class is verified by other code before it is published": "on",
        "encrypted connection to the MQTT broker": tls if settings.output.kafka is None
        else "not used, see `kafka.options`",
        "no pseudonym outlives its group or rotation": "on" if settings.inputs else "no positions",
        "areas about which nothing is published": f"{zones}" if zones else _YES_NO[False],
        "persons state such areas themselves, or take no part": _YES_NO[
            settings.device_zones.enabled
        ],
        "first and last parts of trips are held back": _YES_NO[settings.trips.enabled],
        "members beyond k, against devices that an adversary made up": f"{settings.region.k_extra}",
        "a former id of a device is no company for its next one": "on" if changing
        else f"{_YES_NO[False]}, ids are taken to stay",
        "true positions are hidden from the map": _YES_NO[not settings.http.raw_view],
        "attacks on samples of live traffic": f"every {settings.watch.evidence_s:g} s"
        if settings.watch.evidence_s else _YES_NO[False],
    }  # fmt: skip
    yield from _table(("measure", "in these settings"), *rows.items())


def _files(evidence: EvidenceReport) -> Iterator[str]:
    rows = [(each.source, f"`{each.sha256}`") for each in evidence.audited]
    rows += [(name, f"`{digest}`") for name, digest in evidence.files.items()]
    yield from _table(("file", "SHA-256"), *rows)
