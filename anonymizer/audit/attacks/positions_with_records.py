"""Positions with records: a stream and regions, by who does not know what a source reported."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.attack import OTHERS, Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.joint_cases import SIDE, Track, VehiclesCase
from anonymizer.audit.mathematics.joint_releases import (
    JointReading,
    Side,
    left_alone,
    left_together,
)
from anonymizer.audit.mathematics.places_of_records import PLACE, seen_in, side_of_positions
from anonymizer.audit.publications import grid_cells
from anonymizer.domain.arrays import BoolArray
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.topics import KEY_BYTES

TOGETHER, CONTROL = "positions with records", "positions of another vehicle"
POSITIONS = "positions alone"


def positions_with_records(case: VehiclesCase) -> Iterator[Finding]:
    """Yield what is read of what each source alone tells."""
    rng = np.random.default_rng(case.seed)
    stream = case.release.stream
    for source in stream.settings.sources:
        learned = [j for j, qi in enumerate(stream.schema.qis) if qi.name in source.tells]
        if learned:
            reader = _Reader(case, learned)
            reader.run(rng)
            yield from reader.findings(source.name)


class _Reader:
    """The attack of an adversary who does not know what one source reported."""

    def __init__(self, case: VehiclesCase, learned: Sequence[int]) -> None:
        stream = case.release.stream
        self._stream, self._learned, self._tracks = stream, learned, case.tracks
        self._cell_of = grid_cells(case.network, SIDE)
        self._windows = list(case.release.windows())
        self._case = case
        self._alone = f"{stream.settings.name} alone"
        self._names = [stream.schema.qis[j].name for j in learned]
        self._readings = {
            (attack, name): JointReading(lasting=name in stream.lasting)
            for attack in (self._alone, POSITIONS, TOGETHER, CONTROL)
            for name in (*self._names, PLACE)
            if not (attack == self._alone and name == PLACE)
        }

    def run(self, rng: np.random.Generator) -> None:
        """Attack all windows."""
        seen = self._seen()
        for window in self._windows:
            self._take(window, seen, rng)
        for reading in self._readings.values():
            reading.end()

    def findings(self, source: str) -> Iterator[Finding]:
        """Yield what is read of each attribute and of the place: alone, together, and by chance.

        The place is read by who does not know what this source said.
        """
        for (attack, name), read in sorted(self._readings.items(), key=lambda each: each[0][1]):
            yield Finding(
                attack=attack,
                attribute=f"{PLACE} ({source})" if name == PLACE else name,
                figures={
                    "n_vehicles": read.n_victims,
                    "n_read": read.n_left_of.get(1, 0),
                    "share_read": read.n_left_of.get(1, 0) / max(read.n_victims, 1),
                    "values_left": read.mean_left,
                },
            )

    def _cells(self, vehicle: bytes, span: tuple[float, float]) -> BoolArray:
        """Return the cells in which a vehicle was in a window."""
        ts, node = self._tracks[vehicle]
        within = node[(ts >= span[0]) & (ts < span[1])]
        return np.bincount(self._cell_of[within], minlength=SIDE * SIDE) > 0

    def _seen(self) -> list[BoolArray]:
        """Return in which cells each value of each learned attribute is seen in the recording."""
        codes, cells = [], []
        for span, _, joined in self._windows:
            for i, vehicle in enumerate(joined.vehicle):
                if vehicle[:KEY_BYTES] in self._tracks:
                    codes.append(joined.cells[i])
                    cells.append(self._cells(vehicle[:KEY_BYTES], span))
        if not codes:
            return [
                np.zeros((self._stream.schema.qis[j].size, SIDE * SIDE)) > 0 for j in self._learned
            ]
        every = np.stack(codes)
        return [
            seen_in(every[:, j], np.stack(cells), self._stream.schema.qis[j].size)
            for j in self._learned
        ]

    def _take(
        self,
        window: tuple[tuple[float, float], list[ReleasedLabels], Joined],
        seen: list[BoolArray],
        rng: np.random.Generator,
    ) -> None:
        """Attack the vehicles of a window that are in both releases."""
        span, labels, joined = window
        middle = sum(span) / 2
        now, cells = self._case.regions.at(middle, span, self._cell_of)
        rows, known, last = [], [], []
        for i, vehicle in enumerate(joined.vehicle):
            ts, node = self._tracks.get(vehicle[:KEY_BYTES], _NOWHERE)
            before, end = np.searchsorted(ts, [middle, span[1]])
            if before and ts[before - 1] >= span[0]:
                rows.append(i)
                known.append(node[before - 1])
                last.append(self._cell_of[node[end - 1]])
        if not rows or not now:
            return
        qis = self._stream.schema.qis
        codes = joined.cells[rows][:, : len(qis)]
        records = Side(qis, labels, codes, self._learned)
        positions = side_of_positions(
            regions=now,
            cells=cells,
            known=np.array(known, np.int32),
            last_cell=np.array(last, np.int32),
            attributes=[
                (qis[j], each, codes[:, j]) for j, each in zip(self._learned, seen, strict=True)
            ],
            n_nodes=len(self._cell_of),
        )
        out = records.published() & positions.published()
        vehicles = [joined.vehicle[rows[i]] for i in np.flatnonzero(out).tolist()]
        if not vehicles:
            return
        records, positions = records.only(out), positions.only(out)
        shared = [(j, 2 + i) for i, j in enumerate(self._learned)]
        stranger = positions.only(rng.permutation(len(vehicles)))
        self._note(self._alone, vehicles, records, left_alone(records), shared)
        self._note(POSITIONS, vehicles, positions, left_alone(positions), [])
        for attack, other in ((TOGETHER, positions), (CONTROL, stranger)):
            first, second = left_together(records, other, shared)
            self._note(attack, vehicles, records, first, shared)
            self._readings[attack, PLACE].take(vehicles, second[1], other.codes[:, 1])
        self._case.attacked.add(span)

    def _note(
        self,
        attack: str,
        vehicles: list[bytes],
        of: Side,
        left: Mapping[int, BoolArray],
        shared: Sequence[tuple[int, int]],
    ) -> None:
        """Take in what is left, of the side of the records, or else of that of the positions."""
        at = {name: j for name, (j, _) in zip(self._names, shared, strict=False)}
        at = at or {PLACE: 1} | {name: 2 + i for i, name in enumerate(self._names)}
        for name, j in at.items():
            self._readings[attack, name].take(vehicles, left[j], of.codes[:, j])


_NOWHERE = Track(np.zeros(0), np.zeros(0, np.int32))


ATTACK = Attack(
    TOGETHER,
    Subject.POSITIONS_AND_RECORDS,
    positions_with_records,
    (
        Question(
            TOGETHER,
            Criterion.INFERENCE,
            "Do positions and records, taken together, tell an attribute of a vehicle?",
            ("share_read",),
            n="n_vehicles",
            against=OTHERS,
            together="positions and the records of",
            control_finding=CONTROL,
        ),
    ),
)
