"""`anonymizer tune`, as a user calls it."""

import asyncio
import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.records import write_records_settings
from tests.brokers import broker
from tests.cli.support import anonymizer
from tests.end_to_end import DEADLINE_S
from tests.pipeline.records.made import traffic

__all__ = ["broker"]

ILLNESSES = ("flu", "none", "asthma")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [
        f"{20 + i % 30},{'mf'[i % 2]},{ILLNESSES[i % 3]},{'low' if i % 30 < 14 else 'high'}"
        for i in range(120)
    ]
    path.write_text("\n".join(["age,sex,illness,income", *rows]) + "\n")
    return path


def results(folder: Path) -> Any:  # noqa: ANN401  of JSON
    return json.loads((folder / "results.json").read_text())


def test_a_table_is_searched_and_the_setting_that_is_recommended_would_start(
    table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tuned"
    options = "--qi", "age,sex", "--sa", "illness", "--target", "income", "--jobs", "1"
    done = anonymizer(
        *("tune", table, *options, "-k", "2:8:3", "-l", "1,2", "--model", "cells,kld"),
        *("--leave-out", "sex", "--min-score", "0.6", "--sort", "deletion", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    told = results(out)
    assert len(told["trials"]) == 2 * (6 + 3)
    best = next(each for each in told["trials"] if each["recommended"])
    assert best["within"]
    assert best["score"] >= 0.6
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["without"] for row in rows].count("sex") == 9
    assert [row["recommended"] for row in rows].count("true") == 1
    assert (out / "front.png").read_bytes().startswith(b"\x89PNG")
    for said in ("recommended", "configurations are within the bounds", "written: "):
        assert said in done.stderr
    assert {each["deletion"] for each in told["trials"] if each["within"]} == {0.0}
    assert "the same in all of them: deleted none" in done.stderr
    assert " score " in done.stderr
    checked = anonymizer("check", "--config", out / "recommended.toml")
    assert (checked.returncode, "streams of records: people" in checked.stdout) == (0, True)


def test_an_own_model_scores_releases_and_minimized_rows_over_folds(
    table: Path, tmp_path: Path
) -> None:
    from skops.io import dump  # noqa: PLC0415  slow to load

    dump(DecisionTreeClassifier(), tmp_path / "mine.skops")
    options = "--qi", "age", "--sa", "illness", "--target", "income", "--jobs", "1"
    done = anonymizer(
        *("tune", table, *options, "-k", "40", "-l", "2", "--model", "cells,minimizer"),
        *("--min-score", "0.3"),
        *("--estimator", tmp_path / "mine.skops", "--folds", "3", "--out", tmp_path / "tuned"),
    )
    assert done.returncode == 0, done.stderr
    told = results(tmp_path / "tuned")
    assert (told["learner"], told["estimator"]) == ("own", "mine.skops")
    assert told["validation"] == {"folds": 3, "repeats": 2}
    assert {each["configuration"]["model"] for each in told["trials"]} == {"cells", "minimizer"}
    for each in told["trials"]:
        assert len(each["fold_scores"]) == 6
        assert each["score"] == pytest.approx(sum(each["fold_scores"]) / 6)
    assert " ± " in done.stderr
    assert "a difference within it decides nothing" in done.stderr
    (best,) = (each for each in told["trials"] if each["recommended"])
    assert best["configuration"]["model"] == "cells"


def test_a_search_ends_with_its_time_budget_and_says_what_it_did_not_try(
    table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tuned"
    options = "--qi", "age,sex", "-k", "2:9", "--model", "cells", "--jobs", "1", "--out", out
    done = anonymizer("tune", table, *options, "--time-budget", "1e-9")
    assert done.returncode == 0, done.stderr
    assert "8 configurations had no time: start the command again" in done.stderr
    assert {each["state"] for each in results(out)["trials"]} == {"no_time"}
    assert not (out / "recommended.toml").exists()
    done = anonymizer("tune", table, *options, "--time-budget", "0")
    assert done.returncode == 0, done.stderr
    assert {each["state"] for each in results(out)["trials"]} == {"tried"}


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "kd,kld,kaca", "-l", "2"],
        ["--model", "cells", "-l", "1,2"],
        ["--model", "cells", "-l", "1,2", "--target", "fault", "--min-score", "0"],
    ],
)
def test_recorded_windows_give_a_setting_for_their_stream(
    options: list[str], tmp_path: Path
) -> None:
    config = write_records_settings(
        tmp_path / "gateway.toml", "mqtt://127.0.0.1:1883", store=tmp_path / "store.sqlite"
    )
    records = tmp_path / "records.jsonl"
    lines = [
        json.dumps({"topic": part.topic, "payload": json.loads(part.payload)})
        for part in traffic(n_vehicles=40, n_windows=2, seed=0)
    ]
    records.write_text("\n".join([*lines, '{"topic": "elsewhere", "payload": 0}']) + "\n")
    out = tmp_path / "tuned"
    done = anonymizer(
        *("tune", records, "--stream", "fleet", "--config", config, "-k", "3,6", "--out", out),
        *("--jobs", "1", *options),
    )
    assert done.returncode == 0, done.stderr
    assert "note: left out, no topic of the stream: 1" in done.stderr
    told = results(out)
    assert (told["name"], told["n_windows"]) == ("fleet", 1 if "--target" in options else 2)
    impossible = [each for each in told["trials"] if each["state"] == "impossible"]
    assert {each["configuration"]["l"] for each in impossible} <= {1}
    assert bool(impossible) == ("--target" in options)  # it learns what nothing protects
    if "--target" in options:
        assert not any(each["recommended"] for each in told["trials"])
        assert "guess" in done.stderr, "nobody can tell a fault from so few vehicles"
        return
    best = next(each for each in told["trials"] if each["recommended"])["configuration"]
    settings = tomllib.loads((out / "recommended.toml").read_text())
    (stream,) = Settings.model_validate(settings).streams
    promise = stream.promise
    assert (stream.model, promise.k, promise.l) == (best["model"], best["k"], best["l"])
    checked = anonymizer("check", "--config", out / "recommended.toml")
    assert (checked.returncode, "streams of records: fleet" in checked.stdout) == (0, True)


