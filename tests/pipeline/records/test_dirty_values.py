"""Values of messages by what they mean, and vehicles that state nothing."""

import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.join import Joined, as_written
from tests.pipeline.records.made import Sent, stream, traffic
from tests.pipeline.records.support import Rig

NOTHING = (None, "", " ", "\\N", "NaT", ".", "NULL", "n/a", "\u00a0", "\u200b")


def published(*parts: Sent) -> tuple[list[bytes], dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        rig.take(*parts)
        rig.close(silent=True)
        made = rig.publish(), rig.accounts()
        rig.store.close()
        return made


def written(rng: np.random.Generator, value: object) -> object:
    if isinstance(value, str):
        text = str(rng.choice([value, value.upper(), value.title(), f" {value}\u00a0"]))
        return unicodedata.normalize("NFC" if rng.integers(0, 2) else "NFKD", text)
    wide = str(value).translate(str.maketrans("0123456789", "\uff10\uff11\uff12\uff13\uff14"
                                              "\uff15\uff16\uff17\uff18\uff19"))  # fmt: skip
    return [value, str(value), f" {value} ", wide][int(rng.integers(0, 4))]


def test_dirty_writings_of_a_fleet_are_published_like_clean_ones() -> None:
    clean = list(traffic(n_vehicles=30, n_windows=1, seed=1))
    rng = np.random.default_rng(2)
    dirty = [
        Sent(p.vehicle, p.source, p.ts, {n: written(rng, v) for n, v in p.values.items()})
        for p in clean
    ]
    assert published(*dirty) == published(*clean)


def test_a_vehicle_that_states_nothing_is_nobodys_company() -> None:
    clean = list(traffic(n_vehicles=30, n_windows=1, seed=1))
    names: dict[str, list[str]] = {
        "registration": ["type", "region"], "profile": ["age"], "telemetry": ["speed", "fault"],
    }  # fmt: skip
    blank = [
        Sent(f"blank-{i}", source, 1.0 + i, dict.fromkeys(names[source], NOTHING[i % 10]))
        for i in range(20)
        for source in names
    ]
    messages, accounts = published(*clean, *blank)
    assert messages == published(*clean)[0]
    assert accounts == {"received": 150, "published": 90, "suppressed/states_nothing": 60}


@pytest.mark.parametrize(
    ("values", "stated", "means"),
    [
        (["yes", "no"], ["true", "Y", "1", "ja"], "yes"),
        (["1", "2"], ["01", "\u0661", "1 "], "1"),
        (["Z\u00fcrich", "Bern"], ["zu\u0308rich", "Z\u00dcRICH"], "Z\u00fcrich"),
    ],
)
def test_a_declared_value_is_known_in_every_writing(
    values: list[str], stated: list[str], means: str
) -> None:
    [reader] = stream(
        sources=[{"name": "all", "tells": ["x", "type"]}],
        attributes=[
            {"name": "x", "values": values},
            {"name": "type", "values": ["a", "b"]},
        ],
    ).readers
    codes = set()
    for each in (means, *stated):
        part = reader.read(Sent("v", "all", 1.0, {"x": each, "type": "a"}).payload)
        assert not isinstance(part, Outcome)
        codes.add(part[1])
    assert len(codes) == 1


@pytest.mark.parametrize("other", ["A", "b", "\u00e4", "10 MW", "102"])
def test_a_text_that_no_declared_value_means_has_no_code(other: str) -> None:
    attributes: list[dict[str, Any]] = [{"name": "x", "values": ["aa", "c", "10 mW", "10\u00b2"]}]
    [reader] = stream(
        sources=[{"name": "all", "tells": ["x"]}], attributes=attributes, promise={"k": 4, "d": 2}
    ).readers
    found = reader.read(Sent("v", "all", 1.0, {"x": other}).payload)
    assert found is Outcome.INVALID__OUT_OF_DOMAIN


def test_any_text_counts_by_its_meaning_in_a_window() -> None:
    written = ["HIV", "hiv", "hiv", None, "flu", "Flu", "flu"]
    texts, codes = as_written(written)
    n = len(written)
    joined = Joined(
        np.array(codes, np.int32)[:, None],
        [b""] * n,
        np.arange(n, dtype=np.int32),
        np.ones(n, np.int64),
        np.ones((n, 1), bool),
        {0: texts},
    ).meant()
    assert joined.values_of == {0: ["flu", "hiv"]}
    assert joined.cells[:, 0].tolist() == [1, 1, 1, 2, 0, 0, 0]
