"""A recorded trace through the operators: what is in the files, and that it is true."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.app.cloak import CloakSummary, cloak_trace
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.readings import SAFE_STATISTICS
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import SessionSettings, Settings
from simulator.traffic import Traffic
from tests import naive
from tests.graphs import two_islands
from tests.lanes import each_of_both
from tests.pipeline.positions.support import SECRET, Rig

GRID = load_network("grid:5x5")
CITY = load_network("city:1000")
START = 1_800_000_000.0
TWO = Settings.model_validate(
    {
        "network": {"snap_limit_m": 30},
        "adka": {"density_steps": [], "k_values": [2]},
        "region": {"mode": "adka"},
        "presence": {"ttl_s": 120},
    }
)


Row: TypeAlias = tuple[str, float, float, float]
"""Device, unix seconds, latitude and longitude."""


def at(device: str, ts: float, node: int, *, north_deg: float = 0.0) -> Row:
    return device, START + ts, float(GRID.lat[node]) + north_deg, float(GRID.lon[node])


def trace_of(rows: Sequence[Row], *, n_unusable: int = 0) -> Trace:
    """Return the trace of rows in the order of time."""
    device_id = tuple(dict.fromkeys(row[0] for row in rows))
    return Trace(
        device_id=device_id,
        device_of=np.array([device_id.index(row[0]) for row in rows], np.int64),
        ts=np.array([row[1] for row in rows]),
        lat=np.array([row[2] for row in rows]),
        lon=np.array([row[3] for row in rows]),
        n_unusable=n_unusable,
    )


def random_trace(*, n_devices: int, n_rows: int, seed: int = 5) -> Trace:
    """Return devices that report from random places, now and then twice at one time."""
    rng = np.random.default_rng(seed)
    node = rng.integers(0, GRID.n_nodes, n_rows)
    return Trace(
        device_id=tuple(f"taxi-{i}" for i in range(n_devices)),
        device_of=rng.integers(0, n_devices, n_rows),
        ts=START + np.sort(rng.integers(0, 400, n_rows).astype(np.float64)),
        # Some metres from the node, and every tenth off the graph.
        lat=GRID.lat[node] + np.where(rng.random(n_rows) < 0.1, 0.005, 1e-5),
        lon=GRID.lon[node],
    )


def json_lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


class Run:
    """What came of a trace: the summary, and the lines of both files."""

    def __init__(
        self,
        trace: Trace,
        folder: Path,
        *,
        network: RoadNetwork = GRID,
        settings: Settings = TWO,
        tick_s: float = 1.0,
        seed: int = 0,
    ) -> None:
        out, auditor_map = folder / f"pub-{seed}.jsonl", folder / f"map-{seed}.jsonl"
        self.rows_done: list[int] = []
        self.summary: CloakSummary = cloak_trace(
            trace,
            network,
            settings,
            tick_s=tick_s,
            seed=seed,
            out=out,
            auditor_map=auditor_map,
            progress=self.rows_done.append,
        )
        self.files = out.read_bytes(), auditor_map.read_bytes()
        published, truth = map(json_lines, self.files)
        self.lines = published
        self.device_of: dict[str, str] = {row["pseudonym"]: row["device"] for row in truth}
        assert len(self.device_of) == len(truth), "each pseudonym is told once"

    def outcomes(self) -> dict[str, int]:
        ledger = self.summary.ledger
        assert ledger.n_received == ledger.n_settled
        return {outcome.name: n for outcome, n in ledger.counts().items() if n}


def naively_located(trace: Trace, network: RoadNetwork, settings: Settings) -> list[int]:
    """Return the node of each position by brute force, -1 off the graph."""
    return [
        v if metres <= settings.network.snap_limit_m else -1
        for v, metres in map(naive.located, [network] * trace.n_rows, trace.lat, trace.lon)
    ]


def assert_true(
    run: Run, trace: Trace, network: RoadNetwork, settings: Settings, node: list[int]
) -> None:
    """Recompute every promise of a release from the trace, with ticks of one second."""
    n_lines = 0
    presence = naive.Presence()
    index_of = {int(name): v for v, name in enumerate(network.node_id.tolist())}
    for now in sorted(set(np.ceil(trace.ts).tolist())):
        rows = np.flatnonzero(np.ceil(trace.ts) == now).tolist()
        batch = [
            naive.Position(int(trace.device_of[row]), float(trace.ts[row]), node[row])
            for row in rows
        ]
        # Who is off the roads counts where it was, if anywhere, as if it had fallen silent.
        leaves = [said.node < 0 for said in batch]
        moves = [said for said, gone in zip(batch, leaves, strict=True) if not gone]
        outcomes = presence.advance(moves)
        presence.expire(now - settings.presence.ttl_s)
        reported = {
            trace.device_id[said.device]: said.node
            for said, outcome in zip(moves, outcomes, strict=True)
            if outcome == Outcome.HELD
        }
        at = presence.devices_at()
        lines = [line for line in run.lines if line["time"] == now]
        n_lines += len(lines)
        named = [run.device_of[line["pseudonym"]] for line in lines if line["region"]]
        assert len(set(named)) == len(named)
        assert set(named) <= reported.keys()
        assert len(lines) == len(reported) + sum(leaves)
        for line in lines:
            region = {index_of[name] for name in line["region"]}
            if region:
                where = reported[run.device_of[line["pseudonym"]]]
                inside = set().union(*(at.get(v, set()) for v in region))
                assert len(inside) >= line["k"] >= settings.adka.k_floor
                assert where in region
                assert len(region) == len(line["region"])
            else:
                assert line["k"] == 0
    assert n_lines == len(run.lines)


@pytest.mark.parametrize(("n_devices", "max_nodes"), [(3, 1000), (40, 3), (120, 1000)])
def test_every_line_of_a_release_is_true_by_the_trace_and_the_auditor_s_map(
    n_devices: int, max_nodes: int, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {"network": {"snap_limit_m": 30}, "region": {"mode": "adka", "max_nodes": max_nodes}}
    )
    trace = random_trace(n_devices=n_devices, n_rows=600)
    run = Run(trace, tmp_path, settings=settings)
    assert_true(run, trace, GRID, settings, naively_located(trace, GRID, settings))
    counts = run.outcomes()
    assert run.summary.ledger.n_received == trace.n_rows
    assert counts.get("PUBLISHED", 0) == sum(bool(line["region"]) for line in run.lines)
    assert sum(run.rows_done) == trace.n_rows


@given(
    st.lists(
        st.builds(
            at,
            st.sampled_from("abc"),
            st.sampled_from([0, 0.2, 0.7, 1, 5, 200]),
            st.integers(0, 24),
            north_deg=st.sampled_from([0.0, 0.005]),
        ),
        max_size=12,
    )
)
def test_any_trace_is_cloaked_truly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    trace = trace_of(sorted(rows, key=lambda row: row[1]))
    run = Run(trace, tmp_path_factory.mktemp("any"))
    assert_true(run, trace, GRID, TWO, naively_located(trace, GRID, TWO))
    assert sum(run.outcomes().values()) == len(rows)
    order = [(line["time"], line["pseudonym"]) for line in run.lines]
    assert order == sorted(order), "the order within a tick tells nothing"


def test_equal_input_and_seed_give_equal_bytes_and_another_seed_other_pseudonyms(
    tmp_path: Path,
) -> None:
    trace = random_trace(n_devices=30, n_rows=300)
    (tmp_path / "again").mkdir()
    first, again = Run(trace, tmp_path), Run(trace, tmp_path / "again")
    other, huge = Run(trace, tmp_path, seed=-1), Run(trace, tmp_path, seed=10**50)
    assert first.files == again.files
    names = [set(run.device_of) for run in (first, other, huge)]
    assert not names[0] & names[1]
    assert not names[0] & names[2]
    assert first.outcomes() == other.outcomes()


def test_device_ids_are_in_the_auditor_s_map_alone(tmp_path: Path) -> None:
    run = Run(random_trace(n_devices=30, n_rows=300), tmp_path)
    published, truth = run.files
    assert b"taxi" not in published
    assert b"taxi" in truth


def test_a_suppressed_line_has_no_pseudonym_no_region_and_no_k(tmp_path: Path) -> None:
    run = Run(trace_of([at("a", 1, 0)]), tmp_path)
    assert run.lines == [{"pseudonym": "", "time": START + 1, "region": [], "k": 0}]
    assert not run.device_of


def test_only_the_newest_position_of_a_tick_has_a_line(tmp_path: Path) -> None:
    rows = [at("a", 0.1, 0), at("a", 0.5, 12), at("a", 0.5, 12), at("b", 0.6, 12)]
    run = Run(trace_of(rows), tmp_path)
    assert [line["region"] for line in run.lines] == [[12], [12]]
    assert run.outcomes() == {"PUBLISHED": 2, "DUPLICATE": 1, "SUPPRESSED__SUPERSEDED": 1}


def test_a_tick_takes_in_what_happened_up_to_its_end(tmp_path: Path) -> None:
    rows = [at("a", 0, 12), at("b", 0.5, 12), at("c", 10, 12), at("d", 10.5, 3)]
    run = Run(trace_of(rows), tmp_path, tick_s=10)
    assert {line["time"] - START for line in run.lines} == {0, 10, 20}
    assert run.summary.n_ticks == 3
    assert [len(sizes) for sizes in run.summary.region_nodes] == [0, 1, 1]


def test_devices_fall_silent_and_hide_nobody_after_their_time_to_live(tmp_path: Path) -> None:
    rows = [at("a", 0, 12), at("b", 0, 12), at("a", 120, 12), at("a", 241, 12)]
    run = Run(trace_of(rows), tmp_path)
    assert run.outcomes() == {"PUBLISHED": 3, "SUPPRESSED__TOO_FEW_DEVICES": 1}


class OneCell(SessionSettings):
    n_cells: ClassVar[int] = 1


def test_a_small_slow_fleet_is_published_as_if_the_network_had_one_cell(tmp_path: Path) -> None:
    n_devices, n_rounds, every_s = 20, 6, 30.0
    lat, lon = Traffic(CITY, n_devices, seed=2).advance(0.0)
    phase_s = np.random.default_rng(0).uniform(0, every_s, n_devices)
    trace = Trace(
        device_id=tuple(f"car-{i}" for i in range(n_devices)),
        device_of=np.tile(np.arange(n_devices), n_rounds),
        ts=START + (every_s * np.arange(n_rounds)[:, None] + phase_s).ravel(),
        lat=np.tile(lat, n_rounds),
        lon=np.tile(lon, n_rounds),
    )
    by_default, with_one_cell = (
        cloak_trace(trace, CITY, settings, tick_s=5.0, seed=1, out=tmp_path / "PUB.jsonl").ledger.n(
            Outcome.PUBLISHED
        )
        for settings in (Settings(), Settings(session=OneCell()))
    )
    assert with_one_cell > trace.n_rows / 3
    assert by_default >= 0.95 * with_one_cell


def test_pseudonyms_rotate_with_the_time_of_the_trace(tmp_path: Path) -> None:
    rows = [at(name, ts, 12) for ts in (0, 299, 301) for name in "ab"]
    run = Run(trace_of(rows), tmp_path)
    by_time = [
        {line["pseudonym"] for line in run.lines if line["time"] == START + ts}
        for ts in (0, 299, 301)
    ]
    assert by_time[0] == by_time[1]
    assert not by_time[1] & by_time[2]


def test_unusable_and_unbelievable_rows_are_counted_and_have_no_line(tmp_path: Path) -> None:
    rows = [
        ("early", -1.0, 60.0, 25.0),
        ("a", START, 0.0, 0.0),
        ("b", START, 90.5, 25.0),
        ("c", START, 60.0, -181.0),
        at("d", 0, 12),
        at("e", 0, 12),
        at("f", 0, 12, north_deg=0.5),
        ("milliseconds", START * 1000, 60.0, 25.0),
    ]
    run = Run(trace_of(rows, n_unusable=3), tmp_path)
    assert run.outcomes() == {
        "PUBLISHED": 2,
        "INVALID__SCHEMA": 3,
        "INVALID__NULL_ISLAND": 1,
        "INVALID__OUT_OF_RANGE": 2,
        "INVALID__ANCIENT_TIME": 1,
        "INVALID__FUTURE_TIME": 1,
        "SUPPRESSED__OFF_GRAPH": 1,
    }
    assert sorted(run.device_of.values()) == ["d", "e"]
    assert sorted(line["pseudonym"] == "" for line in run.lines) == [False, False, True]
    assert sum(run.rows_done) == len(rows)


def test_a_trace_without_a_usable_row_gives_empty_files(tmp_path: Path) -> None:
    run = Run(trace_of([], n_unusable=2), tmp_path)
    assert run.files == (b"", b"")
    assert run.outcomes() == {"INVALID__SCHEMA": 2}
    assert run.summary.n_ticks == 0


def by_node(names: Sequence[int] | Sequence[str]) -> Trace:
    """Return a trace of as many devices as there are nodes, at one time."""
    trace = trace_of([at(f"d{i}", 0, 0) for i in range(len(names))])
    nan = np.full(len(names), np.nan)
    return replace(trace, lat=nan, lon=nan, node=np.array(names))


def test_a_trace_may_name_nodes_and_then_needs_no_coordinates(tmp_path: Path) -> None:
    run = Run(by_node([5, 6, 5, 7]), tmp_path, network=two_islands())
    regions = {run.device_of.get(line["pseudonym"]): line["region"] for line in run.lines}
    assert regions == {"d0": [5], "d1": [5, 6], "d2": [5], None: []}


def test_nodes_may_have_names_of_text_in_any_order(tmp_path: Path) -> None:
    islands = two_islands()
    network = replace(islands, node_id=np.array(["h", "g", "f", "e", "d", "c", "b", "a"]))
    run = Run(by_node(["c", "c", "h"]), tmp_path, network=network)
    assert sorted(line["region"] for line in run.lines) == [[], ["c"], ["c"]]


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (by_node([5, 99, -1]), "the network lacks the node of 2 rows of the trace"),
        (by_node(["a", "b"]), "the network lacks the node of 2 rows of the trace"),
        (trace_of([at("a", 0, 0)]), "the network has no coordinates"),
    ],
)
def test_a_trace_that_does_not_fit_the_network_is_refused(
    trace: Trace, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        Run(trace, tmp_path, network=two_islands())


@pytest.mark.parametrize("tick_s", [0.0, -1.0, 120.1, float("nan"), float("inf")])
def test_a_tick_longer_than_devices_are_present_is_refused(tick_s: float, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"presence\.ttl_s"):
        Run(trace_of([at("a", 0, 0)]), tmp_path, tick_s=tick_s)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/pub-0\.jsonl: cannot be written|none/map"):
        Run(trace_of([at("a", 0, 0)]), tmp_path / "none")


def test_without_an_auditor_s_map_nobody_is_told_who_was_who(tmp_path: Path) -> None:
    out = tmp_path / "pub.jsonl"
    cloak_trace(trace_of([at("a", 0, 12), at("b", 0, 12)]), GRID, TWO, tick_s=1, seed=0, out=out)
    assert len(out.read_text().splitlines()) == 2
    assert list(tmp_path.iterdir()) == [out]


SPEED: dict[str, Any] = {
    "name": "speed",
    "lo": 0,
    "hi": 40,
    "step": 1,
    "statistics": [*SAFE_STATISTICS, "each"],
}
BATTERY: dict[str, Any] = {"name": "battery", "lo": 0, "hi": 100, "statistics": ["count", "max"]}


def with_readings(*declared: Mapping[str, Any]) -> Settings:
    return Settings.model_validate(TWO.model_dump(exclude_unset=True) | {"readings": declared})


def sensing(trace: Trace, *, seed: int = 3) -> Trace:
    """Return the trace with readings here and there, some beyond what is declared."""
    rng = np.random.default_rng(seed)
    sensed = {}
    for name, largest in (("speed", 45.0), ("battery", 100.0), ("secret", 9.0)):
        value = rng.uniform(0, largest, trace.n_rows)
        sensed[name] = np.where(rng.random(trace.n_rows) < 0.3, np.nan, value)
    return replace(trace, readings=sensed)


def test_values_stand_beside_their_pseudonyms_and_statistics_beside_all(tmp_path: Path) -> None:
    trace = replace(
        trace_of([*(at(d, 1, 12) for d in "abc"), at("d", 1, 12, north_deg=0.5)]),
        readings={
            "speed": np.array([10.2, 99.0, np.nan, 5.0]),
            "battery": np.array([80.0, np.nan, np.nan, 20.0]),
        },
    )
    run = Run(trace, tmp_path, settings=with_readings(SPEED, BATTERY))
    said = {run.device_of.get(line["pseudonym"]): line for line in run.lines}
    for device, speed in {"a": 10, "b": 40, "c": None}.items():
        assert said[device]["values"] == {"speed": speed}
        # One battery is fewer than k. A quantile would be somebody's own value.
        assert said[device]["readings"] == {"speed": {"count": 2, "mean": 25}}
    assert said[None].keys() == {"pseudonym", "time", "region", "k"}, "suppressed"
    assert run.summary.n_clamped == {"speed": 1, "battery": 0}
    assert run.summary.n_left_out == {"speed": 0, "battery": 1}


def live(trace: Trace, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield what the service sends for each device when the trace is its traffic."""
    named = {"readings", "adka", "region", "network", "session", "trips"}
    tables = settings.model_dump(include=named, exclude_unset=True)
    rig = Rig(**tables, output={"forms": ["device"], "qos": 1})
    second = np.ceil(trace.ts)
    for now in range(int(second[0]), int(second[-1]) + 200):
        if now > second[-1] and not rig.flow.n_held:
            break
        yield from rig.publish(
            *(
                Delivery(
                    f"positions/{trace.device_id[trace.device_of[row]]}",
                    json.dumps(
                        {
                            "lat": trace.lat[row],
                            "lon": trace.lon[row],
                            "ts": trace.ts[row],
                            "readings": {
                                name: column[row]
                                for name, column in trace.readings.items()
                                if not np.isnan(column[row])
                            },
                        }
                    ).encode(),
                    0,
                )
                for row in np.flatnonzero(second == now)
            ),
            now=now,
        )


