"""What the published experiment lacks: attacks on regions, against their size.

The adversary guesses the node that a region was grown from: at its centre, or as the node whose
breadth-first order begins with the region. Regions of the same simulated devices in each mode.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.ticker import PercentFormatter
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, plot
from anonymizer.audit.mathematics.region_center import centres, guess_success, prefix_roots
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.kept_steps import KeptSteps, Progress
from experiments.tracking_experiment import attacked, drive

MODES = ("adka", "snapshot", "session")
ATTACKS = {"centre": centres, "root": prefix_roots}
SECONDS = 120
MOST_DEVICES = 500
"""More users are not simulated: an attack searches each region."""
_ALL_DEVICES = 1_000
_FLEETS = 4, 24
"""Least and greatest number of fleets; between them, so many that they have `_ALL_DEVICES`."""
_MOST_RECORDS = 1_000
"""Of a fleet."""
LEAST_GROUPS = 10
"""Of fewer groups, no success is told: chance decides."""
_N_DRAWS = 2_000
_TAILS = 0.025, 0.975


@dataclass(frozen=True, slots=True)
class AttackPoint:
    """Success of one attack on regions of similar size.

    Attributes
    ----------
    nodes
        Mean number of nodes of these regions.
    success, chance
        Probability that the guess is the device's node, and that of a blind guess in the region.
    low, high
        Interval of 95 % of the success, over resampled groups: who shares regions shares luck.
    n_records, n_groups
        Number of attacked records, and of groups that share no region with each other.
    """

    mode: str
    attack: str
    nodes: float
    success: float
    low: float
    high: float
    chance: float
    n_records: int
    n_groups: int


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses of one attack on one fleet, an item for each attacked record."""

    mode: str
    attack: str
    group: list[int]
    """Number of the group of pseudonyms that share regions."""
    size: list[int]
    """Nodes of the region."""
    success: list[float]
    """Probability that the guess is the device's node."""


