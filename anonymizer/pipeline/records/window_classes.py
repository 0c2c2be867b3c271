"""Classes of the records of a window, or of a range of them: formed, verified, written.

Pure. One process takes a window as a whole. Stages take it range by range, and once more what meets
at the borders.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.cohorts import with_covers
from anonymizer.algorithms.records.content_verification import broken_contents
from anonymizer.algorithms.records.measures import measure_briefly
from anonymizer.algorithms.records.ordering import canonical
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.suppression import within_limit
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.records import Records
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.encoding import Numbers, contents_of, encode
from anonymizer.pipeline.records.history import Kept, Remembered, remembered
from anonymizer.pipeline.records.silence import Heard
from anonymizer.pipeline.records.window_model import Asked, WindowModel, cost_of

_DECIMALS = 6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Portion:
    """Records of a window that have all needed sources, and what their classes depend on."""

    model: WindowModel
    """Forms the classes; they are verified independently."""
    heard: Heard
    """The sources that are not silent in the whole window."""
    records: Records
    """The records, without what silent sources reported."""
    sensitive: Int32Array
    measures: Int32Array
    """`sensitive`, `measures`: codes of the sensitive attributes as reported, and of the measures,
    shape (n, attributes)."""
    past: Remembered | None
    """The memory of the vehicles; None: nothing that was heard lasts."""
    seed: int
    """Of the window."""

    @classmethod
    def of(
        cls,
        model: WindowModel,
        heard: Heard,
        cells: Int32Array,
        person: Int32Array,
        memories: Sequence[bytes | None],
        *,
        seed: int,
    ) -> "Portion":
        """Return joined records with the stored memory of their vehicles.

        `cells`: as of `Joined`; `person`: number of the vehicle of each record, in order of
        appearance; `memories`: as `memories_after` returns them, None for never published.
        """
        stream = heard.stream
        cells, n_qis = heard.withheld(cells), len(stream.schema.qis)
        n_published_columns = n_qis + len(stream.schema.sensitive)
        sensitive = np.ascontiguousarray(cells[:, n_qis:n_published_columns])
        records = Records(
            np.ascontiguousarray(cells[:, :n_qis]),
            stream.schema_codes(sensitive),
            np.unique(person, return_inverse=True)[1].astype(np.int32),
        )
        past = remembered(stream, memories) if heard.lasting else None
        return cls(model, heard, records, sensitive, cells[:, n_published_columns:], past, seed)

    @property
    def stream(self) -> Stream:
        """The stream."""
        return self.heard.stream


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Verified:
    """Classes that keep the promise, with what is published of them."""

    kept: Kept
    """The classes before verification, and the records as they are shown."""
    class_of: Int32Array
    """Class of each record, numbered by what is published of it alone, or `SUPPRESSED`."""
    contents: Sequence[Mapping[str, Any]]
    """What the message of each class says of it."""
    refused: BoolArray
    """Records of classes that verification refused."""
    n_refused: int
    """Number of these classes."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.contents)

    def outcomes(self) -> UInt8Array:
        """Return the `Outcome` of each record."""
        outcome = np.full(len(self.class_of), Outcome.SUPPRESSED__NO_CLASS, np.uint8)
        if self.kept.too_frequent is not None:
            outcome[self.kept.too_frequent] = Outcome.SUPPRESSED__TOO_FREQUENT
        outcome[self.kept.left_out] = Outcome.SUPPRESSED__CUMULATIVE
        outcome[self.refused] = Outcome.SUPPRESSED__UNVERIFIED
        outcome[self.class_of != SUPPRESSED] = Outcome.PUBLISHED
        return outcome


