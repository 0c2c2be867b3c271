"""Adversaries that learn: each attack on each way to publish, in one table.

Habits of weeks, paths from a release, membership at low false-positive rates, and adversaries who
choose when to look. Every row stands beside a control, and every attack is also tried on a release
that is known to be broken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from experiments.chosen_moments import run_moments
from experiments.habits_experiment import run_habits, run_taxis
from experiments.membership import run_membership
from experiments.membership_tables import run_tables
from experiments.membership_trips import run_trips
from experiments.reconstruction import run_reconstruction
from experiments.result_files import Row, manifest, write_csv, write_files, write_json
from experiments.scores import Score

MIN_NODES = 200
LEAST_FLEET = 60
"""Devices of a fleet that drives: of fewer, random halves often publish nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to attack.

    Attributes
    ----------
    network
        Where simulated people drive.
    n_people
        Number of people in the weeks of commuters; the other fleets are a sixth to a third of it,
        and of `LEAST_FLEET` devices or more.
    n_shadows
        Shadow releases of each way to publish, for membership.
    data
        Folder with the recording of taxis of San Francisco and its network; None: leave it out.
    seed
        Equal plans give equal scores, but for CPU times.
    """

    network: RoadNetwork
    n_people: int
    n_shadows: int
    data: Path | None
    seed: int


def _habits(plan: Plan, progress: Callable[[str], None]) -> list[Score]:
    return run_habits(plan.network, n_people=plan.n_people, seed=plan.seed, progress=progress)


def _taxis(plan: Plan, progress: Callable[[str], None]) -> list[Score]:
    if plan.data is None:
        return []
    network = load_network(str(plan.data / "networks" / "san_francisco"))
    return run_taxis(network, plan.data, seed=plan.seed, progress=progress)


def _paths(plan: Plan, progress: Callable[[str], None]) -> list[Score]:
    return run_reconstruction(
        _town(plan), n_devices=_fleet(plan, 6), seed=plan.seed, progress=progress
    )


def _membership(plan: Plan, progress: Callable[[str], None]) -> list[Score]:
    network, n, seed = _town(plan), _fleet(plan, 4), plan.seed
    of_positions = run_membership(
        network, n_devices=n, n_shadows=plan.n_shadows, seed=seed, progress=progress
    )
    of_trips = run_trips(
        network, n_people=2 * n, n_shadows=plan.n_shadows, seed=seed, progress=progress
    )
    of_tables = run_tables(n_rows=n, n_shadows=plan.n_shadows, seed=seed, progress=progress)
    return of_positions + of_trips + of_tables


def _moments(plan: Plan, progress: Callable[[str], None]) -> list[Score]:
    return run_moments(_town(plan), n_devices=_fleet(plan, 3), seed=plan.seed, progress=progress)


def _fleet(plan: Plan, part: int) -> int:
    return max(plan.n_people // part, LEAST_FLEET)


def _town(plan: Plan) -> RoadNetwork:
    """Return a town of a third of the nodes: whoever drives all the time has less company."""
    return load_network(f"city:{max(plan.network.n_nodes // 3, MIN_NODES)}")


ATTACKS: dict[str, Callable[[Plan, Callable[[str], None]], list[Score]]] = {
    "habits": _habits,
    "taxis": _taxis,
    "paths": _paths,
    "membership": _membership,
    "moments": _moments,
}


def run_adversaries(
    plan: Plan,
    attacks: Sequence[str],
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> list[Row]:
    """Mount some attacks of `ATTACKS`; return a row for each release, see `Score.row`.

    Where a fleet is so small that one of its releases has no region, the attacks of that name have
    one row without victims.
    """
    rows: list[Row] = []
    for i, name in enumerate(attacks):
        try:
            scores = ATTACKS[name](plan, partial(progress, i / len(attacks)))
        except InputError:
            rows.append({"attack": name, "release": "no region: too few people", "victims": 0})
            continue
        rows += [score.row(seed=plan.seed) for score in scores]
    return rows


def write_results(rows: Sequence[Row], options: Row, out: Path) -> list[Path]:
    """Write scores.csv and manifest.json; return their paths.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    return write_files(
        out,
        {
            "scores.csv": lambda path: write_csv(rows, path),
            "manifest.json": lambda path: write_json(manifest(options), path),
        },
    )
