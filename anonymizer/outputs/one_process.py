"""The outputs of one process: what a watch states is published from memory."""

from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.copies import Copies
from anonymizer.outputs.output import (
    Figure,
    HeldFile,
    Output,
    Publisher,
    SeenTick,
    StatedWindow,
    Watch,
)
from anonymizer.outputs.registry import asked_for
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.intake import LocatedPositions

if TYPE_CHECKING:
    from anonymizer.outputs.counts.private_counts import Budget
    from anonymizer.settings import Settings


class Outputs:
    """All outputs that some settings ask for, of the devices of one process.

    Slow ones are published when somebody calls `publish_slow`, in any thread; the rest within the
    tick.

    Parameters
    ----------
    network
        With coordinates.
    secret
        Of thresholds.
    budget
        See `Output.publisher`.
    """

    def __init__(
        self,
        settings: "Settings",
        network: RoadNetwork,
        *,
        secret: bytes,
        budget: "Budget | None" = None,
    ) -> None:
        outputs = [each(settings, network) for each in asked_for(settings)]
        self.are_slow = any(each.is_slow for each in outputs)
        """Whether one of them is slow."""
        self.files: dict[str, HeldFile] = {}
        """The newest file of each name."""
        self._publisher_of: dict[Output, Publisher] = {
            each: each.publisher(secret=secret, budget=budget) for each in outputs
        }
        self._copies = Copies(settings, network)
        self._watch_of: dict[Output, Watch] = {}
        self._slow: SimpleQueue[tuple[Publisher, StatedWindow, float]] = SimpleQueue()

    def begin(self, *, keys: Keys, kept_s: float) -> None:
        """Begin to watch devices; see `Output.watch`."""
        self._watch_of = {each: each.watch(keys=keys, kept_s=kept_s) for each in self._publisher_of}

    def tick(
        self,
        located: LocatedPositions,
        freed: Int32Array,
        *,
        zones: DeviceZones | None,
        ahead_s: float,
    ) -> list[Outgoing]:
        """Take in a tick; return the messages about windows that have ended."""
        seen, found = SeenTick(located, zones, ahead_s), list[Outgoing]()
        for output, watch in self._watch_of.items():
            publisher = self._publisher_of[output]
            for stated in watch.see(seen):
                if output.is_slow:
                    self._slow.put((publisher, stated, ahead_s))
                else:
                    found += self._published(publisher, stated, ahead_s)
            watch.free(freed)
        return found

    def copies(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the copies of messages about groups and public devices."""
        return self._copies.of(messages)

    def publish_slow(self) -> bool:
        """Publish a window of a slow output; return whether there was one."""
        if self._slow.empty():
            return False
        self._published(*self._slow.get())
        return True

    def _published(
        self, publisher: Publisher, stated: StatedWindow, ahead_s: float
    ) -> Sequence[Outgoing]:
        made = publisher.publish(stated.window, [stated.content], ahead_s=ahead_s)
        self.files |= {each.name: each for each in made if isinstance(each, HeldFile)}
        return [each for each in made if isinstance(each, Outgoing)]

    def held_until(self, now: float) -> Mapping[str, float]:
        """Return until when each output tells nothing, as those times were published already.

        `now`: the wall clock, unix seconds; outputs that it does not hold back are left out.
        """
        until = {each.name: each.held_until(now) for each in self._publisher_of.values()}
        return {name: until_s for name, until_s in until.items() if until_s is not None}

    def newest(self, name: str) -> bytes | None:
        """Return the newest file of an output; None: there is none."""
        file = self.files.get(name)
        return None if file is None else file.content

    def figures(self) -> Mapping[Figure, Mapping[str, int]]:
        """Return what each figure tells, by reason."""
        found: dict[Figure, dict[str, int]] = {}
        for output, publisher in self._publisher_of.items():
            n_of = found.setdefault(output.figure, dict.fromkeys(output.figure.reasons, 0))
            for reason in n_of:
                n_of[reason] += publisher.n_of.get(reason, 0)
        return found

    def adopt(self, settings: "Settings") -> None:
        """Apply other settings, as far as `settings.reload` lets them change."""
        for watch in self._watch_of.values():
            watch.adopt(settings)
        for publisher in self._publisher_of.values():
            publisher.adopt(settings)

    def close(self) -> None:
        """Leave to others what is kept on disk; after the last tick."""
        for each in self._publisher_of.values():
            each.close()
