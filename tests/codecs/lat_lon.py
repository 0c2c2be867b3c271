"""A codec of one's own, as one file: `lat;lon` in ASCII, an exercise."""

from collections.abc import Sequence

from anonymizer.codecs import Format
from anonymizer.domain.fixes import Fix, checked_fix
from anonymizer.domain.outcomes import Outcome


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one position, whose device and time are those of the message."""
    try:
        lat, lon = (float(part) for part in payload.decode("ascii").split(";"))
    except ValueError:
        return [Outcome.INVALID__MALFORMED if payload else Outcome.INVALID__EMPTY]
    return [checked_fix(lat, lon)]


FORMAT = Format(decode=decode, is_json=False, oldest_s=30.0)
