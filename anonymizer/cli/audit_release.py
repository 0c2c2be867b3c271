"""Command `anonymizer audit release`: k, l and t of a table that anybody released."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.columns import reasons_of
from anonymizer.cli.terminal import printable
from anonymizer.errors import GuaranteeError, SettingsError
from anonymizer.extras import require


def release(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="csv or parquet, as of ARX, sdcMicro, anonypy or anjana."
        ),
    ],
    qi: Annotated[list[str], typer.Option("--qi", metavar="A,B", help="The quasi-identifiers.")],
    sa: Annotated[
        list[str] | None, typer.Option("--sa", metavar="S,T", help="The sensitive attributes.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Rows that each class must have.")] = 1,
    l: Annotated[  # noqa: E741  the field's name for it
        int, typer.Option("-l", min=1, help="Sensitive values that each class must have.")
    ] = 1,
    t: Annotated[
        float, typer.Option("-t", min=0, max=1, help="Most that a class may differ from the whole.")
    ] = 1.0,
    count: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="How many rows a row stands for, as anonypy writes them."
        ),
    ] = None,
    keep_anyway: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=REASON", help="Why a column is there that holds direct identifiers."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,  # noqa: FBT002  typer's
) -> None:
    """Judge a release by itself, without its original: who made it does not matter.

    Rows that read alike in all quasi-identifiers are a class, whatever its labels look like. Rows
    that are suppressed as a whole, or are totals or headings, are left out and counted. Exit 1 if
    it lacks what is asked, or if another column seems to hold direct identifiers, such as e-mail
    addresses, and no reason says why.

    [bold]Example[/bold]

        anonymizer audit release published.csv --qi age,zip --sa disease -k 5 -l 2
    """
    require("tables")
    from anonymizer.audit.judged_files import judging
    from anonymizer.audit.lone_release import judge_release
    from anonymizer.files.tables import read_table

    qis, sensitive = _names(qi), _names(sa or [])
    with judging("release", table) as judged:
        found = judge_release(read_table(table), qis, sensitive, k_asked=max(k, 2), count=count)
    reasons = reasons_of(keep_anyway)
    if unknown := [name for name in reasons if name not in found.not_judged]:
        raise SettingsError(f"keep-anyway: {unknown[0]} is no column beside --qi and --sa")
    shown = found.n_rows - found.n_suppressed - found.n_nobodys
    if as_json:
        direct = {name: each._asdict() for name, each in found.identifying.items()}
        told = asdict(found) | {"identifying": direct, "judged": judged}
        typer.echo(json.dumps(told, indent=2))
    else:
        alone = f"{found.n_alone:,} of {shown:,} rows" if found.n_alone else "No row"
        lines = [
            f"{alone} can be told apart from all others by {', '.join(qis)}.",
            f"The smallest of {found.n_classes:,} classes has {found.k:,} rows.",
            f"Suppressed as a whole: {found.n_suppressed:,} of {found.n_rows:,} rows.",
        ]
        if found.n_nobodys:
            lines.append(f"Nobody's: {found.n_nobodys:,} rows, as totals, headings and pages are.")
        if found.k_by_wildcards is not None and found.k_by_wildcards != found.k:
            lines.append(f"k is {found.k_by_wildcards:,} if a suppressed cell may be any value.")
        for name, each in found.sensitive.items():
            lines.append(
                f"{name}: at least {each.distinct_l} values in a class (entropy "
                f"{each.entropy_l:.2f}), one is guessed with {each.share:.0%} at most, t is "
                f"{each.t:.3f}{' of ranks' if each.ordered else ''}."
            )
            if each.read_as not in {"numbers", "categories"}:
                lines.append(f"{name}: the cells were taken for {each.read_as}.")
        if found.not_judged:
            lines.append(f"Not judged: {', '.join(found.not_judged)} (neither --qi nor --sa).")
        lines += [
            f"{name} tells the label of {qi}, and more: it may say what the label hides (audit "
            "table asks)."
            for name, qi in found.telling.items()
        ]
        lines.append(
            "Whether labels cover their rows is not known without the table: [20-29] may hold 34 "
            "(audit table asks)."
        )
        typer.echo(printable("\n".join(lines)))
    lacks = [f"k is {found.k}, not {k}"] * (found.k < k)
    for name, each in found.sensitive.items():
        lacks += [f"{name}: l is {each.distinct_l}, not {l}"] * (each.distinct_l < l)
        lacks += [f"{name}: t is {each.t:.3f}, above {t:g}"] * (each.t > t)
    lacks += [
        f"{name}: {each.n_cells:,} cells hold {each.kind}"
        for name, each in found.identifying.items()
        if name not in reasons
    ]
    if lacks:
        raise GuaranteeError(f"{table}: {'; '.join(lacks)}")


def _names(given: list[str]) -> list[str]:
    every = ",".join(given).split(",")
    return list(dict.fromkeys(each.strip() for each in every if each.strip()))
