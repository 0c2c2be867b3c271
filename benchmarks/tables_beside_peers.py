"""`python -m benchmarks.tables_beside_peers`: loss, CPU and use of releases beside ARX and anjana.

Every program gets the same rows and hierarchies, one after the other: ARX (local recoding) first,
then this project with half its CPU, then anjana. What our budget costs on this machine is measured
before, in a search of a fifth of it. Loss is read from the labels that are published:
m of n values cost m / n, a single value nothing, a row left out 1. pycanon judges k. Gradient
boosting learns each release of three quarters of the rows and predicts the others as they were.
A row is printed as soon as it is known. Peers' releases are kept, and a run that is repeated uses
them: only our own are made again, unless their rows are there, too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingClassifier

import anonymizer
from benchmarks.known_tables import ARX_QIS
from benchmarks.tables import Cell, Table, as_markdown, as_rich

_HERE = Path(__file__).parent
_LEAST_BUDGET_S = 0.5
_TRIAL, _AIM = 0.2, 0.47
"""Share of our budget that is tried first, and of ARX's CPU that we aim at: half is the bound."""
_MOST_LEVELS = 6
_TESTED = 4
"""Every so-manieth row is held out."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The hierarchy of a quasi-identifier: labels from the leaf to the root, a line for each value.

    `leaves_of`: the places of the values below each label.
    """

    lines: tuple[tuple[str, ...], ...]
    is_number: bool
    leaves_of: Mapping[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, list[int]] = {}
        for i, line in enumerate(self.lines):
            for label in dict.fromkeys(line):
                found.setdefault(label, []).append(i)
        object.__setattr__(self, "leaves_of", found)

    def leaves(self, label: str) -> list[int]:
        """Return the values below a label; of a number in another form, the one it is."""
        if label in self.leaves_of:
            return self.leaves_of[label]
        number = float(label)
        return [i for i, line in enumerate(self.lines) if float(line[0]) == number]

    def lost(self, label: str) -> float:
        """Return the loss of a published label, 0 to 1."""
        n = len(self.leaves(label))
        return n / len(self.lines) if n > 1 else 0.0

    def features(self, labels: Sequence[str]) -> NDArray[np.float64]:
        """Return the mean place of numbers; of categories, the share of each value."""
        known = {label: self.leaves(label) for label in set(labels)}
        if self.is_number:
            return np.array([[float(np.mean(known[label]))] for label in labels])
        out = np.zeros((len(labels), len(self.lines)))
        for row, label in zip(out, labels, strict=True):
            row[known[label]] = 1 / len(known[label])
        return out


@dataclass(frozen=True, slots=True)
class Given:
    """A table: its rows, the hierarchy of each quasi-identifier, and the files of these."""

    name: str
    rows: pl.DataFrame
    trees: Mapping[str, Tree]
    files: Mapping[str, Path]

    @property
    def arguments(self) -> list[str]:
        """The quasi-identifiers with their files, as the peers take them."""
        return [f"{qi}={file}" for qi, file in self.files.items()]


def tree_of(values: Sequence[str]) -> Tree:
    """Return pairs of pairs of neighbours, if all are numbers; else the root above each value."""
    try:
        ordered = sorted(set(values), key=float)
    except ValueError:
        return Tree(tuple((value, "*") for value in sorted(set(values))), is_number=False)
    n_levels = min(max(len(ordered) - 1, 1).bit_length() - 1, _MOST_LEVELS)
    lines = []
    for i, value in enumerate(ordered):
        line = [value]
        for level in range(1, n_levels + 1):
            first = i >> level << level
            group = ordered[first : first + (1 << level)]
            line.append(f"{group[0]}..{group[-1]}" if len(group) > 1 else value)
        lines.append((*line, "*"))
    return Tree(tuple(lines), is_number=True)


