"""HTML page of a report: what it says in words, its charts, and all of its figures."""

from html import escape

from anonymizer.app.anonymize.class_charts import class_sizes, losses, shares
from anonymizer.app.anonymize.publication import Publication
from anonymizer.app.anonymize.release_report import AnonymizeReport
from anonymizer.audit.evidence.evidence_page import framed
from anonymizer.notebooks import html_report

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
    settings = report.settings
    title = f"{settings.table}, {settings.model} by {settings.method}"
    kept = [{"": each.what, "asked": each.asked, "reached": each.reached} for each in report.kept()]
    figures = report.model_dump(exclude={"warnings", "folds"})
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_sentence(report))}</p>",
        *(f"<p><b>{escape(warning)}</b></p>" for warning in report.warnings),
        *(f"<p>Counted as one value: {escape(str(fold))}.</p>" for fold in report.folds),
        html_report("What every class keeps", {"promise": kept}),
        "<h2>How likely a person is found</h2>",
        f"<p>{escape(_likelihood(report))}</p>",
        _plot(class_sizes(publication.class_of, k=report.asked.k), "Sizes of the classes"),
        _plot(losses(report), "Information loss of each quasi-identifier"),
        _plot(shares(report), "Most frequent value of a class, of each quasi-identifier"),
        *([] if report.leaks else ["<p>There is one source and nothing to learn besides.</p>"]),
        f"<div class=scroll>{html_report('All figures', figures)}</div>",
        "<h2>Words</h2>",
        *(f"<p><b>{escape(word)}</b>: {escape(text)}</p>" for word, text in _WORDS.items()),
    ]
    return framed(title, parts)


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


def _plot(png: str, text: str) -> str:
    return f'<figure><img alt="{escape(text)}" src="data:image/png;base64,{png}"></figure>'
