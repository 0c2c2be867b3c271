"""Result files of a search."""

import csv
import io
from functools import partial
from pathlib import Path
from typing import BinaryIO

from anonymizer.app.tuning.tune_report import EvaluatedTrial, TuneReport
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import FileToWrite, of_content, write_whole

JOURNAL, TABLE, REPORT, PLOT, PROPOSAL = (
    "journal.jsonl",
    "results.csv",
    "results.json",
    "front.png",
    "recommended.toml",
)


def folder(path: Path) -> Path:
    """Return a folder, created if it does not exist.

    Raises `InputError` if it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def write_results(report: TuneReport, proposal: str | None, out: Path) -> list[Path]:
    """Write all files or none, and return their paths.

    `proposal`: the recommended settings as TOML. None: there are none; a file of an earlier search
    is deleted.

    Raises `InputError` if a file cannot be written.
    """
    parts = {
        out / TABLE: of_content(table_of(report)),
        out / REPORT: of_content(report.model_dump_json(indent=2) + "\n"),
        out / PLOT: FileToWrite(partial(_draw, report=report)),
    }
    if proposal is not None:
        parts[out / PROPOSAL] = of_content(proposal)
    write_whole(parts)
    if proposal is None:
        (out / PROPOSAL).unlink(missing_ok=True)
    return list(parts)


def table_of(report: TuneReport) -> str:
    """Return all trials as csv, in the order of the report."""
    rows = [_row(trial) for trial in report.trials]
    file = io.StringIO(newline="")
    written = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    written.writeheader()
    written.writerows(rows)
    return file.getvalue()


def _row(trial: EvaluatedTrial) -> dict[str, object]:
    promised = trial.configuration.model_dump()
    found = trial.model_dump(exclude={"configuration", "fold_scores"})
    flags = {name: str(value).lower() for name, value in found.items() if isinstance(value, bool)}
    return {**promised, "without": ",".join(trial.configuration.without), **found, **flags}


def _draw(file: BinaryIO, *, report: TuneReport) -> None:
    from anonymizer.app.tuning.front_chart import draw_front  # noqa: PLC0415  plots take long to load

    draw_front(file, report)
