"""Regions of this gateway beside cells that grow with the density of a census, on one trace.

A phone gives an app that may not know its exact place a cell that is larger where fewer people
live. Here the cells are squares that are halved while each half is the home of so many devices
(home: where a device is when the trace begins), and each device publishes its own at every report,
under one of three kinds of names:

- `lasting`: one for all reports, as an app sees its own installation on a phone;
- `none`: no report has a name. No phone does this: it is the most that names could hide;
- `rotating`: a new one each 10 to 15 minutes, at a moment of its own, as a phone's radio address.

```text
python -m experiments.census_cells --fleet even:1000
```

The same victims are followed from the same known positions by the same adversary
(`anonymizer.audit.mathematics.following`), with the same model of motion, through the release of
the gateway and through the cells. In the gateway's release the adversary is also told the true
pieces of each group and their levels; of the cells it reads one in each step of 10 s, not every
report: both favour the cells. From one row to the next a cell is the home of twice as many devices,
until neither the mean belief nor that of the most exposed tenth is above the gateway's. Between
rows, the logarithm of the nodes is interpolated.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import (
    EARLIER_S,
    HORIZONS_MIN,
    HeardRelease,
    believe,
    cells_shown,
    close_to,
    most_exposed_tenth,
    steps_of,
)
from anonymizer.audit.mathematics.following import follow
from anonymizer.audit.mathematics.lives import Lives, rounded_lives
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.audit.stretches import Stretch, stretches, tick_at
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.blur_schemes import halved
from experiments.where_experiment import (
    Scene,
    heard_release,
    motion_learned,
    one_fleet_parser,
    scenes,
    served,
    with_values,
)

NAMES = ("lasting", "none", "rotating")
ROTATES_S = (600.0, 900.0)
MOST_HOMES = 0.5
"""Cells are tried until one half of them is the home of this share of the devices."""


class Choice(NamedTuple):
    """What one way of publishing costs and says, over several fleets."""

    name: str
    fewest: int
    """`name`, `fewest`: names of the reports, and in how many devices' home a cell is at least (0:
    the gateway)."""
    nodes: float
    """Mean number of nodes in what is published."""
    age_s: float
    """Mean age of what is known of a device, s."""
    belief: float
    tenth: float
    """`belief`, `tenth`: probability of the nodes near the true place after the longest horizon:
    mean of the victims, and mean of the most exposed tenth."""


class Chased(NamedTuple):
    """A fleet whose release was attacked: what is needed to attack cells in its place."""

    case: Case
    chosen: list[Stretch]
    near: FloatArray
    nodes: float
    age_s: float


def homes_at(place: Int32Array) -> IntArray:
    """Return where each device is first, of its place at each tick, negative if absent."""
    here = place >= 0
    first: IntArray = place[here.argmax(axis=0), np.arange(place.shape[1])].astype(np.int64)
    return first[here.any(axis=0)]


def cells_of(network: RoadNetwork, homes: IntArray, fewest: int) -> IntArray:
    """Return the cell of each node, 0 to n - 1, none empty; homes are nodes."""
    xy_m = np.stack(tangent_plane(network), axis=1)
    return halved(xy_m, xy_m[homes], fewest)[0]


def named_lives(place: Int32Array, cell_of: IntArray, name_of: IntArray) -> Lives:
    """Return the lives of devices that publish their cell at each step, each under its name.

    Parameters
    ----------
    place, cell_of
        As in `rounded_lives`.
    name_of
        Name of each device at each step, of one device alone, shape (steps, devices).
    """
    step, device = np.nonzero(place >= 0)
    rounded = rounded_lives(place, cell_of)
    names, first, life_of = np.unique(name_of[step, device], return_index=True, return_inverse=True)
    last = np.zeros(len(names), np.int64)
    np.maximum.at(last, life_of, step)
    return Lives(
        starts_of(np.bincount(step, minlength=len(place))),
        life_of.astype(np.int64),
        cell_of[place[step, device]],
        np.ones(len(names)),
        step[first],
        last,
        rounded.regions,
    )


def lives_by(
    name: str, place: Int32Array, cell_of: IntArray, steps_s: FloatArray, seed: int
) -> Lives:
    """Return what is read in cells whose reports have names of one of `NAMES`."""
    if name == "none":
        return rounded_lives(place, cell_of)
    n = place.shape[1]
    number = np.zeros(place.shape, np.int64)
    if name == "rotating":
        rng = np.random.default_rng(seed)
        period_s, phase = rng.uniform(*ROTATES_S, n), rng.uniform(size=n)
        number = np.floor(steps_s[:, None] / period_s + phase).astype(np.int64)
        number -= number.min()
    return named_lives(place, cell_of, number * n + np.arange(n))


def chase(
    all_scenes: Sequence[Scene],
    network: RoadNetwork,
    settings: Settings,
    *,
    n_starts: int,
    n_targets: int,
) -> tuple[list[Chased], Motion]:
    """Cloak fleets and attack their releases; return how devices move, too.

    Parameters
    ----------
    n_starts, n_targets
        Moments of each fleet, and most victims from each moment.
    """
    cloaked = [heard_release(scene.trace, network, settings) for scene in all_scenes]
    interval_s = cloaked[0][0].reports.interval_s
    motion = motion_learned(all_scenes[0].trained, network, settings, interval_s)
    found = []
    for seed, (scene, (case, release, heard)) in enumerate(zip(all_scenes, cloaked, strict=True)):
        told, other = heard, heard_release(scene.other, network, settings)[2]
        if other.handed is not None:
            told = heard._replace(level_share=other.handed.shares(other.observed))
        chosen = stretches(
            heard.observed,
            case.truth,
            HORIZONS_MIN[-1:],
            step_s=steps_of(interval_s)[1],
            n_starts=n_starts,
            n_targets=n_targets,
            rng=np.random.default_rng(seed),
            before_s=EARLIER_S,
            victims=scene.victims,
            most_share=1.0,
        )
        near = _followed(told, case, network, chosen, motion)
        nodes, _, age_s = served(case, release)
        found.append(Chased(case, chosen, near, nodes, age_s))
    return found, motion


def _followed(
    heard: HeardRelease,
    case: Case,
    network: RoadNetwork,
    chosen: list[Stretch],
    motion: Motion,
) -> FloatArray:
    believed = believe(
        heard,
        case.truth,
        network,
        case.piece_of,
        chosen=chosen,
        motion=motion,
        adversaries=("followed",),
    )
    return np.concatenate([_near(network, each, of["followed"]) for each, of in believed])


def _near(network: RoadNetwork, stretch: Stretch, belief: FloatArray) -> FloatArray:
    """Return the belief in the nodes near the true places at the last step, shape (targets,)."""
    close = close_to(network, stretch.place[stretch.at[-1]][stretch.targets])
    near: FloatArray = (belief[:, -1] * close).sum(axis=1)
    return near


def near_of_cells(
    each: Chased, network: RoadNetwork, motion: Motion, cell_of: IntArray, name: str
) -> FloatArray:
    """Follow the same targets through cells; return the belief near their true places."""
    observed, found = each.case.observed, []
    for stretch in each.chosen:
        step_s = float(stretch.steps_s[1] - stretch.steps_s[0])
        n_before = int(min(EARLIER_S, stretch.steps_s[0] - observed.time[0]) / step_s)
        n_steps = n_before + len(stretch.steps_s)
        steps_s = stretch.steps_s[0] + step_s * np.arange(-n_before, n_steps - n_before)
        place = each.case.truth.place[tick_at(observed, steps_s)]
        belief, _ = follow(
            lives_by(name, place, cell_of, steps_s, each.case.seed),
            motion,
            n_present=(place >= 0).sum(axis=1),
            start=stretch.place[0, stretch.targets].astype(np.int64),
            enter=n_before,
            at=n_before + stretch.at,
            cell_of=cells_shown(network),
        )
        found.append(_near(network, stretch, belief))
    return np.concatenate(found)


def choice_of_cells(
    fleets: Sequence[Chased], network: RoadNetwork, motion: Motion, *, fewest: int, name: str
) -> Choice:
    """Attack the cells of some fleets, each with a census of its own."""
    nodes, near = [], []
    for each in fleets:
        place = each.case.truth.place
        cell_of = cells_of(network, homes_at(place), fewest)
        nodes.append(float(np.bincount(cell_of)[cell_of[place[place >= 0]]].mean()))
        near.append(near_of_cells(each, network, motion, cell_of, name))
    age_s = float(np.mean([each.case.reports.interval_s for each in fleets])) / 2
    belief = np.concatenate(near)
    return Choice(
        name,
        fewest,
        float(np.mean(nodes)),
        age_s,
        float(belief.mean()),
        most_exposed_tenth(belief),
    )


def gateway(fleets: Sequence[Chased]) -> Choice:
    """Return what the releases of some fleets cost and say."""
    nodes, age_s = np.mean([(each.nodes, each.age_s) for each in fleets], axis=0).tolist()
    near = np.concatenate([each.near for each in fleets])
    return Choice("gateway", 0, nodes, age_s, float(near.mean()), most_exposed_tenth(near))


def swept(
    fleets: Sequence[Chased],
    network: RoadNetwork,
    motion: Motion,
    ours: Choice,
    *,
    name: str,
    fewest: int,
) -> Iterator[Choice]:
    """Yield cells of rising size until they tell no more than the gateway does."""
    n_devices = min(each.case.truth.n_devices for each in fleets)
    while fewest <= MOST_HOMES * n_devices:
        found = choice_of_cells(fleets, network, motion, fewest=fewest, name=name)
        yield found
        if found.belief <= ours.belief and found.tenth <= ours.tenth:
            return
        fewest *= 2


def nodes_at(choices: Sequence[Choice], level: float, *, tenth: bool) -> float | None:
    """Return the nodes of cells that tell so much; None if the cells that were tried do not."""
    told = [each.tenth if tenth else each.belief for each in choices]
    for (a, b), (before, after) in zip(pairwise(told), pairwise(choices), strict=True):
        if a > level >= b:
            part, ends = (a - level) / (a - b), np.log([before.nodes, after.nodes])
            return float(np.exp(ends[0] + part * (ends[1] - ends[0])))
    return None


def square_km(network: RoadNetwork) -> float:
    """Return the area of the rectangle around a network."""
    width_m, height_m = (float(np.ptp(each)) for each in tangent_plane(network))
    return width_m * height_m / 1e6


def line(each: Choice) -> str:
    """Return a row of the table."""
    cells = f"{each.nodes:.0f} | {each.age_s:.1f} s | {each.belief:.3f} / {each.tenth:.2f}"
    return f"| {each.name} | {each.fewest or ''} | {cells} |"


def verdict(ours: Choice, choices: Sequence[Choice]) -> str:
    """Return the share of the nodes of cells that the gateway needs to tell as much."""
    said = []
    for what, level, tenth in (("mean", ours.belief, False), ("tenth", ours.tenth, True)):
        nodes = nodes_at(choices, level, tenth=tenth)
        said.append(
            f"{what}: not crossed by these cells"
            if nodes is None
            else f"{what}: {ours.nodes:.0f} of {nodes:.0f} nodes, {ours.nodes / nodes:.2f}"
        )
    return f"{choices[0].name}, at equal belief, {'; '.join(said)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = one_fleet_parser(__doc__, n_targets=20)
    parser.add_argument("--starts", type=int, default=2, help="moments of each fleet")
    parser.add_argument("--names", action="append", choices=NAMES, help="default: all of them")
    parser.add_argument("--fewest", type=int, default=2, help="homes in the smallest cells")
    options = parser.parse_args(arguments)
    settings, say = with_values(Settings(), options.set), partial(print, flush=True)
    network, all_scenes = scenes(options.fleet, options.fleets, options.data)
    fleets, motion = chase(
        list(all_scenes), network, settings, n_starts=options.starts, n_targets=options.targets
    )
    ours = gateway(fleets)
    n_victims, km2 = sum(len(each.near) for each in fleets), square_km(network)
    say(f"{options.fleet}: {n_victims} victims; {network.n_nodes:,} nodes on {km2:.0f} km²\n")
    say("| names | fewest homes | nodes | age | 5 min: belief / tenth |\n|---|--:|--:|--:|---|")
    say(line(ours))
    for name in options.names or NAMES:
        choices = []
        for each in swept(fleets, network, motion, ours, name=name, fewest=options.fewest):
            say(line(each))
            choices.append(each)
        if choices:
            say(verdict(ours, choices))


if __name__ == "__main__":
    main()
