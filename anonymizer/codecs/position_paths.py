"""Where the parts of a position are in JSON of any shape, as the settings declare it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from anonymizer.codecs.degrees import Scale
from anonymizer.codecs.paths import Conditions, JsonPath
from anonymizer.codecs.times import TimeUnit

DEVICE_LEVEL = "{device}"
"""In a path of positions: the key of an object is the id of a device."""


@dataclass(frozen=True, slots=True)
class PositionPaths:
    """Where the parts of a position are."""

    lat: JsonPath | None = None
    lon: JsonPath | None = None
    """`lat`, `lon`: WGS84 degrees. None, only for devices whose place a registry lists: there are
    none."""
    time: JsonPath | None = None
    time_unit: TimeUnit = "s"
    time_zone: tzinfo | None = None
    """`time`, `time_unit`, `time_zone`: when it was measured, see `times`; the zone is that of
    texts without an offset. None: not stated."""
    device: JsonPath | None = None
    """The id of the device; None: not stated."""
    readings: Mapping[str, JsonPath] = field(default_factory=dict)
    """Numbers, by the names under which they are known."""
    positions: JsonPath | None = None
    """An array of positions, which the other paths begin in unless they are `of_message`. A level
    `{device}` stands for the keys of an object: below each are the positions of this device, an
    array or one alone. None: the payload itself is the position or an array of them."""
    where: Conditions = field(default_factory=dict)
    """The messages, or positions, that count."""
    accuracy: JsonPath | None = None
    """How far from the position the device may be, metres: a reading `accuracy_m`. None: not
    stated."""
    scale: Scale = 1.0
    """What stated coordinates are multiplied by to be degrees, or their form."""
    lat_letter: JsonPath | None = None
    lon_letter: JsonPath | None = None
    clock: JsonPath | None = None
    """`lat_letter`, `lon_letter`, `clock`: what stands beside: `N` or `S`, `E` or `W`, and the time
    of day of a date. None: the coordinate has a sign, the time a day."""
    halves: bool = False
    """Whether a message may state one coordinate alone; the other one is NaN then."""

    @property
    def beside(self) -> Sequence[JsonPath]:
        """The paths of letters and of a time of day."""
        stated = (self.lat_letter, self.lon_letter, self.clock)
        return [path for path in stated if path is not None]

    @property
    def keyed(self) -> bool:
        """Whether keys of an object are the ids of devices."""
        return self.positions is not None and DEVICE_LEVEL in self.positions.parts
