"""`anonymizer profile`: which columns it suggests, why, and what it says a release would lose."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.support import anonymizer

N = 400


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    path = tmp_path / "people.csv"
    pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(N)],
            "plate": [f"{i * 7 % 1009}-x" for i in range(N)],
            "age": rng.integers(20, 80, N),
            "zip": rng.integers(10, 40, N),
            "land": ["here"] * N,
            "member": ["no"] * 399 + ["yes"],
            "illness": [["flu", "cold", "gout"][x] for x in rng.integers(0, 3, N)],
        }
    ).write_csv(path)
    return path


def test_columns_are_suggested_by_what_they_tell(table: Path) -> None:
    done = anonymizer("profile", table, "--id", "name", "--sa", "illness", "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    seems = {each["name"]: each["suggestion"] for each in found["columns"]}
    assert seems == {
        "plate": "identifier",
        "age": "quasi-identifier",
        "zip": "quasi-identifier",
        "land": "nothing",
        "member": "little",
    }
    assert found["together"] == ["age", "zip"]
    rows = pl.read_csv(table)
    alike = rows.group_by("age", "zip").len()["len"].to_numpy()
    assert found["share_unique"] == pytest.approx((alike == 1).sum() / N)
    assert found["risk_average"] == pytest.approx(len(alike) / N)
    assert found["share_at_risk"] == pytest.approx(alike[1 / alike > 0.2].sum() / N)
    age = next(each for each in found["columns"] if each["name"] == "age")
    times = rows["age"].value_counts()["count"].to_numpy()
    alone = (times * (times - 1)).sum() / (N * (N - 1))
    assert age["separation"] == pytest.approx(1 - alone)
    assert age["distinction"] == len(times) / N
    assert found["prices"] == []


def test_prices_are_those_of_the_releases_that_anonymize_makes(table: Path, tmp_path: Path) -> None:
    done = anonymizer(
        *("profile", table, "--id", "name", "--qi", "age,zip", "--sa", "illness"),
        *("-k", "5", "--json", tmp_path / "p.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "prices" in done.stdout
    assert "weight age = 3: its loss" in " ".join(done.stdout.split())
    prices = {
        each["asked"]: each for each in json.loads((tmp_path / "p.json").read_text())["prices"]
    }
    assert set(prices) > {"nothing more", "d = 2", "l = 2", "t = 0.2", "suppress = 0.05"}
    more: dict[str, tuple[str, ...]] = {
        "nothing more": (),
        "suppress = 0.05": ("--suppress", "0.05"),
        "weight age = 3": ("--weight", "age=3"),
    }
    for asked, options in more.items():
        report = tmp_path / "r.json"
        done = anonymizer(
            *("anonymize", table, "--id", "name", "--qi", "age,zip", "--sa", "illness"),
            *("-k", "5", "-d", "1", "--method", "mondrian", "--out", tmp_path / "out.csv"),
            *("--report", report),
            *options,
        )
        assert done.returncode == 0, done.stderr
        assert prices[asked]["gcp"] == json.loads(report.read_text())["gcp"]["range"]
    assert prices["weight zip = 3"]["weighted"] == "zip"
    assert prices["t = 0.2"]["t"] <= 0.2 + 1e-9
    assert prices["weight age = 3"]["ncp"]["age"] < prices["nothing more"]["ncp"]["age"]


def test_what_cannot_be_kept_has_no_price_but_a_reason(table: Path, tmp_path: Path) -> None:
    done = anonymizer(
        *("profile", table, "--id", "name", "--qi", "age,land", "--sa", "illness"),
        *("-k", "300", "--json", tmp_path / "p.json"),
    )
    assert done.returncode == 0, done.stderr
    prices = json.loads((tmp_path / "p.json").read_text())["prices"]
    price = {each["asked"]: each for each in prices}
    assert price["nothing more"]["why_not"] is None
    assert price["d = 2"]["gcp"] is None
    assert "land has 1 value, d = 2" in price["d = 2"]["why_not"]


def test_prices_of_many_columns_are_as_many_as_there_is_time_for(tmp_path: Path) -> None:
    path, rng = tmp_path / "wide.csv", np.random.default_rng(3)
    pl.DataFrame(rng.integers(0, 9, (60, 300)), [f"c{i}" for i in range(300)]).write_csv(path)
    done = anonymizer("profile", path, "-k", "5", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "looking at 300 columns" in done.stderr
    [price] = json.loads(done.stdout)["prices"]
    assert "300 columns would take long: name fewer" in price["why_not"]
    few = ",".join(f"c{i}" for i in range(20))
    done = anonymizer("profile", path, "--qi", few, "-k", "5", "--json", "-")
    prices = json.loads(done.stdout)["prices"]
    assert [each["why_not"] is None for each in prices] == [True] * 12 + [False]
    assert prices[-1]["asked"] == "13 more"


def test_a_table_in_which_no_column_seems_to_name_people_has_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,land\n" + "".join(f"p{i},here\n" for i in range(20)))
    done = anonymizer("profile", path, "--id", "id", "-k", "5", "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["together"], found["prices"], found["share_unique"]) == ([], [], 0)


def test_a_table_without_a_column_to_look_at_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name\na\nb\n")
    done = anonymizer("profile", path, "--id", "name")
    assert done.returncode == 2
    assert "has no column to look at" in done.stderr
