"""Cells experiment: the published procedure beside ours, over k and l, and the minimizer.

The source is a notebook: it cuts a table into the leaves of a decision tree, drops those with too
few sensitive values, and asks what a model still learns. Its table of tumours comes with
scikit-learn, so nothing here is made up; it prints no figures.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from anonymizer.algorithms.cells.pruning import TreeCells, prune
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree import Grown, grow
from anonymizer.algorithms.records.attributes import banded, banded_attribute
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, TEAL, plot
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.estimators import Minimizer
from experiments.kept_steps import KeptSteps, Progress
from experiments.result_files import Row, manifest, write_csv, write_files, write_json

KS = tuple(range(2, 21))
LS = (1, 2, 3, 4)
TARGETS = (0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
"""Shares of the model's score that the minimizer is to keep."""
EDGES = (10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0)
"""Bands of the sensitive attribute, the mean radius of a tumour in millimetres."""
PUBLISHED, OURS = "as published", "ours"
_RADIUS = 0
_N_TREES = 20
_ORIGIN = "569 tumours, scikit-learn's table; the source prints no figures"


@dataclass(frozen=True, slots=True)
class CellsRun:
    """What a model learns from the cells of one split of the table."""

    method: str
    """`PUBLISHED` or `OURS`."""
    k: int
    l: int  # noqa: E741  the field's name for it
    split: int
    """Number of the split into rows to learn from and rows to be judged by."""
    cells: int
    deleted: float
    """`cells`, `deleted`: number of cells, and share of the rows that are in none."""
    score: float
    original: float
    """`score`, `original`: accuracy on rows that were kept back: of a random forest that learned
    from the cells, and of one that learned from the rows as they were."""
    seconds: float
    """CPU time to form the cells."""


@dataclass(frozen=True, slots=True)
class MinimizerRun:
    """What the minimizer leaves of the rows of one split."""

    target: float
    """Share of the model's score that it is to keep."""
    split: int
    score: float
    """That which it keeps, on rows that it did not see."""
    distinct: float
    kept: float
    """`distinct`, `kept`: share of these rows that are distinct, and of the columns that keep their
    values."""


@dataclass
class Split:
    """Rows of the table to learn from, as they are and in codes, and rows to be judged by."""

    rows: FloatArray
    label: IntArray
    judged: FloatArray
    truth: IntArray
    number: int

    def __post_init__(self) -> None:
        """Code the rows: the mean radius is sensitive, all others are quasi-identifiers."""
        self.bands = banded(self.rows[:, _RADIUS], EDGES)
        others = self.rows.T[_RADIUS + 1 :]
        found = [np.unique(column, return_inverse=True) for column in others]
        self.schema = Schema(
            qis=tuple(Attribute(f"x{j + 1}", values) for j, (values, _) in enumerate(found)),
            sensitive=(banded_attribute("mean radius", EDGES),),
            sources=tuple((j,) for j in range(len(found))),
        )
        codes = np.column_stack([inverse for _, inverse in found]).astype(np.int32)
        who = np.arange(len(self.rows), dtype=np.int32)
        self.records = Records(codes, self.bands[:, None], who)

    def grown(self, k: int) -> Grown:
        """Return our tree."""
        return grow(self.records, self.schema, ModelTarget(self.label), min_leaf=k)

    def pruned(self, grown: Grown, promise: Promise) -> TreeCells:
        """Return the cells of our tree."""
        return prune(grown, make_problem(self.records, self.schema, promise))

    def score(self, rows: FloatArray, label: IntArray) -> float:
        """Return the accuracy of a model that learned from some rows."""
        if len(set(label.tolist())) < 2:
            return float((self.truth == label[0]).mean()) if len(label) else 0.0
        model = RandomForestClassifier(_N_TREES, random_state=0).fit(rows, label)
        return float(model.score(self.judged, self.truth))

    def ours(self, cells: TreeCells) -> tuple[float, float]:
        """Return deletion ratio and score of our cells.

        As with the published ones, the sensitive column is represented too: one value a cell.
        """
        valid = np.flatnonzero(cells.class_of >= 0)
        class_of = cells.class_of[valid]
        radius = [
            float(np.median(self.rows[cells.class_of == c, _RADIUS]))
            for c in range(cells.n_classes)
        ]
        others = representatives(self.records.qi, classes_of(cells.class_of), self.schema)
        rows = np.column_stack([np.array(radius), others])[class_of]
        return cells.deletion_ratio, self.score(rows, self.label[valid])

    def published(self, cells: Int32Array) -> tuple[float, float]:
        """Return deletion ratio and score of published cells."""
        kept = cells >= 0
        rows = self.rows[nearest_to_medians(self.rows, cells)[cells[kept]]]
        return 1 - float(kept.mean()), self.score(rows, self.label[kept])


