import csv
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.app.plots import BLUE, RED
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments import adka_experiment as adka
from experiments import adka_map
from experiments.adka_attacks import ATTACKS, MODES, attack_modes, draw_attacks
from experiments.adka_charts import k_against_region_size
from experiments.adka_experiment import (
    Experiment,
    Targets,
    cloak_targets,
    experiment_at,
    run_experiment,
    users_at,
)
from experiments.adka_map import SURROUNDINGS, place_nodes, region_on_network, window_around
from experiments.adka_results import expected_by_k, rows_by_k, run_rows, summary, write_results
from experiments.result_files import network_files
from tests import naive
from tests.graphs import network_of, two_islands
from tests.lanes import some

GRID = load_network("grid:5x5")
FILES = [
    "runs.csv", "summary.json", "manifest.json",
    "density_k.png", "k_region_size.png", "adaptive_fixed.png", "region.png",
]  # fmt: skip


def nodes(*node: int) -> Int32Array:
    return np.array(node, np.int32)


def experiment_on(
    network: RoadNetwork = GRID,
    *,
    n_users: int = 42,
    n_runs: int = 20,
    seed: int = 1,
    max_nodes: int = 1000,
    targets: Targets = Targets.NODES,
) -> Experiment:
    settings = Settings.model_validate({"region": {"mode": "adka", "max_nodes": max_nodes}})
    return run_experiment(
        network, settings, n_users=n_users, n_runs=n_runs, seed=seed, targets=targets
    )


def chosen(network: RoadNetwork, *, users: Int32Array, target: Int32Array) -> Experiment:
    """Return the experiment of users and targets that are chosen, not drawn."""
    return experiment_at(
        users_at(network, users),
        target,
        np.arange(network.n_nodes, dtype=np.int32),
        rule=DensityRule(),
        max_nodes=1000,
        targets=Targets.NODES,
    )


def written(
    experiment: Experiment, out: Path, *, formats: Sequence[str] = ("png",)
) -> dict[str, bytes]:
    """Return what was written; four plots take a second, so tests of tables ask for none."""
    report = summary(experiment, source="grid:5x5", seed=1)
    paths = write_results(experiment, report, out, formats=formats)
    return {path.name: path.read_bytes() for path in paths}


def share_of(color: str, picture: FloatArray) -> float:
    """Return how much of a picture has exactly this colour."""
    return float(np.isclose(picture[..., :3], to_rgb(color), atol=1 / 255).all(axis=-1).mean())


