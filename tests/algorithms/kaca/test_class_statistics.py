import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.class_statistics import summarize
from anonymizer.domain.records import Records
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import exits


@given(exits(repeats=True), st.data(), st.integers(1, 3))
def test_trucks_are_counted_once_and_a_mean_is_over_k_of_them_or_not_told(
    records: Records, data: st.DataObject, k: int
) -> None:
    n = records.n
    tolls = st.sampled_from([0.0, 1.25, 24.44, math.nan])
    toll = data.draw(st.lists(tolls, min_size=n, max_size=n))
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    told = summarize(class_of, records.person, np.array([toll]).T, k=k)
    for c, own in naive.members(class_of.tolist()).items():
        assert told.n_records[c] == len(own)
        assert told.n_persons[c] == len({int(records.person[i]) for i in own})
        has = [i for i in own if not math.isnan(toll[i])]
        if len({int(records.person[i]) for i in has}) < k:
            assert math.isnan(told.mean[c, 0])
        else:
            assert told.mean[c, 0] == pytest.approx(fmean(toll[i] for i in has), abs=0.005 + 1e-9)
            assert told.mean[c, 0] == round(float(told.mean[c, 0]), 2)


def test_what_is_suppressed_counts_nowhere() -> None:
    class_of = np.array([0, -1, 0], np.int32)
    told = summarize(class_of, np.array([0, 1, 2], np.int32), np.array([[1.0], [9.0], [2.0]]), k=2)
    assert (told.n_records.tolist(), told.n_persons.tolist()) == ([2], [2])
    assert told.mean.tolist() == [[1.5]]
