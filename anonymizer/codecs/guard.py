"""Guards around codecs: for plug-ins, and for bounds on what positions state."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any

from anonymizer.codecs._fields import Codec, device_id
from anonymizer.codecs.times import in_seconds
from anonymizer.domain.fixes import Fix, checked_fix
from anonymizer.domain.outcomes import Outcome


def guarded(codec: Callable[[bytes], Any]) -> Codec:
    """Return a codec that keeps the contract of codecs even if `codec` does not.

    What it raises makes the message malformed; what it returns is checked like a payload.
    """

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        if not payload:
            return [Outcome.INVALID__EMPTY]
        try:
            found = [_sound(each) for each in codec(payload)]
        except Exception:  # noqa: BLE001  code of others, which may raise anything on hostile bytes
            return [Outcome.INVALID__MALFORMED]
        return found or [Outcome.INVALID__EMPTY]

    return decode


def only_within(codec: Codec, bounds: Mapping[str, tuple[float, float]]) -> Codec:
    """Return a codec that refuses positions whose readings are not within bounds, or not stated.

    `bounds`: least and greatest value of each reading, by its name.
    """

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        return [
            Outcome.INVALID__NOT_SELECTED if isinstance(each, Fix) and not is_within(each) else each
            for each in codec(payload)
        ]

    def is_within(fix: Fix) -> bool:
        stated = fix.readings or {}
        return all(name in stated and lo <= stated[name] <= hi for name, (lo, hi) in bounds.items())

    return decode


def _sound(found: Any) -> Fix | Outcome:  # noqa: ANN401  whatever a plug-in returns
    if isinstance(found, Outcome):
        return found if found.label[0] == "invalid" else Outcome.INVALID__SCHEMA
    if not isinstance(found, Fix):
        return Outcome.INVALID__SCHEMA
    if found.ts is not None and not isfinite(found.ts):
        return Outcome.INVALID__SCHEMA
    ts = None if found.ts is None else in_seconds(float(found.ts))
    if isinstance(ts, Outcome):
        return ts
    readings = {
        str(name): float(value) if isfinite(float(value)) else nan
        for name, value in (found.readings or {}).items()
    }
    if isnan(found.lat) and isnan(found.lon):  # only `placeless` codecs have none
        return Outcome.INVALID__NO_FIX
    return checked_fix(
        float(found.lat), float(found.lon), ts, device_id(found.device), readings or None
    )
