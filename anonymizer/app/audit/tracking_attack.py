"""The tracking attack on a release, next to what an adversary knows without it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.attacks.indistinguishability import indistinguishable_classes
from anonymizer.algorithms.attacks.lives import (
    Lives,
    Regions,
    no_lives,
    pieces_held,
    published_lives,
    read_regions,
    rounded_lives,
)
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.algorithms.attacks.observed import Observed, tangent_plane
from anonymizer.algorithms.attacks.reachability import Roads, new_spread, spread_from
from anonymizer.algorithms.attacks.tracking import smooth, track
from anonymizer.algorithms.attacks.truth import Truth
from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.app.audit.case import Case, of_any
from anonymizer.app.audit.findings import Figure, Finding
from anonymizer.app.audit.stretches import Stretch, horizons, motion_of_others, stretches
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

HORIZONS_MIN = (1, 3, 5)
NEAR_M = 300.0
N_STARTS = 4
N_TARGETS = 25
"""Targets for each start."""
SHORTEST_STEP_S = 2.0
NODES_PER_CELL = 6
"""Nodes in a cell of the raw positions, on average: as in the smallest regions of the gateway."""
N_COUNTED_TICKS = 60
"""Ticks at which devices in pieces are counted."""
MOST_TIMES_NONE = {"regions": 2.0, "pieces": 2.0, "followed": 2.5}
"""The bar of each adversary: how many times as much it may believe as without a release."""
ADVERSARIES = ("none", "placebo", "raw", "regions", "pieces", "followed")
HINDSIGHT_S = 120.0
"""Adversaries who look back know the release until so long after the last horizon: two of the
longest beats of the default settings."""


def tracking(case: Case) -> list[Finding]:
    """Track devices from one known position; report the belief in the true place."""
    figures = tracking_figures(
        case.observed,
        case.truth,
        case.network,
        case.piece_of,
        class_of=case.class_of,
        interval_s=case.reports.interval_s,
        seed=case.seed,
    )
    beliefs = [
        (figures[f"belief_{name}_{minute}min"], most, figures[f"belief_none_{minute}min"])
        for minute in HORIZONS_MIN
        for name, most in MOST_TIMES_NONE.items()
    ]
    times = [most * none - found for found, most, none in beliefs if found and none]
    return [
        Finding(
            attack="tracking",
            figures=figures,
            bar="belief <= "
            + ", ".join(f"{m:g} none ({name})" for name, m in MOST_TIMES_NONE.items()),
            holds=min(times) >= 0 if times else None,
        )
    ]


def tracking_figures(
    observed: Observed,
    truth: Truth,
    network: RoadNetwork,
    piece_of: IntArray | None,
    *,
    class_of: IntArray | None = None,
    interval_s: float = 1.0,
    n_starts: int = N_STARTS,
    n_targets: int = N_TARGETS,
    nodes_per_cell: float = NODES_PER_CELL,
    hindsight_s: float | None = HINDSIGHT_S,
    seed: int = 0,
) -> dict[str, Figure]:
    """Return what each adversary believes of the true place 1, 3 and 5 minutes later.

    Parameters
    ----------
    observed, truth
        The release and the true positions.
    piece_of
        Public piece of each node, negative if it is in none, shape (nodes,) or (levels, nodes).
        None: regions are not made of public pieces.
    class_of
        Class of each pseudonym, from `indistinguishable_classes`; None: it is computed.
    interval_s
        How often a device reports. The filter takes a step in this time, or in
        `SHORTEST_STEP_S` if that is longer.
    n_starts, n_targets
        Random ticks at which the positions of so many random devices each are known. At most half
        of the devices are targets; the motion model is learned from the others.
    nodes_per_cell
        Nodes in a cell of the raw positions, on average.
    hindsight_s
        How long after the last horizon adversaries who look back know the release. None: nobody
        looks back.

    Returns
    -------
    figures
        `belief_A_Mmin`: mean probability that adversary A gives to the nodes within `NEAR_M` of
        the true place after M minutes; `top_A_Mmin`: share of targets whose most probable node
        is within it. `belief_smoothed_A_Mmin`: the same for an adversary who knows the release
        until `hindsight_s` after the last horizon, as far as there is one. None if the release is
        too short, or if nobody looks back.

    Notes
    -----
    Looking back takes twice as long as tracking and is done for three adversaries, so that the
    attack takes about three times as long with it.
    """
    found = beliefs(
        observed,
        truth,
        network,
        piece_of,
        class_of=class_of,
        interval_s=interval_s,
        n_starts=n_starts,
        n_targets=n_targets,
        nodes_per_cell=nodes_per_cell,
        hindsight_s=hindsight_s,
        seed=seed,
    )
    return {**found.figures(), **_pieces(observed, truth, piece_of)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beliefs:
    """What adversaries believe of the true places of some targets.

    Attributes
    ----------
    minutes
        Those of `HORIZONS_MIN` that the release is long enough for.
    near, smoothed
        Of each adversary, the probability that it gives to the nodes within `NEAR_M` of the true
        place, without and with hindsight, shape (targets, minutes).
    top
        Of each adversary, whether the most probable node is within it, same shape.
    moves
        Whether a target is ever farther than `NEAR_M` from its known position at one of the
        minutes, shape (targets,).
    neglected
        Largest probability of the states that were dropped for a target.
    """

    minutes: tuple[int, ...]
    near: dict[str, FloatArray]
    smoothed: dict[str, FloatArray]
    top: dict[str, FloatArray]
    moves: BoolArray
    neglected: float

    def figures(self) -> dict[str, Figure]:
        """Return the means over the targets."""
        return {
            **_by_minute("belief", self.near, self.minutes),
            **_by_minute("top", self.top, self.minutes),
            **_by_minute("belief_smoothed", self.smoothed, self.minutes),
            "neglected_max": self.neglected,
            "n_tracks": len(self.moves),
        }


def beliefs(
    observed: Observed,
    truth: Truth,
    network: RoadNetwork,
    piece_of: IntArray | None,
    *,
    class_of: IntArray | None = None,
    interval_s: float = 1.0,
    n_starts: int = N_STARTS,
    n_targets: int = N_TARGETS,
    nodes_per_cell: float = NODES_PER_CELL,
    hindsight_s: float | None = HINDSIGHT_S,
    seed: int = 0,
    placebo: Observed | None = None,
    victims: BoolArray | None = None,
    motion: Motion | None = None,
    adversaries: Sequence[str] = ADVERSARIES,
) -> Beliefs:
    """Track devices as in `tracking_figures`; return what is believed of each of them.

    Parameters
    ----------
    placebo
        A release of other devices at the same times. None: the adversary `placebo` is left out.
    victims
        Which devices may be targets, shape (devices,). None: all, but at most half.
    motion
        How devices move, learned from others than those of `truth`, in a step of
        `max(interval_s, SHORTEST_STEP_S)`. Any number of devices may then be targets. None: it is
        learned from the devices that are no targets.
    adversaries
        Those to measure, of `ADVERSARIES`.
    """
    step_s = max(interval_s, SHORTEST_STEP_S)
    class_of = indistinguishable_classes(observed) if class_of is None else class_of
    minutes = horizons(observed, HORIZONS_MIN)
    chosen = stretches(
        observed,
        truth,
        minutes,
        step_s=step_s,
        n_starts=n_starts,
        n_targets=n_targets,
        rng=np.random.default_rng(seed),
        ahead_s=hindsight_s or 0.0,
        victims=victims,
        most_share=0.5 if motion is None else 1.0,
    )
    if motion is None:
        motion = motion_of_others(observed, truth, network, chosen, step_s=step_s)
    read = _readings(observed, network, class_of, piece_of, nodes_per_cell)
    if placebo is not None:
        others = indistinguishable_classes(placebo)
        read["placebo"] = _readings(placebo, network, others, piece_of, nodes_per_cell)["followed"]
    read = {name: read[name] for name in adversaries if name in read}
    empty = np.zeros((0, len(minutes)))
    near: dict[str, list[FloatArray]] = {name: [empty] for name in read}
    top: dict[str, list[FloatArray]] = {name: [empty] for name in read}
    hindsight = {name: [empty] for name in MOST_TIMES_NONE if name in read}
    neglected, moves = [0.0], [np.zeros(0, bool)]
    for stretch in chosen:
        places = stretch.place[stretch.at][:, stretch.targets].T
        close = close_to(network, places)
        start = stretch.place[0, stretch.targets].astype(np.int64)
        stays: BoolArray = close[np.arange(len(start)), :, start].all(axis=1)
        moves.append(~stays)
        for name, lives_in in read.items():
            lives, n_present = lives_in(stretch), (stretch.place >= 0).sum(axis=1)
            found = track(lives, motion, n_present=n_present, start=start, at=stretch.at)
            near[name].append((found.belief * close).sum(axis=2))
            guess = found.belief.argmax(axis=2)[:, :, None]
            top[name].append(np.take_along_axis(close, guess, axis=2)[:, :, 0].astype(np.float64))
            neglected += found.neglected.tolist()
            if name in hindsight and hindsight_s is not None:
                found = smooth(lives, motion, n_present=n_present, start=start, at=stretch.at)
                hindsight[name].append((found.belief * close).sum(axis=2))
    return Beliefs(
        minutes,
        {name: np.concatenate(each) for name, each in near.items()},
        {name: np.concatenate(each) for name, each in hindsight.items()},
        {name: np.concatenate(each) for name, each in top.items()},
        np.concatenate(moves),
        max(neglected),
    )


def _readings(
    observed: Observed,
    network: RoadNetwork,
    class_of: IntArray,
    piece_of: IntArray | None,
    nodes_per_cell: float,
) -> dict[str, Callable[[Stretch], Lives]]:
    """Return what each adversary reads in a stretch of the release."""
    whole, cell_of = read_regions(observed), _cells(network, nodes_per_cell)
    pieces = whole if piece_of is None else read_regions(observed, piece_of)

    def read(regions: Regions, *, follow: bool) -> Callable[[Stretch], Lives]:
        return lambda stretch: published_lives(
            observed, class_of, regions, steps_s=stretch.steps_s, follow=follow
        )

    readings = {
        "none": lambda stretch: no_lives(len(stretch.steps_s)),
        "raw": lambda stretch: rounded_lives(stretch.place, cell_of),
        "regions": read(whole, follow=False),
        "followed": read(pieces, follow=True),
    }
    return readings if piece_of is None else readings | {"pieces": read(pieces, follow=False)}


def _pieces(observed: Observed, truth: Truth, piece_of: IntArray | None) -> dict[str, Figure]:
    """Count the pieces that hold a device at up to `N_COUNTED_TICKS` ticks at equal distances."""
    if piece_of is None:
        return {"pieces_held_share": None}
    last = len(observed.time) - 1
    ticks = np.unique(np.linspace(0, last, min(last + 1, N_COUNTED_TICKS)).round())
    n_covered, n_held = pieces_held(
        observed, read_regions(observed, piece_of), truth.place, ticks=ticks.astype(np.int64)
    )
    return {"pieces_held_share": n_held / n_covered}


def _by_minute(
    what: str, found: Mapping[str, FloatArray], minutes: tuple[int, ...]
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name in ADVERSARIES if what != "belief_smoothed" else MOST_TIMES_NONE:
        shares = found.get(name, np.zeros((0, len(minutes))))
        for minute in HORIZONS_MIN:
            column = shares[:, minutes.index(minute)] if minute in minutes else np.zeros(0)
            figures[f"{what}_{name}_{minute}min"] = of_any(np.mean, column)
    return figures


def _cells(network: RoadNetwork, nodes_per_cell: float) -> IntArray:
    """Return the cell of each node in a square grid; without coordinates each is one of its own."""
    if not network.has_coordinates:
        return np.arange(network.n_nodes)
    x_m, y_m = tangent_plane(network)
    area = max(float(np.ptp(x_m)), 1.0) * max(float(np.ptp(y_m)), 1.0)
    side_m = float(np.sqrt(area * nodes_per_cell / network.n_nodes))
    column, row = np.floor(x_m / side_m), np.floor(y_m / side_m)
    cells = np.unique(np.stack((column, row)), axis=1, return_inverse=True)[1]
    return cells.astype(np.int64)


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
    roads = Roads(network.first_arc_of, network.neighbour_of, network.length_m)
    source: Int32Array = np.array([node], np.int32)
    spread_from(roads, search, source, NEAR_M)
    by_road: BoolArray = search.pass_s <= NEAR_M
    by_road[node] = True
    return by_road
