"""Profile of a table before it is anonymized: which columns name people, and what hiding costs.

What an adversary knows of a person is not in the table. A suggestion is made from what is: the name
of a column, the form of its cells, and whether it tells people apart, alone and with others. In
doubt it is a quasi-identifier.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.risks import risk
from anonymizer.algorithms.records.special_uniques import (
    SpecialUniques,
    special_uniques,
    unique_by_one,
)
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.audit.repeating_columns import alike_columns
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import texts
from anonymizer.files.coded_table import Declared, cells_of, code_table
from anonymizer.files.column_names import said_by
from anonymizer.files.free_text import told_of
from anonymizer.files.identifiers import recognized
from anonymizer.files.tables import TextTable
from anonymizer.files.words_in_doubt import merged_cells

_ALL_SETS = 10
"""Columns of which every set is looked at; of more, sets of up to `_FEW`."""
_FEW = 3
_MOST_ROWS = 60_000_000
"""So many rows are looked at, in all sets of columns: some seconds."""
_MANY = 0.1
"""Share of the rows with a value of their own above which a column would have all the scores."""
_MOST, _LEAST_CELLS = 0.5, 20
"""Share of such rows above which text names people, and the fewest rows that say so."""
_FEW_VALUES = 10
"""A column named like an identifier that has fewer values, and less than a row each, is none."""
_LITTLE = 0.01
"""Share of the SUDA scores, and of rows that are unique by it, below which a column adds little; of
the scores at most a tenth of what a column has on average."""
_SUPPRESS = (0.01, 0.05, 0.1)
_T = (0.5, 0.3, 0.2, 0.1)
_WEIGHT = 3.0
_MOST_PRICED = 250
"""So many quasi-identifiers are looked at, in all prices: some seconds."""
_METHOD = "mondrian"
"""The one method that is quick and knows weights."""

Role = Literal["identifier", "quasi-identifier", "sensitive", "little", "nothing"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, self.model_dump())


class ColumnProfile(_Part):
    """How far a column tells people apart.

    Attributes
    ----------
    read_as
        What its cells were taken for.
    n_distinct
        Number of its values; a missing value is one.
    distinction, separation
        Values per row, and share of the pairs of rows that it tells apart, as ARX has them.
    unique_alone
        Share of the rows whose value nobody else has.
    part
        Share of the SUDA scores of all rows in which it takes part; None: it names people, tells
        nothing, is sensitive or has a value for each row, and was left out of them.
    unique_by_it
        Share of the rows that are unique by all columns together and would not be without it.
    suggestion, why
        What it seems to be, and the reason; and which other columns it tells, so that it must not
        be published beside their labels.
    """

    name: str
    read_as: str
    n_distinct: int
    distinction: float
    separation: float
    unique_alone: float
    part: float | None
    unique_by_it: float | None
    suggestion: Role
    why: str


class Price(_Part):
    """What a release of the table loses where one more thing is asked, by `mondrian`.

    Attributes
    ----------
    asked
        What is asked beyond k.
    weighted
        Column whose loss counts three times; None: all count the same.
    why_not
        Why there is no such release; None: there is one.
    gcp, suppressed_share, n_classes, risk_average
        Information loss (range), share of the rows left out, classes, and the average risk.
    ncp
        The loss of each quasi-identifier.
    t
        Largest distance of any sensitive attribute; None: there is none.
    """

    asked: str
    weighted: str | None = None
    why_not: str | None = None
    gcp: float | None = None
    suppressed_share: float | None = None
    n_classes: int | None = None
    risk_average: float | None = None
    ncp: dict[str, float] = {}
    t: float | None = None


class ProfileReport(_Part):
    """The profile of a table.

    Attributes
    ----------
    n_rows
        Number of rows.
    columns
        In the order of the table, without those that are sensitive.
    together
        The columns that are looked at together: the declared quasi-identifiers, or those that seem
        to be some.
    share_unique, risk_average, share_at_risk
        Of the table as it is, by these: the rows that are unique, the average probability of naming
        the person of a row, and the rows for which it is above 0.2.
    all_sets
        Whether all sets of up to three columns (of up to ten columns: all sets) were looked at, or
        as many as there was time for.
    dis_highest, dis_average
        Probability that a match with a unique row is right (DIS-SUDA), of a table that is the share
        `sampled` of its population.
    prices
        What a release would lose; empty without k. Of many columns as many as there is time for.
    not_read
        Columns that were not looked at, as they hold lists, maps or structures.
    """

    n_rows: int
    sampled: float
    columns: tuple[ColumnProfile, ...]
    together: tuple[str, ...]
    share_unique: float
    risk_average: float
    share_at_risk: float
    all_sets: bool
    dis_highest: float
    dis_average: float
    prices: tuple[Price, ...]
    not_read: tuple[str, ...] = ()


def profile(
    table: TextTable,
    declared: Declared,
    *,
    sampled: float,
    at_risk: float,
    k: int | None = None,
    chosen: bool = False,
    progress: Callable[[str], None] = lambda _asked: None,
) -> ProfileReport:
    """Profile a table.

    Parameters
    ----------
    declared
        Its quasi-identifiers are the columns to look at.
    sampled
        Share of the population that the table is, for DIS-SUDA.
    at_risk
        Records whose risk is larger are counted.
    k
        Also form classes of k persons, with one thing more asked each time.
    chosen
        Whether the columns are known to be the quasi-identifiers, whatever they seem to be.

    Raises
    ------
    InputError
        If the table does not match its declaration.
    """
    there = _readable(table.frame)
    asked = [name for name in declared.qis if chosen or there[name]]
    if not asked:
        raise InputError(f"{table.path}: has no column to look at")
    not_read = [name for name in declared.qis if name not in asked]
    declared = replace(declared, qis=asked)
    coded = code_table(table, declared)
    codes, names = coded.records.qi, [qi.name for qi in coded.schema.qis]
    n = len(codes)
    alone = [_alone(column) for column in codes.T]
    told = [
        _told(cells_of(table, declared, name), coded.read_as[name], alone[j])
        for j, name in enumerate(names)
    ]
    held = [j for j, (size, _, unique) in enumerate(alone) if unique < _MANY and told[j] is None]
    found = _uniques(codes[:, held], sampled)
    lost = unique_by_one(codes[:, held])
    little = min(_LITTLE, 0.1 * found.part.mean()) if held else 0.0
    part = {j: (float(found.part[at]), float(lost[at])) for at, j in enumerate(held)}
    suggested = [found_out or _scored(*part[j], little=little) for j, found_out in enumerate(told)]
    alike = alike_columns(coded.records, coded.schema, seed=0)
    suggested = [
        (role, "; ".join([why, *_besides(table, name, alike.get(name))]))
        for name, (role, why) in zip(names, suggested, strict=True)
    ]
    columns = tuple(
        _column(name, coded.read_as[name], n, alone[j], part=part.get(j), suggested=suggested[j])
        for j, name in enumerate(names)
    )
    seem = [j for j, (role, _) in enumerate(suggested) if role == "quasi-identifier"]
    used = list(range(len(names))) if chosen else seem
    size = np.bincount(numbered(codes[:, used]))
    before = risk(size, 1 / size, threshold=at_risk)
    together = found if used == held else _uniques(codes[:, used], sampled)
    price_of: tuple[Price, ...] = ()
    if k is not None and used:
        declared = replace(declared, qis=[names[j] for j in used])
        price_of = tuple(_prices(table, declared, k, progress))
    return ProfileReport(
        n_rows=n,
        sampled=sampled,
        columns=columns,
        together=tuple(names[j] for j in used),
        share_unique=together.share_unique,
        risk_average=before.average,
        share_at_risk=before.share_above,
        all_sets=found.complete and together.complete,
        dis_highest=float(together.dis.max(initial=0.0)),
        dis_average=float(together.dis.mean()) if n else 0.0,
        prices=price_of,
        not_read=tuple(not_read),
    )


def _readable(frame: pl.DataFrame) -> dict[str, bool]:
    """Return by column whether its cells can be read; lists, maps and structures cannot."""
    return {
        column.name: not (column.dtype.is_nested() or column.dtype == pl.Object) for column in frame
    }


def _uniques(codes: Int32Array, sampled: float) -> SpecialUniques:
    largest = None if codes.shape[1] <= _ALL_SETS else _FEW
    return special_uniques(codes, sampled=sampled, largest=largest, most_rows=_MOST_ROWS)


def _alone(column: Int32Array) -> tuple[int, float, float]:
    """Return the number of values, the share of pairs told apart, and the share of unique rows."""
    times = np.bincount(column)
    times = times[times > 0].astype(np.float64)
    n = times.sum()
    alike = (times * (times - 1)).sum() / (n * (n - 1)) if n > 1 else 0.0
    return len(times), float(1 - alike), float((times == 1).sum() / n)


def _besides(table: TextTable, name: str, tells: Sequence[str] | None) -> Iterator[str]:
    if tells:
        yield f"it tells {', '.join(tells)}"
    if merged := merged_cells(texts(table, name)):
        yield merged


def _told(
    cells: pl.Series, read_as: str, alone: tuple[int, float, float]
) -> tuple[Role, str] | None:
    """Return what a column seems to be by itself, and why; None: the others decide."""
    n_distinct, _, unique = alone
    said = said_by(cells.name)
    if n_distinct <= 1:
        return "nothing", "one value"
    if said is not None and said.role == "identifier" and _fits(cells, said.kind, n_distinct):
        return "identifier", f"by its name it holds {said.kind}"
    are_numbers = read_as.startswith("numbers")
    is_known = said is not None and (said.role in _OF_PEOPLE or are_numbers)
    if holds := _holds(cells, read_as, is_known=is_known):
        return "identifier", f"it holds {holds}"
    if said is not None and said.role == "sensitive":
        return "sensitive", "by its name"
    why = f"{unique:.0%} of the rows have a value of their own"
    names_rows = not read_as.startswith((*_MOMENTS, "numbers")) or _counts_rows(cells)
    if names_rows and not is_known and unique > _MOST and len(cells) >= _LEAST_CELLS:
        return "identifier", why
    many = f"{why}, and none is a name ({read_as})"
    return None if unique < _MANY else ("quasi-identifier", many)


def _holds(cells: pl.Series, read_as: str, *, is_known: bool) -> str:
    """Return which direct identifiers a column holds; empty: none are seen.

    `is_known`: its name says that its cells are no identifiers, but not what sentences tell.
    """
    if read_as.startswith(_MOMENTS):
        return ""
    held = None if is_known else recognized(cells)
    if held is not None and held.direct:
        return held.kind
    if read_as.startswith("numbers"):
        return ""
    told = told_of(cells.alias("cell").value_counts(name="n"))
    return "" if told is None else f"{told[0]}, in {told[1]:,} cells"


_OF_PEOPLE = ("quasi-identifier", "sensitive")
_MOMENTS = ("dates", "weeks", "months", "quarters", "times", "durations")


def _fits(cells: pl.Series, kind: str, n_distinct: int) -> bool:
    """Return whether most values may be what the name of their column says."""
    there = cells.drop_nulls().unique()
    if n_distinct < min(_FEW_VALUES, len(cells) / 2):
        return False
    form = _FORM_OF.get(kind, r"^[^.,]*$|\p{L}")  # an id has no decimals
    return bool(there.str.contains(form).sum() > _MOST * len(there))


_FORM_OF = {
    "names of people": r"^\D*\p{L}",
    "e-mail addresses": r"@| at |\(at\)",
    "phone numbers": r"(\d\D*){5}",
    "addresses": r"\p{L}",
}


def _counts_rows(cells: pl.Series) -> bool:
    """Return whether the values are whole numbers of which hardly one is left out."""
    values = cells.cast(pl.Int64, strict=False).drop_nulls()
    if len(values) < len(cells) or values.n_unique() < len(cells):
        return False
    return int(values.max()) - int(values.min()) < 2 * len(cells)  # type: ignore[arg-type]


def _scored(share: float, lost: float, *, little: float) -> tuple[Role, str]:
    """Return what a column seems to be beside the others, and why."""
    why = f"in {share:.0%} of the scores; without it {lost:.1%} fewer rows are unique"
    return ("little" if share < little and lost < _LITTLE else "quasi-identifier"), why


def _column(
    name: str,
    read_as: str,
    n: int,
    alone: tuple[int, float, float],
    *,
    part: tuple[float, float] | None,
    suggested: tuple[Role, str],
) -> ColumnProfile:
    n_distinct, separation, unique = alone
    share, lost = (None, None) if part is None else part
    return ColumnProfile(
        name=name,
        read_as=read_as,
        n_distinct=n_distinct,
        distinction=n_distinct / n,
        separation=separation,
        unique_alone=unique,
        part=share,
        unique_by_it=lost,
        suggestion=suggested[0],
        why=suggested[1],
    )


def _prices(
    table: TextTable, declared: Declared, k: int, progress: Callable[[str], None]
) -> Iterator[Price]:
    """Yield what a release loses, as it is and with one thing more asked each time."""
    plain = ReleasePlan(method=_METHOD, promise=Promise(k=k, d=1))
    asked: dict[str, ReleasePlan] = {"nothing more": plain}
    asked["d = 2"] = replace(plain, promise=replace(plain.promise, d=2))
    asked |= {f"suppress = {share:g}": replace(plain, suppress=share) for share in _SUPPRESS}
    if declared.sensitive:
        asked["l = 2"] = replace(plain, promise=replace(plain.promise, l=2))
        asked |= {f"t = {t:g}": replace(plain, promise=Promise(k=k, d=1, t=t)) for t in _T}
    if len(declared.qis) > 1:
        asked |= {
            f"weight {name} = {_WEIGHT:g}": replace(plain, weights={name: _WEIGHT})
            for name in declared.qis
        }
    n_priced = _MOST_PRICED // len(declared.qis)
    for words, plan in [*asked.items()][:n_priced]:
        progress(words)
        price = _price(table, declared, words, plan)
        yield price.model_copy(update={"weighted": next(iter(plan.weights), None)})
    if len(asked) > n_priced:
        why_not = f"{len(declared.qis)} columns would take long: name fewer as quasi-identifiers"
        yield Price(asked=f"{len(asked) - n_priced} more", why_not=why_not)


def _price(table: TextTable, declared: Declared, asked: str, plan: ReleasePlan) -> Price:
    try:
        made = anonymize(table, declared, plan)
    except InputError as error:
        return Price(asked=asked, why_not=str(error).removeprefix(f"{table.path}: "))
    found, n_published = made.measures(), len(made.publication.frame)
    return Price(
        asked=asked,
        gcp=found.gcp[Cost.RANGE],
        suppressed_share=1 - n_published / len(made.publication.out_row),
        n_classes=found.n_classes,
        risk_average=found.n_classes / max(n_published, 1),
        ncp=dict(zip(declared.qis, found.ncp[Cost.RANGE], strict=True)),
        t=max(found.t, default=None),
    )
