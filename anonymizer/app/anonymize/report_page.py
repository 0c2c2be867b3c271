"""HTML page of a report, with its charts embedded."""

from collections.abc import Iterable, Sequence
from html import escape

from anonymizer.app.anonymize.class_charts import class_sizes, losses, shares
from anonymizer.app.anonymize.publication import Publication
from anonymizer.app.anonymize.release_report import (
    AnonymizeReport,
    Losses,
    QuasiIdentifier,
    Sensitive,
)
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import criteria_of

_STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --soft: #f3f4f6; --ink: #222; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --soft: #23262b; --ink: #e4e4e4; --paper: #16181c; }
}
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 0.6rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--line);
  text-align: right; vertical-align: top; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; border-radius: 6px; }
.key { display: flex; flex-wrap: wrap; gap: 0.8rem; padding: 0; list-style: none; }
.key li { background: var(--soft); border-radius: 6px; padding: 0.5rem 0.9rem; }
.key b { display: block; font-size: 1.25rem; }
.warn { border-left: 4px solid #EE7733; padding: 0.2rem 0.9rem; background: var(--soft); }
"""

_LEFT_OUT = {
    "no_identifier": "without an identifier",
    "states_nothing": "that state nothing, and are no person",
    "states_no_qi": "of people who state no quasi-identifier",
    "repeated": "further rows of a person",
    "limit": "chosen under the suppression limit, so that the others lose less",
    "promise": "that fit in no class",
}

_WORDS = {
    "equivalence class": "persons whose published quasi-identifiers are the same.",
    "quasi-identifier": "a column that somebody may know of a person, such as age or postcode.",
    "k": "the fewest distinct persons in a class.",
    "d": "the fewest different values that the members of a class had in a generalized column.",
    "l": "the fewest different sensitive values in a class. Entropy-l is lower where some of them"
    " are more frequent than others: l equally frequent values have an entropy-l of l.",
    "t": "how far the sensitive values of a class are from those of the whole table, at most:"
    " 0, distributed alike; 1, as different as can be.",
    "spread": "the distance between the least and the greatest value of a class, at least.",
    "GCP": "information lost by generalization, the mean over all cells: 0, the value is"
    " unchanged; 1, nothing is left of it. A cell counts by the length of its range, the number of"
    " its values, or the leaves below its node of the hierarchy, as a share of the whole domain.",
    "DM": "discernibility metric: for each row the number of rows that look the same, added up. A"
    " row that is left out looks like all.",
    "linked": "a value that somebody who holds one source of the data learns of a person's other"
    " columns, because it is the only one in the class that fits.",
}


def page(report: AnonymizeReport, publication: Publication) -> str:
    """Return the report as HTML, with its charts; it loads nothing from elsewhere."""
    asked, settings = report.asked, report.settings
    title = f"{settings.table}, {settings.model} by {settings.method}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_sentence(report))}</p>",
        _key_figures(report),
        *(f"<p class=warn>{escape(warning)}</p>" for warning in report.warnings),
        *(f"<p>Counted as one value: {escape(str(fold))}.</p>" for fold in report.folds),
        "<h2>What every class keeps</h2>",
        _promise(report),
        "<h2>How likely a person is found</h2>",
        f"<p>{escape(_likelihood(report))}</p>",
        "<h2>Classes</h2>",
        _plot(class_sizes(publication.class_of, k=asked.k), "Sizes of the classes"),
        "<h2>Quasi-identifiers</h2>",
        _quasi_identifiers(report),
        _plot(losses(report), "Information loss of each quasi-identifier"),
        _plot(shares(report), "Most frequent value of a class, of each quasi-identifier"),
        "<h2>Sources</h2>",
        _table(
            ["source", "largest share of one tuple"],
            [[", ".join(source.qis), _share(source.max_share)] for source in report.sources],
        ),
        *_sensitive(report),
        "<h2>Linkability attack</h2>",
        _leaks(report),
        "<h2>How it was done</h2>",
        _table(
            ["setting", "value"],
            [[name.replace("_", " "), _plain(value)] for name, value in settings],
        ),
        _table(["step", "seconds"], [[step, f"{s:.2f}"] for step, s in report.seconds.items()]),
        "<h2>Words</h2>",
        *(f"<p><b>{escape(word)}</b>: {escape(text)}</p>" for word, text in _WORDS.items()),
    ]
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _sentence(report: AnonymizeReport) -> str:
    left_out = ", ".join(f"{n:,} {_LEFT_OUT[reason]}" for reason, n in report.suppressed.items())
    suppressed = f"Left out: {left_out}." if left_out else "No row was left out."
    return (
        f"{report.n_published:,} of {report.n:,} rows are published in {report.n_classes:,} "
        f"equivalence classes. {suppressed}"
    )


def _likelihood(report: AnonymizeReport) -> str:
    if not report.n_published:
        return "No row is published."
    mean = report.n_classes / report.n_published
    return (
        "Somebody who knows all quasi-identifiers of a person of the table, and nothing else, finds"
        " the person's class and has to guess among its members. The guess is right with a"
        f" probability of at most {1 / report.k:.1%} (1 in {report.k:,}, in the smallest class),"
        f" and of {mean:.1%} (1 in {1 / mean:,.1f}) on average over the published rows."
    )


def _key_figures(report: AnonymizeReport) -> str:
    size = report.class_size
    figures = {
        "least persons of a class": f"{report.k:,}",
        "class size, least / median / most": f"{size.min:,} / {size.median:g} / {size.max:,}",
        f"GCP ({report.settings.cost})": f"{getattr(report.gcp, report.settings.cost):.4f}",
        **({} if report.least_gcp is None else {"least possible": f"{report.least_gcp:.4f}"}),
        "DM": f"{report.dm:,}",
        "DM of the published rows": f"{report.dm_published:,}",
        "values linked between sources": f"{report.n_learned(sensitive=False):,}",
        "sensitive values linked": f"{report.n_learned(sensitive=True):,}",
    }
    items = (f"<li><b>{escape(value)}</b>{escape(name)}</li>" for name, value in figures.items())
    return f"<ul class=key>{''.join(items)}</ul>"


def _promise(report: AnonymizeReport) -> str:
    rows = [[each.what, each.asked, each.reached] for each in report.kept()]
    return _table(["", "asked", "reached"], rows)


def _told(of: QuasiIdentifier | Sensitive, kind: Of) -> list[str]:
    return [each.told(getattr(of, each.key)) for each in criteria_of(kind)]


def _quasi_identifiers(report: AnonymizeReport) -> str:
    heads = [each.head for each in criteria_of(Of.QI)]
    rows = [
        [
            qi.name,
            f"{qi.kind}, from {qi.domain}",
            f"{qi.size:,}",
            f"{qi.n_missing:,}",
            *_told(qi, Of.QI),
            *_losses(qi.ncp),
        ]
        for qi in report.qis
    ]
    blank = [""] * (3 + len(heads))
    rows.append(["all (GCP)", *blank, *_losses(report.gcp)])
    rows.append(["all, published rows alone", *blank, *_losses(report.gcp_published)])
    heads = ["", "domain", "values", "missing", *heads]
    return _table([*heads, "loss: range", "set", "taxonomy"], rows)


def _sensitive(report: AnonymizeReport) -> Iterable[str]:
    if not report.sensitive:
        return
    yield "<h2>Sensitive attributes</h2>"
    heads = [each.head for each in criteria_of(Of.SENSITIVE)]
    yield _table(
        ["", "domain", "values", "missing", *heads, "classes of one value", "people"],
        [
            [
                a.name,
                f"{a.kind}, from {a.domain}",
                f"{a.size:,}",
                f"{a.n_missing:,}",
                *_told(a, Of.SENSITIVE),
                f"{a.n_homogeneous_classes:,}",
                f"{a.n_homogeneous_people:,}",
            ]
            for a in report.sensitive
        ],
    )


def _leaks(report: AnonymizeReport) -> str:
    if not report.leaks:
        return "<p>There is one source and nothing to learn besides.</p>"
    return _table(
        ["who holds", "and knows the", "learns of", "values", "people"],
        [
            [
                ", ".join(leak.known),
                leak.knows,
                ", ".join(leak.learned),
                f"{leak.n_cells:,}",
                f"{leak.n_people:,}",
            ]
            for leak in report.leaks
        ],
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _plot(png: str, text: str) -> str:
    return f'<figure><img alt="{escape(text)}" src="data:image/png;base64,{png}"></figure>'


def _losses(of: Losses) -> list[str]:
    return [f"{of.range:.4f}", f"{of.set:.4f}", f"{of.taxonomy:.4f}"]


def _share(value: float) -> str:
    return f"{value:.1%}"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
