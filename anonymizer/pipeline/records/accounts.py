"""The accounts of one stream, which outlive the process. The unit is the part: one message.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held, in what is
stored after every transaction: what an open window holds and what waits for the broker is held.
"""

from collections.abc import Mapping

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger

RECEIVED = "received"


def label_of(outcome: Outcome) -> str:
    """Return an outcome as it stands in the accounts: `late`, `suppressed/overload`."""
    return "/".join(filter(None, outcome.label))


_OUTCOME_OF = {label_of(outcome): outcome for outcome in Outcome}


class StreamAccounts(Ledger):
    """A ledger that goes on where the stored accounts end.

    Parameters
    ----------
    stored
        Counts by label.
    """

    def __init__(self, stored: Mapping[str, int]) -> None:
        super().__init__()
        self.receive(stored.get(RECEIVED, 0))
        for label, n in stored.items():
            if label != RECEIVED:
                self.settle(_OUTCOME_OF[label], n)
        self._booked = self._all()

    def news(self) -> dict[str, int]:
        """Return what was counted since the last time, to be added to what is stored."""
        now, before = self._all(), self._booked
        self._booked = now
        return {
            label: n - before.get(label, 0) for label, n in now.items() if n != before.get(label)
        }

    def _all(self) -> dict[str, int]:
        counts = {label_of(outcome): n for outcome, n in self.counts().items() if n}
        return {RECEIVED: self.n_received} | counts if self.n_received else counts
