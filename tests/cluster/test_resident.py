"""Stages in memory: what is committed equals an uninterrupted run, whatever happens in between."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.cluster import resident as module
from anonymizer.cluster.resident import Counts, Input, LostInputsError, Resident
from anonymizer.pipeline.stage import Send
from tests.cluster.stages import Sums


class Cells(dict[str, bytes]):
    """A state as a dictionary."""

    def get_bytes(self, key: str) -> bytes | None:
        return self.get(key)

    def set_bytes(self, key: str, value: bytes) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


class Partition:
    """A log, what of it is committed, and workers that take turns."""

    def __init__(self, log: list[Input]) -> None:
        self.log = log
        self.states = [Cells()]  # as committed, the last one newest
        self.committed = 0
        self.sent: list[Send] = []
        self.workers: dict[int, Resident] = {}
        self.owner = 0
        self.begin()

    def begin(self) -> None:
        self.at, self.state = self.committed, Cells(self.states[-1])
        self.open: list[Send] = []

    def between(self, after: int, before: int) -> Iterator[Input]:
        return (each for each in self.log if after < each.offset < before)

    def worker(self) -> Resident:
        if self.owner not in self.workers:
            self.workers[self.owner] = Resident(Sums, self.between, Counts())
        return self.workers[self.owner]

    def take(self, n: int) -> None:
        for each in self.log[self.at : self.at + n]:
            self.open += self.worker().take(each, self.state)
            self.at += 1

    def commit(self) -> None:
        self.sent += self.open
        self.committed = self.at
        self.states.append(self.state)
        self.begin()

    def roll_back(self) -> None:
        self.worker().doubt()
        self.begin()

    def crash(self) -> None:
        self.workers.pop(self.owner, None)
        self.begin()

    def move(self, to: int) -> None:
        self.owner = to
        self.worker().doubt()
        self.begin()

    def fall_behind(self, by: int) -> None:
        """Go on elsewhere, with a state from before the last transactions."""
        if len(self.states) > by + 1:
            self.states = self.states[: -by - 1]
        self.crash()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(1, 7)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("roll_back")),
        st.tuples(st.just("crash")),
        st.tuples(st.just("move"), st.integers(0, 2)),
        st.tuples(st.just("fall_behind"), st.integers(0, 2)),
    ),
    max_size=60,
)
LOGS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 30), st.integers(0, 40)), min_size=1)


def log_of(steps: list[tuple[int, int, int]]) -> list[Input]:
    inputs, offset, at_s = [], 0, 1000.0
    for gap, length, seconds in steps:
        offset, at_s = offset + gap, at_s + seconds
        inputs.append(Input(offset, bytes([length % 3]) * length, at_s))
    return inputs


@given(LOGS, STEPS)
@settings(max_examples=100, deadline=None)
def test_what_is_committed_equals_an_uninterrupted_run(
    log: list[tuple[int, int, int]], steps: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LEAST_BYTES", 300)
        patch.setattr(module, "PIECE_BYTES", 8)
        partition = Partition(log_of(log))
        for name, *arguments in steps:
            getattr(partition, name)(*arguments)
        partition.take(len(log))
        partition.commit()
    alone = Sums()
    expected = [send for each in partition.log for send in alone.take(each.value, at_s=each.at_s)]
    assert partition.sent == expected
    stage = partition.worker().stage
    assert stage is None or stage.snapshot() == alone.snapshot()


def test_a_snapshot_follows_when_more_was_taken_than_it_has_bytes() -> None:
    state, counts, written = Cells(), Counts(), 0
    resident = Resident(Sums, lambda *_: iter(()), counts)
    for offset in range(200):
        before = counts.n_snapshots
        resident.take(Input(offset, b"a" * 50_000, 0.0), state)
        written += (counts.n_snapshots - before) * sum(map(len, state.values()))
    assert 8 <= counts.n_snapshots <= 11  # one at once, then one each MiB: they are small
    assert written < 200 * 50_000


def test_a_snapshot_in_fewer_pieces_leaves_none_of_the_larger_one() -> None:
    state, resident = Cells(), Resident(Sums, lambda *_: iter(()), Counts())
    resident.take(Input(0, b"a" * (3 * module.PIECE_BYTES), 0.0), state)
    assert set(state) == {"head", "0", "1", "2", "3"}
    resident.take(Input(1, b"a" * 10, 1e6), state)
    assert set(state) == {"head", "0"}


def test_a_stage_whose_inputs_are_lost_begins_anew_and_says_so() -> None:
    def gone(_after: int, _before: int) -> Iterator[Input]:
        raise LostInputsError

    state, counts = Cells(), Counts()
    Resident(Sums, lambda *_: iter(()), Counts()).take(Input(0, b"a", 0.0), state)
    resident = Resident(Sums, gone, counts)
    resident.take(Input(7, b"b", 0.0), state)
    assert counts == Counts(n_snapshots=1, n_restored=1, n_again=0, n_anew=1)
    assert resident.offset == 7


def test_an_input_shows_nothing_of_its_content() -> None:
    assert repr(Input(3, b"secret", 0.0)) == "Input(3, 6 bytes)"
