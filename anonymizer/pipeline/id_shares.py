"""Shares of device ids: how many devices the payloads of one topic may name."""

from typing import Any


class IdShares:
    """Counts the device ids that payloads name, for each topic.

    An input that takes ids from payloads has to believe its publishers. One of them could invent so
    many devices that there is no room for those of others.

    Parameters
    ----------
    kept_s
        Ids are counted anew after so long.

    Notes
    -----
    O(1) for each id. A topic may name its share of ids before the count begins anew and as many
    afterwards, so within any `kept_s` seconds it names at most two shares.
    """

    def __init__(self, *, kept_s: float) -> None:
        self._kept_s = kept_s
        self._since_s: float | None = None
        self._ids_of: dict[bytes, set[bytes]] = {}

    def ends(self, at_s: float) -> bool:
        """Return whether the count has to begin anew at that time."""
        return self._since_s is None or at_s - self._since_s > self._kept_s

    def admits(self, topic: bytes, device: str | bytes, *, share: int, at_s: float) -> bool:
        """Return whether a topic may name a device, and count it.

        `share`: most ids of one topic.
        """
        if self.ends(at_s):
            self._ids_of.clear()
            self._since_s = at_s
        ids = self._ids_of.setdefault(topic, set())
        name = device.encode("utf-8", "surrogatepass") if isinstance(device, str) else device
        if name not in ids:
            if len(ids) >= share:
                return False
            ids.add(name)
        return True

    def state(self) -> dict[str, Any]:
        """Return the ids that have been counted."""
        ids = [(topic, sorted(of)) for topic, of in self._ids_of.items()]
        return {"since_s": self._since_s, "ids": ids}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._since_s = state["since_s"]
        self._ids_of = {topic: set(ids) for topic, ids in state["ids"]}
