"""Traffic by street over several sources: each adds up its devices, and one district publishes.

When an hour has ended, a source states the passages of its devices by their keys. The district puts
those of all sources together, so that k counts distinct devices of all, and publishes the hour when
every source has stated it. It leaves out an hour of which a source had no room for all passages.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import structlog

from anonymizer.algorithms.positions.street_hours import PassageSums, together
from anonymizer.app.gateway.live_streets import EndedHour, hour_file
from anonymizer.app.street_hours import Streets
from anonymizer.cluster.positions.source_windows import (
    SourceWindows,
    WindowPiece,
    cut,
    decode_piece,
    encode_piece,
)
from anonymizer.cluster.published_streets import file_parts
from anonymizer.cluster.stage import Send
from anonymizer.errors import GuaranteeError
from anonymizer.pipeline.positions.out.trips import promised_k
from anonymizer.settings import Settings

PASSAGES, LAST_PASSAGES = b"S", b"L"
"""First byte of an encoded piece of an hour, and of the last one of a source."""
STREETS_LANE = 0
"""The district that publishes the hours."""
_PASSAGE_BYTES = 32
_MOST_WAITING = 3
"""Hours that wait for a source."""


class StatedPassages(NamedTuple):
    """Some of the passages of an hour: see `EndedHour`."""

    k: int
    passages: PassageSums | None


def stated_hour(source: int, hour: EndedHour) -> Iterator[bytes]:
    """Yield what a source says of an hour, encoded, in pieces that Kafka takes; at least one."""
    n = 0 if hour.passages is None else hour.passages.key.shape[1]
    for piece, first, end, is_last in cut(np.full(n, _PASSAGE_BYTES)):
        some = None
        if hour.passages is not None:
            some = hour.passages.at(slice(first, end))
        stated = WindowPiece(source, hour.number, piece, is_last, StatedPassages(hour.k, some))
        yield encode_piece(LAST_PASSAGES if is_last else PASSAGES, stated, _packed)


def decode_passages(value: bytes, *, n_sources: int) -> WindowPiece[StatedPassages]:
    """Return the piece that was encoded.

    Raises
    ------
    ValueError
        If it is not of one of so many sources.
    """
    return decode_piece(value, _unpacked, n_sources=n_sources)


def is_whole_hour(value: bytes) -> bool:
    """Return whether a lane may work for seconds on an input: it may publish an hour."""
    return value[:1] == LAST_PASSAGES


def _packed(stated: StatedPassages) -> list[Any]:
    if stated.passages is None:
        return [stated.k]
    (interval, road, device), sums = stated.passages
    return [stated.k, interval.astype(np.int32), road.astype(np.int32), device, *sums]


def _unpacked(packed: list[Any]) -> StatedPassages:
    k, *columns = packed
    if not columns:
        return StatedPassages(k, None)
    interval, road, device, *sums = columns
    key = np.stack([each.astype(np.int64) for each in (interval, road, device)])
    if not isinstance(k, int) or len(sums) != 2 or len(sums[0]) != key.shape[1]:
        raise ValueError("these are no passages")
    return StatedPassages(k, PassageSums(key, np.stack(sums)))


class LaneStreets:
    """Joins the passages of all sources, and makes the file of each hour.

    Parameters
    ----------
    settings
        The whole settings.
    streets
        The roads of the network.
    secret
        Of the thresholds.

    Attributes
    ----------
    n_published, n_unverified
        Hours so far that were published, and those that failed the check before publishing.
    """

    def __init__(
        self, settings: Settings, streets: Streets, *, secret: bytes | None = None
    ) -> None:
        self._k = promised_k(settings)
        self._every_s, self._streets = settings.counts.streets_s, streets
        self._windows = SourceWindows(
            settings.cluster.n_parts,
            most_waiting=_MOST_WAITING,
            packed=_packed,
            unpacked=_unpacked,
        )
        self._secret = secret if settings.region.k_extra else None
        self.n_published = self.n_unverified = self._n_crowded = 0

    @property
    def n_suppressed(self) -> int:
        """Hours left out: not stated in time, with too many passages, or that failed the check."""
        return self._windows.n_suppressed + self._n_crowded + self.n_unverified

    def take(self, stated: WindowPiece[StatedPassages]) -> Iterator[Send]:
        """Take in a piece; yield the files of all hours that every source has stated."""
        for number, said in self._windows.take(stated):
            parts = [each.passages for each in said if each.passages is not None]
            if len(parts) < len(said):
                self._n_crowded += 1
                continue
            k = max(self._k, *(each.k for each in said))
            try:
                content = hour_file(
                    EndedHour(number, k, together(parts)),
                    self._streets,
                    every_s=self._every_s,
                    secret=self._secret,
                )
            except GuaranteeError:
                self.n_unverified += 1
                _LOG.error("an hour of streets is not published", reason="unverified")
                continue
            self.n_published += 1
            yield from (Send("streets", 0, each) for each in file_parts(number, content))

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece. It holds where devices were."""
        counts = [self.n_published, self.n_unverified, self._n_crowded]
        return {"windows": self._windows.state(), "counts": counts}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._windows.restore(state["windows"])
        self.n_published, self.n_unverified, self._n_crowded = state["counts"]


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
