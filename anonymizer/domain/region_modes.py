"""Modes: the ways in which regions are formed."""

from typing import Literal, TypeAlias

RegionMode: TypeAlias = Literal["adka", "snapshot", "session"]


def mode_named(name: object) -> object:
    """Return the mode that a name means: `bfs` is what `adka` was called."""
    return "adka" if name == "bfs" else name
