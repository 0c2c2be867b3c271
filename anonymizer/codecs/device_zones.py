"""What a device states about its own privacy: an array of zones and of demands.

`[{"circle": {"lat", "lon", "radius_m"}}, {"polygon": [[lat, lon], ...]}]`, in WGS84 degrees, as in
`[[zones]]` of the settings. An empty array means that there are none. `[{"everywhere": true}]`: the
device takes no part. `{"k": 20}` and `{"road_m": 5000}`: it wants more company, and places with
more road. `{"trips": false}`: its trips are not told. Every number has a bound: beyond it
nobody could mean or meet it, and the statement is refused.
"""

from typing import Annotated, NamedTuple

from msgspec import Meta
from msgspec.json import Decoder

from anonymizer.codecs._fields import Stated, read
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome

MOST_RADIUS_M = 20_100_000
"""Half of the way around the earth."""
MOST_K = 1000
"""Of a group; what a gateway can meet is less, see `docs/formats.md`."""
MOST_ROAD_M = 1_000_000
"""Of a place: more road than a city has."""
_Latitude = Annotated[float, Meta(ge=-90, le=90)]
_Longitude = Annotated[float, Meta(ge=-180, le=180)]


class StatedCircle(Stated, forbid_unknown_fields=True):
    """A circle around a place."""

    lat: _Latitude
    lon: _Longitude
    radius_m: Annotated[float, Meta(gt=0, le=MOST_RADIUS_M)]


class _Zone(Stated, forbid_unknown_fields=True):
    circle: StatedCircle | None = None
    polygon: tuple[tuple[_Latitude, _Longitude], ...] | None = None
    everywhere: bool | None = None
    k: Annotated[int, Meta(ge=2, le=MOST_K)] | None = None
    road_m: Annotated[float, Meta(gt=0, le=MOST_ROAD_M)] | None = None
    trips: bool | None = None


@discreet
class StatedZones(NamedTuple):
    """The zones and the demands of one device."""

    circles: tuple[StatedCircle, ...]
    """Their centres and radii."""
    polygons: tuple[tuple[tuple[float, float], ...], ...]
    """The corners of each: latitude and longitude."""
    everywhere: bool = False
    """Whether the device takes no part, wherever it is."""
    k: int = 0
    """Devices with which it wants to share its group, itself included; 0: no more than others."""
    road_m: float = 0.0
    """Metres of road that its place is to have; 0: no more than those of others."""
    trips: bool = True
    """Whether its trips may be told."""


_DECODER = Decoder(list[_Zone])


def decode(payload: bytes) -> StatedZones | Outcome:
    """Return the stated zones, or why they cannot be used. It never raises."""
    zones = read(_DECODER, payload)
    if isinstance(zones, Outcome):
        return zones
    if any(_n_stated(zone) != 1 or zone.everywhere is False or zone.trips for zone in zones):
        return Outcome.INVALID__SCHEMA
    return StatedZones(
        tuple(zone.circle for zone in zones if zone.circle is not None),
        tuple(zone.polygon for zone in zones if zone.polygon is not None),
        any(zone.everywhere for zone in zones),
        max((zone.k or 0 for zone in zones), default=0),
        max((zone.road_m or 0.0 for zone in zones), default=0.0),
        all(zone.trips is None for zone in zones),
    )


def _n_stated(zone: _Zone) -> int:
    stated = (zone.circle, zone.polygon, zone.everywhere, zone.k, zone.road_m, zone.trips)
    return sum(each is not None for each in stated)
