"""Persons told of in sentences: telephone numbers, e-mail addresses and names behind titles.

A column of notes tells of somebody in a few rows, so that no majority shows it. Within a sentence
only what is hardly anything else counts: an international number or one behind a word for it, an
address with `@`, and a capitalized name behind a title.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from anonymizer.files.identifiers import Recognized, counted_cells, identifying_columns
from anonymizer.files.tables import TextTable

_TITLES = (
    r"Mrs?|Ms|Miss|Dr|Prof|Herrn?|Frau|Mme|Mlle|Madame|Monsieur|Sra?|Se\u{f1}ora?|Signora?|Dhr"
    r"|Mevr|Mevrouw|Meneer|Pani?|Fru|Rouva|Senhora?"
)
_NUMBER = r"\d[\d ()./-]{5,16}\d"
_CALLS = r"tel|telefon\p{Ll}*|phone|mobile|mob|cell|call|handy|t\u{e9}l|m\u{f3}vil|puh"
_FORMS = {
    "e-mail addresses in sentences": r"[^@\s,;:<>()]+@[^@\s,;<>()]+\.\p{L}{2,}",
    "phone numbers in sentences": rf"(?:^|[^\d.,])(?:\+|00)\(?{_NUMBER}"
    rf"|(?i:\b(?:{_CALLS}))\b[^\d\n]{{0,12}}(?:\(?{_NUMBER})",
    "names of people in sentences": rf"(?:^|[^\p{{L}}])(?:{_TITLES})\.? \p{{Lu}}\p{{Ll}}+",
}
_SENTENCE = r"\p{L}+\P{L}+(?:\S+ +)*\p{L}+|\p{L}{2,}[^\p{L}]+\d"
_SOME, _FEW_HAVE_IT = 0.01, 5


def told_columns(
    original: TextTable,
    release: TextTable,
    *,
    qis: Sequence[str],
    sensitive: Sequence[str],
    keep: Sequence[str],
    markers: Sequence[str],
) -> Iterator[tuple[str, Recognized]]:
    """Yield the columns of `identifying_columns`, and those whose sentences tell of somebody."""
    known = set()
    for name, found in identifying_columns(
        original, release, qis=qis, sensitive=sensitive, keep=keep, markers=markers
    ):
        known.add(name)
        yield name, found
    for name in (*keep, *sensitive):
        if name in known or name not in release.frame.columns:
            continue
        told = told_of(counted_cells(release, name, markers))
        if told is not None:
            yield name, told


def told_of(counted: pl.DataFrame) -> Recognized | None:
    """Return what sentences in a column of text tell of persons, and in how many cells.

    One cell of a hundred is enough, if no more than a few have the same text. `counted`: as of
    `counted_cells`.
    """
    n = int(counted["n"].sum())
    there = counted.filter(pl.col("cell").str.contains(_SENTENCE))
    for kind, form in _FORMS.items():
        fits = there.filter(pl.col("cell").str.contains(form))
        n_cells = int(fits["n"].sum())
        if n_cells >= max(_SOME * n, 1) and n_cells <= _FEW_HAVE_IT * len(fits):
            return Recognized(kind, n_cells, direct=True)
    return None
