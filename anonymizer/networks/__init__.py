"""Road networks: from files, from graphs of networkx, generated."""

from anonymizer.networks.construction import from_arrays
from anonymizer.networks.formats import load_network
from anonymizer.networks.graphs import from_graph
from anonymizer.networks.without import without_nodes

__all__ = ["from_arrays", "from_graph", "load_network", "without_nodes"]