def formed(portion: Portion, *, time_left: Callable[[], float]) -> Kept:
    """Return classes of the records of a portion, not verified yet.

    `time_left`: passed to the model.
    """
    stream, heard, past, records = portion.stream, portion.heard, portion.past, portion.records
    too_frequent = np.zeros(records.n, bool)

    def form(some: Records, at: IntArray) -> Int32Array:
        if heard.silent:
            return found(heard.only(some), at, Asked(heard.schema, heard.promise))
        return found(some, at)

    def found(
        some: Records, at: IntArray, asked: Asked | None = None, leave: float = 0.0
    ) -> Int32Array:
        asked = asked or Asked(stream.schema, stream.promise)
        problem = asked.problem or make_problem(
            some, asked.schema, asked.promise, cost=cost_of(stream)
        )
        # Of a value that is too frequent for any classes some records go, and not all others.
        fits = within_limit(problem.only, some.n, some.n) if some.n else np.arange(0)
        too_frequent[np.delete(at, fits)] = True
        class_of = np.full(some.n, SUPPRESSED, np.int32)
        class_of[fits] = portion.model.classes(
            some.only(fits),
            portion.measures[at[fits]],
            time_left=_share_of(time_left, leave),
            seed=portion.seed,
            asked=replace(asked, problem=problem.only(fits)),
        )
        return class_of

    if past is not None and stream.settings.enforces:
        if stream.in_cohorts:
            kept = past.in_cohorts(records, heard, found)
        else:
            kept = past.classes(records, form)
    else:
        class_of = np.full(records.n, SUPPRESSED, np.int32)
        if records.n >= stream.promise.k:
            class_of = form(records, np.arange(records.n))
        kept = Kept(class_of, records, np.zeros(records.n, bool))
    rows, of_rows = _with_covers(portion, kept, without_gaps(kept.class_of))
    class_of = portion.model.joined(rows, of_rows)[: records.n]
    return replace(kept, class_of=class_of, too_frequent=too_frequent)


def verified(portion: Portion, kept: Kept) -> Verified:
    """Return the classes that keep the promise; the others are suppressed."""
    class_of = without_gaps(kept.class_of)
    if class_of.max(initial=SUPPRESSED) == SUPPRESSED:
        return Verified(kept, class_of, [], np.zeros(len(class_of), bool), 0)
    shown, shown_in = _with_covers(portion, kept, class_of)
    values = portion.model.generalized(shown, classes_of(shown_in))
    rejected = portion.model.rejected(shown, shown_in, values)
    left = _unbroken(portion.heard, kept.records, class_of, rejected)
    left, values = _numbered(left, values, portion.sensitive)
    contents = _contents(portion, kept, left, values)
    broken = broken_contents(contents, portion.heard.promise, portion.heard.bands)
    if broken:
        left = without_gaps(np.where(np.isin(left, [*broken]), np.int32(SUPPRESSED), left))
        contents = [each for c, each in enumerate(contents) if c not in broken]
    refused = (left == SUPPRESSED) & (class_of != SUPPRESSED)
    return Verified(kept, left, contents, refused, len(np.unique(class_of[refused])))


