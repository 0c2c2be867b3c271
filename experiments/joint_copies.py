"""All copies of one stream read together, beside the finest alone: the same victims, one run.

Partners read groups, the public reads `public/density`, which is made of these groups and comes a
quarter of an hour late. The adversary reads both. It follows the groups to the moment of a copy
(`anonymizer.audit.mathematics.following`), forwards and with hindsight, and weighs what it believes
by what the copy says of each cell, as if a witness of its own had said so: by the share of devices
that the copy has there over the share that is usual there, to the power `trust`. As the copy says
nothing of other moments, it is the same whether the tracker takes it in or its belief is weighed.

```text
python -m experiments.joint_copies --fleet even:1000
```

Each row has the mean belief within 300 m of the true place, and that of the most exposed tenth, in
multiples of those of the tracker alone. Who reads groups can weigh by what it reckons from them
itself (`reckoned`): what a copy adds is what it tells beyond that, as the last lines say. `control`
has true counts of devices in the place of the copy: what a copy would tell that is not made of
published messages alone. A copy `own`, in which a device reads what it sends, tells nothing of
others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import (
    HINDSIGHT_S,
    HORIZONS_MIN,
    HeardRelease,
    believe,
    close_to,
    most_exposed_tenth,
    steps_of,
)
from anonymizer.audit.stretches import Stretch, stretches
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.outputs.late_density import EVERY_S, DensityMessage, LateDensity
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import ReleaseEncoder, contract_of
from anonymizer.pipeline.positions.tick.engine import PositionEngine, TickRelease
from anonymizer.settings import Settings
from experiments.tracking_experiment import released
from experiments.where_experiment import (
    SECONDS,
    TICK_S,
    Scene,
    heard_release,
    motion_learned,
    one_fleet_parser,
    scenes,
    with_values,
)

READERS = ("none", "followed", "hindsight")
COPIES = ("reckoned", "copy", "control")
TRUSTS = (0.25, 0.5, 1.0)
AT_S = SECONDS - HINDSIGHT_S
"""Seconds from the begin of a trace to the moment of the copy."""
_LEAST = 1e-3
"""Share of the devices that a cell has at least: figures are rounded."""


class Joint(NamedTuple):
    """What one reader believes about all victims: near the true place, shape (victims,).

    `alone` without a copy; `with_copy` by the name of the copy and how far it is trusted.
    """

    alone: FloatArray
    with_copy: dict[tuple[str, float], FloatArray]

    def times(self, copy: str, trust: float) -> tuple[float, float]:
        """Return mean and most exposed tenth, in multiples of those without a copy."""
        joint = self.with_copy[copy, trust]
        tenth = most_exposed_tenth(joint) / most_exposed_tenth(self.alone)
        return float(joint.mean() / self.alone.mean()), tenth

    def added(self, copy: str) -> tuple[float, float]:
        """Return mean and tenth at the best trust, in multiples of the best without the copy."""
        most, without = (
            np.max([(1.0, 1.0), *(self.times(each, trust) for trust in TRUSTS)], axis=0)
            for each in (copy, "reckoned")
        )
        mean, tenth = (most / without).tolist()
        return mean, tenth


def shifted(trace: Trace) -> Trace:
    """Return a trace whose copy is made `AT_S` after its begin."""
    turn_s = (np.floor(trace.ts[0] / EVERY_S) + 1) * EVERY_S
    return replace(trace, ts=trace.ts + (turn_s - AT_S - trace.ts[0]))


class _Public:
    """Writes the public's copy of what a gateway publishes tick by tick."""

    def __init__(self, settings: Settings, network: RoadNetwork) -> None:
        self._topic = settings.output.topic
        self._encoder = ReleaseEncoder(
            network, topic=self._topic, form="group", contract=contract_of(settings, network)
        )
        self._density = LateDensity(settings, network)

    def __call__(self, _engine: PositionEngine, tick: TickRelease) -> None:
        messages, _ = self._encoder.encode(
            tick.release, time=tick.event_s, pseudonyms=_names, until=tick.until_s
        )
        self._density.of(messages)

    def published(self, turn_s: float) -> FloatArray:
        """Return the devices in each cell, as published at the first message of the next turn."""
        body = {"group": "", "time": turn_s + EVERY_S, "until": turn_s + EVERY_S, "region": []}
        late = self._density.of([Outgoing(self._topic, msgspec.json.encode(body))])
        (message,) = (msgspec.json.decode(each.payload, type=DensityMessage) for each in late)
        assert message.time == turn_s  # noqa: S101
        return np.array(message.devices)


def _names(slots: Sequence[int], versions: Sequence[int]) -> list[str]:
    return [f"{slot}-{version}" for slot, version in zip(slots, versions, strict=True)]


def reckoned(
    heard: HeardRelease, cell_of: Int32Array, n_cells: int, *, turn_s: float, grace_s: float
) -> FloatArray:
    """Return the devices in each cell, as a reader of groups reckons, shape (cells,).

    Of each pseudonym the newest region before `turn_s` counts, evenly, if it holds so long, or has
    for less than `grace_s` not.
    """
    observed, until = heard.observed, heard.until
    at = observed.time[observed.tick_of]
    row = np.flatnonzero(at < turn_s)
    row = row[np.diff(observed.pseudonym_of[row], append=-1) != 0]
    if until is not None:
        row = row[until[row] + grace_s >= turn_s]
    n_in = np.bincount(observed.region_of[row], minlength=observed.n_regions)
    share = np.repeat(n_in / observed.region_size, observed.region_size)
    return np.bincount(cell_of[observed.node], share, n_cells).astype(np.float64)


class _Followed(NamedTuple):
    """A fleet whose release was followed to the moment of its copy."""

    scene: Scene
    case: Case
    heard: HeardRelease
    stretch: Stretch


