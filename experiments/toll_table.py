"""Generated toll exits of trucks, with uneven sections and busy mornings and afternoons."""

import numpy as np

from anonymizer.algorithms.kaca.features import Feature, Scale
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.records import Attribute, Records, Schema

_SECTIONS = (
    ("G0091530010", 0.06),
    ("G0093530120", 0.346),
    ("S0021530010", 0.098),
    ("S0021530020", 0.215),
    ("S0024530010", 0.234),
    ("S0024530020", 0.0001),
    ("S0024530030", 0.011),
    ("S0085530020", 0.036),
)
_AXLES = ((2, 0.55), (3, 0.1), (4, 0.1), (5, 0.05), (6, 0.2))
_EXITS_A_DAY = 1.4

HOW = (Feature(Scale.DIGITS), Feature(Scale.LINE), Feature(Scale.LINE), Feature(Scale.LINE))


def toll_exits(n: int, *, seed: int, weighed: bool = False) -> tuple[Records, Schema, FloatArray]:
    """Return the exits of one day (section, minute; `weighed`: also axles, tonnes) and their tolls.

    Parameters
    ----------
    n
        Number of exits; a truck has 1.4 exits on average.
    """
    rng = np.random.default_rng(seed)
    section = _drawn(rng, n, _SECTIONS)
    axles = _drawn(rng, n, _AXLES)
    busy = rng.choice(3, n, p=[0.4, 0.4, 0.2])
    hour = np.choose(busy, [rng.normal(10, 2.2, n), rng.normal(16, 2.5, n), rng.uniform(0, 24, n)])
    minute = np.floor(hour % 24 * 60)
    tonnes = np.clip(np.round(rng.lognormal(1.8 + 0.25 * axles, 0.4)), 2, 60)
    truck = np.unique(rng.integers(0, max(int(n / _EXITS_A_DAY), 1), n), return_inverse=True)[1]
    toll = np.round((5 + 3 * section) * (1 + 0.2 * axles) * rng.uniform(0.5, 1.5, n), 2)
    qis = (
        Attribute("section", np.arange(float(len(_SECTIONS))), tuple(s for s, _ in _SECTIONS)),
        Attribute("minute", np.arange(1440.0)),
        Attribute("axles", np.array([a for a, _ in _AXLES], float)),
        Attribute("tonnes", np.arange(2.0, 61.0)),
    )
    n_qis = 4 if weighed else 2
    codes = np.column_stack([section, minute, axles, tonnes - 2])[:, :n_qis]
    records = Records(
        np.ascontiguousarray(codes, dtype=np.int32),
        np.zeros((n, 0), np.int32),
        truck.astype(np.int32),
    )
    return records, Schema(qis[:n_qis], (), tuple((j,) for j in range(n_qis))), toll[:, None]


def _drawn(
    rng: np.random.Generator, n: int, of: tuple[tuple[object, float], ...]
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    share = np.array([share for _, share in of])
    return rng.choice(len(of), n, p=share / share.sum())
