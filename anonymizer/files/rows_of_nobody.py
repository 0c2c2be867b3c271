"""Rows of a table that nobody is behind: headings, totals, units, separators and page numbers.

A row is a person only by evidence. Evidence against it is what is written where all others have
numbers, and what the row says besides; lines of exports say one thing that no other row says
(`lines_of_exports`). A top-coded age (`90+`) or one that is not known is a person's, and so is a
word that a hierarchy, an order or `--category` declares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from anonymizer.files.coded_columns import TEXT
from anonymizer.files.lines_of_exports import lines_among, stated_alone
from anonymizer.files.tables import TextTable

_TOTALS = (
    "total|totals|grand total|subtotal|sum|summe|gesamt|insgesamt|gesamtsumme|zwischensumme|"
    "somme|ensemble|suma|totale|totaal|\u5408\u8ba1|\u603b\u8ba1|\u0438\u0442\u043e\u0433\u043e"
)
"""Words that begin a line of totals, folded."""

if TYPE_CHECKING:
    from anonymizer.files.coded_table import Declared

_LAST_LINES = 3
_MOSTLY = 0.9
"""Share of the other cells from which a column is one of numbers."""
_NUMBER = r"^[^\p{L}]*\d[^\p{L}]*(?:\p{L}{1,2}|[eE][+-]?\d+|T[\d:.,Z+-]+)?$"
"""A number, date or time in any writing, also with a short unit, `<` or `+`."""
_FIGURES = (
    *("mean", "average", "avg", "median", "minimum", "maximum", "min", "max", "std", "stdev"),
    *("standard deviation", "count", "sub total", "sub-total", "mittelwert", "durchschnitt"),
    *("moyenne", "media", "promedio", "gemiddelde", "\u0441\u0440\u0435\u0434\u043d\u0435\u0435"),
    *("page", "seite", "p\u00e1gina", "pagina", "end", "ende", "eof", "source", "quelle", "note"),
    *("notes", "printed", "exported", "generated"),
)
"""Words that begin lines of figures, of pages and of notes, besides those of totals."""
_JOINED = "\u5408\u8a08|\u5c0f\u8a08|\u5e73\u5747|\u5408\u8ba1|\u603b\u8ba1|\u5c0f\u8ba1"
"""The same in scripts that leave no blanks between words: sums, subtotals, means."""
_SUMMARY = rf"(?i)^[^\p{{L}}\d=]*(?:(?:{'|'.join((*_TOTALS.split('|'), *_FIGURES))})\b|{_JOINED})"
TOTAL = rf"(?i)^(?:{'|'.join(_TOTALS.split('|'))}|{_JOINED}) *\d*:*$"
_SUMMED = rf"(?:{_TOTALS}|average|mean|count|ergebnis|mittelwert|promedio)"
_OF = r"(?:(?:of|for|f\x{fc}r|de|du|di|van)\s+)?"
_OF_GROUP = rf"^(?:{_SUMMED}\b[\s:-]*{_OF}(.+)|(.+?)[\s:-]+{_SUMMED}):?$"
"""What a line of a group's totals is about, as subtotals of spreadsheets name it."""
_FORMULA = r"^'?=\s*(?:[A-Za-z.]+\(|\$?[A-Z]{1,3}\$?\d)"
_IN_BRACKETS = r"^[(\[{<][^\d|]*[)\]}>]$"
"""As units are; `{a|b}` is a label."""
_AROUND = r"^[\s\p{Cf}\p{Cc}]+|[\s\p{Cf}\p{Cc}]+$"
_SEPARATOR = r"^[^\p{L}\d]{4,}$"


