"""The arithmetic of a slice takes off what does not grow, and the manual says what it finds."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster_model import PROGRAMS, Costs, Layout
from benchmarks.followers import share_of_follower
from benchmarks.plan import Stored, costs_of, slices_table
from benchmarks.plan_page import PAGE, written
from benchmarks.slices import MQTT, Slice, cores_to_have

LAYOUT = Layout(1_000.0, 4, 8, 1)
us = st.floats(0.1, 50.0)


def costs(idle_s: float, us_of: dict[str, float]) -> Costs:
    """Every program takes so much whatever there is to do, and so much for each position."""
    return Costs(
        of={
            "bridge": np.array([idle_s, us_of["bridge"] * 1e-6]),
            "workers": np.array([idle_s, 0, 0, us_of["workers"] * 1e-6]),
            "kafka": np.array([idle_s, 0, 0, us_of["kafka"] * 1e-6]),
        },
        given_s={MQTT: us_of[MQTT] * 1e-6},
        share_of_sources=0.4,
    )


def row(costs: Costs, rate_per_s: float, per_message: int = 1) -> dict[str, object]:
    layout = LAYOUT._replace(rate_per_s=rate_per_s)
    return {
        "positions a message": per_message,
        "sources": layout.n_sources,
        "districts": layout.n_districts,
        "workers": 1,
        "sent/s": rate_per_s,
        "kept up": "yes",
        **{f"{program}, µs": costs.us(program, layout) for program in PROGRAMS},
        f"{MQTT}, µs": costs.given_s[MQTT] * 1e6,
    }


@given(
    idle_s=st.floats(0, 0.5),
    us_of=st.fixed_dictionaries(dict.fromkeys((*PROGRAMS, MQTT), us)),
    rates=st.tuples(st.integers(500, 5_000), st.integers(10_000, 100_000)),
)
def test_what_does_not_grow_with_positions_is_not_counted_as_theirs(
    *, idle_s: float, us_of: dict[str, float], rates: tuple[int, int]
) -> None:
    known = costs(idle_s, us_of)
    found = Slice.of([row(known, float(rate)) for rate in rates], 1)
    assert [found.from_per_s, found.to_per_s] == [float(rate) for rate in rates]
    assert found.us_of == pytest.approx(us_of, abs=1e-6)
    used = found.cores(known, LAYOUT._replace(rate_per_s=1e6), copying=2.0)
    assert used["bridge"] == pytest.approx(us_of["bridge"] + idle_s)
    assert used["kafka"] == pytest.approx(2 * (us_of["kafka"] + idle_s))
    assert used[MQTT] == pytest.approx(us_of[MQTT])
    assert cores_to_have(used) >= sum(used.values()) / 0.6 - 1e-9


def test_a_run_alone_counts_whole_and_one_that_did_not_keep_up_does_not() -> None:
    known = costs(0.1, dict.fromkeys((*PROGRAMS, MQTT), 2.0))
    slow = row(known, 50_000.0, 100) | {"kept up": "no"}
    with pytest.raises(ValueError, match="kept up"):
        Slice.of([slow], 100)
    found = Slice.of([slow, row(known, 10_000.0, 100), row(known, 1_000.0)], 100)
    assert found.from_per_s == 0
    assert found.us_of["bridge"] == pytest.approx(12.0)


def test_a_follower_is_as_costly_as_in_the_worst_run_that_kept_up(tmp_path: Path) -> None:
    rows = [
        {"followers' share": share, "kept up": kept_up}
        for share, kept_up in ((0.2, "yes"), (0.3, "yes"), (0.9, "no"))
    ]
    file = tmp_path / "followers.json"
    file.write_text(json.dumps({"benchmarks": {"followers": [{"rows": rows}]}}))
    assert share_of_follower(file) == 0.3


def test_the_page_says_of_the_plan_what_the_stored_runs_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    with pytest.raises(ValueError, match=PAGE.name):
        written("# Without a plan\n")


def test_a_million_devices_that_report_once_a_second_take_at_most_twenty_cores() -> None:
    stored = Stored.read()
    table = slices_table(costs_of(stored), stored, n_devices=1_000_000)
    at = table.columns.index("cores used")
    assert table.rows
    assert max(float(each[at]) for each in table.rows) <= 20
