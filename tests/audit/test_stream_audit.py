"""The audit passes what is ideal, and fails each release that breaks one of its promises."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import AuditReport, Finding
from anonymizer.audit.attacks.subtraction import COVERED_EVERY_S, subtraction
from anonymizer.audit.case import Case, Reports
from anonymizer.audit.stream_audit import promised_by
from anonymizer.audit.stream_case import case_of
from anonymizer.errors import InputError
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.app.worlds import CONTROLS, SIDE, Paper, World, ideal_sessions, wandering
from tests.audit.audited import SETTINGS, WORLD, audit_of, audited
from tests.audit.mathematics.made import random_release

FINDINGS = {
    (finding, None)
    for finding in (
        "soundness", "k", "centre", "prefix", "inversion", "session",
        "linking", "velocity", "tracking", "subtraction", "density leak",
    )
} | {
    (finding, adversary)
    for finding in ("intersection", "matching", "re-identification")
    for adversary in ("on_air", "off_air")
}  # fmt: skip


def the(report: AuditReport, attack: str, adversary: str | None = None) -> Finding:
    (finding,) = (f for f in report.findings if (f.attack, f.adversary) == (attack, adversary))
    return finding


def failed(report: AuditReport) -> set[str]:
    return {finding.attack for finding in report.failures}


@pytest.mark.parametrize("seed", range(3))
def test_ideal_sessions_hold_against_every_attack_by_both_adversaries(
    tmp_path: Path, seed: int
) -> None:
    world = wandering(n_devices=150, n_ticks=40, seed=seed)
    report = audit_of(ideal_sessions(world, seed=seed), tmp_path, world=world)
    assert {(f.attack, f.adversary) for f in report.findings} == FINDINGS
    assert failed(report) == set()
    assert report.holds
    assert all(f.holds for f in report.findings if f.attack in promised_by("session"))
    # The ideal is what can be had: no posterior above that of a group.
    for adversary in ("on_air", "off_air"):
        least = the(report, "matching", adversary).figures["effective_to_k_min"]
        assert least is not None
        assert least >= 1


@pytest.mark.parametrize(
    ("control", "attacks"),
    [
        ("fixed pseudonyms", {"session", "intersection", "matching", "re-identification"}),
        ("rotating alone", {"session", "matching", "linking"}),
        ("without ghosts", {"session", "intersection", "matching"}),
    ],
)
def test_each_way_to_break_a_session_is_found_by_the_attacks_it_opens_the_door_to(
    tmp_path: Path, control: str, attacks: set[str]
) -> None:
    report = audit_of(CONTROLS[control](WORLD), tmp_path)
    assert not report.holds
    assert attacks <= failed(report)
    # They are broken in time alone: what is asked of one instant they keep.
    assert not failed(report) & {"soundness", "k", "centre", "prefix"}


def test_reciprocal_regions_under_fixed_pseudonyms_keep_the_promise_of_snapshot(
    tmp_path: Path,
) -> None:
    report = audit_of(CONTROLS["fixed pseudonyms"](WORLD), tmp_path, mode="snapshot")
    assert report.holds
    assert the(report, "session").holds is False
    assert not the(report, "session").required


@pytest.fixture(scope="module")
def adka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adka")
    cloak_trace(
        WORLD.trace(),
        WORLD.network,
        SETTINGS,
        tick_s=1.0,
        seed=0,
        out=folder / "PUB.jsonl",
        auditor_map=folder / "MAP.jsonl",
    )
    return folder


def test_adka_keeps_its_own_promise_and_no_other(adka: Path) -> None:
    trace, network = WORLD.trace(), WORLD.network
    assert audited(adka, trace, network, mode="adka").holds
    snapshot = audited(adka, trace, network, mode="snapshot")
    assert failed(snapshot) == {"centre", "prefix", "inversion"}
    session = audited(adka, trace, network, mode="session")
    assert {"prefix", "inversion", "session", "intersection", "matching"} <= failed(session)
    found = the(session, "prefix").figures["success"]
    assert found is not None
    assert found > 0.8


def test_the_modes_promise_more_and_more() -> None:
    assert promised_by("adka") < promised_by("snapshot") < promised_by("session")


def test_equal_seeds_give_equal_reports(adka: Path) -> None:
    first, again = (
        audited(adka, WORLD.trace(), WORLD.network, sample=20, seed=3) for _ in range(2)
    )
    assert first == again
    assert AuditReport.model_validate_json(first.model_dump_json()) == first


def test_a_sample_limits_what_the_costly_attacks_look_at(adka: Path) -> None:
    trace, network = WORLD.trace(), WORLD.network
    some, all_of_it = (audited(adka, trace, network, sample=n) for n in (10, 0))
    assert (some.n_sampled, all_of_it.n_sampled) == (10, all_of_it.n_pseudonyms)
    assert the(all_of_it, "centre").figures["n_records"] == all_of_it.n_records
    fewer = the(some, "centre").figures["n_records"]
    assert fewer is not None
    assert fewer < all_of_it.n_records
    assert the(some, "inversion") == the(all_of_it, "inversion")


def test_a_car_park_shows_once_whether_a_guess_of_the_root_is_right(tmp_path: Path) -> None:
    # Two devices stand where a breadth-first search of their region would begin. Two others drive
    # along a road in the middle, in regions that no such search finds.
    n_ticks, road = 20, SIDE * (SIDE // 2)
    ahead = np.arange(n_ticks) % (SIDE - 4)
    node = np.stack((np.zeros(n_ticks), np.zeros(n_ticks), road + ahead, road + ahead + 1), axis=1)
    world = World(WORLD.network, node.astype(np.int64), np.ones((n_ticks, 4), bool))
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(4)})
    for t in range(n_ticks):
        paper.publish(t, ["p0", "p1"], [0, 1, SIDE], k=2)
        paper.publish(t, ["p2", "p3"], [int(road + ahead[t] + i) for i in range(4)], k=2)
    figures = the(audit_of(paper, tmp_path, world=world), "prefix").figures
    n_driven = 2 * (SIDE - 4)
    assert figures["n_places"] == 1 + n_driven
    # Where no node is suspected, the guess is one of the region's four.
    assert figures["success"] == pytest.approx((1 + n_driven / 4) / (1 + n_driven))


def shopping(*, n_devices: int = 40) -> tuple[World, Paper]:
    """Everybody is near one of four markets, and often there; rectangles around it are published.

    The rectangles do not depend on the devices, and none is published twice.
    """
    rng, market = np.random.default_rng(4), np.arange(n_devices) % 4
    centre = np.stack((5 + 9 * (market // 2), 5 + 9 * (market % 2)))
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(n_devices)})
    node = np.empty((16, n_devices), np.int64)
    for t in range(len(node)):
        reach = np.array([[2 + t // 4], [2 + t % 4]])
        away = rng.integers(-reach, reach + 1, size=(2, n_devices)) * (rng.random(n_devices) > 0.12)
        node[t] = np.array([SIDE, 1]) @ (centre + away)
        rows, columns = (np.arange(-r, r + 1) for r in reach[:, 0])
        for m in range(4):
            near = (SIDE * rows[:, None] + columns).ravel() + np.array([SIDE, 1]) @ centre[:, m]
            paper.publish(t, [f"p{d}" for d in np.flatnonzero(market == m)], near.tolist())
    return World(WORLD.network, node, np.ones(node.shape, bool)), paper


def test_a_region_is_not_blamed_for_traffic_that_meets_in_its_middle(tmp_path: Path) -> None:
    world, paper = shopping()
    finding = the(audit_of(paper, tmp_path, world=world), "centre")
    success, blind, by_traffic = (
        float(finding.figures[name] or 0.0) for name in ("success", "one_in_n", "by_traffic")
    )
    assert success > 2 * blind, "blamed if nobody knows the traffic"
    assert by_traffic > 2 * blind
    assert finding.holds


def test_without_the_map_what_needs_it_is_left_out_and_said(adka: Path) -> None:
    report = audited(adka, WORLD.trace(), WORLD.network, with_map=False)
    mounted = {finding.attack for finding in report.findings}
    assert mounted == {"k", "inversion", "session", "intersection", "velocity", "tracking"}
    # The devices report in every tick, which hides their phases, and on one day.
    assert mounted | set(report.left_out) == {attack for attack, _ in FINDINGS} | {
        "timing",
        "habits",
    }
    assert {"inversion", "session", "intersection"} <= failed(report)


def test_a_region_that_its_device_has_left_is_unsound(tmp_path: Path) -> None:
    paper = ideal_sessions(WORLD)
    paper.lines[0]["region"] = [(paper.lines[0]["region"][0] + 210) % 400]
    report = audit_of(paper, tmp_path)
    assert {"soundness", "inversion", "session"} <= failed(report)
    assert the(report, "soundness").figures["n_outside"] == 1
    assert the(report, "matching", "on_air").figures["n_pseudonyms"] == report.n_pseudonyms - 1


def test_a_region_that_states_more_devices_than_it_holds_fails(tmp_path: Path) -> None:
    paper = ideal_sessions(WORLD)
    for line in paper.lines:
        line["k"] = 151
    report = audit_of(paper, tmp_path, mode="adka")
    assert failed(report) == {"k"}


def test_one_device_is_no_crowd_whatever_k_is_stated(tmp_path: Path) -> None:
    world = wandering(n_devices=1, n_ticks=3, seed=0)
    paper = Paper(device_of={"p": "device-0"})
    paper.publish(0, ["p"], [world.last_known(0, 0)], k=1)
    report = audit_of(paper, tmp_path, world=world, mode="adka")
    assert failed(report) == {"k"}


def standing(n_devices: int) -> World:
    """Device d stands at node d and reports once a second, twice."""
    node = np.tile(np.arange(n_devices), (2, 1))
    return World(WORLD.network, node, np.ones(node.shape, bool))


def one_group(n_devices: int, region: list[int], *, k: int) -> Paper:
    names = [f"p{d}" for d in range(n_devices)]
    paper = Paper(device_of={name: f"device-{d}" for d, name in enumerate(names)})
    for t in range(2):
        paper.publish(t, names, region, k=k)
    return paper


@pytest.mark.parametrize(("k", "holds"), [(96, True), (98, True), (100, False), (102, False)])
def test_effective_anonymity_may_fall_a_little_short_of_k_but_not_for_many(
    tmp_path: Path, k: int, *, holds: bool
) -> None:
    paper = one_group(96, list(range(96)), k=k)
    report = audit_of(paper, tmp_path, world=standing(96))
    for adversary in ("on_air", "off_air"):
        finding = the(report, "matching", adversary)
        assert finding.figures["effective_to_k_min"] == pytest.approx(96 / k)
        assert finding.figures["effective_to_k_p1"] == pytest.approx(96 / k)
        assert finding.holds is holds


def test_not_even_one_of_a_hundred_may_stand_alone(tmp_path: Path) -> None:
    paper = one_group(110, list(range(109)), k=5)
    for line in paper.lines:
        if line["pseudonym"] == "p109":
            line["region"] = [109]
    finding = the(audit_of(paper, tmp_path, world=standing(110)), "matching", "on_air")
    assert finding.figures["effective_to_k_p1"] == pytest.approx(109 / 5)
    assert finding.holds is False


def test_a_member_outside_the_region_of_its_group_hides_nobody(tmp_path: Path) -> None:
    paper = one_group(6, [1, 2, 3, 4, 5], k=5)
    report = audit_of(paper, tmp_path, world=standing(6))
    assert the(report, "session").figures["twins_min"] == 6
    assert the(report, "matching", "on_air").figures["effective_min"] == pytest.approx(5)
    assert the(report, "soundness").holds is False


def test_those_who_share_a_whole_life_are_as_many_as_k_states(tmp_path: Path) -> None:
    paper = one_group(6, list(range(6)), k=5)
    for line in paper.lines[6:]:
        if line["pseudonym"] in {"p3", "p4", "p5"}:  # they get new names in the middle
            line["pseudonym"] = line["pseudonym"].replace("p", "q")
    paper.device_of |= {f"q{d}": f"device-{d}" for d in (3, 4, 5)}
    report = audit_of(paper, tmp_path, world=standing(6))
    assert the(report, "session").figures["twins_min"] == 3
    assert the(report, "session").holds is False
    # Each may be any of six devices, but is one of three names only.
    assert the(report, "matching", "on_air").figures["effective_min"] == pytest.approx(3)
    assert the(report, "matching", "on_air").holds is False


def test_where_nothing_can_be_judged_no_verdict_is_given(tmp_path: Path) -> None:
    world = wandering(n_devices=1, n_ticks=3, seed=0)
    paper = Paper(device_of={"p": "device-0"})
    paper.publish(0, ["p"], [(world.last_known(0, 0) + 1) % 400])  # wrong: the adversary is misled
    report = audit_of(paper, tmp_path, world=world)
    for attack, adversary in (("matching", "on_air"), ("linking", None), ("velocity", None)):
        assert the(report, attack, adversary).holds is None
    assert "soundness" in failed(report)


def test_region_sizes_are_means_over_records(tmp_path: Path) -> None:
    paper = ideal_sessions(WORLD)
    regions = audit_of(paper, tmp_path).regions
    sizes = [len(line["region"]) for line in paper.lines]
    assert regions.nodes_mean == pytest.approx(np.mean(sizes))
    assert regions.nodes_max == max(sizes)
    assert regions.extent_m_max is not None
    assert 100 < regions.extent_m_max < 19 * 100 * 2**0.5 * 1.001


def test_a_network_without_coordinates_has_no_metres_and_needs_a_trace_of_nodes(
    tmp_path: Path,
) -> None:
    nowhere = np.full(WORLD.network.n_nodes, np.nan)
    network = replace(WORLD.network, lat=nowhere, lon=nowhere)
    ideal_sessions(WORLD).write(tmp_path)
    report = audited(tmp_path, WORLD.trace(), network)
    assert report.holds
    assert report.regions.extent_m_max is None
    with pytest.raises(InputError, match="the trace must name nodes"):
        audited(tmp_path, replace(WORLD.trace(), node=None), network)


def test_a_trace_of_coordinates_is_audited_as_one_of_nodes(tmp_path: Path) -> None:
    ideal_sessions(WORLD).write(tmp_path)
    by_node, network = WORLD.trace(), WORLD.network
    node = np.asarray(by_node.node, np.int64)
    located = replace(by_node, node=None, lat=network.lat[node], lon=network.lon[node])
    assert audited(tmp_path, located, network) == audited(tmp_path, by_node, network)


def test_a_trace_that_names_unknown_nodes_is_refused(tmp_path: Path) -> None:
    ideal_sessions(WORLD).write(tmp_path)
    trace = WORLD.trace()
    strange = replace(trace, node=np.asarray(trace.node, np.int64) + 1_000)
    with pytest.raises(InputError, match=r"lacks the node of \d+ rows"):
        audited(tmp_path, strange, WORLD.network)


def test_who_is_who_is_not_answered_without_the_map() -> None:
    made = random_release(0)
    case = Case(
        observed=made.observed,
        truth=replace(made.truth, device_of=None),
        local=replace(made.truth, device_of=None),
        counted=replace(made.truth, device_of=None),
        network=WORLD.network,
        class_of=np.zeros(1, np.int64),
        sampled=np.zeros(1, np.int64),
        piece_of=None,
        density_steps=(4, 10),
        tick_s=1.0,
        reports=Reports(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int32)),
        seed=0,
    )
    with pytest.raises(ValueError, match="not known"):
        _ = case.device_of
    with pytest.raises(ValueError, match="not known"):
        case.local_node_of(np.zeros(1, np.int64))


@pytest.mark.parametrize("has_coordinates", [True, False])
def test_tracking_finds_devices_that_are_published_where_they_are(
    tmp_path: Path, *, has_coordinates: bool
) -> None:
    world = wandering(n_devices=12, n_ticks=70, seed=2)
    if not has_coordinates:
        nowhere = np.full(world.network.n_nodes, np.nan)
        world = replace(world, network=replace(world.network, lat=nowhere, lon=nowhere))
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(world.n_devices)})
    for t in range(3, world.n_ticks):
        for d in world.on_air(t):
            paper.publish(t, [f"p{d}"], [world.last_known(t, d)], k=1)
    finding = the(audit_of(paper, tmp_path, world=world, mode="adka"), "tracking")
    assert finding.holds is False
    found = finding.figures
    assert found["belief_followed_1min"] == pytest.approx(1, abs=0.02)
    assert found["tenth_followed_1min"] == pytest.approx(1, abs=0.02)
    assert found["exposed_followed_1min"] == 1
    assert found["belief_hindsight_1min"] == pytest.approx(1, abs=0.02)
    assert found["belief_none_1min"] is not None
    assert found["belief_none_1min"] < 0.5
    # The release is shorter than three minutes, its regions are not made of public pieces, and
    # there is no release of others.
    assert found["belief_none_3min"] is found["belief_hindsight_3min"] is None
    assert found["belief_placebo_1min"] is None
    assert found["pieces_held_share"] is None


def test_a_few_who_are_published_where_they_are_break_the_bar_of_tracking(tmp_path: Path) -> None:
    world, few = wandering(n_devices=40, n_ticks=70, seed=2), (5, 11, 17, 23)
    everywhere = list(range(SIDE * SIDE))
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(world.n_devices)})
    for t in range(3, world.n_ticks):
        for d in world.on_air(t):
            paper.publish(t, [f"p{d}"], [world.last_known(t, d)] if d in few else everywhere, k=1)
    finding = the(audit_of(paper, tmp_path, world=world, mode="adka"), "tracking")
    times = {
        what: float(finding.figures[f"{what}_followed_1min"] or 0)
        / float(finding.figures[f"{what}_none_1min"] or 1)
        for what in ("belief", "tenth")
    }
    assert times["belief"] < 2 < times["tenth"]
    assert finding.holds is False


def test_a_release_of_others_says_nothing_whenever_it_was_made(tmp_path: Path) -> None:
    worlds = [wandering(n_devices=12, n_ticks=70, seed=seed) for seed in (2, 3)]
    for world, name in zip(worlds, ("one", "other"), strict=True):
        paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(world.n_devices)})
        for t in range(3, world.n_ticks):
            for d in world.on_air(t):
                paper.publish(t, [f"p{d}"], [world.last_known(t, d)], k=1)
        (tmp_path / name).mkdir()
        paper.write(tmp_path / name)
    network = worlds[0].network
    other = read_release(tmp_path / "other" / "PUB.jsonl", network)
    later = replace(other.observed, time=other.observed.time + 86_400)
    report = audited(
        tmp_path / "one",
        worlds[0].trace(),
        network,
        mode="adka",
        placebo=replace(other, observed=later, until=other.until + 86_400),
    )
    found = the(report, "tracking").figures
    placebo, none = found["belief_placebo_1min"], found["belief_none_1min"]
    assert placebo is not None
    assert none is not None
    # Names that are followed from a place that nobody is at: better or worse by chance alone.
    assert placebo < 0.5
    assert found["belief_followed_1min"] == pytest.approx(1, abs=0.02)


def test_a_release_shorter_than_a_minute_is_too_short_to_track_in(tmp_path: Path) -> None:
    ideal_sessions(WORLD).write(tmp_path)
    made_of_pieces = SETTINGS.model_copy(update={"region": Settings().region})
    report = audited(tmp_path, WORLD.trace(), WORLD.network, settings=made_of_pieces)
    figures = the(report, "tracking").figures
    assert figures["n_tracks"] == 0
    assert figures["belief_followed_1min"] is figures["tenth_followed_1min"] is None
    assert figures["pieces_held_share"] is not None


@pytest.mark.parametrize("noisy_at", [-1, 3])
@pytest.mark.parametrize(
    ("n_parked", "holds", "left"), [(5, False, 1.0), (0, True, 6.0), (6, None, None)]
)
def test_company_that_stands_still_is_subtracted_from_the_regions_of_who_moves(
    tmp_path: Path, n_parked: int, noisy_at: int, *, holds: bool | None, left: float | None
) -> None:
    # One group of six; each is covered by its own node alone. Noise puts the parked ones at two.
    n_ticks, n = 8, 6
    ticks = np.arange(n_ticks)[:, np.newaxis]
    moved = np.where(np.arange(n) < n_parked, ticks == noisy_at, ticks)
    node = 20 * np.arange(n) + moved
    world = World(WORLD.network, node, np.ones((n_ticks, n), bool))
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(n)})
    for t in range(n_ticks):
        paper.publish(t, list(paper.device_of), node[t].tolist())
    finding = the(audit_of(paper, tmp_path, world=world), "subtraction")
    assert finding.holds is holds
    assert finding.figures.get("nodes_left_median") == left
    assert not finding.required


@pytest.mark.parametrize("n_ticks", [200, 150])
def test_company_that_stands_still_is_subtracted_where_every_group_publishes_once(
    tmp_path: Path, n_ticks: int
) -> None:
    n_parked, n = 5, 6
    ticks = np.arange(n_ticks)[:, np.newaxis]
    node = 20 * np.arange(n) + np.where(np.arange(n) < n_parked, 0, ticks // 12)
    world = World(WORLD.network, node, np.ones((n_ticks, n), bool))
    paper, published_at = Paper(), [*range(0, n_ticks, 50), n_ticks - 1]
    for t in published_at:
        named = {f"p{d}-{t}": f"device-{d}" for d in range(n)}
        paper.device_of |= named
        paper.publish(t, list(named), node[t].tolist())
    paper.write(tmp_path)
    released, trace = read_release(tmp_path / "PUB.jsonl", world.network), world.trace()
    device_of = read_auditor_map(
        tmp_path / "MAP.jsonl", pseudonym=released.pseudonym, device_id=trace.device_id
    )
    case = case_of(trace, released, world.network, SETTINGS, device_of=device_of, tick_s=1.0)
    [finding] = subtraction(case)
    long_enough = n_ticks > 3 * COVERED_EVERY_S
    assert finding.figures == {
        "n_records": 0,
        "throughout_success": 1.0 if long_enough else None,
        "throughout_one_in_n": pytest.approx(1 / n) if long_enough else None,
        "throughout_n_records": len(published_at) if long_enough else 0,
    }


@pytest.mark.parametrize("goes", ["off the roads", "where it cannot be"])
def test_who_goes_where_nothing_counts_is_where_it_was_as_if_silent(
    goes: str, tmp_path: Path
) -> None:
    network = load_network("city:2000")
    far = int(np.argmax(np.abs(network.lat - network.lat[0])))
    home = network.lat[0], network.lon[0]
    place_of = {
        "off the roads": lambda second: (home[0] - 0.002 * (second >= 20), home[1]),
        "where it cannot be": lambda second: (
            (network.lat[far], network.lon[far]) if second % 2 else home
        ),
    }
    rows = [  # four of five stay at a junction
        (f"car-{i}", second + 0.5, *(place_of[goes](second) if i == 4 else home))
        for second in range(60)
        for i in range(5)
    ]
    columns = pl.DataFrame(rows, schema=["device_id", "ts", "lat", "lon"], orient="row")
    columns.write_csv(tmp_path / "trace.csv")
    trace = read_trace(tmp_path / "trace.csv")
    tables = {"adka": {"density_steps": [], "k_values": [5]}, "network": {"snap_limit_m": 50}}
    settings = Settings.model_validate({"region": {"mode": "adka"}, **tables})
    cloak_trace(
        trace,
        network,
        settings,
        tick_s=1.0,
        seed=0,
        out=tmp_path / "PUB.jsonl",
        auditor_map=tmp_path / "MAP.jsonl",
    )
    report = audited(tmp_path, trace, network, mode="adka", settings=settings)
    assert report.n_records > 4 * 40
    [k] = [each for each in report.findings if each.attack == "k"]
    assert k.holds
    assert k.figures["devices_min"] == 5


@pytest.mark.data
@pytest.mark.soak  # tracking follows every taxi, for many minutes
@pytest.mark.timeout(7200)
def test_adka_on_real_taxis_is_sound_and_gives_its_roots_away(tmp_path: Path) -> None:
    data = Path(os.environ["ANONYMIZER_DATA"])
    network = load_network(str(data / "networks" / "san_francisco"), max_spacing_m=0)
    day = pl.scan_parquet(data / "traces" / "cabspotting_sf_2008-05-19_20.parquet")
    noon = day.select(pl.col("ts").min()).collect().item() + 12 * 3600
    day.filter(pl.col("ts").is_between(noon, noon + 1200)).collect().write_parquet(
        tmp_path / "taxis.parquet"
    )
    trace = read_trace(tmp_path / "taxis.parquet")
    settings = Settings.model_validate({"region": {"mode": "adka"}})  # taxis report once a minute
    cloak_trace(
        trace,
        network,
        settings,
        tick_s=1.0,
        seed=0,
        out=tmp_path / "PUB.jsonl",
        auditor_map=tmp_path / "MAP.jsonl",
    )
    assert audited(tmp_path, trace, network, mode="adka", settings=settings).holds
    report = audited(tmp_path, trace, network, mode="session", sample=500, settings=settings)
    assert {"prefix", "inversion", "session", "intersection", "matching"} <= failed(report)
