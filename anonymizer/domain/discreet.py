"""Discreet classes: a log or a traceback that shows one of them names no device and no place."""

from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def discreet(cls: _Class) -> _Class:
    """Have what is in a class, as a named tuple or struct, shown by the name of the class alone."""
    setattr(cls, "__repr__", _named)  # noqa: B010  mypy takes it for a method
    return cls


def _named(shown: object) -> str:
    return f"{type(shown).__name__}(...)"