def published_cells(split: Split, promise: Promise) -> Int32Array:
    """Return the cell of each row of the source's procedure, -1 for none.

    Restated plainly: a tree over all features, the sensitive one included; a leaf with fewer than
    l distinct sensitive values is dropped.
    """
    tree = DecisionTreeClassifier(min_samples_leaf=promise.k, random_state=split.number)
    leaf_of = tree.fit(split.rows, split.label).apply(split.rows)
    cell_of, n_cells = np.full(len(leaf_of), -1, np.int32), 0
    for leaf in np.unique(leaf_of):
        member = leaf_of == leaf
        if len(set(split.bands[member].tolist())) >= promise.l:
            cell_of[member] = n_cells
            n_cells += 1
    return cell_of


def nearest_to_medians(rows: FloatArray, cell_of: Int32Array) -> IntArray:
    """Return the row that represents each cell of the source: the one next to its medians."""
    found = []
    for cell in range(int(cell_of.max(initial=-1)) + 1):
        member = np.flatnonzero(cell_of == cell)
        off = rows[member] - np.median(rows[member], axis=0)
        found.append(member[np.argmin((off**2).sum(axis=1))])
    return np.array(found, np.int64)


def splits(n: int) -> list[Split]:
    """Return the table of tumours, split in n ways."""
    rows, label = load_breast_cancer(return_X_y=True)
    drawn = [
        train_test_split(rows, label, test_size=0.3, random_state=i, stratify=label)
        for i in range(n)
    ]
    return [Split(a, ya, b, yb, i) for i, (a, b, ya, yb) in enumerate(drawn)]


@dataclass(frozen=True, slots=True)
class CellsResults:
    """Runs so far, and the share of the steps that are done, 0 to 1."""

    runs: list[CellsRun]
    minimized: list[MinimizerRun]
    done: float = 1.0


def run_cells(
    *,
    ks: Sequence[int] = KS,
    ls: Sequence[int] = LS,
    repeats: int = 3,
    kept: KeptSteps | None = None,
    progress: Progress = lambda _done, _what: None,
    partial_results: Callable[[CellsResults], None] = lambda _so_far: None,
) -> CellsResults:
    """Form cells over k and l by both procedures, and minimize rows for several scores.

    A step is one promise or target on one split: `kept` has what is known from before, and
    `partial_results` is called after each one with the results so far.
    """
    kept = kept or KeptSteps(None, {})
    promises = [pair for pair in product(ks, ls) if pair[1] <= pair[0]]
    n_steps = repeats * (len(promises) + len(TARGETS))
    found = CellsResults([], [], 0.0)
    step = 0
    for split in splits(repeats):
        original = split.score(split.rows, split.label)

        def told(what: str) -> None:
            nonlocal step
            progress(step / n_steps, what)
            step += 1

        for k, l in promises:  # noqa: E741  the field's name for it
            told(what := f"k = {k}, l = {l}, split {split.number + 1}")
            find = partial(_runs, split, k, l, original)
            found.runs.extend(kept.result(list[CellsRun], what, find))
            partial_results(CellsResults(found.runs, found.minimized, step / n_steps))
        for target in TARGETS:
            told(what := f"minimizer for {target:g} of the score, split {split.number + 1}")
            minimize = partial(_minimized, split, target)
            found.minimized.append(kept.result(MinimizerRun, what, minimize))
            partial_results(CellsResults(found.runs, found.minimized, step / n_steps))
    progress(1.0, "done")
    return CellsResults(found.runs, found.minimized)


def _runs(split: Split, k: int, l: int, original: float) -> list[CellsRun]:  # noqa: E741
    promise = Promise(k=k, l=l)
    began_s = time.process_time()
    cell_of = published_cells(split, promise)
    then_s = time.process_time()
    cells = split.pruned(split.grown(k), promise)
    ended_s = time.process_time()
    n_cells = int(cell_of.max(initial=-1)) + 1
    run = partial(CellsRun, k=k, l=l, split=split.number, original=original)
    deleted, score = split.published(cell_of)
    published = run(
        PUBLISHED, cells=n_cells, deleted=deleted, score=score, seconds=then_s - began_s
    )
    deleted, score = split.ours(cells)
    ours = run(OURS, cells=cells.n_classes, deleted=deleted, score=score, seconds=ended_s - then_s)
    return [published, ours]


def _minimized(split: Split, target: float) -> MinimizerRun:
    model = RandomForestClassifier(_N_TREES, random_state=0).fit(split.rows, split.label)
    half = len(split.judged) // 2
    seen, unseen = split.judged[:half], split.judged[half:]
    minimizer = Minimizer(model, target_score=target).fit(seen, split.truth[:half])
    shown = minimizer.transform(unseen)
    whole = float(model.score(unseen, split.truth[half:]))
    untouched = minimizer.generalizations_["untouched"]
    return MinimizerRun(
        target=target,
        split=split.number,
        score=float(model.score(shown, split.truth[half:])) / whole,
        distinct=len(np.unique(np.asarray(shown), axis=0)) / len(shown),
        kept=len(untouched) / split.rows.shape[1],
    )


