"""`anonymizer attack`: whether somebody's blur holds."""

import json
from pathlib import Path

import numpy as np

from tests.cli.support import anonymizer

START = 1_780_000_000 - 1_780_000_000 % 86_400


def _trips(noise: float) -> str:
    """Eight people who go between home and a place of work on five days, 60 s apart."""
    rng = np.random.default_rng(1)
    rows = ["user,time,lat,lon"]
    for person in range(8):
        home, work = rng.uniform(48, 48.1, 2), rng.uniform(48, 48.1, 2)
        for day in range(5):
            for hour, (begin, end) in ((8, (home, work)), (17, (work, home))):
                for i in range(10):
                    lat, lon = begin + (end - begin) * i / 9 + rng.normal(0, noise, 2)
                    at = START + day * 86_400 + hour * 3600 + 60 * i
                    rows.append(f"u{person},{at},{lat:.6f},{lon:.6f}")
    return "\n".join(rows) + "\n"


def test_the_first_sentence_says_what_was_found_of_whom_and_how_surely(tmp_path: Path) -> None:
    truth, release = tmp_path / "truth.csv", tmp_path / "release.csv"
    truth.write_text(_trips(0).replace("user,time", "device_id,ts"))
    release.write_text(_trips(1e-3))
    page, found = tmp_path / "found.html", tmp_path / "found.json"
    done = anonymizer("attack", release, "--truth", truth, "--page", page, "--json", found)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()[0]
    assert said.startswith("Of 8 people, "), said
    assert "with 99 % certainty" in said
    assert "if the guess is made about somebody else" in said
    report = json.loads(found.read_text())
    assert report["headline"] == said
    assert said in page.read_text().replace("&#x27;", "'")
    assert "<svg" in page.read_text()
    assert {each["attack"] for each in report["attacks"]} >= {"homes", "histories", "tracking"}
    done = anonymizer("attack", release, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "may be their home" in json.loads(done.stdout)["headline"]


def test_what_is_open_is_said_with_the_option_that_states_it(tmp_path: Path) -> None:
    release = tmp_path / "release.csv"
    release.write_text(_trips(0).replace("user,time", "alpha,time"))
    done = anonymizer("attack", release)
    assert done.returncode == 0, "one column is no choice"
    two = [f"{line},{'x' if i % 2 else 'y'}" for i, line in enumerate(_trips(0).split())]
    release.write_text("\n".join(["alpha,time,lat,lon,beta", *two[1:]]) + "\n")
    done = anonymizer("attack", release)
    assert done.returncode == 2
    assert "State --columns id=..., one of alpha (column alpha), beta (column beta)" in done.stderr
    done = anonymizer("attack", release, "--columns", "id=alpha")
    assert done.returncode == 0, done.stderr
    done = anonymizer("attack", tmp_path / "nowhere.csv")
    assert done.returncode == 2


def test_what_the_error_about_the_truth_says_to_state_helps(tmp_path: Path) -> None:
    truth, release = tmp_path / "truth.csv", tmp_path / "release.csv"
    truth.write_text(_trips(0))
    release.write_text(_trips(1e-3))
    done = anonymizer("attack", release, "--truth", truth)
    assert done.returncode == 2
    stated = done.stderr.partition("state ")[2].split()
    assert stated[0] == "--truth-columns", done.stderr
    done = anonymizer("attack", release, "--truth", truth, *stated[:2])
    assert done.returncode == 0, done.stderr


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    release = tmp_path / "release.csv"
    release.write_text(_trips(0))
    for stated in ("id=nobody", "area=nobody,count=lat", "cell=nobody", "latlon=nobody"):
        done = anonymizer("attack", release, "--columns", stated)
        assert done.returncode == 2, stated
        assert "no column nobody; there are user, time, lat, lon" in done.stderr, stated


def test_rows_that_are_nowhere_are_left_out_and_counted(tmp_path: Path) -> None:
    release = tmp_path / "release.csv"
    release.write_text(_trips(0) + "x,1790000000,98.1,11.5\nu0,1790000000,nan,11.5\n")
    done = anonymizer("attack", release)
    assert done.returncode == 0, done.stderr
    assert "of 8 ids (2 rows without an id, a time or a place on earth are left out)" in done.stdout
