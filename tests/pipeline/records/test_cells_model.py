"""Windows of cells: what is published of vehicles, re-checked from what they sent."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import Classes, classes_of
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records
from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.cells_model import DecisionTree, target_of, untrue
from anonymizer.pipeline.records.declaration import declare
from anonymizer.pipeline.records.queries import Queries
from anonymizer.pipeline.records.window_model import Asked
from anonymizer.settings import StreamSettings
from anonymizer.store import ReleaseReader
from tests.pipeline.records.made import FAULTS, FLEET, REGIONS, TYPES, Sent, stream, traffic
from tests.pipeline.records.support import Rig
from tests.pipeline.records.tolls import TOLL, exits

CELLS: dict[str, Any] = {
    "model": "cells",
    "method": "auto",
    "promise": {"k": 5, "l": 2},
    "cumulative": "report",
}
QIS = ("type", "region", "age", "speed")


class Spy(DecisionTree):
    """Remembers which records became which class."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        class_of = super().classes(records, measures, time_left=time_left, seed=seed, asked=asked)
        SEEN.append((records, class_of))
        return class_of


SEEN: list[tuple[Records, Int32Array]] = []


@pytest.fixture
def rigs(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    SEEN.clear()
    made: list[Rig] = []

    def make(*, like: Path | None = None, **changes: Any) -> Rig:  # noqa: ANN401  settings of any kind
        """Return a rig; `like` is a folder with a store whose secret it is to have."""
        folder = tmp_path / str(len(made))
        folder.mkdir()
        if like is not None:
            shutil.copy(like / "records.sqlite", folder)
        made.append(Rig(folder, **CELLS | changes))
        made[-1].state.model = Spy(made[-1].stream)
        return made[-1]

    yield make
    for rig in made:
        rig.store.close()


def fleet_of(n: int, *, seed: int = 1) -> list[Sent]:
    return list(traffic(n_vehicles=n, n_windows=1, seed=seed))


def published(rig: Rig, parts: Sequence[Sent]) -> list[dict[str, Any]]:
    rig.take(*parts)
    rig.close(silent=True)
    return rig.classes()


def sent_records(parts: Sequence[Sent]) -> list[dict[str, Any]]:
    """Join what each vehicle said, in the plainest way; speeds are told in halves."""
    of: dict[str, dict[str, Any]] = defaultdict(dict)
    for part in parts:
        of[part.vehicle] |= part.values
    for told in of.values():
        if "speed" in told:
            told["speed"] = np.floor(told["speed"] * 2 + 0.5) / 2
    return list(of.values())


def member_values(parts: Sequence[Sent]) -> list[list[dict[str, Any]]]:
    """Return what the members of each class sent, as the spy saw the classes."""
    [(records, class_of)] = SEEN
    schema = stream().schema
    rows = [
        {
            "type": TYPES[qi[0]],
            "region": REGIONS[qi[1]],
            "age": float(schema.qis[2].position[qi[2]]),
            "speed": float(schema.qis[3].position[qi[3]]),
            "fault": FAULTS[sensitive[0]],
        }
        for qi, sensitive in zip(records.qi.tolist(), records.sensitive.tolist(), strict=True)
    ]

    def bag(of: Sequence[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row[name] for name in (*QIS, "fault")) for row in of)

    assert bag(rows) == bag(sent_records(parts))
    n_classes = int(class_of.max()) + 1
    return [[rows[i] for i in np.flatnonzero(class_of == c).tolist()] for c in range(n_classes)]


def representative(members: Sequence[dict[str, Any]]) -> dict[str, Any]:
    of: dict[str, Any] = {}
    for name, order in (("type", TYPES), ("region", REGIONS)):
        times = Counter(row[name] for row in members)
        of[name] = max(order, key=lambda value: (times[value], -order.index(value)))
    return of | {name: median(row[name] for row in members) for name in ("age", "speed")}


def test_each_class_is_k_vehicles_l_values_and_their_medians_and_modes(
    rigs: Callable[..., Rig],
) -> None:
    parts = fleet_of(200)
    rig = rigs()
    messages = published(rig, parts)
    members = member_values(parts)
    assert 5 < len(messages) == len(members)

    def said(qis: dict[str, Any], faults: list[str], n: int) -> str:
        return json.dumps([[qis[name] for name in QIS], sorted(faults), n])

    expected = Counter(
        said(representative(rows), [row["fault"] for row in rows], len(rows)) for rows in members
    )
    told = Counter(
        said(
            {name: float(v) if isinstance(v := label["value"], int) else v
             for name, label in m["qis"].items()},
            m["sensitive"]["fault"],
            m["count"],
        )
        for m in messages
    )  # fmt: skip
    assert told == expected
    for message in messages:
        assert message["k"] == message["count"] >= 5
        assert len(set(message["sensitive"]["fault"])) >= 2
        assert all(set(label) == {"value"} for label in message["qis"].values())
    assert rig.state.stats.last["published"] == 200
    assert rig.state.stats.last["l"] >= 2


def test_as_ranges_a_class_is_told_by_what_is_there(rigs: Callable[..., Rig]) -> None:
    parts = fleet_of(120)
    messages = published(rigs(labels="range"), parts)
    expected = Counter(
        json.dumps(
            {
                "type": {"values": [t for t in TYPES if any(row["type"] == t for row in rows)]},
                "speed": [min(row["speed"] for row in rows), max(row["speed"] for row in rows)],
            }
        )
        for rows in member_values(parts)
    )
    told = Counter(
        json.dumps(
            {
                "type": m["qis"]["type"],
                "speed": [float(end) for end in m["qis"]["speed"]["range"]],
            }
        )
        for m in messages
    )
    assert told == expected


def test_a_window_comes_out_the_same_whatever_the_order_of_arrival(
    rigs: Callable[..., Rig], tmp_path: Path
) -> None:
    parts = fleet_of(60)
    (tmp_path / "secret").mkdir()
    Rig(tmp_path / "secret", **CELLS).store.close()
    said = []
    for seed in range(3):
        rig = rigs(like=tmp_path / "secret")
        rig.take(*(parts[i] for i in np.random.default_rng(seed).permutation(len(parts))))
        rig.close(silent=True)
        said.append(rig.publish())
    assert said[0] == said[1] == said[2]
    assert len(said[0]) > 3


def test_which_of_two_cells_comes_first_does_not_tell_on_which_side_of_a_border_they_are() -> None:
    of = stream(**CELLS | {"promise": {"k": 3}})
    slow = np.repeat(np.arange(2, dtype=np.int32), 30)[:, None] * 50
    qi = np.ascontiguousarray(np.hstack([np.zeros((60, 3), np.int32), slow]), np.int32)
    someone = Records(qi, np.zeros((60, 1), np.int32), np.arange(60, dtype=np.int32))
    none = np.zeros((60, 0), np.int32)
    first = set()
    for seed in range(12):
        class_of = DecisionTree(of).classes(someone, none, time_left=lambda: 1.0, seed=seed)
        assert set(class_of.tolist()) == {0, 1}
        first.add(int(class_of[0]))
    assert first == {0, 1}


def test_a_bound_on_t_is_kept_and_who_has_no_cell_for_it_joins_the_nearest(
    rigs: Callable[..., Rig],
) -> None:
    parts = [part for part in fleet_of(50) if part.source != "telemetry"]
    for i in range(60):
        told = {"speed": i / 2, "fault": FAULTS[0]} if i < 50 else {"speed": 7, "fault": FAULTS[1]}
        parts.append(Sent(f"veh-{i:04}", "telemetry", 1.0, told))
    for i in range(50, 60):  # all alike: ten vehicles, of which everything is known
        parts.append(Sent(f"veh-{i:04}", "profile", 1.0, {"age": 90}))
        told = {"type": "bus", "region": "west"}
        parts.append(Sent(f"veh-{i:04}", "registration", 1.0, told))
    share, bound = 10 / 60, 0.17
    rig = rigs(promise={"k": 5, "t": bound}, target="")
    messages = published(rig, parts)
    for message in messages:
        faults = message["sensitive"]["fault"]
        assert abs(faults.count(FAULTS[1]) / len(faults) - share) <= bound + 1e-9
        assert message["k"] >= 5
    assert sum(message["count"] for message in messages) == 60
    assert len(messages) > 1
    assert "suppressed/no_class" not in rig.accounts()
    assert rig.state.n_held == 3 * 60
    assert rig.state.stats.n_unverified == 0


def test_numbers_of_one_band_are_one_value_and_told_as_they_are(
    rigs: Callable[..., Rig],
) -> None:
    dose = {"name": "fault", "role": "sensitive", "lo": 0, "hi": 9, "step": 0.5, "bands": [4, 6]}
    attributes = [*FLEET["attributes"][:-1], dose]
    parts = [
        replace(part, values=part.values | {"fault": FAULTS.index(part.values["fault"]) * 2 + 0.5})
        if "fault" in part.values
        else part
        for part in fleet_of(150)
    ]
    mute = Sent("mute", "telemetry", 1.0, {"speed": 3, "fault": None})
    rig = rigs(attributes=attributes, promise={"k": 5, "l": 3})
    messages = published(rig, [*parts, mute])
    doses = [value for message in messages for value in message["sensitive"]["fault"]]
    expected = [part.values["fault"] for part in parts if "fault" in part.values]
    assert Counter(doses) == Counter([*expected, None])
    assert len(messages) > 5
    for message in messages:
        told = [value for value in message["sensitive"]["fault"] if value is not None]
        assert {sum(value >= edge for edge in (4, 6)) for value in told} == {0, 1, 2}
    assert rig.state.stats.last["l"] == 3
    with pytest.raises(SettingsError, match="fault has 3 values, l = 4"):
        stream(**CELLS | {"attributes": attributes, "promise": {"k": 5, "l": 4}})


def test_fewer_vehicles_than_k_are_not_published(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    assert published(rig, fleet_of(4)) == []
    assert rig.accounts() == {"received": 12, "suppressed/no_class": 12}


@pytest.mark.parametrize("labels", ["representative", "range"])
def test_a_class_of_which_something_untrue_is_told_is_refused(
    rigs: Callable[..., Rig], labels: str
) -> None:
    class Lying(DecisionTree):
        """Says of every class what is true of the first."""

        def generalized(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
            return super().generalized(records, classes)[:1] * len(classes)

    parts = fleet_of(80)
    rig = rigs(labels=labels)
    n_classes = len(published(rig, parts))
    rig = rigs(labels=labels)
    rig.state.model = Lying(rig.stream)
    assert 1 <= len(published(rig, parts)) < n_classes
    accounts = rig.accounts()
    assert accounts["suppressed/unverified"] > 0
    assert rig.state.stats.n_unverified == n_classes - len(rig.classes())


@pytest.mark.parametrize(
    ("values", "value", "true"),
    [
        ([1, 2, 3], 2, True),
        ([1, 2, 3], 3, False),
        ([1, 2, 3, 4], 2.5, True),
        ([1, 2, 3, 4], 3.5, False),
        ([1, None], 1, True),
        ([1, None, None], 1, False),
        ([1, None, None], None, True),
        ([1, 2, None], None, False),
        ([1, 2, 3], "2", False),
    ],
)
def test_a_median_is_recognized_by_counting(
    values: list[float | None],
    value: float | str | None,
    true: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    age = stream().schema.qis[2]
    code = [age.missing if v is None else int(v) for v in values]
    shown = age.position[int(value)] + value % 1 if isinstance(value, int | float) else value
    one = Classes(np.array([0, len(code)]), np.arange(len(code)))
    assert untrue(np.array(code, np.int32), one, [shown], age) == ([] if true else [0])


@pytest.mark.parametrize(
    ("codes", "value", "true"),
    [([0, 0, 1], "car", True), ([0, 0, 1], "van", False), ([0, 1], "van", True),
     ([4, 4, 0], None, True), ([0, 0, 4], None, False), ([0], "lorry", False)],
)  # fmt: skip
def test_a_most_frequent_value_is_recognized_by_counting(
    codes: list[int],
    value: str | None,
    true: bool,  # noqa: FBT001  likewise
) -> None:
    kind = stream().schema.qis[0]
    one = Classes(np.array([0, len(codes)]), np.arange(len(codes)))
    assert untrue(np.array(codes, np.int32), one, [value], kind) == ([] if true else [0])


TREES = {"type": [(kind, "light" if kind in {"car", "van"} else "heavy", "*") for kind in TYPES]}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(0, 4),
            st.sampled_from([0, 1, 40, 73]),
            st.sampled_from([0, 3, 101]),
            st.integers(0, 4),
            st.integers(0, 8),
        ),
        max_size=40,
    ),
    st.sampled_from(["representative", "range"]),
    st.sampled_from(["range", "taxonomy"]),
    st.integers(0, 2**32 - 1),
)
def test_cells_keep_their_promise_and_nothing_that_is_told_of_them_is_refused(
    rows: list[tuple[int, ...]], labels: str, cost: str, seed: int
) -> None:
    """Codes that are few collide; the last of each column is the missing marker."""
    kind = {"name": "type", "hierarchy": "types.csv"}
    attributes = [kind, *FLEET["attributes"][1:]]
    changes = CELLS | {"attributes": attributes, "labels": labels, "cost": cost}
    made = declare(
        StreamSettings.model_validate(FLEET | changes | {"promise": {"k": 3, "l": 2}}),
        branches=TREES,
    )
    cells = np.array(rows, np.int32).reshape(-1, 6)
    person = np.arange(len(cells), dtype=np.int32)
    records = Records(cells[:, :4].copy(), cells[:, 4:5].copy(), person)
    model = DecisionTree(made)
    class_of = model.classes(
        records, np.zeros((len(rows), 0), np.int32), time_left=lambda: 0.0, seed=seed
    )
    assert verify_classes(records, made.schema, made.promise, class_of) == ()
    told = model.generalized(records, classes_of(class_of))
    assert model.rejected(records, class_of, told) == set()


def test_who_reports_most_does_not_stand_for_the_others(rigs: Callable[..., Rig]) -> None:
    source = {"name": "telemetry", "tells": ["speed"]}
    attributes = [a for a in FLEET["attributes"] if a["name"] == "speed"]
    rig = rigs(sources=[source], attributes=attributes, per="record", promise={"k": 3})
    often = [Sent("often", "telemetry", 1 + i / 10, {"speed": 40}) for i in range(50)]
    others = [Sent(f"v{i}", "telemetry", 1.0, {"speed": 10 + i}) for i in range(2)]
    [message] = published(rig, [*often, *others])
    assert (message["k"], message["count"]) == (3, 3)
    assert message["qis"] == {"speed": {"value": 11}}


def test_what_most_have_not_told_is_told_as_missing(rigs: Callable[..., Rig]) -> None:
    parts = [
        part
        for part in fleet_of(8)
        if part.source != "profile" or part.vehicle in {"veh-0000", "veh-0001"}
    ]
    [message] = published(rigs(promise={"k": 8}), parts)
    assert message["qis"]["age"] == {"value": None}
    assert message["qis"]["type"]["value"] in TYPES


def spread(messages: Sequence[dict[str, Any]]) -> float:
    """How far the means of classes lie apart, as a weighted variance."""
    told = [m["measures"]["fuel"] for m in messages if m["measures"]["fuel"] is not None]
    n = np.array([fuel["n"] for fuel in told])
    mean = np.array([fuel["mean"] for fuel in told])
    return float(np.average((mean - np.average(mean, weights=n)) ** 2, weights=n))


@pytest.mark.parametrize(
    ("cumulative", "labels"), [("report", "representative"), ("enforce", "range")]
)
def test_the_tree_learns_the_measure_that_is_its_target(
    cumulative: str, labels: str, rigs: Callable[..., Rig]
) -> None:
    fuel = {"name": "fuel", "role": "measure", "lo": 0, "hi": 100}
    sources = [*FLEET["sources"][:2], {"name": "telemetry", "tells": ["speed", "fault", "fuel"]}]
    changes = {
        "attributes": [*FLEET["attributes"], fuel],
        "sources": sources,
        "cumulative": cumulative,
        "labels": labels,
        "promise": {"k": 5, "d": 2},
    }

    def with_fuel(part: Sent) -> Sent:
        if part.source != "telemetry":
            return part
        old, fast = age[part.vehicle] > 45, part.values["speed"] > 30
        told = {"fuel": None if part.vehicle == "veh-0000" else 90 * (old ^ fast)}
        return Sent(part.vehicle, part.source, part.ts, part.values | told)

    parts = fleet_of(300)
    age = {p.vehicle: p.values["age"] for p in parts if "age" in p.values}
    parts = [with_fuel(part) for part in parts]
    followed = published(rigs(**changes, target="fuel"), parts)
    alone = published(rigs(**changes, target=""), parts)
    assert sum(m["count"] for m in followed) == sum(m["count"] for m in alone) == 300
    assert spread(followed) > 1.2 * spread(alone)


def test_a_number_that_is_missing_is_learned_as_the_mean_of_the_others() -> None:
    fuel = {"name": "fuel", "role": "measure", "lo": 0, "hi": 100}
    sources = [*FLEET["sources"][:2], {"name": "telemetry", "tells": ["speed", "fault", "fuel"]}]
    made = stream(**CELLS, attributes=[*FLEET["attributes"], fuel], sources=sources)
    codes = np.array([[0, 10], [4, 30], [1, made.measures[0].missing]], np.int32)
    fuels = target_of((*made.schema.sensitive, *made.measures), "fuel", codes)
    assert fuels is not None
    assert (fuels.values.tolist(), fuels.is_numeric) == ([10, 30, 20], True)
    assert target_of((*made.schema.sensitive, *made.measures), "fuel", codes[2:]) is None
    faults = target_of((*made.schema.sensitive, *made.measures), "fault", codes)
    assert faults is not None
    assert (faults.values.tolist(), faults.is_numeric) == ([0, 4, 1], False)
    assert target_of((*made.schema.sensitive, *made.measures), None, codes) is None


def test_a_representative_counts_as_all_values_of_its_class_over_windows(
    rigs: Callable[..., Rig], tmp_path: Path
) -> None:
    short: dict[str, list[float]] = {}
    homes = [part for part in fleet_of(40, seed=7) if part.source != "telemetry"]
    (tmp_path / "secret").mkdir()
    Rig(tmp_path / "secret", **CELLS).store.close()
    for labels in ("representative", "range"):
        rig = rigs(like=tmp_path / "secret", labels=labels, promise={"k": 4, "d": 2})
        for window in range(8):
            start = window * FLEET["window_s"]
            rig.take(*(replace(part, ts=part.ts + start) for part in homes))
            speeds = traffic(n_vehicles=40, n_windows=1, seed=window, start=start)
            rig.take(*(part for part in speeds if part.source == "telemetry"))
            rig.close(silent=True)
            short.setdefault(labels, []).append(rig.state.stats.last["too_little_left"])
    assert short["representative"] == short["range"]
    assert max(short["range"]) > 0


def test_a_target_of_very_many_categories_is_refused() -> None:
    fault = {"name": "fault", "role": "sensitive", "values": [f"E{i}" for i in range(101)]}
    attributes = [*FLEET["attributes"][:-1], fault]
    settings = StreamSettings.model_validate(FLEET | CELLS | {"attributes": attributes})
    with pytest.raises(SettingsError, match="target: fault has more than 100 values"):
        declare(settings)
    small = {"attributes": attributes, "target": ""}
    assert declare(StreamSettings.model_validate(FLEET | CELLS | small)).settings.learned is None


def test_who_reads_releases_of_kaca_passes_over_those_of_cells(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, **TOLL | {"model": "cells"})
    rig.take_raw([each.delivery(i) for i, each in enumerate(exits(n=60, n_trucks=60, seed=1), 1)])
    rig.close(silent=True)
    assert rig.publish()
    rig.store.close()
    reader = ReleaseReader(rig.path)
    assert reader.count(["toll"]) == 1
    answer = Queries(stream(**TOLL), reader).answer(None, None, None)
    assert (getattr(answer, "cells", None), getattr(answer, "releases", None)) == ([], [])
