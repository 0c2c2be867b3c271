"""What became of what each input brought: usable, or refused for a reason.

The accounts of the flow (`accounting.Ledger`) are for all inputs together. If one of several inputs
has the wrong codec, they show as a share of refused messages what is all that the input brings.
"""

from collections.abc import Mapping

import numpy as np

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import FINAL

_N_OUTCOMES = 256


class InputCounts:
    """Messages and positions of each input by outcome; `HELD` stands for a usable one.

    Parameters
    ----------
    n_inputs
        Number of inputs. What belongs to none is counted as of input -1.
    """

    def __init__(self, n_inputs: int) -> None:
        self.n_inputs = n_inputs
        self.n_of: IntArray = np.zeros((n_inputs + 1, _N_OUTCOMES), np.int64)
        """By input and outcome; the last row is for what belongs to none."""

    def settle(self, input_: int, outcome: Outcome) -> None:
        """Count one message or position."""
        self.n_of[input_, outcome] += 1

    def settle_all(self, input_: Int32Array, outcome: UInt8Array) -> None:
        """Count positions with the index of their input and their outcome, both shape (n,)."""
        if len(input_):
            cell = (input_ % (self.n_inputs + 1)) * _N_OUTCOMES + outcome.astype(np.int64)
            self.n_of += np.bincount(cell, minlength=self.n_of.size).reshape(self.n_of.shape)

    def refused(self, input_: int) -> dict[Outcome, int]:
        """Return how much of an input had each final outcome, zeros included."""
        return {outcome: int(self.n_of[input_, outcome]) for outcome in FINAL}

    def n_usable(self, input_: int) -> int:
        """Return how many positions of an input could be used."""
        return int(self.n_of[input_, Outcome.HELD])

    def since(self, before: IntArray) -> "InputCounts":
        """Return the counts since a copy of `n_of` was made."""
        rest = InputCounts(self.n_inputs)
        rest.n_of = self.n_of - before
        return rest

    def refusals(self) -> Mapping[tuple[int, Outcome], int]:
        """Return what was refused, by number of the input (from one) and outcome; no zeros."""
        found = np.argwhere(self.n_of[: self.n_inputs, 1:])
        return {
            (i + 1, Outcome(outcome + 1)): int(self.n_of[i, outcome + 1])
            for i, outcome in found.tolist()
        }


class LocatedInputs:
    """Counts the positions of one table of devices once it is known whether a road is near.

    Trip ends hold positions back, so the input is remembered by device: one that reports to several
    inputs counts for the one that it reported to last.
    """

    def __init__(self, counts: InputCounts) -> None:
        self.counts = counts
        self._input_of: Int32Array = np.zeros(0, np.int32)

    def admit(self, slot: Int32Array, input_: Int32Array) -> None:
        """Remember which inputs these devices report to, both shape (n,)."""
        if len(slot):
            more = int(slot.max()) + 1 - len(self._input_of)
            if more > 0:
                room = np.full(max(more, len(self._input_of)), -1, np.int32)
                self._input_of = np.concatenate([self._input_of, room])
            self._input_of[slot] = input_

    def locate(self, slot: Int32Array, node: Int32Array) -> None:
        """Count positions of admitted devices with the nodes at which they were found."""
        outcome = np.where(node == OFF_GRAPH, Outcome.SUPPRESSED__OFF_GRAPH, Outcome.HELD)
        self.counts.settle_all(self._input_of[slot], outcome.astype(np.uint8))
