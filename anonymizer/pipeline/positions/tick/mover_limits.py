"""Limits of what is believed of the devices of each input: age, accuracy and speed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.tick.intake import timeliness

if TYPE_CHECKING:
    from anonymizer.settings import InputSettings, PresenceSettings


class MoverLimits:
    """The limits of some inputs, as columns by the index of the input."""

    def __init__(self, inputs: "Sequence[InputSettings]", presence: "PresenceSettings") -> None:
        self._inputs = inputs
        self._max_mps = np.array([each.max_speed_mps for each in inputs], np.float64)
        self._max_accuracy_m = np.array([each.max_accuracy_m for each in inputs], np.float64)
        self.adopt(presence)

    def adopt(self, presence: "PresenceSettings") -> None:
        """Use these settings from now on."""
        self._usual_s, ttl_s = presence.max_behind_s, presence.ttl_s
        ages = [each.oldest_s(self._usual_s, ttl_s=ttl_s) for each in self._inputs]
        self._behind_s = np.array(ages, np.float64)
        self._is_usual = bool((self._behind_s == self._usual_s).all())

    def plausible(self, decoded: Decoded, *, now: float) -> UInt8Array:
        """Return `HELD`, or why what a position states of itself refuses it, shape (n,)."""
        behind_s: FloatArray | float = self._usual_s
        if decoded.input is not None and not self._is_usual:
            behind_s = self._behind_s[decoded.input]
        outcome = timeliness(decoded.ts, behind_s=behind_s, now=now, zoneless=decoded.zoneless)
        if decoded.accuracy_m is not None and decoded.input is not None:
            vague = decoded.accuracy_m > self._max_accuracy_m[decoded.input]
            outcome[vague & (outcome == Outcome.HELD)] = Outcome.SUPPRESSED__INACCURATE
        return outcome

    def max_mps(self, input_: Int32Array | None, n: int) -> FloatArray:
        """Return the fastest speed of the devices of `n` positions by their inputs, shape (n,)."""
        if input_ is None:
            return np.full(n, self._max_mps.max(initial=0.0))
        return self._max_mps[input_]
