"""A worked example of vehicles: two sources, the attack on plain k-anonymity, and the cure.

The multi-source paper explains itself by a few vehicles (its tables 1 and 2, figures 3 to 5). They
are not at hand, so these twelve are made up here and go the same way: two sources are joined,
classes of k vehicles are formed, who knows one source reads cells of the other, and with (k,d) and
(k,l,d) he reads none.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anonymizer.algorithms.releases.released_classes import publish
from anonymizer.app.plots import INK, LIGHT, RED, plot
from anonymizer.audit.mathematics.linkability import Knowledge, infer
from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from experiments.compared_methods import Method, form_classes
from experiments.result_files import Row

COLUMNS = ("age", "district", "model", "km a day", "fault")
"""Age and district are of the register, model and distance of telemetry; the fault is sensitive."""
VEHICLES = (
    (24, 1, "A", 20, "none"), (27, 1, "A", 35, "none"), (29, 2, "A", 30, "brakes"),
    (33, 2, "B", 60, "none"), (36, 3, "B", 60, "none"), (38, 3, "B", 60, "none"),
    (45, 4, "C", 85, "none"), (47, 4, "D", 90, "none"), (52, 4, "C", 40, "brakes"),
    (58, 5, "D", 25, "engine"), (61, 6, "D", 15, "none"), (66, 6, "E", 10, "engine"),
)  # fmt: skip
STEPS = (
    ("as joined", Promise(k=1), None),
    ("plain k-anonymity, k = 3", Promise(k=3), Method.MONDRIAN),
    ("(k,d)-anonymity, k = 3, d = 2", Promise(k=3, d=2), Method.HILBERT),
    ("(k,l,d)-diversity, k = 3, l = 2, d = 2", Promise(k=3, d=2, l=2), Method.HILBERT),
)
_WIDTHS = (0.22, 0.16, 0.2, 0.2, 0.22)


@dataclass(frozen=True, slots=True)
class Step:
    """One release of the vehicles."""

    name: str
    """What it is."""
    class_of: tuple[int, ...]
    """Class of each vehicle, in the order of the rows."""
    rows: tuple[tuple[str, ...], ...]
    """The published labels, sorted by class; the fault is as it was."""
    learned: BoolArray
    """Which cells who knows one source learns for certain, shape (vehicles, columns)."""


def worked_example() -> list[Step]:
    """Return the vehicles as they are joined, and three releases of them with what leaks."""
    found = [
        np.unique(np.array(column), return_inverse=True) for column in zip(*VEHICLES, strict=True)
    ]
    attributes = [
        Attribute(name, np.asarray(values, np.float64))
        if np.issubdtype(values.dtype, np.number)
        else Attribute(name, np.arange(len(values), dtype=np.float64), tuple(values.tolist()))
        for name, (values, _) in zip(COLUMNS, found, strict=True)
    ]
    codes = np.column_stack([of for _, of in found]).astype(np.int32)
    schema = Schema(tuple(attributes[:4]), (attributes[4],), ((0, 1), (2, 3)))
    n = len(codes)
    records = Records(
        np.ascontiguousarray(codes[:, :4]), codes[:, 4:], np.arange(n, dtype=np.int32)
    )
    steps = []
    for name, promise, method in STEPS:
        class_of = np.arange(n, dtype=np.int32)
        learned = np.ones((n, len(COLUMNS)), np.bool_)
        if method is not None:
            class_of = form_classes(records, schema, promise, method)
            learned = np.zeros((n, len(COLUMNS)), np.bool_)
            for each in infer(publish(records, schema, class_of), schema, records, class_of):
                if each.knows is Knowledge.LABELS:
                    learned |= each.learns
        order = np.argsort(class_of, kind="stable")
        rows = tuple(_labels(attributes, codes, class_of, i) for i in order)
        steps.append(Step(name, tuple(class_of[order].tolist()), rows, learned[order]))
    return steps


def example_rows(steps: list[Step]) -> list[Row]:
    """Return a row for each vehicle of each release, with what is learned of it."""
    return [
        {"release": step.name, "class": of + 1}
        | dict(zip(COLUMNS, row, strict=True))
        | {"learned": [COLUMNS[j].replace(" ", "_") for j in np.flatnonzero(learned)]}
        for step in steps
        for of, row, learned in zip(step.class_of, step.rows, step.learned, strict=True)
    ]


def draw_example(steps: list[Step], path: Path) -> None:
    """Draw the releases side by side: in red what who knows one source learns for certain."""
    with plot(path, width_in=15, height_in=3.4) as figure:
        for axes, step in zip(figure.subplots(1, len(steps)), steps, strict=True):
            axes.axis("off")
            axes.set_title(f"{step.name}\n{_learned(step)}", fontsize=10)
            table = axes.table(
                cellText=step.rows, colLabels=COLUMNS, colWidths=_WIDTHS,
                loc="upper center", cellLoc="center", edges="horizontal",
            )  # fmt: skip
            table.auto_set_font_size(False)
            table.set_fontsize(8)
            for (row, column), cell in table.get_celld().items():
                last = row in {0, len(step.rows)} or step.class_of[row - 1] != step.class_of[row]
                cell.set_edgecolor(INK if last else LIGHT)
                red = row > 0 and step.learned[row - 1, column]
                cell.get_text().set_color(RED if red and step is not steps[0] else INK)
        figure.suptitle(
            "Made up: twelve vehicles of ours, in place of the paper's (tables 1 and 2, figures 3 "
            "to 5).\nRegister: age, district. Telemetry: model, km a day. The fault is sensitive."
        )


def _labels(
    attributes: list[Attribute], codes: np.ndarray[tuple[int, int], np.dtype[np.int32]],
    class_of: np.ndarray[tuple[int], np.dtype[np.int32]], i: int,
) -> tuple[str, ...]:  # fmt: skip
    """Return what a release says of a vehicle: ranges of numbers, sets of categories."""
    members = codes[class_of == class_of[i]]
    labels = []
    for attribute, column in zip(attributes[:4], members.T[:4], strict=True):
        if attribute.label:
            labels.append(" ".join(attribute.label[code] for code in np.unique(column)))
        else:
            low, high = (f"{attribute.position[c]:g}" for c in (column.min(), column.max()))
            labels.append(low if low == high else f"{low}-{high}")
    return (*labels, attributes[4].label[codes[i, 4]])


def _learned(step: Step) -> str:
    n = int(step.learned.sum())
    return (
        "two sources, one row a vehicle" if step.name == STEPS[0][0] else f"{n} cells are learned"
    )
