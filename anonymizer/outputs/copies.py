"""Copies: what is made of published messages and of what is public, and of nothing else.

Whoever has these can write a copy, so it tells nothing more. It counts for no position: only the
message that it is made of does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.message_kind import Channel
from anonymizer.outputs.registry import copies_asked_for
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings


class Copy(ABC):
    """One kind of copies under some settings, on a network with coordinates."""

    name: ClassVar[str]
    """Unique."""

    @abstractmethod
    def __init__(self, settings: "Settings", network: RoadNetwork) -> None: ...

    @staticmethod
    @abstractmethod
    def channels(settings: "Settings") -> Iterator[Channel]:
        """Yield its topics."""

    @abstractmethod
    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the copies of messages about groups and public devices, in their order."""

    @staticmethod
    def retained(
        settings: "Settings",  # noqa: ARG004  few retain anything
        network: RoadNetwork,  # noqa: ARG004
        part_bytes: Callable[[str], int],  # noqa: ARG004
    ) -> list[Outgoing]:
        """Return what is retained beside its messages, see `Output.retained`."""
        return []


class Copies:
    """All copies that some settings ask for."""

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:
        self._copies: list[Copy] = [each(settings, network) for each in copies_asked_for(settings)]

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the copies of messages, kind by kind."""
        return [made for each in self._copies for made in each.of(messages)]
