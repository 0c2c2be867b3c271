"""Public function for a table that is not anonymized yet: which columns name people.

It calls what `anonymizer profile` calls, with the same defaults.
"""

from collections.abc import Sequence

from anonymizer.app.table_options import AT_RISK, Names, names_of, real_number, whole_number
from anonymizer.app.table_profile import ProfileReport
from anonymizer.app.table_profile import profile as profile_of
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError
from anonymizer.files.coded_table import Declared
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_table

__all__ = ["ProfileReport", "profile"]


def profile(
    table: DataFrame | FilePath,
    *,
    qi: Names = (),
    sa: Names = (),
    id: str | None = None,  # noqa: A002  as in the other functions
    k: int | None = None,
    sampled: float = 0.1,
    at_risk: float = AT_RISK,
    missing: Sequence[str] = NO_VALUE,
) -> ProfileReport:
    """Say which columns of a table name people, before it is anonymized.

    Parameters
    ----------
    table
        The table; every row is a record.
    qi
        The columns to look at. Empty: all that are neither sensitive nor the identifier.
    sa, id, missing
        As for `anonymize`.
    k
        Also say what a release with classes of k persons would lose, and what d, l, t, rows left
        out and weights would change.
    sampled
        Share of the population that the table is, for DIS-SUDA.
    at_risk
        Count the rows whose person is named with a larger probability.

    Raises
    ------
    InputError
        If the table cannot be used, or has no column to look at.
    SettingsError
        If an option is out of its range, or the extra `tables` is not installed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> people = polars.DataFrame({"age": [34, 34, 51, 58], "zip": ["1a", "1a", "2a", "2a"]})
    >>> anonymizer.profile(people).share_unique
    0.5
    """
    read, sensitive = as_table(table, name="table"), names_of(sa)
    others = [name for name in read.frame.columns if name not in {*sensitive, id}]
    asked = names_of(qi) or others
    if not asked:
        raise InputError(f"{read.path}: has no column to look at")
    return profile_of(
        read,
        Declared(qis=asked, sensitive=sensitive, id=id, markers=missing),
        sampled=real_number("sampled", sampled, 0.0001, 0.9999),
        at_risk=real_number("at_risk", at_risk, 0.0, 1.0),
        k=None if k is None else whole_number("k", k, 2),
        chosen=bool(qi),
    )
