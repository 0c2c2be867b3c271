"""Whatever is published is attacked: kept and sensitive columns, and labels that name somebody."""

import random
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
