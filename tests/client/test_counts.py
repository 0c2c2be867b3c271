"""Counts over hours: cases on paper, and bounds that hold wherever devices are and go."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer import client
from anonymizer.algorithms.positions.safe_counts import figures, tally
from anonymizer.client.counts import Counts, decoded
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from tests.client.paper import halves, street

STREET = client.read_network(street())
HALVES = halves(STREET)
VERSION = network_version(street())


def line(time: float, counts: list[dict[str, object]] | None, **more: object) -> str:
    body = {"v": 1, "time": time, "interval_s": 60.0, "network": VERSION, "n_cells": 4}
    return json.dumps(body | ({} if counts is None else {"k": 2, "counts": counts}) | more)


def run(first: int, last: int, devices: int, *origins: tuple[int, int, int]) -> dict[str, object]:
    found = [dict(zip(("first", "last", "devices"), each, strict=True)) for each in origins]
    return {"first": first, "last": last, "devices": devices, "origins": found}


def read(folder: Path, *lines: str) -> Counts:
    (folder / "counts.jsonl").write_text("\n".join(lines) + "\n")
    return client.read_counts(folder / "counts.jsonl", network=STREET)


def test_devices_are_means_over_the_intervals_with_bounds_that_need_no_density(
    tmp_path: Path,
) -> None:
    counts = read(
        tmp_path,
        line(60, [run(0, 3, 8)]),
        "cloaked/counts " + line(120, [run(0, 0, 2), run(1, 3, 4)]),
        'cloaked/positions {"v": 1}',
    )
    assert counts.ends == [60, 120]
    assert repr(counts) == "Counts(2 intervals of 60 s)"
    # Each node is a cell. First 8 or 9 devices are anywhere.
    table = counts.devices(HALVES, start=0, end=60)
    assert list(table["cell"]) == ["west", "east"]
    assert table["devices"] == pytest.approx([8.5 / 2, 8.5 / 2])
    assert (list(table["low"]), list(table["high"])) == ([0, 0], [9, 9])
    # Then 2 or 3 are at the first node, and 4 or 5 at the others, one of which is in the west.
    table = counts.devices(HALVES, start=60, end=120)
    assert table["devices"] == pytest.approx([2.5 + 4.5 / 3, 4.5 * 2 / 3])
    assert (list(table["low"]), list(table["high"])) == ([2, 0], [8, 5])
    both = counts.devices(HALVES, start=0, end=120)
    assert (list(both["low"]), list(both["high"])) == ([1, 0], [8.5, 7])


def test_spans_without_counts_are_refused(tmp_path: Path) -> None:
    counts = read(tmp_path, line(60, [run(0, 3, 8)]), line(240, [run(0, 3, 8)]))
    with pytest.raises(InputError, match="no counts"):
        counts.devices(HALVES, start=70, end=80)
    other = client.read_network("grid:3x3")
    with pytest.raises(InputError, match="another network"):
        counts.devices(other.grid(100), start=0, end=300)


def test_an_interval_with_fewer_than_k_devices_is_one_of_few(tmp_path: Path) -> None:
    table = read(tmp_path, line(60, [])).devices(HALVES, start=0, end=60)
    assert (list(table["low"]), list(table["high"])) == ([0, 0], [1, 1])


def private(time: float, devices: list[int], **more: object) -> str:
    return line(time, None, privacy={"noise_sd": 5.0}, devices=devices, **more)


def test_noise_makes_means_of_many_intervals_sure(tmp_path: Path) -> None:
    counts = read(
        tmp_path,
        *(private(60.0 * n, [10, 30, -4, 20]) for n in range(1, 26)),
        line(26 * 60.0, None, privacy={"noise_sd": 5.0}, suppressed="budget"),
    )
    assert counts.n_suppressed == 1
    table = counts.devices(HALVES, start=0, end=1600)
    assert table["devices"] == pytest.approx([40, 16])
    reach = 2.118310 * 5 * np.sqrt(2 / 25) + 0.5 / 25
    assert table["low"] == pytest.approx([40 - reach, 16 - reach])
    assert table["high"] == pytest.approx([40 + reach, 16 + reach])


def test_the_pattern_of_days_adds_up_what_all_cells_have(tmp_path: Path) -> None:
    """Two days of four intervals of six hours; the night in Helsinki is that of the next day."""
    of_day = [(2, 1, 0, 0), (8, 6, 5, 1), (4, 4, -3, 1), (0, 1, 0, -2)]
    lines = [
        private((4 * day + i + 1) * 21_600.0, [n + day for n in cells], interval_s=21_600.0)
        for day in range(2)
        for i, cells in enumerate(of_day)
    ]
    counts = read(tmp_path, *lines)
    by_hour = counts.pattern(tz="Europe/Helsinki")
    assert by_hour["hour"].tolist() == [2, 8, 14, 20]
    assert by_hour["devices"] == pytest.approx([5, 22, 8, 1])
    assert by_hour["intervals"].tolist() == [2] * 4
    reach = 2.118310 * 5 * np.sqrt(4 / 2) + 0.5 / 2
    assert by_hour["high"] == pytest.approx([5 + reach, 22 + reach, 8 + reach, 1 + reach])
    assert by_hour["low"] == pytest.approx([0, 22 - reach, 0, 0])
    assert counts.pattern(by="weekday", tz="UTC")["devices"] == pytest.approx([7, 11])
    assert read(tmp_path, line(60, [run(0, 3, 8)])).pattern(by="day")["high"].tolist() == [9]
    with pytest.raises(InputError, match="by must be hour, weekday, month, day"):
        counts.pattern(by="year")


@given(st.data())
def test_bounds_hold_for_any_devices(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 30))
    cells = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    was, now = (np.array(data.draw(cells), np.int64) for _ in range(2))
    messages = []
    nothing = np.full(n, np.nan)
    for at, cell, before in ((60.0, was, np.full(n, -1)), (120.0, now, was)):
        safe = figures(tally(cell, before, n_cells=4, speed_mps=nothing, dwell_s=nothing), 3)
        first = safe.first_cell_of.tolist()
        runs = []
        for r, devices in enumerate(safe.n_devices.tolist()):
            flows = [
                (first[a], first[a + 1] - 1, m)
                for a, b, m in zip(safe.flow_from, safe.flow_to, safe.n_flow.tolist(), strict=True)
                if b == r
            ]
            runs.append(run(first[r], first[r + 1] - 1, devices, *flows))
        messages.append(decoded(line(at, runs, k=3).encode()))
    counts = Counts(messages, STREET)
    for at, cell in ((60.0, was), (120.0, now)):
        table = counts.devices(HALVES, start=at - 60, end=at)
        true = np.bincount(cell // 2, minlength=2)
        assert ((table["low"] <= true) & (true <= table["high"])).all()


def test_files_that_are_no_counts_of_this_network_are_refused(tmp_path: Path) -> None:
    for lines, said in (
        (["", '{"n_cells": 4'], "has no counts"),
        ([line(60, []), line(120, [], interval_s=120.0)], "different intervals"),
        ([line(60, [], network="0")], "not all about network"),
    ):
        with pytest.raises(InputError, match=said):
            read(tmp_path, *lines)
    with pytest.raises(InputError, match="cannot be read"):
        client.read_counts(tmp_path / "none.jsonl", network=STREET)


def test_repeats_of_an_interval_are_left_out_but_not_in_silence(tmp_path: Path) -> None:
    lines = [private(60, [10, 30, -4, 20]), private(60, [9, 9, 9, 9]), private(120, [1, 1, 1, 1])]
    with pytest.warns(UserWarning, match="1 messages tell otherwise of an interval"):
        counts = read(tmp_path, *lines)
    assert (counts.n_repeated, counts.n_suppressed) == (1, 0)
    table = counts.devices(HALVES, start=0, end=60)
    assert table["devices"] == pytest.approx([40, 16]), "the first one is kept"
    # Delivered twice, and suppressed when it was published before.
    again = line(60, None, privacy={"noise_sd": 5.0}, suppressed="budget")
    counts = read(tmp_path, lines[0], lines[0], again)
    assert (counts.n_repeated, counts.n_suppressed) == (0, 0)
