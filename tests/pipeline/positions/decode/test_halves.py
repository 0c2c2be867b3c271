"""Positions whose latitude and longitude come apart."""

import json
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode import halves as module
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.halves import Halves
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings
from tests.codecs.test_recipes import input_of

WAITS = Outcome.SUPPRESSED__SUPERSEDED


def lat(value: float, ts: float) -> Fix:
    return Fix(value, nan, ts)


def lon(value: float, ts: float) -> Fix:
    return Fix(nan, value, ts)


def test_halves_within_the_bound_are_one_position_at_the_later_time() -> None:
    halves = Halves(1.0)
    assert halves.joined("a", lat(1.0, 10.0)) == WAITS
    assert halves.joined("b", lon(9.0, 10.0)) == WAITS
    assert halves.joined("a", lon(2.0, 11.0)) == Fix(1.0, 2.0, 11.0)
    assert halves.joined("a", lat(1.5, 11.5)) == Fix(1.5, 2.0, 11.5)
    assert halves.joined("a", lat(1.7, 12.5)) == WAITS  # the longitude is too old by now
    assert halves.joined("a", lon(2.7, 12.4)) == WAITS  # of before: the position would go back
    assert halves.joined("a", Fix(3.0, 4.0, 13.0)) == Fix(3.0, 4.0, 13.0)
    assert halves.joined("a", Fix(nan, 4.0, None)) == Outcome.INVALID__SCHEMA


def test_a_half_that_waits_shows_no_place() -> None:
    assert repr(module._Kept(61.5, 1.0, 24.25, 1.0)) == "_Kept(...)"


def test_what_is_forgotten_joins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves(100.0)
    halves.forget(at_s=0.0, kept_s=60.0)
    halves.joined("a", lat(1.0, 10.0))
    halves.forget(at_s=59.0, kept_s=60.0)
    assert halves.joined("a", lon(1.0, 11.0)) == Fix(1.0, 1.0, 11.0)
    halves.forget(at_s=60.0, kept_s=60.0)
    halves.forget(at_s=120.0, kept_s=60.0)
    assert halves.joined("a", lat(1.0, 12.0)) == WAITS
    monkeypatch.setattr(module, "_MOST", 2)
    for device in "bcd":
        halves.joined(device, lat(1.0, 13.0))
    assert halves.joined("b", lon(1.0, 13.0)) == WAITS
    assert halves.joined("d", lon(1.0, 13.0)) == Fix(1.0, 1.0, 13.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_each_message_joins_what_a_naive_account_says(
    messages: list[tuple[bool, int, int]],
) -> None:
    halves, newest = Halves(2.0), {True: (nan, -99), False: (nan, -99)}
    for is_lat, value, ts in messages:
        found = halves.joined("a", lat(value, ts) if is_lat else lon(value, ts))
        if ts >= newest[is_lat][1]:
            newest[is_lat] = value, ts
        times = [newest[True][1], newest[False][1]]
        if ts == max(times) and max(times) - min(times) <= 2:
            assert found == Fix(newest[True][0], newest[False][0], ts)
        else:
            assert found == WAITS


@pytest.mark.parametrize("lacking", ["time", "lat"])
def test_halves_need_a_time_and_both_paths(lacking: str) -> None:
    payload = {"lat": "a", "lon": "b", "time": "t", "join_s": 1.0}
    InputSettings.model_validate({"codec": "json", "payload": payload})
    del payload[lacking]
    with pytest.raises(ValidationError, match=r"join_s needs|must be given together"):
        InputSettings.model_validate({"codec": "json", "payload": payload})


def test_signals_of_the_manual_are_joined_by_their_vehicle_with_exact_accounts() -> None:
    ledger = Ledger()
    decoder = Decoder(TopicRouter([input_of("signals/{vehicle}/#")]), LimitSettings(), ledger)

    def of(vehicle: str, signal: str, value: str) -> Delivery:
        path = f"Vehicle.CurrentLocation.{signal}"
        data = {"path": path, "dp": {"value": value, "ts": "2027-01-15T08:00:00Z"}}
        body = {"action": "subscription", "data": data, "ts": "2027-01-15T08:00:00Z"}
        return Delivery(f"signals/{vehicle}/{signal}", json.dumps(body).encode(), 0)

    some = [
        of("a", "Latitude", "60.5"),
        of("b", "Longitude", "24.0"),
        of("a", "Longitude", "24.5"),
        of("a", "Altitude", "12"),
    ]
    n_positions = 0
    for _ in range(2):  # the second time, the topics are known
        [mobile, *_] = decoder.decode([Arrivals(0.0, some)]).of
        n_positions += len(mobile.lat)
        assert set(mobile.lat.tolist()) == {60.5}
        assert set(mobile.lon.tolist()) == {24.5}
        assert {mobile.device(row) for row in range(len(mobile.lat))} == {"a"}
    counts = {outcome: n for outcome, n in ledger.counts().items() if n}
    # At the second time the first half completes a position, too.
    assert counts == {WAITS: 3, Outcome.INVALID__SCHEMA: 2}
    assert n_positions + sum(counts.values()) == 2 * len(some)


def test_halves_go_on_from_the_state_of_a_decoder() -> None:
    payload = {"lat": "lat", "lon": "lon", "time": "t", "join_s": 5.0}
    stated = {"topic": "cars/{device}", "codec": "json", "payload": payload}
    settings = InputSettings.model_validate(stated)
    bodies = [b'{"t": 10, "lat": 1.5}', b'{"t": 11, "lon": 2.5}']
    decoded = []
    state: dict[str, Any] = {}
    for body in bodies:
        decoder = Decoder(TopicRouter([settings]), LimitSettings(), Ledger())
        if state:
            decoder.restore(unpack(pack(state)))
        decoder.forget(at_s=12.0, kept_s=60.0)
        batch = [Arrivals(12.0, [Delivery("cars/a", body, 0)])]
        decoded.append(decoder.decode(batch).of[Treatment.MOBILE])
        state = decoder.state()
    assert [len(each.ts) for each in decoded] == [0, 1]
    assert (decoded[1].lat.tolist(), decoded[1].lon.tolist()) == ([1.5], [2.5])
