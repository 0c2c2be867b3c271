"""Messages of the exercise `tests.codecs.lat_lon`, which is no JSON."""

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import EMPTY, MALFORMED, OUT_OF_RANGE, Stated


def samples() -> list[Stated]:
    return [
        ("usual", b"60.17;24.94", [Fix(60.17, 24.94)]),
        ("beyond the pole", b"91;0", [OUT_OF_RANGE]),
        ("a word", b"north;0", [MALFORMED]),
        ("nothing", b"", [EMPTY]),
    ]


def typical(lat: float, lon: float) -> bytes:
    return f"{lat:.7f};{lon:.7f}".encode()