def copies_of(
    followed: _Followed, network: RoadNetwork, settings: Settings
) -> dict[str, FloatArray]:
    """Return the devices in each cell by each of `COPIES`."""
    scene, case, heard, stretch = followed
    public = _Public(settings, network)
    released(scene.trace, network, settings, tick_s=TICK_S, seed=case.seed, watch=public)
    place = stretch.place[stretch.at[-1]]
    n_cells = settings.counts.cells
    cell_of = compact_parts(network, n_cells)
    true = np.bincount(cell_of[place[place >= 0]], minlength=n_cells)
    turn_s, grace_s = float(stretch.steps_s[stretch.at[-1]]), 2 * settings.tick.interval_s
    return {
        "reckoned": reckoned(heard, cell_of, n_cells, turn_s=turn_s, grace_s=grace_s),
        "copy": public.published(turn_s),
        "control": true.astype(np.float64),
    }


def weights(devices: FloatArray, usual: FloatArray, cell_of: Int32Array) -> FloatArray:
    """Return the weight of each node by a copy that is taken for a witness of its own.

    Parameters
    ----------
    devices
        Devices in each cell, by the copy.
    usual
        How likely a device is at each node, if nothing is known.
    cell_of
        Cell of each node.
    """
    said = np.maximum(devices / max(float(devices.sum()), 1.0), _LEAST)
    expected = np.bincount(cell_of, usual, len(devices)) / usual.sum()
    weight: FloatArray = (said / np.maximum(expected, _LEAST))[cell_of]
    return weight


def attack(
    scene: Scene, network: RoadNetwork, settings: Settings, *, n_targets: int, seed: int
) -> dict[str, Joint]:
    """Follow targets of a fleet to the moment of its copy; return what each reader believes."""
    scene = scene._replace(trace=shifted(scene.trace), other=shifted(scene.other))
    case, _, heard = heard_release(scene.trace, network, settings)
    other = heard_release(scene.other, network, settings)[2]
    if other.handed is not None:
        heard = heard._replace(level_share=other.handed.shares(other.observed))
    interval_s = case.reports.interval_s
    motion = motion_learned(scene.trained, network, settings, interval_s)
    known_s = scene.trace.ts[0] + AT_S - 60.0 * HORIZONS_MIN[-1]
    chosen = stretches(
        heard.observed,
        case.truth,
        HORIZONS_MIN[-1:],
        step_s=steps_of(interval_s)[1],
        n_starts=1,
        n_targets=n_targets,
        rng=np.random.default_rng(seed),
        ahead_s=HINDSIGHT_S,
        moments=np.array([known_s, known_s + 60.0 * HORIZONS_MIN[-1]]),
        victims=scene.victims,
        most_share=1.0,
    )
    ((stretch, belief_of),) = believe(
        heard,
        case.truth,
        network,
        case.piece_of,
        chosen=chosen,
        motion=motion,
        adversaries=READERS,
    )
    followed = _Followed(scene, case, heard, stretch)
    cell_of = compact_parts(network, settings.counts.cells)
    weight_of = {
        name: weights(devices, motion.density, cell_of)
        for name, devices in copies_of(followed, network, settings).items()
    }
    close = close_to(network, stretch.place[stretch.at[-1]][stretch.targets])
    return {reader: joined(each[:, -1], close, weight_of) for reader, each in belief_of.items()}


def joined(belief: FloatArray, close: BoolArray, weight_of: Mapping[str, FloatArray]) -> Joint:
    """Return what a reader believes near the true places alone, and with each copy.

    Parameters
    ----------
    belief, close
        Probability of each node, and which are near the true place, shape (victims, nodes).
    weight_of
        Weight of each node by each copy, by its name.
    """
    with_copy = {}
    for name, weight in weight_of.items():
        for trust in TRUSTS:
            joint = belief * weight**trust
            with_copy[name, trust] = (joint * close).sum(axis=1) / joint.sum(axis=1)
    return Joint((belief * close).sum(axis=1), with_copy)


def pooled(parts: Sequence[dict[str, Joint]]) -> dict[str, Joint]:
    """Return the beliefs about the victims of several fleets."""
    return {
        reader: Joint(
            np.concatenate([part[reader].alone for part in parts]),
            {
                key: np.concatenate([part[reader].with_copy[key] for part in parts])
                for key in parts[0][reader].with_copy
            },
        )
        for reader in parts[0]
    }


def lines(found: dict[str, Joint]) -> Iterator[str]:
    """Yield the table."""
    yield "| reader | alone | beside it | trust | times alone |\n|---|---|---|--:|---|"
    for reader, joint in found.items():
        alone = f"{joint.alone.mean():.3f} / {most_exposed_tenth(joint.alone):.2f}"
        for copy, trust in joint.with_copy:
            mean, tenth = joint.times(copy, trust)
            yield f"| {reader} | {alone} | {copy} | {trust:g} | {mean:.2f} / {tenth:.2f} |"
    for reader, joint in found.items():
        mean, tenth = joint.added("copy")
        yield f"{reader}: the copy adds {mean:.3f} / {tenth:.3f} times what is reckoned without it"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = one_fleet_parser(__doc__, n_targets=40)
    options = parser.parse_args(arguments)
    settings, say = with_values(Settings(), options.set), partial(print, flush=True)
    network, all_scenes = scenes(options.fleet, options.fleets, options.data)
    found = pooled(
        [
            attack(scene, network, settings, n_targets=options.targets, seed=seed)
            for seed, scene in enumerate(all_scenes)
        ]
    )
    say(f"{options.fleet}: {len(found['none'].alone)} victims\n")
    for line in lines(found):
        say(line)


if __name__ == "__main__":
    main()
