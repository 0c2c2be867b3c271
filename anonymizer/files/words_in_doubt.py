"""What may mean something else than it is taken for: it is told, not decided."""

from collections.abc import Iterator

import polars as pl

from anonymizer.domain.spellings import NO_VALUE
from anonymizer.files.coded_columns import texts
from anonymizer.files.coded_table import Declared
from anonymizer.files.identifiers import counted_cells
from anonymizer.files.near_values import MOST_VALUES, near_values
from anonymizer.files.tables import TextTable

_WORDS = (
    "refused|declined|blank|empty|leer|vide|vac\u00edo|vuoto|\u043f\u0443\u0441\u0442\u043e|"
    "\u306a\u3057|\u7121|brak|nil|none|nessuno|keine|-9|-99|-999|-9999|999|9999|99999|9999-12-31|"
    "1900-01-01|0001-01-01|1970-01-01|n.d.|nd|nc|yok|entf\u00e4llt|test|dummy|placeholder|xx|xxx|"
    "xxxx|asdf|qwerty|withheld|not found|void|redacted|suppressed|masked|hidden|deleted|anonymous|"
    "anonym|confidential|pending|awaiting|nothing|not set|not done|not tested|unsure|"
    "inapplicable|inapp|iap|dk|nr|so|ref|rf|refused to answer|prefer not to answer|dont know|"
    "to be confirmed|no info|unkn|missing value|system missing|sysmis|na character|na integer|"
    "pd.na|object object|nullptr|nullvalue|novalue|select|please select|choose|choose one|"
    "bitte w\u00e4hlen|lorem ipsum|foo|geen|saknas|mangler|nieznane|fehlt|fehlend|"
    "trifft nicht zu|o.a|sans objet|s.o|n.c|n/c|no aplica|n\u00e3o se aplica|valeur manquante|"
    "dato mancante|nessun dato|dato no disponible|bd|\u65e0|\u672a\u586b|"
    "\u6682\u65e0|\u7a7a|\u8a72\u5f53\u306a\u3057|\uc5c6\uc74c|kh\u00f4ng r\u00f5|"
    "\u0e44\u0e21\u0e48\u0e17\u0e23\u0e32\u0e1a|\u0905\u091c\u094d\u091e\u093e\u0924|"
    "01/01/1900|01.01.1900|1/1/1900|1900-01-00|1899-12-30|1899-12-31"
)
"""Folded."""
_SIGNS = r"*~^\\!|_.,:;'()\[\]{}<>/?#\x{22}\x{bf}\-"
_SAYS_NOTHING = rf"^[{_SIGNS}]+$|^x{{3,}}$|^\.[a-z]$"
"""Signs alone, crosses, and the further missing values of statistics programs."""
_AROUND = rf"^[{_SIGNS} ]+|[{_SIGNS} ]+$"
_ABBREVIATION = r"^\p{L}(?:[./] ?\p{L}){1,3}$"
_BETWEEN = r" ?[/|,;()\[\]]+ ?| or | ou | oder "
_FILLER, _FAR = r"^-?(7[7.]+|8[8.]+|9[9.]+|[1-9])(\.0)?$", 0.05
"""Numbers that stand for none; so far beyond all others, as a share of their range."""
_HALF = 0.5
_STATED, _TOGETHER = 0.5, 0.1
"""Of merged cells no more than that share states anything, and of these followed by another."""


def in_doubt(table: TextTable, declared: Declared) -> Iterator[str]:
    """Yield a sentence for each column with words that may mean no value, and count as one.

    And for each column with values that may be writings of one, or that looks like merged cells,
    and each group of a hierarchy whose name is a range without a value that it holds. No value of
    the table is quoted but such words.
    """
    if declared.hierarchies:
        yield from _misnamed(declared)
    if declared.id is not None and (n := _check_digits(texts(table, declared.id))):
        yield (
            f"{declared.id}: {n:,} identifiers of 14 to 16 digits begin as one of another length:"
            " an IMEI with and without its last digits is one device, and counts as several"
        )
    for name in (*declared.qis, *declared.sensitive):
        counted = counted_cells(table, name, declared.markers_of(name))
        # Where most cells state a value, none are merged: as text all cells cost far more.
        mostly = counted["n"].sum() > _STATED * len(table)
        if not mostly and (told := merged_cells(texts(table, name))):
            yield f"{name}: {told}"
        if n_near := near_values(_categories(counted["cell"])):
            yield (
                f"{name}: {n_near:,} values may be another one with its words in another order, cut"
                " short, with further ones or spelled otherwise, and count as others: write in one"
                " way what is one"
            )
        known = counted.filter(_may_say_nothing(counted["cell"]))
        if len(known):
            said = ", ".join(known["cell"].unique().sort())
            yield (
                f"{name}: {known['n'].sum():,} cells may say that there is no value, and count as "
                f"one: {said} (--missing names such words)"
            )


