"""Whatever is published is attacked: kept and sensitive columns, and labels that name somebody."""

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonymizer
from anonymizer.app.table_profile import profile
from anonymizer.audit.evidence import evidence_from, page
from anonymizer.audit.findings import TableAuditReport
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable
from tests.files.test_identifiers import IDENTIFIERS, ORDINARY, Make
from tests.lanes import each_of_both

K, N_CLASSES = 5, 12
N = K * N_CLASSES
ROLES = ("kept", "sensitive", "qi")


def audited(make: Make, role: str, **options: Any) -> tuple[TableAuditReport, str, bool]:  # noqa: ANN401
    """Audit a release with a column; return the report, its first screen, and whether it is good.

    Cells are drawn so that each is somebody's for identifiers, and many people's for the others.
    """
    rng = random.Random(3)  # noqa: S311  no secret
    original = pl.DataFrame(
        {
            "age": [str(20 + i // 2) for i in range(N)],
            "x": [make(rng, i) for i in range(N)],
            "ill": [("flu", "cold", "none")[i % 3] for i in range(N)],
        }
    )
    of = pl.Series("class_id", [i // K for i in range(N)])
    ages = [f"[{20 + c * K // 2}-{20 + (c * K + K - 1) // 2}]" for c in range(N_CLASSES)]
    release = original.with_columns(of, age=pl.Series(ages).gather(of))
    asked: dict[str, Any] = {"qi": ["age"], "sa": ["ill"], "k": K, **options}
    if role == "kept":
        asked["keep"] = ["x"]
    elif role == "sensitive":
        asked["sa"] = ["ill", "x"]
    else:
        asked |= {"qi": ["age", "x"], "categories": ["x"]}
        labels = [
            "{" + "|".join(sorted(set(original["x"][c * K : c * K + K].to_list()))) + "}"
            for c in range(N_CLASSES)
        ]
        release = release.with_columns(x=pl.Series(labels).gather(of))
    rows = pl.DataFrame({"in_row": range(N), "out_row": range(N)})
    report = anonymizer.audit_table(release, original, auditor_map=rows, **asked)
    evidence = evidence_from(
        [(Path("audit.json"), report.model_dump_json().encode())], made="2026-01-01T00:00:00Z"
    )
    screen = page(evidence).partition("<h2>What somebody who attacks")[0]
    return report, screen.partition("<body>")[2], evidence.holds


@pytest.mark.parametrize(("kind", "role"), each_of_both(IDENTIFIERS, ROLES))
def test_a_direct_identifier_makes_the_first_screen_red_in_every_role(kind: str, role: str) -> None:
    report, screen, good = audited(IDENTIFIERS[kind], role)
    assert (report.holds, good) == (False, False)
    assert "A promise is broken" in screen
    assert "Published as it is: x, which holds" in screen


OF_FEW: dict[str, Make] = {
    "family name": lambda r, _: "".join(r.choice("aeioukmnrst") for _ in range(8)).capitalize(),
    "short id": lambda _, i: f"D{i:03d}",
    "member": lambda _, i: str(100_000 + i),
    "ward and bed": lambda _, i: f"{'NESW'[i % 4]}-{i}",
}


def of_two(make: Make) -> Make:
    """Return cells of which each is that of two people, of no age in common."""
    return lambda _, i: make(random.Random(i * 37 % N // 2), i * 37 % N // 2)  # noqa: S311


@pytest.mark.parametrize("kind", [*IDENTIFIERS, *OF_FEW])
def test_a_kept_value_that_two_people_share_makes_it_red_too(kind: str) -> None:
    make = of_two((IDENTIFIERS | OF_FEW)[kind])
    report, screen, good = audited(make, "kept")
    assert (report.holds, good) == (False, False)
    assert "Published as it is: x, which holds" in screen
    report, _, good = audited(make, "kept", keep_anyway={"x": "they asked for it"})
    assert (report.failures, good) == ((), True)


@pytest.mark.parametrize(("kind", "role"), each_of_both(ORDINARY, ROLES[:2]))
def test_a_clean_release_stays_green(kind: str, role: str) -> None:
    report, screen, good = audited(ORDINARY[kind], role)
    assert (report.failures, good) == ((), True)
    assert "No promise is broken" in screen


def test_a_reason_is_repeated_on_the_first_screen() -> None:
    reason = {"x": "the patients asked for it"}
    for role in ROLES:
        report, screen, good = audited(IDENTIFIERS["e-mail"], role, keep_anyway=reason)
        assert (report.failures, good) == ((), True)
        assert "Published although it holds e-mail addresses: x" in screen
        assert reason["x"] in screen
    with pytest.raises(anonymizer.SettingsError, match="no published column"):
        audited(IDENTIFIERS["e-mail"], "kept", keep_anyway={"other": "reason"})


def test_the_first_screen_says_who_picks_a_row_with_what() -> None:
    _, screen, _ = audited(IDENTIFIERS["e-mail"], "kept")
    assert "and their quasi-identifiers, picks their row with a probability of at most 20.0%" in (
        screen.replace("\n", " ")
    )
    assert "also knows what it says in ill, x picks their row with up to 100.0%" in screen


def test_a_kept_column_can_tell_a_sensitive_value() -> None:
    report, _, _ = audited(lambda _, i: ("a", "b", "c")[i % 3], "kept")
    [found] = [each for each in report.findings if each.attack == "values by other columns"]
    assert found.figures["share_read"] == 1
    assert found.figures["share_control"] == 0


@pytest.mark.parametrize("kind", ["e-mail", "name", "address", "plate"])
def test_a_profile_and_a_release_say_what_a_column_holds(kind: str) -> None:
    rng = random.Random(3)  # noqa: S311  no secret
    make = IDENTIFIERS[kind]
    people = pl.DataFrame(
        {"age": [str(20 + i % 9) for i in range(N)], "x": [make(rng, i) for i in range(N)]}
    )
    found = profile(
        TextTable(Path("t"), people), Declared(qis=["age", "x"]), sampled=0.1, at_risk=0.2
    )
    assert (found.columns[1].suggestion, "it holds" in found.columns[1].why) == ("identifier", True)
    made = anonymizer.anonymize(people, qi="age", keep="x", k=K, method="hilbert")
    assert any("x holds" in warning for warning in made.report.warnings)


TOWNS = ("North", "Hill", "Lake", "Mill", "Park", "Dale", "Ford", "Wood")


def people(n: int = 240) -> pl.DataFrame:
    """Return people by age and postcode, with columns that say the same, and some that do not."""
    rng = random.Random(7)  # noqa: S311  no secret
    age, place = [rng.randrange(20, 60) for _ in range(n)], [rng.randrange(8) for _ in range(n)]
    return pl.DataFrame(
        {
            "age": age,
            "zip": [f"1010{j}" for j in place],
            "town": [TOWNS[j] for j in place],
            "born": [f"{2024 - x}-{rng.randrange(1, 13):02}" for x in age],
            "group": [x // 2 for x in age],
            "ward": [f"W{rng.randrange(4)}" for _ in age],
            "ill": [rng.choice(("flu", "cold", "none")) for _ in age],
        }
    )


@pytest.mark.parametrize("role", ["keep", "sa"])
@pytest.mark.parametrize(("column", "qi"), [("town", "zip"), ("born", "age"), ("group", "age")])
def test_a_column_that_says_what_a_label_hides_is_told_and_makes_the_first_screen_red(
    column: str, qi: str, role: str
) -> None:
    table = people()
    asked: dict[str, Any] = {"qi": ["age", "zip"], "k": 10, role: [column]}
    made = anonymizer.anonymize(table, model="kd", method="hilbert", **asked)
    assert any(f"{column} says nearly what {qi} says" in each for each in made.report.warnings)

    def audit(**more: Any) -> TableAuditReport:  # noqa: ANN401
        return anonymizer.audit_table(
            made.frame, table, auditor_map=made.auditor_map, **asked, **more
        )

    report = audit()
    assert (f"repeated columns ({qi})", column) in {
        (each.attack, each.attribute) for each in report.failures
    }
    [screen, _] = page_of(report).split("<h2>What somebody who attacks", maxsplit=1)
    assert f"Published beside the labels: {column}, which says nearly what {qi} says" in screen
    excused = audit(keep_anyway={column: "they agreed"})
    assert excused.failures == ()
    assert f"Published although it repeats {qi}: {column}" in page_of(excused)


Draw = random.Random
TOGETHER: dict[str, tuple[str, Callable[[int, int, Draw], tuple[float, ...]]]] = {
    "a difference": ("age", lambda age, _, rng: (x := rng.randrange(100), age + x)),
    "a sum beyond 100": ("age", lambda age, _, rng: (x := rng.randrange(99), (age - x) % 99)),
    "a place": (
        "zip",
        lambda _, at, rng: (at % 3 + rng.randrange(9) / 10, at // 3 + rng.randrange(9) / 10),
    ),
    "a table of two": ("zip", lambda _, at, rng: (x := rng.randrange(8), (x + at) % 8)),
    "a sum of three": (
        "age",
        lambda age, _, rng: (x := rng.randrange(40), y := rng.randrange(40), age - x + y),
    ),
    "a table of three": (
        "zip",
        lambda _, at, rng: (x := rng.randrange(3), y := rng.randrange(3), (3 * x + y + at) % 8),
    ),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_columns_that_say_together_what_neither_says_make_the_first_screen_red(
    kind: str,
) -> None:
    qi, make = TOGETHER[kind]
    rng = random.Random(5)  # noqa: S311  no secret
    table = people(480)
    cells = [
        make(age, int(zip_code[-1]), rng)
        for age, zip_code in table.select("age", "zip").iter_rows()
    ]
    names = ["one", "other", "third"][: len(cells[0])]
    table = table.select("age", "zip", "ill").hstack(pl.DataFrame(cells, names, orient="row"))
    asked: dict[str, Any] = {"qi": ["age", "zip"], "sa": ["ill"], "k": 10}

    def made_of(*keep: str, **more: Any) -> tuple[Any, TableAuditReport]:  # noqa: ANN401
        made = anonymizer.anonymize(table, keep=keep, model="kd", method="hilbert", **asked)
        return made, anonymizer.audit_table(made, table, keep=keep, **asked, **more)

    for fewer in combinations(names, len(names) - 1):
        assert not made_of(*fewer)[1].failures
    made, report = made_of(*names)
    together = " with ".join(names)
    assert any(f"{together} says nearly what {qi} says" in w for w in made.report.warnings)
    assert [(each.attack, each.attribute) for each in report.failures] == [
        (f"repeated columns ({qi})", together)
    ]
    assert f"{together}, which says nearly" in page_of(report)
    reasons = {name: f"{name} is old" for name in names}
    _, half = made_of(*names, keep_anyway={name: reasons[name] for name in names[1:]})
    assert half.failures
    _, excused = made_of(*names, keep_anyway=reasons)
    assert not excused.failures
    assert f"{together}; the reason given: {'; '.join(reasons.values())}" in page_of(excused)


def page_of(report: TableAuditReport) -> str:
    evidence = evidence_from(
        [(Path("audit.json"), report.model_dump_json().encode())], made="2026-01-01T00:00:00Z"
    )
    return page(evidence)


def test_columns_that_say_something_else_and_labels_of_the_same_thing_stay_green() -> None:
    table = people()
    asked: dict[str, Any] = {"qi": ["age", "zip", "town"], "sa": ["ill"], "keep": ["ward"], "k": 10}
    made = anonymizer.anonymize(table, model="kd", method="hilbert", **asked)
    assert not any("says nearly" in each for each in made.report.warnings)
    report = anonymizer.audit_table(made.frame, table, auditor_map=made.auditor_map, **asked)
    assert report.failures == ()


def test_rows_that_are_left_in_an_order_of_age_tell_it() -> None:
    table = people().select("age", "zip").sort("age", "zip")
    asked: dict[str, Any] = {"qi": ["age", "zip"], "k": 10}
    made = anonymizer.anonymize(table, model="kd", method="hilbert", **asked)
    rows = made.auditor_map["out_row"].to_list()
    release = made.frame[rows]
    report = anonymizer.audit_table(
        release,
        table,
        auditor_map=pl.DataFrame({"in_row": range(240), "out_row": range(240)}),
        **asked,
    )
    assert "order of rows" in {each.attribute for each in report.failures}
    report = anonymizer.audit_table(made.frame, table, auditor_map=made.auditor_map, **asked)
    assert report.failures == ()


def test_a_kept_number_says_how_many_rows_it_finds_alone() -> None:
    table = people().with_columns(dose=pl.Series([i * 0.7 % 90 for i in range(240)]))
    made = anonymizer.anonymize(table, qi="age", keep="dose", model="kd", method="hilbert", k=10)
    assert any("of 240 rows have a value of their own)" in each for each in made.report.warnings)
