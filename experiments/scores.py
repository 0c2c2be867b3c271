"""What an attack finds, beside the same attack where there is nothing to find."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonymizer.audit.attacks.tracking import most_exposed_tenth
from anonymizer.domain.arrays import FloatArray
from experiments.result_files import Row

N_DRAWS = 1000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score:
    """Success of one attack on one way to publish."""

    COLUMNS: ClassVar = (
        "attack", "release", "success", "low", "high", "control", "promised", "times", "times_low",
        "tenth", "tenth_control", "victims", "cpu_s",
    )  # fmt: skip
    """Of `row`."""

    attack: str
    release: str
    """`attack`, `release`: in words."""
    success: FloatArray
    control: FloatArray
    """`success`, `control`: of each victim, from 0 to 1, NaN for none; of the attack, and of the
    same attack without what it is to use. Shape (victims,)."""
    cpu_s: float
    """CPU time of the attack, without making the release, where that is not part of it."""
    promised: float | None = None
    """Success that the release promises not to exceed, such as 1/k; None: it promises nothing."""

    def row(self, *, seed: int = 0) -> Row:
        """Return the row of the table, with intervals of 95 % over resampled victims."""
        both = ~(np.isnan(self.success) | np.isnan(self.control))
        success, control = self.success[both], self.control[both]
        if not len(success):
            return {"attack": self.attack, "release": self.release, "victims": 0}
        rng = np.random.default_rng(seed)
        drawn = rng.integers(len(success), size=(N_DRAWS, len(success)))
        means, others = success[drawn].mean(axis=1), control[drawn].mean(axis=1)
        tails = (1 - _LEVEL) / 2, (1 + _LEVEL) / 2
        low, high = np.quantile(means, tails).tolist()
        base = float(control.mean())
        times = success.mean() / base if base else np.inf
        least = np.quantile(means / np.maximum(others, 1e-12), tails[0]) if base else np.inf
        return {
            "attack": self.attack,
            "release": self.release,
            "success": float(success.mean()),
            "low": low,
            "high": high,
            "control": base,
            "promised": self.promised,
            "times": float(times),
            "times_low": float(least),
            "tenth": most_exposed_tenth(success),
            "tenth_control": most_exposed_tenth(control),
            "victims": len(success),
            "cpu_s": self.cpu_s,
        }
