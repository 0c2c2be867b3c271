"""What the rows of a trace claim, judged like positions that arrive: for replay and audit."""

import numpy as np

from anonymizer.algorithms.positions.trust import Claims, Trust
from anonymizer.domain.arrays import FloatArray, IntArray, UInt8Array
from anonymizer.domain.fixes import ACCURACY
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace, named_nodes
from anonymizer.pipeline.positions.tick.trusted_devices import TrustedDevices
from anonymizer.settings import InputSettings, Settings


class TraceClaims:
    """The places of a trace, and which of them are believed under the limits of the first input."""

    def __init__(self, trace: Trace, network: RoadNetwork, settings: Settings) -> None:
        node = named_nodes(trace, network)
        self.slot = trace.device_of.astype(np.int32)
        """Of each row: the index of its device, which has it alone, shape (rows,)."""
        self.lat: FloatArray = trace.lat if node is None else network.lat[node]
        self.lon: FloatArray = trace.lon if node is None else network.lon[node]
        """`lat`, `lon`: degrees, shape (rows,); those of the nodes in a trace of nodes."""
        self._ts = trace.ts
        self._accuracy_m = trace.readings.get(ACCURACY)
        self._limits = settings.inputs[0] if settings.inputs else InputSettings()

    def judge(self, rows: IntArray, trust: Trust | TrustedDevices, *, now: float) -> UInt8Array:
        """Return `HELD` or why each of some rows is refused, in order of arrival, shape (n,).

        `trust` takes in those that are believed; `now`: unix seconds. O(n).
        """
        outcome = np.full(len(rows), Outcome.HELD, np.uint8)
        if self._accuracy_m is not None:
            vague = self._accuracy_m[rows] > self._limits.max_accuracy_m
            outcome[vague] = Outcome.SUPPRESSED__INACCURATE
        exact = np.flatnonzero(outcome == Outcome.HELD)
        row = rows[exact]
        place = self._ts[row], self.lat[row], self.lon[row]
        dated = np.zeros(len(row), np.bool_)
        claims = Claims(self.slot[row], *place, dated, hearsay=None, message=exact)
        max_mps = np.full(len(row), self._limits.max_speed_mps)
        outcome[exact] = trust.judge(claims, max_mps=max_mps, now=now)
        return outcome
