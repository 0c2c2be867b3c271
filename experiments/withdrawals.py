"""Who of a group has withdrawn, to somebody who knows that one of them has.

A member that opts out of a group that has been published stays covered where the group showed it
last, until the group ends. The adversary knows who is in the group, where each of them was when it
last published before that, and all its later regions: only those may have withdrawn whose last
place they still cover. The control knows where all members *are* later, too: whoever is no longer
covered has withdrawn (or fallen silent, or entered a zone, which look alike).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.positions.tick.factory import cloaking_operator
from anonymizer.settings import Settings
from simulator.traffic import Traffic

_NOW = 1_800_000_000.0


class Withdrawn(NamedTuple):
    """Beliefs in the member that withdrew: blind, by the attack, and by the control."""

    blind: float
    belief: float
    control: float


class _Group(NamedTuple):
    members: tuple[int, ...]
    who: int
    last: dict[int, int]
    """Node of each member when the group last published before the withdrawal."""
    later: list[tuple[frozenset[int], dict[int, int]]]
    """Later regions, and where the members really were."""


def withdrawals(
    network: RoadNetwork,
    settings: Settings,
    places: Sequence[Int32Array],
    *,
    step_s: float,
    rng: np.random.Generator,
) -> Iterator[Withdrawn]:
    """Yield what is believed of members that withdraw, one of each group, after its first release.

    Parameters
    ----------
    places
        Node of each device at each step; all report in each of them until they withdraw.
    """
    operator = cloaking_operator(settings, network)
    stays = np.ones(len(places[0]), bool)
    attacked: dict[int, _Group] = {}
    for step, node in enumerate(places):
        now = _NOW + step * step_s
        slot = np.flatnonzero(stays).astype(np.int32)
        release = operator.tick(slot, np.full(len(slot), now), node[slot], now=now).release
        bounds = zip(release.first_member_of[:-1], release.first_member_of[1:], strict=True)
        for group, (begin, end) in enumerate(bounds):
            serial, members = int(release.version[begin]), release.member[begin:end].tolist()
            region = frozenset(
                release.node[slice(*release.first_node_of[group : group + 2])].tolist()
            )
            at = dict(zip(members, node[members].tolist(), strict=True))
            if serial in attacked:
                attacked[serial].later.append((region, at))
            elif stays[members].all():
                who = int(rng.choice(members))
                attacked[serial] = _Group(tuple(members), who, at, [])
                stays[who] = False
                operator.withdraw(np.array([who], np.int32))
    for each in attacked.values():
        if each.later:
            yield _believed(each)


def _believed(group: _Group) -> Withdrawn:
    covered = [m for m in group.members if all(group.last[m] in r for r, _ in group.later)]
    gone = [m for m in covered if not all(at[m] in region for region, at in group.later)]
    return Withdrawn(
        1 / len(group.members), _share(group.who, covered), _share(group.who, gone or covered)
    )


def _share(who: int, candidates: Sequence[int]) -> float:
    return (who in candidates) / max(len(candidates), 1)


def places_of(
    network: RoadNetwork, n_devices: int, at_s: Sequence[float], *, seed: int
) -> list[Int32Array]:
    """Return the node nearest to each simulated device at some seconds."""
    traffic, east = Traffic(network, n_devices, seed=seed), np.cos(np.radians(network.lat.mean()))
    nodes = cKDTree(np.stack([network.lat, network.lon * east], axis=1))
    places = []
    for each in at_s:
        lat, lon = traffic.advance(each)
        nearest = nodes.query(np.stack([lat, lon * east], axis=1))[1]
        places.append(np.asarray(nearest, np.int32))
    return places


def rows(network: RoadNetwork, *, n_devices: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the mean beliefs in those who withdraw within 200 s from groups of the defaults."""
    places = places_of(network, n_devices, np.arange(0.0, 200.0, 2.0).tolist(), seed=seed)
    rng = np.random.default_rng(seed)
    found = np.array(list(withdrawals(network, Settings(), places, step_s=2.0, rng=rng)))
    yield {"withdrawals": len(found)} | dict(
        zip(Withdrawn._fields, found.mean(axis=0), strict=True)
    )
