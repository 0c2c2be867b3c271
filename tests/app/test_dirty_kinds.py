"""Kinds of dirt, one at a time: what programs, people and spreadsheets write into a table.

Of each table the test knows who the people are and what each cell means. It wants k to count the
people, l the meanings, the report to say what was folded, and an error to say what to do.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import anonymizer
from anonymizer.errors import InputError

N = 40
ILLS = ("flu", "gout", "asthma")
HEAD = ("id", "age", "zip", "ill")
OPTIONS: dict[str, Any] = {
    "qi": ["age", "zip"], "sa": "ill", "id": "id", "k": 5, "l": 2, "d": 1, "model": "kld",
    "method": "hilbert", "max_share": 1, "max_source_share": 1, "time_budget_s": 0,
}  # fmt: skip
Row = tuple[str, ...]


def people(n: int = N) -> list[Row]:
    rng = random.Random(1)  # noqa: S311  no secret
    rows: list[Row] = []
    for i in range(n):
        zip_ = f"{rng.randint(10, 14)}0{rng.randint(1, 9)}0"
        rows.append((f"p{i:03d}", str(rng.randint(18, 80)), zip_, rng.choice(ILLS)))
    return rows


def text(
    rows: Sequence[Row], mark: str = ",", head: tuple[str, ...] = HEAD, end: str = "\n"
) -> str:
    return end.join(mark.join(row) for row in [head, *rows]) + end


def released(folder: Path, content: bytes | str, **asked: Any) -> anonymizer.AnonymizedTable:  # noqa: ANN401
    path = folder / "people.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = {name: value for name, value in (OPTIONS | asked).items() if value is not None}
    return anonymizer.anonymize(path, **options)


def test_a_release_counts_what_was_meant_and_tells_what_it_folded(tmp_path: Path) -> None:
    """More writings are in `test_one_value_in_many_writings`."""
    writings = ["flu", "FLU", "f\u200blu", '"""flu"""', '"=""flu"""', '"flu\r\n"']
    rows = [(*row[:3], writings[i % len(writings)]) for i, row in enumerate(people())]
    with pytest.raises(InputError, match="ill has 1 value, l = 2"):
        released(tmp_path, text(rows))
    rows = [row if i % 4 else (*row[:3], "other") for i, row in enumerate(rows)]
    made = released(tmp_path, text(rows))
    assert made.frame["ill"].n_unique() == 2
    assert [fold for fold in made.report.folds if fold.column == "ill" and fold.n_values == 1]
    rows = [(*row[:3], ["\\N", "unknown", "-"][i % 3]) for i, row in enumerate(rows)]
    with pytest.raises(InputError, match="ill has 0 values, l = 2"):
        released(tmp_path, text(rows))


P = people()
NO_ID: dict[str, Any] = {"id": None}
TABLES: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "mark of UTF-8": ("\ufeff" + text(P), {}),
    "UTF-16": (text(P).encode("utf-16"), {}),
    "UTF-16, big end": (b"\xfe\xff" + text(P).encode("utf-16-be"), {}),
    "semicolons": (text(P, ";"), {}),
    "tabs": (text(P, "\t"), {}),
    "bars": (text(P, "|"), {}),
    "CRLF": (text(P, end="\r\n"), {}),
    "decimal commas": (text([(i, f"{a},5", z, x) for i, a, z, x in P], ";"), {}),
    "blanks in the heading": (text(P, head=(" id", " age ", "zip\u00a0", "ill\t")), {}),
    "two marks": ("\ufeff\ufeff" + text(P), {}),
    "zero width in the heading": (text(P, head=("id", "a\u200bge", "zip", "ill")), {}),
    "another form of the heading": (
        text(P, head=("id", "a\u0301ge", "zip", "ill")), {"qi": ["\u00e1ge", "zip"]}
    ),
    "a separator at each end": ("".join(x + ",\n" for x in text(P).split("\n")[:-1]), {}),
    "total with id": (text(P) + "Total,,,\n", {}),
    "total and a mean": (text(P) + "Total,,40,\n", {}),
    "total": (text([(a, z, x, "") for _, a, z, x in P], head=("age", "zip", "ill", "-"))
              + "Total,,,\n", NO_ID),
    "sum of a column": (text([(a, z, x, "") for _, a, z, x in P], head=("age", "zip", "ill", "-"))
                        + "Summe:,40,,\n", NO_ID),
    "subtotals": (
        text([*P[:20], ("Subtotal", "50", "", ""), *P[20:], ("TOTAL", "50", "", "")]), {}
    ),
    "footer": (text(P) + '"Source: the office, 2024",,,\n', {}),
    "lines of separators": (text(P[:9]) + ",,,\n;,,\n".replace(";", ",") + text(P[9:])[14:], {}),
    "the heading again": (text(P[:20]) + text(P[20:]), {}),
    "the heading ten times": (
        "".join(text([(a, z, x, "") for _, a, z, x in P[4 * i : 4 * i + 4]],
                     head=("Age", "ZIP", "ill", "-")) for i in range(10)),
        {"id": None, "qi": ["Age", "ZIP"]},
    ),
    "units below the heading": (text([("", "years", "code", ""), *P]), {}),
    "people without a name": (text([*P, *[("N/A", "33", "10010", "flu")] * 10]), {}),
    "unknown people": (text([*P, *[("Unknown", "33", "10010", "flu")] * 10]), {}),
}  # fmt: skip


