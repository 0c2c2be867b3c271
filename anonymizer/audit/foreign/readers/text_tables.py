"""Tables: csv and parquet."""

from pathlib import Path

from anonymizer.audit.foreign.readers.reader import FileKind
from anonymizer.files.tables import read_table

_ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".tsv.gz", ".txt.gz", ".parquet")


def _recognizes(path: Path, _head: bytes) -> bool:
    return path.name.lower().endswith(_ENDINGS)


READER = FileKind("a table", _recognizes, lambda path: read_table(path).frame)