def mean_rows(results: CellsResults) -> list[Row]:
    """Return the means over the splits, by k, l and method."""
    of: dict[tuple[int, int, str], list[CellsRun]] = {}
    for run in results.runs:
        of.setdefault((run.k, run.l, run.method), []).append(run)
    names = ("cells", "deleted", "score", "original", "seconds")
    return [
        {"k": k, "l": l, "method": method}
        | {name: float(np.mean([getattr(run, name) for run in some])) for name in names}
        for (k, l, method), some in of.items()  # noqa: E741
    ]


def write_cells(
    results: CellsResults, out: Path, *, options: Row, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Write tables and plots to a folder, also of an experiment that is not at its end.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    report = {**options, "done": results.done, "means": mean_rows(results)}
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: write_csv(list(map(asdict, results.runs)), path),
        "minimizer.csv": lambda path: write_csv(list(map(asdict, results.minimized)), path),
        "summary.json": lambda path: write_json(report, path),
        "manifest.json": lambda path: write_json(manifest(options), path),
    }
    for kind in formats:
        write_of[f"over_k.{kind}"] = lambda path: _draw_over_k(results, path)
        write_of[f"search.{kind}"] = lambda path: _draw_search(results, path)
        write_of[f"minimizer.{kind}"] = lambda path: _draw_minimized(results, path)
    return write_files(out, write_of)


_COLOURS = (BLUE, TEAL, ORANGE, RED)


def _draw_over_k(results: CellsResults, path: Path) -> None:
    """Draw score, deletion ratio and number of cells over k, a line for each l and procedure."""
    panels = (("accuracy", "score"), ("deletion ratio", "deleted"), ("cells", "cells"))
    with plot(path, width_in=12, height_in=4.4) as figure:
        every = figure.subplots(1, len(panels))
        for axes, (title, name) in zip(every, panels, strict=True):
            ls = sorted({run.l for run in results.runs})
            for l, colour in zip(ls, _COLOURS, strict=False):  # noqa: E741
                for method, style in ((PUBLISHED, ":"), (OURS, "-")):
                    some = [r for r in results.runs if (r.l, r.method) == (l, method)]
                    look = {"color": colour, "linestyle": style, "label": f"l = {l}, {method}"}
                    _line(axes, some, "k", name, look)
            axes.set_title(title)
            axes.set_xlabel("k")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        every[0].axhline(
            np.mean([run.original for run in results.runs]) if results.runs else 0,
            color=INK, linewidth=0.8, label="rows as they were",
        )  # fmt: skip
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        figure.suptitle(_title("Cells over k", results))


def _draw_search(results: CellsResults, path: Path) -> None:
    """Draw accuracy against deletion ratio, a point for each k and l: a search chooses of them."""
    with plot(path, width_in=7, height_in=4.8) as figure:
        axes = figure.subplots()
        for method, colour in ((PUBLISHED, ORANGE), (OURS, BLUE)):
            rows = [row for row in mean_rows(results) if row["method"] == method]
            axes.scatter(
                [row["deleted"] for row in rows], [row["score"] for row in rows],
                s=[6 * row["k"] for row in rows], facecolors="none", edgecolors=colour,
                label=f"{method} (larger: greater k)",
            )  # fmt: skip
        axes.set_xlabel("deletion ratio")
        axes.set_ylabel("accuracy on rows kept back")
        axes.grid(color=LIGHT, linewidth=0.5)
        figure.legend(loc="outside lower center", ncols=2)
        figure.suptitle(_title("The search for k and l", results))


def _draw_minimized(results: CellsResults, path: Path) -> None:
    """Draw what the minimizer keeps, over the share of the score that it is to keep."""
    shown = (("score", BLUE, "score kept, on rows not seen"), ("distinct", RED, "distinct rows"),
             ("kept", ORANGE, "columns as they were"))  # fmt: skip
    with plot(path, width_in=7, height_in=4.8) as figure:
        axes = figure.subplots()
        for name, colour, label in shown:
            _line(axes, results.minimized, "target", name, {"color": colour, "label": label})
        axes.axline((0.9, 0.9), slope=1, color=INK, linewidth=0.8, linestyle=":")
        axes.set_xlim(min(TARGETS), 1)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("share of the score to keep")
        axes.set_ylabel("share")
        figure.legend(loc="outside lower center", ncols=3)
        figure.suptitle(_title("The minimizer", results))


def _line(
    axes: Axes, runs: Sequence[CellsRun | MinimizerRun], over: str, name: str, look: Row
) -> None:
    """Draw the mean over the splits, and a band over all."""
    x = sorted({getattr(run, over) for run in runs})
    found = [[getattr(run, name) for run in runs if getattr(run, over) == at] for at in x]
    axes.plot(x, [np.mean(values) for values in found], **look)
    low, high = [min(values) for values in found], [max(values) for values in found]
    axes.fill_between(x, low, high, color=look["color"], alpha=0.12, linewidth=0)
    axes.grid(color=LIGHT, linewidth=0.5)


def _title(what: str, results: CellsResults) -> str:
    so_far = "" if results.done >= 1 else f" (so far: {results.done:.0%} of the steps)"
    return f"{what}{so_far}\n{_ORIGIN}"
