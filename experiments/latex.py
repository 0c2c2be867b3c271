"""Tables for LaTeX, with the package booktabs."""

from collections.abc import Mapping, Sequence


def latex_table(rows: Sequence[Mapping[str, object]], *, n_text: int, rule: str) -> str:
    """Return rows as a table: the first columns to the left, as text, the others to the right.

    Columns that are empty in all rows are left out, and there is a rule wherever the value of the
    column `rule` changes.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    shown = [name for name in names if any(row.get(name) is not None for row in rows)]
    lines = [
        r"\begin{tabular}{" + "l" * n_text + "r" * (len(shown) - n_text) + "}",
        r"\toprule",
        " & ".join(_escaped(name.replace("_", " ")) for name in shown) + r" \\",
    ]
    last: object = None
    for row in rows:
        lines += [r"\midrule"] if row[rule] != last else []
        lines.append(" & ".join(_escaped(row.get(name)) for name in shown) + r" \\")
        last = row[rule]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(value: object) -> str:
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    for character, written in (("<=", r"$\le$"), (">=", r"$\ge$")):
        text = text.replace(character, written)
    for character in "&%#_":
        text = text.replace(character, "\\" + character)
    return text