ALIVE = {"pseudonym", "v", "network", "group"}
"""What differs between two runs, and what only messages of the service have."""


MODES = [("adka", 0), ("session", 20), ("snapshot", 0), ("session", 0)]


@pytest.mark.parametrize(("mode", "of_trips"), each_of_both(MODES, [False, True]))
def test_groups_and_their_readings_are_those_of_the_live_service(
    mode: tuple[str, float], tmp_path: Path, *, of_trips: bool
) -> None:
    trace = sensing(random_trace(n_devices=12, n_rows=400))
    # The service forms groups of devices in the order of their keys, `cloak` in that of the trace.
    table = DeviceTable(secret=SECRET, max_devices=99)
    slots = np.array([table.slot(name) for name in trace.device_id], np.int32)
    by_key = np.argsort(table.keys(slots))
    trace = replace(
        trace,
        device_id=tuple(trace.device_id[d] for d in by_key),
        device_of=np.argsort(by_key)[trace.device_of],
    )
    # Where trips are protected, there are no readings.
    settings = with_readings() if of_trips else with_readings(SPEED, BATTERY)
    tables = {
        "region": {"mode": mode[0]},
        "session": {"beat_s": mode[1]},
        "trips": {"enabled": of_trips, "ends_m": 20, "ends_s": 5, "delay_s": 20},
    }
    settings = Settings.model_validate(settings.model_dump(exclude_unset=True) | tables)
    run = Run(trace, tmp_path, settings=settings)

    def content(lines: Sequence[Mapping[str, Any]]) -> list[str]:
        return sorted(
            json.dumps({key: line[key] for key in line if key not in ALIVE}, sort_keys=True)
            for line in lines
            if line["region"]
        )

    published = content(run.lines)
    assert published == content(list(live(trace, settings)))
    assert published
    if not of_trips:
        assert any('"values": {"speed": ' in line for line in published)
        assert any('"battery": {"count"' in line for line in published)


