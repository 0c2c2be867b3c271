"""Generalization hierarchies and orders of categories, read from files."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from anonymizer.algorithms.records.attributes import ROOT, Branch, ambiguous
from anonymizer.algorithms.records.generalized_values import MISSING
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError

_MOST_LEVELS = 100
_TAKEN_SO = "which its readers take for a range or a set: mend the label or the line"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_INTERVAL = re.compile(r"\[(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)\]")
_FROM_TO = re.compile(
    r"([\[(\]]?) ?(-?\d+(?:\.\d+)?) ?(-|\u2013|\.\.|,|;|to) ?(-?\d+(?:\.\d+)?) ?([\])\[]?)"
)
_UP_TO = re.compile(r"([<>\u2264\u2265]=?) ?(-?\d+(?:\.\d+)?)|(-?\d+(?:\.\d+)?) ?\+")
"""Ranges as people write them: `20-29`, `[20,30)`, `20 to 29`; `<20`, `65+`."""
_NO_GROUP = "is read as a missing value, and can name no group"


def read_hierarchy(path: str | Path) -> tuple[Branch, ...]:
    """Read the hierarchy of one attribute: one line for each value, from leaf to root, with `;`.

    Lines may have different lengths. An empty cell, or a label that repeats the one before it,
    means that the branch does not have this level.

    Raises `InputError` if the file cannot be read, or if a line (named by its number) has no leaf
    or no level above it, ends in another root than the first line, has a mark for missing above its
    leaf, has a label in a form of the program that leaves its leaf out, such as `[20-29]` above 30,
    or has a label that also names another node.
    """
    path = Path(path)
    branches: list[Branch] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(_text(path)), delimiter=";")
    try:
        for cells in reader:
            labels = [cell.strip() for cell in cells]
            if not any(labels):
                continue
            if not labels[0]:
                raise InputError(f"{path}: line {reader.line_num}: has no leaf")
            branches.append(_branch(labels))
            lines.append(reader.line_num)
    except csv.Error:
        raise InputError(f"{path}: line {reader.line_num}: is not well-formed") from None
    if not branches:
        raise InputError(f"{path}: is empty")
    _check(path, branches, lines)
    return tuple(branches)


def _check(path: Path, branches: list[Branch], lines: list[int]) -> None:
    """Raise `InputError` if the branches of some lines are no hierarchy."""
    for line, branch in zip(lines, branches, strict=True):
        if len(branch) == 1:
            hint = ": levels are separated by ;" * ("," in branch[0] or "\t" in branch[0])
            raise InputError(f"{path}: line {line}: has no level above the leaf{hint}")
        if branch[-1] != branches[0][-1]:
            raise InputError(f"{path}: line {line}: ends in another root than the first line")
        if (mark := _marking_none(branch)) is not None:
            raise InputError(f"{path}: line {line}: {mark} {_NO_GROUP}")
        if (label := _lacking_its_leaf(branch)) is not None:
            raise InputError(f"{path}: line {line}: {branch[0]} is not in {label}, {_TAKEN_SO}")
    at = ambiguous(branches)
    if at is not None:
        raise InputError(f"{path}: line {lines[at]}: a label names two nodes")


def read_hierarchies(path: str | Path) -> dict[str, tuple[Branch, ...]]:
    """Read hierarchies by attribute: JSON `{attribute: {group: [leaves] or groups}}`.

    The file does not contain the root, which is called `*`.

    Raises `InputError` if the file has another form, or a label of an attribute names two nodes or
    is a range or a set that leaves a leaf below it out.
    """
    path = Path(path)
    return hierarchies_of(_object(path), path=path)


def read_trees(path: str | Path) -> dict[str, Any]:
    """Read the trees of `read_hierarchies` unchanged, with the same checks."""
    path = Path(path)
    trees = _object(path)
    hierarchies_of(trees, path=path)
    return trees


def hierarchies_of(
    trees: Mapping[str, object], *, path: Path = Path("hierarchies")
) -> dict[str, tuple[Branch, ...]]:
    """Return hierarchies by attribute, as `read_hierarchies`; `path` is a name for messages."""
    hierarchies = {}
    for attribute, tree in trees.items():
        branches = tuple(_branch(labels) for labels in _down(path, attribute, tree, [ROOT]))
        if not branches:
            raise InputError(f"{path}: {attribute}: has no leaves")
        if ambiguous(branches) is not None:
            raise InputError(f"{path}: {attribute}: a label names two nodes")
        if mark := next(filter(None, map(_marking_none, branches)), None):
            raise InputError(f"{path}: {attribute}: {mark} {_NO_GROUP}")
        for branch in branches:
            if (label := _lacking_its_leaf(branch)) is not None:
                said = f"{branch[0]} is not in {label}, {_TAKEN_SO}"
                raise InputError(f"{path}: {attribute}: {said}")
        hierarchies[attribute] = branches
    return hierarchies


def read_orders(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read the categories of attributes, in their order: JSON `{attribute: [categories]}`.

    Raises `InputError` if the file has another form, or a category occurs twice.
    """
    path = Path(path)
    orders = {}
    for attribute, labels in _object(path).items():
        if not isinstance(labels, list) or not labels:
            raise InputError(f"{path}: {attribute}: must be a list of categories")
        order = tuple(_label(path, attribute, label) for label in labels)
        if len(set(order)) < len(order):
            raise InputError(f"{path}: {attribute}: a category occurs twice")
        orders[attribute] = order
    return orders


