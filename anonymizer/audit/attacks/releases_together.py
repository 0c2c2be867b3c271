"""Releases together: two streams that read one topic, by who does not know what it carried."""

from collections.abc import Iterator, Sequence

import numpy as np

from anonymizer.audit.attack import OTHERS, Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.joint_cases import Overlap, ReleasesCase, StreamRelease
from anonymizer.audit.mathematics.joint_releases import (
    JointReading,
    Side,
    left_alone,
    left_together,
)
from anonymizer.domain.arrays import BoolArray

TOGETHER, CONTROL = "releases together", "releases of two vehicles"


def releases_together(case: ReleasesCase) -> Iterator[Finding]:
    """Yield what each topic that both read tells by each release, by both, and by the control."""
    rng = np.random.default_rng(case.seed)
    topics = case.one.stream.settings.topics_shared_with(case.other.stream.settings)
    for mine, theirs in topics:
        reader = _Reader(case, mine.name, theirs.name)
        reader.run(rng)
        yield from reader.findings()


class _Reader:
    """The attack of an adversary who does not know what one topic carried."""

    def __init__(self, case: ReleasesCase, mine: str, theirs: str) -> None:
        self._releases, self._overlaps = (case.one, case.other), case.overlaps
        self._learned = case.one.learned(mine), case.other.learned(theirs)
        self._shared = list(self._in_both())
        self._readings: dict[tuple[str, int, int], JointReading] = {
            (attack, side, j): JointReading(
                release.stream.schema.qis[j].name in release.stream.lasting
            )
            for side, release in enumerate(self._releases)
            for attack in (_alone(release), TOGETHER, CONTROL)
            for j in self._learned[side]
        }

    def run(self, rng: np.random.Generator) -> None:
        """Attack all windows that overlap."""
        for each in self._overlaps:
            self._take(each, rng)
        for reading in self._readings.values():
            reading.end()

    def findings(self) -> Iterator[Finding]:
        """Yield what is read of each attribute: by each release, by both, and by the control."""
        seen_twice = {j for _, j in self._shared}
        for side, release in enumerate(self._releases):
            for j in self._learned[side]:
                for attack in (_alone(release), TOGETHER, CONTROL):
                    if attack == _alone(release) or not (side and j in seen_twice):
                        yield self._finding(attack, side, j)

    def _finding(self, attack: str, side: int, j: int) -> Finding:
        stream = self._releases[side].stream
        d = stream.settings.promise.d
        read = self._readings[attack, side, j]
        promised = attack == TOGETHER and all(r.stream.settings.enforces for r in self._releases)
        n_short = read.n_below(d)
        return Finding(
            attack=attack,
            attribute=stream.schema.qis[j].name,
            figures={
                "n_vehicles": read.n_victims,
                "n_read": read.n_left_of.get(1, 0),
                "n_below_d": n_short,
                "share_read": read.n_left_of.get(1, 0) / max(read.n_victims, 1),
                "values_left": read.mean_left,
            },
            bar=f"{d} values left of each" if promised else None,
            holds=n_short == 0 if promised else None,
            required=promised,
        )

    def _in_both(self) -> Iterator[tuple[int, int]]:
        """Yield the indices of the attributes that both tell."""
        one, other = (release.stream for release in self._releases)
        for i, j in one.settings.same_values(other.settings):
            mine, theirs = one.settings.attributes[i], other.settings.attributes[j]
            names = [qi.name for qi in one.schema.qis], [qi.name for qi in other.schema.qis]
            if mine.name not in names[0] or theirs.name not in names[1]:
                continue
            at = names[0].index(mine.name), names[1].index(theirs.name)
            if at[0] not in self._learned[0] or at[1] not in self._learned[1]:
                continue
            yield at

    def _take(self, overlap: Overlap, rng: np.random.Generator) -> None:
        """Attack the vehicles of two windows."""
        rows = overlap.rows
        sides = [
            Side(
                release.stream.schema.qis,
                labels,
                joined.cells[rows[:, side], : len(release.stream.schema.qis)],
                self._learned[side],
            )
            for side, (release, (labels, joined)) in enumerate(
                zip(self._releases, overlap.sides, strict=True)
            )
        ]
        out = sides[0].published() & sides[1].published()
        first = overlap.sides[0][1]
        vehicles = [first.vehicle[i] for i in rows[out, 0].tolist()]
        one, other = (side.only(out) for side in sides)
        shared = [
            (i, j)
            for i, j in self._shared
            if overlap.is_same
            or self._releases[0].stream.schema.qis[i].name in self._releases[0].stream.lasting
        ]
        for side, each in enumerate((one, other)):
            self._note(_alone(self._releases[side]), side, vehicles, each, left_alone(each))
        both_left = left_together(one, other, shared)
        stranger = other.only(rng.permutation(len(vehicles)))
        strange = left_together(one, stranger, shared)
        for side, each in enumerate((one, other)):
            self._note(TOGETHER, side, vehicles, each, both_left[side])
            self._note(CONTROL, side, vehicles, (one, stranger)[side], strange[side])

    def _note(
        self,
        attack: str,
        side: int,
        vehicles: Sequence[bytes],
        of: Side,
        left: dict[int, BoolArray],
    ) -> None:
        for j, values in left.items():
            self._readings[attack, side, j].take(vehicles, values, of.codes[:, j])


def _alone(release: StreamRelease) -> str:
    return f"{release.stream.settings.name} alone"


ATTACK = Attack(
    TOGETHER,
    Subject.RELEASES,
    releases_together,
    (
        Question(
            TOGETHER,
            Criterion.INFERENCE,
            "Do two releases, taken together, tell an attribute of a vehicle?",
            ("share_read",),
            n="n_vehicles",
            against=OTHERS,
            bar="d values left of each, where both streams enforce it",
            together="the releases of",
            control_finding=CONTROL,
        ),
    ),
)
