"""What can become of one received position or part of a record: exactly one, with its reason.

Accounting, true at every moment:
received = published + suppressed{reason} + invalid{reason} + late + duplicate + held.
"""

from enum import IntEnum


class Outcome(IntEnum):
    """The final state of one received position or part of a record, as counted and exported.

    The values are stored in arrays of one byte; 0 means *not settled yet* (held).
    Their names, in lower case, are the labels of the metrics: `outcome` is the part before the
    double underscore, `reason` the part behind it.
    """

    HELD = 0
    PUBLISHED = 1
    LATE = 2
    """Older than what is already known of the device; of a window that has closed."""
    DUPLICATE = 3
    """Same device, same time as what is already known; the same message again."""

    # Never understood, or not believable.
    INVALID__MALFORMED = 10
    """Not the format the codec reads (not JSON, not protobuf)."""
    INVALID__SCHEMA = 11
    """A field is missing or has the wrong type."""
    INVALID__NOT_A_POSITION = 12
    """A well-formed message of another kind: a will, a transition, telemetry."""
    INVALID__NO_FIX = 13
    """The device says that its own position is not valid, or has none."""
    INVALID__OUT_OF_RANGE = 14
    """Latitude or longitude outside the earth."""
    INVALID__NULL_ISLAND = 15
    """Exactly 0, 0: a receiver without a fix, not a place."""
    INVALID__FUTURE_TIME = 16
    """Further ahead of the gateway's clock than the settings allow."""
    INVALID__ANCIENT_TIME = 17
    """Further behind the gateway's clock than the settings allow."""
    INVALID__TOO_LARGE = 18
    """The payload exceeds the size limit, or holds more positions than allowed."""
    INVALID__UNKNOWN_TOPIC = 19
    """No configured input matches the topic."""
    INVALID__NO_DEVICE = 20
    """No usable device id where the input says it is."""
    INVALID__EMPTY = 21
    """An empty payload, or an array of nothing."""

    INVALID__RETAINED = 22
    """Kept by the broker from earlier, with no time in it: it says nothing of now."""
    INVALID__OUT_OF_DOMAIN = 23
    """A value that the attribute, as declared, cannot have."""

    # Understood, but not safe (or not possible) to publish.
    SUPPRESSED__OFF_GRAPH = 40
    """Further from every node than the snapping limit."""
    SUPPRESSED__SUPERSEDED = 41
    """A newer position of the device came within the same tick, or a newer part of its record
    within the same window."""
    SUPPRESSED__TOO_FEW_DEVICES = 42
    """The connected component holds fewer than k devices."""
    SUPPRESSED__REGION_TOO_LARGE = 43
    """The region would exceed the cap."""
    SUPPRESSED__OVERLOAD = 44
    """The input queue was full, or the table of devices or records was."""
    SUPPRESSED__UNVERIFIED = 45
    """Independent verification found the promise broken: counted, alerted, never published."""
    SUPPRESSED__UNDELIVERED = 46
    """The broker did not take the output (connection lost, or the drain deadline passed)."""

    SUPPRESSED__REGION_TOO_SMALL = 47
    """The component is smaller than the smallest region."""

    SUPPRESSED__NEVER_GROUPED = 48
    """The device left, or the gateway stopped, while the position waited for a group."""

    SUPPRESSED__PRIVACY_ZONE = 49
    """In a place where nothing is published."""
    SUPPRESSED__TRIP_END = 50
    """Near the beginning or the end of a trip."""

    # Of records alone.
    SUPPRESSED__TOO_MANY_WINDOWS = 51
    """It would have opened more windows than may be open: far ahead of the other sources."""
    SUPPRESSED__INCOMPLETE = 52
    """A source that is needed told nothing of the vehicle in this window."""
    SUPPRESSED__NO_CLASS = 53
    """No class with it would have kept the promise: too few vehicles, or too much alike."""
    SUPPRESSED__CUMULATIVE = 54
    """With it the classes of its vehicle, over all windows, would have told too much."""
    SUPPRESSED__REDECLARED = 55
    """The stream was declared otherwise while it waited for its window to close."""

    @property
    def label(self) -> tuple[str, str]:
        """Outcome and reason as metric labels; the reason is empty where there is only one."""
        outcome, _, reason = self.name.lower().partition("__")
        return outcome, reason