def test_what_is_not_declared_is_not_told_and_changes_no_byte(tmp_path: Path) -> None:
    trace = random_trace(n_devices=30, n_rows=300)
    (tmp_path / "sensing").mkdir()
    plain, sensed = Run(trace, tmp_path), Run(sensing(trace), tmp_path / "sensing")
    assert plain.files == sensed.files
    for line in plain.lines:
        assert line.keys() - {"network", "until"} == {"pseudonym", "time", "region", "k"}
    assert (plain.summary.n_clamped, plain.summary.n_left_out) == ({}, {})
    declared = Run(sensing(trace), tmp_path, settings=with_readings(BATTERY))
    assert b"battery" in declared.files[0]
    assert b"speed" not in declared.files[0]
    assert b"values" not in declared.files[0]


def test_a_declared_reading_that_the_trace_was_read_without_is_named(tmp_path: Path) -> None:
    trace = sensing(random_trace(n_devices=3, n_rows=9))
    with pytest.raises(InputError, match="without the declared reading humidity"):
        Run(trace, tmp_path, settings=with_readings(SPEED, SPEED | {"name": "humidity"}))


@pytest.mark.data
def test_taxis_of_san_francisco_are_cloaked_truly(tmp_path: Path) -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"])
    network = load_network(str(folder / "networks" / "san_francisco"), max_spacing_m=0)
    days = read_trace(folder / "traces" / "cabspotting_sf_2008-05-19_20.parquet")
    # A minute and a half: the proof by brute force takes as long as it is obvious.
    start = days.ts[0] + 9 * 3600
    rows = np.flatnonzero((days.ts >= start) & (days.ts < start + 90))
    trace = replace(
        days,
        device_of=days.device_of[rows],
        ts=days.ts[rows],
        lat=days.lat[rows],
        lon=days.lon[rows],
    )
    anything = [{"max_speed_mps": 1e6}]  # what is believed has a proof of its own
    settings = Settings.model_validate({"region": {"mode": "adka"}, "inputs": anything})
    run = Run(trace, tmp_path, network=network, settings=settings)
    # By brute force this would take minutes; its own tests prove it on the same network.
    locator = NodeLocator(network, limit_m=settings.network.snap_limit_m)
    node: list[int] = locator.locate(trace.lat, trace.lon).tolist()
    assert_true(run, trace, network, settings, node)
    assert run.outcomes()["PUBLISHED"] > 100