def map_in(path: Path) -> FloatArray:
    """Return the map of a region's picture, without the legend beside it."""
    picture = imread(path)
    return np.asarray(picture[:, : picture.shape[1] * 2 // 3])


def test_the_seeds_worked_example_gives_the_seeds_region() -> None:
    users = users_at(GRID, nodes(7, 2, 6, 12, 12, 8))
    runs = cloak_targets(users, nodes(7), rule=DensityRule(), max_nodes=1000)
    assert (runs.density[0], runs.k[0]) == (6, 5)
    assert runs.region(0).tolist() == [2, 6, 7, 12]
    assert (runs.region_size[0], runs.users_in_region[0]) == (4, 5)
    assert runs.outcome(0) == "cloaked"


@given(n_users=st.integers(0, 60), seed=st.integers(0, 1000), max_nodes=st.integers(1, 25))
def test_every_run_is_what_the_naive_twin_makes_of_its_target(
    n_users: int, seed: int, max_nodes: int
) -> None:
    experiment = experiment_on(n_users=n_users, n_runs=10, seed=seed, max_nodes=max_nodes)
    users, runs, graph = experiment.users, experiment.runs, naive.graph_of(GRID)
    n_at = dict(enumerate(users.n_at.tolist()))
    assert sum(n_at.values()) == n_users
    population = naive.component_population(graph, n_at)
    for run, target in enumerate(runs.target.tolist()):
        density = sum(n_at[v] for v in (target, *graph[target]))
        k = naive.k_for(density, steps=(4, 10), values=(10, 5, 2), floor=2)
        region = naive.bfs_region(graph, n_at, population, target, k, max_nodes=max_nodes)
        assert (runs.density[run], runs.k[run]) == (density, k)
        if isinstance(region, list):
            assert runs.region(run).tolist() == sorted(region)
            assert runs.users_in_region[run] == sum(n_at[v] for v in region) >= k
        else:
            assert runs.outcome(run) == region.label[1]
            assert runs.region_size[run] == runs.users_in_region[run] == 0


def published_draw() -> tuple[Int32Array, Int32Array]:
    """Return users and targets as the published program draws them with its own seed, 0."""
    draw = Random(0)  # noqa: S311  the published one
    users, targets = ([draw.choice(range(25)) for _ in range(n)] for n in (30, 20))
    return nodes(*users), nodes(*targets)


def test_the_published_program_with_its_own_seed_never_selects_2() -> None:
    users, target = published_draw()
    published = chosen(GRID, users=users, target=target)
    assert {row["k"]: row["n"] for row in rows_by_k(published.runs)} == {5: 14, 10: 6}


def test_every_k_has_its_exact_share_over_all_draws_of_the_published_users() -> None:
    first = experiment_on(n_users=30)
    assert [row["k"] for row in expected_by_k(first)] == [2, 5, 10]
    shares = [row["share"] for row in expected_by_k(first)]
    assert shares == pytest.approx([0.0295, 0.7154, 0.2551], abs=1e-3)
    draws = [experiment_on(n_users=30, seed=seed).runs.k for seed in range(300)]
    seen = np.array([[(k == each).mean() for each in (2, 5, 10)] for k in draws])
    assert seen.mean(axis=0) == pytest.approx(shares, abs=0.02)
    # A draw of 20 targets that shows every k is the exception: the defaults need not be one.
    assert (seen > 0).all(axis=1).mean() == pytest.approx(0.31, abs=0.06)


@pytest.mark.parametrize("targets", Targets)
def test_expected_densities_are_those_of_many_draws(targets: Targets) -> None:
    star = network_of(4, [(0, 1), (0, 2), (0, 3)])
    first = experiment_on(star, n_users=3, targets=targets)
    seen = np.zeros(len(first.expected))
    for seed in range(300):
        drawn = experiment_on(star, n_users=3, seed=seed, n_runs=1, targets=targets).reference
        seen += np.bincount(drawn.density, minlength=len(seen))[: len(seen)] / len(drawn) / 300
    assert first.expected.sum() == pytest.approx(1, abs=1e-6)
    assert first.expected == pytest.approx(seen, abs=0.05)
    assert bool(first.expected[0] == 0) == (targets is Targets.USERS)


def test_without_users_every_density_is_0() -> None:
    assert experiment_on(n_users=0).expected.tolist() == [1]


def test_every_node_is_a_target_of_the_reference_once() -> None:
    assert experiment_on().reference.target.tolist() == list(range(25))


def test_targets_can_be_the_nodes_of_users() -> None:
    experiment = experiment_on(n_users=8, n_runs=50, targets=Targets.USERS)
    at = np.flatnonzero(experiment.users.n_at)
    assert set(experiment.runs.target.tolist()) == set(at.tolist())
    counted = np.bincount(experiment.reference.target, minlength=25)
    assert counted.tolist() == experiment.users.n_at.tolist()


def test_without_users_no_target_can_be_one() -> None:
    with pytest.raises(SettingsError, match="--targets users"):
        experiment_on(n_users=0, targets=Targets.USERS)


def test_a_fixed_k_is_the_rule_of_a_single_k() -> None:
    experiment = experiment_on(targets=Targets.USERS)
    assert list(experiment.fixed) == [2, 5, 10]
    for k, fixed in experiment.fixed.items():
        assert set(fixed.k.tolist()) == {k}
        assert (fixed.target == experiment.reference.target).all()
        same = experiment.reference.k == k
        assert (fixed.region_size == experiment.reference.region_size)[same].all()


def test_attacks_find_the_root_of_published_regions_and_not_of_ours(tmp_path: Path) -> None:
    points = attack_modes(load_network("city:300"), Settings(), n_devices=100, seed=1)
    assert {(p.mode, p.attack) for p in points} == {(m, a) for m in MODES for a in ATTACKS}
    for point in points:
        assert 0 < point.chance <= 1
        if point.attack == "root" and point.mode == "adka":
            assert point.success > min(0.8, 5 * point.chance)
        if point.mode == "session":
            assert point.success < 3 * point.chance + 0.05
    draw_attacks(points, tmp_path / "attacks.png")
    assert share_of(RED, imread(tmp_path / "attacks.png")) > 0


def test_the_reference_of_a_large_network_is_a_sample_of_different_nodes() -> None:
    large = load_network("grid:101x100")
    reference = experiment_on(large, n_users=1000).reference
    assert len(np.unique(reference.target)) == len(reference) == adka.MAX_REFERENCE


def test_more_runs_leave_the_first_ones_as_they_were() -> None:
    few, many = experiment_on(n_runs=5), experiment_on(n_runs=50)
    assert run_rows(many)[:5] == run_rows(few)


def test_a_crowded_grid_shows_every_k_and_a_region_of_several_nodes() -> None:
    runs = experiment_on().runs
    assert [row["k"] for row in rows_by_k(runs)] == [2, 5, 10]
    assert runs.cloaked.all()
    assert runs.region_size[0] > 1


def test_suppressed_runs_are_counted_by_reason_and_leave_the_means_alone() -> None:
    experiment = chosen(two_islands(), users=nodes(*[0] * 10, 5, 5), target=nodes(4, 5, 6, 7))
    runs = experiment.runs
    assert [runs.outcome(run) for run in range(4)] == ["cloaked", *["too_few_devices"] * 3]
    assert runs.suppressed == {"too_few_devices": 3}
    (row,) = rows_by_k(runs)
    assert (row["n"], row["n_cloaked"]) == (4, 1)
    assert (row["mean_region_size"], row["mean_users_in_region"]) == (5.0, 10.0)


def test_a_k_without_any_region_has_no_mean() -> None:
    (row,) = rows_by_k(experiment_on(n_users=3).runs)
    assert row["n_cloaked"] == 0
    assert row["mean_region_size"] is row["mean_users_in_region"] is None


def test_the_tables_say_the_same_as_the_runs(tmp_path: Path) -> None:
    experiment = experiment_on(max_nodes=5)
    files = written(experiment, tmp_path, formats=())
    rows = list(csv.DictReader(files["runs.csv"].decode().splitlines()))
    assert list(rows[0]) == [
        "run", "target", "density", "k", "region_size", "users_in_region", "outcome", "region"
    ]  # fmt: skip
    expected = [
        {name: str(value) for name, value in row.items()}
        | {"region": " ".join(map(str, row["region"]))}
        for row in run_rows(experiment)
    ]
    assert rows == expected
    assert {row["outcome"] for row in rows} == {"cloaked", "region_too_large"}
    told = json.loads(files["summary.json"])
    assert (told["network"], told["nodes"], told["users"]) == ("grid:5x5", 25, 42)
    assert told["over_runs"]["suppressed"] == {
        "region_too_large": sum(row["outcome"] == "region_too_large" for row in rows)
    }
    assert sum(row["n"] for row in told["over_nodes"]["by_k"]) == 25


def test_the_same_seed_gives_the_same_files_whatever_the_readers_matplotlibrc(
    tmp_path: Path,
) -> None:
    first = written(experiment_on(), tmp_path / "first")
    with mpl.rc_context({"figure.facecolor": "black", "lines.linewidth": 9}):
        again = written(experiment_on(), tmp_path / "again")
        assert mpl.rcParams["figure.facecolor"] == "black"
    assert list(first) == FILES
    assert first == again
    other = written(experiment_on(seed=2), tmp_path / "other", formats=())
    assert [name for name in other if other[name] == first[name]] == ["manifest.json"]


def test_the_manifest_says_what_the_regions_depend_on(tmp_path: Path) -> None:
    experiment = experiment_on(n_users=6, n_runs=1)
    source = tmp_path / "net_edges.csv"
    source.write_text("u,v\n0,1\n")
    files = network_files(str(tmp_path / "net"))
    assert files == network_files(str(source)) == [source]
    assert network_files("grid:5x5") == []
    report = summary(experiment, source="net", seed=7)
    paths = write_results(experiment, report, tmp_path / "out", inputs=files, formats=("pdf",))
    assert [path.name for path in paths if path.suffix == ".pdf"] == [
        "density_k.pdf", "k_region_size.pdf", "adaptive_fixed.pdf", "region.pdf"
    ]  # fmt: skip
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"network": "net", "seed": 7, "users": 6, "runs": 1}.items() <= told["options"].items()
    assert not told["options"].keys() & {
        "over_runs",
        "over_users",
        "over_nodes",
        "expected",
        "fixed_k",
    }
    assert told["input"] == {"net_edges.csv": sha256(source.read_bytes()).hexdigest()}
    assert "numpy" in told["versions"]


def test_files_are_written_over_and_a_folder_is_made(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "folder"
    written(experiment_on(seed=2), out, formats=())
    fresh = written(experiment_on(), tmp_path / "fresh", formats=())
    assert written(experiment_on(), out, formats=()) == fresh


def test_the_region_is_red_on_blue(tmp_path: Path) -> None:
    path = tmp_path / "region.png"
    region_on_network(experiment_on(), path)
    picture = map_in(path)
    red, blue = share_of(RED, picture), share_of(BLUE, picture)
    # 9 of 25 nodes are in the region, which has its roads in red too.
    assert 9 / 16 < red / blue < 18 / 16


def test_without_a_region_nothing_is_red(tmp_path: Path) -> None:
    path = tmp_path / "region.png"
    region_on_network(experiment_on(n_users=4), path)
    assert share_of(RED, map_in(path)) == 0
    assert share_of(BLUE, map_in(path)) > 0.02


def test_region_sizes_are_drawn_and_suppressed_runs_have_none(tmp_path: Path) -> None:
    some, none = tmp_path / "some.png", tmp_path / "none.png"
    k_against_region_size(experiment_on(), some)
    k_against_region_size(experiment_on(n_users=4), none)
    assert share_of(BLUE, imread(some)) > 0
    assert share_of(BLUE, imread(none)) == 0


def networks_to_draw() -> Iterator[tuple[str, RoadNetwork, int]]:
    yield "crowded grid", load_network("grid:12x12"), 60
    yield "sparse city", load_network("city:600"), 100
    yield "long names", replace(GRID, node_id=np.arange(25) + 10**15), 42
    yield "islands without coordinates", two_islands(), 12
    yield "road without coordinates", network_of(40, ((v, v + 1) for v in range(39))), 20


@pytest.mark.parametrize(
    ("network", "n_users"),
    [pytest.param(network, n, id=name) for name, network, n in networks_to_draw()],
)
def test_a_region_can_be_drawn_on_any_network(
    tmp_path: Path, network: RoadNetwork, n_users: int
) -> None:
    region_on_network(experiment_on(network, n_users=n_users), tmp_path / "region.png")
    assert share_of(BLUE, map_in(tmp_path / "region.png")) > 0.001


def test_a_node_on_an_island_of_its_own_can_be_drawn(tmp_path: Path) -> None:
    lone = chosen(two_islands(), users=nodes(0, 0, 0, 0), target=nodes(7))
    region_on_network(lone, tmp_path / "region.png")
    assert share_of(BLUE, map_in(tmp_path / "region.png")) > 0.001


def test_the_window_shows_the_subject_and_what_surrounds_it() -> None:
    network = load_network("grid:40x40")
    subject = nodes(0, 1, 2, 3, 40)
    xy = place_nodes(network, subject)
    inside = window_around(xy, subject).contains(xy)
    assert inside[subject].all()
    assert SURROUNDINGS <= inside.sum() < 5 * SURROUNDINGS


def test_the_whole_of_a_small_network_is_shown() -> None:
    xy = place_nodes(GRID, nodes(24))
    assert window_around(xy, nodes(24)).contains(xy).all()


def test_roads_that_cross_the_window_are_drawn_and_far_ones_are_not() -> None:
    xy = place_nodes(GRID, nodes(12))
    window = window_around(xy, nodes(12))
    low, high = window.centre - 2 * window.half, window.centre + 2 * window.half
    crossing, far, nowhere = [low, high], [high, 2 * high], [low, [np.nan, np.nan]]
    assert window.touches(np.array([crossing, far, nowhere])).tolist() == [True, False, False]


def test_positions_are_metres_where_there_are_coordinates() -> None:
    xy = place_nodes(GRID, nodes(0))
    # Row 0 is in the north, and both neighbours are 100 m away.
    np.testing.assert_allclose(xy[1] - xy[0], (100, 0), atol=0.1)
    np.testing.assert_allclose(xy[5] - xy[0], (0, -100), atol=0.1)


def test_only_the_surroundings_are_laid_out_where_there_are_no_coordinates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_around = 20  # the time of a layout is of the third power
    monkeypatch.setattr(adka_map, "SURROUNDINGS", n_around)
    road = network_of(1000, ((v, v + 1) for v in range(999)))
    placed = np.flatnonzero(np.isfinite(place_nodes(road, nodes(500))).all(axis=1))
    assert 500 in placed
    assert n_around <= len(placed) <= n_around + 2
    assert (np.diff(placed) == 1).all()


@pytest.mark.data
@pytest.mark.parametrize("name", some(["san_francisco", "monaco", "usa_ny_topology"], ["monaco"]))
def test_real_networks_give_all_files_and_regions_that_hold_k(tmp_path: Path, name: str) -> None:
    network = load_network(f"{os.environ['ANONYMIZER_DATA']}/networks/{name}", max_spacing_m=0)
    experiment = experiment_on(network, n_users=round(network.n_nodes * 5 / 3), n_runs=200)
    runs = experiment.runs
    assert runs.cloaked.mean() > 0.9
    assert (runs.users_in_region >= runs.k)[runs.cloaked].all()
    assert list(written(experiment, tmp_path)) == FILES
