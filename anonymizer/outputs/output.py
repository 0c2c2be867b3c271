"""Outputs: what is published of devices besides groups, window by window.

A *watch* sees the positions of its source tick by tick, and states what it has seen of a window
once nothing of it can follow. A *publisher* makes messages of what all sources state of a window.
One process is one source: it hands on what is stated in memory. In a cluster every source has a
watch, and stages move what is stated to the one publisher.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import structlog

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.told_times import ToldTimes
from anonymizer.outputs.message_kind import Channel
from anonymizer.outputs.promised import Promised
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.intake import LocatedPositions

if TYPE_CHECKING:
    from anonymizer.outputs.counts.private_counts import Budget
    from anonymizer.settings import Settings

_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
PUBLISHED, UNVERIFIED, OVERLOAD, REPEATED = "", "unverified", "overload", "repeated"
"""Why a window is suppressed: it is not; it failed the check before publishing; there was too much
to remember; the clock was put back, and something was published of its time before."""


@discreet
class SeenTick(NamedTuple):
    """A tick, as a watch sees it."""

    located: LocatedPositions
    """The positions of mobile devices."""
    zones: DeviceZones | None
    """What devices have stated; None: they state nothing."""
    ahead_s: float
    """To be added to times, so that they are those of the clock by which devices date."""


@discreet
class StatedWindow(NamedTuple):
    """What a watch has seen of a window that has ended."""

    window: int
    """Its number."""
    content: Any
    """Of the output's own kind; None: the watch did not see all of it."""


class HeldFile(NamedTuple):
    """A file that is served over HTTP until that of a later window is there."""

    name: str
    window: int
    content: bytes


class Made(NamedTuple):
    """What a publisher makes of a window; `why`: it is suppressed, empty: it is not."""

    messages: Sequence[Outgoing | HeldFile]
    why: str = PUBLISHED


class Figure(NamedTuple):
    """A metric of an output: how much was published, and how much suppressed for which reason.

    Outputs may share one; then their numbers are added up.
    """

    name: str
    text: str
    reasons: Sequence[str]


class Watch(Protocol):
    """Sees the positions of one source, and states each window once, when it has ended."""

    def see(self, seen: SeenTick) -> Sequence[StatedWindow]:
        """Take in a tick, before its slots pass to other devices; return windows that ended."""

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""

    def adopt(self, settings: "Settings") -> None:
        """Promise what these settings ask for from now on; of no window less than before."""

    def state(self) -> Any:  # noqa: ANN401  anything that can be packed
        """Return what changes from tick to tick. It holds where devices are."""

    def restore(self, state: Any) -> None:  # noqa: ANN401  see `state`
        """Go on from a state."""


class Publisher(ABC):
    """Makes messages of windows of which all sources have stated what they saw."""

    unseen: ClassVar[str] = "unseen"
    """Why a window is suppressed of which a source has not seen all."""

    def __init__(self, name: str, *, every_s: float) -> None:
        self.name = name
        """Of the output."""
        self._every_s = every_s
        self.n_windows: Counter[str] = Counter()
        """Windows so far, by why they were suppressed, empty if they were published."""
        self._told = ToldTimes()

    def publish(
        self, window: int, contents: Sequence[Any], *, ahead_s: float = 0.0
    ) -> Sequence[Outgoing | HeldFile]:
        """Return the messages about a window, and count it; `ahead_s`: see `SeenTick`."""
        made = Made((), self.unseen)
        if all(each is not None for each in contents):
            made = self._made_once(window, contents, ahead_s=ahead_s)
        self.n_windows[made.why] += 1
        if made.why in {UNVERIFIED, OVERLOAD}:
            _LOG.error("a window is not published", output=self.name, reason=made.why)
        return made.messages

    def _made_once(self, window: int, contents: Sequence[Any], *, ahead_s: float) -> Made:
        starts_s, ends_s = self.shown_span(window, ahead_s)
        if not self._told.take(starts_s, ends_s):
            return Made((), REPEATED)
        return self.make(window, contents, ahead_s=ahead_s)

    def shown_span(self, window: int, ahead_s: float) -> tuple[float, float]:
        """Return between which times a window is, as readers see it; unix seconds."""
        starts_s = window * self._every_s + ahead_s
        return starts_s, starts_s + self._every_s

    def held_until(self, now: float) -> float | None:
        """Return until when times were published already; None: no later than now.

        `now`: the wall clock, which was put back if it is earlier.
        """
        until_s = self._told.until_s
        return until_s if until_s > now else None

    @abstractmethod
    def make(self, window: int, contents: Sequence[Any], *, ahead_s: float) -> Made:
        """Return what is published of a window, given what sources have stated of it."""

    @property
    def n_of(self) -> Mapping[str, int]:
        """What the figure of the output tells, by reason."""
        return self.n_windows

    def adopt(self, settings: "Settings") -> None:  # noqa: B027  some promise the same for ever
        """Promise what these settings ask for from now on."""

    def close(self) -> None:  # noqa: B027  few keep anything on disk
        """Leave to others what is kept on disk; after the last tick."""

    def state(self) -> Any:  # noqa: ANN401  anything that can be packed
        """Return what changes from window to window."""
        return dict(self.n_windows)

    def restore(self, state: Any) -> None:  # noqa: ANN401  see `state`
        """Go on from a state."""
        self.n_windows.update(state)


