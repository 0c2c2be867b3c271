"""Faults of trackers: wrong fixes, vague fixes, and positions without a time, a share of each."""

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import FloatArray
from anonymizer.pipeline.ports import Outgoing
from simulator.reports import Reports

_STREAM = 0x6661756C7473
_JUMP_DEG = 0.3
"""To the north, about 33 km: another town."""
_VAGUE_M = 19_138
"""What a phone states that knows only the mast of its network."""

Encode = Callable[[Reports, FloatArray], list[Outgoing]]


class Faults(NamedTuple):
    """Shares of reports: `jumps` to another town, `vague` ones, and `undated` ones."""

    jumps: float = 0.0
    vague: float = 0.0
    undated: float = 0.0

    @classmethod
    def of(cls, text: str) -> "Faults":
        """Return the faults in `jumps=0.01,vague=0.05`.

        Raises
        ------
        ValueError
            If a name is unknown, or a share is none.
        """
        shares = {}
        for part in text.split(","):
            name, _, share = part.partition("=")
            if name not in cls._fields:
                raise ValueError(f"{name}: must be one of {', '.join(cls._fields)}")
            shares[name] = float(share or "nan")
            if not 0.0 <= shares[name] <= 1.0:
                raise ValueError(f"{name}: must be a share from 0 to 1")
        return cls(**shares)

    def in_messages(self, encode: Encode, *, seed: int) -> Encode:
        """Return an encoder whose messages, each of one report, have these faults."""
        rng = np.random.default_rng([seed, _STREAM])

        def encode_wrongly(reports: Reports, ts: FloatArray) -> list[Outgoing]:
            messages = encode(reports, ts)
            # One draw for each report in order, whichever are encoded together.
            wrong = rng.random((len(reports), len(self))) < self
            for row in np.flatnonzero(wrong.any(axis=1)).tolist():
                messages[row] = _spoilt(messages[row], Faults(*wrong[row].tolist()))
            return messages

        return encode_wrongly


def _spoilt(message: Outgoing, has: Faults) -> Outgoing:
    position = json.loads(message.payload)
    if has.jumps:
        position["lat"] += _JUMP_DEG if position["lat"] < 0 else -_JUMP_DEG
    if has.vague:
        position["accuracy_m"] = _VAGUE_M
    if has.undated:
        del position["ts"]
    return message._replace(payload=json.dumps(position).encode())
