"""Cloaks: the ways to form cloaking regions, from the weakest promise to the strongest."""

from anonymizer.algorithms.positions.cloaks.adka import AdkaCloak
from anonymizer.algorithms.positions.cloaks.lasting_groups import Epochs, Serials
from anonymizer.algorithms.positions.cloaks.protocol import Cloak
from anonymizer.algorithms.positions.cloaks.session import SessionCloak
from anonymizer.algorithms.positions.cloaks.snapshot import SnapshotCloak

__all__ = ["AdkaCloak", "Cloak", "Epochs", "Serials", "SessionCloak", "SnapshotCloak"]
