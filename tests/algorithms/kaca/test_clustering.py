from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.class_statistics import summarize
from anonymizer.algorithms.kaca.clustering import Method, kaca, kmeans
from anonymizer.algorithms.kaca.features import features, sum_of_squares
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, join_identical
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import Form, LabelStyle, Language
from anonymizer.algorithms.records.verification import short_classes
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import HOW, SECTIONS, TOLL, exits, toll
from tests.algorithms.records import naive as judges
from tests.algorithms.records.made import SCHEMA, promises
from tests.algorithms.records.made import records as tables

METHODS = list(Method)
LABELS = (LabelStyle(Form.PREFIX), LabelStyle(Form.HOURS))


@pytest.mark.parametrize("method", METHODS)
@given(st.booleans().flatmap(lambda r: exits(repeats=r)), st.integers(1, 6))
def test_every_class_has_k_different_trucks_and_no_exit_is_lost(
    method: Method, records: Records, k: int
) -> None:
    class_of = kaca(records, TOLL, Promise(k=k), method=method, how=HOW)
    assert class_of.shape == (records.n,)
    assert not len(short_classes(class_of, records.person, k))
    enough = len(set(records.person.tolist())) >= k
    assert (class_of != SUPPRESSED).all() if enough else (class_of == SUPPRESSED).all()
    assert set(class_of.tolist()) - {SUPPRESSED} == set(range(class_of.max() + 1))


@pytest.mark.parametrize("method", METHODS)
@given(st.booleans().flatmap(lambda r: tables(repeats=r)), promises())
def test_every_class_keeps_the_whole_promise(
    method: Method, table: Records, promise: Promise
) -> None:
    class_of = kaca(table, SCHEMA, promise, method=method)
    for own in naive.members(class_of.tolist()).values():
        assert judges.keeps(table, SCHEMA, promise, own)
    everybody = range(table.n)
    only_counts = promise.max_share == promise.max_source_share == promise.entropy_l == 1.0
    if only_counts and promise.t > 1 and judges.keeps(table, SCHEMA, promise, everybody):
        assert (class_of != SUPPRESSED).all()


@pytest.mark.parametrize("method", METHODS)
def test_equal_input_gives_equal_classes(method: Method) -> None:
    rng = np.random.default_rng(5)
    records = toll(rng.integers(0, 5, 300).tolist(), rng.integers(0, 1440, 300).tolist())
    one, two = (kaca(records, TOLL, Promise(k=5), method=method, how=HOW) for _ in range(2))
    assert (one == two).all()


@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("n_minutes", [60, 1440])
def test_the_fast_method_loses_no_more_than_k_means(k: int, n_minutes: int) -> None:
    rng = np.random.default_rng(k)
    section = rng.choice(5, 800, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    records = toll(section.tolist(), rng.integers(0, n_minutes, 800).tolist())
    feature = features(records, TOLL, HOW)
    fast, slow = (
        sum_of_squares(feature, kaca(records, TOLL, Promise(k=k), method=method, how=HOW))
        for method in (Method.FAST, Method.KMEANS)
    )
    assert fast <= slow


def test_exits_that_do_not_differ_are_told_as_one_class() -> None:
    records = toll([0] * 23 + [3] * 7, [600] * 23 + [60] * 7)
    class_of = kaca(records, TOLL, Promise(k=2), how=HOW)
    assert len(set(class_of[:23].tolist())) == len(set(class_of[23:].tolist())) == 1


@given(exits())
def test_k_means_asks_for_no_more_clusters_than_there_are_points(records: Records) -> None:
    feature = features(records, TOLL, HOW).of()
    label = kmeans(feature, 1)
    assert len(set(label.tolist())) <= len(np.unique(feature, axis=0))


def test_no_records_make_no_classes() -> None:
    assert not len(kaca(toll([], []), TOLL, Promise(k=2)))


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("method", METHODS)
def test_the_sources_2100_exits_are_told_in_classes_that_hold_when_looked_at_from_outside(
    method: Method, language: Language
) -> None:
    k, n = 5, 2100
    rng = np.random.default_rng(2100)
    minutes = (rng.normal(22 * 60, 300, n) % 1440).astype(int).tolist()
    sections = rng.choice(5, n, p=[0.4, 0.3, 0.2, 0.09, 0.01]).tolist()
    records = toll(sections, minutes, rng.integers(0, 1500, n).tolist())
    tolls = np.round(rng.uniform(5, 60, (n, 1)), 2)

    class_of = kaca(records, TOLL, Promise(k=k), method=method, how=HOW)
    told = generalize(records.qi, classes_of(class_of), TOLL)
    published = [told.texts(j, label, language) for j, label in enumerate(LABELS)]
    class_of = join_identical(class_of, published)
    told = generalize(records.qi, classes_of(class_of), TOLL)
    published = [told.texts(j, label, language) for j, label in enumerate(LABELS)]
    summary = summarize(class_of, records.person, tolls, k=k)

    assert not len(short_classes(class_of, records.person, k))
    assert len(set(zip(*published, strict=True))) == len(summary.n_persons)
    exits_told = 0
    for c, own in naive.members(class_of.tolist()).items():
        region, period = (column[c] for column in published)
        prefix = region.removesuffix("区域").removesuffix(" area")
        everywhere = region in {"全部区域", "all areas"}
        assert everywhere or all(SECTIONS[sections[i]].startswith(prefix) for i in own)
        first, end = map(int, period[-6:-1].split("-"))
        inside = {(first + h) % 24 for h in range((end - first) % 24 or 24)}
        assert {minutes[i] // 60 for i in own} <= inside
        assert summary.n_persons[c] == len({int(records.person[i]) for i in own}) >= k
        assert summary.mean[c, 0] == pytest.approx(fmean(tolls[own, 0].tolist()), abs=0.00501)
        exits_told += int(summary.n_records[c])
    assert exits_told == n


@pytest.mark.parametrize("method", METHODS)
def test_a_class_of_missing_values_alone_is_none(method: Method) -> None:
    section = Attribute("section", np.arange(2.0), ("G1", "?"), missing=1)
    schema = Schema((section,), (), ((0,),))
    code = np.array([[0], [1]] * 20, np.int32)
    records = Records(code, np.zeros((40, 0), np.int32), np.arange(40, dtype=np.int32))
    class_of = kaca(records, schema, Promise(k=5), method=method)
    assert (class_of != SUPPRESSED).all()
    for own in naive.members(class_of.tolist()).values():
        assert 0 in code[own]
