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
    """A log, what of it is committed, and workers that take turns.

    What a committed snapshot contains is deleted from the log, as soon as `commit` says so.
    """

    def __init__(self, log: list[Input]) -> None:
        self.log = log
        self.states = [Cells()]  # as committed, the last one newest
        self.committed = 0
        self.first = 0  # offset of the first input that is kept
        self.sent: list[Send] = []
        self.workers: dict[int, Resident] = {}
        self.owner = 0
        self.begin()

    def begin(self) -> None:
        self.at, self.state = self.committed, Cells(self.states[-1])
        self.open: list[Send] = []

    def between(self, after: int, before: int) -> Iterator[Input]:
        if before - after > 1 and self.first > after + 1:
            raise LostInputsError
        return (each for each in self.log if after < each.offset < before)

    def worker(self) -> Resident:
        if self.owner not in self.workers:
            self.workers[self.owner] = Resident(Sums, self.between, Counts())
        return self.workers[self.owner]

    def take(self, n: int) -> None:
        for each in self.log[self.at : self.at + n]:
            self.open += self.worker().take(each, self.state)
            self.at += 1

    def commit(self, *, erases: bool = False) -> None:
        self.sent += self.open
        self.committed = self.at
        self.states.append(self.state)
        if erases:
            self.first = max(self.first, self.worker().covered + 1)
            self.states = self.states[-1:]  # none of before can be gone back to
        self.begin()

    def erase(self) -> None:
        self.commit(erases=True)

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
        st.tuples(st.just("erase")),
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


def gone(_after: int, _before: int) -> Iterator[Input]:
    raise LostInputsError


@pytest.mark.parametrize("heals", [True, False])
def test_a_stage_whose_inputs_are_lost_goes_on_only_if_it_heals(*, heals: bool) -> None:
    state, counts = Cells(), Counts()
    Resident(Sums, lambda *_: iter(()), Counts()).take(Input(0, b"a", 0.0), state)
    resident = Resident(Sums, gone, counts, heals=heals)
    if heals:
        resident.take(Input(7, b"b", 0.0), state)
        assert (resident.offset, resident.covered) == (7, 7)
        assert counts.n_snapshots == 1
    else:
        for _ in range(2):
            with pytest.raises(LostInputsError):
                resident.take(Input(7, b"b", 0.0), state)
    assert counts.n_anew == (1 if heals else 2)


def test_inputs_before_the_snapshot_of_another_worker_are_not_asked_for() -> None:
    state, inputs = Cells(), [Input(n, b"abc"[n % 3 :], 400.0 * n) for n in range(5)]
    mine = Resident(Sums, lambda *_: iter(()), Counts())
    mine.take(inputs[0], state)
    other = Resident(Sums, lambda *_: iter(()), Counts())
    for each in inputs[1:4]:
        other.take(each, state)  # and stores a snapshot
    mine.doubt()

    def after(first: int, before: int) -> Iterator[Input]:
        assert (first, before) == (3, 4)
        return iter(())

    mine._between = after  # what Kafka has now
    alone = Sums()
    expected = [alone.take(each.value, at_s=each.at_s) for each in inputs][-1]
    assert mine.take(inputs[4], state) == expected


def test_what_the_snapshot_contains_is_not_taken_twice_when_kafka_forgot_the_offset() -> None:
    state = Cells()
    Resident(Sums, lambda *_: iter(()), Counts()).take(Input(0, b"a" * 9, 60.0), state)
    resident = Resident(Sums, lambda *_: iter(()), Counts())
    assert resident.take(Input(0, b"a" * 9, 60.0), state) == []
    assert resident.stage is not None
    assert resident.stage.snapshot() == _after(Input(0, b"a" * 9, 60.0))
    assert resident.take(Input(1, b"b", 120.0), state) != []


def _after(given: Input) -> bytes:
    stage = Sums()
    stage.take(given.value, at_s=given.at_s)
    return stage.snapshot()


def test_an_input_shows_nothing_of_its_content() -> None:
    assert repr(Input(3, b"secret", 0.0)) == "Input(3, 6 bytes)"
