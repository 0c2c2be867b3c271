"""Rows of several senders, made to one portion of a window and its classes; shared by stages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.cluster.positions.raw_batches import encode_out, in_parts
from anonymizer.cluster.records.window_messages import (
    Formed,
    Memories,
    RangeRows,
    Shuffled,
    encode,
)
from anonymizer.cluster.records.window_ranges import Places, in_order
from anonymizer.cluster.stage import Send
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.encoding import Numbers
from anonymizer.pipeline.records.history import Kept
from anonymizer.pipeline.records.join import numbered
from anonymizer.pipeline.records.release_messages import ReleasedClasses, encode_classes
from anonymizer.pipeline.records.silence import heard_of
from anonymizer.pipeline.records.window_classes import (
    Portion,
    Verified,
    formed,
    memories_after,
    messages_of,
    summary_of,
    verified,
)
from anonymizer.pipeline.records.window_models import WINDOW_MODELS


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gathered:
    """Rows of several senders in an order that depends on their content alone.

    `columns[order]` are the rows; `sizes`: number of rows of each sender.
    """

    places: Places
    portion: Portion
    cells: Int32Array
    key: IntArray
    stored: Memories
    order: IntArray
    sizes: Sequence[int]

    @classmethod
    def of(
        cls, stream: Stream, senders: Sequence[RangeRows] | Sequence[Formed], *, seed: int
    ) -> "Gathered":
        """Return the rows of some senders, at least one, all of one window."""
        first = senders[0]
        in_window = stream.in_window(first.values_of)
        if in_window.work is not None:
            in_window = replace(in_window, work=-(-in_window.work // first.n_ranges))
        cells = np.concatenate([np.stack(each.columns, axis=1) for each in senders])
        key = np.concatenate([each.key for each in senders])
        order = in_order(cells, key)
        stored: list[bytes | None] = [blob for each in senders for blob in each.memories]
        places = Places.of(in_window)
        cells, key = np.ascontiguousarray(cells[order]), key[order]
        stored = [stored[i] for i in order.tolist()] if stored else []
        skip, model = places.n_home_bytes, stream.settings.model
        portion = Portion.of(
            WINDOW_MODELS[model](in_window),
            heard_of(in_window, tuple(first.silent)),
            cells,
            numbered(key.tolist()),
            [None if blob is None else blob[skip:] for blob in stored],
            seed=seed,
        )
        sizes = [len(each.key) for each in senders]
        return cls(places, portion, cells, key, stored, order, sizes)

    def classes(self) -> Kept:
        """Return the classes of the rows, not verified yet; a search is bounded by its work."""
        return formed(self.portion, time_left=lambda: 0.0)

    def remembered(
        self, classes: Verified, *, first_company: int
    ) -> tuple[list[bytes | None], int]:
        """Return what to store of the vehicle of each row, and how many have too little left."""
        after, n_short = memories_after(self.portion, classes, first_company=first_company)
        return self.places.with_homes(self.portion, classes.kept, self.stored, after), n_short

    def by_sender(
        self, outcome: UInt8Array, memories: Memories
    ) -> list[tuple[UInt8Array, list[bytes | None]]]:
        """Return the outcome and the memory of each row of each sender, in the sender's order."""
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        cuts = np.cumsum([0, *self.sizes]).tolist()
        return [
            (
                outcome[back[a:b]],
                [memories[i] for i in back[a:b].tolist()] if any(memories) else [],
            )
            for a, b in pairwise(cuts)
        ]

    def only(self, chosen: BoolArray) -> tuple[list[Int32Array], IntArray, Memories]:
        """Return columns, keys and memories of some rows, as in `RangeRows`."""
        at = np.flatnonzero(chosen)
        stored = [self.stored[i] for i in at.tolist()] if self.stored else []
        return list(np.ascontiguousarray(self.cells[at].T)), self.key[at], stored


