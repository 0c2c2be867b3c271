"""Settings that differ from others in one key, generated from the schema: none is left out."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from anonymizer.settings import Settings
from anonymizer.settings.base import Group

SEVERAL = ("inputs", "zones", "readings", "streams")


def by_key(changed: Iterable[tuple[str, Settings]]) -> dict[str, list[Settings]]:
    """Return what each key was changed to."""
    found: dict[str, list[Settings]] = {}
    for key, settings in changed:
        found.setdefault(key, []).append(settings)
    return found


def up_or_down(made: Sequence[Settings], turn: int) -> Sequence[Settings]:
    """Return the first or, every other turn, the last of what one key was changed to."""
    return [made[-(turn % 2)]]


def other_values(value: object, annotation: Any) -> Iterator[object]:  # noqa: ANN401  any type
    """Yield values up and down from one, of the types that a key takes."""
    kinds = {*_leaves(annotation)}
    if bool in kinds:
        yield not value
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from (value * 3, value + 1, value // 3, value / 3, value - 1, 0)
    if isinstance(value, tuple | list):
        yield ()
        if all(isinstance(each, int | float) for each in value):
            yield from ([each * 3 for each in value], [max(each // 3, 1) for each in value])
            yield from ([*value, 40], value[:-1])
    if value is None:
        yield from (40, 3.5, "x", True)
    yield from (each for each in kinds if isinstance(each, str) and each != value)
    if isinstance(value, str):
        yield f"{value}x"
    if NoneType in kinds and value is not None:
        yield None


def _leaves(annotation: Any) -> Iterator[Any]:  # noqa: ANN401  any type
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif args := get_args(annotation):
        for each in args:
            yield from _leaves(each)
    else:
        yield annotation


def changes(base: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield each key with settings in which it alone has another value, up, down or otherwise.

    Values that the settings refuse are left out.
    """
    said = base.model_dump(exclude_unset=True)
    for table in Settings.model_fields:
        old = getattr(base, table)
        if isinstance(old, Group):
            for key, new in _of_group(old):
                yield from _valid(f"{table}.{key}", said | {table: new}, base)
            continue
        assert table in SEVERAL
        stated = [each.model_dump(exclude_unset=True) for each in old]
        for turned in (stated[::-1], stated[1:], stated * 2):
            yield from _valid(table, said | {table: turned}, base)
        for i, each in enumerate(old):
            for key, new in _of_group(each):
                changed = [*stated[:i], new, *stated[i + 1 :]]
                yield from _valid(f"{table}.{key}", said | {table: changed}, base)


def _of_group(group: Group) -> Iterator[tuple[str, dict[str, Any]]]:
    stated = group.model_dump(exclude_unset=True)
    for key, of in type(group).model_fields.items():
        value = getattr(group, key)
        if not isinstance(value, Group | Path):
            for new in other_values(value, of.annotation):
                yield key, stated | {key: new}


def _valid(name: str, said: dict[str, Any], base: Settings) -> Iterator[tuple[str, Settings]]:
    try:
        made = Settings.model_validate(said)
    except (ValidationError, ValueError):
        return
    if made != base:
        yield name, made
