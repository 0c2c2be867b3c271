"""Adversaries that learn: each attack on each way to publish, in one table.

Habits of weeks, paths from a release, membership at low false-positive rates, and adversaries who
choose when to look. Every row stands beside a control, and every attack is also tried on a release
that is known to be broken.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import naming
from anonymizer.networks import load_network
from experiments.audited import AuditedScore, run_audit
from experiments.chosen_moments import run_moments
from experiments.habits_experiment import run_habits, run_taxis
from experiments.membership import run_membership
from experiments.membership_tables import run_tables
from experiments.membership_trips import run_trips
from experiments.reconstruction import run_reconstruction
from experiments.result_files import Row, manifest, rows_written, write_files, write_json
from experiments.scores import Score
from experiments.trip_habits import Weeks, run_trip_habits, trip_weeks
from experiments.trip_looks import run_trip_moments, run_trip_paths

MIN_NODES = 200
LEAST_FLEET = 60
"""Devices of a fleet that drives: of fewer, random halves often publish nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to attack."""

    network: RoadNetwork
    """Where simulated people drive."""
    n_people: int
    """Number of people in the weeks of commuters; the other fleets are a sixth to a third of it,
    and of `LEAST_FLEET` devices or more."""
    n_shadows: int
    """Shadow releases of each way to publish, for membership."""
    data: Path | None
    """Folder with the recording of taxis of San Francisco and its network; None: leave it out."""
    seed: int
    """Equal plans give equal scores, but for CPU times."""


def _habits(plan: Plan, progress: Callable[[str], None]) -> Iterator[Score]:
    yield from run_habits(plan.network, n_people=plan.n_people, seed=plan.seed, progress=progress)
    progress("habits: weeks of trips")
    yield from run_trip_habits(_weeks(plan), seed=plan.seed, progress=progress)


def _taxis(plan: Plan, progress: Callable[[str], None]) -> Iterator[Score]:
    if plan.data is None:
        return
    network = load_network(str(plan.data / "networks" / "san_francisco"))
    yield from run_taxis(network, plan.data, seed=plan.seed, progress=progress)


def _paths(plan: Plan, progress: Callable[[str], None]) -> Iterator[Score]:
    yield from run_reconstruction(
        _town(plan), n_devices=_fleet(plan, 6), seed=plan.seed, progress=progress
    )
    progress("paths: weeks of trips")
    yield from run_trip_paths(_weeks(plan), seed=plan.seed, progress=progress)


def _membership(plan: Plan, progress: Callable[[str], None]) -> Iterator[Score]:
    network, n, seed = _town(plan), _fleet(plan, 4), plan.seed
    yield from run_membership(
        network, n_devices=n, n_shadows=plan.n_shadows, seed=seed, progress=progress
    )
    yield from run_trips(
        network, n_people=2 * n, n_shadows=plan.n_shadows, seed=seed, progress=progress
    )
    yield from run_tables(n_rows=n, n_shadows=plan.n_shadows, seed=seed, progress=progress)


def _moments(plan: Plan, progress: Callable[[str], None]) -> Iterator[Score]:
    yield from run_moments(
        _town(plan), n_devices=_fleet(plan, 3), seed=plan.seed, progress=progress
    )
    progress("moments: weeks of trips")
    yield from run_trip_moments(_weeks(plan), seed=plan.seed, progress=progress)


def _weeks(plan: Plan) -> Weeks:
    return trip_weeks(plan.network, plan.n_people, plan.seed)


def _fleet(plan: Plan, part: int) -> int:
    return max(plan.n_people // part, LEAST_FLEET)


def _town(plan: Plan) -> RoadNetwork:
    """Return a town of a third of the nodes: whoever drives all the time has less company."""
    return load_network(f"city:{max(plan.network.n_nodes // 3, MIN_NODES)}")


def _audit(plan: Plan, progress: Callable[[str], None]) -> Iterator[AuditedScore]:
    yield from run_audit(_town(plan), n_devices=_fleet(plan, 3), seed=plan.seed, progress=progress)


Scores: TypeAlias = Iterator[Score] | Iterator[AuditedScore]
ATTACKS: dict[str, Callable[[Plan, Callable[[str], None]], Scores]] = {
    "habits": _habits,
    "taxis": _taxis,
    "paths": _paths,
    "membership": _membership,
    "moments": _moments,
    "audit": _audit,
}


def run_adversaries(
    plan: Plan,
    attacks: Sequence[str],
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> Iterator[Row]:
    """Mount some attacks of `ATTACKS`; yield a row for each release, see `Score.row`.

    Where a fleet is so small that one of its releases has no region, the attacks of that name end
    with a row without victims.
    """
    for i, name in enumerate(attacks):
        try:
            for score in ATTACKS[name](plan, partial(progress, i / len(attacks))):
                yield score.row(seed=plan.seed)
        except InputError:
            yield {"attack": name, "release": "no region: too few people", "victims": 0}


def write_results(rows: Iterable[Row], options: Row, out: Path) -> tuple[list[Row], list[Path]]:
    """Write manifest.json, and scores.csv row by row as they are found; return rows and paths.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    paths = write_files(out, {"manifest.json": lambda path: write_json(manifest(options), path)})
    scores = out / "scores.csv"
    with naming(scores):
        found = list(rows_written(rows, Score.COLUMNS, scores))
    paths.append(scores)
    return found, paths