def test_nothing_of_a_zone_or_of_the_ends_of_trips_is_in_a_release(tmp_path: Path) -> None:
    zone = {"circle": {"lat": GRID.lat[7], "lon": GRID.lon[7], "radius_m": 30}}
    trips = {"enabled": True, "ends_m": 50, "ends_s": 1, "delay_s": 10}
    settings = Settings.model_validate(
        TWO.model_dump(exclude_unset=True) | {"zones": [zone], "trips": trips}
    )
    # Two devices down a street of five nodes together, ten seconds a node.
    street = (2, 7, 12, 17, 22)
    rows = [
        at(d, START + 10 * i + s, v) for i, v in enumerate(street) for s in range(10) for d in "ab"
    ]
    run = Run(trace_of(rows), tmp_path, settings=settings)
    told = {int(node) for line in run.lines for node in line["region"]}
    assert told == {12, 17}, "the first and the last node are ends, the second is in the zone"
    assert run.outcomes().keys() == {
        "PUBLISHED",
        "SUPPRESSED__PRIVACY_ZONE",
        "SUPPRESSED__TRIP_END",
    }
    assert run.summary.ledger.n_received == run.summary.ledger.n_settled == 100


@pytest.mark.parametrize("how", ["option", "settings", "neither"])
def test_vehicles_that_change_their_ids_in_a_trace_are_no_company_for_themselves(
    tmp_path: Path, how: str
) -> None:
    """Eighty vehicles on a small city take another id every minute."""
    seconds, n, every_s = 240, 80, 60
    traffic, phase = Traffic(CITY, n, seed=1), np.arange(n) % every_s
    places = [traffic.advance(float(second)) for second in range(seconds)]
    number = (np.arange(seconds)[:, None] + phase) // every_s
    id_of = (np.arange(n) * 10 + number).ravel()
    trace = Trace(
        device_id=tuple(str(each) for each in range(10 * n)),
        device_of=id_of,
        ts=START + np.repeat(np.arange(seconds, dtype=np.float64), n),
        lat=np.concatenate([lat for lat, _ in places]),
        lon=np.concatenate([lon for _, lon in places]),
    )
    options = {"inputs": [{"ids_change_s": 60}]} if how == "settings" else {}
    out, auditor_map = tmp_path / "out.jsonl", tmp_path / "map.jsonl"
    summary = cloak_trace(
        trace,
        CITY,
        Settings.model_validate(options),
        tick_s=1.0,
        seed=1,
        ids_change=how == "option",
        out=out,
        auditor_map=auditor_map,
    )
    assert summary.ledger.n_received == summary.ledger.n_settled
    assert auditor_map.stat().st_mode & 0o077 == 0, "it says who is who"
    said = [json.loads(line) for line in auditor_map.read_text().splitlines()]
    vehicle_of = {each["pseudonym"]: int(each["device"]) // 10 for each in said}
    groups: dict[tuple[float, tuple[int, ...]], list[str]] = {}
    k_of: dict[tuple[float, tuple[int, ...]], int] = {}
    for line in map(json.loads, out.read_text().splitlines()):
        if line["region"]:
            key = line["time"], tuple(line["region"])
            groups.setdefault(key, []).append(line["pseudonym"])
            k_of[key] = line["k"]
    below = [
        key
        for key, names in groups.items()
        if len({vehicle_of[name] for name in names}) < k_of[key]
    ]
    assert len(groups) > 10
    assert bool(below) == (how == "neither")
