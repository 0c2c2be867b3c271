"""Whenever positions arrive and none is published, one sentence says why, with the number."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import shortage
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoded import InputCounts
from anonymizer.pipeline.positions.tick.factory import density_rule
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.pipeline.positions.tick.silence import Reason, SilenceRule, Standing
from anonymizer.settings import Settings, zones_of
from tests.examples import many
from tests.pipeline.positions.support import NOW, SECRET

CITY = load_network("city:400")
INIT = {"adka": {"k_floor": 5}}
"""What `anonymizer init` writes, the rest being defaults."""


class Fleet:
    """A flow with the settings of `init` under an injected clock, and phones that report."""

    def __init__(
        self,
        n_phones: int,
        *,
        every_s: float = 30.0,
        payload: bytes = b"",
        **tables: object,
    ) -> None:
        self.payload = payload
        self.settings = Settings.model_validate(INIT | tables)
        self.ledger = Ledger()
        self.inbox = Inbox(1000, self.ledger)
        self.now = 0.0
        self.flow = PositionFlow(
            self.settings,
            with_zones(CITY, zones_of(self.settings.zones)),
            self.ledger,
            secret=SECRET,
            monotonic=lambda: self.now,
        )
        rng = np.random.default_rng(1)
        self.at = rng.integers(0, CITY.n_nodes, n_phones)
        self.phase = rng.uniform(0, every_s, n_phones)
        self.every_s = every_s

    def says(self, phone: int) -> bytes:
        node = self.at[phone]
        return self.payload or b'{"lat":%.6f,"lon":%.6f}' % (CITY.lat[node], CITY.lon[node])

    def deliveries(self, since: float, until: float) -> Sequence[Delivery]:
        turn = np.floor((until - self.phase) / self.every_s)
        due = (turn > np.floor((since - self.phase) / self.every_s)) & (until >= self.phase)
        return [
            Delivery(f"positions/phone-{i}", self.says(i), 0, retained=False)
            for i in np.flatnonzero(due).tolist()
        ]

    def run(self, seconds: float) -> None:
        """Go on in steps of half a second."""
        end = self.now + seconds
        while self.now < end:
            before, self.now = self.now, self.now + 0.5
            self.inbox.put(self.deliveries(before, self.now), at_s=self.now)
            output = self.flow.tick(self.inbox.take(), now=NOW + self.now)
            self.flow.settle(output, [True] * len(output.messages), seconds=0.001)

    @property
    def why(self) -> Reason | None:
        return self.flow.view.silent


class Renaming(Fleet):
    """Phones that send every message under a new id; they stand still, or go to any node."""

    stands = True
    n_sent = 0

    def deliveries(self, since: float, until: float) -> Sequence[Delivery]:
        said = []
        for each in super().deliveries(since, until):
            self.n_sent += 1
            said.append(each._replace(topic=f"positions/id-{self.n_sent}"))
        if not self.stands:
            self.at = np.random.default_rng(self.n_sent).integers(0, CITY.n_nodes, len(self.at))
        return said


@pytest.mark.parametrize("mode", ["session", "snapshot", "adka"])
@pytest.mark.parametrize("stands", [True, False])
def test_three_phones_never_make_a_group_of_five_by_an_id_for_each_message(
    mode: str, *, stands: bool
) -> None:
    region = {"mode": mode}
    fleet = Renaming(3, every_s=1.0, region=region)
    trusting = Renaming(3, every_s=1.0, region=region, inputs=[{"ids_change_s": 0}])
    honest = Fleet(60, every_s=1.0, region=region)
    fleet.stands = trusting.stands = stands
    for each in (fleet, trusting, honest):
        each.run(40)
    assert not fleet.flow.stats.n_messages_out
    assert fleet.why is not None
    assert fleet.why.kind == "too new"
    assert str(fleet.flow.view.n_devices) not in fleet.why.public
    # The controls: ids that are said to stay are believed, and phones that keep theirs published.
    assert trusting.flow.stats.n_messages_out
    assert honest.flow.stats.n_messages_out


TOO_FEW = "devices are present and a group needs 10: nothing is published until more come"


@pytest.mark.parametrize(
    ("n_phones", "keys"),
    [(3, "k_values = [3, 3, 2] and k_floor = 3"), (6, "k_values = [6, 5, 2]")],
)
def test_too_few_phones_are_told_with_both_numbers_and_what_would_do(
    n_phones: int, keys: str
) -> None:
    stay = [{"ids_change_s": 0}]
    fleet = Fleet(n_phones, inputs=stay)
    fleet.run(60)
    assert fleet.why is not None
    assert fleet.why.text == (
        f"{n_phones} {TOO_FEW}, then within 60 s, or, for less protection, write {keys} in [adka]"
        " and restart"
    )
    # Nobody else learns how many there are.
    assert str(n_phones) not in fleet.why.public.replace("5 to 10", "")
    assert "5 to 10" in fleet.why.public
    written = tomllib.loads("\n".join(keys.split(" and ")))
    after = Fleet(n_phones, inputs=stay, adka=INIT["adka"] | written)
    after.run(120)
    assert after.flow.stats.n_messages_out


def test_a_silence_is_told_two_beats_and_the_first_groups_after_it_begins() -> None:
    """As the manual says: at least 25 s; readers without the log have it one report later."""
    fleet = Fleet(3, every_s=1.0)
    fleet.run(25)
    assert fleet.why is None
    fleet.run(2)
    assert fleet.why is not None


def test_twenty_phones_are_published_within_a_minute_or_wait_for_a_time_that_is_told() -> None:
    fleet = Fleet(20)
    fleet.run(60)
    assert fleet.flow.stats.n_messages_out or fleet.why is not None


def test_a_fleet_that_is_published_never_hears_of_a_silence() -> None:
    fleet = Fleet(60, every_s=5.0)
    for _ in range(60):
        fleet.run(5)
        assert fleet.why is None
    assert fleet.flow.stats.n_messages_out > 20


def test_newcomers_whose_epoch_has_not_come_are_told_how_long_they_wait() -> None:
    fleet = Fleet(0, inputs=[{"ids_change_s": 0}])
    rng = np.random.default_rng(2)
    # All report a minute after the first one, and then once in four minutes.
    fleet.every_s, fleet.at = 240.0, rng.integers(0, CITY.n_nodes, 30)
    fleet.phase = np.append(0.4, rng.uniform(65, 75, 29))
    fleet.run(80)
    why = fleet.why
    assert why is not None
    assert why.kind == "waiting"
    assert "30 devices wait for their first groups" in why.text
    assert "within 60 s" in why.text
    assert not fleet.flow.stats.n_messages_out
    fleet.run(60)
    assert fleet.flow.stats.n_messages_out


@pytest.mark.parametrize(
    ("payload", "tables", "said"),
    [
        (b'{"latitude":60.1,"longitude":24.9}', {}, "invalid schema: payloads lack a field"),
        (b'{"lat":1.0,"lon":2.0}', {}, "suppressed off graph: positions are not on the roads"),
        (b'{"lat":60.1,"lon":24.9,"ts":1600000000}', {}, "invalid ancient time: times are of"),
        (b"not json", {"inputs": [{}, {"topic": "trams/{device}"}]}, "invalid malformed"),
    ],
)
def test_an_input_of_which_nothing_is_usable_is_named_with_its_count(
    payload: bytes, tables: dict[str, Any], said: str
) -> None:
    fleet = Fleet(3, payload=payload, **tables)
    fleet.run(60)
    assert fleet.why is not None
    assert fleet.why.text.startswith("inputs (no. 1, positions/{device}): 6 of 6 messages are ")
    assert said in fleet.why.text
    # A topic may name a user.
    assert (said in fleet.why.public) == ("off graph" not in said)
    assert "positions/" not in fleet.why.public.partition(":")[0]
    assert not re.search(r"\b6\b", fleet.why.public)  # no count of messages
    assert fleet.flow.inputs.n_usable(0) == 0


@pytest.mark.parametrize("n_phones", [1, 4])
def test_nobody_else_learns_whether_few_devices_are_on_a_road(n_phones: int) -> None:
    on, off = Fleet(n_phones), Fleet(n_phones, payload=b'{"lat":1.0,"lon":2.0}')
    told = []
    for fleet in (on, off):
        fleet.run(60)
        assert fleet.why is not None
        told.append(fleet.why.public)
    assert told[0] == told[1]


def test_a_cap_that_hides_everybody_is_named() -> None:
    fleet = Fleet(20, every_s=5.0, region={"max_nodes": 8}, session={"beat_s": 2.0})
    fleet.run(60)
    assert fleet.why is not None
    assert "in regions of more nodes than region.max_nodes allows" in fleet.why.text


def test_the_outcomes_of_each_input_are_counted_apart() -> None:
    fleet = Fleet(4, inputs=[{}, {"topic": "trams/{device}"}, {"topic": "phones/{device}"}])
    good, bad = fleet.says(0), b"{}"
    arrivals = [
        *[Delivery(f"positions/{i}", good, 0, retained=False) for i in range(4)],
        *[Delivery(f"trams/{i}", bad, 0, retained=False) for i in range(3)],
        Delivery("phones/away", b'{"lat":1,"lon":1}', 0, retained=False),
        Delivery("nobody/1", good, 0, retained=False),
    ]
    fleet.inbox.put(arrivals, at_s=0.0)
    fleet.flow.settle(fleet.flow.tick(fleet.inbox.take(), now=NOW), [], seconds=0.0)
    inputs = fleet.flow.inputs
    assert [inputs.n_usable(i) for i in range(3)] == [4, 0, 0]
    named = {(i, outcome.name): n for (i, outcome), n in inputs.refusals().items()}
    assert named == {(2, "INVALID__SCHEMA"): 3, (3, "SUPPRESSED__OFF_GRAPH"): 1}
    assert sum(inputs.refused(-1).values()) == 1


_KEY = re.compile(r"(?:write|and) (k_values = \[.*?\]|k_floor = \d+)")


@many(3)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.integers(2, 50),
    st.integers(0, 5),
    st.integers(1, 70),
    st.integers(0, 99),
)
def test_following_the_advice_once_leads_to_no_other_and_lowers_no_more_than_it_must(
    values: list[int], floor: int, k_extra: int, n_present: int, seed: int
) -> None:
    stated: dict[str, Any] = {
        "density_steps": range(4, 4 + len(values) - 1),
        "k_values": sorted(values, reverse=True),
        "k_floor": floor,
    }
    node = np.random.default_rng(seed).integers(0, CITY.n_nodes, n_present).astype(np.int32)
    density = DensityMap.empty(CITY)
    density.advance(np.arange(n_present, dtype=np.int32), np.zeros(n_present), node)

    def told(adka: dict[str, Any]) -> str:
        settings = Settings.model_validate({"adka": adka, "region": {"k_extra": k_extra}})
        rule = density_rule(settings)
        reason = SilenceRule(settings).reason(
            Standing(
                silent_s=1e6,
                inputs=_usable(),
                n_of={},
                n_on_graph=n_present,
                n_newcomers=n_present,
                n_too_new=0,
                shortage=lambda: shortage(density, rule, k_extra=k_extra),
                epoch_s=1.0,
            )
        )
        assert reason is not None
        return reason.text if reason.kind.startswith("too few") else ""

    advice = told(stated)
    written = tomllib.loads("\n".join(_KEY.findall(advice)))
    if not advice:
        return
    if not written:
        assert n_present - k_extra < 2
        return
    assert told(stated | written) == ""
    k = max(written.get("k_floor", 0), *written.get("k_values", [0]))
    most = n_present - k_extra
    assert 0.5 * most < k <= most
    lowered = [min(k, each) for each in stated["k_values"]]
    assert written.get("k_values", stated["k_values"]) == lowered
    assert ("k_floor" in written) == (floor > k)


def _usable() -> InputCounts:
    counts = InputCounts(1)
    counts.n_of[0, Outcome.HELD] = 1
    return counts
