"""Public function for records: anonymize a table.

It calls what `anonymizer anonymize` calls, with the same defaults.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

import polars as pl

from anonymizer.api.keywords import TableKeywords, takes_keywords
from anonymizer.app.anonymize import table_anonymization
from anonymizer.app.anonymize.plan import declared_of, make_plan
from anonymizer.app.table_options import TableOptions
from anonymizer.files.coded_table import Declared
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_table, kind_of

if TYPE_CHECKING:
    from anonymizer.app.anonymize.release_report import AnonymizeReport


class AnonymizedTable:
    """An anonymized table."""

    def __init__(
        self,
        made: table_anonymization.Anonymized,
        in_kind: Callable[[pl.DataFrame], DataFrame],
    ) -> None:
        self._made, self._in_kind = made, in_kind

    @cached_property
    def frame(self) -> DataFrame:
        """The release, sorted by `class_id`; until it is first asked for, its labels take less."""
        return self._in_kind(self._made.publication.as_text())

    @property
    def auditor_map(self) -> DataFrame:
        """The row of the release, `out_row`, of each row of the table, `in_row`.

        Both from 0, missing where the row was suppressed. For the auditor alone.
        """
        return self._in_kind(self._made.publication.row_map())

    @property
    def report(self) -> "AnonymizeReport":
        """The criteria that were reached, the information loss, and what attacks find.

        It is made when it is first asked for; until then, the records are held in memory.
        """
        return self._made.report

    def __repr__(self) -> str:
        """Return counts alone."""
        report = self.report
        return (
            f"AnonymizedTable({report.n_published} of {report.n} rows published in "
            f"{report.n_classes} classes of {report.k} or more)"
        )

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_release  # noqa: PLC0415  only notebooks ask

        return html_release(repr(self), self.frame)


@takes_keywords(TableOptions)
def anonymize(
    table: DataFrame | FilePath,
    **options: Unpack[TableKeywords],
) -> AnonymizedTable:
    """Anonymize a table: every person is one of at least k.

    Parameters
    ----------
    table
        The records. Columns that are not named are left out of the release.
    qi, sa, id
        Quasi-identifiers, which are generalized; sensitive attributes, which are published as
        they are; and whose row it is (None: each row is a person of its own).
    k, d, l
        Fewest persons in a class, and fewest distinct values of every quasi-identifier and of
        every sensitive attribute. None: 2 where the model asks for it, else 1.
    model, method
        `kd`, `kld`, `kaca` or `cells`, and one of its methods; see `anonymizer anonymize --help`.
    sources
        Quasi-identifiers that each source knows.
    hierarchies
        By attribute: a file of lines `leaf;...;root`, or `{group: [leaves] or groups}`; or, for
        dates and times, `year-month-day-hour` or some of these.
    orders, domains
        By attribute: categories in their order; ends of a number and, where it has one, its step.
    categories, missing, exact
        Columns that hold no numbers although they look like it; texts that mean "no value"; and
        columns that are taken as written: in others, writings of one value count as one.
    as_published
        Whether a missing value is a value and shares have no bound, as in the paper.
    cost, dm_weight
        The information loss to minimize, and the weight of the discernibility metric.
    prefer_share, share_price
        A soft goal: as many rows as possible in classes in which no value has more than this share
        (columns in which a value has more in the whole table are ignored); and what that may cost,
        as GCP of a row, for each column that exceeds it.
    weights
        How much the loss of each quasi-identifier counts in the search; by default 1.
    suppress
        Largest share of the rows with an identifier that may be left out, 0.05 for example. Rows
        are chosen so that the others lose less; a row that is left out counts as lost. None: no row
        is chosen, and those that fit in no class are left out without a limit.
    time_budget_s
        Longest search.
    k_extra, bands, further_criteria
        Further criteria of a class.
    keep
        Columns that are published unchanged, outside every promise.
    target
        For `cells`: the column of the classes that a model will learn from the release.
    labels, language
        For `kaca`: the form of labels, and their language.
    measures
        Columns whose mean over each class is published, with the `count` of its persons; that of a
        quasi-identifier in place of its range.
    seed
        Equal input, options and seed give equal releases, unless a search runs out of time.

    Raises
    ------
    InputError
        If the table or a file cannot be used, or cannot meet the criteria.
    SettingsError
        If an option is out of its range or does not fit the others, or an extra is not installed.
    GuaranteeError
        If independent verification finds a class that does not meet the criteria.

    Warns
    -----
    UserWarning
        If more than half of the records are suppressed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> people = polars.DataFrame({"age": [34, 36, 51, 58], "zip": ["1a", "1b", "2a", "2b"]})
    >>> release = anonymizer.anonymize(
    ...     people, qi=["age", "zip"], k=2, max_share=1, max_source_share=1
    ... )
    >>> release
    AnonymizedTable(4 of 4 rows published in 2 classes of 2 or more)
    >>> release.frame["age"].to_list()
    ['[34-36]', '[34-36]', '[51-58]', '[51-58]']
    """
    asked = TableOptions(**options)
    declared, plan = declared_of(asked), make_plan(asked)
    read = as_table(table, columns_of(declared, plan.measures), name="table")
    made = table_anonymization.anonymize(read, declared, plan)
    n_all = len(made.publication.class_of)  # rows of nobody are not suppressed for a promise
    n = n_all - len(made.publication.frame)
    if 2 * n > n_all:
        warnings.warn(
            f"{n:,} of {n_all:,} rows are suppressed: no class with them meets all criteria; ask"
            f" for a smaller k than {asked.k}, for fewer quasi-identifiers, or raise max_share",
            stacklevel=3,  # past `takes_keywords`
        )
    return AnonymizedTable(made, kind_of(table))


def columns_of(declared: Declared, measures: Sequence[str]) -> list[str]:
    """Return the columns of a table that are read, each once."""
    return list(dict.fromkeys([*declared.columns, *measures]))
