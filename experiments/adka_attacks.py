"""What the published experiment lacks: attacks on regions, against their size.

The adversary guesses the node that a region was grown from: at its centre, or as the node whose
breadth-first order begins with the region. Regions of the same simulated devices in each mode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import PercentFormatter

from anonymizer.algorithms.attacks.region_center import centres, guess_success, prefix_roots
from anonymizer.app.audit import Case
from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, plot
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.tracking_experiment import attacked, drive

MODES = ("adka", "snapshot", "session")
ATTACKS = {"centre": centres, "root": prefix_roots}
SECONDS = 120
MOST_DEVICES = 500
"""More users are not simulated: an attack searches each region."""
_MOST_RECORDS = 2_000
_LEAST_IN_BIN = 20


@dataclass(frozen=True, slots=True)
class AttackPoint:
    """Success of one attack on regions of similar size.

    Attributes
    ----------
    nodes
        Mean number of nodes of these regions.
    success, chance
        Probability that the guess is the device's node, and that of a blind guess in the region.
    n_records
        Number of attacked records.
    """

    mode: str
    attack: str
    nodes: float
    success: float
    chance: float
    n_records: int


def attack_modes(
    network: RoadNetwork,
    settings: Settings,
    *,
    n_devices: int,
    seed: int,
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> list[AttackPoint]:
    """Cloak simulated devices in each mode, and attack their regions.

    Parameters
    ----------
    network
        With coordinates.
    settings
        Settings of the service; the mode is replaced.
    n_devices
        At most `MOST_DEVICES`. They report once a second for two minutes.
    """
    points = []
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    for step, mode in enumerate(MODES):
        progress(step / len(MODES), f"attacks on {mode}")
        region = settings.region.model_copy(update={"mode": mode})
        of_mode = settings.model_copy(update={"region": region})
        points += _points(attacked(trace, network, of_mode, seed=seed), mode, seed)
    progress(1.0, "done")
    return points


def draw_attacks(points: list[AttackPoint], path: Path) -> None:
    """Draw the success of both attacks against the size of regions, beside blind guessing."""
    colour = dict(zip(MODES, (RED, BLUE, ORANGE), strict=True))
    with plot(path, width_in=9, height_in=4) as figure:
        panels = figure.subplots(1, len(ATTACKS), sharey=True)
        for axes, attack in zip(panels, ATTACKS, strict=True):
            of_attack = sorted((p for p in points if p.attack == attack), key=lambda p: p.nodes)
            for mode in MODES:
                shown = [p for p in of_attack if p.mode == mode]
                axes.plot(
                    [p.nodes for p in shown], [p.success for p in shown],
                    color=colour[mode], marker="o", label=mode,
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
        figure.legend(handles, labels, loc="outside lower center", ncols=4)


def _points(case: Case, mode: str, seed: int) -> list[AttackPoint]:
    """Return the success by size: sizes that differ by less than a factor of 2 are together."""
    observed = case.observed
    n = observed.n_records
    rng = np.random.default_rng(seed)
    records = np.sort(rng.choice(n, min(n, _MOST_RECORDS), replace=False))
    region, node = observed.region_of[records], case.true_node_of(records)
    size = observed.region_size[region]
    bin_of = np.log2(size).astype(np.int64)
    points = []
    for attack, suspects_of in ATTACKS.items():
        suspect = suspects_of(observed, case.network, regions=np.unique(region))
        success = guess_success(observed, suspect, region=region, node=node)
        for each in np.unique(bin_of):
            some = bin_of == each
            if some.sum() >= _LEAST_IN_BIN:
                points.append(
                    AttackPoint(
                        mode=mode,
                        attack=attack,
                        nodes=float(size[some].mean()),
                        success=float(success[some].mean()),
                        chance=float((1 / size[some]).mean()),
                        n_records=int(some.sum()),
                    )
                )
    return points
