from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.cluster.positions.tick_queue import TickQueue
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals

WAIT_S = 3.0


class Bridges:
    """A queue, and bridges that send to it."""

    def __init__(self, limit: int = 100) -> None:
        self.ledger = Ledger()
        self.queue = TickQueue(limit, self.ledger, wait_s=WAIT_S)

    def send(
        self, bridge: str, tick: int, *topics: str, at_s: float, last: bool = False
    ) -> list[tuple[int, list[str]]]:
        """Send messages; return the ticks that are due, and the topics of their messages."""
        batch = [Delivery(topic, b"{}", 0, False) for topic in topics]
        self.queue.pass_time(at_s)
        self.queue.put(Raw(bridge, tick, last, [Arrivals(at_s, batch)]))
        return self.due()

    def due(self) -> list[tuple[int, list[str]]]:
        found = []
        while (tick := self.queue.due()) is not None:
            arrivals = self.queue.take(tick)
            found.append((tick, [each.topic for batch in arrivals for each in batch.deliveries]))
        waiting = self.queue.n_waiting + self.ledger.n_settled
        assert self.ledger.n_received == waiting + sum(len(topics) for _, topics in found)
        self.ledger.n_received -= sum(len(topics) for _, topics in found)
        return found

    def begin(self, *bridges: str) -> None:
        """Let these bridges be known, and the wait of the first tick be over."""
        for tick in range(5):
            for bridge in bridges:
                self.send(bridge, tick, at_s=tick + 1.0)
        assert self.queue.last == 4


def test_the_first_tick_waits_for_bridges_that_nobody_knows_yet() -> None:
    bridges = Bridges()
    assert bridges.send("a", 7, "x", at_s=8.0) == []
    assert bridges.send("b", 7, "y", at_s=9.0) == []
    assert bridges.send("a", 10, at_s=11.5) == [(7, ["x", "y"])]
    assert bridges.queue.n_incomplete == 0


def test_a_tick_is_due_when_all_bridges_have_stated_it() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert bridges.send("a", 5, "x", at_s=6.0) == []
    assert bridges.send("b", 6, "y", at_s=6.5) == [(5, ["x"])]
    assert bridges.send("a", 6, "z", at_s=7.0) == [(6, ["y", "z"])]


def test_the_pieces_of_a_tick_belong_together_whatever_they_state() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert bridges.send("b", 5, at_s=6.0) == []
    assert bridges.send("a", 4, "x", at_s=6.0) == []
    assert bridges.send("a", 5, "y", at_s=6.0) == [(5, ["x", "y"])]
    assert bridges.queue.n_late == 0


def test_a_bridge_that_falls_silent_holds_up_ticks_for_a_while_and_then_none() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert [bridges.send("a", tick, at_s=tick + 1.0) for tick in (5, 6, 7)] == [[], [], []]
    assert bridges.send("a", 8, at_s=9.0) == [(5, []), (6, []), (7, []), (8, [])]
    assert bridges.send("a", 9, at_s=10.0) == [(9, [])]
    assert bridges.send("b", 5, "x", at_s=10.5) == []
    assert bridges.queue.n_late == 1
    assert bridges.send("a", 10, "y", at_s=11.0) == [(10, ["x", "y"])]


def test_a_tick_waits_no_longer_than_that_for_a_bridge_that_is_behind() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert bridges.send("a", 10, "x", at_s=6.0) == []
    assert bridges.send("b", 5, at_s=7.0) == [(5, [])]
    assert bridges.send("b", 6, at_s=8.0) == [(6, [])]
    assert bridges.send("b", 7, at_s=9.5) == [(7, []), (10, ["x"])]
    assert bridges.queue.n_incomplete == 1


def test_time_does_not_go_back_with_an_input_that_was_written_earlier() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert bridges.send("a", 5, "x", at_s=6.0) == []
    bridges.queue.pass_time(9.5)
    bridges.queue.pass_time(1.0)
    assert bridges.due() == [(5, ["x"])]


def test_a_bridge_that_was_silent_for_long_is_kept_nowhere() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    for tick in range(5, 12):
        bridges.send("a", tick, at_s=tick + 1.0)
    assert [name for name, *_ in bridges.queue.state()["bridges"]] == ["a"]


def test_a_statement_from_before_the_last_tick_tells_how_far_a_clock_was_ahead() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    bridges.send("a", 2, at_s=6.0)
    assert bridges.queue.n_behind == 2
    bridges.send("a", 5, at_s=6.0)
    assert bridges.queue.n_behind == 0


def test_a_bridge_that_states_nothing_new_holds_up_no_tick() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    for tick in range(5, 9):
        bridges.send("b", 2, at_s=tick + 1.0)
        bridges.send("a", tick, at_s=tick + 1.0)
    assert bridges.queue.last == 8


def test_a_bridge_that_has_stopped_is_not_waited_for() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    assert bridges.send("b", 5, "x", at_s=6.0, last=True) == []
    assert bridges.send("a", 5, at_s=6.0) == [(5, ["x"])]
    assert bridges.send("a", 6, at_s=7.0) == [(6, [])]


def test_with_half_of_what_may_wait_a_tick_that_one_has_stated_waits_for_no_other() -> None:
    bridges = Bridges(limit=8)
    bridges.begin("a", "b")
    assert bridges.send("a", 4, *"vw", at_s=6.0) == []
    assert bridges.send("a", 5, *"xy", at_s=6.0) == []
    assert bridges.send("a", 5, "z", at_s=6.5) == [(5, list("vwxy"))]  # z is of the next
    assert bridges.queue.n_incomplete == 1
    assert bridges.send("b", 5, "u", at_s=7.0) == []
    assert bridges.send("b", 6, at_s=7.0) == []
    assert bridges.send("a", 6, at_s=7.0) == [(6, ["z", "u"])]
    assert sum(bridges.ledger.counts().values()) == 0


def test_beyond_the_limit_messages_yield_to_newer_ones_of_their_topics() -> None:
    bridges = Bridges(limit=8)
    bridges.begin("a", "b")
    for _ in range(2):  # of a tick that nobody has stated, so that it cannot be taken
        bridges.send("a", 4, *"vwxyz", at_s=6.0)
    assert bridges.queue.n_waiting == 5
    assert sum(bridges.ledger.counts().values()) == 5
    assert bridges.send("b", 6, at_s=6.5) == [(5, list("vwxyz"))]


def test_beyond_the_limit_a_quarter_of_it_is_free_again_so_that_this_is_seldom() -> None:
    bridges = Bridges(limit=8)
    bridges.begin("a", "b")
    bridges.send("a", 4, *"abcdefghi", at_s=6.0)
    assert bridges.queue.n_waiting == 6


def test_a_queue_goes_on_from_its_state() -> None:
    bridges = Bridges()
    bridges.begin("a", "b")
    bridges.send("a", 5, "x", at_s=6.0)
    bridges.send("a", 6, "y", at_s=7.0)
    state = bridges.queue.state()
    bridges.queue = TickQueue(100, bridges.ledger, wait_s=WAIT_S)
    bridges.queue.restore(unpack(pack(state)))
    assert pack(bridges.queue.state()) == pack(state)
    assert bridges.send("b", 6, at_s=7.5) == [(5, ["x"]), (6, ["y"])]
