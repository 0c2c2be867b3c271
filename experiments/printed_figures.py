"""The figures that the multi-source paper [1]_ prints, each with its place.

Nothing else in the results bears the paper's name: what our programs find with its algorithms is a
reproduction.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied
   Sciences 14(8), 3230, 2024.
"""

from dataclasses import dataclass
from types import MappingProxyType

ADULT, CENSUS = "Adult", "Census of 1990"
K_ANONYMITY, L_DIVERSITY = "k-anonymity", "l-diversity"

K_OF = MappingProxyType({ADULT: 20, CENSUS: 200})
D, L = 2, 3
"""The paper's defaults: k by table, and d and l of both tables."""


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """A row of tables 4 to 7: classes that hold one value, and leaks."""

    table: int
    """Number of the table."""
    promise: str
    data: str
    algorithm: str
    """`promise`, `data`, `algorithm`: what it is about."""
    uniform: tuple[int, ...]
    """Classes with a single original value of each of the six quasi-identifiers."""
    n_classes: int
    """All classes."""
    leaks: tuple[int, int]
    """Leaks of each source: the sum of `uniform` over its attributes."""

    @property
    def place(self) -> str:
        """Where the paper prints it."""
        return f"Table {self.table}"


def _row(
    table: int, algorithm: str, uniform: tuple[int, ...], n_classes: int, leaks: tuple[int, int]
) -> PrintedRow:
    promise = K_ANONYMITY if table in {4, 6} else L_DIVERSITY
    data = ADULT if table in {4, 5} else CENSUS
    return PrintedRow(table, promise, data, algorithm, uniform, n_classes, leaks)


_NONE = (0, 0, 0, 0, 0, 0)

TABLES = (
    _row(4, "Top-down", (0, 1206, 1364, 1098, 1242, 1175), 1364, (2570, 3515)),
    _row(4, "Mondrian", (2, 696, 646, 122, 622, 538), 987, (1344, 1282)),
    _row(4, "Incognito", _NONE, 15, (0, 0)),
    _row(4, "Flash", (1, 18, 184, 18, 184, 6), 184, (203, 208)),
    _row(4, "(k,d)-anonymity", _NONE, 388, (0, 0)),
    _row(5, "Incognito", _NONE, 15, (0, 0)),
    _row(5, "Flash", (1, 18, 184, 18, 184, 6), 184, (203, 208)),
    _row(5, "(k,l,d)-diversity", _NONE, 389, (0, 0)),
    _row(6, "Mondrian", (823, 1679, 2467, 1534, 1539, 2583), 2920, (4969, 5656)),
    _row(6, "Flash", (1, 818, 818, 818, 818, 818), 818, (1637, 2454)),
    _row(6, "(k,d)-anonymity", _NONE, 137, (0, 0)),
    _row(7, "(k,l,d)-diversity", _NONE, 138, (0, 0)),
)
"""Tables 4 to 7.

The digits of these tables run together in the copy that we have. They were cut so that the printed
sums hold. Incognito's row of table 6 is left out, because its numbers contradict each other.
"""

SECONDS = MappingProxyType(
    {
        (ADULT, 1): 0.300,
        (ADULT, L): 0.332,
        (CENSUS, 1): 61.899,
        (CENSUS, L): 67.715,
    }
)
"""Table 8: seconds by table and l, 1 for (k,d). Core i5 of 3.0 GHz, 12 GB, Java 15."""


@dataclass(frozen=True, slots=True)
class PrintedRange:
    """A range that the text gives for Adult, where the curve itself is not printed as numbers."""

    place: str
    measure: str
    d: int
    l: int  # noqa: E741  the field's name for it
    low: float
    high: float


_OVER_D = "text on the figures over d"

RANGES = (
    PrintedRange(_OVER_D, "gcp_range", 1, 1, 0.12, 0.14),
    PrintedRange(_OVER_D, "gcp_range", 1, L, 0.12, 0.14),
    PrintedRange(_OVER_D, "gcp_range", 5, 1, 0.6, 0.6),
    PrintedRange(_OVER_D, "gcp_range", 5, L, 0.8, 0.8),
)
"""GCP "close to 0.12-0.14" at d = 1; "0.6 and 0.8" at d = 5, of (k,d) and (k,l,d)."""