@dataclass(frozen=True, slots=True, repr=False)
class _Odd:
    """Distinct cells of a column that tell something of their rows."""

    headings: list[str]
    totals: list[str]
    """`headings`, `totals`: the name of the column, and words of totals."""
    summaries: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """`summaries`, `words`: in a column of numbers: words of figures and formulas, and all that is
    no number and has no digit."""
    lines: list[str] = field(default_factory=list)
    """Of rows that state nothing else, those that nobody is behind."""
    texts: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    """`texts`, `figures`: what is no number in a column of numbers, and the numbers in one of
    texts."""
    groups: list[str] = field(default_factory=list)
    lone_groups: list[str] = field(default_factory=list)
    """`groups`, `lone_groups`: words of totals beside another value, and those of them that are
    there once."""

    @classmethod
    def of(
        cls,
        name: str,
        there: pl.DataFrame,
        missing: Sequence[str],
        *,
        is_qi: bool,
        may_be_numbers: bool,
    ) -> "_Odd":
        """Return those of a column; `there` as for `Nobodies.of`, `missing`: words for no value."""
        bare = _bare("cell")
        headings = there.filter(bare.str.to_lowercase() == name.lower())["cell"].to_list()
        totals = there.filter(bare.str.contains(TOTAL))["cell"].to_list()
        of_groups = _of_groups(there) if is_qi else there.clear()
        first = cls(
            headings,
            totals,
            groups=of_groups["cell"].to_list(),
            lone_groups=of_groups.filter(n=1)["cell"].to_list(),
        )
        if not may_be_numbers:
            return first
        is_number = bare.str.contains(_NUMBER)
        n_numbers = int(there.filter(is_number)["n"].sum())
        is_summary = bare.str.contains(f"{_SUMMARY}|{_FORMULA}")
        is_mark = bare.str.contains(_IN_BRACKETS) | ~bare.str.contains(r"[\p{L}\d]")
        others = there.filter(~is_number & ~bare.is_in(missing)).with_columns(
            plain=pl.when(~is_summary & ~is_mark).then("n").otherwise(0)
        )
        # A word says nothing about the column that it is judged by.
        beside = pl.col("plain").sum() - pl.col("plain")
        odd = others.filter((n_numbers > 0) & (n_numbers >= _MOSTLY * (n_numbers + beside)))
        summaries = odd.filter(is_summary)["cell"].to_list()
        words = odd.filter(~bare.str.contains(r"\d"))["cell"].to_list()
        return replace(first, summaries=summaries, words=words, texts=odd["cell"].to_list())

    def beside(
        self, there: pl.DataFrame, missing: Sequence[str], alone: pl.DataFrame | None
    ) -> "_Odd":
        """Return them with those that what else a row states tells; `alone`: of a QI."""
        bare = _bare("cell")
        is_number = bare.str.contains(_NUMBER)
        stated = there.filter(~bare.is_in(missing))
        lines = [] if alone is None else lines_among(stated, alone, is_number)
        numbers = stated.filter(is_number)
        few = not self.texts and 2 * numbers["n"].sum() < stated["n"].sum()
        return replace(self, lines=lines, figures=numbers["cell"].to_list() if few else [])


