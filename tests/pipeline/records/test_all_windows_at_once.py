"""All windows at once: an adversary with an integer program reads nothing of cohorts.

It knows the cover of every vehicle and who was present in each window, and looks for any assignment
of values in which the victim has another one: each vehicle has a value of its cover, and somebody
who was present has each value at the end of a cover that was new in that window.
"""

import tomllib
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from anonymizer.algorithms.records.cumulative import lasting_columns, unpack
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import StreamSettings
from simulator.record_fleet import SETTINGS
from tests.pipeline.records.test_windows_together import run

STREAM = declare(
    StreamSettings.model_validate(
        tomllib.loads(SETTINGS)["streams"][0] | {"model": "kd", "promise": {"k": 5, "d": 2}}
    )
)
LASTING = lasting_columns(STREAM.schema, STREAM.promise, STREAM.lasting)


class Column:
    """What the adversary knows of one attribute, whose values never change here."""

    def __init__(self, a: int) -> None:
        self.a = a
        self.attribute = STREAM.schema.qis[LASTING.qis[a]]
        self.truth: dict[bytes, int] = {}
        self.can: dict[bytes, set[int]] = {}
        self.given: set[tuple[int, frozenset[bytes]]] = set()
        """Values, and those of whom somebody has each."""

    def window(
        self, vehicles: Sequence[bytes], cells: Int32Array, memory: Mapping[bytes, bytes]
    ) -> None:
        """Take in a window."""
        values = cells[:, LASTING.qis[self.a]].tolist()
        now = {
            vehicle: value
            for vehicle, value in zip(vehicles, values, strict=True)
            if value != self.attribute.missing
        }
        self.truth |= now
        for vehicle, blob in memory.items():
            known = unpack([blob], LASTING)
            cover = known.code[slice(*known.first_of[self.a : self.a + 2])].tolist()
            if not cover or vehicle in self.can:
                continue
            is_range = self.attribute.numeric
            self.can[vehicle] = set(range(cover[0], cover[-1] + 1)) if is_range else set(cover)
            ends = (cover[0], cover[-1]) if is_range else cover
            self.given |= {(code, frozenset(now)) for code in ends}

    def read(self) -> int:
        """Return of how many vehicles the value is the only one possible."""
        place: dict[tuple[bytes, int], int] = {}
        for vehicle, value in self.truth.items():
            for code in self.can.get(vehicle, {value}):
                place[vehicle, code] = len(place)
        rows = [[place[v, c] for c in self.can.get(v, {own})] for v, own in self.truth.items()]
        n = len(rows)
        rows += [[place[v, c] for v in who if (v, c) in place] for c, who in self.given]
        row = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        matrix = csr_array(
            (np.ones(len(row)), (row, np.concatenate(rows))), shape=(len(rows), len(place))
        )
        most = np.where(np.arange(len(rows)) < n, 1.0, np.inf)
        fits = LinearConstraint(matrix, np.ones(len(rows)), most)
        whole, n_read = np.ones(len(place), np.int64), 0
        for vehicle in self.can:
            free = np.ones(len(place))
            free[place[vehicle, self.truth[vehicle]]] = 0
            found = milp(0 * free, constraints=fits, bounds=Bounds(0, free), integrality=whole)
            n_read += not found.success
        return n_read


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("n", "churn", "refused"), [(12, 0.05, False), (40, 0.05, True)])
def test_who_tries_all_values_in_all_windows_reads_none(
    n: int, churn: float, *, refused: bool
) -> None:
    columns = [Column(a) for a in range(len(LASTING.qis))]

    def seen(vehicles: Sequence[bytes], cells: Int32Array, memory: Mapping[bytes, bytes]) -> None:
        for column in columns:
            column.window(vehicles, cells, memory)

    run(
        "enforce",
        n=n,
        n_windows=20,
        presence=0.9,
        churn=churn,
        method="hilbert",
        refused=refused,
        seen=seen,
    )
    assert all(len(column.can) >= n for column in columns)
    assert [column.read() for column in columns] == [0] * len(columns)