def tables(folder: Path, into: Path) -> Iterator[Given]:
    """Yield Adult, as ARX ships it, and the tables of a folder, see `public_tables`."""
    adult = Path(os.environ["ANONYMIZER_DATA"], "adult")
    rows = pl.read_csv(adult / "adult_arx_30162.csv.gz", infer_schema=False)
    rows = rows.select(*ARX_QIS, pl.col("salary-class").alias("target"))
    trees = {qi: _read(adult / "hierarchies" / f"arx_{qi}.csv", rows[qi]) for qi in ARX_QIS}
    yield _given("Adult", rows, trees, into)
    for path in sorted(folder.glob("*.csv")):
        rows = pl.read_csv(path, infer_schema=False)
        trees = {qi: tree_of(rows[qi].to_list()) for qi in rows.columns[:-1]}
        yield _given(path.stem, rows, trees, into)


def _read(path: Path, column: pl.Series) -> Tree:
    lines = [tuple(line.split(";")) for line in path.read_text().splitlines() if line]
    there = set(column.to_list())
    return Tree(tuple(line for line in lines if line[0] in there), is_number=column[0].isdigit())


def _given(name: str, rows: pl.DataFrame, trees: Mapping[str, Tree], into: Path) -> Given:
    files = {qi: into / f"{name}-{qi}.csv" for qi in trees}
    for qi, tree in trees.items():
        files[qi].write_text("".join(";".join(line) + "\n" for line in tree.lines))
    return Given(name, rows, trees, files)


def ours(given: Given, train: Path, out: Path, k: int, budget_s: float) -> float:
    """Write our release; return seconds of CPU."""
    began = time.process_time()
    made = anonymizer.anonymize(
        train,
        qi=list(given.trees),
        k=k,
        d=1,
        model="kd",
        method="best",
        max_share=1,
        max_source_share=1,
        hierarchies=dict(given.files),
        cost="taxonomy",
        keep=["target"],
        time_budget_s=budget_s,
    )
    frame = pl.DataFrame(made.frame)
    took_s = time.process_time() - began
    frame.drop("class_id").write_csv(out)
    return took_s


def _run(*command: str | Path, longest_s: float = 600) -> float:
    """Return the number that a peer prints; NaN if it takes longer, or fails, which is told."""
    try:
        done = subprocess.run(  # noqa: S603  commands of this file
            [str(each) for each in command],
            capture_output=True, text=True, check=False, timeout=longest_s,
        )  # fmt: skip
        return float(done.stdout.split()[-1])
    except subprocess.TimeoutExpired:
        return np.nan
    except (IndexError, ValueError):
        print(*done.stderr.splitlines()[:1], file=sys.stderr)
        return np.nan


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the peers are: the class path of ARX, and a Python with anjana and pycanon.

    `longest_s`: time by the clock after which anjana is given up. `kept`: a folder for releases.
    """

    arx: str
    python: str
    longest_s: float
    kept: Path

    def rows(self, given: Given, ks: Sequence[int], work: Path) -> Iterator[tuple[Cell, ...]]:
        """Yield a row for each k and program."""
        is_test = np.arange(len(given.rows)) % _TESTED == 0
        train, test = given.rows.filter(~is_test), given.rows.filter(is_test)
        path, out = work / "train.csv", work / "out.csv"
        train.write_csv(path)
        original = _score(given, train, test)
        guess = float((test["target"] == train["target"].mode().sort()[0]).mean() or 0)
        yield (given.name, len(train), "", "original; guessing", "", "", "", original, guess)
        ours(given, path, out, ks[0], _LEAST_BUDGET_S)  # compiles
        for k in ks:
            row = (given.name, len(train), k)
            arguments = [str(path), str(out), str(k), *given.arguments]
            java = ("java", "-cp", self.arx, str(_HERE / "ArxPeer.java"), *arguments)
            arx_s = self._release(f"{given.name}-{k}", out, *java, longest_s=600.0)
            yield (*row, "ARX", *self._figures(given, arx_s, out, train, test))
            half_s = max(np.nan_to_num(arx_s) / 2, _LEAST_BUDGET_S)
            cost = ours(given, path, out, k, _TRIAL * half_s) / _TRIAL / half_s
            ours_s = ours(given, path, out, k, max(_AIM * arx_s / cost, _LEAST_BUDGET_S))
            mine = self._figures(given, ours_s, out, train, test)
            yield (*row, "ours", *mine, ours_s / arx_s)
            other = (self.python, str(_HERE / "pycanon_peers.py"), "anjana", *arguments)
            name = f"{given.name}-{k}-anjana"
            other_s = self._release(name, out, *other, longest_s=self.longest_s)
            yield (*row, "anjana", *self._figures(given, other_s, out, train, test))

    def _release(self, name: str, out: Path, *command: str, longest_s: float) -> float:
        """Write a peer's release, or the one that is kept; return seconds of CPU."""
        release, took = self.kept / f"{name}.csv", self.kept / f"{name}.json"
        if not took.exists():
            cpu_s = _run(*command, longest_s=longest_s)
            if not np.isnan(cpu_s):
                shutil.copy(out, release)
            took.write_text(json.dumps(cpu_s))
        cpu_s = float(json.loads(took.read_text()))
        if not np.isnan(cpu_s):
            shutil.copy(release, out)
        return cpu_s

    def _figures(
        self, given: Given, cpu_s: float, out: Path, train: pl.DataFrame, test: pl.DataFrame
    ) -> tuple[Cell, ...]:
        if np.isnan(cpu_s):
            return ("failed", "", "", "")
        qis = list(given.trees)
        made = pl.read_csv(out, infer_schema=False)
        made = made.filter(pl.any_horizontal(pl.col(qis) != "*"))
        made.write_csv(out)
        lost = float(len(train) - len(made)) * len(qis)
        for qi, tree in given.trees.items():
            counts = made[qi].value_counts()
            lost += sum(
                tree.lost(label) * n for label, n in zip(counts[qi], counts["count"], strict=True)
            )
        reached = _run(self.python, _HERE / "pycanon_peers.py", "pycanon", out, *qis)
        score = _score(given, made, test) if len(made) else np.nan
        gcp = lost / len(train) / len(qis)
        return (gcp, cpu_s, reached, score)


