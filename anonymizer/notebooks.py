"""What a notebook shows of a result: tables of HTML, cut to what a page can bear."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

MOST_ROWS = 20
"""Of a table; a line says how many there are."""


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, n: int) -> str:
    """Return the first `MOST_ROWS` of `n` rows below the names of their columns."""
    shown = list(islice(rows, MOST_ROWS))
    more = f"<p>{len(shown):,} of {n:,} rows</p>" if n > len(shown) else ""
    return _whole(head, shown) + more


def html_release(words: str, frame: Any) -> str:  # noqa: ANN401  of several libraries
    """Return what is said of a release, and its first rows as its library shows them."""
    rows = frame.head(MOST_ROWS)
    shown = rows._repr_html_()
    return f"<p>{escape(words)}</p>{shown}"


def html_report(title: str, said: Mapping[str, object]) -> str:
    """Return a report: its figures in one table, and each list of parts in another.

    `said`: by name; texts, numbers, mappings of these and lists.
    """
    lists = {
        name: value
        for name, value in said.items()
        if isinstance(value, list | tuple)
        and value
        and all(isinstance(part, Mapping) for part in value)
    }
    rows = list(_flat({name: value for name, value in said.items() if name not in lists}))
    tables = [f"<h4>{escape(title)}</h4>{_whole([], rows)}"]
    for name, parts in lists.items():
        head = list(dict.fromkeys(key for part in parts for key in part))
        cells = [[_words(part.get(key)) for key in head] for part in parts]
        tables.append(f"<h5>{escape(_spaced(name))}</h5>{_whole(list(map(_spaced, head)), cells)}")
    return "".join(tables)


def _whole(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    heading = f"<thead>{_row('th', head)}</thead>" if head else ""
    return f"<table>{heading}<tbody>{''.join(_row('td', row) for row in rows)}</tbody></table>"


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_words(each))}</{tag}>' for each in cells)}</tr>"


def _flat(said: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{_spaced(str(name))}: ")
        elif value not in (None, (), [], ""):
            yield f"{before}{_spaced(str(name))}", _words(value)


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_spaced(str(name))} {_words(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")
