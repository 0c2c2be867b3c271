"""A vehicle that takes no part: a stage erases what it holds of it, and refuses the rest."""

from anonymizer.cluster.positions.raw_batches import STATEMENTS, Raw, encode_raw
from anonymizer.cluster.records.stream_stage import StreamStage
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import DeviceZoneSettings
from tests.cluster.records.cluster import SECRET, START, settings_for
from tests.pipeline.records.made import Sent, stream

ABSENT = b'[{"everywhere": true}]'
REFUSED = Outcome.SUPPRESSED__PRIVACY_ZONE


class Receiving:
    """A stage, and two bridges that send to it."""

    def __init__(self) -> None:
        self.tick = 0
        self.stage = self._make()

    @staticmethod
    def _make() -> StreamStage:
        made = settings_for()
        zones = DeviceZoneSettings(topic="zones/{device}")
        given = made.model_copy(update={"device_zones": zones})
        return StreamStage(given, [stream(), stream(name="other")], number=0, secret=SECRET)

    def report(self, *vehicles: str) -> None:
        """Let vehicles send a part each, which comes by the first bridge; the other has none."""
        said = {"age": 20 + self.tick}
        parts = [Sent(each, "profile", START + self.tick, said).delivery() for each in vehicles]
        for bridge, mine in (("one", parts), ("two", [])):
            raw = Raw(bridge, self.tick, False, [Arrivals(START, mine)])
            self.stage.take(encode_raw(raw), at_s=START + self.tick)
        self.tick += 1

    def state(self, vehicle: str, said: bytes, *, by: str) -> None:
        """Let a bridge pass on what a vehicle states."""
        said_of = [Delivery(f"zones/{vehicle}", said, 0, retained=True)]
        raw = Raw(by, self.tick, False, [Arrivals(START, said_of)])
        assert self.stage.take(encode_raw(raw, of=STATEMENTS), at_s=START + self.tick) == []

    def crash(self) -> None:
        """Begin anew from a snapshot."""
        snapshot, self.stage = self.stage.snapshot(), self._make()
        self.stage.restore(snapshot)

    def seen(self) -> list[tuple[int, int]]:
        """Return held and refused parts of each stream; accounts add up."""
        found = []
        for _, ledger, n_held in self.stage.ledgers[:2]:
            assert ledger.n_received == ledger.n_settled + n_held
            found.append((n_held, ledger.counts()[REFUSED]))
        assert found[0] == found[1], "the message is for both"
        return found[:1]


def test_what_is_held_of_a_vehicle_goes_with_its_withdrawal_and_what_follows_is_refused() -> None:
    stage = Receiving()
    stage.report("a", "b", "c")
    assert stage.seen() == [(3, 0)]
    stage.state("a", ABSENT, by="one")
    assert stage.seen() == [(2, 1)]
    for _ in range(2):
        stage.report("a", "b")  # that of b takes the place of the one before
        stage.crash()
    assert stage.seen() == [(2, 3)]
    stage.state("nobody", ABSENT, by="one")
    stage.state("b", b"?", by="one")
    assert stage.seen() == [(2, 3)]


def test_a_bridge_that_is_behind_the_others_lets_nobody_in_again() -> None:
    stage = Receiving()
    stage.report("a")
    stage.state("a", ABSENT, by="one")
    stage.state("a", b"[]", by="two")  # what it said before
    stage.report("a")
    assert stage.seen() == [(0, 2)]
    stage.state("a", ABSENT, by="two")
    stage.crash()
    stage.state("a", b"", by="one")
    stage.report("a")
    assert stage.seen() == [(0, 3)]
    stage.state("a", b"", by="two")
    stage.report("a")
    assert stage.seen() == [(1, 3)]


def test_the_word_of_a_bridge_that_is_gone_ends_with_the_next_statement() -> None:
    stage = Receiving()
    stage.report("a")
    stage.state("a", ABSENT, by="removed")
    stage.report("a")
    assert stage.seen() == [(0, 2)]
    stage.state("a", b"", by="one")
    stage.report("a")
    assert stage.seen() == [(1, 2)]
