"""The experiment on where devices are: its fleets, its figures and its table."""

import numpy as np
import pytest

from anonymizer.audit.attacks.tracking import ADVERSARIES
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.tracking_experiment import released
from experiments.where_experiment import (
    Row,
    even,
    header,
    in_lots,
    line,
    served,
    summary,
    with_values,
)

CITY = load_network("city:400")


def test_the_mean_does_not_hide_the_most_exposed_tenth() -> None:
    belief = np.array([0.9, 0.7, *[0.1] * 18])
    assert summary(belief) == pytest.approx((0.17, 0.8, 0.1))
    assert summary(np.array([0.3])) == pytest.approx((0.3, 0.3, 0.0)), "one is its own tenth"


def test_settings_are_given_as_text() -> None:
    settings = with_values(Settings(), ["region.max_nodes=4000", "session.beat_s=10"])
    assert (settings.region.max_nodes, settings.session.beat_s) == (4000, 10.0)


def test_devices_of_lots_stand_in_five_places_and_are_no_victims() -> None:
    trace, victims = in_lots(CITY, 40, 0.5, seed=1)
    lat = trace.lat.reshape(-1, 40)
    stands = (lat == lat[0]).all(axis=0)
    assert not (stands & victims).any()
    assert (~victims).sum() == 20
    lots = {(round(a, 2), round(b, 2)) for a, b in zip(lat[0, ~victims], trace.lon[:40][~victims])}  # noqa: B905
    assert len(lots) <= 10


def test_what_is_known_has_an_age_and_is_valid_most_of_the_time() -> None:
    trace, _ = even(CITY, 30, seed=1)
    case, release = released(trace, CITY, Settings())
    nodes, valid, age_s = served(case, release)
    assert 6 <= nodes <= 400
    assert 0.8 < valid <= 1
    assert 5 < age_s < 60


def test_a_row_has_a_cell_for_each_column() -> None:
    near = {name: np.full((20, 2), 0.25) for name in ADVERSARIES}
    row = Row("even:50", (1, 3), near, 100.0, 0.95, 28.0, 30.0)
    text = line(row)
    assert text.count("|") == header((1, 3)).splitlines()[0].count("|")
    assert "1.00 / 1.00" in text
