"""Re-identification risks of a published table, and how they change with what the population is.

Figures have the names and definitions of ARX. The average of the journalist is that of a record
drawn at random, which ARX calls the success of the marketer.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from anonymizer.algorithms.records.label_text import LabelText
from anonymizer.algorithms.records.risks import Risk, expected_success, presence, risk
from anonymizer.audit.findings import Figure, Finding
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.errors import SettingsError

Cells = Sequence[str | None]


def risk_findings(
    size: IntArray,
    size_original: IntArray,
    *,
    n_persons: int,
    threshold: float,
    population: int | None,
    company: tuple[IntArray, IntArray] | None,
) -> Iterator[Finding]:
    """Yield the risks of prosecutor and journalist, and what the population hides.

    `size`: persons of each published class, all above 0; `size_original`: persons alike in all
    quasi-identifiers of the original, for each combination; `n_persons`: of the original; records
    with a risk above `threshold` are counted; `population`: its persons, None for unknown;
    `company`: persons of the population, and of the original, whom each class fits, None for
    estimated; shape (classes,). SettingsError if the population is smaller than the table.
    """
    n = int(size.sum())
    before = risk(size_original, 1 / size_original, threshold=threshold)
    mine = _figures(risk(size, 1 / size, threshold=threshold), n, guess=1 / max(n_persons, 1))
    mine |= {"average_original": before.average, "share_above_original": before.share_above}
    yield Finding(attack="prosecutor", figures=mine)
    if population is None:
        return
    if population < n_persons:
        raise SettingsError("population: has fewer people than the table")
    drawn, guess = n_persons / population, 1 / population
    if company is None:
        found = risk(size, expected_success(size, drawn), threshold=threshold)
        yield Finding(attack="journalist (estimated)", figures=_figures(found, n, guess=guess))
        return
    fitting, inside = company
    # Who is in the table is in the population, whatever its register says.
    short = fitting < inside
    hidden_in = np.maximum(fitting, inside)
    found = risk(size, 1 / hidden_in, threshold=threshold)
    yield Finding(attack="journalist", figures=_figures(found, n, guess=guess))
    least: dict[str, Figure] = {"persons_min": int(hidden_in.min(initial=population))}
    yield Finding(attack="k-map", figures=least | {"n_classes_short": int(short.sum())})
    present = presence(inside, hidden_in)
    yield Finding(
        attack="presence",
        figures={
            "highest": float(present.max(initial=0.0)),
            "average": float(size @ present) / max(n, 1),
            "lowest": float(present.min(initial=1.0)),
            "drawn": drawn,
            "n": n,
        },
    )


def _figures(found: Risk, n: int, *, guess: float) -> dict[str, Figure]:
    return {
        "highest": found.highest,
        "average": found.average,
        "share_above": found.share_above,
        "guess": guess,
        "n": n,
    }


def company_of(
    readers: Sequence[LabelText],
    labels: Sequence[Cells],
    label_of: Int32Array,
    cells: Sequence[Cells],
    cell_of: Int32Array,
) -> IntArray:
    """Return how many rows of a population each class fits, shape (classes,).

    `readers`, `labels`, `cells`: for each quasi-identifier, the reader of its labels, its different
    labels, and its different cells in the population; `label_of`, `cell_of`: index of the label of
    each class, shape (classes, quasi-identifiers), and of the cell of each row of the population,
    shape (rows, quasi-identifiers).

    Notes
    -----
    O(different labels x different cells) for each quasi-identifier that is no number, and
    O(different classes x different rows).
    """
    rows, n_alike = np.unique(cell_of, axis=0, return_counts=True)
    classes, of = np.unique(label_of, axis=0, return_inverse=True)
    fits: list[BoolArray] = [
        reader.cover(label, cell)
        for reader, label, cell in zip(readers, labels, cells, strict=True)
    ]
    found = np.empty(len(classes), np.int64)
    for c, wanted in enumerate(classes.tolist()):
        there = np.arange(len(rows))
        for j, label in enumerate(wanted):
            there = there[fits[j][label, rows[there, j]]]
        found[c] = n_alike[there].sum()
    return found[of.ravel()]
