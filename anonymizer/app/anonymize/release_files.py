"""The files of a release."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anonymizer.app.anonymize.table_anonymization import Anonymized
from anonymizer.files.atomic_write import FileToWrite, check_distinct, of_content, write_whole
from anonymizer.files.table_writing import write_table
from anonymizer.files.tables import KNOWN_ENDINGS, ending


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePaths:
    """Where the files go; None: no such file."""

    table: Path
    """The table that was read: none of the others may be it."""
    out: Path
    """The release."""
    report: Path | None = None
    page: Path | None = None
    """`report`, `page`: the report, as JSON and as a page."""
    auditor_map: Path | None = None
    """Which row became which, as csv unless its ending is another known one; its owner alone may
    read it."""
    formulas: bool = False
    """Write text that a spreadsheet would run into a csv as it is; see `write_table`."""

    def __post_init__(self) -> None:
        ending(self.out)
        written = [self.out, self.report, self.page, self.auditor_map]
        check_distinct(written, read=[self.table])


def write_release(anonymized: Anonymized, places: ReleasePaths) -> None:
    """Write the files of a release, all of them or none.

    Raises `InputError` if one cannot be written.
    """
    publication, report = anonymized.publication, anonymized.report
    parts: dict[Path, FileToWrite] = {}
    if places.auditor_map is not None:
        name = places.auditor_map.name.lower()
        form = next((known for known in KNOWN_ENDINGS if name.endswith(known)), ".csv")
        row_map = partial(write_table, frame=publication.row_map(), form=form)
        parts[places.auditor_map] = FileToWrite(row_map, private=True)
    if places.report is not None:
        parts[places.report] = of_content(report.model_dump_json(indent=2) + "\n")
    if places.page is not None:
        from anonymizer.app.anonymize.report_page import page  # noqa: PLC0415  plots take long to load

        parts[places.page] = of_content(page(report, publication))
    form = ending(places.out)
    # Readers of parquet expect text; a csv becomes text as it is written.
    frame = publication.as_text() if form == ".parquet" else publication.frame
    release = partial(write_table, frame=frame, form=form, formulas=places.formulas)
    parts[places.out] = FileToWrite(release)
    write_whole(parts)
