"""The tables of the multi-source experiment: a file of the user's, or a made one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.hierarchies import read_hierarchies, read_orders
from anonymizer.files.tables import read_table
from experiments.made_tables import ADULT_ROWS, adult_like
from experiments.multisource_experiment import Reading, Study

ADULT_SOURCES = (
    ("age", "workclass", "marital-status"),
    ("occupation", "relationship", "native-country"),
)
ADULT_SENSITIVE = "race"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFiles:
    """A table, and what is told of it.

    Attributes
    ----------
    table
        csv or parquet.
    taxonomy, order
        JSON files of hierarchies and of the order of categories; None: there is none, and
        categories are in the order of their hierarchy or of the alphabet.
    sources
        The quasi-identifiers that each of two sources tells.
    sensitive
        The sensitive attribute; None: there is none, and no (k,l,d)-diversity.
    """

    table: Path
    taxonomy: Path | None = None
    order: Path | None = None
    sources: Sequence[Sequence[str]] = ADULT_SOURCES
    sensitive: str | None = ADULT_SENSITIVE


def read_study(files: StudyFiles) -> Study:
    """Read a table in both readings.

    Raises
    ------
    InputError
        If a file cannot be read, or does not fit another.
    SettingsError
        If there are not two sources, or an attribute is declared twice.
    """
    if len(files.sources) != 2:
        raise SettingsError("the experiment is one of two sources")
    qis = tuple(name for source in files.sources for name in source)
    sensitive = () if files.sensitive is None else (files.sensitive,)
    table = read_table(files.table, (*qis, *sensitive))
    hierarchies = {} if files.taxonomy is None else read_hierarchies(files.taxonomy)
    orders = {} if files.order is None else read_orders(files.order)
    of = {}
    for reading in Reading:
        declared = Declared(
            qis=qis,
            sensitive=sensitive,
            sources=files.sources,
            hierarchies=hierarchies,
            orders=orders,
            markers_are_values=reading is Reading.PAPER,
        )
        coded = code_table(table, declared)
        of[reading] = coded.records, coded.schema
    adult = len(table) == ADULT_ROWS and tuple(map(tuple, files.sources)) == ADULT_SOURCES
    return Study(name=files.table.name, adult=adult, of=of)


def made_study(n: int, *, seed: int) -> Study:
    """Return a made table in the shape of Adult."""
    of = {
        reading: adult_like(n, seed=seed, markers_are_values=reading is Reading.PAPER)
        for reading in Reading
    }
    return Study(name="a made table in the shape of Adult", adult=False, of=of)
