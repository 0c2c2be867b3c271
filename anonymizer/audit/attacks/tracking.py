"""The tracking attack on a release, next to what an adversary knows without it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.algorithms.releases.pieces import (
    in_groups,
    pieces_held,
    read_pieces,
)
from anonymizer.audit.attack import WITHOUT, Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, of_any
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.following import LevelPrior, follow
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.lives import (
    Handed,
    Lives,
    handed_lives,
    no_lives,
    published_lives,
)
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.audit.mathematics.reachability import DrivingGraph, new_spread, spread_from
from anonymizer.audit.mathematics.tracking import track
from anonymizer.audit.mathematics.truth import Truth
from anonymizer.audit.stretches import Stretch, horizons, motion_of_others, stretches, tick_at
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

HORIZONS_MIN = (1, 3, 5)
NEAR_M = 300.0
N_STARTS = 4
N_TARGETS = 25
"""Targets for each start."""
SHORTEST_STEP_S = 2.0
STEP_S = 10.0
"""The filter takes a step in this time, or in the interval of reports if that is longer. Several
moves in a step are more regular than as many steps with one move each."""
NODES_SHOWN = 20
"""Nodes in a cell whose devices the release shows, on average: those within `NEAR_M`, about."""
N_COUNTED_TICKS = 60
"""Ticks at which devices in pieces are counted."""
MOST_TIMES_NONE = 2.0
"""The bar: how many times as much may be believed as without a release, of all devices on average
and of the most exposed tenth."""
ADVERSARIES = ("none", "placebo", "followed", "hindsight")
"""Those of the report."""
EARLIER_S = 150.0
"""Who follows groups reads the release from so long before the known position: two epochs."""
HINDSIGHT_S = 120.0
"""Who looks back knows the release until so long after the last horizon: two of the longest beats
of the default settings."""
N_DRAWS = 500
EXPOSED = 0.5
"""Belief above which a device counts as exposed."""
Readings: TypeAlias = Mapping[str, Callable[[Stretch], Lives]]
"""By name of an adversary: what it reads in a stretch."""


class HeardRelease(NamedTuple):
    """A release, as the adversaries read it.

    `class_of`: of each pseudonym, from `indistinguishable_classes`; `until`: unix seconds until
    which each record holds, shape (records,); `handed`: what the adversary is told beyond the
    release; `level_share`: how likely each level is at each node, from `Handed.shares` of other
    devices, shape (levels, nodes), used with `handed` alone. None: not known.
    """

    observed: Observed
    class_of: IntArray
    until: FloatArray | None = None
    handed: Handed | None = None
    level_share: FloatArray | None = None


class _Said(NamedTuple):
    """What a release says from before a stretch on, which begins at step `n_before`."""

    lives: Lives
    n_before: int
    prior: LevelPrior | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beliefs:
    """What adversaries believe of the true places of some targets.

    `minutes`: those of `HORIZONS_MIN` that the release is long enough for; `near`: of each
    adversary, the probability that it gives to the nodes within `NEAR_M` of the true place, shape
    (targets, minutes); `moves`: whether a target is farther than `NEAR_M` from its known position
    at one of the minutes, shape (targets,).
    """

    minutes: tuple[int, ...]
    near: dict[str, FloatArray]
    moves: BoolArray

    def at(self, name: str, minute: int, chosen: BoolArray | None = None) -> FloatArray:
        """Return the beliefs of an adversary after some minutes, of some targets or of all."""
        if minute not in self.minutes or name not in self.near:
            return np.zeros(0)
        column = self.near[name][:, self.minutes.index(minute)]
        return column if chosen is None else column[chosen]

    def figures(self) -> dict[str, Figure]:
        """Return the figures of the report."""
        last = HORIZONS_MIN[-1]
        found: dict[str, Figure] = {"n_tracks": len(self.moves)}
        for name in ADVERSARIES:
            for minute in HORIZONS_MIN:
                column = self.at(name, minute)
                found[f"belief_{name}_{minute}min"] = of_any(np.mean, column)
                found[f"tenth_{name}_{minute}min"] = of_any(most_exposed_tenth, column)
                found[f"exposed_{name}_{minute}min"] = of_any(exposed, column)
            column = self.at(name, last, self.moves)
            found[f"belief_moving_{name}_{last}min"] = of_any(np.mean, column)
            found[f"tenth_moving_{name}_{last}min"] = of_any(most_exposed_tenth, column)
        found["moving_share"] = of_any(np.mean, self.moves)
        for minute in self.minutes[-1:]:
            for what, of in (("belief", np.mean), ("tenth", most_exposed_tenth)):
                column = self.at("followed", minute)
                ends = interval(column, of) if len(column) else (None, None)
                name = f"{what}_followed_{minute}min"
                found[f"{name}_low"], found[f"{name}_high"] = ends
        return found


def interval(
    belief: FloatArray, of: Callable[[FloatArray], float | np.floating[Any]]
) -> tuple[float, float]:
    """Return the interval of 95 % of a figure of at least one belief, over resampled targets."""
    drawn = np.random.default_rng(0).integers(len(belief), size=(N_DRAWS, len(belief)))
    low, high = np.quantile([float(of(belief[some])) for some in drawn], (0.025, 0.975)).tolist()
    return low, high


def most_exposed_tenth(belief: FloatArray) -> float:
    """Return the mean of the highest tenth of at least one belief."""
    return float(np.sort(belief)[::-1][: max(1, len(belief) // 10)].mean())


def exposed(belief: FloatArray) -> float:
    """Return the share of beliefs above `EXPOSED`."""
    return float((belief > EXPOSED).mean())


def tracking(
    case: Case, *, n_starts: int = N_STARTS, adversaries: Sequence[str] = ADVERSARIES
) -> list[Finding]:
    """Track devices from one known position; report the belief in the true place.

    `n_starts` and `adversaries` as in `beliefs`: the default is all that the report tells.
    """
    found = beliefs(
        HeardRelease(case.observed, case.class_of, case.until),
        case.truth,
        case.network,
        case.piece_of,
        interval_s=case.reports.interval_s,
        n_starts=n_starts,
        adversaries=adversaries,
        placebo=case.placebo
        and HeardRelease(
            case.placebo.observed,
            indistinguishable_classes(case.placebo.observed),
            case.placebo.until,
        ),
        seed=case.seed,
    )
    figures = found.figures()
    asked = [name for name in ("followed", "hindsight") if name in adversaries]
    times = [
        MOST_TIMES_NONE * none - after
        for what in ("belief", "tenth")
        for name in asked
        for minute in HORIZONS_MIN
        if (none := figures[f"{what}_none_{minute}min"])
        and (after := figures[f"{what}_{name}_{minute}min"]) is not None
    ]
    return [
        Finding(
            attack="tracking",
            figures={**figures, **_pieces(case)},
            bar=_bar(asked),
            holds=min(times) >= 0 if times else None,
        )
    ]


def _bar(asked: Sequence[str]) -> str:
    return f"belief and tenth of {' and '.join(asked)} <= {MOST_TIMES_NONE:g} none"


def beliefs(
    heard: HeardRelease,
    truth: Truth,
    network: RoadNetwork,
    piece_of: IntArray | None,
    *,
    interval_s: float = 1.0,
    n_starts: int = N_STARTS,
    n_targets: int = N_TARGETS,
    placebo: HeardRelease | None = None,
    victims: BoolArray | None = None,
    motion: Motion | None = None,
    adversaries: Sequence[str] = ADVERSARIES,
    further: Readings = MappingProxyType({}),
    seed: int = 0,
) -> Beliefs:
    """Return what adversaries believe of the true places of devices 1, 3 and 5 minutes later.

    `piece_of`: public piece of each node, negative if it is in none, shape (nodes,) or (levels,
    nodes); None: regions are not made of public pieces. `interval_s`: how often a device reports.
    At each of `n_starts` random ticks the positions of `n_targets` random devices are known, of
    `victims` alone if given, shape (devices,). `placebo`: a release of other devices at the same
    times, for the adversary who takes it for that of the targets. `motion`: how devices move,
    learned from others than those of `truth` in steps of `steps_of(interval_s)`; None: it is
    learned from those that are no targets, at least half of them.

    `adversaries`: `none` has no release; `placebo`; `followed` follows groups and devices;
    `hindsight` also knows what was published until `HINDSIGHT_S` later. `further`: what others
    read, by name, who follow nobody.
    """
    fine_s, step_s = steps_of(interval_s)
    minutes = horizons(heard.observed, HORIZONS_MIN)
    chosen = stretches(
        heard.observed,
        truth,
        minutes,
        step_s=step_s,
        n_starts=n_starts,
        n_targets=n_targets,
        rng=np.random.default_rng(seed),
        before_s=EARLIER_S,
        ahead_s=HINDSIGHT_S if "hindsight" in adversaries else 0.0,
        victims=victims,
        most_share=0.5 if motion is None else 1.0,
    )
    if motion is None:
        every = round(step_s / fine_s)
        motion = motion_of_others(
            heard.observed, truth, network, chosen, step_s=fine_s, every=every
        )
    near: dict[str, list[FloatArray]] = {}
    moves = [np.zeros(0, np.bool_)]
    believed = believe(
        heard,
        truth,
        network,
        piece_of,
        chosen=chosen,
        motion=motion,
        further=further,
        placebo=placebo,
        adversaries=adversaries,
    )
    for stretch, belief_of in believed:
        close = close_to(network, stretch.place[stretch.at][:, stretch.targets].T)
        start = stretch.place[0, stretch.targets]
        stays = np.logical_and.reduce(close[np.arange(len(start)), :, start], axis=1)
        moves.append(np.logical_not(stays))
        for name, belief in belief_of.items():
            near.setdefault(name, []).append((belief * close).sum(axis=2))
    return Beliefs(
        minutes,
        {name: np.concatenate(each) for name, each in near.items()},
        np.concatenate(moves),
    )


def believe(
    heard: HeardRelease,
    truth: Truth,
    network: RoadNetwork,
    piece_of: IntArray | None,
    *,
    chosen: Sequence[Stretch],
    motion: Motion,
    placebo: HeardRelease | None = None,
    adversaries: Sequence[str] = ADVERSARIES,
    further: Readings = MappingProxyType({}),
) -> Iterator[tuple[Stretch, dict[str, FloatArray]]]:
    """Yield each stretch, and what each adversary believes of its targets.

    The parameters are those of `beliefs`; a belief has shape (targets, steps `at`, nodes).
    """
    read: Readings = {"none": lambda stretch: no_lives(len(stretch.steps_s)), **further}
    cell_of = cells_shown(network)
    for stretch in chosen:
        start = stretch.place[0, stretch.targets].astype(np.int64)
        n_present = (stretch.place >= 0).sum(axis=1)
        believed = {
            name: track(
                read[name](stretch), motion, n_present=n_present, start=start, at=stretch.at
            ).belief
            for name in adversaries
            if name in read
        }
        places = partial(_places, truth, heard.observed)
        if placebo is not None and "placebo" in adversaries:
            said = _groups(placebo, piece_of, heard.observed, stretch)
            believed["placebo"], _ = _followed(said, motion, stretch, places, cell_of)
        if "followed" in adversaries:
            said = _groups(heard, piece_of, heard.observed, stretch)
            believed["followed"], hindsight = _followed(
                said, motion, stretch, places, cell_of, look_back="hindsight" in adversaries
            )
            if hindsight is not None:
                believed["hindsight"] = hindsight
        yield stretch, believed


def cells_shown(network: RoadNetwork) -> Int32Array:
    """Return the cell of each node, in which who follows groups counts the devices at a moment."""
    n_cells = max(network.n_nodes / NODES_SHOWN, 1.0)
    return compact_parts(network, 1 << round(np.log2(n_cells)))


def steps_of(interval_s: float) -> tuple[float, float]:
    """Return the seconds in which turns are learned, and those of a step of the filter."""
    fine_s = max(interval_s, SHORTEST_STEP_S)
    return fine_s, fine_s * max(1.0, STEP_S // fine_s)


def _groups(
    heard: HeardRelease, piece_of: IntArray | None, time_of: Observed, stretch: Stretch
) -> _Said:
    """Return the lives of groups from before a stretch on.

    Where pseudonyms are not published in groups, regions are not followed.
    """
    observed, class_of = heard.observed, heard.class_of
    step_s = float(stretch.steps_s[1] - stretch.steps_s[0])
    n_before = int(min(EARLIER_S, stretch.steps_s[0] - time_of.time[0]) / step_s)
    n_steps = n_before + len(stretch.steps_s)
    steps_s = stretch.steps_s[0] + step_s * np.arange(-n_before, n_steps - n_before)
    until = observed.time[observed.tick_of] if heard.until is None else heard.until
    if heard.handed is not None:
        lives, level_of = handed_lives(
            observed, class_of, heard.handed, steps_s=steps_s, until=until
        )
        share = heard.level_share
        return _Said(lives, n_before, None if share is None else LevelPrior(level_of, share))
    lives = published_lives(
        observed,
        class_of,
        read_pieces(observed, class_of, piece_of),
        steps_s=steps_s,
        follow=in_groups(observed, class_of),
        until=until,
    )
    return _Said(lives, n_before)


def _places(truth: Truth, observed: Observed, steps_s: FloatArray) -> Int32Array:
    """Return where each device is at each step, negative if absent, shape (steps, devices)."""
    return truth.place[tick_at(observed, steps_s)]


def _followed(
    said: _Said,
    motion: Motion,
    stretch: Stretch,
    places: Callable[[FloatArray], Int32Array],
    cell_of: Int32Array,
    *,
    look_back: bool = False,
) -> tuple[FloatArray, FloatArray | None]:
    """Return the beliefs, at the steps `at`, of an adversary who follows groups; see `follow`."""
    lives, n_before, prior = said
    step_s = float(stretch.steps_s[1] - stretch.steps_s[0])
    steps_s = stretch.steps_s[0] + step_s * np.arange(-n_before, lives.n_steps - n_before)
    return follow(
        lives,
        motion,
        n_present=(places(steps_s) >= 0).sum(axis=1),
        start=stretch.place[0, stretch.targets].astype(np.int64),
        enter=n_before,
        at=n_before + stretch.at,
        prior=prior,
        cell_of=cell_of,
        look_back=look_back,
    )


def _pieces(case: Case) -> dict[str, Figure]:
    """Count the pieces that hold a device at up to `N_COUNTED_TICKS` ticks at equal distances."""
    if case.piece_of is None:
        return {"pieces_held_share": None}
    last = len(case.observed.time) - 1
    ticks = np.unique(np.linspace(0, last, min(last + 1, N_COUNTED_TICKS)).round())
    n_covered, n_held = pieces_held(
        case.observed, case.pieces(), case.truth.place, ticks=ticks.astype(np.int64)
    )
    return {"pieces_held_share": n_held / n_covered}


def close_to(network: RoadNetwork, place: Int32Array) -> BoolArray:
    """Return which nodes are near each place, shape (*place.shape, nodes)."""
    close = np.zeros((*place.shape, network.n_nodes), bool)
    for node in np.unique(place):
        close[place == node] = _near(network, node)
    return close


def _near(network: RoadNetwork, node: np.int32) -> BoolArray:
    """Return which nodes are within `NEAR_M`: straight, or along roads without coordinates."""
    if network.has_coordinates:
        at = (network.lat[node], network.lon[node])
        near: BoolArray = haversine_m(*at, network.lat, network.lon) <= NEAR_M
        return near
    search = new_spread(network.n_nodes)
    roads = DrivingGraph(network.first_arc_of, network.neighbour_of, network.length_m)
    source: Int32Array = np.array([node], np.int32)
    spread_from(roads, search, source, NEAR_M)
    by_road: BoolArray = search.pass_s <= NEAR_M
    by_road[node] = True
    return by_road


ATTACK = Attack(
    "tracking",
    Subject.POSITIONS,
    tracking,
    (
        Question(
            "tracking",
            Criterion.INFERENCE,
            "Is a device followed from one known position, five minutes later, within 300 m?",
            ("belief_followed_5min", "belief_hindsight_5min"),
            ("belief_none_5min",),
            "n_tracks",
            "tenth_followed_5min",
            "tenth_none_5min",
            against=WITHOUT,
            bar=_bar(("followed", "hindsight")),
        ),
    ),
    mount_in_short=partial(tracking, n_starts=1, adversaries=("none", "placebo", "followed")),
)