def _down(path: Path, attribute: str, tree: object, above: list[str]) -> Iterator[list[str]]:
    """Yield the labels of each branch below a node, the leaf first."""
    if len(above) > _MOST_LEVELS:
        raise InputError(f"{path}: {attribute}: has more than {_MOST_LEVELS} levels")
    if isinstance(tree, dict):
        for group, below in tree.items():
            yield from _down(path, attribute, below, [group, *above])
    elif isinstance(tree, list):
        for leaf in tree:
            yield [_label(path, attribute, leaf), *above]
    else:
        raise InputError(f"{path}: {attribute}: must be groups of lists of categories")


def _branch(labels: list[str]) -> Branch:
    there = [label for label in labels if label]
    return tuple(label for i, label in enumerate(there) if i == 0 or label != there[i - 1])


def _marking_none(branch: Branch) -> str | None:
    """Return a label above the leaf that readers take for a missing value; None: there is none.

    A group of missing values alone is never published, and may have such a name.
    """
    named = [label for label in branch[1:] if label == MISSING or label in NO_VALUE]
    below_all = branch[0] == MISSING or branch[0] in NO_VALUE
    return next((label for label in named if label == MISSING or not below_all), None)


def _lacking_its_leaf(branch: Branch) -> str | None:
    """Return a label `[lo-hi]` above a number that is not in it, or `{a|b}` above neither."""
    leaf = branch[0]
    number = Decimal(leaf) if _NUMBER.fullmatch(leaf) else None
    for at, label in enumerate(branch[1:], 1):
        ends = _INTERVAL.fullmatch(label)
        if ends and number is not None and not Decimal(ends[1]) <= number <= Decimal(ends[2]):
            return label
        is_set = label.startswith("{") and label.endswith("}") and "|" in label
        members = {part.strip() for part in label[1:-1].split("|")}
        if is_set and "\\" not in label and members.isdisjoint(branch[:at]):
            return label
    return None


def _is_outside(label: str, number: Decimal) -> bool:
    """Return whether a label is a range that a number of as many digits as an end is not in.

    With others, `10-12` may be the beginnings of codes.
    """
    ends = _FROM_TO.fullmatch(label)
    if ends is None:
        return False
    lo, hi = Decimal(ends[2]), Decimal(ends[4])
    n_digits = {len(f"{abs(each):.0f}") for each in (lo, hi)}
    if lo > hi or len(f"{abs(int(number))}") not in n_digits:
        return False
    is_open = ends[3] in {",", ";"}  # as in mathematics: `[20, 30)`
    if is_open and ((number == lo and ends[1] in "(]") or (number == hi and ends[5] in ")[")):
        return bool(ends[1] or ends[5])
    return not lo <= number <= hi


def _is_beyond(label: str, number: Decimal) -> bool:
    """Return whether a label is a range without an end that a number is not in."""
    found = _UP_TO.fullmatch(label)
    if found is None:
        return False
    if found[3]:
        return number < Decimal(found[3])
    bound, sign = Decimal(found[2]), found[1]
    if number == bound:
        return sign in {"<", ">"}
    return (number > bound) == (sign[0] in "<\u2264")


def misnamed(branches: Sequence[Branch]) -> dict[str, list[str]]:
    """Return the leaves below each label that is a range without them, as people write ranges.

    Hierarchies that others use have such labels, so they are read, and it is told.
    """
    found: dict[str, list[str]] = {}
    for leaf, *labels in branches:
        if _NUMBER.fullmatch(leaf):
            number = Decimal(leaf)
            for label in labels:
                if _is_outside(label, number) or _is_beyond(label, number):
                    found.setdefault(label, []).append(leaf)
    return found


def _label(path: Path, attribute: str, label: object) -> str:
    if isinstance(label, bool) or not isinstance(label, str | int | float) or label == "":
        raise InputError(f"{path}: {attribute}: a category is a text or a number")
    return str(label).strip()


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_text(path), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path}: {line}is not well-formed JSON") from None
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path}: must be an object with an entry for each attribute")
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
