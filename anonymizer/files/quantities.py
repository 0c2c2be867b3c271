"""Numbers with a unit or a currency: a column in which all have the same is one of numbers.

`17%`, `34 years` and `$26.12` are. Where it is doubtful which number is meant, the cells stay what
they are, and it is said what to do.
"""

from dataclasses import dataclass

import polars as pl

from anonymizer.domain.exact_units import other_unit, usual_units
from anonymizer.domain.records import Unit
from anonymizer.domain.spellings import CURRENCIES, SAME_UNIT
from anonymizer.files.written_numbers import PADDED, plain_numbers, read_as_numbers

_NUMBER = r"[+-]?(?:\d[\d.,'\x{a0}\x{202f} ]*\d|\d|\.\d+)"
_BEFORE = rf"(?:\p{{Lu}}{{0,2}}\p{{Sc}}|(?:{CURRENCIES}))[ \x{{a0}}\x{{202f}}]?"
_LETTERS = r"[\p{L}\p{M}]{1,14}\.?(?:/[\p{L}\p{M}]{1,7}\.?)?[\x{b2}\x{b3}]?"
_SIGNS = r"[%\x{2030}\x{b0}\x{ba}]|\x{b0} ?\p{Lu}|\p{Sc}"
_AFTER = rf"[ \x{{a0}}\x{{202f}}]?(?:{_SIGNS}|{_LETTERS})"
_QUANTITY = rf"^(?<before>(?:{_BEFORE})?)(?<number>{_NUMBER})(?<after>(?:{_AFTER})?)$"
_OF_TWO = (
    r"^\d+ ?(?:['\x{2019}\x{2032}]|\p{L}{1,7}\.?,?) ?\d+(?:[.,]\d+)?"
    r" ?(?:['\x{2019}\x{2032}\"\x{201d}\x{2033}]{1,2}|\p{L}{1,7}\.?)$"
)
"""`5'11"`, `5 ft 11 in`."""
_POINTED = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"
_NEARLY_ALL, _MOST_UNITS, _LONG = 0.9, 5, 3
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_TOLD = "categories, although {} cells are numbers {}"


@dataclass(frozen=True, slots=True, repr=False)
class Quantities:
    """A column of numbers with one unit.

    `numbers`: plain decimals as text, null where a cell is; `how`: how they are read, in words.
    """

    numbers: pl.Series
    unit: Unit
    how: str


def quantities(column: pl.Series, *, as_written: bool = False) -> Quantities | str:
    """Return a text column as numbers with one unit, or what else it holds, in words.

    A cell without a unit has that of the others. Units are the same in any case, with or without a
    point or a plural's s; published is the most frequent writing. It quotes no cell.

    `as_written`: whether cells are published as they are: all must then have one writing of the
    unit, and numbers be plain.
    """
    cells = column.drop_nulls().unique().sort()
    parts = _parts(cells)
    there = parts.drop_nulls("number")
    with_unit = there.filter((pl.col("before") != "") | (pl.col("after") != ""))
    n_all, n_read, n_with = len(cells), len(there), len(with_unit)
    if not n_with or n_read < _NEARLY_ALL * n_all:
        n_of_two = int(cells.str.contains(_OF_TWO).sum())
        if n_of_two and n_of_two >= _NEARLY_ALL * n_all:
            return _TOLD.format("most", "in two units, as feet and inches: write one number")
        return "categories"
    units = with_unit.group_by("unit").len("n").sort("n", "unit", descending=True)
    if len(units) > 1:
        are_known = units["unit"].str.len_chars().max() != 1 and not {*units["unit"]} & _ORDINALS
        is_told = len(units) <= _MOST_UNITS and n_with > len(units) and are_known
        return (
            _TOLD.format("most", "in different units: write all in one") * is_told or "categories"
        )
    if n_read < n_all:
        return _TOLD.format("most", "with a unit: write all so")
    return _of_one_unit(column, there, with_unit, as_written=as_written)


def numbers_of(column: pl.Series) -> pl.Series:
    """Return a text column with its numbers written plainly and without a unit, where all are."""
    bare, how = plain_numbers(column)
    found = quantities(column) if how.startswith("categories") else None
    return found.numbers if isinstance(found, Quantities) else bare


def _of_one_unit(
    column: pl.Series, there: pl.DataFrame, with_unit: pl.DataFrame, *, as_written: bool
) -> Quantities | str:
    writings = with_unit.group_by("before", "after").len("n")
    before, after, _ = writings.sort("n", "before", "after", descending=True).row(0)
    number = there["number"]
    if number.str.contains(PADDED).any():
        return "categories"  # codes
    if as_written and (
        len(writings) > 1 or len(with_unit) < len(there) or not read_as_numbers(number)
    ):
        return _TOLD.format("all", "with a unit: write them plainly, and the unit into the name")
    pointed = number.str.contains(_POINTED)
    if pointed.any() and not number.filter(~pointed).str.contains(r"[.,]").any():
        return _doubt("a point could be of decimals or of thousands")
    try:
        bare, how = plain_numbers(number)
    except ValueError:
        return _doubt("a comma could be of decimals or of thousands")
    if not how.startswith("numbers"):
        return "categories"
    numbers = column.replace_strict(there["cell"], bare, default=None, return_dtype=pl.String)
    unit = f"{before}{after}".strip()
    return Quantities(
        numbers.alias(column.name), Unit(before, after), f"{how}, with a unit: {unit}"
    )


def _doubt(why: str) -> str:
    return _TOLD.format("all", f"with a unit: {why}, so write them plainly")


def _parts(cells: pl.Series) -> pl.DataFrame:
    """Return cells with their parts, null where one is no quantity, and the unit in one writing."""
    frame = pl.DataFrame({"cell": cells.alias("cell")})
    frame = frame.with_columns(pl.col("cell").str.extract_groups(_QUANTITY).alias("parts"))
    both = pl.concat_str("before", "after").str.strip_chars()
    bare = both.str.to_lowercase().str.replace(r"\.$", "")
    is_plural = (bare.str.len_chars() > _LONG) & bare.str.ends_with("s")
    bare = pl.when(is_plural).then(bare.str.strip_suffix("s")).otherwise(bare)
    frame = frame.unnest("parts")
    bare_cell = pl.concat_str("number", "after")
    numbered = frame.select(bare_cell).to_series().drop_nulls()
    usual = usual_units(numbered)
    is_other = bare_cell.is_in([each for each in numbered if other_unit(each, usual)])
    return frame.with_columns(unit=pl.when(is_other).then(both).otherwise(bare.replace(SAME_UNIT)))
