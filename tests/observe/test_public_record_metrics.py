"""A scraper without the token learns nothing about fewer than k vehicles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from anonymizer.domain.outcomes import Outcome
from anonymizer.observe.metrics import new_registry
from anonymizer.observe.public_record_metrics import PublicRecordCollector
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.inbox import RecordInbox
from anonymizer.settings.streams import MOST_OF_A_VEHICLE
from tests.observe.test_record_metrics import Watched, samples
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, Sent, traffic
from tests.pipeline.records.support import Rig

K = FLEET["promise"]["k"]
STEP = K * len(SOURCES)
LATER_S = 10 * LENGTH_S


class Scraped:
    """A records side, and somebody who reads its public metrics."""

    def __init__(self, folder: Path, **changes: Any) -> None:  # noqa: ANN401  settings of any kind
        self.rig = Rig(folder, **changes)
        self.inbox = RecordInbox(999, streams_of=self.rig.flow.streams_of)
        self.watched = Watched(self.rig.flow, self.inbox)
        self._public = PublicRecordCollector(self.watched)

    def turn(self, *, times: int = 2) -> dict[tuple[str, ...], float]:
        """Let intervals pass; return what is shown then."""
        for _ in range(times):
            self._public.turn()
        return samples(generate_latest(new_registry(self._public)).decode())


def crowd(rig: Rig) -> None:
    """Have two windows: a closed one, and one with a whole number of steps."""
    rig.take(*traffic(n_vehicles=5 * K, n_windows=1, seed=1))
    rig.close(silent=True)
    rig.publish()
    rig.take(*traffic(n_vehicles=2 * K, n_windows=1, seed=1, start=LATER_S))


def some(*, start: float = LATER_S, n: int = K - 1) -> list[Sent]:
    """Return a window's records of fewer than k more vehicles."""
    parts = traffic(n_vehicles=n, n_windows=1, seed=2, start=start)
    return [Sent(f"more-{part.vehicle}", part.source, part.ts, part.values) for part in parts]


def held(each: Scraped) -> None:
    each.rig.take(*some())


def ahead(each: Scraped) -> None:
    """They open a window of their own, and move the watermark on."""
    each.rig.take(*some(start=LATER_S + LENGTH_S))


def late(each: Scraped) -> None:
    each.rig.take(*some(start=0.0))


def malformed(each: Scraped) -> None:
    each.rig.take_raw([Delivery(part.topic, b"{", 0) for part in some()])


def elsewhere(each: Scraped) -> None:
    each.rig.take_raw([Delivery(f"elsewhere/{part.vehicle}", b"{}", 0) for part in some()])


def waiting(each: Scraped) -> None:
    each.inbox.put([part.delivery() for part in some()])


DEEDS = (held, ahead, late, malformed, elsewhere, waiting)


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_fewer_than_k_vehicles_change_nothing_that_is_shown(
    deed: Callable[[Scraped], None], tmp_path: Path
) -> None:
    each = Scraped(tmp_path)
    crowd(each.rig)
    before = each.turn()
    deed(each)
    assert each.turn() == before
    each.rig.store.close()


def test_a_window_of_fewer_than_k_vehicles_ends_unseen(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    crowd(each.rig)
    each.rig.close(silent=True)
    before = each.turn()
    assert before["anonymizer_records_last_window", "fleet", "published"] > 0
    each.rig.take(*some(start=2 * LATER_S))
    assert each.rig.close(silent=True) == 1
    assert each.rig.state.stats.last["classes"] == 0
    assert each.turn() == before
    each.rig.store.close()


def test_between_two_scrapes_counts_move_by_whole_steps_and_not_back(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    parts = list(traffic(n_vehicles=17, n_windows=3, seed=3))
    exact, before = 0, each.turn(times=1)
    while parts:
        batch, parts = parts[:7], parts[7:]
        each.rig.take(*batch)
        each.rig.close()
        each.rig.publish()
        now = each.turn(times=1)
        for key, value in now.items():
            if key[0].startswith("anonymizer_record_parts"):
                assert (value - before.get(key, 0)) % STEP == 0, key
            if key[0].endswith("_total"):
                assert value >= before.get(key, 0), key
        before, exact = now, exact + len(batch)
    received = "anonymizer_record_parts_received_total", "fleet"
    assert exact - STEP < each.turn()[received] <= exact
    each.rig.store.close()


def test_counts_are_shown_one_interval_late(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    each.rig.take(*traffic(n_vehicles=K, n_windows=1, seed=1))
    held = "anonymizer_record_parts_held", "fleet"
    assert [each.turn(times=1)[held] for _ in range(3)] == [0, STEP, STEP]
    each.rig.store.close()


def test_what_a_single_vehicle_can_change_is_not_shown(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    crowd(each.rig)
    names = {name for name, *_ in each.turn()}
    for name in ("windows_total", "open_windows", "watermark_lag_seconds", "close_seconds_sum"):
        assert f"anonymizer_records_{name}" not in names
    figures = {key[2] for key in each.turn() if key[0] == "anonymizer_records_last_window"}
    assert figures.isdisjoint({"seconds", "too_little_left"})
    each.rig.store.close()


def test_a_refused_class_is_shown_even_if_it_is_small(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    each.rig.state.accounts.settle(Outcome.SUPPRESSED__UNVERIFIED, 1)
    shown = each.turn()
    assert shown["anonymizer_record_parts_total", "fleet", "suppressed", "unverified"] == STEP
    each.rig.store.close()


def with_many_records_of_a_vehicle(folder: Path) -> Scraped:
    source = {"name": "gantry", "tells": [name for of in FLEET["sources"] for name in of["tells"]]}
    attributes = [{**a, "lasting": False} for a in FLEET["attributes"]]
    return Scraped(
        folder,
        per="record",
        sources=[source],
        attributes=attributes,
    )


def test_a_part_of_a_source_that_may_send_many_records_moves_nothing(tmp_path: Path) -> None:
    each = with_many_records_of_a_vehicle(tmp_path)
    received = "anonymizer_record_parts_received_total", "fleet"
    each.rig.take_raw([Delivery("records/gantry/v", b"{", 0)] * (MOST_OF_A_VEHICLE * K - 1))
    assert each.turn()[received] == 0
    each.rig.take_raw([Delivery("records/gantry/v", b"{", 0)])
    assert each.turn()[received] == MOST_OF_A_VEHICLE * K
    each.rig.store.close()


def test_one_vehicle_with_all_its_records_of_a_window_moves_nothing(tmp_path: Path) -> None:
    each = with_many_records_of_a_vehicle(tmp_path)
    values = {"type": "car", "region": "north", "age": 30, "speed": 10, "fault": "none"}
    before = each.turn()
    each.rig.take(*(Sent("v", "gantry", float(i), values) for i in range(MOST_OF_A_VEHICLE)))
    assert each.rig.state.records.n_records == MOST_OF_A_VEHICLE
    assert each.turn() == before
    each.rig.store.close()


def test_a_large_k_makes_large_steps_of_the_size_of_the_store(tmp_path: Path) -> None:
    each = Scraped(tmp_path, promise={"k": 5_000, "d": 1}, cumulative="report", max_records=100_000)
    assert each.turn()["anonymizer_records_store_free_bytes",] > 0
    each.watched.free_bytes = 5_000 * len(SOURCES) * 1000
    assert each.turn()["anonymizer_records_store_free_bytes",] == 0
    each.rig.store.close()
