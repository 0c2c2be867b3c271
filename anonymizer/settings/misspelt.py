"""Misspelt keys of the settings: which one was probably meant."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from anonymizer.settings.base import Group
from anonymizer.settings.json_schema import groups_in
from anonymizer.settings.model import Settings

_LIKENESS = 0.6


def meant(place: Sequence[int | str]) -> str:
    """Return `; did you mean ...?` for a key that does not exist, or an empty text.

    A key of its own table is proposed if one is similar. Otherwise a key of the same name in
    another table, or a similar one, if there is only one.

    Parameters
    ----------
    place
        The key, and the tables and positions in arrays that it is in, from the outside.
    """
    *tables, key = [part for part in place if isinstance(part, str)] or [""]
    own = _group_at(tables)
    near = get_close_matches(key, own.model_fields if own else (), n=1, cutoff=_LIKENESS)
    if near:
        return f"; did you mean {'.'.join([*tables, near[0]])}?"
    others = [path for path in _keys(Settings) if path[-1] == key]
    if not others:
        names = {path[-1] for path in _keys(Settings)}
        close = get_close_matches(key, sorted(names), n=1, cutoff=0.8)
        others = [path for path in _keys(Settings) if path[-1] in close]
    return f"; did you mean {'.'.join(others[0])}?" if len(others) == 1 else ""


def _group_at(tables: Sequence[str]) -> type[Group] | None:
    """Return the table that a path leads to; None if there is none."""
    group: type[Group] = Settings
    for name in tables:
        field = group.model_fields.get(name)
        inner = [] if field is None else groups_in(field.annotation)
        if not inner:
            return None
        group = inner[0]
    return group


def _keys(group: type[Group], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key in a table and the tables in it."""
    for name, field in group.model_fields.items():
        yield (*path, name)
        for inner in groups_in(field.annotation):
            yield from _keys(inner, (*path, name))
