"""Counts over several sources: each tallies its devices, and one district joins the tallies.

A tally is of cells, not of devices. The district publishes the counts of an interval when it has
the tallies of all sources, and leaves out an interval that one of them has not watched whole. A
source that stands still holds up the counts for some intervals; then they are left out. With
differential privacy, the source has bounded what each device adds, and the district adds the noise
and keeps the budget.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.positions.safe_counts import CellTally, together
from anonymizer.cluster.positions.stage_messages import SourceTally, packed_tally, tally_in
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.counting import SafeMessages, cells_message
from anonymizer.pipeline.positions.counts.private_counts import (
    HeldBudget,
    Noise,
    PrivateCounts,
    held_s_of,
    plan_of,
)
from anonymizer.settings import CountSettings

COUNTING_LANE = 0
"""The district that publishes the counts."""
_MOST_WAITING = 60
"""Intervals that wait for the tally of a source."""


class LaneCounts:
    """Joins the tallies of all sources, and makes the messages.

    Without `noise` counts are safe. `n_suppressed`: intervals left out because a source had not
    watched them whole, or said nothing about them for too long, or because the budget is spent.
    """

    def __init__(
        self,
        settings: CountSettings,
        network: RoadNetwork,
        *,
        n_sources: int,
        topic: str = "cloaked/counts",
        k_extra: int = 0,
        noise: Noise | None = None,
    ) -> None:
        self._topic, self._every_s = topic, settings.every_s
        version = network_version(network)
        self._safe = SafeMessages(settings, topic=topic, version=version, k_extra=k_extra)
        self._cells = cells_message(topic, settings.cells, network, version=version)
        self._budget = HeldBudget(plan_of(settings), held_s=held_s_of(settings))
        self._private = None
        if noise is not None:
            # Sources bound the devices: here are none.
            self._private = PrivateCounts(
                settings, self._budget, noise, version=version, most_devices=0
            )
        self._encode = msgspec.json.Encoder().encode
        self._tallies: list[dict[int, SourceTally]] = [{} for _ in range(n_sources)]
        self._settled = -1
        """The last interval of which no tally is taken any more."""
        self.n_published = self.n_suppressed = 0

    def take(self, source: int, tally: SourceTally | None) -> None:
        """Take the tally of a source; those of each come in the order of intervals."""
        if tally is not None and tally.interval > self._settled:
            self._tallies[source][tally.interval] = tally

    def messages(self) -> Sequence[Outgoing]:
        """Return the counts of the intervals of which all tallies have come, each once.

        The cells come before each, retained: whoever subscribes later needs them, and no stage
        hears when a broker has lost them.
        """
        found = []
        # Of an interval before the last one of every source, no tally is to come any more.
        newest = [max(of, default=-1) for of in self._tallies]
        last = max(min(newest), max(newest) - _MOST_WAITING, self._settled)
        for interval in sorted({each for of in self._tallies for each in of if each <= last}):
            said = [of.pop(interval, None) for of in self._tallies]
            whole = [each.counted for each in said if each and each.counted is not None]
            if len(whole) < len(self._tallies):
                self.n_suppressed += 1
                continue
            end_s = (interval + 1) * self._every_s
            if self._private is None:
                tallies = [each for each in whole if isinstance(each, CellTally)]
                found += [self._cells, self._safe.message(together(tallies), end_s)]
                self.n_published += 1
            else:
                numbers = [each for each in whole if not isinstance(each, CellTally)]
                found += [self._cells, self._noisy(self._private, numbers, end_s)]
        self._settled = last
        return found

    def _noisy(self, private: PrivateCounts, numbers: list[IntArray], end_s: float) -> Outgoing:
        """Return the message of what all sources count, empty where one has too many devices."""
        total = np.sum(numbers, axis=0) if all(map(len, numbers)) else None
        body = private.of_numbers(total, end_s=end_s, ahead_s=0.0)
        self.n_published += not body.suppressed
        self.n_suppressed += bool(body.suppressed)
        return Outgoing(self._topic, self._encode(body))

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {
            "tallies": [[packed_tally(each) for each in of.values()] for of in self._tallies],
            "counts": [self._settled, self.n_published, self.n_suppressed],
            "private": None if self._private is None else self._private.state(),
            "budget": self._budget.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        said = [[tally_in(each) for each in of] for of in state["tallies"]]
        self._tallies = [{each.interval: each for each in of if each} for of in said]
        self._settled, self.n_published, self.n_suppressed = state["counts"]
        if self._private is not None and state["private"] is not None:
            self._private.restore(state["private"])
        self._budget.restore(state["budget"])
