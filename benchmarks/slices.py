"""Arithmetic of a slice: what a position costs between two runs of one cluster, and a whole city.

The slower run is taken off the faster one, so that what stages cost that have nothing to do does
not count as that of positions. It is added for as many stages, workers and bridges as the plan has.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from benchmarks.cluster_model import PROGRAMS, Costs, Layout, Row

BUSY = 0.6
"""Share of a core that is planned for: the rest is for what happens unevenly."""
N_COPIES = 3
MQTT = "broker"
"""The MQTT broker, as rows name it."""


class Slice(NamedTuple):
    """What a position costs each program on one worker, in messages of so many positions."""

    per_message: int
    """Positions in a message."""
    from_per_s: float
    to_per_s: float
    """`from_per_s`, `to_per_s`: positions per second of the two runs; 0 and one rate if there is
    one run."""
    us_of: Mapping[str, float]
    """µs of CPU for each position between them, by program."""

    @classmethod
    def of(cls, rows: Sequence[Row], per_message: int) -> Self:
        """Return that of the fastest run that kept up, and the slowest of the same stages.

        Raises
        ------
        ValueError
            If no run of one worker kept up.
        """
        alone = [
            row
            for row in rows
            if row["positions a message"] == per_message
            and (row["workers"], row["kept up"]) == (1, "yes")
        ]
        if not alone:
            raise ValueError(f"no run of one worker, {per_message} in a message, kept up")
        high = max(alone, key=lambda row: float(row["sent/s"]))
        alike = [row for row in alone if _stages(row) == _stages(high)]
        low = min(alike, key=lambda row: float(row["sent/s"]))
        from_per_s = 0.0 if low is high else float(low["sent/s"])
        to_per_s = float(high["sent/s"])
        us_of = {}
        for program in (*PROGRAMS, MQTT):
            below = from_per_s * low[f"{program}, µs"]
            us_of[program] = (to_per_s * high[f"{program}, µs"] - below) / (to_per_s - from_per_s)
        return cls(per_message, from_per_s, to_per_s, us_of)

    def cores(self, costs: Costs, layout: Layout, *, copying: float) -> dict[str, float]:
        """Return the cores that each program uses at the rate of a layout, by name.

        Parameters
        ----------
        costs, layout
            The cluster, and what its stages cost that have nothing to do.
        copying
            Times the CPU of one broker that all take which have each partition.
        """
        idle = layout._replace(rate_per_s=0.0)
        used = {program: us * layout.rate_per_s * 1e-6 for program, us in self.us_of.items()}
        used |= {program: used[program] + costs.cores(program, idle) for program in PROGRAMS}
        return used | {"kafka": used["kafka"] * copying}


def cores_to_have(used: Mapping[str, float]) -> float:
    """Return the cores for these to be 60 % busy; bridges and workers have whole ones."""
    rooms = {program: cores / BUSY for program, cores in used.items()}
    whole = sum(math.ceil(rooms[program]) for program in ("bridge", "workers"))
    return whole + rooms["kafka"] + rooms[MQTT]


def _stages(row: Row) -> tuple[int, int]:
    return row["sources"], row["districts"]
