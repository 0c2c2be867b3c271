"""Anonymization of a closed window: from its records to the messages that are published.

Pure; takes as long as the model searches. Nothing here reads a clock or a store.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import SUPPRESSED, canonical, classes_of, without_gaps
from anonymizer.algorithms.records.cohorts import with_covers
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.methods import share_of
from anonymizer.algorithms.records.problem import Problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.encoding import encode
from anonymizer.pipeline.records.history import remembered
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.silence import Heard, heard_in
from anonymizer.pipeline.records.window_model import WindowModel, cost_of, form_classes

_DECIMALS = 6


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


_WARM_TURNS = 8
"""Length of a search whose purpose is to compile the kernels."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closing:
    """The result for a window.

    Attributes
    ----------
    outcome
        The `Outcome` of each record, shape (n,).
    messages
        A message for each class.
    n_parts, sizes
        Parts and vehicles in each class, in the order of `messages`.
    memory
        The memory of the published vehicles, by key.
    n_unverified
        Classes rejected by verification.
    silent
        Indices of the sources whose attributes were withheld, see `silence`.
    summary
        Sizes and measures; no values of records.
    seconds
        Time taken.
    """

    outcome: UInt8Array
    messages: Sequence[Outgoing] = ()
    n_parts: Sequence[int] = ()
    sizes: Sequence[int] = ()
    memory: Mapping[bytes, bytes] = field(default_factory=dict)
    n_unverified: int = 0
    silent: Sequence[int] = ()
    summary: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def withheld(self, reason: Outcome) -> "Closing":
        """Return the result with nothing published, for the given reason."""
        outcome = self.outcome.copy()
        outcome[outcome == Outcome.PUBLISHED] = reason
        return replace(self, outcome=outcome, messages=(), n_parts=(), sizes=(), memory={})


def anonymize(
    stream: Stream,
    model: WindowModel,
    joined: Joined,
    memories: Mapping[bytes, bytes],
    *,
    span: tuple[float, float],
    first_message: int,
    seed: int,
    time_left: Callable[[], float],
    clock: Callable[[], float],
) -> Closing:
    """Return the result for the records of a window.

    Parameters
    ----------
    model
        Forms the classes; the result is verified independently.
    memories
        The memory of the vehicles from earlier windows, by key.
    span
        Start and end of the window, unix seconds.
    first_message
        Number of the next message of the stream.
    seed, time_left
        Passed to the model.
    clock
        Returns seconds.
    """
    began_s = clock()
    outcome, chosen = _complete(stream, joined)
    heard = heard_in(stream, joined.reported[chosen])
    cells = heard.withheld(joined.cells[chosen])
    n_qis = len(stream.schema.qis)
    n_published_columns = n_qis + len(stream.schema.sensitive)
    sensitive = np.ascontiguousarray(cells[:, n_qis:n_published_columns])
    records = Records(
        np.ascontiguousarray(cells[:, :n_qis]),
        stream.schema_codes(sensitive),
        np.unique(joined.person[chosen], return_inverse=True)[1].astype(np.int32),
    )
    vehicles = [joined.vehicle[i] for i in chosen.tolist()]
    measures = cells[:, n_published_columns:]
    past = remembered(stream, memories, vehicles) if heard.lasting else None

    def form(some: Records, at: IntArray) -> Int32Array:
        if heard.silent:
            return found(heard.only(some), heard.schema, heard.promise)
        return model.classes(some, measures[at], time_left=time_left, seed=seed)

    def found(
        some: Records,
        schema: Schema,
        promise: Promise,
        problem: Problem | None = None,
        leave: float = 0.0,
    ) -> Int32Array:
        return form_classes(
            stream,
            some,
            time_left=share_of(time_left, leave),
            seed=seed,
            schema=schema,
            promise=promise,
            problem=problem,
        )

    class_of, cohorts = np.full(records.n, SUPPRESSED, np.int32), None
    if past is not None and stream.settings.enforces:
        if stream.in_cohorts:
            kept = past.in_cohorts(records, heard, found)
        else:
            kept = past.classes(records, form)
        class_of, cohorts, records = kept.class_of, kept.cohorts, kept.records
        outcome[chosen[kept.left_out]] = Outcome.SUPPRESSED__CUMULATIVE
    elif records.n >= stream.promise.k:
        class_of = form(records, np.arange(records.n))
    class_of = without_gaps(class_of)
    shown, shown_in = records, class_of
    if past is not None and cohorts is not None:
        shown, shown_in = with_covers(records, class_of, cohorts, past.lasting)
    values = model.generalized(shown, classes_of(shown_in), seed=seed)
    rejected = model.rejected(shown, shown_in, values, seed=seed)
    verified = _verified(heard, records, class_of, rejected)
    outcome[chosen[verified != class_of]] = Outcome.SUPPRESSED__UNVERIFIED
    n_unverified = len(np.unique(class_of[verified != class_of]))
    class_of, values = _numbered(verified, values, sensitive)
    published = class_of != SUPPRESSED
    outcome[chosen[published]] = Outcome.PUBLISHED

    classes = classes_of(class_of)
    totals = totals_of(stream, class_of, records.person, measures)
    messages = encode(
        stream,
        records,
        classes,
        values,
        sensitive=sensitive,
        totals=totals,
        extra_fields=model.extra_fields(records, classes, totals, seed=seed),
        span=span,
        first_message=first_message,
    )
    summary = _summary(heard, joined, measure(heard.only(records), heard.schema, class_of))
    memory: dict[bytes, bytes] = {}
    if past is not None:
        if cohorts is not None:
            summary["gcp"] = past.loss(records, class_of, cohorts)
        packed, n_short = past.after(records, class_of, cohorts, first_company=first_message)
        memory = {vehicles[i]: packed[i] for i in np.flatnonzero(published).tolist()}
        summary["too_little_left"] = n_short
    parts = joined.n_parts[chosen]
    seconds = clock() - began_s
    return Closing(
        outcome=outcome,
        messages=messages,
        n_parts=[int(parts[classes[c]].sum()) for c in range(len(classes))],
        sizes=[len(np.unique(records.person[classes[c]])) for c in range(len(classes))],
        memory=memory,
        n_unverified=n_unverified,
        silent=heard.silent,
        summary=summary | {"seconds": seconds},
        seconds=seconds,
    )


