"""What a profile takes a column for: by its name, by its cells, and beside the others."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer.api.profiling import ProfileReport
from anonymizer.files.column_names import said_by
from tests.files.test_free_text import TOLD
from tests.files.test_identifiers import FIRST, IDENTIFIERS, ORDINARY, Make
from tests.lanes import some

N = 300


def roles(table: dict[str, Any]) -> dict[str, str]:
    return {each.name: each.suggestion for each in profiled(table).columns}


def profiled(table: dict[str, Any]) -> ProfileReport:
    return anonymizer.profile(pl.DataFrame(table))


def cells(make: Make, n: int = N) -> list[str]:
    rng = random.Random(5)  # noqa: S311  no secret
    return [make(rng, i) for i in range(n)]


BESIDE = {"group": ["a", "b", "c"] * (N // 3), "hours": [str(i % 40) for i in range(N)]}


@pytest.mark.parametrize("name", ["x", "diagnosis", "comment", "city"])
@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_few_sentences_that_tell_of_somebody_make_a_column_an_identifier(
    told: str, name: str
) -> None:
    notes = [told.format(i) if i % 20 == 0 else "all is well" for i in range(N)]
    [found] = [each for each in profiled({name: notes, **BESIDE}).columns if each.name == name]
    assert (found.suggestion, found.why[:8]) == ("identifier", "it holds")


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_cells_that_are_somebodys_are_identifiers_whatever_their_column_is_called(
    kind: str,
) -> None:
    make = IDENTIFIERS[kind]
    n = 60  # as the other tests of these: some have few values
    beside = {name: column[:n] for name, column in BESIDE.items()}
    found = roles({"x": cells(make, n), **beside})["x"]
    # The moment of a birth is what somebody knows of a person, as its day is.
    assert found == ("quasi-identifier" if kind == "birth with time" else "identifier")


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_cells_are_no_identifiers(kind: str) -> None:
    assert roles({"x": cells(ORDINARY[kind]), **BESIDE})["x"] in {"quasi-identifier", "little"}


def amounts(seed: int, low: float, high: float, digits: int) -> list[float]:
    drawn = np.random.default_rng(seed).uniform(low, high, N).round(digits)
    return [float(x) for x in drawn] if digits else [int(x) for x in drawn]


KNOWN: dict[str, tuple[str, list[Any]]] = {
    "salary": ("sensitive", amounts(1, 20_000, 99_999, 0)),
    "annual_income": ("sensitive", amounts(2, 100_000, 999_999, 0)),
    "Gehalt": ("sensitive", amounts(3, 2_000, 9_000, 2)),
    "\u5de5\u8d44": ("sensitive", amounts(4, 5_000, 90_000, 0)),
    "Diagnose": ("sensitive", cells(ORDINARY["illness"])),
    "mileage_km": ("quasi-identifier", amounts(5, 0, 300_000, 1)),
    "glucose": ("quasi-identifier", amounts(6, 3, 12, 4)),
    "dob": ("quasi-identifier", [f"19{i % 90 + 10}-{i % 12 + 1:02}-{i % 28 + 1:02}"
                                 for i in range(N)]),
    "pickup": ("quasi-identifier", [f"2024-03-{i % 30 + 1:02} {i % 24:02}:{i % 60:02}:{i % 59:02}"
                                    for i in range(N)]),
    "zip": ("quasi-identifier", [f"{10_000 + 7 * i}" for i in range(N)]),
    "Wohnort": ("quasi-identifier", [f"Bad {FIRST[i % 8]}{i % 50}" for i in range(N)]),
    "first_name": ("identifier", [FIRST[i % 8] + "abcdefgh"[i // 8 % 8] for i in range(N)]),
    "Nachname": ("identifier", ["M" + "abcdefghij"[i % 10] * 2 + "er" for i in range(N)]),
    "apellidos": ("identifier", ["g" + "abcdefghij"[i % 10] * 3 for i in range(N)]),
    "\u59d3\u540d": ("identifier", [FIRST[i % 8] + str(i % 50) + "x" for i in range(N)]),
    "driver name": ("identifier", [f"{FIRST[i % 8]}{i % 40}" for i in range(N)]),
    "customerEmail": ("identifier", [f"p{i % 90}@example.org" for i in range(N)]),
    "Tel. Nr.": ("identifier", [str(170_000_000 + 31 * i) for i in range(N)]),
    "SSN": ("identifier", [str(100_000_000 + 7_919 * i) for i in range(N)]),
    "passport_no": ("identifier", [f"{i * 7_919 % 10_007}X" for i in range(N)]),
    "Kennzeichen": ("identifier", [f"b {i}" for i in range(N)]),
    "vehicle_id": ("identifier", [i % 30 for i in range(N)]),
    "row": ("identifier", [*range(N)]),
    "station_name": ("quasi-identifier", [f"{FIRST[i % 8]} {i % 9}" for i in range(N)]),
    "zone_id": ("quasi-identifier", [i % 30 for i in range(N)]),
    "email_count": ("quasi-identifier", [i % 17 for i in range(N)]),
    "plate_type": ("quasi-identifier", ["ABC"[i % 3] for i in range(N)]),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_columns_of_known_roles_are_taken_for_these(name: str) -> None:
    role, column = KNOWN[name]
    found = roles({name: column, **BESIDE})[name]
    assert found in ({role, "little"} if role == "quasi-identifier" else {role})


@pytest.mark.parametrize("name", ["email", "Telefon", "name", "id", "Adresse"])
def test_a_name_alone_does_not_make_an_identifier(name: str) -> None:
    assert roles({name: [str(i % 2) for i in range(N)], **BESIDE})[name] != "identifier"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("firstName", "first_name"),
        ("FIRST NAME", "First-Name"),
        ("Pr\u00e9nom", "prenom"),
        ("E-Mail", "email"),
        ("IPAddress", "ip_address"),
        ("\uff25mail", "email"),
    ],
)
def test_a_name_says_the_same_in_any_writing(one: str, other: str) -> None:
    assert said_by(one) == said_by(other) is not None


WIDE: dict[str, Callable[[int], dict[str, Any]]] = {
    "100 columns of 30 rows": lambda i: {"n": 30, "m": 100, "seed": i},
    "300 columns of 30 rows": lambda i: {"n": 30, "m": 300, "seed": i},
    "one column": lambda i: {"n": 40, "m": 1, "seed": i},
    "one row": lambda i: {"n": 1, "m": 200, "seed": i},
}


@pytest.mark.parametrize("kind", some(WIDE, WIDE.keys() - {"300 columns of 30 rows"}))
def test_any_width_has_a_profile(kind: str) -> None:
    shape = WIDE[kind](1)
    rng = np.random.default_rng(shape["seed"])
    drawn = rng.integers(0, 6, (shape["n"], shape["m"])).astype(str)
    found = profiled({f"c{j}": column.tolist() for j, column in enumerate(drawn.T)})
    assert len(found.columns) == shape["m"]
    assert np.isfinite([found.dis_highest, found.dis_average]).all()
    assert found.all_sets == (shape["m"] == 1 or shape["n"] == 1)


def test_columns_without_a_value_or_with_one_say_nothing() -> None:
    found = roles({"none": [None] * N, "blank": [""] * N, "one": ["x"] * N, **BESIDE})
    assert [found[name] for name in ("none", "blank", "one")] == ["nothing"] * 3


def test_a_column_that_tells_another_one_is_named() -> None:
    rng = random.Random(1)  # noqa: S311  no secret
    age, place = [rng.randrange(20, 60) for _ in range(N)], [rng.randrange(8) for _ in range(N)]
    table = {
        "age": age,
        "born": [2024 - x for x in age],
        "zip": [f"1010{x}" for x in place],
        "town": ["NHLMPDFW"[x] for x in place],
        "sex": [rng.choice("mf") for _ in age],
    }
    why = {each.name: each.why for each in profiled(table).columns}
    assert {name for name in why if "it tells" in why[name]} == {"age", "born", "zip", "town"}
    assert why["town"].endswith("; it tells zip")
    assert why["age"].endswith("; it tells born")