def _contents(
    portion: Portion, kept: Kept, class_of: Int32Array, values: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return what the message of each class says of it."""
    rows, of_rows = _with_covers(portion, kept, class_of)
    totals = totals_of(portion.stream, class_of, kept.records.person, portion.measures)
    return contents_of(
        portion.stream,
        kept.records,
        classes_of(class_of),
        values,
        sensitive=portion.sensitive,
        totals=totals,
        extra_fields=portion.model.extra_fields(rows, classes_of(of_rows), totals),
    )


def messages_of(
    portion: Portion, classes: Verified, *, span: tuple[float, float], numbers: Numbers
) -> list[Outgoing]:
    """Return a message for each class.

    Parameters
    ----------
    span
        Start and end of the window, unix seconds.
    numbers
        Those of the classes.
    """
    return encode(portion.stream, classes.contents, span=span, numbers=numbers)


def sizes_of(classes: Verified) -> list[int]:
    """Return the number of vehicles in each class."""
    of, person = classes_of(classes.class_of), classes.kept.records.person
    return [len(np.unique(person[of[c]])) for c in range(len(of))]


def memories_after(
    portion: Portion, classes: Verified, *, first_company: int
) -> tuple[list[bytes | None], int]:
    """Return the memory of the vehicle of each record, and how many are left with too few values.

    None where nothing is to be remembered, see `Remembered.after`, or nothing lasts.

    `first_company`: above the numbers of all earlier classes of the stream.
    """
    if portion.past is None:
        return [None] * portion.records.n, 0
    return portion.past.after(
        classes.kept.records, classes.class_of, classes.kept.cohorts, first_company=first_company
    )


def summary_of(portion: Portion, classes: Verified) -> dict[str, float]:
    """Return sizes and measures of the classes; no value of a record."""
    heard, cohorts = portion.heard, classes.kept.cohorts
    records, class_of = classes.kept.records, classes.class_of
    said = measure_briefly(heard.only(records), heard.schema, class_of, cost_of(portion.stream))
    gcp = said.gcp_published
    if portion.past is not None and cohorts is not None:
        gcp = portion.past.loss(records, class_of, cohorts)
    return {
        "records": said.n,
        "published": said.n - said.n_suppressed,
        "promised_k": heard.promise.k,
        "classes": said.n_classes,
        "k": said.k,
        "d": min(said.d, default=0),
        "l": min(said.l, default=0),
        "gcp": gcp,
        "silent_sources": len(heard.silent),
    }


def totals_of(
    stream: Stream, class_of: Int32Array, person: Int32Array, codes: Int32Array
) -> list[dict[str, Total | None]]:
    """Return the totals of each class, by the names of the measures.

    None where fewer than k persons of the class have a value: the total of one person is that
    person's value.

    Parameters
    ----------
    class_of, person
        Classes from 0 up without a gap, `SUPPRESSED` where left out, and persons, shape (n,).
    codes
        Codes of the measures, shape (n, measures).
    """
    n_classes = int(class_of.max(initial=SUPPRESSED)) + 1
    totals: list[dict[str, Total | None]] = [{} for _ in range(n_classes)]
    for j, attribute in enumerate(stream.measures):
        has = (class_of != SUPPRESSED) & (codes[:, j] != attribute.missing)
        c, value = class_of[has], attribute.position[codes[has, j]]
        n = np.bincount(c, minlength=n_classes)
        total = np.bincount(c, weights=value, minlength=n_classes)
        persons = np.unique(np.column_stack([c, person[has]]), axis=0)[:, 0]
        enough = np.bincount(persons, minlength=n_classes) >= stream.promise.k
        for i in range(n_classes):
            found = Total(int(n[i]), round(float(total[i]), _DECIMALS)) if enough[i] else None
            totals[i][attribute.name] = found
    return totals


def _with_covers(portion: Portion, kept: Kept, class_of: Int32Array) -> tuple[Records, Int32Array]:
    """Return the rows that the labels of classes hold, and the class of each."""
    if portion.past is None or kept.cohorts is None:
        return kept.records, class_of
    return with_covers(kept.records, class_of, kept.cohorts, portion.past.lasting)


def _unbroken(
    heard: Heard, records: Records, class_of: Int32Array, rejected: Collection[int]
) -> Int32Array:
    """Return the classes without rejected ones and those that break the promise."""
    broken = {
        violation.class_number
        for violation in verify_classes(heard.only(records), heard.schema, heard.promise, class_of)
    }
    return np.where(np.isin(class_of, [*broken, *rejected]), np.int32(SUPPRESSED), class_of)


def _numbered(
    class_of: Int32Array, values: Sequence[Mapping[str, Any]], sensitive: Int32Array
) -> tuple[Int32Array, list[Mapping[str, Any]]]:
    """Return the classes numbered by what is published of them alone, and their values."""
    encoded = [msgspec.json.encode(of, order="deterministic") for of in values]
    rank_of = {each: rank for rank, each in enumerate(sorted(set(encoded)))}
    rank = np.array([*map(rank_of.__getitem__, encoded), SUPPRESSED], np.int32)
    number = canonical(class_of, np.column_stack([rank[class_of], sensitive]))
    there, at = np.unique(number, return_index=True)
    return number, [values[class_of[i]] for c, i in zip(there, at, strict=True) if c != SUPPRESSED]


def _share_of(time_left: Callable[[], float], leave: float) -> Callable[[], float]:
    """Return the share that is left of the time from now until only `leave` is left of all."""
    first = time_left() - leave
    return lambda: max((time_left() - leave) / first, 0.0) if first > 0 else 0.0