def settled(met: Gathered, former: Int32Array, left_out: BoolArray, *, is_new: bool) -> Verified:
    """Return the classes of rows that meet, in the order of `met`.

    `former`: the class of each row in its range, numbered so that no two ranges share one;
    `left_out`: rows that were left out for the sake of other windows; `is_new`: new classes are
    formed, and the former ones stay where new ones would suppress no fewer.
    """
    kept = Kept(without_gaps(former), met.portion.records, left_out)
    if is_new:
        found = met.classes()
        n_before = int((former == SUPPRESSED).sum())
        if found.cohorts is not None or int((found.class_of == SUPPRESSED).sum()) < n_before:
            kept = found
    return verified(met.portion, kept)


def figures(met: Gathered, classes: Verified) -> dict[str, float]:
    """Return sizes and measures of classes; no value of a record."""
    found = summary_of(met.portion, classes)
    if met.portion.past is not None:
        found["too_little_left"] = memories_after(met.portion, classes, first_company=0)[1]
    return found


@dataclass(frozen=True, slots=True)
class ClassSpan:
    """Where some classes are among all of their window.

    `first`, `n_classes`: classes before these, and those of the whole window; `next_message`: above
    the numbers of all earlier classes of the stream.
    """

    stream: int
    window: int
    n_ranges: int
    first: int
    n_classes: int
    next_message: int

    def numbers(self, n: int, *, seed: int) -> Numbers:
        """Return the numbers of n classes, in an order that is random for all of the window.

        What was formed apart would otherwise be seen by the numbers. If all is in one range, the
        classes are in their own order, as in one process.
        """
        order = np.arange(self.n_classes)
        if self.n_ranges > 1:
            order = np.random.default_rng(seed).permutation(self.n_classes)
        of_class = order[self.first : self.first + n].tolist()
        return Numbers(of_class, self.n_classes, self.next_message)


def size_of(block: int, n_classes: int, n_blocks: int) -> int:
    """Return the number of classes in a block: those with numbers `n * n_blocks // n_classes`."""
    first, end = (-(-each * n_classes // n_blocks) for each in (block, block + 1))
    return end - first


def concluded(
    rows: Gathered, classes: Verified, stretch: ClassSpan, *, number: int, n_blocks: int
) -> tuple[list[Send], list[bytes | None]]:
    """Return the messages of classes, and what to store of the vehicle of each row.

    `n_blocks`: number of stages that shuffle the classes of a window of several ranges.
    """
    memories, _ = rows.remembered(classes, first_company=stretch.next_message + stretch.first)
    sends = _written(rows, classes, stretch, number=number, n_blocks=n_blocks)
    return sends, memories


def _written(
    rows: Gathered, classes: Verified, stretch: ClassSpan, *, number: int, n_blocks: int
) -> list[Send]:
    """Return the messages of classes, to be published or to be shuffled with those of others."""
    if not classes.n_classes:
        return []
    settings = rows.portion.stream
    span = settings.rule.span(stretch.window)
    numbers = stretch.numbers(classes.n_classes, seed=rows.portion.seed)
    messages = messages_of(rows.portion, classes, span=span, numbers=numbers)
    stream, window = stretch.stream, stretch.window
    if stretch.n_ranges <= 1:
        return published(messages, name=settings.settings.name, window=window, number=number)
    sends, n = [], numbers.n_classes
    of_class = np.array(numbers.of_class, int)
    for block in range(n_blocks):
        mine = np.flatnonzero(of_class * n_blocks // n == block).tolist()
        at = 0
        for part in in_parts([messages[i] for i in mine]):
            those = of_class[mine[at : at + len(part)]].tolist()
            at += len(part)
            shuffled = Shuffled(stream, window, n, those, encode_out(part))
            sends.append(Send("range", block, encode(shuffled)))
    return sends


def published(messages: Sequence[Outgoing], *, name: str, window: int, number: int) -> list[Send]:
    """Return messages for MQTT, and for those who answer queries."""
    sends = []
    for part in in_parts(messages):
        payloads = [message.payload for message in part]
        released = ReleasedClasses(name, window, payloads)
        sends.append(Send("out", number, encode_out(part)))
        sends.append(Send("release", number, encode_classes(released)))
    return sends
