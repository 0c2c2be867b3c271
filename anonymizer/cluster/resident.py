"""A stage that stays in memory, and what it needs to stand where it stood after a crash.

What a stage has taken lies in Kafka, in one partition, in one order: the topic is the journal. The
state therefore is a snapshot of the stage and the offset of the last input before it. From there,
the stage takes the inputs again that lie between, and what it sends meanwhile is dropped: it was
sent before. State, outputs and offsets are committed together, so an input that has not come yet is
one whose outputs nobody has seen. Inputs that a committed snapshot contains are not needed any
more.

A state that is older than the outputs is no harm: then more inputs are taken again.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from anonymizer.errors import TransportError
from anonymizer.pipeline.stage import Send, Stage

PIECE_BYTES = 512 << 10
"""A snapshot is stored in pieces of this size, below the limit of Kafka's messages."""
_LEAST_BYTES = 1 << 20
"""Inputs of fewer bytes are rather taken again than followed by a snapshot."""
_MOST_AGE_S = 300.0
"""Age at which a snapshot is replaced however small the inputs were. Until then Kafka keeps raw
data."""
_INPUT_BYTES = 64
"""Added to the size of each input for the work that it takes."""
_HEAD = "head"


class Input(NamedTuple):
    """What came to a stage: where it lies in the partition, its content, and when it was written.

    `at_s` is in unix seconds.
    """

    offset: int
    value: bytes
    at_s: float

    def __repr__(self) -> str:
        """Reveal no content."""
        return f"Input({self.offset}, {len(self.value)} bytes)"


class LostInputsError(TransportError):
    """Kafka does not have the inputs any more that would have to be taken again."""


class State(Protocol):
    """Remembers bytes by names, as a state of Quix Streams does."""

    def get_bytes(self, key: str) -> bytes | None:
        """Return what was stored, or None."""
        ...

    def set_bytes(self, key: str, value: bytes) -> None:
        """Store bytes."""
        ...

    def delete(self, key: str) -> None:
        """Forget what was stored, if anything was."""
        ...


class _Head(msgspec.Struct, array_like=True):
    """What the state says about its snapshot."""

    version: int
    offset: int
    n_pieces: int
    at_s: float


@dataclass
class Counts:
    """What happened to the stages of a worker.

    Attributes
    ----------
    n_snapshots, n_restored
        Snapshots stored, and how often one was gone back to.
    n_again
        Inputs taken again.
    n_anew
        How often a stage lost its state because its inputs were lost.
    """

    n_snapshots: int = 0
    n_restored: int = 0
    n_again: int = 0
    n_anew: int = 0


class Resident:
    """One stage, which takes each input of its key once, in the order of the partition.

    Parameters
    ----------
    make
        Returns a new stage.
    between
        Returns the inputs of the stage after one offset and before another, which was read. It
        raises LostInputsError if they are not there any more.
    counts
        Counted on.
    heals
        Whether a new stage learns from others what it has to know. If not, one that has lost
        inputs raises LostInputsError: what it has forgotten could break a promise.

    Attributes
    ----------
    stage
        None before the first input.
    offset, at_s
        Of the last input taken; -1 and 0 before.
    covered
        Offset of the last input that the stored snapshot contains; -1 while that is not known.
        Earlier inputs are not needed when the transaction that stored it is committed.
    """

    def __init__(
        self,
        make: Callable[[], Stage],
        between: Callable[[int, int], Iterator[Input]],
        counts: Counts,
        *,
        heals: bool = False,
    ) -> None:
        self._make, self._between, self._counts = make, between, counts
        self._heals = heals
        self.stage: Stage | None = None
        self.offset, self.at_s = -1, 0.0
        self.covered = -1
        self._doubtful = True
        self._n_bytes = 0
        self._n_snapshot_bytes = 0
        self._snapshot_at_s = 0.0

    @property
    def is_sure(self) -> bool:
        """Whether the stage stands where the last input left it: nothing is to be taken again."""
        return self.stage is not None and not self._doubtful

    def doubt(self) -> None:
        """Expect that others have taken inputs meanwhile, or that what was taken is to come again.

        Call it whenever the partition was assigned, or was taken away.
        """
        self._doubtful = True
        self.covered = -1

    def take(self, given: Input, state: State) -> list[Send]:
        """Let the stage take an input, and return what it sends.

        Parameters
        ----------
        given
            The next input whose outputs were not committed.
        state
            That of the stage, in the transaction that commits the outputs.

        Raises
        ------
        LostInputsError
            If inputs are missing before this one.
        """
        stage = self._standing_before(given.offset, state)
        if given.offset <= self.covered:
            return []  # Kafka has forgotten that it was taken, and the snapshot has not
        sends = stage.take(given.value, at_s=given.at_s)
        self._passed(given)
        if (
            self._n_bytes > max(_LEAST_BYTES, self._n_snapshot_bytes)
            or given.at_s - self._snapshot_at_s > _MOST_AGE_S
        ):
            self._save(stage, state)
        return sends

    def _standing_before(self, offset: int, state: State) -> Stage:
        stage = self.stage
        if stage is not None and not self._doubtful and self.offset < offset:
            return stage
        stored = state.get_bytes(_HEAD)
        head = None if stored is None else _DECODE(stored)
        self.covered = -1 if head is None else head.offset
        # Inputs before the snapshot may be gone.
        if stage is None or self.offset >= offset or self.offset < self.covered:
            stage = self._restored(head, state)
        try:
            for each in self._between(self.offset, offset):
                stage.take(each.value, at_s=each.at_s)
                self._passed(each)
                self._counts.n_again += 1
        except LostInputsError:
            self._counts.n_anew += 1
            if not self._heals:
                raise
            stage = self._new()
            self.offset = offset - 1
        self.stage, self._doubtful = stage, False
        return stage

    def _passed(self, given: Input) -> None:
        self.offset, self.at_s = given.offset, given.at_s
        self._n_bytes += len(given.value) + _INPUT_BYTES

    def _new(self) -> Stage:
        self.offset, self._n_bytes, self._n_snapshot_bytes = -1, 0, 0
        self._snapshot_at_s = -math.inf  # a snapshot at once
        return self._make()

    def _restored(self, head: _Head | None, state: State) -> Stage:
        stage = self._new()
        if head is None:
            return stage  # it has not taken anything, or has to take everything again
        pieces = [state.get_bytes(str(piece)) for piece in range(head.n_pieces)]
        snapshot = b"".join(piece for piece in pieces if piece is not None)
        stage.restore(snapshot)
        self.offset, self.at_s = head.offset, head.at_s
        self._n_snapshot_bytes, self._snapshot_at_s = len(snapshot), head.at_s
        self._counts.n_restored += 1
        return stage

    def _save(self, stage: Stage, state: State) -> None:
        snapshot = stage.snapshot()
        stored = state.get_bytes(_HEAD)
        n_before = 0 if stored is None else _DECODE(stored).n_pieces
        starts = range(0, len(snapshot), PIECE_BYTES)
        for piece, start in enumerate(starts):
            state.set_bytes(str(piece), snapshot[start : start + PIECE_BYTES])
        for piece in range(len(starts), n_before):
            state.delete(str(piece))
        head = _Head(1, self.offset, len(starts), self.at_s)
        state.set_bytes(_HEAD, msgspec.msgpack.encode(head))
        self._n_bytes, self._n_snapshot_bytes = 0, len(snapshot)
        self._snapshot_at_s = self.at_s
        self.covered = self.offset
        self._counts.n_snapshots += 1


_DECODE = msgspec.msgpack.Decoder(_Head).decode
