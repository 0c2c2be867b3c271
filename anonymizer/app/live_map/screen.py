"""The analyst's view: the newest published message about each pseudonym.

It receives the published messages and nothing else, so it cannot show more than is published.
Without viewers it keeps the newest messages unread, so that the map is full when it is opened.

When a group ends, nobody publishes where it was until new groups are due. Its last region is kept
for so long, marked as ended: until newer regions cover it, or for `ENDED_KEPT_S` at most.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from anonymizer.app.live_map.rates import RateMeter
from anonymizer.domain.network import NodeIndex, NodeNames
from anonymizer.pipeline.ports import Link, LinkInFront, Outgoing
from anonymizer.pipeline.positions.tick.flow import PositionFlow

MOST_MESSAGES = 5000
"""Most messages that are read for a frame, the newest ones."""
MOST_REGIONS = 3000
MOST_NODES = 60_000
"""Most regions of a frame and nodes of these, the newest ones; it also states their number."""

ENDED_KEPT_S = 60.0
"""How long the last region of a group that ended is shown at most; the page says so, too."""
_FIRST_KEPT_S = 5.0
_LEAST_KEPT_S = 2.0
_GAPS_KEPT = 3.0
"""A message that does not say until when it holds is shown for this many times the usual gap."""
_GRACE_S = 1.0
"""The next release of a group may be so much later than the end of the one before."""
_INERTIA = 0.8
"""Weight of the previous estimate of the usual gap, from frame to frame."""

Row: TypeAlias = tuple[str, int, int, float, float, list[int], float | None]
"""One pseudonym of the region, k, number of pseudonyms, seconds since the first and since the
last message about it, nodes, and seconds since it ended (None: it lives)."""


class _Message(msgspec.Struct, frozen=True):
    """A message about a group, or about one device."""

    k: int
    region: list[int | str]
    time: float = 0.0
    until: float = 0.0
    pseudonyms: list[str] = []
    pseudonym: str = ""


class _Shown(msgspec.Struct, frozen=True, eq=False):
    """A region as last published."""

    k: int
    names: list[str]
    nodes: list[int | str]
    at_s: float
    held_s: float
    """How long it holds; 0: unknown."""


_Life: TypeAlias = tuple[float, _Shown]
"""Time of the first message about a pseudonym, and its newest region."""


class AnalystView:
    """The newest published regions of one flow.

    `silent`: see `RateMeter`.
    """

    def __init__(
        self,
        mode: str,
        node_id: NodeNames,
        flow: PositionFlow,
        *,
        monotonic: Callable[[], float],
        silent: Callable[[], str] | None = None,
    ) -> None:
        self.mode = mode
        self.pulse = RateMeter(flow, silent=silent)
        self.node_id = node_id
        self._monotonic = monotonic
        self._fresh: deque[tuple[float, bytes]] = deque(maxlen=MOST_MESSAGES)
        self._decode = msgspec.json.Decoder(_Message).decode
        self._life_of: dict[str, _Life] = {}
        self._ended: dict[_Shown, float] = {}
        """Last regions of groups that ended, and the times of the first ones."""
        self._gap_s = _FIRST_KEPT_S / _GAPS_KEPT

    def see(self, messages: Iterable[Outgoing]) -> None:
        """Take in published messages."""
        at_s = self._monotonic()
        self._fresh.extend((at_s, message.payload) for message in messages)

    def rows(self) -> tuple[list[Row], int]:
        """Return the regions to draw, newest first and ended ones last, and how many live."""
        now_s = self._monotonic()
        self._take_in()
        living = self._living(now_s)
        first_s_of = living | self._ended
        order = [sorted(part, key=lambda shown: -shown.at_s) for part in (living, self._ended)]
        drawn = [*order[0], *order[1]][:MOST_REGIONS]
        sizes = accumulate(len(shown.nodes) for shown in drawn)
        drawn = drawn[: sum(size <= MOST_NODES for size in sizes)]
        nodes_of = dict(zip(drawn, self._nodes_of([shown.nodes for shown in drawn]), strict=True))
        for shown in self._covered(nodes_of):
            del self._ended[shown], nodes_of[shown]
        rows = [
            (
                shown.names[0],
                shown.k,
                len(shown.names),
                round(now_s - first_s_of[shown], 1),
                round(now_s - shown.at_s, 1),
                nodes,
                round(now_s - shown.at_s - shown.held_s, 1) if shown in self._ended else None,
            )
            for shown, nodes in nodes_of.items()
        ]
        return rows, len(living)

    def _living(self, now_s: float) -> dict[_Shown, float]:
        """Return regions that hold, with the time of their first message; put the others aside."""
        usual_s = max(_LEAST_KEPT_S, _GAPS_KEPT * self._gap_s)
        # A region is drawn while it is the newest one of any of its pseudonyms.
        first_s_of: dict[_Shown, float] = {}
        lasting: dict[str, _Life] = {}
        for name, (first_s, shown) in self._life_of.items():
            if shown.at_s + (shown.held_s or usual_s) > now_s:
                lasting[name] = first_s, shown
                first_s_of[shown] = min(first_s, first_s_of.get(shown, first_s))
            elif shown.held_s:
                self._ended[shown] = min(first_s, self._ended.get(shown, first_s))
        self._life_of = lasting
        self._ended = {
            shown: first_s
            for shown, first_s in self._ended.items()
            if shown.at_s + shown.held_s + ENDED_KEPT_S > now_s
        }
        return first_s_of

    def _covered(self, nodes_of: Mapping[_Shown, list[int]]) -> list[_Shown]:
        """Return those of the regions that ended whose every node is in newer regions."""
        if not self._ended:
            return []
        told_s = np.full(len(self.node_id), -np.inf)
        for shown, nodes in nodes_of.items():
            told_s[nodes] = np.maximum(told_s[nodes], shown.at_s)
        return [
            shown
            for shown, nodes in nodes_of.items()
            if shown in self._ended and (told_s[nodes] > shown.at_s).all()
        ]

    def _take_in(self) -> None:
        """Read the messages since the last frame, newest first; older ones are outdated."""
        done: set[str] = set()
        alike: dict[tuple[float, tuple[int | str, ...]], _Shown] = {}
        gaps: list[float] = []
        while self._fresh:
            at_s, payload = self._fresh.pop()
            message = self._decode(payload)
            names = message.pseudonyms or [message.pseudonym]
            if done.issuperset(names):
                continue
            held_s = message.until - message.time + _GRACE_S if message.until else 0.0
            shown = _Shown(message.k, names, message.region, at_s, held_s)
            if message.pseudonym:
                # One message per device: those of one tick and one region belong to a group.
                shown = alike.setdefault((at_s, tuple(message.region)), shown)
                if shown.names is not names:
                    shown.names.append(message.pseudonym)
            for name in names:
                if name not in done:
                    before = self._life_of.get(name)
                    self._life_of[name] = (at_s if before is None else before[0], shown)
                    if before is not None:
                        gaps.append(at_s - before[1].at_s)
            done.update(names)
        if gaps:
            usual = float(np.percentile(gaps, 90))
            self._gap_s = _INERTIA * self._gap_s + (1 - _INERTIA) * usual

    @cached_property
    def _nodes(self) -> NodeIndex:
        """Built for the first viewer."""
        return NodeIndex(self.node_id)

    def _nodes_of(self, regions: Sequence[Sequence[int | str]]) -> list[list[int]]:
        """Return the indices of the nodes of each region, of all regions in one look-up."""
        names: NDArray[Any] = np.array(list(chain.from_iterable(regions)), self.node_id.dtype)
        nodes = self._nodes.find(names).tolist()
        bounds = accumulate((len(region) for region in regions), initial=0)
        return [nodes[start:end] for start, end in pairwise(bounds)]


See: TypeAlias = Callable[[Sequence[Outgoing]], None]


class AnalystLink(LinkInFront):
    """A link that shows the messages published to one topic, as a subscriber would see them."""

    def __init__(self, link: Link, *see: See, topic: str) -> None:
        super().__init__(link)
        self._see = see
        self._topic = topic

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch; show the messages that were published."""
        delivered = await self._link.publish(messages, qos=qos, timeout_s=timeout_s)
        shown = [
            message
            for message, out in zip(messages, delivered, strict=True)
            if out and message.topic == self._topic
        ]
        for see in self._see:
            see(shown)
        return delivered
