"""Ids that change although the settings say that they stay: said once in the log, and not ready.

A vehicle under a new id then has its former self for company: groups hold fewer than k vehicles.
"""

from anonymizer.algorithms.positions.id_succession import Succession

IDS_CHANGE = (
    "new ids begin where others ended, so vehicles seem to change their ids and count twice: set"
    " ids_change_s of the input"
)
"""What is wrong, and what to do."""


class ChangingIds:
    """Reports once that ids change, and again only after they have stayed."""

    def __init__(self) -> None:
        self._reported = False

    def see(self, succession: Succession) -> bool:
        """Return whether it is to be reported now that ids change."""
        before, self._reported = self._reported, succession.ids_change
        return self._reported and not before
