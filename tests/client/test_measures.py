"""Measures with their error bars: cases worked by hand, and simulations with known truth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.uneven_density import USUAL, halve
from anonymizer.client import Releases, read_network
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from tests.client.paper import halves, message, releases, street

STREET = read_network(street())
HALVES = halves(STREET)


def two_groups() -> Releases:
    return releases(message("abc", [10, 11]), message("de", [11, 12, 13]), network=STREET)


def test_a_heat_map_on_paper() -> None:
    heat = two_groups().heat_map(HALVES)
    assert list(heat["cell"]) == ["west", "east"]
    # Three devices are in the west for sure, and each of two with a probability of 1/3.
    assert heat["devices"] == pytest.approx([3 + 2 / 3, 4 / 3])
    # Chance, and density: an error e of the halves of the street moves 8/9 e devices, and one of
    # the halves of its west -4/9 e.
    variance = 2 * 1 / 3 * 2 / 3 + USUAL * (64 + 16) / 81
    assert heat["se"] == pytest.approx([np.sqrt(variance)] * 2, rel=0.1)  # of first order
    assert (heat["se"] > 1.05 * np.sqrt(2 * 1 / 3 * 2 / 3)).all()
    assert [*heat["low"], *heat["high"]] == [3, 0, 5, 2]
    narrow = two_groups().heat_map(HALVES, level=0.5)
    # Without error, P(none) = 4/9 and P(both) = 1/9 in the west.
    assert (narrow["low"][0], narrow["high"][0]) == (3, 4)


def test_devices_may_be_spread_by_the_length_of_the_roads() -> None:
    heat = two_groups().heat_map(HALVES, spread="roads")
    # The last node has half a road around it, the others one.
    assert heat["devices"] == pytest.approx([3 + 2 / 2.5, 2 * 1.5 / 2.5])
    with pytest.raises(InputError, match="spread"):
        two_groups().heat_map(HALVES, spread="evenly")


def test_devices_may_be_spread_by_weights_of_ones_own() -> None:
    heat = two_groups().heat_map(HALVES, spread=np.array([1.0, 3.0, 0.0, 1.0]))
    assert heat["devices"] == pytest.approx([3 + 2 * 0.75, 2 * 0.25])
    # Where all nodes of a region weigh nothing, they are alike.
    heat = two_groups().heat_map(HALVES, spread=np.zeros(4))
    assert heat["devices"] == pytest.approx([3 + 2 / 3, 4 / 3])
    for wrong in (np.ones(3), np.array([1.0, -1.0, 0.0, 0.0]), np.full(4, np.nan)):
        with pytest.raises(InputError, match="weights"):
            two_groups().heat_map(HALVES, spread=wrong)


def test_each_moment_has_its_own_map() -> None:
    found = releases(message("ab", [10]), message("ab", [13], 30, 60), network=STREET)
    heat = found.heat_map(HALVES, at=[0, 29, 30])
    assert list(heat["cell"]) == ["west", "west", "east"]
    assert [str(at)[17:19] for at in heat["time"]] == ["00", "29", "30"]


def test_flows_on_paper() -> None:
    found = releases(
        message("abc", [10, 11]),
        message("de", [11, 12, 13]),
        message("abc", [11, 12], 10, 40),
        network=STREET,
    )
    flows = found.flows(HALVES, start=5, end=15)
    moves = list(zip(flows["origin"], flows["destination"], strict=True))
    assert moves == [("west", "west"), ("west", "east"), ("east", "west"), ("east", "east")]
    # Half of abc must have crossed; nothing shows that d or e did.
    assert flows["devices"] == pytest.approx([3 / 2 + 2 / 3, 3 / 2, 0, 4 / 3])
    # But each of d and e may have gone to the west, or from it, with a probability of up to 1/3.
    # That all three of abc and both of these moved in one way has a probability of 1/8 x 1/9.
    assert list(flows["low"]) == [0, 0, 0, 0]
    assert list(flows["high"]) == [4, 4, 2, 2]
    with pytest.raises(InputError, match="end"):
        found.flows(HALVES, start=5, end=5)


def test_devices_that_change_their_pseudonym_are_in_no_flow() -> None:
    abc, c = message("abc", [10]), message("c", [13], 30, 60)
    found = releases(abc, c, message("xy", [13], 30, 60), network=STREET)
    with pytest.warns(UserWarning, match="only 1 of 3 devices kept their pseudonym"):
        flows = found.flows(HALVES, start=0, end=30)
    assert flows["devices"].sum() == pytest.approx(1)


def test_flows_longer_than_pseudonyms_live_are_refused() -> None:
    found = releases(message("ab", [10]), message("xy", [13], 30, 60), network=STREET)
    with pytest.raises(InputError, match=r"30 s apart.*pseudonyms live for 30 s at most"):
        found.flows(HALVES, start=0, end=30)
    # Nobody is published any more: nobody moved.
    assert len(found.flows(HALVES, start=0, end=90)) == 0


def test_speeds_on_paper() -> None:
    found = releases(
        message("abc", [10, 11, 12], readings={"speed_mps": {"mean": 10.0, "min": 8, "max": 12}}),
        message("de", [11, 12, 13], readings={"speed_mps": {"mean": 4.0, "min": 3, "max": 5}}),
        message("f", [13]),
        network=STREET,
    )
    speeds = found.speeds()
    assert list(zip(speeds["u"], speeds["v"], strict=True)) == [(10, 11), (11, 12), (12, 13)]
    # 1.5 devices of the first group and 1 of the second are on the road in the middle.
    assert speeds["mean"] == pytest.approx([10, (15 + 4) / 2.5, 4])
    assert speeds["devices"] == pytest.approx([1.5, 2.5, 1])
    square = (1.5 * (2**2 + 10**2) + 1 * (1**2 + 4**2)) / 2.5 - 7.6**2
    assert speeds["se"] == pytest.approx([2, np.sqrt(square), 1])
    assert speeds["low"][2] == pytest.approx(4 - 1.959964)
    with pytest.raises(InputError, match="'noise'; published are: speed_mps"):
        found.speeds("noise")


@pytest.mark.parametrize(
    ("reading", "low"), [("speed_mps", 0.0), ("temperature_c", 3 - 5 * 1.959964)]
)
def test_a_speed_may_not_be_below_0_and_a_temperature_may(reading: str, low: float) -> None:
    said = {reading: {"mean": 3.0, "min": -2, "max": 8}}
    found = releases(message("abc", [10, 11], readings=said), network=STREET)
    assert found.speeds(reading)["low"] == pytest.approx([low])


def test_a_group_without_a_spread_has_no_error_bar() -> None:
    found = releases(
        message("ab", [10, 11], readings={"speed_mps": {"mean": 10.0}}), network=STREET
    )
    with pytest.warns(
        UserWarning, match=r"speed_mps: no error bars.*add p25 and p75 to statistics"
    ):
        assert np.isnan(found.speeds()["se"]).all()
    quartiles = {"mean": 10.0, "p25": 9, "p75": 11}
    found = releases(message("ab", [10, 11], readings={"speed_mps": quartiles}), network=STREET)
    assert found.speeds()["se"] == pytest.approx([2 / 1.349], abs=0.001)


CITY = read_network(load_network("grid:12x12"))


def uneven(rng: np.random.Generator) -> FloatArray:
    """Return a density: of each area, its first half has a share with the variance `USUAL` / 4."""
    side, density = halve(CITY.lon, CITY.lat).side, np.ones(CITY.n_nodes)
    alpha = (1 / USUAL - 1) / 2
    share = rng.beta(alpha, alpha, side.shape[0])
    for area in range(side.shape[0]):
        row = slice(side.indptr[area], side.indptr[area + 1])
        first = side.data[row] > 0
        density[side.indices[row]] *= 2 * np.where(first, share[area], 1 - share[area])
    return density


def nearest(centre: int, n: int) -> IntArray:
    """Return the nodes nearest to one."""
    far = (CITY.lat - CITY.lat[centre]) ** 2 + (CITY.lon - CITY.lon[centre]) ** 2
    return np.argsort(far, kind="stable")[:n]


def simulated(seed: int, n_groups: int = 150) -> tuple[Releases, list[int]]:
    """Return releases at two times and the true nodes of the devices at both.

    Every device is somewhere in its region, and then somewhere in the next one: where the density,
    which is uneven at every size, has it.
    """
    rng = np.random.default_rng(seed)
    messages, truth = [], []
    density = uneven(rng)
    density /= density.sum()
    for g in range(n_groups):
        for t in (0, 60):
            nodes = nearest(rng.choice(CITY.n_nodes, p=density), int(rng.integers(2, 40)))
            names = [f"{g}"]
            region = CITY.node_id[nodes].tolist()
            messages.append(message("", region, t, t + 60, pseudonyms=names))
            at_node = density[nodes] / density[nodes].sum()
            truth += rng.choice(nodes, len(names), p=at_node).tolist()
    return releases(*messages, network=CITY), truth


@given(seed=st.integers(0, 1000), size_m=st.sampled_from([150.0, 400.0, 5000.0]))
@settings(max_examples=5)
def test_the_expected_devices_of_all_cells_are_the_devices(seed: int, size_m: float) -> None:
    found, _ = simulated(seed, n_groups=30)
    cells = CITY.grid(size_m)
    for spread in ("nodes", "roads"):
        heat = found.heat_map(cells, spread=spread)
        assert heat["devices"].sum() == pytest.approx(found.devices()) == 30
        assert (heat["low"] <= np.ceil(heat["devices"])).all()
        assert (heat["high"] >= np.floor(heat["devices"])).all()
    flows = found.flows(cells, start=0, end=60)
    assert flows["devices"].sum() == pytest.approx(30)


def test_intervals_contain_the_truth_at_the_stated_rate() -> None:
    cells, covered = CITY.grid(400.0), []
    flows_covered = []
    for seed in range(20):
        found, nodes = simulated(seed)
        truth = np.array(nodes).reshape(-1, 2, 1)
        heat = found.heat_map(cells, at=30.0, level=0.9)
        counts = np.bincount(cells.cell_of[truth[:, 0].ravel()], minlength=len(cells))
        there = counts[[cells.name.index(name) for name in heat["cell"]]]
        covered += ((heat["low"] <= there) & (there <= heat["high"])).tolist()
        flows = found.flows(cells, start=30, end=90, level=0.9)
        moves = np.zeros((len(cells), len(cells)), int)
        np.add.at(
            moves, (cells.cell_of[truth[:, 0].ravel()], cells.cell_of[truth[:, 1].ravel()]), 1
        )
        index = {name: i for i, name in enumerate(cells.name)}
        pairs = zip(flows["origin"], flows["destination"], strict=True)
        true = np.array([moves[index[a], index[b]] for a, b in pairs])
        flows_covered += ((flows["low"] <= true) & (true <= flows["high"])).tolist()
    # At least: numbers of devices are whole, and flows allow for any dependence.
    assert len(covered) > 19 * len(cells)
    assert np.mean(covered) >= 0.9
    assert np.mean(flows_covered) >= 0.9


def test_the_standard_error_is_that_of_the_counts() -> None:
    cells, standardized = CITY.grid(400.0), []
    for seed in range(20):
        found, nodes = simulated(seed)
        truth = np.array(nodes).reshape(-1, 2, 1)[:, 0].ravel()
        heat = found.heat_map(cells, at=30.0)
        counts = np.bincount(cells.cell_of[truth], minlength=len(cells))
        there = counts[[cells.name.index(name) for name in heat["cell"]]]
        standardized += ((there - heat["devices"]) / heat["se"]).tolist()
    assert np.mean(standardized) == pytest.approx(0, abs=0.15)
    assert np.std(standardized) == pytest.approx(1, abs=0.15)


def test_the_mean_of_a_road_is_within_its_error_bar_at_the_stated_rate() -> None:
    first, covered = np.arange(0, CITY.n_nodes + 1, 36), []
    node = np.arange(CITY.n_nodes)
    roads = CITY.roads_inside(first, node).tocsr()
    name_of = CITY.node_id.tolist()
    road_of = {
        (name_of[u], name_of[v]): r for r, (u, v) in enumerate(zip(CITY.u, CITY.v, strict=True))
    }
    for seed in range(5):
        rng = np.random.default_rng(seed)
        road_mps = rng.normal(12, 3, CITY.n_roads)
        messages = []
        for g in range(len(first) - 1):
            inside = roads.indices[roads.indptr[g] : roads.indptr[g + 1]]
            speeds = rng.normal(road_mps[rng.choice(inside, 100)], 1.0)
            p25, p75 = np.quantile(speeds, [0.25, 0.75]).tolist()
            readings = {"speed_mps": {"mean": float(speeds.mean()), "p25": p25, "p75": p75}}
            region = name_of[first[g] : first[g + 1]]
            names = [f"{g}-{i}" for i in range(len(speeds))]
            messages.append(message("", region, pseudonyms=names, readings=readings))
        table = releases(*messages, network=CITY).speeds()
        road = [road_of[u, v] for u, v in zip(table["u"], table["v"], strict=True)]
        covered += ((table["low"] <= road_mps[road]) & (road_mps[road] <= table["high"])).tolist()
    assert len(covered) > 1000
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        two_groups().heat_map(HALVES, level=level)


def test_cells_of_another_network_are_refused() -> None:
    other = replace(STREET, version="0" * 16)
    with pytest.raises(InputError, match="another network"):
        two_groups().heat_map(halves(other))


def test_quality_on_paper() -> None:
    quality = two_groups().quality(HALVES, at=0.0)
    heat = two_groups().heat_map(HALVES, at=0.0)
    assert quality.devices == 5
    assert quality.coverage == 1
    assert quality.age_mean_s == 0
    # Only the two of the second group can be in a wrong half; by chance, 8/27 of them in the mean.
    assert 8 / 27 < quality.density_error * 5 < heat["se"][0]
    assert np.isnan(quality.flow_error)  # no message lasts for half a minute
    assert np.isnan(quality.speed_error)


def test_the_quality_of_nothing_is_not_known() -> None:
    quality = two_groups().quality(HALVES, at=1e6)
    assert quality.devices == quality.coverage == 0
    assert np.isnan([quality.age_mean_s, quality.density_error, quality.flow_error]).all()


def test_larger_cells_are_counted_better_and_speeds_have_their_spread() -> None:
    readings = {"speed_mps": {"mean": 10.0, "p25": 8.0, "p75": 12.0}}
    region = CITY.node_id[nearest(60, 40)].tolist()
    names = [str(i) for i in range(9)]
    found = releases(message("", region, 0, 90, pseudonyms=names, readings=readings), network=CITY)
    fine, coarse, whole = (found.quality(CITY.grid(m), at=10.0) for m in (150.0, 600.0, 5000.0))
    assert fine.density_error > coarse.density_error > whole.density_error
    assert whole.density_error == pytest.approx(0)
    assert fine.flow_error > whole.flow_error == 0
    assert fine.speed_error == pytest.approx(np.sqrt(2 / np.pi) * 4 / 1.349, rel=1e-3)
