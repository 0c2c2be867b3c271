"""What is left to hide somebody from an adversary who knows where everybody else is.

The adversary knows all positions but one, every setting and the algorithm, and that the device is
published. For each node at which the device may be it forms the groups itself; what differs from
the release is ruled out. `looks` are moments, far enough apart, at which the others have moved and
groups are formed anew while the device stands. Knowledge of what lasts from one look to the next is
not used.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.audit.attacks.tracking import NEAR_M
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.positions.tick.factory import cloaking_operator
from anonymizer.settings import Settings
from experiments.withdrawals import places_of

_NOW = 1_800_000_000.0


class Left(NamedTuple):
    """Belief in the nodes near the true place, with the release and without, and nodes left."""

    belief: float
    blind: float
    n_nodes: float


def published(settings: Settings, network: RoadNetwork) -> Callable[[Int32Array], bytes]:
    """Return a function from the node of each device to all that is published of one forming."""
    whole = settings.model_dump(exclude_unset=True)
    whole["session"] = {**whole.get("session", {}), "beat_s": 0}  # all groups are seen at once
    operator = cloaking_operator(Settings.model_validate(whole), network)
    begins = operator.state()

    def forming(node: Int32Array) -> bytes:
        operator.restore(begins)
        slot = np.arange(len(node), dtype=np.int32)
        release = operator.tick(slot, np.full(len(node), _NOW), node, now=_NOW).release
        told = (release.k, release.first_node_of, release.node, np.diff(release.first_member_of))
        return b"".join(column.astype(np.int64).tobytes() for column in told)

    return forming


def nodes_left(
    forming: Callable[[Int32Array], bytes],
    network: RoadNetwork,
    looks: Sequence[Int32Array],
    victim: int,
    *,
    n_sampled: int,
    rng: np.random.Generator,
) -> list[Left]:
    """Return what is left of the places of a device after each look.

    Parameters
    ----------
    looks
        Node of each device; the victim is at that of the first look in all of them.
    n_sampled
        Of the nodes that are not near the true place, so many are tried; each stands for the others
        as well. Those near it are tried one by one.
    """
    place = int(looks[0][victim])
    distance_m = haversine_m(network.lat[place], network.lon[place], network.lat, network.lon)
    near = np.flatnonzero(distance_m <= NEAR_M)
    far = np.flatnonzero(distance_m > NEAR_M)
    tried = rng.choice(far, min(n_sampled, len(far)), replace=False)
    weight = len(far) / max(len(tried), 1)
    blind = len(near) / network.n_nodes
    found = []
    for look in looks:
        seen = forming(_moved(look, victim, place))
        near, tried = (
            np.array([v for v in nodes.tolist() if forming(_moved(look, victim, v)) == seen], int)
            for nodes in (near, tried)
        )
        n_far = weight * len(tried)
        found.append(Left(len(near) / (len(near) + n_far), blind, len(near) + n_far))
    return found


def _moved(look: Int32Array, victim: int, node: int) -> Int32Array:
    there = look.copy()
    there[victim] = node
    return there


def rows(network: RoadNetwork, *, n_devices: int, n_victims: int, seed: int) -> Iterator[Left]:
    """Yield what is left of victims on average after one to four formings, a minute apart."""
    forming, rng = published(Settings(), network), np.random.default_rng(seed)
    looks = places_of(network, n_devices, [0.0, 60.0, 120.0, 180.0], seed=seed)
    found = [
        nodes_left(forming, network, looks, victim, n_sampled=400, rng=rng)
        for victim in rng.choice(n_devices, n_victims, replace=False).tolist()
    ]
    for look in np.mean(found, axis=0).tolist():
        yield Left(*look)
