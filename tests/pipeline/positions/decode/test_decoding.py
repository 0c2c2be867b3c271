import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder, date_the_undated
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings

LIMITS = LimitSettings(max_payload_bytes=200).model_copy(
    update={"max_positions": 3, "max_device_id_chars": 5}
)
INPUTS = (
    InputSettings(topic="positions/{device}"),
    InputSettings(topic="feed", device_from="payload"),
)


def decode(*deliveries: Delivery) -> tuple[Decoded, Ledger]:
    """Return what is usable, and the ledger when the deliveries were counted as received."""
    ledger = Ledger()
    ledger.receive(len(deliveries))
    decoder = Decoder(TopicRouter(INPUTS), LIMITS, ledger)
    decoded = decoder.decode([Arrivals(1.0, deliveries)]).of[Treatment.MOBILE]
    assert ledger.n_received == ledger.n_settled + len(decoded.sender)
    return decoded, ledger


def devices(decoded: Decoded) -> list[str]:
    return [decoded.device(row) for row in range(len(decoded.sender))]


def test_a_stated_heading_is_the_positions_unless_its_device_is_slow() -> None:
    moving = [{"heading_deg": 90}, {"heading_deg": 0, "speed_mps": 30}, {"heading_deg": 450.5}]
    slow = [{"heading_deg": 90, "speed_mps": 2.7}, {"speed_mps": 30}, {}, {"heading_deg": "east"}]
    bodies = [here(readings=readings) for readings in [*moving, *slow]]
    decoded, _ = decode(*(on(f"positions/{i}", body) for i, body in enumerate(bodies)))
    assert decoded.heading is not None
    np.testing.assert_array_equal(decoded.heading, [90, 0, 450.5, *[np.nan] * 4])
    assert not len(decoded.reading_row)  # none of them is declared


def test_without_headings_there_is_no_column_of_them() -> None:
    decoded, _ = decode(on("positions/a", here(readings={"speed_mps": 30})))
    assert decoded.heading is None


def test_one_feed_cannot_name_more_devices_than_its_share() -> None:
    limits = LIMITS.model_copy(update={"max_ids_per_topic": 2})
    ledger = Ledger()
    decoder = Decoder(TopicRouter(INPUTS), limits, ledger, ids_kept_s=60)
    named = [on("feed", here(device=f"f{i % 5}")) for i in range(10)]
    own = [on(f"positions/{i}", here()) for i in range(5)]
    ledger.receive(15)
    decoded = decoder.decode([Arrivals(1.0, [*named, *own])]).of[Treatment.MOBILE]
    assert sorted(set(devices(decoded))) == ["0", "1", "2", "3", "4", "f0", "f1"]
    assert ledger.n(Outcome.SUPPRESSED__OVER_SHARE) == 6
    assert ledger.n_received == ledger.n_settled + len(decoded.sender)


def on(topic: str, body: object, *, receipt: int = 0, retained: bool = False) -> Delivery:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Delivery(topic, payload, receipt, retained)


def here(**more: object) -> dict[str, object]:
    return {"lat": 60.0, "lon": 25.0, "ts": 7, **more}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (on("other/a", here()), Outcome.INVALID__UNKNOWN_TOPIC),
        (on("positions/a", b" " * 201), Outcome.INVALID__TOO_LARGE),
        (on("positions/a", [{"lat": 1, "lon": 1}] * 4), Outcome.INVALID__TOO_LARGE),
        (on("positions/", here()), Outcome.INVALID__NO_DEVICE),
        (on("positions/abcdef", here()), Outcome.INVALID__NO_DEVICE),
        (on("feed", here()), Outcome.INVALID__NO_DEVICE),
        (on("feed", here(device="")), Outcome.INVALID__NO_DEVICE),
        (on("positions/a", b""), Outcome.INVALID__EMPTY),
        (on("positions/a", []), Outcome.INVALID__EMPTY),
        (on("positions/a", b"{"), Outcome.INVALID__MALFORMED),
        (on("positions/a", {"lat": 1}), Outcome.INVALID__SCHEMA),
        (on("positions/a", here(lat=91)), Outcome.INVALID__OUT_OF_RANGE),
        (on("positions/a", here(lat=0, lon=0)), Outcome.INVALID__NULL_ISLAND),
        (on("positions/a", {"lat": 1, "lon": 1}, retained=True), Outcome.INVALID__RETAINED),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Outcome) else "",
)
def test_a_bad_message_is_refused_with_its_reason_and_the_good_ones_go_on(
    bad: Delivery, reason: Outcome
) -> None:
    decoded, ledger = decode(on("positions/a", here()), bad, on("positions/b", here()))
    assert devices(decoded) == ["a", "b"]
    assert {outcome for outcome, n in ledger.counts().items() if n} == {reason}
    assert ledger.n(reason) == 1


