"""ADKA as published, on maps as people load them: every region, from the tables of a map alone."""

import os
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network_version import network_version
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import as_loaded
from anonymizer.settings import Settings
from tests import naive
from tests.naive import Graph

N_DEVICES = 2_500
MAPS = ("andorra", "helsinki_centre", "monaco", "porto_alegre", "san_francisco", "sydney")
MADE = ("grid:50x50", "city:4000", "city:4000:7")
"""With the real maps, 22,500 devices."""


def crowded(n_nodes: int, seed: int) -> IntArray:
    """Return where devices are: half of them anywhere, half in one quarter."""
    rng = np.random.default_rng(seed)
    first = int(rng.integers(n_nodes))
    crowd = (first + rng.integers(0, min(n_nodes // 10, 250), N_DEVICES // 2)) % n_nodes
    return np.concatenate([rng.integers(0, n_nodes, N_DEVICES - len(crowd)), crowd])


def at_nodes(names: list[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"device_id": [f"d{i}" for i in range(len(names))], "ts": 0.5, "node": names}
    )


def n_different(source: str, trace: pl.DataFrame, graph: Graph, at: list[int]) -> int:
    """Return how many devices get another k or region than the published algorithm gives them."""
    cloaked = anonymizer.cloak(trace, source, region="adka")
    device_of = cloaked.auditor_map
    assert device_of is not None
    told = {
        device: (k, sorted(region))
        for device, k, region in cloaked.frame.join(device_of, on="pseudonym")
        .select("device", "k", "region")
        .iter_rows()
    }
    n_at = Counter(at)
    population = naive.component_population(graph, n_at)
    n, seen = 0, set()
    for device, root in enumerate(at):
        density = n_at[root] + sum(n_at[v] for v in graph[root])
        k = naive.k_for(density, steps=(4, 10), values=(10, 5, 2), floor=2)
        region = naive.bfs_region(graph, n_at, population, root, k, max_nodes=10**9)
        right = (k, sorted(region)) if isinstance(region, list) else None
        n += told.get(f"d{device}") != right
        seen.add(k)
    assert seen == {2, 5, 10}
    return n


@pytest.mark.data
@pytest.mark.parametrize("name", MAPS)
def test_every_region_on_a_real_map_is_the_published_one(name: str) -> None:
    prefix = Path(os.environ["ANONYMIZER_DATA"]) / "networks" / name
    names = pl.read_parquet(f"{prefix}_nodes.parquet")["node_id"].to_numpy()
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(names.tolist())
    for u, v in pl.read_parquet(f"{prefix}_edges.parquet", columns=["u", "v"]).iter_rows():
        if u != v:
            graph.add_edge(u, v)
            graph.add_edge(v, u)
    loaded = load_network(str(prefix), max_spacing_m=0)
    assert network_version(as_loaded(load_network(str(prefix)))) == network_version(loaded)
    at = names[crowded(len(names), seed=1)].tolist()
    assert n_different(str(prefix), at_nodes(at), graph, at) == 0


@pytest.mark.parametrize("source", MADE)
def test_every_region_on_a_made_map_is_the_published_one(source: str) -> None:
    network = load_network(source)
    at = crowded(network.n_nodes, seed=2).tolist()
    names = network.node_id[at].tolist()
    assert n_different(source, at_nodes(names), naive.graph_of(network), at) == 0


@pytest.mark.data
def test_a_position_on_a_long_road_belongs_to_the_nearer_junction() -> None:
    source = f"{os.environ['ANONYMIZER_DATA']}/networks/andorra"
    loaded = load_network(source, max_spacing_m=0)
    lines, rng = loaded.lines(), np.random.default_rng(3)
    tail = np.repeat(np.arange(loaded.n_nodes), np.diff(loaded.first_arc_of))
    long_roads = np.flatnonzero(loaded.length_m[tail < loaded.neighbour_of] > 300)
    road = rng.choice(long_roads, 40, replace=False)
    inner = [rng.integers(*lines.first_point_of[each : each + 2] - [0, 1]) for each in road]
    share = rng.uniform(0.1, 0.9, len(road))
    lat, lon = (
        column[inner] + share * (column[np.add(inner, 1)] - column[inner])
        for column in (lines.lat, lines.lon)
    )
    # Three at one place are company enough: their region is the junction that they belong to.
    ids = [f"{number}/{of_three}" for of_three in "abc" for number in range(len(road))]
    trace = pl.DataFrame(
        {"device_id": ids, "ts": 0.5, "lat": np.tile(lat, 3), "lon": np.tile(lon, 3)}
    )
    settings = Settings.model_validate({"adka": {"k_values": [2], "density_steps": []}})
    cloaked = anonymizer.cloak(trace, source, region="adka", settings=settings)
    assert cloaked.auditor_map is not None
    region_of = dict(
        cloaked.frame.join(cloaked.auditor_map, on="pseudonym")
        .select("device", "region")
        .iter_rows()
    )
    for number in range(len(road)):
        right = naive.may_be_located_at(loaded, float(lat[number]), float(lon[number]))
        (junction,) = region_of[f"{number}/a"]
        assert junction in loaded.node_id[list(right)]