@dataclass(frozen=True, slots=True, repr=False)
class Nobodies:
    """What tells the rows of a table that nobody is behind, see `without_nobodies`."""

    declared: "Declared"
    odd_of: dict[str, _Odd]
    marks_of: dict[str, list[str]]

    @classmethod
    def of(
        cls,
        counted: Mapping[str, pl.DataFrame],
        declared: "Declared",
        alone: Mapping[str, pl.DataFrame] | None = None,
    ) -> "Nobodies":
        """Return it for the distinct cells of each column of text.

        `counted`: by name of a column that is not exact, its texts `cell`, and how often each is
        there, `n`. `alone`: as of `stated_alone`, None: lines of exports are not looked for.
        """
        known = {*declared.categories, *declared.orders, *declared.hierarchies}
        missing = ["", "?", *declared.markers]
        odd_of = {
            name: _Odd.of(
                name,
                there,
                missing,
                is_qi=name in declared.qis,
                may_be_numbers=name in declared.qis and name not in known,
            )
            for name, there in counted.items()
        }
        if alone is not None:
            for name in {*declared.qis, *declared.sensitive}.intersection(counted) - known:
                of_qi = alone.get(name) if name in declared.qis else None
                odd_of[name] = odd_of[name].beside(counted[name], missing, of_qi)
        is_mark = pl.col("cell").str.contains(_SEPARATOR)
        marks = {
            name: there.filter(is_mark)["cell"].to_list()
            for name, there in counted.items()
            if name in declared.qis
        }
        return cls(declared, odd_of, marks)

    @property
    def cells(self) -> dict[str, list[str]]:
        """By column: the cells of which one is in each row that may be nobody's."""
        return {
            name: [
                *odd.headings,
                *odd.totals,
                *odd.groups,
                *odd.texts,
                *odd.lines,
                *self._marks(name),
            ]
            for name, odd in self.odd_of.items()
        }

    def _marks(self, name: str) -> list[str]:
        return self.marks_of.get(name, [])

    def rows(self, n: int | None) -> pl.Expr | None:
        """Return which rows are nobody's, None: none is.

        `n`: number of rows, where their order is that of the source, so that the last are known.
        """
        nobody = [
            *_headings(self.odd_of),
            *_totals(self.odd_of, self.declared, n),
            *_among_numbers(self.odd_of, self.declared),
            *_of_exports(self.odd_of, self.declared),
        ]
        if any(self.marks_of.values()):
            first = pl.coalesce(_stated(qi, self.declared) for qi in self.declared.qis)
            nobody.append(first.str.contains(_SEPARATOR) & _is_one_text(self.declared))
        return pl.any_horizontal(each.fill_null(value=False) for each in nobody) if nobody else None


def without_nobodies(
    table: TextTable, declared: "Declared", *, is_release: bool = False
) -> TextTable:
    """Return a table in which rows that nobody is behind state nothing.

    They are: the heading again; a word of totals as the identifier or a quasi-identifier where
    another cell is null, or in one of the last lines, or beside another value of it; where other
    rows have numbers, a word of totals, means, pages and the like, a formula, or any word if
    nothing else is stated; one word in all quasi-identifiers of which one is a number elsewhere, or
    one line of marks; words in brackets in all of them, as units are; and lines of exports, unless
    rows have identifiers, or it is a release, of which such a row may be what is left of somebody.
    """
    kinds = table.frame.select(_all(declared)).schema
    if any(each.is_nested() or each in (pl.Object, pl.Binary) for each in kinds.values()):
        return table  # refused where it is coded
    names = [name for name in kinds if kinds[name] in TEXT and name not in declared.exact]
    counted = {
        name: table.frame[name].cast(pl.String).alias("cell").drop_nulls().value_counts(name="n")
        for name in names
    }
    alone = None
    if declared.id is None and not is_release:
        alone = stated_alone(table.frame, missing_texts(counted, declared))
    nobody = Nobodies.of(counted, declared, alone).rows(len(table))
    if nobody is None:
        return table
    shown = table.frame.with_columns(
        pl.when(~nobody).then(pl.col(name)) for name in declared.columns
    )
    return TextTable(table.path, shown, table.encoding)


def missing_texts(
    counted: Mapping[str, pl.DataFrame], declared: "Declared"
) -> dict[str, list[str] | None]:
    """Return the texts of each column that state nothing, None of one that holds no text."""
    bare = _bare("cell").is_in(["", "?", *declared.markers])
    return {
        name: counted[name].filter(bare)["cell"].to_list()
        if name in counted
        else ["", "?"]
        if name in declared.exact
        else None
        for name in (*declared.qis, *declared.sensitive)
    }


def _headings(odd_of: dict[str, _Odd]) -> list[pl.Expr]:
    if not (len(odd_of) > 1 and all(odd.headings for odd in odd_of.values())):
        return []
    named = [_is_in(name, odd.headings) for name, odd in odd_of.items()]
    heading, partly = pl.all_horizontal(named), pl.any_horizontal(named)
    # Where `smoker` may be all that a column says, it is no heading.
    return [heading & (partly.sum() == heading.sum())]


