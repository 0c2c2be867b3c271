"""`anonymizer audit table`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anonymizer.cli.columns import (
    Bands,
    Categories,
    Domains,
    Hierarchies,
    Id,
    Labels,
    Many,
    Markers,
    Orders,
    Qis,
    Sensitive,
    Sources,
    bands_of,
    declared_columns,
    label_forms,
    least_spreads,
    times_of,
)
from anonymizer.cli.findings import findings_table, write_text
from anonymizer.errors import GuaranteeError

if TYPE_CHECKING:
    from anonymizer.app.audit.table_report import TableAuditReport


def table(
    original: Annotated[Path, typer.Argument(metavar="TABLE", help="What `anonymize` read.")],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="What it published.")],
    qi: Qis,
    auditor_map: Annotated[Path, typer.Option(help="MAP.csv of `anonymize`.")],
    sa: Sensitive = "",
    id_: Id = None,
    source: Sources = None,
    hierarchy: Hierarchies = None,
    order: Orders = None,
    domain: Domains = None,
    category: Categories = None,
    label: Labels = None,
    missing: Markers = None,
    as_published: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option("--as-published", help="A missing value is a value, as in the paper.")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="Persons of a class, at least.")] = 1,
    d: Annotated[int, typer.Option("-d", min=0, help="Values of every QI, at least.")] = 0,
    l: Annotated[  # noqa: E741  the field's name for it
        int, typer.Option("-l", min=0, help="Values of every sensitive attribute, at least.")
    ] = 0,
    max_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of a class that may have one value.")
    ] = 1.0,
    max_source_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share that may have one source's values in common.")
    ] = 1.0,
    min_spread: Annotated[
        Many,
        typer.Option(metavar="A=X", help="Distance of the ends of a number in a class, at least."),
    ] = None,
    entropy_l: Annotated[
        float, typer.Option(min=1, help="exp(entropy) of a sensitive attribute, at least.")
    ] = 1.0,
    t: Annotated[
        float | None,
        typer.Option("--t", min=0, help="Distance of its distribution from the table's, at most."),
    ] = None,
    bands: Bands = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="Where the report goes as JSON; -: print it.")
    ] = None,
) -> None:
    """Check a release of a table against its original, and attack it; exit 1 if it fails.

    What is asked for (-k, -d, ...) is required; the rest is reported. With -d 2 the linkability
    attack must find nothing between sources, with -l 2 nothing sensitive.

    [bold]Example[/bold]

        anonymizer audit table people.csv out.csv --auditor-map map.csv --qi age,job,zip
        --sa illness --id name --source age,job --source zip -k 20 -d 2
    """
    from anonymizer.app.audit.table_audit import audit_table
    from anonymizer.domain.promises import Promise
    from anonymizer.files.tables import read_table

    declared = declared_columns(
        qi=qi,
        sa=sa,
        id_=id_,
        source=source,
        hierarchy=hierarchy,
        order=order,
        domain=domain,
        category=category,
        times=times_of(label_forms(label)),
        missing=missing,
        missing_is_a_value=as_published,
    )
    promise = Promise(
        k=k,
        d=d,
        l=l,
        max_share=max_share,
        max_source_share=max_source_share,
        min_spread=least_spreads(min_spread),
        entropy_l=entropy_l,
        t=float("inf") if t is None else t,
    )
    console = Console(stderr=True)
    with console.status("auditing"):
        read = read_table(original, declared.columns)
        report = audit_table(
            read, release, declared, promise, auditor_map=auditor_map, bands=bands_of(bands)
        )
    as_json = report.model_dump_json(indent=2) + "\n"
    printed = json_out == Path("-")
    if printed:
        typer.echo(as_json, nl=False)
    elif json_out is not None:
        write_text(json_out, as_json)
    (console if printed else Console()).print(
        _summary(report, str(release)), findings_table(report.findings)
    )
    if not report.holds:
        failed = ", ".join(dict.fromkeys(finding.attack for finding in report.failures))
        raise GuaranteeError(f"{release}: does not keep what was asked for: {failed}")


def _summary(report: "TableAuditReport", title: str) -> Table:
    summary = Table(title=escape(title), show_header=False)
    summary.add_row("rows", f"{report.n_rows:,}, {report.suppressed_share:.1%} suppressed")
    summary.add_row("persons", f"{report.n_persons:,}")
    summary.add_row(
        "classes",
        f"{report.n_classes:,}: rows min {report.size_min:,}, median {report.size_median:g}, "
        f"max {report.size_max:,}",
    )
    loss = report.gcp
    summary.add_row(
        "GCP", f"range {loss.range:.4f}, set {loss.set:.4f}, taxonomy {loss.taxonomy:.4f}"
    )
    summary.add_row("DM", f"{report.dm:,}")
    return summary