class Output(ABC):
    """One output under some settings, on a network with coordinates."""

    name: ClassVar[str]
    """Unique, for metrics and states."""
    figure: ClassVar[Figure]
    """The metric of its publisher."""
    most_waiting: ClassVar[int]
    """Windows that wait for a source which has not stated them."""
    is_slow: ClassVar[bool] = False
    """Whether its publisher may work for seconds."""
    path: ClassVar[str] = ""
    """Under which its newest file is served over HTTP; empty: it makes none."""
    what: ClassVar[str] = ""
    """What the file tells."""

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:
        self.settings, self.network = settings, network

    # Known from the settings alone.

    @staticmethod
    @abstractmethod
    def every_s(settings: "Settings") -> float:
        """Return the length of a window."""

    @staticmethod
    def delay_s(settings: "Settings") -> float:  # noqa: ARG004  see `every_s`
        """Return how long after the end of a window something of it may still follow."""
        return 0.0

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:  # noqa: ARG004  some have none
        """Yield its topics."""
        yield from ()

    @staticmethod
    @abstractmethod
    def promises(settings: "Settings") -> Iterator[Promised]:
        """Yield what it promises, in words."""

    @staticmethod
    @abstractmethod
    def kept(settings: "Settings") -> Mapping[str, str]:
        """Return how long what is kept for it, in words."""

    @staticmethod
    @abstractmethod
    def meaning(settings: "Settings") -> Mapping[str, Any]:
        """Return the settings without which the states of its watches cannot be understood."""

    # How it works.

    @abstractmethod
    def watch(self, *, keys: Keys, kept_s: float, n_sources: int = 1) -> Watch:
        """Return the watch of a source.

        Parameters
        ----------
        keys
            Returns a number for the device of each slot, the same in every source.
        kept_s
            A device that has been silent for longer is absent.
        n_sources
            Sources whose statements one publisher takes together.
        """

    @abstractmethod
    def publisher(self, *, secret: bytes, budget: "Budget | None" = None) -> Publisher:
        """Return the publisher.

        Parameters
        ----------
        secret
            Of thresholds.
        budget
            Of differential privacy, kept on disk; None: the publisher keeps it in its state.
        """

    def retained(self, part_bytes: Callable[[str], int]) -> list[Outgoing]:  # noqa: ARG002  some retain nothing
        """Return what is retained beside its messages; it depends on the network alone.

        `part_bytes`: returns the largest payload for a topic.
        """
        return []

    def packed(self, content: Any) -> Iterator[Any]:  # noqa: ANN401  of its own kind
        """Yield a content in pieces that Kafka takes, made of what msgpack knows and of arrays."""
        yield content

    def unpacked(self, piece: Any) -> Any:  # noqa: ANN401  of its own kind
        """Return what a piece was made of.

        Raises `ValueError` if it is none.
        """
        return piece