def _totals(odd_of: dict[str, _Odd], declared: "Declared", n: int | None) -> list[pl.Expr]:
    if not odd_of:
        return []
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in odd_of)
    ends = lacks if n is None else lacks | (pl.int_range(pl.len()) >= n - _LAST_LINES)
    found: list[pl.Expr] = []
    for name, odd in odd_of.items():
        if odd.totals and name not in declared.sensitive:
            found.append(_is_in(name, odd.totals) & ends)
        if odd.groups:
            found += [_is_in(name, odd.groups) & lacks, _is_in(name, odd.lone_groups)]
    return found


def _of_groups(there: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct cells that are a word of totals and another cell."""
    lower = there.with_columns(lower=_bare("cell").str.to_lowercase())
    parts = pl.coalesce(pl.col("lower").str.extract(_OF_GROUP, i) for i in (1, 2))
    found = lower.with_columns(parts.alias("of")).drop_nulls("of")
    return found.filter(pl.col("of").is_in(lower["lower"].implode())) if len(found) else found


def _among_numbers(odd_of: dict[str, _Odd], declared: "Declared") -> list[pl.Expr]:
    found = [_is_in(name, odd.summaries) for name, odd in odd_of.items() if odd.summaries]
    worded = {name: _is_in(name, odd.words) for name, odd in odd_of.items() if odd.words}
    if not worded:
        return found
    stated = {name: _stated(name, declared) for name in _all(declared)}
    for name, is_word in worded.items():
        others = [stated[other].is_null() for other in stated if other != name]
        found += [is_word & pl.all_horizontal(others)] if others else []
    in_brackets = [
        stated[qi].is_null() | stated[qi].str.contains(_IN_BRACKETS) for qi in declared.qis
    ]
    any_word = pl.any_horizontal(worded.values())
    return [*found, any_word & pl.all_horizontal(in_brackets), any_word & _is_one_text(declared)]


def _of_exports(odd_of: dict[str, _Odd], declared: "Declared") -> list[pl.Expr]:
    lines = {name: odd.lines for name, odd in odd_of.items() if odd.lines}
    texts = {name: odd.texts for name, odd in odd_of.items() if odd.texts}
    figures = {name: odd.figures for name, odd in odd_of.items() if odd.figures}
    if not lines and not (texts and figures):
        return []
    lacks = {name: _stated(name, declared).is_null() for name in _all(declared)}
    found = [
        _is_in(name, cells) & pl.all_horizontal(lacks[other] for other in lacks if other != name)
        for name, cells in lines.items()
    ]
    if texts and figures:
        is_text, is_figure = (
            {name: _is_in(name, cells) for name, cells in each.items()} for each in (texts, figures)
        )
        odd = {**is_figure, **is_text}
        both = pl.any_horizontal(is_text.values()) & pl.any_horizontal(is_figure.values())
        found.append(
            both & pl.all_horizontal(lacks[name] | odd.get(name, pl.lit(False)) for name in lacks)
        )
    return found


def _is_one_text(declared: "Declared") -> pl.Expr:
    """Return where all stated quasi-identifiers are one text, and it is there twice."""
    qis = [_stated(qi, declared) for qi in declared.qis]
    first = pl.coalesce(qis)
    both = [*qis, *(_stated(name, declared) for name in declared.sensitive)]
    n_same = pl.sum_horizontal((each == first).fill_null(value=False) for each in both)
    return pl.all_horizontal(qi.is_null() | (qi == first) for qi in qis) & (n_same > 1)


def _all(declared: "Declared") -> tuple[str, ...]:
    direct = () if declared.id is None else (declared.id,)
    return (*direct, *declared.qis, *declared.sensitive)


def _stated(name: str, declared: "Declared") -> pl.Expr:
    """Return the cells of a column as text in small letters, null where a value is missing."""
    bare = _bare(name)
    missing = ["", "?", *declared.markers_of(name)]
    return pl.when(~bare.is_in(missing)).then(bare.str.to_lowercase())


def _bare(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.replace_all(_AROUND, "")


def _is_in(name: str, cells: list[str]) -> pl.Expr:
    return pl.col(name).cast(pl.String).is_in(cells).fill_null(value=False)
