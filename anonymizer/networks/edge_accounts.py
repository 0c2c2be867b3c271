"""What becomes of each edge of a source: used, or left out for a reason, counted and said."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.drawn_roads import Corners, Nodes, are_points

USED, LOOP, ISLAND, NOWHERE = "used", "from a node to itself", "at 0, 0", "without coordinates"
_BESIDE = "beside a shorter one that may be driven"


def account(unit: str, become: Mapping[str, int]) -> str:
    """Return one line that says what became of all ways (or edges): `9 ways: 8 used, 1 areas`."""
    n = sum(become.values())
    said = [f"{n_of:,} {what}" for what, n_of in become.items() if n_of]
    return f"{n:,} {unit}{'' if n == 1 else 's'}: {', '.join(said)}" if n else ""


def accounted(network: RoadNetwork, unit: str, become: Mapping[str, int]) -> RoadNetwork:
    """Return a network with this account, before what its construction has to say."""
    said = (account(unit, become), network.account)
    return replace(network, account="; ".join(filter(None, said)))


def with_odd_directions(network: RoadNetwork, n: int) -> RoadNetwork:
    """Return a network that says how many values of `oneway` are not known."""
    if not n:
        return network
    said = f"oneway with a word that is not known (write yes, -1 or no), open both ways: {n:,}"
    return replace(network, account="; ".join(filter(None, (network.account, said))))


def edges_became(
    nodes: Nodes,
    ends: IntArray,
    corners: Corners | None,
    one_way: BoolArray,
    *,
    max_spacing_m: float,
) -> dict[str, int]:
    """Return what becomes of edges, by reason.

    A network has neither loops nor several roads between two nodes in one direction, unless they
    are drawn and get nodes in between.

    Parameters
    ----------
    ends
        Nodes of each edge, in the direction in which it may be driven, shape (n, 2).
    corners
        As for `from_arrays`.
    one_way
        Whether it may be driven in that direction alone, shape (n,).
    """
    if corners is not None and max_spacing_m and not np.isnan(nodes.lat).any():
        n_loops = int(are_points(nodes, ends, corners).sum())
        return {USED: len(ends) - n_loops, LOOP: n_loops}
    leads = ends[:, 0] != ends[:, 1]
    pairs, one_way = ends[leads], one_way[leads]
    pairs = np.where(one_way[:, None], pairs, np.sort(pairs, axis=1))
    n_used = len(np.unique(np.column_stack((pairs, one_way)), axis=0))
    return {USED: n_used, LOOP: len(ends) - len(pairs), _BESIDE: len(pairs) - n_used}
