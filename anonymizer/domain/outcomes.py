"""Outcomes: the final states of a received position or part of a record, with their reasons.

Each item has exactly one. The accounting holds at every moment:
received = published + suppressed{reason} + invalid{reason} + late + duplicate + held.
"""

from enum import IntEnum, unique


@unique
class Outcome(IntEnum):
    """The final state of a received position or part of a record, as counted and exported.

    The values are stored in arrays of one byte; 0 means *not settled yet* (held). The names in
    lower case are metric labels: `outcome` is the part before the double underscore, `reason`
    the part after it.
    """

    HELD = 0
    PUBLISHED = 1
    LATE = 2
    """Older than the newest known position of the device; of a window that has closed."""
    DUPLICATE = 3
    """Same device and time as the newest known position; the same message again."""

    # Not readable, or not plausible.
    INVALID__MALFORMED = 10
    """Not in the format that the codec reads (not JSON, not protobuf)."""
    INVALID__SCHEMA = 11
    """A field is missing or has the wrong type."""
    INVALID__NOT_A_POSITION = 12
    """A well-formed message of another kind: a will, a transition, telemetry."""
    INVALID__NO_FIX = 13
    """The device reports no position, or marks it as not valid."""
    INVALID__OUT_OF_RANGE = 14
    """Latitude or longitude outside the earth."""
    INVALID__NULL_ISLAND = 15
    """Exactly 0, 0: what a receiver without a fix reports, not a place."""
    INVALID__FUTURE_TIME = 16
    """Ahead of the gateway's clock by more than the settings allow."""
    INVALID__ANCIENT_TIME = 17
    """Behind the gateway's clock by more than the settings allow."""
    INVALID__TOO_LARGE = 18
    """The payload exceeds the size limit, or holds more positions than allowed."""
    INVALID__UNKNOWN_TOPIC = 19
    """No configured input matches the topic."""
    INVALID__NO_DEVICE = 20
    """No usable device id in the place configured for the input."""
    INVALID__EMPTY = 21
    """An empty payload, or an empty array."""

    INVALID__RETAINED = 22
    """Retained by the broker and without a time, so that nobody knows how old it is."""
    INVALID__OUT_OF_DOMAIN = 23
    """A value outside the declared domain of its attribute."""
    INVALID__NOT_SELECTED = 24
    """Of another kind than the ones that `where` selects."""
    INVALID__ENCRYPTED = 25
    """Encrypted, and no key of the input opens it."""

    INVALID__NOT_DEGREES = 32
    """A coordinate that is no signed number of degrees: minutes, or a letter of the hemisphere that
    the input does not declare."""
    INVALID__COMPRESSED = 33
    """Compressed, and the input does not declare it."""
    INVALID__NO_ZONE = 34
    """A time without a zone or an offset that would be too old, or ahead, if it were UTC."""
    INVALID__TIME_IN_S = 35
    """A time in another unit than the input states: by its size it is seconds."""
    INVALID__TIME_IN_MS = 36
    """The same: milliseconds."""
    INVALID__TIME_IN_US = 37
    """The same: microseconds."""
    INVALID__TIME_IN_NS = 38
    """The same: nanoseconds."""
    INVALID__TIME_FORM = 39
    """A time in a form that is not read: day first, 12 hours, two digits of a year."""

    # Readable, but not safe (or not possible) to publish.
    SUPPRESSED__OFF_GRAPH = 40
    """Farther from every road than the snapping limit."""
    SUPPRESSED__SUPERSEDED = 41
    """A newer position of the device arrived before this one was published, or a newer part of its
    record in the same window."""
    SUPPRESSED__TOO_FEW_DEVICES = 42
    """The connected component holds fewer than k devices."""
    SUPPRESSED__REGION_TOO_LARGE = 43
    """The region would exceed the cap."""
    SUPPRESSED__OVERLOAD = 44
    """The input queue, or the table of devices or records, was full, or a position may have waited
    in the broker for too long."""
    SUPPRESSED__UNVERIFIED = 45
    """Independent verification found the promise broken: counted, reported, never published."""
    SUPPRESSED__UNDELIVERED = 46
    """The broker did not accept the output (connection lost, or drain deadline passed)."""

    SUPPRESSED__REGION_TOO_SMALL = 47
    """The component is smaller than the smallest region."""

    SUPPRESSED__NEVER_GROUPED = 48
    """The device left, or the gateway stopped, while the position waited for a group."""

    SUPPRESSED__PRIVACY_ZONE = 49
    """Inside a privacy zone, where nothing is published."""
    SUPPRESSED__TRIP_END = 50
    """Near the beginning or the end of a trip."""

    # Records only.
    SUPPRESSED__TOO_MANY_WINDOWS = 51
    """It would have opened more windows than are allowed, and is older than all of them or ahead of
    the gateway's clock."""
    SUPPRESSED__INCOMPLETE = 52
    """A required source reported nothing about the vehicle in this window."""
    SUPPRESSED__NO_CLASS = 53
    """No class containing it would have kept the promise: too few vehicles, or too similar."""
    SUPPRESSED__CUMULATIVE = 54
    """Together with earlier windows, its class would have revealed too much about a vehicle."""
    SUPPRESSED__REDECLARED = 55
    """The declaration of the stream changed while the part waited for its window to close."""
    SUPPRESSED__OVER_SHARE = 56
    """One vehicle or topic had sent more than its share."""
    SUPPRESSED__STATES_NOTHING = 57
    """It states no quasi-identifier, so that no evidence of anybody is behind it."""
    SUPPRESSED__REPEATED = 58
    """Another record of the vehicle, drawn at random, stands for it in this window."""
    SUPPRESSED__TOO_FREQUENT = 59
    """Its value is too frequent in the window for a bound on shares or entropy: others have it."""

    # Positions that may not be where the device is now: they are company for nobody.
    SUPPRESSED__IMPLAUSIBLE_JUMP = 60
    """Too far from the last trusted position for `max_speed_mps` of the input."""
    SUPPRESSED__INACCURATE = 61
    """Its stated accuracy is worse than `max_accuracy_m` of the input."""
    SUPPRESSED__AGE_UNKNOWN = 62
    """Nobody knows how old it is: it repeats a place without a time of its own."""

    # Records only, once more.
    SUPPRESSED__SILENT_SOURCE = 63
    """Too few vehicles have reported to its source in the window: its values are withheld."""

    @property
    def label(self) -> tuple[str, str]:
        """Outcome and reason as metric labels; the reason is empty if an outcome has only one."""
        outcome, _, reason = self.name.lower().partition("__")
        return outcome, reason
