"""Objects that show in a log what they are and how many, and no device, place or value."""

from collections.abc import Callable, Sized
from typing import TypeVar

T = TypeVar("T")


def shows(*fields: str) -> Callable[[type[T]], type[T]]:
    """Let objects of a class show these fields alone: numbers and texts, or how long another is.

    Without fields they show the name of the class.
    """

    def shown(thing: object) -> str:
        parts = (_brief(getattr(thing, name)) for name in fields)
        return f"{type(thing).__name__}({', '.join(parts) if fields else '...'})"

    def decorated(kind: type[T]) -> type[T]:
        kind.__repr__ = shown  # type: ignore[method-assign]
        return kind

    return decorated


def _brief(value: object) -> str:
    if isinstance(value, str):
        return repr(value)
    return str(len(value)) if isinstance(value, Sized) else str(value)
