"""Traffic by street of several sources: k of all, published once, left out if one cannot."""

import json
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from anonymizer.algorithms.positions.street_hours import PassageSums, together
from anonymizer.app.gateway.live_streets import EndedHour, hour_file
from anonymizer.app.street_hours import streets_of
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions import stage_streets
from anonymizer.cluster.positions.source_windows import WindowPiece, encode_piece
from anonymizer.cluster.positions.stage_streets import (
    LaneStreets,
    StatedPassages,
    decode_passages,
    is_whole_hour,
    stated_hour,
)
from anonymizer.cluster.published_streets import LastHour, file_parts
from anonymizer.errors import GuaranteeError
from anonymizer.networks import load_network
from anonymizer.settings import Settings

STREETS = streets_of(load_network("grid:12x12"))
SETTINGS = Settings.model_validate(
    {
        "counts": {"k": 3, "streets_s": 3600},
        "region": {"k_extra": 1},
        "cluster": {"n_parts": 2},
    }
)


def some(seed: int, *, n: int = 400, hour: int = 7) -> PassageSums:
    rng = np.random.default_rng(seed)
    n_roads, n_devices = int((STREETS.road_at >= 0).sum()), 1 + n // 8
    device = (rng.integers(0, n_devices, n) + (seed << 40)) * 3
    key = np.unique(np.stack([np.full(n, hour), rng.integers(0, n_roads, n), device]), axis=1)
    metres, seconds = rng.integers(1, 1 << 20, (2, key.shape[1])) / (1 << 12)
    return PassageSums(key, np.stack([metres, seconds * (rng.random(key.shape[1]) < 0.9)]))


def stated(
    source: int, hour: int, passages: PassageSums | None, *, k: int = 4
) -> list[WindowPiece[StatedPassages]]:
    encoded = list(stated_hour(source, EndedHour(hour, k, passages)))
    assert max(map(len, encoded)) < 700_000
    assert [is_whole_hour(each) for each in encoded] == [False] * (len(encoded) - 1) + [True]
    return [decode_passages(each, n_sources=2) for each in encoded]


def published(lane: LaneStreets, pieces: Sequence[WindowPiece[StatedPassages]]) -> bytes | None:
    last = LastHour()
    for piece in pieces:
        for send in lane.take(piece):
            assert (send.to, send.number) == ("streets", 0)
            last.take(send.value)
    return last.newest


def test_the_devices_of_all_sources_count_together() -> None:
    lane, one, other = LaneStreets(SETTINGS, STREETS), some(1), some(2)
    assert published(lane, stated(0, 7, one)) is None
    found = published(lane, stated(1, 7, other))
    alone = hour_file(EndedHour(7, 4, together([one, other])), STREETS, every_s=3600.0, secret=None)
    assert found == alone
    assert len(json.loads(alone)["features"]) > 20


def test_a_device_that_two_sources_state_is_one() -> None:
    lane, one = LaneStreets(SETTINGS, STREETS), some(1, n=16)
    assert len(np.unique(one.key[2])) == 3
    published(lane, stated(0, 7, one))
    found = published(lane, stated(1, 7, one))
    assert found is not None
    [row] = json.loads(found)["features"]
    assert row["properties"]["devices_high"] == 3


def test_the_largest_k_that_anybody_has_promised_is_kept() -> None:
    for said in ((9, 4), (4, 9), (9, 9)):
        lane = LaneStreets(SETTINGS, STREETS)
        published(lane, stated(0, 7, some(1), k=said[0]))
        found = published(lane, stated(1, 7, some(2), k=said[1]))
        assert found is not None
        rows = json.loads(found)["features"]
        assert {row["properties"]["privacy"] for row in rows} == {"k=9"}
        assert min(row["properties"]["devices_low"] for row in rows) >= 9


