"""Road networks: from files, from graphs of networkx, generated."""

from anonymizer.networks.building import from_arrays
from anonymizer.networks.graphs import from_graph
from anonymizer.networks.loading import load_network
from anonymizer.networks.without import without_nodes

__all__ = ["from_arrays", "from_graph", "load_network", "without_nodes"]
