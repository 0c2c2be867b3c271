"""Road networks: read from files, built from networkx graphs, or generated."""

from anonymizer.networks.construction import from_arrays
from anonymizer.networks.formats import load_network
from anonymizer.networks.graphs import from_networkx, to_networkx

__all__ = ["from_arrays", "from_networkx", "load_network", "to_networkx"]
