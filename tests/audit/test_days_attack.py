"""Homes of commuters are found where devices vanish, unless the ends of trips are left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from anonymizer.audit import AuditReport, audit_release, case_of
from anonymizer.audit.attacks.habits import habits
from anonymizer.audit.attacks.homes import homes
from anonymizer.audit.attacks.leaving import leaving
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.trace import Trace
from anonymizer.files import release_lines
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.factory import public_places
from anonymizer.settings import Settings
from experiments.tracking_experiment import attacked
from tests.app.commuters import DAY_S, commuting
from tests.audit.tracked import untracked
from tests.pipeline.positions.tick.test_learned_stops import hidden_rows, stops

TICK_S = 5.0
SETTINGS = Settings()
NETWORK = load_network("city:1000")


class Released(NamedTuple):
    """A trace, and what is published of it, before it is audited."""

    trace: Trace
    released: release_lines.Released
    device_of: IntArray


def published(
    folder: Path,
    *,
    n_days: int,
    left_out_s: float = 0.0,
    beat_s: float = TICK_S,
    rush_s: float = 1800.0,
    learn_days: int | None = None,
) -> Released:
    """Return a release in which each device publishes its atom, except at the ends of its trips.

    It does so on a beat, at a phase of its own: the newest place since the beat before. Unless
    `learn_days` is None, places where a device stops on so many days (0: none) are left out, and
    the first two days too.
    """
    network = NETWORK
    trace = commuting(
        network, n_devices=40, n_days=n_days, rush_s=rush_s, every_s=TICK_S, late_s=20.0, seed=1
    ).trace
    atom_at = public_places(network, SETTINGS)[0]
    node = np.searchsorted(network.node_id, np.asarray(trace.node))
    trip = trace.device_of * 2 * n_days + (trace.ts // (DAY_S / 2)).astype(np.int64)
    begins: dict[int, float] = {}
    ends: dict[int, float] = {}
    for row, number in enumerate(trip.tolist()):
        begins.setdefault(number, trace.ts[row])
        ends[number] = trace.ts[row]
    shown = np.ones(trace.n_rows, bool)
    if learn_days is not None:
        shown = trace.ts >= trace.ts[0] // DAY_S * DAY_S + 2 * DAY_S
    if learn_days:
        shown &= ~hidden_rows(stops(learn_days), trace)
    names: dict[str, str] = {}
    lines: dict[tuple[int, float], str] = {}
    for row, number in enumerate(trip.tolist()):
        ts = trace.ts[row]
        if min(ts - begins[number], ends[number] - ts) < left_out_s or not shown[row]:
            continue
        names[f"p{number}"] = trace.device_id[trace.device_of[row]]
        phase_s = TICK_S * number % beat_s
        time = float(np.ceil((ts - phase_s) / beat_s) * beat_s + phase_s)
        region = np.flatnonzero(atom_at == atom_at[node[row]])
        lines[number, time] = json.dumps(
            {
                "pseudonym": f"p{number}",
                "time": time,
                "region": network.node_id[region].tolist(),
                "k": 1,
            }
        )
    (folder / "PUB.jsonl").write_text("\n".join(lines.values()))
    (folder / "MAP.jsonl").write_text(
        "\n".join(json.dumps({"pseudonym": p, "device": d}) for p, d in names.items())
    )
    released = read_release(folder / "PUB.jsonl", network)
    device_of = read_auditor_map(
        folder / "MAP.jsonl", pseudonym=released.pseudonym, device_id=trace.device_id
    )
    return Released(trace, released, device_of)


def audited(
    folder: Path, *, n_days: int, left_out_s: float = 0.0, beat_s: float = TICK_S
) -> AuditReport:
    """Audit a release as `published` makes it."""
    made = published(folder, n_days=n_days, left_out_s=left_out_s, beat_s=beat_s)
    with untracked():
        return audit_release(
            made.trace,
            made.released,
            NETWORK,
            SETTINGS,
            device_of=made.device_of,
            mode="session",
            tick_s=TICK_S,
            sample=10,
            seed=0,
        )


@pytest.mark.parametrize("beat_s", [TICK_S, 30.0])
@pytest.mark.parametrize(("left_out_s", "hidden"), [(0.0, False), (60.0, True)])
def test_homes_are_found_unless_the_ends_of_trips_are_left_out(
    tmp_path: Path, left_out_s: float, beat_s: float, *, hidden: bool
) -> None:
    report = audited(tmp_path, n_days=3, left_out_s=left_out_s, beat_s=beat_s)
    (homes,) = (finding for finding in report.findings if finding.attack == "homes")
    assert homes.figures["n_homes"] == 40
    assert homes.holds is hidden
    found, precision = homes.figures["found_share"], homes.figures["precision"]
    assert found is not None
    assert precision is not None
    assert found < 0.3 if hidden else (found > 0.7 and precision > 0.5)


def test_homes_that_nobody_declared_are_hidden_once_they_are_learned(tmp_path: Path) -> None:
    found = {}
    for learn_days in (0, 2):
        made = published(tmp_path, n_days=5, learn_days=learn_days)
        case = case_of(
            made.trace, made.released, NETWORK, SETTINGS, device_of=made.device_of, tick_s=TICK_S
        )
        [finding] = homes(case)
        found[learn_days] = finding
    assert found[0].holds is False
    assert float(found[0].figures["found_share"] or 0) > 0.7
    assert found[2].holds
    # As many as by guessing: the share of the pieces that are guessed.
    n_pieces = public_places(NETWORK, SETTINGS)[0].max() + 1
    by_chance = float(found[2].figures["n_guesses"] or 0) / n_pieces
    assert float(found[2].figures["found_share"] or 0) < 1.5 * by_chance


@pytest.mark.parametrize(("left_out_s", "hidden"), [(0.0, False), (60.0, True)])
def test_who_knows_a_home_sees_when_it_is_left_unless_trips_begin_unseen(
    tmp_path: Path, left_out_s: float, *, hidden: bool
) -> None:
    made = published(tmp_path, n_days=1, left_out_s=left_out_s, rush_s=7200.0)
    case = case_of(
        made.trace,
        made.released,
        NETWORK,
        SETTINGS,
        device_of=made.device_of,
        tick_s=TICK_S,
        seed=0,
    )
    [found] = leaving(case)
    told, control, n = (
        float(found.figures[name] or 0.0) for name in ("auc", "auc_control", "n_departures")
    )
    assert n > 20
    assert 0.35 < control < 0.65
    assert told < 0.75 if hidden else told > 0.9


def test_who_drives_alone_is_known_by_yesterday(tmp_path: Path) -> None:
    report = audited(tmp_path, n_days=2)
    (found,) = (finding for finding in report.findings if finding.attack == "habits")
    success = found.figures["name"]
    assert success is not None
    assert success > 0.7
    # Nobody promised more, since k is 1 in this release; but it tells where somebody is.
    assert found.figures["chance"] == 1
    place, alone = found.figures["place"], found.figures["place_habits"]
    assert place is not None
    assert alone is not None
    assert place > 2 * alone
    assert found.holds is False


def test_nothing_recurs_on_one_day(tmp_path: Path) -> None:
    mounted = {finding.attack for finding in audited(tmp_path, n_days=1).findings}
    assert not mounted & {"homes", "habits"}


SMALLEST: dict[str, Any] = {
    "region": {"place_devices": 1},
    "session": {"beat_s": 0},
}
PROTECTED: dict[str, Any] = {"trips": {"enabled": True}}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("tables", "hidden"),
    [({}, True), (PROTECTED, True), (SMALLEST, False), (SMALLEST | PROTECTED, True)],
)
def test_homes_of_commuters_are_hidden_by_places_and_a_beat_or_by_protected_trip_ends(
    tables: dict[str, Any], record_property: Callable[[str, object], None], *, hidden: bool
) -> None:
    network = load_network("city:10000")
    trace = commuting(network, n_devices=600, n_days=5, rush_s=1800.0, every_s=TICK_S, seed=1).trace
    case = attacked(trace, network, Settings.model_validate(tables), tick_s=TICK_S)
    [home], [day] = homes(case), habits(case)
    for finding in (home, day):
        for name, value in finding.figures.items():
            record_property(f"{finding.attack} {name}", value)
    assert home.holds is hidden
    named, chance = (float(day.figures[each] or 0.0) for each in ("name", "chance"))
    assert named <= 2 * chance


@pytest.mark.soak
@pytest.mark.parametrize(("tables", "hidden"), [({}, True), (PROTECTED, True), (SMALLEST, False)])
def test_departures_are_hidden_by_places_and_a_beat_or_by_protected_trips(
    tables: dict[str, Any], record_property: Callable[[str, object], None], *, hidden: bool
) -> None:
    """Nothing but that many leave now: that is told by what covers another home as well."""
    network = load_network("city:10000")
    trace = commuting(network, n_devices=200, n_days=1, rush_s=3600.0, every_s=TICK_S, seed=0).trace
    case = attacked(trace, network, Settings.model_validate(tables), tick_s=TICK_S)
    [found] = leaving(case)
    for name, value in found.figures.items():
        record_property(f"leaving {name}", value)
    told, chance = (
        float(found.figures[name] or 0.0) for name in ("auc_remote", "auc_control_remote")
    )
    assert told - chance < 0.1 if hidden else told - chance > 0.2
