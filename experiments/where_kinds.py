"""Who the most exposed tenth are: victims of a fleet by kind, and what is believed of each kind.

```text
python -m experiments.where_kinds --fleet lots:1000:0.5
```

The victims, moments and adversaries are those of `where_experiment`. Each row has the victims of
one kind, how many of them are in the most exposed tenth with hindsight, and the mean belief within
300 m of the true place after 5 minutes.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.atoms import LEVELS
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import (
    EARLIER_S,
    HINDSIGHT_S,
    HORIZONS_MIN,
    HeardRelease,
    believe,
    close_to,
    steps_of,
)
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.audit.stretches import Stretch, stretches
from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.where_experiment import (
    Scene,
    heard_release,
    motion_learned,
    one_fleet_parser,
    scenes,
    with_values,
)

READERS = ("none", "followed", "hindsight")
FAR_M = 300.0


class Victims(NamedTuple):
    """Victims of some fleets, all arrays of shape (victims,)."""

    near: dict[str, FloatArray]
    """Belief near the true place after 5 minutes, by reader."""
    standing: FloatArray
    """Share of the members of its groups who stood still all the time, on average over its
    groups."""
    times: FloatArray
    """Size of the place as which it was published last, in multiples of the smallest."""
    moved_m: FloatArray
    """How far it was from the known position in the end."""

    def kinds(self) -> Iterator[tuple[str, BoolArray]]:
        """Yield kinds of victims by name."""
        yield "all", np.ones(len(self.times), bool)
        yield "nobody in its groups stands", self.standing == 0.0
        yield "less than half stand", (self.standing > 0.0) & (self.standing < 0.5)
        yield "half or more stand", self.standing >= 0.5
        yield "place below 8 times the smallest", self.times < 8
        yield "place of 8 to 15 times", (self.times >= 8) & (self.times < 16)
        yield "place of 16 times or more", self.times >= 16
        yield "moved less than 300 m", self.moved_m < FAR_M
        yield "moved farther", self.moved_m >= FAR_M


def groups_of(
    case: Case, heard: HeardRelease, network: RoadNetwork, stretch: Stretch
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `standing`, `times` and `moved_m` of the targets of a stretch."""
    observed, class_of, device_of = heard.observed, heard.class_of, case.device_of
    assert heard.handed is not None  # noqa: S101  the mode has groups
    assert heard.until is not None  # noqa: S101
    level_of = heard.handed.level_of % len(heard.handed.piece_of[: len(LEVELS)])
    place = stretch.place[: stretch.at[-1] + 1]
    still = (place == place[0]).all(axis=0)
    share = np.bincount(class_of, still[device_of]) / np.bincount(class_of)
    begins = observed.time[observed.first_tick_of]
    ends = np.maximum.reduceat(heard.until, observed.first_record_of[:-1])
    now = (ends > stretch.steps_s[0]) & (begins < stretch.steps_s[stretch.at[-1]])
    standing, times = np.zeros(len(stretch.targets)), np.ones(len(stretch.targets))
    for i, device in enumerate(stretch.targets.tolist()):
        own = np.flatnonzero(now & (device_of == device))
        if len(own):
            standing[i] = share[class_of[own]].mean()
            times[i] = LEVELS[level_of[own[begins[own].argmax()]]]
    start, end = place[0, stretch.targets], place[-1, stretch.targets]
    moved_m = haversine_m(
        network.lat[start], network.lon[start], network.lat[end], network.lon[end]
    )
    return standing, times, moved_m


def victims_of(
    scene: Scene,
    network: RoadNetwork,
    settings: Settings,
    motion: Motion | None,
    *,
    n_starts: int,
    n_targets: int,
    seed: int,
) -> tuple[Victims, Motion]:
    """Attack the release of a fleet; return its victims, and how devices move."""
    case, _, heard = heard_release(scene.trace, network, settings)
    other = heard_release(scene.other, network, settings)[2]
    if other.handed is not None:
        heard = heard._replace(level_share=other.handed.shares(other.observed))
    interval_s = case.reports.interval_s
    motion = motion or motion_learned(scene.trained, network, settings, interval_s)
    chosen = stretches(
        heard.observed,
        case.truth,
        HORIZONS_MIN,
        step_s=steps_of(interval_s)[1],
        n_starts=n_starts,
        n_targets=n_targets,
        rng=np.random.default_rng(seed),
        before_s=EARLIER_S,
        ahead_s=HINDSIGHT_S,
        victims=scene.victims,
        most_share=1.0,
    )
    parts = []
    for stretch, belief_of in believe(
        heard, case.truth, network, case.piece_of,
        chosen=chosen, motion=motion, adversaries=READERS,
    ):  # fmt: skip
        close = close_to(network, stretch.place[stretch.at[-1]][stretch.targets])
        near = {name: (each[:, -1] * close).sum(axis=1) for name, each in belief_of.items()}
        parts.append(Victims(near, *groups_of(case, heard, network, stretch)))
    return pooled(parts), motion


def pooled(parts: Sequence[Victims]) -> Victims:
    """Return the victims of several fleets or moments."""
    near = {name: np.concatenate([each.near[name] for each in parts]) for name in READERS}
    columns = (np.concatenate(column) for column in zip(*(each[1:] for each in parts), strict=True))
    return Victims(near, *columns)


def lines(victims: Victims) -> Iterator[str]:
    """Yield the table."""
    hindsight = victims.near["hindsight"]
    n_tenth = max(1, len(hindsight) // 10)
    exposed = np.zeros(len(hindsight), bool)
    exposed[np.argsort(-hindsight, kind="stable")[:n_tenth]] = True
    yield f"| kind | victims | in the tenth | {' | '.join(READERS)} | times none |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, chosen in victims.kinds():
        if chosen.any():
            mean = [float(victims.near[reader][chosen].mean()) for reader in READERS]
            cells = " | ".join(f"{each:.3f}" for each in mean)
            n_exposed = int(exposed[chosen].sum())
            yield f"| {name} | {chosen.sum()} | {n_exposed} | {cells} | {mean[2] / mean[0]:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = one_fleet_parser(__doc__, n_targets=20)
    parser.add_argument("--starts", type=int, default=2, help="moments of each fleet")
    options = parser.parse_args(arguments)
    settings, say = with_values(Settings(), options.set), partial(print, flush=True)
    network, all_scenes = scenes(options.fleet, options.fleets, options.data)
    parts, motion = [], None
    for seed, scene in enumerate(all_scenes):
        victims, motion = victims_of(
            scene, network, settings, motion,
            n_starts=options.starts, n_targets=options.targets, seed=seed,
        )  # fmt: skip
        parts.append(victims)
    for line in lines(pooled(parts)):
        say(line)


if __name__ == "__main__":
    main()
