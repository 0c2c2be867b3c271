"""Tables made by ARX, anjana and anonypy themselves: `audit release` finds k, l and t as others do.

`make test-judge` installs anjana and anonypy beside pycanon. ARX is no package: `make test-judge
ARX=CLASSPATH` names its classes and libraries, of a build of its sources (Java 17, `javac` of
src/main with the jars of its lib), and without it half of the releases are left out.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.audit.lone_release import LoneRelease, judge_release
from anonymizer.files.tables import TextTable, read_table

HERE = Path(__file__).parent
JUDGE = os.environ["ANONYMIZER_JUDGE"]
ARX = os.environ.get("ANONYMIZER_ARX", "")
QIS, SENSITIVE = ("age", "job", "city"), "illness"
N_OF = {"anjana": 25, "anonypy": 25, "ARX": 50}
CITIES = ("10115", "10117", "10243", "20095", "20097", "20249")
JOBS = ("cook", "nurse", "pilot", "clerk")
HIDDEN = {"", "*"}
STEP = 1e-3
"""Of t, by which the verdicts of ARX are asked above and below."""


@dataclass(frozen=True)
class Asked:
    """A release that is asked of a program."""

    program: str
    number: int
    k: int
    l: int  # noqa: E741  the field's name for it
    t: float

    @property
    def table(self) -> str:
        return f"{self.program}-{self.number}-table.csv"

    @property
    def out(self) -> str:
        return f"{self.program}-{self.number}.csv"


def _asked(program: str) -> list[Asked]:
    kinds = [(0, 0.0), (2, 0.0), (0, 0.35)]
    return [Asked(program, i, (2, 3, 5, 8)[i % 4], *kinds[i % 3]) for i in range(N_OF[program])]


def _write_table(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 400))
    pl.DataFrame(
        {
            "age": rng.integers(18, 82, n).astype(str),
            "job": rng.choice(JOBS, n),
            "city": rng.choice(CITIES, n),
            SENSITIVE: rng.choice(["flu", "cold", "gout", "none"], n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    ).write_csv(path)


def _hierarchies(folder: Path) -> dict[str, str]:
    """Write a hierarchy of each quasi-identifier, and return the files by their names."""
    lines = {
        "age": [
            [str(age), *(f"[{age // w * w}, {age // w * w + w}[" for w in (5, 20)), "*"]
            for age in range(18, 82)
        ],
        "job": [[job, "service" if job in JOBS[:2] else "office", "*"] for job in JOBS],
        "city": [[city, f"{city[:3]}**", f"{city[:1]}****", "*"] for city in CITIES],
    }
    for qi, each in lines.items():
        (folder / f"{qi}.csv").write_text("".join(";".join(line) + "\n" for line in each))
    return {qi: str(folder / f"{qi}.csv") for qi in QIS}


def _arx(folder: Path, jobs: list[list[str]]) -> list[str]:
    (folder / "jobs.tsv").write_text("".join("\t".join(job) + "\n" for job in jobs))
    command = ["java", "-cp", ARX, str(HERE / "ArxReleases.java"), str(folder / "jobs.tsv")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    return done.stdout.split()


def _of_arx(folder: Path, asked: list[Asked], files: dict[str, str]) -> dict[Asked, LoneRelease]:
    """Return what we find in releases of ARX; k must be what ARX says of the classes it made."""
    qis = [f"{qi}={file}" for qi, file in files.items()]
    told = _arx(
        folder,
        [
            [
                "make", str(folder / each.table), str(folder / each.out), str(each.k), str(each.l),
                str(each.t), SENSITIVE, *qis,
            ]
            for each in asked
        ],
    )  # fmt: skip
    found = {
        each: _judged(folder / each.out)
        for each, says in zip(asked, told, strict=True)
        if says != "none"
    }
    for each, says in zip(asked, told, strict=True):
        assert says == "none" or found[each].k == int(says), each
    return found


def _of_others(folder: Path, asked: list[Asked], files: dict[str, str]) -> dict[Asked, LoneRelease]:
    jobs = [
        {
            "program": each.program, "table": each.table, "out": each.out, "k": each.k, "l": each.l,
            "t": each.t, "qi": list(QIS), "sa": SENSITIVE, "hierarchies": files,
        }
        for each in asked
    ]  # fmt: skip
    (folder / "jobs.json").write_text(json.dumps(jobs))
    command = [JUDGE, "-W", "ignore", str(HERE / "other_programs.py"), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    made = json.loads(done.stdout.splitlines()[-1])
    return {
        each: _judged(folder / each.out)
        for each, is_made in zip(asked, made, strict=True)
        if is_made
    }


def _judged(path: Path) -> LoneRelease:
    table = read_table(path)
    count = "count" if "count" in table.frame.columns else None
    return judge_release(table, QIS, (SENSITIVE,), count=count)


def _as_rows(folder: Path, each: Asked) -> str:
    """Write a release without suppressed rows, each as often as it counts, for other judges."""
    table: TextTable = read_table(folder / each.out)
    frame = table.frame.with_columns(pl.all().cast(pl.String).fill_null("").str.strip_chars())
    frame = frame.filter(~pl.all_horizontal(pl.col(QIS).is_in(sorted(HIDDEN))))
    if "count" in frame.columns:
        n = frame["count"].cast(pl.Float64).cast(pl.Int64).to_numpy()
        frame = frame[np.repeat(np.arange(len(n)), n)]
    name = f"rows-{each.out}"
    frame.select(*QIS, SENSITIVE).write_csv(folder / name)
    return name


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Asked, LoneRelease]]:
    """Return the folder, and what we find in each release that a program made."""
    folder = tmp_path_factory.mktemp("others")
    files = _hierarchies(folder)
    found: dict[Asked, LoneRelease] = {}
    for seed, program in enumerate(N_OF):
        if program == "ARX" and not ARX:
            continue
        asked = _asked(program)
        for each in asked:
            _write_table(folder / each.table, 1000 * seed + each.number)
        make = _of_arx if program == "ARX" else _of_others
        found |= make(folder, asked, files)
    return folder, found


def test_releases_of_arx_have_what_was_asked_of_it(
    releases: tuple[Path, dict[Asked, LoneRelease]],
) -> None:
    found = releases[1]
    assert len(found) >= 0.9 * sum(n for program, n in N_OF.items() if program != "ARX" or ARX)
    for each, mine in found.items():
        illness = mine.sensitive[SENSITIVE]
        if each.program != "ARX":  # anonypy and anjana compare and count in ways of their own
            continue
        assert mine.k >= each.k, each
        assert illness.distinct_l >= each.l, each
        if not mine.n_suppressed:  # ARX compares classes with these rows, too
            assert not each.t or illness.t <= each.t + 1e-9, each


def test_pycanon_finds_what_we_find(releases: tuple[Path, dict[Asked, LoneRelease]]) -> None:
    folder, found = releases
    told = [{"file": _as_rows(folder, each), "qi": list(QIS), "sa": [SENSITIVE]} for each in found]
    (folder / "releases.json").write_text(json.dumps(told))
    command = [JUDGE, "-W", "ignore", str(HERE / "figures.py"), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    for (each, mine), says in zip(found.items(), json.loads(done.stdout), strict=True):
        illness = mine.sensitive[SENSITIVE]
        assert says["n"] == mine.n_rows - mine.n_suppressed, each
        assert (says["k"], says["l"]) == (mine.k, illness.distinct_l), each
        assert says["t"] == pytest.approx(illness.t), each


@pytest.mark.skipif(not ARX, reason="make test-judge ARX=CLASSPATH")
def test_arx_says_of_each_what_we_say(releases: tuple[Path, dict[Asked, LoneRelease]]) -> None:
    """It holds what we find, and not one more of k or l, and no smaller t."""
    folder, found = releases
    jobs, expected = [], []
    for each, mine in found.items():
        rows, illness = str(folder / _as_rows(folder, each)), mine.sensitive[SENSITIVE]
        asks = [
            (mine.k, 0, 0.0, True),
            (mine.k + 1, 0, 0.0, False),
            (1, illness.distinct_l, 0.0, True),
            (1, illness.distinct_l + 1, 0.0, False),
            (1, 0, illness.t + STEP, True),
            (1, 0, illness.t - STEP, False),
        ]
        for k, l, t, holds in asks:  # noqa: E741  the field's name for it
            if t <= 1 and not (t < 0) and not (l == 1 and t == 0):
                jobs.append(["holds", rows, str(k), str(l), str(t), SENSITIVE, *QIS])
                expected.append((each, k, l, t, holds))
    for (each, k, l, t, holds), says in zip(expected, _arx(folder, jobs), strict=True):  # noqa: E741
        assert (says == "true") == holds, (each, k, l, t)