def test_many_passages_come_in_pieces_and_nothing_counts_twice_whatever_dies() -> None:
    many, few = some(1, n=60_000), some(2)
    pieces = stated(0, 7, many)
    assert len(pieces) > 2
    lane = LaneStreets(SETTINGS, STREETS)
    for each in pieces[:2]:
        published(lane, [each])
    state = unpack(pack(lane.state()))
    lane = LaneStreets(SETTINGS, STREETS)
    lane.restore(state)
    assert published(lane, [*pieces[:1], *pieces[2:], pieces[-1]]) is None
    found = published(lane, stated(1, 7, few))
    hour = EndedHour(7, 4, together([many, few]))
    assert found == hour_file(hour, STREETS, every_s=3600.0, secret=None)
    assert published(lane, [*pieces, *stated(1, 7, few)]) is None, "each hour is published once"


def test_an_hour_is_left_out_that_a_source_has_not_watched_or_had_no_room_for() -> None:
    lane = LaneStreets(SETTINGS, STREETS)
    for hour, of_other in ((7, None), (9, some(2, hour=9))):
        published(lane, stated(0, hour, some(1, hour=hour)))
        found = published(lane, stated(1, hour, of_other))
        assert (found is None) == (hour == 7)
    published(lane, stated(0, 10, some(1, hour=10)))
    assert published(lane, [*stated(1, 11, None), *stated(0, 11, some(1, hour=11))]) is None
    assert (lane.n_published, lane.n_suppressed, lane.n_unverified) == (1, 3, 0)


def test_an_hour_that_fails_the_check_is_counted_and_the_next_one_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> bytes:
        raise GuaranteeError("about few devices")

    lane = LaneStreets(SETTINGS, STREETS)
    published(lane, stated(0, 7, some(1)))
    monkeypatch.setattr(stage_streets, "hour_file", fails)
    assert published(lane, stated(1, 7, some(2))) is None
    monkeypatch.undo()
    after = LaneStreets(SETTINGS, STREETS)
    after.restore(unpack(pack(lane.state())))
    published(after, stated(0, 8, some(1, hour=8)))
    assert published(after, stated(1, 8, some(2, hour=8))) is not None
    assert (after.n_published, after.n_suppressed, after.n_unverified) == (1, 1, 1)


def test_passages_of_no_source_or_of_another_shape_are_refused() -> None:
    [encoded] = stated_hour(2, EndedHour(7, 4, some(1)))
    with pytest.raises(ValueError, match="no piece"):
        decode_passages(encoded, n_sources=2)
    one = np.zeros(1, np.int32)
    for content in ([4, one, one, one, np.zeros(2), np.zeros(2)], ["4", *[one] * 5]):
        broken = encode_piece(b"L", WindowPiece(0, 7, 0, True, content))
        with pytest.raises(ValueError, match="no passages"):
            decode_passages(broken, n_sources=2)


def test_a_file_comes_in_parts_some_again_and_some_of_hours_whose_beginning_is_gone() -> None:
    last, old, new = LastHour(), bytes(1_200_000), bytes([1]) * 700_000

    def after(parts: Iterable[bytes]) -> bytes | None:
        for part in parts:
            last.take(part)
        return last.newest

    assert after(list(file_parts(7, old))[1:]) is None
    parts = list(file_parts(8, old))
    assert [len(part) < 600_000 for part in parts] == [True] * 3
    first = after([parts[0], parts[0], *parts[1:]])
    assert first == old
    assert after(parts) is first, "browsers are told that it is the same"
    assert after(file_parts(9, new)) == new
    for bad in (b"", b"F", b"F\xc1", b"F" + pack([0, 9, 0]), b"O" + parts[0][1:], b"F" + pack(7)):
        with pytest.raises(ValueError, match="no part of an hour"):
            last.take(bad)
    assert last.newest == new


class Message:
    """A message of Kafka."""

    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def value(self) -> bytes | None:
        return self._value


def test_what_cannot_be_read_is_counted_and_holds_up_nothing() -> None:
    n_malformed = [0]
    last = LastHour(lambda: n_malformed.append(1))
    last.keep([Message(b"?"), Message(None), *map(Message, file_parts(7, b"{}"))])
    assert (last.newest, sum(n_malformed)) == (b"{}", 2)
