"""Stages in memory: what is committed equals an uninterrupted run, whatever happens in between."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster import resident as module
from anonymizer.cluster.resident import (
    SNAPSHOT_FORMAT,
    Input,
    LostInputsError,
    Place,
    Resident,
    StageEvents,
    StandstillError,
)
from anonymizer.cluster.stage import Send
from tests.cluster.residents import Cells, Inputs, resident_of, said
from tests.cluster.stages import FAILS, UNREADABLE, Sums


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
        self.worker: Resident
        self.crash()

    def begin(self) -> None:
        self.at, self.state = self.committed, Cells(self.states[-1])
        self.open: list[Send] = []

    name = "sums"

    def place(self) -> Place:
        return Place("kafka/topic", self.log[-1].offset + 1)

    def between(self, after: int, before: int) -> Iterator[Input]:
        if before - after > 1 and self.first > after + 1:
            raise LostInputsError
        return (each for each in self.log if after < each.offset < before)

    def stored(self) -> Mapping[str, bytes]:
        return self.states[-1]  # nobody reads what is not committed

    def store(self, name: str, value: bytes | None) -> None:
        self.state.store(name, value)

    def take(self, n: int) -> None:
        for each in self.log[self.at : self.at + n]:
            self.open += self.worker.take(each)
            self.at += 1

    def commit(self, *, erases: bool = False) -> None:
        self.sent += self.open
        self.committed = self.at
        self.states.append(self.state)
        if erases:
            self.first = max(self.first, self.worker.covered + 1)
            self.states = self.states[-1:]  # none of before can be gone back to
        self.begin()

    def erase(self) -> None:
        self.commit(erases=True)

    def crash(self) -> None:
        """Go on elsewhere, or after a transaction that was given up: with a new stage."""
        self.worker = Resident(Sums, self, said, StageEvents())
        self.begin()

    def fall_behind(self, by: int) -> None:
        """Go on elsewhere, where the last transactions are not seen yet."""
        if len(self.states) > by + 1:
            self.states = self.states[: -by - 1]
        self.crash()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(1, 7)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("erase")),
        st.tuples(st.just("crash")),
        st.tuples(st.just("fall_behind"), st.integers(0, 2)),
    ),
    max_size=60,
)
KINDS = st.sampled_from([b"", b"", b"", UNREADABLE, FAILS])
LOGS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 30), st.integers(0, 40), KINDS), min_size=1
)


def log_of(steps: list[tuple[int, int, int, bytes]]) -> list[Input]:
    """Return a log; some of its inputs cannot be read, and at some the stage fails."""
    inputs, offset, at_s = [], 0, 1000.0
    for gap, length, seconds, kind in steps:
        offset, at_s = offset + gap, at_s + seconds
        far_s = 1e6 if kind else 0.0  # their time does not count, either
        inputs.append(Input(offset, kind + bytes([length % 3]) * length, at_s + far_s))
    return inputs


def sent_alone(inputs: Sequence[Input]) -> tuple[Sums, list[Send]]:
    """Return a stage that has taken what it can take, and what it has sent."""
    alone, sent = Sums(), []
    for each in inputs:
        if each.value[:1] == UNREADABLE:
            sent += said(each, "unreadable")
        elif each.value[:1] == FAILS:
            sent += said(each, "failed")
        else:
            sent += alone.take(each.value, at_s=each.at_s)
    return alone, sent


@given(LOGS, STEPS)
def test_what_is_committed_equals_an_uninterrupted_run(
    log: list[tuple[int, int, int, bytes]], steps: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LEAST_BYTES", 300)
        patch.setattr(module, "PIECE_BYTES", 8)
        partition = Partition(log_of(log))
        for name, *arguments in steps:
            getattr(partition, name)(*arguments)
        partition.take(len(log))
        partition.commit()
    alone, expected = sent_alone(partition.log)
    assert partition.sent == expected
    stage = partition.worker.stage
    assert stage is None or stage.snapshot() == alone.snapshot()


def test_a_snapshot_follows_when_more_was_taken_than_it_has_bytes() -> None:
    state, counts, written = Cells(), StageEvents(), 0
    resident = resident_of(Inputs(state), counts)
    for offset in range(200):
        before = counts.n_snapshots
        resident.take(Input(offset, b"a" * 50_000, 0.0))
        written += (counts.n_snapshots - before) * sum(map(len, state.values()))
    assert 8 <= counts.n_snapshots <= 11  # one at once, then one each MiB: they are small
    assert written < 200 * 50_000


def test_a_snapshot_in_fewer_pieces_leaves_none_of_the_larger_one() -> None:
    state = Cells()
    resident = resident_of(Inputs(state))
    resident.take(Input(0, b"a" * (3 * module.PIECE_BYTES), 0.0))
    assert set(state) == {"head", "0", "1", "2", "3"}
    resident.take(Input(1, b"a" * 10, 1e6))
    assert set(state) == {"head", "0"}


def test_a_snapshot_in_fewer_pieces_leaves_none_of_another_workers_larger_one() -> None:
    state = Cells()
    resident_of(Inputs(state)).take(Input(0, b"a" * (3 * module.PIECE_BYTES), 0.0))
    resident_of(Inputs(state)).take(Input(1, b"a" * 10, 1e6))
    assert set(state) == {"head", "0"}


class Gone(Inputs):
    """A journal of which nothing is there."""

    def between(self, after: int, before: int) -> Iterator[Input]:  # noqa: ARG002
        raise LostInputsError


def test_a_stage_whose_inputs_are_lost_does_not_go_on() -> None:
    state, counts = Cells(), StageEvents()
    resident_of(Inputs(state)).take(Input(0, b"a", 0.0))
    resident = Resident(Sums, Gone(state), said, counts)
    for _ in range(2):
        with pytest.raises(LostInputsError):
            resident.take(Input(7, b"b", 0.0))
    assert counts.n_anew == 2


def test_inputs_before_the_snapshot_of_another_worker_are_not_asked_for() -> None:
    state, inputs = Cells(), [Input(n, b"abc"[n % 3 :], 400.0 * n) for n in range(5)]
    other = resident_of(Inputs(state))
    for each in inputs[:4]:
        other.take(each)  # and stores a snapshot
    journal = Inputs(state)
    alone = Sums()
    expected = [alone.take(each.value, at_s=each.at_s) for each in inputs][-1]
    resident = resident_of(journal)
    assert resident.take(inputs[4]) == expected
    assert journal.asked == [(3, 4)]
    assert resident.covered == 4, "of its own snapshot"
    later = resident_of(Inputs(state))
    later.take(Input(5, b"b", inputs[4].at_s + 1.0))
    assert later.covered == 4, "of the one that it went back to"


def test_pieces_of_a_snapshot_that_was_never_committed_are_left_nowhere() -> None:
    """A stage fails in the transaction in which it has stored a larger snapshot than before."""
    committed, journal = Cells(), Inputs()
    resident = Resident(Sums, journal, said, StageEvents())
    resident.take(Input(0, b"a", 0.0))
    committed.update(journal.state)
    large = Input(1, b"a" * (3 * module.PIECE_BYTES), 400.0)
    resident.take(large)
    assert set(journal.state) == {"head", "0", "1", "2", "3"}
    journal.stored = lambda: committed  # type: ignore[method-assign]
    journal.inputs = [large, Input(2, b"a", 401.0)]
    resident.take(journal.inputs[1])
    resident.take(Input(3, FAILS, 402.0))
    assert set(journal.state) == {"head", "0"}


def test_what_the_snapshot_contains_is_not_taken_twice_when_kafka_forgot_the_offset() -> None:
    journal = Inputs()
    resident_of(journal).take(Input(0, b"a" * 9, 60.0))
    resident = resident_of(journal)
    assert resident.take(Input(0, b"a" * 9, 60.0)) == []
    assert resident.stage is not None
    assert resident.stage.snapshot() == _after(Input(0, b"a" * 9, 60.0))
    assert resident.take(Input(1, b"b", 120.0)) != []


def _after(given: Input) -> bytes:
    stage = Sums()
    stage.take(given.value, at_s=given.at_s)
    return stage.snapshot()


def test_an_input_shows_nothing_of_its_content() -> None:
    assert repr(Input(3, b"secret", 0.0)) == "Input(...)"


@pytest.mark.parametrize("is_awake", [True, False])
def test_a_state_of_another_topic_stands_still_and_takes_nothing(*, is_awake: bool) -> None:
    """Kafka came back empty: its first offsets are below those that the state contains."""
    journal = Inputs()
    resident = resident_of(journal)
    resident.take(Input(7, b"a", 0.0))
    before = dict(journal.state)
    journal.origin = "kafka/another"
    if not is_awake:
        resident = resident_of(journal)
    for offset in (0, 7, 8) if not is_awake else (0, 7):
        with pytest.raises(StandstillError, match="belongs to another topic"):
            resident.take(Input(offset, b"a", 0.0))
    assert journal.state == before


def test_a_topic_that_was_deleted_under_a_stage_is_noticed_before_the_next_snapshot() -> None:
    journal = Inputs()
    resident = resident_of(journal)
    resident.take(Input(7, b"a", 0.0))
    journal.origin = "kafka/another"
    resident.take(Input(8, b"a", 1.0))
    before = dict(journal.state)
    with pytest.raises(StandstillError, match="another topic"):
        resident.take(Input(9, b"a", 1000.0))
    assert journal.state == before


def test_a_state_that_contains_more_than_kafka_has_stands_still() -> None:
    journal = Inputs()
    resident_of(journal).take(Input(7, b"a", 0.0))
    journal.end = 7
    with pytest.raises(StandstillError, match="up to offset 7, and Kafka has only those before 7"):
        resident_of(journal).take(Input(3, b"a", 0.0))
    journal.end = 8
    assert resident_of(journal).take(Input(3, b"a", 0.0)) == []


@pytest.mark.parametrize(
    ("head", "named"),
    [
        ([1, 0, 1, 0.0], "1"),
        ([SNAPSHOT_FORMAT + 1, 0, 1, 0.0, "kafka/topic", {}, b"new"], str(SNAPSHOT_FORMAT + 1)),
        ([SNAPSHOT_FORMAT, 0, 1, 0.0, "kafka/topic", None], "unknown"),
        ([], "unknown"),
        ("2", "2"),
        (b"", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_snapshot_of_another_format_is_refused_by_its_number(head: object, named: str) -> None:
    journal = Inputs()
    resident_of(journal).take(Input(0, b"a", 0.0))
    journal.state["head"] = msgspec.msgpack.encode(head)
    before = dict(journal.state)
    with pytest.raises(StandstillError, match=rf"sums .* is in format {named}, .* Upgrade"):
        resident_of(journal).take(Input(1, b"a", 0.0))
    assert journal.state == before


def test_a_snapshot_that_cannot_be_read_is_refused() -> None:
    journal = Inputs()
    resident_of(journal).take(Input(0, b"a", 0.0))
    journal.state["0"] = b"secret"
    with pytest.raises(StandstillError, match="its snapshot cannot be read") as caught:
        resident_of(journal).take(Input(1, b"a", 0.0))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [UNREADABLE, FAILS])
def test_an_input_that_cannot_be_taken_costs_itself_and_is_counted(kind: bytes) -> None:
    counts, journal = StageEvents(), Inputs()
    resident = Resident(Sums, journal, said, counts)
    sent = []
    for offset in range(30):
        value = kind + b"x" if offset % 7 == 3 else b"a" * offset + b"b"
        journal.inputs.append(Input(offset, value, float(offset)))
        sent += resident.take(journal.inputs[-1])
    alone, expected = sent_alone(journal.inputs)
    assert sent == expected
    assert resident.stage is not None
    assert resident.stage.snapshot() == alone.snapshot()
    why = "unreadable" if kind == UNREADABLE else "failed"
    assert counts.n_dropped == dict.fromkeys(counts.n_dropped, 0) | {why: 4}


def test_a_time_that_an_input_states_does_not_count_where_it_is_dropped() -> None:
    resident = resident_of(Inputs())
    resident.take(Input(0, b"a", 1.0))
    resident.take(Input(1, UNREADABLE, 1e6))
    assert (resident.offset, resident.at_s) == (1, 1.0)


def test_nobody_goes_back_a_second_time_before_an_input_at_which_the_stage_failed() -> None:
    counts, journal = StageEvents(), Inputs()
    resident = resident_of(journal, counts)
    for offset, value in enumerate((b"a", b"b", FAILS)):
        journal.inputs.append(Input(offset, value, float(offset)))
        resident.take(journal.inputs[-1])
    assert (counts.n_snapshots, resident.covered) == (2, 2)


def test_a_lack_of_memory_is_nothing_that_an_input_did() -> None:
    class Short(Sums):
        def take(self, value: bytes, *, at_s: float) -> list[Send]:  # noqa: ARG002
            raise MemoryError

    with pytest.raises(MemoryError):
        Resident(Short, Inputs(), said, StageEvents()).take(Input(0, b"a", 0.0))
