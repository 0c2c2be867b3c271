import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.networks import load_network
from benchmarks.spread import Moving, of_positions, of_records, worker_of, workers_table

HOUR_S = 3600.0


@given(n=st.integers(1, 40), n_workers=st.integers(1, 40))
def test_partitions_are_divided_in_equal_runs_as_kafka_does(*, n: int, n_workers: int) -> None:
    workers = [worker_of(i, n, n_workers) for i in range(n)]
    assert workers == sorted(workers)
    sizes = np.bincount(workers, minlength=n_workers)
    assert len(sizes) == n_workers
    assert sizes.max() - sizes.min() <= 1


def test_every_stage_works_and_all_that_is_sent_counts() -> None:
    network, n = load_network("city:400"), 400
    node = np.random.default_rng(1).integers(network.n_nodes, size=2 * n)
    moving = Moving(
        np.repeat(np.arange(n), 2),
        np.tile([0.0, HOUR_S - 1], n),
        network.lat[node],
        network.lon[node],
    )
    load, n_positions = of_positions(network, moving, n_districts=2)
    assert n_positions == 12 * n
    assert {kind for kind, _ in load} == {"source", "lane"}
    table = workers_table("position", load, n_positions, {"source": 32, "lane": 2})
    assert [row[0] for row in table.rows] == [1, 2, 4, 8, 16, 32]
    load, n_records = of_records(moving, n_streams=2)
    assert n_records == 3 * n
    assert {kind for kind, _ in load} == {"stream"}