async def test_a_stream_is_tuned_by_what_its_topics_carry_now(
    broker: LocalBroker, tmp_path: Path
) -> None:
    store, out = tmp_path / "store.sqlite", tmp_path / "tuned"
    config = write_records_settings(tmp_path / "gateway.toml", broker.url, store=store)
    link = MqttLink(BrokerSettings(url=broker.url), client_id="fleet", deliver=lambda _: None)
    running = asyncio.create_task(link.run())
    await link.until_connected()
    options = "--stream", "fleet", "--config", config, "--out", out, "-k", "3", "--jobs", "1"
    sent = [Outgoing(p.topic, p.payload) for p in traffic(n_vehicles=12, n_windows=4, seed=0)]
    for seconds in ("2", "8", "32"):  # a busy machine may stand still while it listens
        tuning = asyncio.create_task(
            asyncio.to_thread(anonymizer, "tune", "--tap", seconds, *options)
        )
        while not tuning.done():  # who taps says to nobody when he begins
            await link.publish(sent, qos=1, timeout_s=DEADLINE_S)
            await asyncio.wait([tuning], timeout=0.2)
        done = tuning.result()
        if "not heard whole: 24" in done.stderr:
            break
    await link.close()
    await running
    assert done.returncode == 0, done.stderr
    assert "records of windows not heard whole: 24" in done.stderr
    assert (results(out)["n"], results(out)["n_windows"]) == (24, 2)
    assert not store.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--qi", "age", "-k", "9:2"], "k: must be LO:HI"),
        (["--qi", "age", "--stream", "fleet"], "stream and config belong together"),
        (["--qi", "age", "--min-score", "0.5"], "min-score: requires a target"),
        (["--qi", "age", "--target", "age"], "column age is declared twice"),
        (["--qi", "age", "--folds", "3"], "estimator, folds: require a target"),
        (["--qi", "age", "--target", "sex", "--folds", "1"], "folds: must be 2 or more, or 0"),
        (["--qi", "age", "--target", "sex", "--model", "minimizer"], "requires --estimator"),
        (["--qi", "age", "--target", "sex", "--estimator", "no.skops"], "no.skops: cannot be read"),
        ([], "at least one quasi-identifier is needed"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_line_and_exit_2(
    options: list[str], said: str, table: Path, tmp_path: Path
) -> None:
    done = anonymizer("tune", table, "--out", tmp_path / "tuned", *options)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("anonymizer: ")
    assert said in line
    assert not (tmp_path / "tuned").exists()