@pytest.mark.parametrize(("content", "asked"), TABLES.values(), ids=TABLES)
def test_k_counts_the_people_of_a_table_in_any_form(
    tmp_path: Path, content: str | bytes, asked: dict[str, Any]
) -> None:
    made = released(tmp_path, content, **asked)
    assert made.report.n_published == N
    assert made.report.k >= 5
    nobody = {"states_nothing", "no_identifier", "states_no_qi"}
    assert set(made.report.suppressed) <= nobody
    assert made.report.n == N + sum(made.report.suppressed.values())


IDS: dict[str, Callable[[str, int], str]] = {
    "case": lambda name, i: name.upper() if i % 2 else name,
    "blanks": lambda name, i: name + " " * (i % 3),
    "no-break space": lambda name, i: name + "\u00a0" * (i % 2),
    "zero width": lambda name, i: name + "\u200b" * (i % 2),
    "full width": lambda name, i: name.replace("0", "\uff10") if i % 2 else name,
    "padding": lambda name, i: name[1:] if i % 2 else name[1:].lstrip("0") or "0",
    "decimals": lambda name, i: (name[1:].lstrip("0") or "0") + (".0" if i % 2 else ""),
    "apostrophe": lambda name, i: ("'" if i % 2 else "") + name,
}


@pytest.mark.parametrize("write", IDS.values(), ids=IDS)
def test_writings_of_an_identifier_are_one_person(
    tmp_path: Path, write: Callable[[str, int], str]
) -> None:
    rows = [row for row in people(12) for _ in range(4)]
    rows = [(write(row[0], i), *row[1:3], ILLS[i % 3]) for i, row in enumerate(rows)]
    with pytest.raises(InputError, match="there are 12 persons, k = 13"):
        released(tmp_path, text(rows), k=13)
    assert released(tmp_path, text(rows), k=3, l=1).report.suppressed == {"repeated": 36}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (text(P, end="\r"), "ends its lines with CR alone: save it with LF"),
        (text(P, head=("ID", "Age", "zip", "ill")), "no column id; did you mean ID?"),
        (text([(*x, "1") for x in P], head=(*HEAD, "age\u200b")), "column age occurs twice"),
        (text([(i, f'"{a},000"', z, x) for i, a, z, x in P]), "age: a comma could be of decimals"),
        ("% exported\n" + text(P), "the heading seems to be line 2: take the line above it out"),
        ("Patients\n\n" + text(P), "the heading seems to be line 3: take the 2 lines above it out"),
        (text(P[:20]) + "# page 2\n" + text(P[20:])[14:], "row 21: has 1 cells, and the header 4"),
        (text(P) + "Source: the office\n", "row 41: has 1 cells, and the header 4"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        released(tmp_path, content)
    assert said in str(refused.value)
