"""Simulated and replayed toll exits."""

import json
import os
import re
from collections import Counter
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from anonymizer.errors import InputError
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import load_settings
from simulator.toll_exits import (
    MADE,
    TollSource,
    encoder,
    made_exits,
    n_made,
    read_exits,
    read_marginals,
    settings_for,
    write_exits,
)
from tests.simulator.test_cli import Simulator, simulator

__all__ = ["simulator"]
MONDAY = date(2023, 1, 2)


def made(n_days: int = 7, per_day: int = 1000, **changes: int) -> list[dict[str, object]]:
    how = {"n_trucks": 700, "seed": 1} | changes
    return list(made_exits(MADE, per_day=per_day, first_day=MONDAY, n_days=n_days, **how))


def test_equal_seeds_give_equal_exits_in_order_of_time() -> None:
    one = made()
    assert one == made()
    assert one != made(seed=2)
    assert all(a["exit_time"] <= b["exit_time"] for a, b in pairwise(one))  # type: ignore[operator]
    assert len(one) == n_made(1000, MONDAY, 7)
    ids = [exit_["exit_transaction_id"] for exit_ in one]
    assert len(set(ids)) == len(ids)


def test_sections_are_as_frequent_as_in_the_marginals() -> None:
    count = Counter(str(exit_["section_id"]) for exit_ in made(n_trucks=100_000, n_days=14))
    total, expected = sum(count.values()), sum(MADE.section.values())
    for section, n in MADE.section.items():
        assert count[section] / total == pytest.approx(n / expected, abs=0.02)


def test_most_exits_are_by_day_and_on_working_days() -> None:
    exits = made(n_days=14, per_day=4000)
    at = [datetime.strptime(str(e["exit_time"]), "%Y-%m-%d %H:%M:%S.%f") for e in exits]  # noqa: DTZ007  local
    hours = Counter(t.hour for t in at)
    assert hours[10] > 3 * hours[3]
    days = Counter(t.weekday() for t in at)
    assert days[6] < days[5] < days[0]


def test_a_truck_keeps_its_class_and_axles_and_pays_a_valid_toll() -> None:
    exits = made()
    kept = {(e["truck_id"], e["vehicle_class"], e["axle_count"]) for e in exits}
    assert len(kept) == len({e["truck_id"] for e in exits}) < len(exits)
    assert {str(e["vehicle_class"]) for e in exits} <= set(MADE.truck_class)
    for e in exits:
        assert 0 < float(str(e["real_money"])) <= float(str(e["toll_money"])) <= 5000
        assert re.fullmatch(r"\d+(\.\d\d?)?", str(e["toll_money"]))


def test_a_file_of_marginals_replaces_the_default_ones(tmp_path: Path) -> None:
    path = tmp_path / "marginals.json"
    path.write_text(
        json.dumps(
            {
                "section_id": {"X1": 3, "X2": 0},
                "vehicle_type": {"1": 9, "13": 1},
                "axle_by_vehicle": {"13": {"6.0": 2, "255.0": 5}},
            }
        )
    )
    marginals = read_marginals(path)
    exits = list(made_exits(marginals, n_trucks=5, per_day=20, first_day=MONDAY, n_days=1, seed=0))
    assert {(e["section_id"], e["vehicle_class"], e["axle_count"]) for e in exits} == {
        ("X1", "13", 6)
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read: JSONDecodeError"),
        ("[]", "needs counts"),
        ('{"section_id": {"a": -1}, "vehicle_type": {}}', "needs counts"),
        ('{"section_id": {"a": 1}, "vehicle_type": {"1": 5}}', "no trucks"),
    ],
)
def test_invalid_marginals_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "marginals.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_marginals(path)


@pytest.mark.data
def test_the_published_marginals_can_be_used() -> None:
    data = Path(os.environ["ANONYMIZER_DATA"])
    marginals = read_marginals(data / "toll" / "gantry_marginals_2023.json")
    exits = list(
        made_exits(marginals, n_trucks=1700, per_day=5000, first_day=MONDAY, n_days=1, seed=3)
    )
    share = Counter(e["section_id"] for e in exits)["G5615530120"] / len(exits)
    assert share == pytest.approx(14_949 / 43_169, abs=0.05)


def test_exits_are_unchanged_after_writing_and_reading(tmp_path: Path) -> None:
    exits = made(n_days=1)
    path = tmp_path / "exits.csv"
    assert write_exits(path, iter(exits)) == len(exits)
    assert read_exits(path) == exits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit_time\n", "the column truck_id is required"),
        ("truck_id,exit_time\n,2023-01-02 00:00:00\n", "line 2: has no truck_id"),
        ("truck_id,exit_time\na,b,c\n", "line 2: has no truck_id, or too many"),
        ("truck_id,exit_time,toll_money\na,b,much\n", "line 2: toll_money is not a number"),
    ],
)
def test_an_invalid_file_of_exits_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "exits.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_exits(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_exits(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="cannot be written"):
        write_exits(tmp_path, iter(()))


def test_exits_are_due_at_the_rate_and_their_messages_leave_out_the_truck() -> None:
    exits = made(n_days=1)
    source = TollSource(iter(exits), n_total=len(exits), rate_per_s=100.0)
    first = source.take(0.05, limit=1000)
    assert (len(first), first.due_s.tolist()) == (6, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    assert source.next_due_s == pytest.approx(0.06)
    rest = source.take(1e9, limit=10**9)
    assert len(first) + len(rest) == len(exits)
    assert source.next_due_s == float("inf")
    assert source.n_trucks == len({e["truck_id"] for e in exits})
    assert encoder("toll/exit/{vehicle}")(source.take(0, limit=1), np.zeros(0)) == []
    again = TollSource(iter(exits), n_total=1, rate_per_s=1.0)
    [message] = encoder("toll/exit/{vehicle}")(again.take(0, limit=9), np.zeros(1))
    assert message.topic == f"toll/exit/{exits[0]['truck_id']}"
    assert json.loads(message.payload) == {k: v for k, v in exits[0].items() if k != "truck_id"}


def test_the_printed_settings_accept_simulated_exits(simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "toll.toml"
    path.write_text(simulator("tolls", "--print-settings").out)
    [stream] = load_settings(path, {}).streams
    reader = declare(stream).readers[0]
    for message in encoder("toll/exit/{vehicle}")(
        TollSource(iter(made(n_days=1)), n_total=50, rate_per_s=1.0).take(1e9, limit=50),
        np.zeros(0),
    ):
        assert isinstance(reader.read(message.payload), tuple)
    assert settings_for(["b", "a"]).count('values = ["a", "b"]') == 1


def test_the_command_writes_a_file_and_replays_it(simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "exits.csv"
    ran = simulator("tolls", "--out", path, "--per-day", 50, "--trucks", 9, "--days", 2)
    assert (ran.code or 0, ran.out) == (0, f"{path}: 102 exits\n")
    nobody = ["--broker", "mqtt://127.0.0.1:1", "--connect-timeout", "0.05"]
    assert "not connected" in simulator.refused("tolls", "--csv", path, *nobody)
    assert "{vehicle} once" in simulator.refused("tolls", "--topic", "toll/exit")
    assert "standard output is no file" in simulator.refused("tolls", "--out", "-")