def test_an_array_counts_its_positions_and_a_bad_one_spoils_no_other() -> None:
    decoded, ledger = decode(on("positions/a", [here(), here(lat=99), here(lon=26)]))
    assert ledger.n_received == 3
    assert ledger.n(Outcome.INVALID__OUT_OF_RANGE) == 1
    assert devices(decoded) == ["a", "a"]
    assert decoded.lon.tolist() == [25.0, 26.0]


def test_the_topic_is_believed_unless_the_input_believes_the_payload() -> None:
    decoded, _ = decode(
        on("positions/a", here(device="b")),
        on("feed", here(device="c")),
        on("feed", [here(device="d"), here(device=5)]),
    )
    assert devices(decoded) == ["a", "c", "d", "5"]


def test_a_retained_message_that_says_its_time_is_usable() -> None:
    decoded, _ = decode(on("positions/a", here(), retained=True))
    assert decoded.ts.tolist() == [7.0]


def test_every_message_that_asks_for_a_receipt_gets_one_usable_or_not() -> None:
    arrivals = Arrivals(
        1.0,
        [
            on("positions/a", here(), receipt=3),
            on("positions/a", here()),
            on("positions/a", b"?", receipt=4),
            on("x", b"", receipt=5),
        ],
    )
    assert Decoder(TopicRouter(INPUTS), LIMITS, Ledger()).decode([arrivals]).receipts == [3, 4, 5]


def test_positions_keep_their_order_and_the_arrival_of_their_batch() -> None:
    decoder = Decoder(TopicRouter(INPUTS), LIMITS, Ledger())
    decoded = decoder.decode(
        [
            Arrivals(1.5, [on("positions/a", [here(), here()]), on("x", b"")]),
            Arrivals(2.5, []),
            Arrivals(3.5, [on("positions/b", {"lat": 1, "lon": 2})]),
        ]
    ).of[Treatment.MOBILE]
    assert devices(decoded) == ["a", "a", "b"]
    assert decoded.at_s.tolist() == [1.5, 1.5, 3.5]
    assert decoded.ts[:2].tolist() == [7.0, 7.0]
    assert math.isnan(decoded.ts[2])
    assert (decoded.lat[2], decoded.lon[2]) == (1.0, 2.0)


def test_who_and_where_is_not_in_the_repr_of_what_was_decoded() -> None:
    decoded, _ = decode(on("positions/me", here(lat=61.25)))
    assert "me" not in repr(decoded).replace("anonymizer.", "")
    assert "61.25" not in repr(decoded)


@given(
    st.lists(st.tuples(st.just(math.nan) | st.floats(0, 100), st.integers(0, 2)), max_size=20),
    st.integers(0, 90),
    st.floats(0.001, 10),
)
def test_undated_messages_fall_in_order_between_the_tick_before_and_this_one(
    stated: Sequence[tuple[float, int]], since: float, interval_s: float
) -> None:
    now = since + interval_s
    ts = np.array([each[0] for each in stated], np.float64)
    device = np.array([each[1] for each in stated], np.int64)
    dated = date_the_undated(ts, device, since=since, now=now)
    undated = np.isnan(ts)
    np.testing.assert_array_equal(dated[~undated], ts[~undated])
    for one in range(3):
        given_times = dated[undated & (device == one)]
        assert (np.diff(given_times) > 0).all()
        assert (given_times > since).all()
        assert not len(given_times) or given_times[-1] == now
        alone = date_the_undated(ts[device == one], device[device == one], since=since, now=now)
        np.testing.assert_array_equal(dated[device == one], alone)


def test_undated_messages_get_the_present_where_the_clock_was_set_back() -> None:
    undated = np.array([math.nan, math.nan])
    dated = date_the_undated(undated, np.zeros(2, np.int64), since=50.0, now=40.0)
    assert dated.tolist() == [40.0, 40.0]