def _complete(stream: Stream, joined: Joined) -> tuple[UInt8Array, IntArray]:
    """Return the outcome of each record so far, and the records with all needed sources."""
    needed = [i for i, source in enumerate(stream.settings.sources) if source.needed]
    complete = joined.reported[:, needed].all(axis=1)
    outcome = np.where(complete, Outcome.SUPPRESSED__NO_CLASS, Outcome.SUPPRESSED__INCOMPLETE)
    return outcome.astype(np.uint8), np.flatnonzero(complete)


def _verified(
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


def _summary(heard: Heard, joined: Joined, measures: Measures) -> dict[str, float]:
    return {
        "records": joined.n,
        "published": measures.n - measures.n_suppressed,
        "promised_k": heard.promise.k,
        "classes": measures.n_classes,
        "k": measures.k,
        "d": min(measures.d, default=0),
        "l": min(measures.l, default=0),
        "gcp": measures.gcp_published[cost_of(heard.stream)],
        "silent_sources": len(heard.silent),
    }


def warm_up(stream: Stream, model: WindowModel) -> None:
    """Compile the kernels, those of the search too, on a synthetic window."""
    n = 2 * stream.promise.k
    turns = iter(range(_WARM_TURNS, 0, -1))
    number = np.arange(n, dtype=np.int32)
    joined = Joined(
        cells=np.column_stack([number % attribute.size for attribute in stream.attributes]),
        vehicle=[i.to_bytes(8, "big") for i in range(n)],
        person=number,
        n_parts=np.ones(n, np.int64),
        reported=np.ones((n, len(stream.settings.sources)), np.bool_),
    )
    anonymize(
        stream,
        model,
        joined,
        {},
        span=(0.0, 1.0),
        first_message=1,
        seed=0,
        time_left=lambda: next(turns, 0) / _WARM_TURNS,
        clock=lambda: 0.0,
    )
