"""The house, counted: `python -m tools.house` prints rooms with their lines, and what readers load.

The words about each room stand in notes/house.md.
"""

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tools.figures import OWN, loaded

_ROW = re.compile(r"^\| `([\w/()]+)` \|", re.MULTILINE)
_FEWEST_NAMED = 400


class Lines(NamedTuple):
    """Lines of some files; each is one of five kinds."""

    files: int
    code: int
    docstrings: int
    imports: int
    blank: int
    comments: int

    @property
    def all(self) -> int:
        """Lines of every kind."""
        return sum(self[1:])


def lines_of(files: Iterable[Path]) -> Lines:
    """Return the lines of files, by syntax tree."""
    n: Counter[str] = Counter()
    n_files = 0
    for n_files, file in enumerate(files, start=1):  # noqa: B007  the last number counts
        text = file.read_text()
        kinds = ["code" if line.strip() else "blank" for line in text.splitlines()]
        with file.open("rb") as source:
            for token in tokenize.tokenize(source.readline):
                if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
                    kinds[token.start[0] - 1] = "comments"
        for node in ast.walk(ast.parse(text)):
            kind = _kind(node)
            if kind and isinstance(node, ast.stmt):
                last = node.lineno if node.end_lineno is None else node.end_lineno
                kinds[node.lineno - 1 : last] = [kind] * (last - node.lineno + 1)
        n.update(kinds)
    return Lines(n_files, *(n[kind] for kind in Lines._fields[1:]))


def _kind(node: ast.AST) -> str:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "imports"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "docstrings" if isinstance(node.value.value, str) else ""
    return ""


def files_of_rooms() -> dict[str, list[Path]]:
    """Return the files of each folder of the package."""
    found = defaultdict[str, list[Path]](list)
    for path in OWN.rglob("*.py"):
        if path.stat().st_size:
            found[_room(path)].append(path)
    return found


def _room(path: Path) -> str:
    """Return the folder of a file, two levels deep."""
    return "/".join(path.parent.relative_to(OWN).parts[:2]) or "(top)"


def named_rooms(text: str) -> set[str]:
    """Return the rooms that a page has a row of."""
    return set(_ROW.findall(text))


def table() -> str:
    """Return the lines of each room and of all, and what each reader loads, as Markdown."""
    found = {name: lines_of(files) for name, files in files_of_rooms().items()}
    found["all"] = lines_of(OWN.rglob("*.py"))
    head = "room", "lines", *Lines._fields
    rows = [
        f"| {name} | {' | '.join(f'{n:,}' for n in (of.all, *of))} |" for name, of in found.items()
    ]
    closures = map(_closure, ("client", "tables", "MQTT", "settings"))
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows, "", *closures])


def _closure(wanted: str) -> str:
    """Return the row of what a reader loads, with the folders that are most of it."""
    files = loaded(wanted)
    n_of: Counter[str] = Counter()
    for file in files:
        n_of[_room(file)] += len(file.read_bytes().splitlines())
    named = {room: n for room, n in n_of.most_common() if n >= _FEWEST_NAMED}
    rest = n_of.total() - sum(named.values())
    parts = [f"`{room}` {n:,}" for room, n in named.items()]
    return f"| {wanted} | {n_of.total():,} | {', '.join(parts)}, the rest {rest:,} |"


if __name__ == "__main__":
    print(table())  # noqa: T201  what it is for
