"""Windows together: an adversary who intersects them reads nothing, and little is lost by it."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import msgspec
import numpy as np
import pytest

from anonymizer.algorithms.attacks.released_classes import Labels
from anonymizer.algorithms.attacks.window_intersection import Read, WindowIntersection
from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.anonymize_window import anonymize
from anonymizer.pipeline.records.declaration import declare
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.multisource_model import WINDOW_MODELS
from anonymizer.settings import StreamSettings
from simulator.record_fleet import SETTINGS


class Roads:
    """Vehicles with lasting attributes like those of `simulator records`, which come and go."""

    def __init__(self, n: int, *, presence: float, churn: float, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        most = 4 * n
        experience = rng.beta(2.0, 3.0, most) * 50
        age = np.clip(20 + experience + rng.exponential(3.0, most), 18, 80)
        self._lasting = np.column_stack(
            [
                rng.choice(5, most, p=(0.08, 0.62, 0.14, 0.13, 0.03)),
                rng.integers(0, 4, most),
                np.clip(36 - rng.gamma(2.0, 4.5, most), 0, 36),
                age - 18,
                np.minimum(experience, age - 18),
            ]
        ).astype(np.int32)
        self._presence, self._churn = presence, churn
        self._here, self._next = np.arange(n), n
        self.born = dict.fromkeys(range(n), 0)

    def window(self, number: int) -> tuple[IntArray, Int32Array]:
        """Return the vehicles of a window and their records in codes."""
        rng = self._rng
        if number:
            leave = rng.random(len(self._here)) < self._churn
            new = self._next + np.arange(leave.sum())
            self._here, self._next = (
                np.concatenate([self._here[~leave], new]),
                self._next + len(new),
            )
            self.born |= dict.fromkeys(new.tolist(), number)
        v = self._here[rng.random(len(self._here)) < self._presence]
        n = len(v)
        fault = np.where(rng.random(n) < 0.1, 1 + rng.integers(0, 4, n), 0)
        speed = 140 * rng.random(n) ** 0.7
        changing = np.column_stack([speed, rng.integers(0, 101, n), fault]).astype(np.int32)
        return v, np.column_stack([self._lasting[v], changing])


@dataclass
class Outcomes:
    """What became of a fleet over some windows."""

    gcp: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    waited: float = 0.0
    read: list[Read] = field(default_factory=list)
    too_little_left: float = 0.0


def _share_left(turns: Iterator[int], budget: int) -> float:
    return max(next(turns), 0) / budget


def run(
    cumulative: str,
    *,
    n: int,
    n_windows: int,
    presence: float,
    churn: float,
    method: str,
    budget: int = 60,
) -> Outcomes:
    """Return what becomes of a fleet under the shipped settings with k = 5."""
    table = tomllib.loads(SETTINGS)["streams"][0]
    table |= {"model": "kd", "promise": {"k": 5, "d": 2}, "method": method}
    stream = declare(StreamSettings.model_validate(table | {"cumulative": cumulative}))
    model, roads = WINDOW_MODELS["kd"](stream), Roads(n, presence=presence, churn=churn, seed=1)
    attack = WindowIntersection(stream.schema, stream.lasting, d=stream.promise.d)
    readers = [ValueReader(qi) for qi in stream.schema.qis]
    memory: dict[bytes, bytes] = {}
    first_seen: dict[int, int] = {}
    outcomes, message = Outcomes(), 1
    for w in range(n_windows):
        v, cells = roads.window(w)
        order = np.lexsort(cells.T[::-1])
        v, cells = v[order], np.ascontiguousarray(cells[order])
        keys = [int(each).to_bytes(8, "big") for each in v]
        turns = count(budget, -1)
        closing = anonymize(
            stream,
            model,
            Joined(
                cells=cells,
                vehicle=keys,
                person=np.arange(len(v), dtype=np.int32),
                n_parts=np.full(len(v), 3),
                reported=np.ones((len(v), 3), bool),
            ),
            {key: memory[key] for key in keys if key in memory},
            span=(60.0 * w, 60.0 * (w + 1)),
            first_message=message,
            seed=w,
            time_left=partial(_share_left, turns, budget),
            clock=lambda: 0.0,
        )
        message += len(closing.messages)
        memory |= closing.memory
        kept = closing.outcome == Outcome.PUBLISHED
        for each in v[kept].tolist():
            first_seen.setdefault(each, w)
        outcomes.gcp.append(closing.summary["gcp"])
        outcomes.published.append(float(kept.mean()))
        outcomes.too_little_left += closing.summary["too_little_left"]
        published = [msgspec.json.decode(m.payload)["qis"] for m in closing.messages]
        labels = [
            Labels.of([reader.runs(of[qi.name]) for of in published])
            for qi, reader in zip(stream.schema.qis, readers, strict=True)
        ]
        attack.window(
            labels, [key for key, k in zip(keys, kept, strict=True) if k], cells[kept, :7]
        )
    new = [each for each, at in roads.born.items() if at]
    waits = [first_seen.get(each, n_windows) - roads.born[each] for each in new]
    outcomes.waited = float(np.mean(waits)) if waits else 0.0
    outcomes.read = attack.read()
    return outcomes


def test_an_adversary_with_two_sources_reads_most_types_where_windows_are_only_reported() -> None:
    found = run("report", n=200, n_windows=20, presence=0.9, churn=0.02, method="hilbert")
    assert {r.attribute: r.share > 0.3 for r in found.read}["type"]
    assert found.too_little_left > 0


def test_an_adversary_with_two_sources_reads_nothing_of_cohorts() -> None:
    found = run("enforce", n=200, n_windows=20, presence=0.9, churn=0.02, method="hilbert")
    assert [r.n_read + r.n_short for r in found.read] == [0, 0, 0, 0, 0]
    assert all(r.n_victims > 190 for r in found.read)
    assert found.too_little_left == 0
    assert np.mean(found.published) > 0.95
    assert np.mean(found.gcp[-5:]) < 1.4 * found.gcp[0]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("n", "churn"), [(100, 0.0), (100, 0.02), (1000, 0.0), (1000, 0.02)])
def test_over_fifty_windows_cohorts_cost_little_and_let_newcomers_in(n: int, churn: float) -> None:
    found = run("enforce", n=n, n_windows=50, presence=0.9, churn=churn, method="best", budget=600)
    print([round(g, 3) for g in found.gcp], np.mean(found.published), found.waited)  # noqa: T201
    assert [r.n_read + r.n_short for r in found.read] == [0, 0, 0, 0, 0]
    assert max(found.gcp) <= 0.42
    assert np.mean(found.published) >= 0.95
    assert min(found.published[1:]) >= 0.95
    assert found.waited <= 2
