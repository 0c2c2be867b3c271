"""Whenever positions arrive and none is published, one sentence says why, with the number."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.pipeline.positions.tick.silence import Reason, published_k, smaller_k
from anonymizer.settings import AdkaSettings, Settings, zones_of
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


@pytest.mark.parametrize("n_phones", [3, 6])
def test_too_few_phones_are_told_within_a_minute_with_both_numbers(n_phones: int) -> None:
    fleet = Fleet(n_phones)
    fleet.run(60)
    assert fleet.why is not None
    assert fleet.why.text == (
        f"{n_phones} devices are present and a group needs 10: nothing is published until more"
        " come, or, for less protection, write k_values = [5, 2, 2] and k_floor = 2 in [adka] and"
        " restart"
    )
    # Nobody else learns how many there are.
    assert str(n_phones) not in fleet.why.public.replace("5 to 10", "")
    assert "5 to 10" in fleet.why.public


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
    fleet = Fleet(0)
    rng = np.random.default_rng(2)
    # All report after the first groups were to be formed, and then once in four minutes.
    fleet.every_s, fleet.at = 240.0, rng.integers(0, CITY.n_nodes, 30)
    fleet.phase = np.append(0.4, rng.uniform(8, 20, 29))
    fleet.run(60)
    assert fleet.why is not None
    assert fleet.why.kind == "waiting"
    assert "30 devices wait for their first groups" in fleet.why.text
    assert "within 300 s" in fleet.why.text


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
    assert "6" not in fleet.why.public.replace("60", "")
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


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.integers(2, 50),
)
def test_the_advice_is_accepted_as_it_is_printed_until_there_is_nothing_left_to_advise(
    values: list[int], floor: int
) -> None:
    """Whoever follows it, again and again, comes to k 2, and each step publishes a smaller k."""
    adka = AdkaSettings.model_validate(
        {
            "density_steps": range(4, 4 + len(values) - 1),
            "k_values": sorted(values, reverse=True),
            "k_floor": floor,
        }
    )
    for _ in range(8):
        advice = smaller_k(adka)
        if not advice:
            break
        found = re.search(r"write (k_values = \[.*\]) and (k_floor = \d+) in \[adka\]", advice)
        assert found is not None
        written = tomllib.loads("\n".join(found.groups()))
        stated = {"density_steps": adka.density_steps} | written
        smaller = AdkaSettings.model_validate(stated)
        assert smaller.k_at(0) < adka.k_at(0)
        adka = smaller
    assert published_k(adka) == "2"
