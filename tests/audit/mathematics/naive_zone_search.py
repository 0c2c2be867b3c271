"""Naive twins of the search for privacy zones: sets, loops and networkx."""

from collections import defaultdict

import networkx as nx
import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.audit.mathematics.zone_search import BEYOND, LEAST_HOLE
from anonymizer.domain.network import RoadNetwork
from tests.audit.mathematics.made import Line
from tests.audit.mathematics.naive import graph_of


def n_covering(lines: list[Line], n_nodes: int) -> list[int]:
    published = {(second, region) for _, second, region, _ in lines}
    return [sum(v in region for _, region in published) for v in range(n_nodes)]


def holes(covering: list[float], network: RoadNetwork, n: int, seldom: float) -> list[set[int]]:
    """Return the nodes of the best holes, the best first."""
    graph = graph_of(network)
    usual = float(np.median([c for c in covering if c > 0] or [0.0]))
    empty = {v for v in graph if covering[v] <= seldom * usual}
    scored = []
    for hole in nx.connected_components(graph.subgraph(empty)):
        border = {w for v in hole for w in graph[v]} - empty
        score = sum(min(covering[w], usual) for w in border)
        if len(hole) >= LEAST_HOLE and score > 0:
            scored.append((-score, min(hole), hole))
    return [hole for _, _, hole in sorted(scored, key=lambda each: each[:2])][:n]


def ends(lines: list[Line], identity_of: list[int], silent_s: float) -> set[tuple[int, int]]:
    """Return pseudonym and second of the records at which somebody appears or vanishes."""
    seconds = [second for _, second, _, _ in lines]
    found = set()
    for pseudonym, second, _, _ in lines:
        mine = [(s, p) for p, s, _, _ in lines if identity_of[p] == identity_of[pseudonym]]
        before = [s for s, p in mine if (s, p) < (second, pseudonym)]
        after = [s for s, p in mine if (s, p) > (second, pseudonym)]
        appears = not before or second - max(before) > silent_s
        vanishes = not after or min(after) - second > silent_s
        if (appears and second > min(seconds) + silent_s) or (
            vanishes and second < max(seconds) - silent_s
        ):
            found.add((pseudonym, second))
    return found


def first_vanishing(
    lines: list[Line], ending: set[tuple[int, int]], network: RoadNetwork, radius_m: float
) -> list[tuple[float, float]]:
    """Return the best guesses, latitude and longitude, several if windows are equally good."""
    presence: dict[int, float] = defaultdict(float)
    vanished: dict[int, float] = defaultdict(float)
    for pseudonym, second, region, _ in lines:
        for v in region:
            presence[v] += 1 / len(region)
            vanished[v] += ((pseudonym, second) in ending) / len(region)
    total = sum(vanished.values())
    share = total / sum(presence.values())

    def near(v: int, metres: float) -> list[int]:
        apart = haversine_m(network.lat[v], network.lon[v], network.lat, network.lon)
        return np.flatnonzero(apart <= metres).tolist()

    windows = []
    for v in range(network.n_nodes):
        nodes = near(v, BEYOND * radius_m)
        seen, likely = sum(vanished[w] for w in nodes), share * sum(presence[w] for w in nodes)
        if seen > likely:
            score = seen * np.log(seen / likely)
            if total - seen > 1e-9:
                score += (total - seen) * np.log((total - seen) / (total - likely))
            windows.append((score, nodes))
    best = max((score for score, _ in windows), default=0.0)
    guesses = []
    for nodes in (nodes for score, nodes in windows if best > 1e-9 and score > best - 1e-6):
        quiet = {w: sum(presence[x] for x in near(w, radius_m)) for w in nodes}
        least = [w for w in nodes if quiet[w] <= min(quiet.values()) * (1 + 1e-9)]
        guesses.append((float(network.lat[least].mean()), float(network.lon[least].mean())))
    return guesses


def first_drop(
    lines: list[Line], earlier: list[Line], network: RoadNetwork, radius_m: float
) -> set[int]:
    """Return the centres of the windows that have lost most, several if equally good.

    None if a window contained all that there was before.
    """
    now, before = _presence(lines), _presence(earlier)
    total, share = sum(now.values()), sum(now.values()) / sum(before.values())
    scores = {}
    for v in range(network.n_nodes):
        apart = haversine_m(network.lat[v], network.lon[v], network.lat, network.lon)
        nodes = np.flatnonzero(apart <= radius_m).tolist()
        seen, likely = sum(now[w] for w in nodes), share * sum(before[w] for w in nodes)
        if seen < likely - 1e-9:
            inside = seen * np.log(seen / likely) if seen > 1e-9 else 0.0
            rest = (total - likely) / (total - seen)
            if rest < 1e-9:
                return set()
            scores[v] = inside - (total - seen) * np.log(rest)
    best = max(scores.values(), default=0.0)
    return {v for v, score in scores.items() if best > 1e-6 and score >= best - 1e-6}


def _presence(lines: list[Line]) -> dict[int, float]:
    presence: dict[int, float] = defaultdict(float)
    for _, _, region, _ in lines:
        for v in region:
            presence[v] += 1 / len(region)
    return presence
