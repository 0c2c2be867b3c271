"""Traffic by street: how many devices passed on each street in an hour, and how fast."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.live_passages import MOST_PASSAGES
from anonymizer.algorithms.positions.street_hours import PassageSums, together
from anonymizer.errors import GuaranteeError
from anonymizer.files.feature_collection import feature_collection
from anonymizer.outputs.counts import INTERVALS
from anonymizer.outputs.output import OVERLOAD, UNVERIFIED, HeldFile, Made, Output, Publisher
from anonymizer.outputs.pieces import cut
from anonymizer.outputs.promised import Promised
from anonymizer.outputs.streets.street_hours import StreetFinder, Streets, safe_hours, streets_of
from anonymizer.outputs.streets.street_watch import StatedPassages, StreetWatch
from anonymizer.outputs.windows import promised_k

if TYPE_CHECKING:
    from anonymizer.outputs.counts.private_counts import Budget
    from anonymizer.settings import Settings

_PASSAGE_BYTES = 32


class StreetsPublisher(Publisher):
    """Makes the file of each hour."""

    unseen = OVERLOAD

    def __init__(self, settings: "Settings", streets: Streets, *, secret: bytes) -> None:
        super().__init__("streets", every_s=settings.counts.streets_s)
        self._streets, self._secret = streets, secret
        self.adopt(settings)

    def adopt(self, settings: "Settings") -> None:
        """Promise the k of these settings from now on."""
        self._k, self._k_extra = promised_k(settings), settings.region.k_extra

    def shown_span(self, window: int, ahead_s: float) -> tuple[float, float]:  # noqa: ARG002  they are of the wall clock
        """Return between which times an hour is; unix seconds."""
        return super().shown_span(window, 0.0)

    def make(self, window: int, contents: Sequence[StatedPassages], *, ahead_s: float) -> Made:  # noqa: ARG002  the times are in the passages
        """Return the file of an hour, as GeoJSON."""
        passages = together([each.passages for each in contents])
        try:
            shown = safe_hours(
                passages.passages(),
                range(window, window + 1),
                self._streets,
                k=max(self._k, *(each.k for each in contents)),
                every_s=self._every_s,
                secret=self._secret if self._k_extra else None,
            )
        except GuaranteeError:
            return Made((), UNVERIFIED)
        return Made([HeldFile(self.name, window, feature_collection(*shown))])


class StreetsOutput(Output):
    """Traffic by street."""

    name = "streets"
    figure = INTERVALS
    most_waiting = 3
    is_slow = True
    path = "/api/streets"
    what = "Devices and speeds on streets in the hour that ended last, as a FeatureCollection."

    @staticmethod
    def every_s(settings: "Settings") -> float:
        """Return the length of an hour."""
        return settings.counts.streets_s

    @staticmethod
    def delay_s(settings: "Settings") -> float:
        """Return the time in which devices can still say how fast they left an hour."""
        return settings.presence.ttl_s + settings.oldest_s

    @staticmethod
    def promises(settings: "Settings") -> Iterator[Promised]:
        """Yield what traffic by street promises."""
        yield Promised(
            "traffic by street of the last hour",
            "HTTP",
            f"at least {promised_k(settings)} devices in each figure, and none told on a road with"
            " fewer",
            "differential privacy",
            "counts",
        )

    @staticmethod
    def kept(settings: "Settings") -> Mapping[str, str]:
        """Return how long passages are kept."""
        every_s = StreetsOutput.every_s(settings)
        return {"passages": f"in memory, until their window of {every_s:g} s is published"}

    @staticmethod
    def meaning(settings: "Settings") -> Mapping[str, Any]:
        """Return what an hour is."""
        return {"counts.streets_s": settings.counts.streets_s}

    @cached_property
    def _streets(self) -> Streets:
        return streets_of(self.network)

    @cached_property
    def _finder(self) -> StreetFinder:
        limit_m = self.settings.network.snap_limit_m
        return StreetFinder(self.network, self._streets, limit_m=limit_m)

    def watch(self, *, keys: Keys, kept_s: float, n_sources: int = 1) -> StreetWatch:  # noqa: ARG002  see `Output`
        """Return what adds up the passages of a source."""
        # So that one publisher has room for what all sources state.
        most = MOST_PASSAGES // n_sources
        delay_s = self.delay_s(self.settings)
        return StreetWatch(self.settings, self._finder, keys, most=most, delay_s=delay_s)

    def publisher(self, *, secret: bytes, budget: "Budget | None" = None) -> StreetsPublisher:  # noqa: ARG002  see `Output`
        """Return what makes the files."""
        return StreetsPublisher(self.settings, self._streets, secret=secret)

    def packed(self, content: StatedPassages | None) -> Iterator[list[Any] | None]:
        """Yield the passages of an hour in pieces."""
        if content is None:
            yield None
            return
        k, passages = content
        for first, end in cut(np.full(passages.key.shape[1], _PASSAGE_BYTES)):
            (interval, road, device), sums = passages.at(slice(first, end))
            yield [k, interval.astype(np.int32), road.astype(np.int32), device, *sums]

    def unpacked(self, piece: list[Any] | None) -> StatedPassages | None:
        """Return some of the passages of an hour."""
        if piece is None:
            return None
        k, interval, road, device, *sums = piece
        key = np.stack([each.astype(np.int64) for each in (interval, road, device)])
        if not isinstance(k, int) or len(sums) != 2 or len(sums[0]) != key.shape[1]:
            raise ValueError("these are no passages")
        return StatedPassages(k, PassageSums(key, np.stack(sums)))


OUTPUT = StreetsOutput
