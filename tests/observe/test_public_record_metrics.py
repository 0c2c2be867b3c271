"""A scraper without the token learns nothing about fewer than k vehicles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from anonymizer.observe.metrics import public_registry
from anonymizer.observe.public_record_metrics import PublicRecordCollector
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.inbox import RecordInbox
from anonymizer.settings.streams import MOST_OF_A_VEHICLE
from tests.observe.samples import Watched, samples
from tests.pipeline.records.made import FLEET, LENGTH_S, Sent, traffic
from tests.pipeline.records.support import Rig

K = FLEET["promise"]["k"]
LATER_S = 10 * LENGTH_S


class Scraped:
    """A records side, and somebody who reads its public metrics."""

    def __init__(self, folder: Path, **changes: Any) -> None:  # noqa: ANN401  settings of any kind
        self.rig = Rig(folder, **changes)
        self.inbox = RecordInbox(999, streams_of=self.rig.flow.streams_of)
        self.watched = Watched(self.rig.flow, self.inbox)
        self._public = PublicRecordCollector(self.watched)

    def scrape(self) -> dict[tuple[str, ...], float]:
        """Return what is shown."""
        return samples(generate_latest(public_registry(self._public)).decode())


def crowd(rig: Rig) -> None:
    """Have two windows: a closed one, and an open one."""
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
    before = each.scrape()
    deed(each)
    assert each.scrape() == before
    each.rig.store.close()


def test_a_window_of_fewer_than_k_vehicles_ends_unseen(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    crowd(each.rig)
    each.rig.close(silent=True)
    before = each.scrape()
    assert before["anonymizer_records_last_window", "fleet", "published"] > 0
    each.rig.take(*some(start=2 * LATER_S))
    assert each.rig.close(silent=True) == 1
    assert each.rig.state.stats.last["classes"] == 0
    assert each.scrape() == before
    each.rig.store.close()


def test_what_a_single_vehicle_can_change_is_not_shown(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    crowd(each.rig)
    names = {name for name, *_ in each.scrape()}
    for name in ("windows_total", "open_windows", "watermark_lag_seconds", "close_seconds_sum"):
        assert f"anonymizer_records_{name}" not in names
    figures = {key[2] for key in each.scrape() if key[0] == "anonymizer_records_last_window"}
    assert figures.isdisjoint({"seconds", "too_little_left"})
    each.rig.store.close()


def test_a_refused_class_is_shown(tmp_path: Path) -> None:
    each = Scraped(tmp_path)
    each.rig.state.stats.n_unverified += 1
    assert each.scrape()["anonymizer_records_unverified_classes_total", "fleet"] == 1
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


def test_what_one_vehicle_sends_without_end_moves_nothing(tmp_path: Path) -> None:
    each = with_many_records_of_a_vehicle(tmp_path)
    before = each.scrape()
    each.rig.take_raw([Delivery("records/gantry/v", b"{", 0)] * (2 * MOST_OF_A_VEHICLE * K))
    assert each.scrape() == before
    each.rig.store.close()


def test_one_vehicle_with_all_its_records_of_a_window_moves_nothing(tmp_path: Path) -> None:
    each = with_many_records_of_a_vehicle(tmp_path)
    values = {"type": "car", "region": "north", "age": 30, "speed": 10, "fault": "none"}
    before = each.scrape()
    each.rig.take(*(Sent("v", "gantry", float(i), values) for i in range(MOST_OF_A_VEHICLE)))
    assert each.rig.state.records.n_records == MOST_OF_A_VEHICLE
    assert each.scrape() == before
    each.rig.store.close()
