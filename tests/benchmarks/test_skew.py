import numpy as np

from anonymizer.networks import load_network
from benchmarks.skew import skew


def test_a_cut_by_what_was_counted_is_the_most_even_one() -> None:
    network = load_network("grid:40x40")
    counted = np.where(np.arange(network.n_nodes) % 40 < 10, 20.0, 1.0)
    table = skew(network, counted, counted, numbers=[8])
    busiest = {row[1]: row[2] for row in table.rows}
    assert float(busiest["positions"]) < 1.3 < float(busiest["nodes"])
