"""Road networks: read from files, built from networkx graphs, or generated."""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.networks.construction import from_arrays as from_arrays
    from anonymizer.networks.formats import load_network as load_network
    from anonymizer.networks.graphs import from_networkx as from_networkx
    from anonymizer.networks.graphs import to_networkx as to_networkx

__getattr__ = on_first_use(__name__, {
    "construction": ("from_arrays",),
    "formats": ("load_network",),
    "graphs": ("from_networkx", "to_networkx"),
})  # fmt: skip
