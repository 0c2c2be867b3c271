"""Queries over a stream, answered from its published releases alone."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf
from threading import Lock
from typing import Any

import msgspec

from anonymizer.algorithms.kaca.coarsening import Cell, Ladder, Total, add_up
from anonymizer.algorithms.records.generalized_values import (
    JoinableValue,
    Language,
    Node,
    Span,
    from_json,
    text,
)
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import mean_of
from anonymizer.pipeline.records.store_port import PublishedWindow, ReleaseStore
from anonymizer.settings.stream_attributes import COUNT_FIELD, TRUCKS_FIELD

MOST_RELEASES = 1000
"""Greatest number of releases in one answer."""
MOST_CELLS = 100_000
"""Greatest number of cells kept in memory between queries, about 100 MB."""
_EPOCH = date(1970, 1, 1)
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query.

    `cells`: each of k distinct vehicles or more, in the order of their values; `n_records`: of all
    windows, published or not; `releases`: those that it is made of, oldest first.
    """

    cells: Sequence[Cell]
    k: int
    n_records: int
    releases: Sequence[PublishedWindow]

    @property
    def n_published(self) -> int:
        """Records in its cells."""
        return sum(cell.n_records for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer.

    `too_fine`: whether it would reveal more than was published; otherwise the query is invalid.
    """

    sentence: str
    too_fine: bool = False


class _Class(msgspec.Struct):
    """A published class."""

    k: int
    count: int
    own: int
    qis: dict[str, dict[str, Any]]
    measures: dict[str, dict[str, float] | None] = {}


class Queries:
    """Answers from the releases of one stream of the model `kaca`; from any thread.

    Every answer is made by joining and adding up published classes, see
    `anonymizer.algorithms.kaca.coarsening`.
    """

    def __init__(self, stream: Stream, store: ReleaseStore) -> None:
        self.stream = stream
        self.store = store
        self._decoder = msgspec.json.Decoder(_Class)
        self._known: OrderedDict[tuple[int, float], _Published] = OrderedDict()
        self._n_cells = 0
        self._lock = Lock()

    @property
    def k(self) -> int:
        """The least k that can be requested at present."""
        return self.stream.promise.k

    def answer(self, first: date | None, last: date | None, k: int | None) -> Answer | Refusal:
        """Return the answer for the local days from `first` to `last`, inclusive.

        `k`: least number of distinct vehicles in a cell; None: the least that can be requested.
        """
        if first is not None and last is not None and last < first:
            return Refusal("end_date must not be before start_date.")
        start = -inf if first is None else self._begins(first)
        end = inf if last is None else self._begins(last) + _DAY_S
        name = self.stream.settings.name
        releases = self.store.within(name, start=start, end=end, limit=MOST_RELEASES + 1)
        if len(releases) > MOST_RELEASES:
            return Refusal(
                f"The dates span more than {MOST_RELEASES} releases; ask for a shorter time."
            )
        least = max([self.k, *(release.k for release in releases)])
        if k is None:
            k = least
        elif k < least:
            return Refusal(
                f"k = {k} is below {least}, the k that these data were released with: classes can"
                " be joined to larger ones, not split.",
                too_fine=True,
            )
        cells: list[Cell] = []
        whole = []
        for release in releases:
            published = self._published(release)
            if published is not None:
                whole.append(release)
                cells += published.of(k)
        return Answer(add_up(cells), k, sum(r.n_records for r in whole), whole)

    def row(self, cell: Cell, language: Language) -> dict[str, str | int | float | None]:
        """Return the values of a cell, by the field names of messages."""
        row: dict[str, str | int | float | None] = {
            qi.name: text(value, language)
            for qi, value in zip(self.stream.schema.qis, cell.values, strict=True)
        }
        row[TRUCKS_FIELD] = self.stream.settings.n_trucks(cell.n_persons)
        row[COUNT_FIELD] = cell.n_persons
        for measure, total in zip(self.stream.measures, cell.totals, strict=True):
            row[measure.name] = mean_of(total)
        return row

    def _begins(self, day: date) -> float:
        return (day - _EPOCH).days * _DAY_S - self.stream.settings.utc_offset_h * 3600

    def _published(self, release: PublishedWindow) -> "_Published | None":
        """Return the cells of a release; None if it is being erased or was declared differently."""
        key = (release.window, release.closed_at)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        classes = self.store.classes(release)
        if len(classes) != release.n_classes:
            return None
        try:
            published = _Published([self._cell(payload) for payload in classes])
        except (msgspec.ValidationError, KeyError, ValueError):
            return None
        with self._lock:
            if key not in self._known:
                self._known[key] = published
                self._n_cells += len(classes)
            while self._n_cells > MOST_CELLS and len(self._known) > 1:
                self._n_cells -= len(self._known.popitem(last=False)[1].cells)
        return published

    def _cell(self, payload: bytes) -> Cell:
        message = self._decoder.decode(payload)
        return Cell(
            values=tuple(_joinable(message.qis[qi.name]) for qi in self.stream.schema.qis),
            n_persons=message.k,
            own=message.own,
            most=message.k,
            n_records=message.count,
            totals=tuple(_total(message.measures.get(m.name)) for m in self.stream.measures),
        )


class _Published:
    """The cells of one release; its ladder is made when a larger k is first requested."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        self._ladder: Ladder | None = None

    def of(self, k: int) -> Sequence[Cell]:
        """Return the cells for a k."""
        if all(cell.certain >= k for cell in self.cells):
            return self.cells
        ladder = self._ladder or Ladder(self.cells)
        self._ladder = ladder  # a concurrent thread makes an equal one
        return ladder.cells(k)


def _joinable(content: Mapping[str, Any]) -> JoinableValue:
    value = from_json(content)
    if isinstance(value, Node | Span):
        raise ValueError("a node of a hierarchy cannot be joined to others, nor texts of times")  # noqa: TRY004
    return value


def _total(content: Mapping[str, float] | None) -> Total | None:
    return None if content is None else Total(int(content["n"]), float(content["sum"]))
