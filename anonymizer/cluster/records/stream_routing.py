"""Which stage takes a message of records, by its topic: a stage has all of its streams."""

import re
from collections.abc import Sequence

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.route_cache import RouteCache
from anonymizer.pipeline.topic_patterns import pattern_of
from anonymizer.settings import StreamSettings
from anonymizer.settings.base import TopicFilters
from anonymizer.settings.streams import sharing

_KEPT_S = 120.0
"""A topic, which may contain the id of a vehicle, is forgotten so long after its last message."""


def together(streams: Sequence[StreamSettings]) -> list[list[int]]:
    """Return the indices of the streams of each stage, in the order of the first of each.

    Each stream has a stage of its own, but for those that may read one message, also by way of
    further streams: the message is for all of them, and goes to one stage.
    """
    place = {stream.name: i for i, stream in enumerate(streams)}
    lead = list(range(len(streams)))
    for one, another in sharing(streams):
        first, other = sorted((lead[place[one.name]], lead[place[another.name]]))
        lead = [first if each == other else each for each in lead]
    return [[i for i, of in enumerate(lead) if of == first] for first in sorted(set(lead))]


class StreamRouting:
    """Divides messages among the stages, equally in every bridge and after every restart.

    Messages that belong to no stream go to the first stage, which counts them.
    """

    def __init__(self, streams: Sequence[StreamSettings]) -> None:
        stages = together(streams)
        self.n_stages = len(stages)
        self._patterns = TopicFilters[tuple[int, re.Pattern[str]]]()
        for stage, members in enumerate(stages):
            for source in (source for i in members for source in streams[i].sources):
                topic = source.filter_topic
                self._patterns.add(topic, (stage, pattern_of(topic)))
        self._stage_of = RouteCache(self._find)

    def parts_of(self, messages: PackedDeliveries, n_stages: int) -> IntArray:
        """Return the stage of each message, shape (n,)."""
        if n_stages == 1:
            return np.zeros(len(messages), np.int64)
        stream, stage_of = messages.stream, self._stage_of
        return np.array(
            [
                stage_of[stream[start:end].decode("utf-8", "surrogatepass")]
                for start, end, *_ in messages.columns.bounds.tolist()
            ],
            np.int64,
        )

    def forget(self, *, at_s: float) -> None:
        """Forget topics that are silent, see `RouteCache.forget`."""
        self._stage_of.forget(at_s=at_s, kept_s=_KEPT_S)

    def _find(self, topic: str) -> int:
        near = self._patterns.overlapping(topic)
        return next((stage for stage, pattern in near if pattern.fullmatch(topic)), 0)
