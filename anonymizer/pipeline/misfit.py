"""Input that cannot be used at all: recognized by the counts, and reported in one sentence."""

from collections.abc import Mapping
from typing import NamedTuple

from anonymizer.domain.outcomes import Outcome

AFTER_S = 10.0
"""How long nothing must have been usable."""
_FEWEST = 2
"""One odd message at an input that is not in use is no misfit."""
_FEWEST_NOT_SELECTED = 100
"""`where` leaves much out on purpose, but rarely so many in a row."""

CAUSES: Mapping[Outcome, str] = {
    Outcome.INVALID__MALFORMED: (
        "payloads are in another format than inputs.codec says, or packed as base64 or in lines:"
        " see inputs.unpack"
    ),
    Outcome.INVALID__SCHEMA: (
        "payloads lack a field, or it has another type: inputs.codec is another format, or a path"
        " of inputs.payload or of a stream leads nowhere (a key that has dots or is a number is"
        ' written ["a.b"]), or what it leads to is JSON in a text: see inputs.unpack'
    ),
    Outcome.INVALID__NOT_A_POSITION: (
        "the topic carries other messages than positions: narrow inputs.topic"
    ),
    Outcome.INVALID__NO_FIX: "devices report that they have no position, or a path leads to null",
    Outcome.INVALID__OUT_OF_RANGE: (
        "latitude and longitude are exchanged, or not in degrees: see payload.scale"
    ),
    Outcome.INVALID__NOT_DEGREES: (
        "coordinates have minutes, a comma, or N, S, E, W in a field beside them: declare them"
        ' with codec "json", payload.scale = "ddmm", payload.lat = "lat + ns"'
    ),
    Outcome.INVALID__NULL_ISLAND: "devices report 0, 0: their receivers have no position",
    Outcome.INVALID__FUTURE_TIME: "times are of clocks that are ahead",
    Outcome.INVALID__ANCIENT_TIME: (
        "times are of a recording, of clocks that are behind, or count days or from another year"
    ),
    Outcome.INVALID__TOO_LARGE: "messages exceed limits.max_payload_bytes, or 10,000 positions",
    Outcome.INVALID__UNKNOWN_TOPIC: (
        "the broker delivers topics that no input and no source names, for example by a"
        " subscription of earlier settings that it has kept"
    ),
    Outcome.INVALID__NO_DEVICE: (
        "no id where inputs.device_from says: the level of the topic is empty, the payload states"
        " none, or it has more than 256 characters"
    ),
    Outcome.INVALID__EMPTY: "payloads are empty",
    Outcome.INVALID__RETAINED: "retained messages without a time: let devices not set the flag",
    Outcome.INVALID__OUT_OF_DOMAIN: "values are not in the declared domain of an attribute",
    Outcome.INVALID__NOT_SELECTED: (
        "no message has the values that `where` asks for; a key that has dots itself is written"
        """ '["a.b"]'"""
    ),
    Outcome.INVALID__ENCRYPTED: "messages are encrypted, and no secret in inputs.key_file fits",
    Outcome.INVALID__COMPRESSED: "payloads are compressed: say how in inputs.unpack",
    Outcome.INVALID__NO_ZONE: "times have no zone, and are not UTC: state it in payload.time_zone",
    Outcome.INVALID__TIME_IN_S: 'times are seconds: payload.time_unit = "s", or the native codec',
    Outcome.INVALID__TIME_IN_MS: 'times are milliseconds: codec "json", payload.time_unit = "ms"',
    Outcome.INVALID__TIME_IN_US: 'times are microseconds: codec "json", payload.time_unit = "us"',
    Outcome.INVALID__TIME_IN_NS: 'times are nanoseconds: codec "json", payload.time_unit = "ns"',
    Outcome.INVALID__TIME_FORM: (
        "times are in a form that is not read: let devices state unix seconds or ISO 8601, or see"
        " payload.time_unit"
    ),
    Outcome.SUPPRESSED__INACCURATE: (
        "positions are as vague as by radio masts: see inputs.max_accuracy_m"
    ),
    Outcome.SUPPRESSED__IMPLAUSIBLE_JUMP: (
        "devices seem to be faster than inputs.max_speed_mps, or several share an id"
    ),
    Outcome.SUPPRESSED__AGE_UNKNOWN: (
        "positions repeat their place with no time of their own, or one that several devices of a"
        " message share: whoever collects them should pass on when each was measured"
    ),
    Outcome.SUPPRESSED__OFF_GRAPH: (
        "positions are not on the roads of network.source, or latitude and longitude are exchanged"
    ),
}
"""What is likely to be wrong if this is the outcome of everything."""


class Misfit(NamedTuple):
    """Nothing could be used for a while."""

    reason: Outcome
    """The most frequent outcome."""
    n: int
    """How many messages or positions arrived."""

    @property
    def fields(self) -> dict[str, str | int]:
        """Fields for a line of the log."""
        return {
            "reason": "/".join(filter(None, self.reason.label)),
            "arrived": self.n,
            "likely": CAUSES[self.reason],
        }

    @property
    def public(self) -> str:
        """One sentence for everybody, without a number; empty if it would say where devices are."""
        if self.reason is Outcome.SUPPRESSED__OFF_GRAPH:
            return ""
        return f"nothing that arrives can be used, most is {self.kind}: {CAUSES[self.reason]}"

    @property
    def kind(self) -> str:
        """The outcome in words."""
        return " ".join(filter(None, self.reason.label)).replace("_", " ")


class MisfitWatch:
    """Watches the counts of one flow. It reports once, and again only after something was usable.

    `after_s`: how long nothing must have been usable.
    """

    def __init__(self, *, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._since: tuple[float, Mapping[Outcome, int], int] | None = None
        self._reported = False
        self.misfit: Misfit | None = None
        """The misfit that was reported last, until something is usable."""

    def see(self, counts: Mapping[Outcome, int], *, n_held: int, at_s: float) -> Misfit | None:
        """Take in counts; return a misfit when it is one.

        Parameters
        ----------
        counts
            How many had each final outcome, since any time.
        n_held
            How many were accepted and wait.
        """
        n_usable = n_held + sum(n for outcome, n in counts.items() if outcome not in CAUSES)
        if self._since is None or n_usable != self._since[2]:
            self._since, self._reported = (at_s, dict(counts), n_usable), False
            self.misfit = None
            return None
        began_s, before, _ = self._since
        n_of = {o: n - before.get(o, 0) for o, n in counts.items() if o in CAUSES}
        n = sum(n_of.values())
        if not n:  # silence is no misfit
            self._since = at_s, before, n_usable
            return None
        reason = max(n_of, key=n_of.__getitem__)
        is_chosen = reason is Outcome.INVALID__NOT_SELECTED
        fewest = _FEWEST_NOT_SELECTED if is_chosen else _FEWEST
        if self._reported or n < fewest or at_s - began_s < self._after_s:
            return None
        self._reported = True
        self.misfit = Misfit(reason, n)
        return self.misfit
