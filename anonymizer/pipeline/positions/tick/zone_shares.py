"""Fair shares of limited room: who has most loses room first, so nobody crowds out others."""

from typing import NamedTuple


class ZoneHolder(NamedTuple):
    """A device, and who states its zones; keys, see `DeviceTable.key`."""

    publisher: int
    device: int


class ZoneShares:
    """A bounded number of places for devices, divided fairly among publishers.

    As long as there is room, everybody gets what they ask for. Then the publisher with most places
    yields one to whoever would still have fewer.

    Notes
    -----
    O(1) for each call. Whoever asks for no more than their equal share gets it, whatever others
    ask for and in whatever order.
    """

    def __init__(self, n_places: int) -> None:
        self._n_places = n_places
        self._n = 0
        self._most = 0
        self._of: dict[int, dict[int, None]] = {}
        """The devices of each publisher, in the order in which they came."""
        self._with: dict[int, dict[int, None]] = {}
        """Publishers, by the number of their devices."""

    def __len__(self) -> int:
        """Return the number of devices that have a place."""
        return self._n

    def has(self, held: ZoneHolder) -> bool:
        """Return whether a device has a place."""
        return held.device in self._of.get(held.publisher, ())

    def take(self, held: ZoneHolder) -> ZoneHolder | None:
        """Give a device a place; return who is left without one: it, another, or None."""
        own = len(self._of.get(held.publisher, ()))
        if self.has(held):
            return None
        left = None
        if self._n >= self._n_places:
            if own + 1 >= self._most:
                return held
            largest = next(reversed(self._with[self._most]))
            left = ZoneHolder(largest, next(reversed(self._of[largest])))
            self.leave(left)
        self._of.setdefault(held.publisher, {})[held.device] = None
        self._n += 1
        self._moved(held.publisher, own, own + 1)
        return left

    def leave(self, held: ZoneHolder) -> None:
        """Free the place of a device, if it has one."""
        if not self.has(held):
            return
        own = self._of[held.publisher]
        del own[held.device]
        self._n -= 1
        self._moved(held.publisher, len(own) + 1, len(own))
        if not own:
            del self._of[held.publisher]

    def of(self, publisher: int) -> list[ZoneHolder]:
        """Return the devices of a publisher that have a place."""
        return [ZoneHolder(publisher, device) for device in self._of.get(publisher, ())]

    def all(self) -> list[ZoneHolder]:
        """Return who has a place, in an order in which `take` restores the same state."""
        return [
            ZoneHolder(publisher, device)
            for size in sorted(self._with)
            for publisher in self._with[size]
            for device in self._of[publisher]
        ]

    def _moved(self, publisher: int, before: int, after: int) -> None:
        if before:
            del self._with[before][publisher]
            if not self._with[before]:
                del self._with[before]
        if after:
            self._with.setdefault(after, {})[publisher] = None
        if after > self._most or (before == self._most and before not in self._with):
            self._most = after
