"""Anonymization of a closed window: from its records to the messages that are published.

Pure; takes as long as the model searches. Nothing here reads a clock or a store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymizer.algorithms.records import class_methods
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.domain.arrays import IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.kernel_cache import current_background
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.encoding import Numbers
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.own_records import own_records
from anonymizer.pipeline.records.silence import heard_in
from anonymizer.pipeline.records.window_classes import (
    Portion,
    formed,
    memories_after,
    messages_of,
    sizes_of,
    summary_of,
    verified,
)
from anonymizer.pipeline.records.window_model import WindowModel

_WARM_TURNS = 8
"""Length of a search whose purpose is to compile the kernels."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closing:
    """The result for a window."""

    outcome: UInt8Array
    n_silent: IntArray
    """`outcome`, `n_silent`: the `Outcome` of each record, and of how many sources that are silent
    in the whole window a published one has a part, which is withheld; shape (n,)."""
    messages: Sequence[Outgoing] = ()
    """A message for each class."""
    n_parts: Sequence[int] = ()
    sizes: Sequence[int] = ()
    """`n_parts`, `sizes`: parts and vehicles in each class, in the order of `messages`."""
    memory: Mapping[bytes, bytes] = field(default_factory=dict)
    """The memory of the published vehicles, and of those that got a cover, by key."""
    n_unverified: int = 0
    """Classes rejected by verification."""
    silent: Sequence[int] = ()
    """Indices of the sources whose attributes were withheld, see `silence`."""
    summary: Mapping[str, float] = field(default_factory=dict)
    """Sizes and measures; no values of records."""
    seconds: float = 0.0
    """Time taken."""

    def withheld(self, reason: Outcome) -> "Closing":
        """Return the result with nothing published, for the given reason."""
        outcome = self.outcome.copy()
        outcome[outcome == Outcome.PUBLISHED] = reason
        n_silent = np.zeros_like(self.n_silent)
        left = replace(self, outcome=outcome, n_silent=n_silent, messages=(), memory={})
        return replace(left, n_parts=(), sizes=())


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

    `memories`: of the vehicles from earlier windows, by key; `span`: start and end of the window,
    unix seconds.
    """
    began_s = clock()
    outcome, chosen = standing(stream, joined, seed=seed)
    heard = heard_in(stream, joined.reported[chosen])
    vehicles = [joined.vehicle[i] for i in chosen.tolist()]
    portion = Portion.of(
        model,
        heard,
        joined.cells[chosen],
        joined.person[chosen],
        [memories.get(vehicle) for vehicle in vehicles],
        seed=seed,
    )
    classes = verified(portion, formed(portion, time_left=time_left))
    outcome[chosen] = classes.outcomes()
    n = classes.n_classes
    messages = messages_of(portion, classes, span=span, numbers=Numbers(range(n), n, first_message))
    memory, n_short = memories_after(portion, classes, first_company=first_message)
    summary = summary_of(portion, classes) | {"records": joined.n}
    if portion.past is not None:
        summary["too_little_left"] = n_short
    n_silent = joined.reported[:, list(heard.silent)].sum(axis=1) * (outcome == Outcome.PUBLISHED)
    parts, of = (joined.n_parts - n_silent)[chosen], classes_of(classes.class_of)
    seconds = clock() - began_s
    return Closing(
        outcome=outcome,
        n_silent=n_silent,
        messages=messages,
        n_parts=[int(parts[of[c]].sum()) for c in range(n)],
        sizes=sizes_of(classes),
        memory={
            vehicle: blob
            for vehicle, blob in zip(vehicles, memory, strict=True)
            if blob is not None
        },
        n_unverified=classes.n_refused,
        silent=heard.silent,
        summary=summary | {"seconds": seconds},
        seconds=seconds,
    )


def complete(stream: Stream, joined: Joined) -> tuple[UInt8Array, IntArray]:
    """Return the outcome of each record so far, and the records that can be anonymized.

    They are complete, and somebody's by evidence: they state a quasi-identifier. The time of a part
    is no evidence, as every message has one.
    """
    needed = [i for i, source in enumerate(stream.settings.sources) if source.needed]
    is_complete = joined.reported[:, needed].all(axis=1)
    timed = {a.name for a in stream.settings.attributes if a.time_of_day}
    qis = stream.in_window(joined.values_of).schema.qis
    stated = np.zeros((joined.n, len(qis)), np.bool_)
    for j, qi in enumerate(qis):
        if qi.name not in timed or len(timed.intersection(each.name for each in qis)) == len(qis):
            stated[:, j] = joined.cells[:, j] != qi.missing
    states = stated.any(axis=1)
    outcome = np.full(joined.n, Outcome.SUPPRESSED__NO_CLASS, np.uint8)
    outcome[~states] = Outcome.SUPPRESSED__STATES_NOTHING
    outcome[~is_complete] = Outcome.SUPPRESSED__INCOMPLETE
    return outcome, np.flatnonzero(is_complete & states)


def standing(stream: Stream, joined: Joined, *, seed: int) -> tuple[UInt8Array, IntArray]:
    """Return the outcome of each record so far, and the records that stand for their vehicles.

    Of the records that can be anonymized, one of each vehicle.
    """
    outcome, chosen = complete(stream, joined)
    own = own_records(joined.person[chosen], [joined.vehicle[i] for i in chosen.tolist()], seed)
    outcome[chosen[~own]] = Outcome.SUPPRESSED__REPEATED
    return outcome, chosen[own]


def warm_up(stream: Stream, model: WindowModel) -> None:
    """Compile the kernels, those of the search too, on a synthetic window.

    In the background (`kernel_background`) those of the search are asked for, and the others when
    a window needs them.
    """
    if current_background() is not None:
        class_methods.warm_up("best", stream.schema, stream.promise)
        return
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
