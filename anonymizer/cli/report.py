"""Command `anonymizer report`: what audits found, for whoever decides on a release."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.errors import GuaranteeError, InputError

if TYPE_CHECKING:
    from anonymizer.audit.evidence import EvidenceReport

_NAMESPACE = "anonymizer"


def report(
    out: Annotated[
        Path, typer.Option(help="The page to write; the same as JSON is written beside it.")
    ],
    audits: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="AUDIT...",
            help="Reports of `anonymizer audit`, written with `--json`: of positions, counts, "
            "tables or records, one or several.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M"],
            help="Instead of AUDIT: what the gateway of `-c` found in its own traffic since then "
            "(UTC), all of it together. It needs `watch.reports`.",
        ),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="A release that one of the audits judged: the report states its SHA-256; may be "
            "repeated."
        ),
    ] = None,
    config: ConfigFile = None,
    assessment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="Also begin a data protection impact assessment (Article 35 of the GDPR): a "
            "template in Markdown, filled from the settings and findings. What only you can answer "
            "stays open.",
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY",
            help="Private key of ssh: sign the JSON with `ssh-keygen -Y sign`, into a file .sig.",
        ),
    ] = None,
) -> None:
    """Put what audits found on one page; exit 1 if a promise is broken.

    The page asks what a data protection officer asks: can somebody be singled out, can records be
    linked, can something be inferred? Each attack stands beside its control, with an interval.

    [bold]Example[/bold]

        anonymizer audit stream taxis.parquet cloaked.jsonl --network sf --json audit.json

        anonymizer report audit.json --file cloaked.jsonl --out report.html

        anonymizer report audit.json -c gateway.toml --out report.html --assessment assessment.md

        anonymizer report -c gateway.toml --since 2026-11-01 --out november.html
    """
    from anonymizer.audit.evidence import assessed, evidence_of, page
    from anonymizer.audit.evidence.assessment import OPEN
    from anonymizer.audit.evidence.audit_files import audits_since
    from anonymizer.files.atomic_write import check_distinct, of_content, write_whole

    audits = list(audits or ())
    settings = None if config is None else settings_of(config)
    if bool(audits) == bool(since):
        raise InputError("report: name reports of `anonymizer audit`, or --since and -c")
    if since is not None:
        audits = audits_since(since, settings)
    as_json = out.with_suffix(".json")
    check_distinct([out, as_json, assessment], read=[*audits, *(file or ()), config])
    made = datetime.now(UTC).isoformat(timespec="seconds")
    evidence = evidence_of(
        audits, made=made, files=file or (), settings=config, pooled=since is not None
    )
    texts = {out: page(evidence), as_json: evidence.model_dump_json(indent=2) + "\n"}
    if assessment is not None:
        texts[assessment] = assessed(evidence, settings)
    write_whole({path: of_content(text) for path, text in texts.items()})
    if sign is not None:
        _sign(as_json, sign)
    _tell(evidence)
    typer.echo(f"{out}, {as_json}: {len(evidence.results):,} attacks")
    if assessment is not None:
        typer.echo(f"{assessment}: {texts[assessment].count(OPEN)} questions are open")
    if not evidence.holds:
        broken = ", ".join(dict.fromkeys(each.attack for each in evidence.results if each.broken))
        raise GuaranteeError(f"a promise is broken: {broken}")


def _tell(evidence: "EvidenceReport") -> None:
    for criterion, answer in evidence.answers.items():
        typer.echo(f"{criterion}: {answer}")
    for pair in evidence.apart:
        typer.echo(f"these two must not both be public: {pair}")


def _sign(path: Path, key: Path) -> None:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", _NAMESPACE, "-f", str(key), str(path)]
    path.with_name(f"{path.name}.sig").unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    except FileNotFoundError:
        raise InputError("sign: needs ssh-keygen, which is part of OpenSSH") from None
    if done.returncode:
        raise InputError(f"sign: {key}: is no private key that ssh-keygen can sign with")
