"""Ranges of a closed window: where a record belongs, and what a range has to know of it.

Without lasting attributes a record belongs where its quasi-identifiers are. Vehicles that are
published in cohorts belong where their cohort was founded: it has a *home*, the lasting
quasi-identifiers of one of its founders, which is stored with the memory of each member. Equal
homes and equal numbers of cohorts go to one range, so that no cohort is ever split.

A window of 13 records in two ranges, without lasting attributes. Letters are records in the order
of the curve, brackets are classes of k = 2, and g finds no class. It meets the classes at the
borders of the ranges, and the planner makes new classes of all that meet::

    range 0                  range 1
    [a b] [c d] [e f]  g   | [h i] [j k] [l m]      each range by itself
          [c d]                    [j k]            what the ranges keep, and publish
    [a b]       [e f]  g     [h i]       [l m]      what meets
    [a b]       [e f] [g      h i]       [l m]      what the planner publishes
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite

import numpy as np

from anonymizer.algorithms.models.model import MadeOf
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cumulative import NO_COMPANY
from anonymizer.algorithms.records.division import Division, Stretches, divide
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.founding import lasting_only
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.methods import AUTO, WORK_PER_S, searches
from anonymizer.algorithms.records.ranges import at_borders
from anonymizer.cluster.records.window_messages import Memories, Survey
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Schema
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.history import Kept
from anonymizer.pipeline.records.join import valued
from anonymizer.pipeline.records.kaca_model import features_of
from anonymizer.pipeline.records.window_classes import Portion
from anonymizer.settings import StreamSettings

_LONGEST_TAKE_S = 240.0
"""For which a stage may work on one input where no stream asks for longer searches."""
SAMPLED = 1024
"""Number of records by which each range is found: its size is met within a few percent."""
_CODE_BYTES = 4
_COMPANY_BYTES = 8
_NO_TIME_S = 1e-9
"""Too little for any search, where a model would choose one by itself."""
_FEWEST_OWN = 4
"""Own records in a range on average, times k: a range with fewer than k has no class."""


def longest_take_s(streams: Sequence[StreamSettings]) -> float:
    """Return for how long a stage may work on one input.

    Twice the longest search, on slower machines and with all else, too.
    """
    searches_s = [each.budget_s for each in streams if each.method == "best"]
    return max(_LONGEST_TAKE_S, 2 * max(searches_s, default=0.0))


def staged(streams: Sequence[Stream]) -> list[Stream]:
    """Return streams whose classes depend on their records alone, not on how long a search takes.

    A stage that is restored must make the same classes again. So `best` does as much work as takes
    about `budget_s`, and `auto` does not search.
    """
    return [_by_work(stream) for stream in streams]


def _by_work(stream: Stream) -> Stream:
    settings = stream.settings
    method = MODELS[settings.model].method_name(settings.method, n=1, time_budget_s=0.0)
    work = ceil(settings.budget_s * WORK_PER_S) if searches(method) else None
    changes = {"method": method, "budget_s": _NO_TIME_S}
    return replace(stream, settings=settings.model_copy(update=changes), work=work)


def n_ranges_of(stream: Stream, n_records: int, n_vehicles: int, *, records_per_range: int) -> int:
    """Return into how many ranges a window is divided.

    One where classes are about the whole window: a tree is grown on all records, and t-closeness
    compares with all of them. Where classes are formed of one record of each vehicle, ranges are
    larger if vehicles are few.
    """
    if _formed(stream) is MadeOf.CELLS or isfinite(stream.promise.t):
        return min(n_records, 1)
    n_ranges = ceil(n_records / records_per_range)
    if _formed(stream) is MadeOf.STRETCHES:
        return n_ranges
    return min(n_ranges, max(n_vehicles // (_FEWEST_OWN * stream.promise.k), 1))


def _formed(stream: Stream) -> MadeOf:
    return MODELS[stream.settings.model].formed


def stage_of(stream: int, range_: int, n_stages: int) -> int:
    """Return the stage that has a range: those of a window, and windows of one, lie apart."""
    return (stream + range_) % n_stages


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Places:
    """Where the records of a window belong: the domain of the places, and how it is divided.

    `stream` has the values of its open columns; `columns`: quasi-identifiers that decide on the
    place of a newcomer; `in_cohorts`: whether there are homes.
    """

    stream: Stream
    columns: tuple[int, ...]
    in_cohorts: bool

    @classmethod
    def of(cls, stream: Stream) -> "Places":
        """Return the places of a stream."""
        n_qis = len(stream.schema.qis)
        in_cohorts = stream.in_cohorts and stream.settings.enforces
        names = stream.lasting if in_cohorts else [qi.name for qi in stream.schema.qis]
        columns = (j for j in range(n_qis) if stream.schema.qis[j].name in names)
        return cls(stream, tuple(columns), in_cohorts)

    @property
    def n_home_bytes(self) -> int:
        """Bytes of a home before what is stored of a vehicle."""
        return _CODE_BYTES * len(self.columns) if self.in_cohorts else 0

    @property
    def schema(self) -> Schema:
        """The attributes of a place."""
        return lasting_only(self.stream.schema, self.columns)

    def of_rows(
        self, cells: Int32Array, key: IntArray, memories: Memories
    ) -> tuple[Int32Array, IntArray]:
        """Return the place of each row, shape (n, columns), and its turn, see `Division`."""
        place = np.ascontiguousarray(cells[:, list(self.columns)])
        turn = key & np.int64(2**62 - 1)
        if self.in_cohorts:
            company = companies_of(memories, self.n_home_bytes)
            home = self.homes_of(memories)
            at = np.flatnonzero(company != NO_COMPANY)
            place[at], turn[at] = home[at], company[at]
        return place, turn

    def sample(self, place: Int32Array, *, records_per_range: int) -> Int32Array:
        """Return the places of an even sample, at the same rate whoever takes it."""
        order = hilbert_order(place, [qi.size for qi in self.schema.qis])
        return np.ascontiguousarray(place[order[:: max(records_per_range // SAMPLED, 1)]])

    def division(self, sample: Int32Array, n_asked: int) -> Division:
        """Return the division into ranges by a sample of all joiners."""
        model = MODELS[self.stream.settings.model]
        if n_asked == 1:
            return Stretches(np.zeros(0, np.uint64), [qi.size for qi in self.schema.qis])
        former = Former(
            schema=self.schema,
            promise=self.stream.promise,
            model=model,
            method=model.method_name(AUTO, n=n_asked, time_budget_s=0.0),  # along the order
            features=features_of(self.stream, self.schema)
            if _formed(self.stream) is MadeOf.CLUSTERS
            else (),
        )
        return divide(sample.reshape(-1, len(self.columns)), former, n_ranges=n_asked)

    def homes_of(self, memories: Memories) -> Int32Array:
        """Return the stored home of each vehicle, 0 where there is none, shape (n, columns)."""
        none = bytes(self.n_home_bytes)
        heads = b"".join(none if m is None else m[: self.n_home_bytes] for m in memories)
        n_columns = len(self.columns)
        return np.frombuffer(heads, "<i4").reshape(-1, n_columns).astype(np.int32)

    def with_homes(
        self, portion: Portion, kept: Kept, stored: Memories, after: Memories
    ) -> list[bytes | None]:
        """Return what to store of each vehicle: the home of its cohort, then its memory.

        A new cohort is at home where the middle one of its founders is.
        """
        cohorts, past = kept.cohorts, portion.past
        if not self.in_cohorts or cohorts is None or past is None:
            return list(after)
        home = self.homes_of(stored)
        own = portion.records.qi[:, list(self.columns)]
        here = past.memory.company != NO_COMPANY
        blobs: list[bytes | None] = [None] * len(after)
        order = np.argsort(cohorts.of, kind="stable")
        cuts = np.searchsorted(cohorts.of[order], np.arange(len(cohorts.cover) + 1))
        for c, number in enumerate(cohorts.company.tolist()):
            members = order[cuts[c] : cuts[c + 1]]
            if not len(members):
                continue
            known = np.flatnonzero(here & (past.memory.company == number))
            at = home[known[0]] if number != NO_COMPANY else own[members[len(members) // 2]]
            head = at.astype("<i4").tobytes()
            for i in members.tolist():
                blob = after[i]
                blobs[i] = None if blob is None else head + blob
        return blobs


def companies_of(memories: Memories, n_home_bytes: int) -> IntArray:
    """Return the number of the cohort, or of the last class, that is stored of each vehicle."""
    none = np.int64(NO_COMPANY).astype("<i8").tobytes()
    end = n_home_bytes + _COMPANY_BYTES
    heads = b"".join(none if m is None else m[n_home_bytes:end] for m in memories)
    return np.frombuffer(heads, "<i8").astype(np.int64)


def meeting(portion: Portion, kept: Kept, *, most: int) -> BoolArray:
    """Return which records of a range are to meet those of others.

    The records beyond `most` without a class are suppressed.

    Notes
    -----
    Records without a class meet others, and so do the first and the last class along the curve. A
    vehicle in a cohort meets others only if no member of its cohort is in a class: no cohort is
    split. A vehicle with a new cover does not meet others if any vehicle of the range with a new
    cover is in a class: it keeps that cover.
    """
    without: BoolArray = kept.class_of == SUPPRESSED
    stream, past = portion.stream, portion.past
    if kept.cohorts is not None and past is not None:
        company = past.memory.company
        classed = kept.cohorts.of[~without]
        in_class = kept.cohorts.company[classed[classed >= 0]]
        without &= (company == NO_COMPANY) | ~np.isin(company, in_class)
        if (is_new := kept.cohorts.is_new)[kept.class_of != SUPPRESSED].any():
            without &= ~is_new
    elif _formed(stream) is not MadeOf.STRETCHES:
        without &= bool(without.all())
    without[np.flatnonzero(without)[most:]] = False
    if kept.cohorts is not None or _formed(stream) is not MadeOf.STRETCHES:
        return without
    meets: BoolArray = without | at_borders(kept.records, stream.schema, kept.class_of)
    return meets


def in_order(cells: Int32Array, key: IntArray) -> IntArray:
    """Return the order of rows by content, then by the keyed digests of their vehicles."""
    return np.lexsort((key, *cells.T[::-1])).astype(np.int64)


def merged(surveys: Sequence[Survey]) -> tuple[dict[int, list[str]], list[dict[int, IntArray]]]:
    """Return the values of the open columns of all joiners, and the codes of each joiner's texts.

    What means the same is decided from the texts of all of them, as if one had joined all.
    """
    values_of: dict[int, list[str]] = {}
    code_of: list[dict[int, IntArray]] = [{} for _ in surveys]
    for column in sorted({column for each in surveys for column in each.values_of}):
        counts = Counter[str]()
        for each in surveys:
            own_counts = each.counts_of[column].tolist()
            counts.update(dict(zip(each.values_of[column], own_counts, strict=True)))
        values_of[column], code = valued(counts)
        for own, each in zip(code_of, surveys, strict=True):
            own[column] = np.array([code[text] for text in each.values_of[column]], np.int64)
    return values_of, code_of
