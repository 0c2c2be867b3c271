"""The table "Adult" of the UCI, from `$ANONYMIZER_DATA`."""

import csv
import gzip
import json
import os
from functools import cache
from pathlib import Path

import numpy as np

from anonymizer.domain.records import NO_CODE, Attribute, Hierarchy, Records, Schema

QIS = (
    "age",
    "workclass",
    "marital-status",
    "occupation",
    "relationship",
    "native-country",
)
SOURCES = ((0, 1, 2), (3, 4, 5))


def tree_of(labels: list[str], groups: dict[str, list[str]]) -> Hierarchy:
    """A hierarchy of one level between the leaves and the root."""
    size = len(labels)
    group_of = {label: size + g for g, group in enumerate(groups.values()) for label in group}
    ancestor = [[c, group_of[label], size + len(groups)] for c, label in enumerate(labels)]
    n_leaves = [1] * size + [len(group) for group in groups.values()] + [size]
    return Hierarchy(
        np.array(ancestor, np.int32), (*labels, *groups, "*"), np.array(n_leaves, np.int32)
    )


@cache
def adult(*, markers_are_values: bool, sensitive: str | None) -> tuple[Records, Schema]:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    with gzip.open(folder / "adult_uci_32561.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    order = json.loads((folder / "adult_order.json").read_text())
    groups = json.loads((folder / "adult_taxonomy.json").read_text())
    attributes, columns = [Attribute("age", np.arange(17.0, 91.0))], []
    columns.append([int(row["age"]) - 17 for row in rows])
    for name in (*QIS[1:], *([] if sensitive is None else [sensitive])):
        labels = order.get(name) or sorted({row[name] for row in rows})
        marked = "?" in labels and not markers_are_values
        attributes.append(
            Attribute(
                name,
                np.arange(float(len(labels))),
                tuple(labels),
                labels.index("?") if marked else NO_CODE,
                tree_of(labels, groups[name]) if name in groups else None,
            )
        )
        code = {label: c for c, label in enumerate(labels)}
        columns.append([code[row[name]] for row in rows])
    cells = np.array(columns, np.int32).T
    table = Records(
        np.ascontiguousarray(cells[:, :6]),
        np.ascontiguousarray(cells[:, 6:]),
        np.arange(len(rows), dtype=np.int32),
    )
    return table, Schema(tuple(attributes[:6]), tuple(attributes[6:]), SOURCES)