def _score(given: Given, train: pl.DataFrame, test: pl.DataFrame) -> float:
    """Return the accuracy of gradient boosting on the test rows."""
    x, y = (
        np.hstack([tree.features(rows[qi].to_list()) for qi, tree in given.trees.items()])
        for rows in (train, test)
    )
    model = HistGradientBoostingClassifier(random_state=0).fit(x, train["target"].to_numpy())
    return float(model.score(y, test["target"].to_numpy()))


_COLUMNS = ("table", "rows", "k", "program", "GCP", "CPU, s", "k by pycanon", "accuracy", "to ARX")


def main(arguments: Sequence[str]) -> None:
    """Run all, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables_beside_peers")
    parser.add_argument("folder", type=Path, help="tables that public_tables.py wrote")
    parser.add_argument("--arx", required=True, help="class path of ARX and its libraries")
    parser.add_argument("--python", required=True, help="interpreter with anjana and pycanon")
    parser.add_argument("-k", type=int, nargs="+", default=[2, 5, 10, 50, 100])
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="these tables alone")
    parser.add_argument("--longest", type=float, default=300, help="seconds for anjana")
    parser.add_argument("--keep", type=Path, required=True, help="folder for what is done")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    asked = parser.parse_args(arguments)
    console, found = Console(width=160), []
    with tempfile.TemporaryDirectory() as work:
        for given in tables(asked.folder, Path(work)):
            if not asked.only or given.name in asked.only:
                asked.keep.mkdir(exist_ok=True)
                done = asked.keep / f"{given.name}-rows.json"
                if not done.exists():
                    peers = Peers(asked.arx, asked.python, asked.longest, asked.keep)
                    made = []
                    for row in peers.rows(given, asked.k, Path(work)):
                        console.print(*row)
                        made.append((*row, *("",) * (len(_COLUMNS) - len(row))))
                    done.write_text(json.dumps(made))
                found += [tuple(row) for row in json.loads(done.read_text())]
    table = Table("Tables beside peers", _COLUMNS, found, tuple((__doc__ or "").splitlines()[2:]))
    console.print(as_rich(table))
    if asked.markdown:
        asked.markdown.write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
