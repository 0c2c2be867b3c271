"""Ways to form cloaking regions, from the weakest promise to the strongest."""

from anonymizer.algorithms.cloaks.bfs import BfsCloak
from anonymizer.algorithms.cloaks.protocol import Cloak
from anonymizer.algorithms.cloaks.session import Epochs, SessionCloak
from anonymizer.algorithms.cloaks.snapshot import SnapshotCloak

__all__ = ["BfsCloak", "Cloak", "Epochs", "SessionCloak", "SnapshotCloak"]
