"""Audit of classes of trips: who made a trip, and where somebody went whose departure is known."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.live_trips import EndedTrip
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import TripClass, WindowTrips, trip_classes
from anonymizer.audit.attack import (
    EVERY_MODE,
    ONE_IN_K,
    OTHERS,
    Attack,
    Criterion,
    Question,
    Subject,
)
from anonymizer.audit.case import Case, TripsCase
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.trip_company import (
    ReadClasses,
    believed_destination,
    fewest_makers,
    read_classes,
)
from anonymizer.audit.publications import last_records, true_traffic
from anonymizer.audit.read_counts import runs_counted
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.outputs.trips.trip_windows import trips_of_window

MOST_TARGETS = 100
"""Of more devices, so many random ones are attacked."""
MOST_KNOWN = 20
"""So many of them by an adversary who knows all other trips, which takes longer."""
TIMES_CONTROL = 2.0
"""Bar of belief, in multiples of that in a release without the device."""


class TrueWindow(NamedTuple):
    """The true trips of a window, and when each ended, unix seconds, shape (trips,)."""

    trips: WindowTrips
    end_s: FloatArray


class Target(NamedTuple):
    """A trip that is attacked: its window, its row there, and the beliefs in each destination."""

    window: int
    row: int
    belief: FloatArray
    control: FloatArray
    """`belief`, `control`: from the release, and from one without its device, shape (cells,)."""


def trips(case: Case) -> list[Finding]:
    """Attack the trips that the settings publish about the devices of a case.

    They are made of the true positions, by the code that publishes them.
    """
    if case.trips is None or not case.network.has_coordinates:
        return []
    windows = true_windows(case.trips, case.network)
    n_cells = case.trips.n_cells
    told = [trip_classes(each.trips, case.trips.k, n_cells=n_cells) for each in windows]
    return [
        *attack_trips(windows, told, case.network, k=case.trips.k, n_cells=n_cells, seed=case.seed),
        *_with_positions(case, windows, told),
    ]


def true_windows(trips: TripsCase, network: RoadNetwork) -> list[TrueWindow]:
    """Return the trips that ended in each window, as they are published but for k."""
    reports = trips.reports
    on_graph = reports.node >= 0
    order = np.flatnonzero(on_graph)[np.lexsort((reports.ts[on_graph], reports.device[on_graph]))]
    device, ts, node = reports.device[order], reports.ts[order], reports.node[order]
    by_time = np.argsort(ts, kind="stable")
    found = trips_of(_trace(device, ts, node, by_time, network), trips.rule)
    first, last = by_time[found.first], by_time[found.last]
    cell_at = compact_parts(network, trips.n_cells)
    window = np.floor(ts[last] / trips.every_s).astype(np.int64)
    rows = np.argsort(window, kind="stable").tolist()
    windows = []
    for number, these in groupby(rows, key=lambda i: int(window[i])):
        ended = [
            (
                int(device[first[i]]),
                EndedTrip(
                    0,
                    float(ts[first[i]]),
                    float(ts[last[i]]),
                    int(node[first[i]]),
                    int(node[last[i]]),
                    node[first[i] : last[i] + 1],
                ),
            )
            for i in these
        ]
        begins_s = (number - 1) * trips.every_s
        kept = [each for each in ended if each[1].start_s >= begins_s]
        columns = trips_of_window(
            kept, network, cell_at, begins_s=begins_s, ends_s=begins_s + 2 * trips.every_s
        )
        windows.append(TrueWindow(columns, np.array([each.end_s for _, each in kept])))
    return windows


def attack_trips(
    windows: Sequence[TrueWindow],
    told: Sequence[Sequence[TripClass]],
    network: RoadNetwork,
    *,
    k: int,
    n_cells: int,
    seed: int,
) -> list[Finding]:
    """Attack published classes of trips.

    `windows`, `told`: the true trips of each window, and what was published about them; `k`,
    `n_cells`: what the release promises, and the cells of its places.

    Returns
    -------
    findings
        `trip owner`: an adversary who knows the true trips of all devices tells who made those of a
        class, and who took a road. `trip destination`: one who knows where and when somebody set
        out believes in the cell where they went. `trips of two days`: the same of whoever sets out
        from one cell in several windows, for the same place. `all trips but one`: one who also
        knows all trips of all others finds the release that only one destination explains.
    """
    owners = [
        fewest_makers(each.trips, classes) for each, classes in zip(windows, told, strict=True)
    ]
    makers = np.concatenate([each for each, _ in owners] or [np.zeros(0, np.int64)])
    takers = np.concatenate([each for _, each in owners] or [np.zeros(0, np.int64)])
    found = [_owner_finding(makers, takers, k)]
    rng = np.random.default_rng(seed)
    targets = _targets(windows, told, network, k=k, n_cells=n_cells, rng=rng)
    nodes = float(network.n_nodes / n_cells)
    found.append(_destination_finding("trip destination", windows, targets, k, nodes))
    found += _two_days(windows, targets, k, nodes)
    found += _all_but_one(windows, told, targets, n_nodes=network.n_nodes, n_cells=n_cells, k=k)
    return found


def _trace(
    device: IntArray, ts: FloatArray, node: Int32Array, order: IntArray, network: RoadNetwork
) -> Trace:
    node = node[order]
    return Trace(
        device_id=tuple(map(str, range(int(device.max(initial=-1)) + 1))),
        device_of=device[order],
        ts=ts[order],
        lat=network.lat[node],
        lon=network.lon[node],
    )


def _owner_finding(makers: IntArray, takers: IntArray, k: int) -> Finding:
    figures: dict[str, Figure] = {
        "success": float((1 / np.maximum(makers, 1)).mean()) if len(makers) else None,
        "worst": float(1 / max(makers.min(), 1)) if len(makers) else None,
        "worst_road": float(1 / max(takers.min(), 1)) if len(takers) else None,
        "k_inverse": 1 / k,
        "n_classes": len(makers),
        "n_roads": len(takers),
    }
    fewest = min([*makers.tolist(), *takers.tolist()], default=None)
    return Finding(
        attack="trip owner",
        figures=figures,
        bar=_OWNER_BAR,
        holds=None if fewest is None else fewest >= k,
    )


def _targets(
    windows: Sequence[TrueWindow],
    told: Sequence[Sequence[TripClass]],
    network: RoadNetwork,
    *,
    k: int,
    n_cells: int,
    rng: np.random.Generator,
) -> list[Target]:
    """Return the trips of random devices, read with or without roads, whichever tells more."""
    beside = _beside(network, n_cells)
    where = [(w, r) for w, each in enumerate(windows) for r in range(len(each.trips.device))]
    device = [int(windows[w].trips.device[r]) for w, r in where]
    chosen = set(rng.permutation(np.unique(device))[:MOST_TARGETS].tolist())
    read = [_readings(classes, n_cells, beside) for classes in told]
    without: dict[tuple[int, int], list[ReadClasses]] = {}
    by_reading: tuple[list[Target], list[Target]] = ([], [])
    for (w, r), who in zip(where, device, strict=True):
        if who not in chosen or not told[w]:
            continue
        every = windows[w].trips
        if (w, who) not in without:
            others = trip_classes(every.without(who), k, n_cells=n_cells)
            without[w, who] = _readings(others, n_cells, beside)
        at = int(every.origin[r]), int(every.start[r])
        for found, mine, its in zip(by_reading, read[w], without[w, who], strict=True):
            found.append(
                Target(w, r, believed_destination(mine, *at), believed_destination(its, *at))
            )
    return max(by_reading, key=lambda some: sum(_beliefs(windows, some)[:, 0]))


def _beliefs(windows: Sequence[TrueWindow], targets: Sequence[Target]) -> FloatArray:
    """Return the beliefs in the true destinations, and those of the control, shape (n, 2)."""
    true = [int(windows[each.window].trips.destination[each.row]) for each in targets]
    pairs = [(each.belief[at], each.control[at]) for each, at in zip(targets, true, strict=True)]
    return np.array(pairs, np.float64).reshape(-1, 2)


def _readings(classes: Sequence[TripClass], n_cells: int, beside: IntArray) -> list[ReadClasses]:
    return [
        read_classes(classes, n_cells=n_cells),
        read_classes(classes, n_cells=n_cells, beside=beside),
    ]


def _beside(network: RoadNetwork, n_cells: int) -> IntArray:
    """Return another cell that begins where each arc ends, negative for none, shape (arcs,)."""
    cell = compact_parts(network, n_cells).astype(np.int64)
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    crosses = cell[tail] != cell[network.neighbour_of]
    next_to = np.full(network.n_nodes, -1, np.int64)
    next_to[tail[crosses]] = cell[network.neighbour_of[crosses]]
    return next_to[network.neighbour_of]


def _destination_finding(
    attack: str, windows: Sequence[TrueWindow], targets: Sequence[Target], k: int, nodes: float
) -> Finding:
    device = np.array(
        [int(windows[each.window].trips.device[each.row]) for each in targets], np.int64
    )
    return belief_finding(attack, _beliefs(windows, targets), device, k, nodes)


def belief_finding(
    attack: str, pairs: FloatArray, device: IntArray, k: int, nodes: float
) -> Finding:
    """Return the finding from beliefs in true destinations.

    `pairs`: of each trip, from the release, and from one without its device, shape (trips, 2);
    `device`: whose it is, shape (trips,); `nodes`: of a cell, since who believes in a cell believes
    in one of its nodes by chance.
    """
    if not len(pairs):
        return Finding(attack=attack, figures={"n_victims": 0}, bar=_bar())
    _, victim = np.unique(device, return_inverse=True)
    n = np.bincount(victim)
    belief, control = (np.bincount(victim, each) / n for each in pairs.T)
    tenth = max(len(n) // 10, 1)
    worst, worst_control = (float(np.sort(each)[-tenth:].mean()) for each in (belief, control))
    figures: dict[str, Figure] = {
        "belief": float(belief.mean()),
        "belief_control": float(control.mean()),
        "tenth": worst,
        "tenth_control": worst_control,
        "node": float(belief.mean() / nodes),
        "tenth_node": worst / nodes,
        "k_inverse": 1 / k,
        "n_victims": len(n),
    }
    holds = worst / nodes <= 1 / k and all(
        mine <= max(1 / k, TIMES_CONTROL * its)
        for mine, its in ((belief.mean(), control.mean()), (worst, worst_control))
    )
    return Finding(attack=attack, figures=figures, bar=_bar(), holds=bool(holds))


def _bar() -> str:
    return (
        f"belief in the place <= {TIMES_CONTROL:g} that without the device, or 1/k; in the node <="
        " 1/k; in the worst tenth too"
    )


def _two_days(
    windows: Sequence[TrueWindow], targets: Sequence[Target], k: int, nodes: float
) -> list[Finding]:
    """Multiply beliefs about trips of one device from one cell to one cell in several windows."""
    of: dict[tuple[int, int, int], list[Target]] = {}
    for each in targets:
        every = windows[each.window].trips
        key = tuple(
            int(column[each.row]) for column in (every.device, every.origin, every.destination)
        )
        of.setdefault((key[0], key[1], key[2]), []).append(each)
    pairs, device = [], []
    for (who, _, true), several in of.items():
        if len({each.window for each in several}) < 2:
            continue
        joint = [
            _normal(np.asarray(np.exp(np.log(np.stack(beliefs) + 1e-9).sum(axis=0)), np.float64))
            for beliefs in (
                [each.belief for each in several],
                [each.control for each in several],
            )
        ]
        pairs.append([float(each[true]) for each in joint])
        device.append(who)
    if not pairs:
        return []
    return [belief_finding("trips of two days", np.array(pairs), np.array(device), k, nodes)]


def _normal(weight: FloatArray) -> FloatArray:
    total = weight.sum()
    return weight / total if total else np.full(len(weight), 1 / len(weight))


def _all_but_one(
    windows: Sequence[TrueWindow],
    told: Sequence[Sequence[TripClass]],
    targets: Sequence[Target],
    *,
    n_nodes: int,
    n_cells: int,
    k: int,
) -> list[Finding]:
    """Try every destination of a device; keep those with which the release is the published one."""
    beliefs, priors = [], []
    for each in targets[:: max(len(targets) // MOST_KNOWN, 1)]:
        every = windows[each.window].trips
        who, row = int(every.device[each.row]), each.row
        true = int(every.destination[row])
        seen = [_said(one) for one in told[each.window]]
        others = every.without(who)
        own = np.flatnonzero(every.device == who)
        consistent = np.zeros(n_cells)
        nothing = [np.zeros(0, np.int64)] * (len(others.device) + len(own))
        for cell in range(n_cells):
            destination = every.destination[own].copy()
            destination[own == row] = cell
            guess = WindowTrips(
                np.append(others.device, every.device[own]),
                np.append(others.origin, every.origin[own]),
                np.append(others.destination, destination),
                np.append(others.start, every.start[own]),
                nothing,
            )
            consistent[cell] = seen == [
                _said(one) for one in trip_classes(guess, k, n_cells=n_cells)
            ]
        ended = np.bincount(others.destination, minlength=n_cells)
        prior = ended.astype(np.float64) + 1 / n_cells
        beliefs.append(float(_normal(consistent * prior)[true]))
        priors.append(float(_normal(prior)[true]))
    if not beliefs:
        return []
    tenth = max(len(beliefs) // 10, 1)
    worst, nodes = float(np.sort(beliefs)[-tenth:].mean()), n_nodes / n_cells
    figures: dict[str, Figure] = {
        "belief": float(np.mean(beliefs)),
        "belief_control": float(np.mean(priors)),
        "tenth": worst,
        "node": float(np.mean(beliefs)) / nodes,
        "tenth_node": worst / nodes,
        "k_inverse": 1 / k,
        "n_victims": len(beliefs),
    }
    return [
        Finding(
            attack="all trips but one",
            figures=figures,
            bar=_NODE_BAR,
            holds=worst / nodes <= 1 / k,
        )
    ]


def _said(each: TripClass) -> tuple[object, ...]:
    return (each.origin, each.destination, each.start, each.n_devices)


def _with_positions(
    case: Case, windows: Sequence[TrueWindow], told: Sequence[Sequence[TripClass]]
) -> list[Finding]:
    """Read trips together with regions, and with counts where there are any.

    The adversary is told more than it can know: the pseudonym's region when the trip ends.
    """
    published, observed = case.trips, case.observed
    if published is None or case.until is None:
        return []
    rng = np.random.default_rng(case.seed)
    n_cells = published.n_cells
    targets = _targets(windows, told, case.network, k=published.k, n_cells=n_cells, rng=rng)
    if not targets:
        return []
    ends_s = np.array([windows[each.window].end_s[each.row] for each in targets])
    order = np.argsort(ends_s, kind="stable")
    cell_at = compact_parts(case.network, n_cells)
    weight_at = _counted_density(case, ends_s)
    bounds = observed.first_node_of
    pairs, device, alone = [], [], []
    for i, records in zip(
        order.tolist(), last_records(observed, ends_s[order], case.until), strict=True
    ):
        target = targets[i]
        every = windows[target.window].trips
        who, true = int(every.device[target.row]), int(every.destination[target.row])
        own = np.flatnonzero((case.device_of == who) & (records >= 0))
        if not len(own):
            continue
        region = observed.region_of[records[own[-1]]]
        nodes = observed.node[bounds[region] : bounds[region + 1]]
        weight = np.ones(len(nodes)) if weight_at is None else weight_at[i][nodes] + 1e-9
        share = np.bincount(cell_at[nodes], weight, n_cells).astype(np.float64)
        alone.append(float(_normal(share)[true]))
        pairs.append([float(_normal(share * b)[true]) for b in (target.belief, target.control)])
        device.append(who)
    if not pairs:
        return []
    finding = belief_finding(
        "trips with positions",
        np.array(pairs),
        np.array(device),
        published.k,
        case.network.n_nodes / n_cells,
    )
    return [
        finding.model_copy(
            update={"figures": finding.figures | {"belief_alone": float(np.mean(alone))}}
        )
    ]


def _counted_density(case: Case, times: FloatArray) -> list[FloatArray] | None:
    """Return the devices counted at each node in the intervals of some times; None: none are."""
    counts = case.counts
    if counts is None:
        return None
    ends, of = np.unique(np.ceil(times / counts.every_s), return_inverse=True)
    traffic = true_traffic(
        case.reports, case.network, ends * counts.every_s, present_s=counts.every_s
    )
    cell_at = compact_parts(case.network, counts.cells)
    density = []
    for place in traffic.place:
        run_of, counted = runs_counted(np.where(place >= 0, cell_at[place], -1), counts)
        run_at = run_of[cell_at]
        density.append(counted[run_at] / np.bincount(run_at, minlength=len(counted))[run_at])
    return [density[i] for i in of.tolist()]


def _has_trips(case: Case) -> bool:
    return case.trips is not None


_OWNER_BAR = "at most 1/k in every class and on every road"
_NODE_BAR = "belief in the node <= 1/k, in the worst tenth too"
ATTACK = Attack(
    "trips",
    Subject.POSITIONS,
    trips,
    (
        Question(
            "trip owner",
            Criterion.SINGLING_OUT,
            "Does somebody who knows all true trips tell who made those of a class?",
            ("success",),
            ("k_inverse",),
            n="n_classes",
            exposed="worst",
            exposed_control="k_inverse",
            against=ONE_IN_K,
            bar=_OWNER_BAR,
            promised_by=EVERY_MODE,
        ),
        Question(
            "trip destination",
            Criterion.INFERENCE,
            "Does somebody who knows where and when a trip began learn where it led?",
            ("belief",),
            ("belief_control",),
            "n_victims",
            "tenth",
            "tenth_control",
            against=OTHERS,
            bar=_bar(),
        ),
        Question(
            "trips of two days",
            Criterion.INFERENCE,
            "Do the trips of several days, taken together, tell where somebody goes?",
            ("belief",),
            ("belief_control",),
            "n_victims",
            "tenth",
            "tenth_control",
            against=OTHERS,
            bar=_bar(),
        ),
        Question(
            "all trips but one",
            Criterion.INFERENCE,
            "Does somebody who knows all trips but one learn the junction where it ended?",
            ("node",),
            ("k_inverse",),
            n="n_victims",
            exposed="tenth_node",
            exposed_control="k_inverse",
            against=ONE_IN_K,
            bar=_NODE_BAR,
        ),
        Question(
            "trips with positions",
            Criterion.INFERENCE,
            "Do trips, positions and counts, taken together, tell where a trip led?",
            ("belief",),
            ("belief_control",),
            "n_victims",
            "tenth",
            "tenth_control",
            against=OTHERS,
            bar=_bar(),
            together="positions and trips of",
        ),
    ),
    needs_map=True,
    applies=_has_trips,
    mount_in_short=trips,
)