def _categories(cells: pl.Series) -> list[str]:
    """Return the distinct cells of a column, if most of them are no numbers; else none."""
    if len(cells) > MOST_VALUES:
        return []
    n_numbers = int(cells.str.contains(r"^\p{Sc}?[+-]?\d[\d.,]*$").sum())
    return [] if n_numbers > _HALF * len(cells) else cells.to_list()


def _may_say_nothing(cells: pl.Series) -> pl.Series:
    """Return which distinct cells are words or numbers that may stand for none, or signs alone.

    With signs around them, or several of them together: `<none>`, `don't know/refused`.
    """
    folded = cells.str.normalize("NFKC").str.to_lowercase()
    bare = _bare(folded).to_frame("bare")
    known = _bare(pl.Series(sorted({*_WORDS.split("|"), *map(str.casefold, NO_VALUE)})))
    known = known.filter(known.str.contains(r"\p{L}")).implode()  # -99 is no 99
    parts = pl.col("bare").str.split("/")
    is_known = bare.select(
        (pl.col("bare") != "") & parts.list.eval(pl.element().is_in(known)).list.all()
    ).to_series()
    exact = folded.is_in(_WORDS.split("|"))
    return exact | is_known | folded.str.contains(_SAYS_NOTHING) | _fillers(cells)


def _bare(folded: pl.Series) -> pl.Series:
    """Return texts without signs around them, and abbreviations without theirs."""
    bare = folded.str.replace_all(_AROUND, "").str.replace_all("[_ ]+", " ")
    bare = bare.str.replace_all(r"\bn/a\b", "na")
    letters = bare.str.replace_all("[./ ]", "")
    return letters.zip_with(bare.str.contains(_ABBREVIATION), bare.str.replace_all(_BETWEEN, "/"))


def _fillers(cells: pl.Series) -> pl.Series:
    """Return which cells of a column of numbers stand for none by where they stand: far away."""
    number = cells.cast(pl.Float64, strict=False)
    others = number.filter(~cells.str.contains(_FILLER) | (number.is_between(0, 9)))
    none = pl.repeat(value=False, n=len(cells), eager=True)
    if number.null_count() > _TOGETHER * len(cells) or len(others.drop_nulls()) < 2:
        return none
    least, most = float(others.min()), float(others.max())  # type: ignore[arg-type]
    beyond = _FAR * (most - least)
    is_far = (number > most + beyond) | ((number < least) & (number < 0) & (least >= 0))
    return (is_far & cells.str.contains(_FILLER)).fill_null(value=False)


def merged_cells(cells: pl.Series) -> str:
    """Return what to say of a column that states a value once for all rows below it, else nothing.

    So a spreadsheet exports merged cells: the first row states a value, hardly any that does is
    followed by another, and no two that follow each other state the same. O(n).
    """
    at = cells.is_not_null().arg_true()
    n, n_stated = len(cells), len(at)
    if n_stated < 2 or n_stated > _STATED * n or at[0] != 0:
        return ""
    stated = cells.gather(at)
    n_together = int((at.diff().drop_nulls() == 1).sum())
    if n_together > _TOGETHER * n_stated or (stated == stated.shift(1)).any():
        return ""
    return (
        f"{n - n_stated:,} cells are empty below one that states a value, as merged cells of a "
        "spreadsheet are: they count as missing; fill them down if they mean what is above"
    )


def _check_digits(ids: pl.Series) -> int:
    """Return how many identifiers may be an IMEI of which others have more or fewer digits."""
    imei, digits = pl.col("imei"), pl.col("imei").str.len_bytes()
    found = ids.unique().to_frame("imei").filter(imei.str.contains("^[0-9]{14,16}$"))
    return len(found.filter(digits.n_unique().over(imei.str.head(14)) > 1))


def _misnamed(declared: Declared) -> Iterator[str]:
    from anonymizer.files.hierarchies import misnamed  # noqa: PLC0415  few tables have one

    for name, branches in declared.hierarchies.items():
        for label, leaves in misnamed(branches).items():
            more = f" ({len(leaves):,} values)" if len(leaves) > 1 else ""
            yield (
                f"{name}: the group {label} of its hierarchy holds {leaves[0]}, which it says it "
                f"does not{more}: readers take it by its name"
            )