def attack_modes(
    network: RoadNetwork,
    settings: Settings,
    *,
    n_devices: int,
    seed: int,
    kept: KeptSteps | None = None,
    progress: Progress = lambda _done, _what: None,
    partial_results: Callable[[list[AttackPoint]], None] = lambda _so_far: None,
) -> list[AttackPoint]:
    """Cloak simulated fleets in each mode, and attack their regions.

    Parameters
    ----------
    network
        With coordinates.
    settings
        Settings of the service; the mode is replaced.
    n_devices
        Of a fleet, at most `MOST_DEVICES`. They report once a second for two minutes.
    kept
        What is known from before; a step is a fleet in one mode.
    partial_results
        Called after each fleet with the points so far.
    """
    kept = kept or KeptSteps(None, {})
    n_fleets = int(np.clip(_ALL_DEVICES // n_devices, *_FLEETS))
    guesses: list[Guesses] = []
    for fleet in range(n_fleets):
        for step, mode in enumerate(MODES):
            what = f"attacks on {mode}, fleet {fleet + 1} of {n_fleets}"
            progress((fleet + step / len(MODES)) / n_fleets, what)
            guess = partial(_guesses, network, settings, mode, n_devices, seed + fleet)
            guesses += kept.result(list[Guesses], what, guess)
        partial_results(attack_points(guesses, seed=seed))
    progress(1.0, "done")
    return attack_points(guesses, seed=seed)


def attack_points(guesses: Sequence[Guesses], *, seed: int) -> list[AttackPoint]:
    """Return the success by size: sizes that differ by less than a factor of 2 are together.

    Sizes that fewer than `LEAST_GROUPS` groups have are left out.
    """
    points = []
    for mode, attack in product(MODES, ATTACKS):
        of = [each for each in guesses if (each.mode, each.attack) == (mode, attack)]
        fleet = np.repeat(np.arange(len(of)), [len(each.group) for each in of])
        own = np.array([group for each in of for group in each.group], np.int64)
        size = np.array([size for each in of for size in each.size], np.float64)
        success = np.array([chance for each in of for chance in each.success], np.float64)
        group = np.unique(np.stack([fleet, own]), axis=1, return_inverse=True)[1].ravel()
        band = np.log2(size).astype(np.int64)
        for each in np.unique(band):
            some = band == each
            n_groups = len(np.unique(group[some]))
            if n_groups >= LEAST_GROUPS:
                low, high = interval_over_groups(success[some], group[some], seed=seed)
                points.append(
                    AttackPoint(
                        mode=mode,
                        attack=attack,
                        nodes=float(size[some].mean()),
                        success=float(success[some].mean()),
                        low=low,
                        high=high,
                        chance=float((1 / size[some]).mean()),
                        n_records=int(some.sum()),
                        n_groups=n_groups,
                    )
                )
    return points


def interval_over_groups(value: FloatArray, group: IntArray, *, seed: int) -> tuple[float, float]:
    """Return an interval of 95 % of the mean of values, over resampled groups, shape (n,) both.

    Values of one group may be equal all of them: then there are as many as there are groups.
    """
    _, of, n_of = np.unique(group, return_inverse=True, return_counts=True)
    total = np.bincount(of.ravel(), weights=value)
    drawn = np.random.default_rng(seed).integers(len(n_of), size=(_N_DRAWS, len(n_of)))
    means = total[drawn].sum(axis=1) / n_of[drawn].sum(axis=1)
    low, high = np.quantile(means, _TAILS).tolist()
    return low, high


def draw_attacks(points: list[AttackPoint], path: Path) -> None:
    """Draw the success of both attacks against the size of regions, beside blind guessing."""
    colour = dict(zip(MODES, (RED, BLUE, ORANGE), strict=True))
    with plot(path, width_in=9, height_in=4.8) as figure:
        panels = figure.subplots(1, len(ATTACKS), sharey=True)
        for axes, attack in zip(panels, ATTACKS, strict=True):
            of_attack = sorted((p for p in points if p.attack == attack), key=lambda p: p.nodes)
            for mode in MODES:
                shown = [p for p in of_attack if p.mode == mode]
                success = np.array([p.success for p in shown])
                off = [success - [p.low for p in shown], [p.high for p in shown] - success]
                axes.errorbar(
                    [p.nodes for p in shown], success, yerr=np.abs(off), color=colour[mode],
                    marker="o", capsize=3, label=f"{mode}, {_groups(shown)}",
                )  # fmt: skip
            axes.plot(
                [p.nodes for p in of_attack], [p.chance for p in of_attack],
                color=INK, linestyle=":", label="blind guess in the region",
            )  # fmt: skip
            axes.set_title(f"{attack.capitalize()} attack")
            axes.set_xscale("log")
            axes.set_xlabel("nodes in the region")
            axes.set_ylim(0, 1.05)
            axes.yaxis.set_major_formatter(PercentFormatter(1))
            axes.grid(color=LIGHT, linewidth=0.5)
        panels[0].set_ylabel("the guess is the device's node")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        figure.suptitle(
            "Made up: simulated devices. The source mounts no attack.\n"
            "Bars: 95 % over resampled groups; groups share no region with each other."
        )


def _groups(points: Sequence[AttackPoint]) -> str:
    """Return of how many groups the points are."""
    n = sorted({p.n_groups for p in points}) or [0]
    return f"{' to '.join(map(str, dict.fromkeys((n[0], n[-1]))))} groups a point"


def _guesses(
    network: RoadNetwork, settings: Settings, mode: str, n_devices: int, seed: int
) -> list[Guesses]:
    """Simulate a fleet, cloak it in one mode, and attack some of its records."""
    region = settings.region.model_copy(update={"mode": mode})
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    case = attacked(trace, network, settings.model_copy(update={"region": region}), seed=seed)
    observed = case.observed
    n = observed.n_records
    rng = np.random.default_rng(seed)
    records = np.sort(rng.choice(n, min(n, _MOST_RECORDS), replace=False))
    of, node = observed.region_of[records], case.true_node_of(records)
    group = sharing(
        observed.pseudonym_of, observed.tick_of * observed.n_regions + observed.region_of
    )
    found = []
    for attack, suspects_of in ATTACKS.items():
        suspect = suspects_of(observed, case.network, regions=np.unique(of))
        found.append(
            Guesses(
                mode=mode,
                attack=attack,
                group=group[observed.pseudonym_of[records]].tolist(),
                size=observed.region_size[of].tolist(),
                success=guess_success(observed, suspect, region=of, node=node).tolist(),
            )
        )
    return found


def sharing(who: IntArray, what: IntArray) -> IntArray:
    """Return a number for each of `who`, equal for those who share any of `what`, also over others.

    Both shape (n,), from 0 on; the result has shape (largest of `who` + 1,).
    """
    n, shared = int(who.max()) + 1, np.unique(what, return_inverse=True)[1].ravel()
    size = n + int(shared.max()) + 1
    links = coo_array((np.ones(len(who), np.int8), (who, n + shared)), shape=(size, size))
    of: IntArray = connected_components(links, directed=False)[1][:n].astype(np.int64)
    return of
