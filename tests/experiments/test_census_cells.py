"""The gateway beside cells that grow with a census: on one tiny fleet, in one run."""

import numpy as np
import pytest

from anonymizer.networks import load_network
from experiments.census_cells import (
    NAMES,
    Choice,
    cells_of,
    homes_at,
    lives_by,
    main,
    nodes_at,
    verdict,
)

CITY = load_network("city:400")


def test_each_cell_is_the_home_of_enough_devices_and_larger_ones_are_made_of_smaller() -> None:
    homes = np.random.default_rng(0).integers(CITY.n_nodes, size=100)
    fine, coarse = (cells_of(CITY, homes, fewest) for fewest in (5, 10))
    for cell_of, fewest in ((fine, 5), (coarse, 10)):
        assert (np.bincount(cell_of[homes], minlength=cell_of.max() + 1) >= fewest).all()
    assert len(np.unique(coarse)) < len(np.unique(fine))
    assert len(np.unique(np.stack([fine, coarse]), axis=1).T) == len(np.unique(fine))


def test_a_home_is_where_a_device_is_first() -> None:
    place = np.array([[-1, 4, -1], [2, 5, -1], [3, 4, -1]], np.int32)
    assert homes_at(place).tolist() == [2, 4], "who is never there has none"


@pytest.mark.parametrize("name", NAMES)
def test_names_say_which_reports_are_of_one_device_and_nothing_else(name: str) -> None:
    steps_s = np.arange(0.0, 1200.0, 10.0)
    place = np.random.default_rng(1).integers(-1, 6, (len(steps_s), 3)).astype(np.int32)
    lives = lives_by(name, place, np.array([0, 0, 1, 1, 1, 2]), steps_s, seed=0)
    step_of = np.repeat(np.arange(lives.n_steps), np.diff(lives.first_record_of))
    n_read = np.bincount(step_of, lives.size[lives.life_of], lives.n_steps)
    assert n_read.tolist() == (place >= 0).sum(axis=1).tolist(), "each device once a step"
    lasts_s = 10.0 * (lives.last_step_of - lives.first_step_of)
    if name == "lasting":
        assert len(lives.size) == 3
    elif name == "rotating":
        assert 3 < len(lives.size) <= 9
        assert lasts_s.max() <= 900.0
    else:
        assert lasts_s.max() == 0.0


def test_between_two_sizes_of_cells_the_one_that_tells_as_much_is_interpolated() -> None:
    cells = [Choice("none", 2, 10.0, 0.5, 0.4, 0.8), Choice("none", 4, 40.0, 0.5, 0.2, 0.6)]
    assert nodes_at(cells, 0.3, tenth=False) == pytest.approx(20.0)
    assert nodes_at(cells, 0.5, tenth=True) is None
    ours = Choice("gateway", 0, 10.0, 4.0, 0.3, 0.5)
    assert verdict(ours, cells).endswith(
        "mean: 10 of 20 nodes, 0.50; tenth: not crossed by these cells"
    )


@pytest.mark.soak
def test_larger_cells_of_one_fleet_tell_less(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--fleets=1", "--starts=1", "--targets=6"]
    main(["--fleet=even:60:400", *few, "--names=lasting", "--fewest=4"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| lasting")]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert len(rows) >= 2
    nodes = [float(row[3]) for row in cells]
    belief = [float(row[5].split(" / ")[0]) for row in cells]
    assert nodes == sorted(nodes)
    assert len(set(nodes)) == len(nodes)
    assert belief == sorted(belief, reverse=True)
