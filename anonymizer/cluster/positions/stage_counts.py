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
from anonymizer.cluster.positions.source_windows import SourceWindows, WindowPiece
from anonymizer.cluster.positions.stage_messages import SourceTally, packed_tally, tally_in
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.counting import SafeMessages, cells_messages
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

    Without `noise` counts are safe.
    """

    def __init__(
        self,
        settings: CountSettings,
        network: RoadNetwork,
        *,
        n_sources: int,
        topic: str = "cloaked/counts",
        k_extra: int = 0,
        secret: bytes = b"",
        noise: Noise | None = None,
    ) -> None:
        self._topic, self._every_s = topic, settings.every_s
        version = network_version(network)
        self._safe = SafeMessages(
            settings, topic=topic, version=version, k_extra=k_extra, secret=secret
        )
        self._cells = cells_messages(topic, settings.cells, network, version=version)
        self._budget = HeldBudget(plan_of(settings), held_s=held_s_of(settings))
        self._private = None
        if noise is not None:
            # Sources bound the devices: here are none.
            self._private = PrivateCounts(
                settings, self._budget, noise, version=version, most_devices=0
            )
        self._encode = msgspec.json.Encoder().encode
        self._tallies: SourceWindows[SourceTally | None] = SourceWindows(
            n_sources, most_waiting=_MOST_WAITING, packed=packed_tally, unpacked=tally_in
        )
        self._made: list[Outgoing] = []
        self.n_published = self._n_refused = 0

    @property
    def n_suppressed(self) -> int:
        """Intervals left out: a source had not watched them whole or in time, or no budget left."""
        return self._n_refused + self._tallies.n_suppressed

    def take(self, source: int, tally: SourceTally | None) -> None:
        """Take the tally of a source; those of each come in the order of intervals."""
        if tally is None:
            return
        stated: WindowPiece[SourceTally | None] = WindowPiece(
            source, tally.interval, 0, True, tally
        )
        for interval, said in self._tallies.take(stated):
            whole = [each.counted for each in said if each and each.counted is not None]
            if len(whole) < len(said):
                self._n_refused += 1
                continue
            end_s = (interval + 1) * self._every_s
            if self._private is None:
                tallies = [each for each in whole if isinstance(each, CellTally)]
                self._made += [*self._cells, self._safe.message(together(tallies), end_s)]
                self.n_published += 1
            else:
                numbers = [each for each in whole if not isinstance(each, CellTally)]
                self._made += [*self._cells, self._noisy(self._private, numbers, end_s)]

    def messages(self) -> Sequence[Outgoing]:
        """Return the counts of the intervals of which all tallies have come since the last call.

        The cells come before each, retained: whoever subscribes later needs them, and no stage
        hears when a broker has lost them.
        """
        made, self._made = self._made, []
        return made

    def _noisy(self, private: PrivateCounts, numbers: list[IntArray], end_s: float) -> Outgoing:
        """Return the message of what all sources count, empty where one has too many devices."""
        total = np.sum(numbers, axis=0) if all(map(len, numbers)) else None
        body = private.of_numbers(total, end_s=end_s, ahead_s=0.0)
        self.n_published += not body.suppressed
        self._n_refused += bool(body.suppressed)
        return Outgoing(self._topic, self._encode(body))

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick; between two ticks no message waits."""
        return {
            "tallies": self._tallies.state(),
            "counts": [self.n_published, self._n_refused],
            "private": None if self._private is None else self._private.state(),
            "budget": self._budget.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._tallies.restore(state["tallies"])
        self.n_published, self._n_refused = state["counts"]
        if self._private is not None and state["private"] is not None:
            self._private.restore(state["private"])
        self._budget.restore(state["budget"])
