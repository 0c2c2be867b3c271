"""Input of which nothing can be used is said once, with the likely cause."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.misfit import CAUSES, Misfit, MisfitWatch
from anonymizer.transport.local_brokers import mosquitto
from tests.end_to_end import client, quick, send, serving

MALFORMED, SCHEMA = Outcome.INVALID__MALFORMED, Outcome.INVALID__SCHEMA
PUBLISHED, LATE = Outcome.PUBLISHED, Outcome.LATE


def seen(*looks: tuple[float, Mapping[Outcome, int], int]) -> list[Misfit | None]:
    watch = MisfitWatch(after_s=10.0)
    return [watch.see(counts, n_held=held, at_s=at_s) for at_s, counts, held in looks]


def test_ten_seconds_of_misfits_are_reported_once() -> None:
    found = seen(
        (0, {}, 0),
        (5, {MALFORMED: 3}, 0),
        (9, {MALFORMED: 5, SCHEMA: 9}, 0),
        (10, {MALFORMED: 5, SCHEMA: 9}, 0),
        (30, {MALFORMED: 90, SCHEMA: 9}, 0),
    )
    assert found == [None, None, None, Misfit(SCHEMA, 14), None]


@pytest.mark.parametrize("usable", [PUBLISHED, LATE, Outcome.SUPPRESSED__TOO_FEW_DEVICES])
def test_one_usable_message_is_enough_to_be_silent(usable: Outcome) -> None:
    found = seen(
        (0, {}, 0), (9, {MALFORMED: 99, usable: 1}, 0), (11, {MALFORMED: 120, usable: 1}, 0)
    )
    assert found == [None] * 3


def test_a_held_message_is_usable_and_silence_is_no_misfit() -> None:
    assert seen((0, {}, 0), (9, {MALFORMED: 9}, 1), (11, {MALFORMED: 11}, 1)) == [None] * 3
    # Nothing for an hour, then the first wrong message: the ten seconds begin with it.
    found = seen((0, {}, 0), (3600, {}, 0), (3601, {MALFORMED: 1}, 0), (3610, {MALFORMED: 2}, 0))
    assert found == [None, None, None, Misfit(MALFORMED, 2)]


def test_a_filter_is_no_misfit_before_it_has_left_out_many() -> None:
    left_out = Outcome.INVALID__NOT_SELECTED
    found = seen((0, {}, 0), (11, {left_out: 99}, 0), (12, {left_out: 100}, 0))
    assert found == [None, None, Misfit(left_out, 100)]


def test_it_is_reported_again_after_something_was_usable() -> None:
    found = seen(
        (0, {}, 0),
        (10, {MALFORMED: 5}, 0),
        (20, {MALFORMED: 5, PUBLISHED: 1}, 0),
        (31, {MALFORMED: 7, PUBLISHED: 1}, 0),
    )
    assert found == [None, Misfit(MALFORMED, 5), None, Misfit(MALFORMED, 2)]


def test_accounts_of_an_earlier_run_are_no_misfit() -> None:
    assert seen((0, {MALFORMED: 10**6}, 0), (99, {MALFORMED: 10**6}, 0)) == [None, None]


def test_every_way_to_be_invalid_has_a_likely_cause() -> None:
    invalid = {outcome for outcome in Outcome if outcome.label[0] == "invalid"}
    elsewhere = {"off_graph", "implausible_jump", "inaccurate", "age_unknown"}  # no use to anybody
    assert set(CAUSES) == invalid | {each for each in Outcome if each.label[1] in elsewhere}


async def test_the_service_says_that_nothing_arrives_and_then_that_the_codec_is_wrong(
    tmp_path: Path,
) -> None:
    broker = mosquitto(tmp_path)
    await broker.start()
    try:
        async with (
            client(broker.url, "device") as device,
            serving(
                tmp_path, quick(broker.url, presence={"ttl_s": 1.0, "max_behind_s": 1.0})
            ) as gateway,
        ):
            await gateway.until_ready()
            await send(device, [("position/bus-7", b'{"lat": 60.17, "lon": 24.94}')])
            silence = await gateway.program.logged("nothing arrives")
            assert (silence["flow"], silence["topics"]) == ("positions", ["positions/+"])
            assert "no device publishes to these topics" in silence["likely"]
            assert (await gateway.get("/readyz")).status_code == 200
            # A phone with OwnTracks at the native codec: the first thing that people try.
            payload = b'{"_type":"location","latitude":60.17,"longitude":24.94,"tst":1}'
            await send(device, [(f"positions/phone-{i}", payload) for i in range(20)])
            said = await gateway.program.logged("nothing that arrives can be used")
    finally:
        await broker.stop()
    assert (said["flow"], said["reason"]) == ("positions", "invalid/schema")
    assert 0 < said["arrived"] <= 20  # those that had come when it was noticed
    assert "inputs.codec is another format" in said["likely"]
    assert not any(
        each in line for each in ("60.17", "phone-", "bus-7") for line in gateway.program.lines
    )
