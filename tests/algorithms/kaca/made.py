"""Small toll tables."""

import numpy as np
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.features import Feature, Scale
from anonymizer.domain.records import Attribute, Records, Schema

SECTIONS = ("G5611530010", "G5615530120", "G7611530010", "S0010530010", "S0010530020")

TOLL = Schema(
    qis=(
        Attribute("section", np.arange(5.0), SECTIONS),
        Attribute("minute", np.arange(1440.0)),
    ),
    sensitive=(),
    sources=((0,), (1,)),
)
HOW = (Feature(Scale.DIGITS), Feature(Scale.LINE))


def toll(section: list[int], minute: list[int], truck: list[int] | None = None) -> Records:
    """A table of exits; without `truck` each is another one's."""
    n = len(section)
    who = range(n) if truck is None else np.unique(truck, return_inverse=True)[1]
    return Records(
        np.array([section, minute], np.int32).T.copy().reshape(n, 2),
        np.zeros((n, 0), np.int32),
        np.array(who, np.int32),
    )


@st.composite
def exits(draw: st.DrawFn, *, max_n: int = 60, repeats: bool = False) -> Records:
    """Exits around midnight and at noon, so that collisions happen."""
    n = draw(st.integers(1, max_n))
    minutes = st.sampled_from([0, 1, 59, 60, 700, 719, 720, 721, 780, 1380, 1438, 1439])
    section = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    minute = draw(st.lists(minutes, min_size=n, max_size=n))
    truck = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)) if repeats else None
    return toll(section, minute, truck)
