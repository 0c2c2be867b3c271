"""Numbers as people write them: with decimal commas, or with separators of thousands."""

import polars as pl

_GROUPED = {
    "numbers with decimal commas": (r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$", "[.]", ","),
    "numbers with thousands separators": (
        r"^[+-]?(\d+|\d{1,3}(,\d{3})+|\d{1,2}(,\d\d)+,\d{3})(\.\d+)?$",  # lakhs: 1,12,406
        "[,]",
        ".",
    ),
    "numbers with thousands spaces": (
        r"^[+-]?\d{1,3}([ \x{a0}\x{202f}']\d{3})*(\.\d+)?$",
        r"[ \x{a0}\x{202f}']",
        ".",
    ),
    "numbers with thousands spaces and decimal commas": (
        r"^[+-]?\d{1,3}([ \x{a0}\x{202f}']\d{3})*(,\d+)?$",
        r"[ \x{a0}\x{202f}']",
        ",",
    ),
}
"""Ways to write numbers: a cell, the separators of thousands, and that of decimals."""
PADDED = r"^[+-]?0[0-9]"
"""A number with padding zeros: a code."""
_MOSTLY = 0.5
"""Share of numbers from which categories are said to look like numbers."""


def plain_numbers(column: pl.Series, counts: pl.Series | None = None) -> tuple[pl.Series, str]:
    """Return a text column with numbers written plainly, and how they were written.

    `counts`: how often each cell occurs; None: once.

    A column that holds anything but numbers is returned as it is. So is one with padding zeros
    (`0123`): they are codes.

    Raises `ValueError` if all its cells could be read in two ways, such as `1,234`.
    """
    cells = column.drop_nulls().unique()
    if not len(cells) or read_as_numbers(cells):
        return column, "numbers" if len(cells) else "categories"
    ways = [how for how, (form, _, _) in _GROUPED.items() if cells.str.contains(form).all()]
    if not ways:
        times = pl.repeat(1, len(column), eager=True) if counts is None else counts
        is_number = column.cast(pl.Float64, strict=False).is_finite().fill_null(value=False)
        n_numbers, n = (
            int(times.filter(which).sum()) for which in (is_number, column.is_not_null())
        )
        mostly = n_numbers > _MOSTLY * n
        return column, "categories, although most cells are numbers" if mostly else "categories"
    if cells.str.contains(PADDED).any():
        return column, "categories, because of padding zeros"
    if any(not _bare(cells, how).equals(_bare(cells, ways[0])) for how in ways):
        raise ValueError("a comma could be of decimals or of thousands: write numbers plainly")
    return _bare(column, ways[0]), ways[0]


def _bare(column: pl.Series, how: str) -> pl.Series:
    _, thousands, point = _GROUPED[how]
    return column.str.replace_all(thousands, "").str.replace(point, ".", literal=True)


def read_as_numbers(column: pl.Series) -> bool:
    """Return whether every text is a finite number without padding zeros."""
    numbers_ = column.cast(pl.Float64, strict=False)
    padded = column.str.contains(PADDED)
    return (
        bool(len(column))
        and bool(numbers_.is_finite().fill_null(value=False).all())
        and not padded.any()
    )
