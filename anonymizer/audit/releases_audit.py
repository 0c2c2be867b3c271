"""Audit of two streams that read one topic: what their releases reveal together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import RecordedWindows, joined_windows, read_messages
from anonymizer.audit.findings import Finding, WindowsAuditReport
from anonymizer.audit.mathematics.joint_releases import (
    JointReading,
    Side,
    left_alone,
    left_together,
)
from anonymizer.audit.windows_audit import check_labels, published_labels
from anonymizer.domain.arrays import BoolArray
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.settings import LimitSettings, StreamSettings

TOGETHER, CONTROL = "releases together", "releases of two vehicles"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Release:
    """A stream, what it has published in each window, and what it had received."""

    stream: Stream
    labels: dict[int, list[ReleasedLabels]]
    recorded: RecordedWindows

    def windows(self) -> Iterator[tuple[tuple[float, float], list[ReleasedLabels], Joined]]:
        """Yield span, labels and records of each window that was published."""
        for number, joined in zip(self.recorded.number, self.recorded.windows, strict=True):
            if number in self.labels:
                yield self.stream.rule.span(number), self.labels[number], joined

    def learned(self, source: str) -> list[int]:
        """Return the quasi-identifiers that a source tells."""
        [tells] = [s.tells for s in self.stream.settings.sources if s.name == source]
        return [j for j, qi in enumerate(self.stream.schema.qis) if qi.name in tells]


def audit_releases(
    one: Stream,
    other: Stream,
    *,
    published: Path,
    truth: Path,
    limits: LimitSettings,
    seed: int = 0,
) -> WindowsAuditReport:
    """Attack two streams that read one topic together, and each of them alone.

    `published`, `truth`: as for `audit_windows`; `seed`: of the control, the first release of each
    victim with the second one of another vehicle. InputError if a file or a class cannot be read,
    or no window of one overlaps with one of the other; SettingsError if the streams read no topic
    in common, or cannot be attacked.

    Notes
    -----
    Quasi-identifiers are attacked. A sensitive attribute of one of the streams is not read below l
    by leaving out classes. Values that do not last are intersected in windows of the same span.
    """
    topics = one.settings.topics_shared_with(other.settings)
    if not topics:
        raise SettingsError(
            f"streams: {one.settings.name} and {other.settings.name} read no topic in common"
        )
    for stream in (one, other):
        check_labels(stream)
    _check_alike(one.settings, other.settings)
    releases = [
        _Release(
            stream,
            published_labels(published, stream),
            joined_windows(stream, read_messages(truth), limits=limits),
        )
        for stream in (one, other)
    ]
    rng = np.random.default_rng(seed)
    findings: list[Finding] = []
    n_windows = 0
    for mine, theirs in topics:
        attack = _Attack(releases[0], releases[1], mine.name, theirs.name)
        n_windows = max(n_windows, attack.run(rng))
        findings += attack.findings()
    if not n_windows:
        raise InputError(
            f"{published}: no window of {one.settings.name} overlaps with one of"
            f" {other.settings.name}"
        )
    return WindowsAuditReport(
        stream=f"{one.settings.name}, {other.settings.name}",
        holds=not any(finding.fails for finding in findings),
        n_windows=n_windows,
        n_classes=sum(
            len(labels[0].first_of) - 1 for each in releases for labels in each.labels.values()
        ),
        left_out={
            reason: n + releases[1].recorded.left_out.get(reason, 0)
            for reason, n in releases[0].recorded.left_out.items()
        },
        findings=tuple(findings),
    )


def _check_alike(one: StreamSettings, other: StreamSettings) -> None:
    for i, j in one.same_values(other):
        if one.attributes[i].domain_as_declared != other.attributes[j].domain_as_declared:
            raise SettingsError(
                f"streams: {one.name} and {other.name} declare different values of"
                f" {one.attributes[i].name}, so what they leave of it cannot be compared"
            )


class _Attack:
    """The attack of an adversary who does not know what one topic carried."""

    def __init__(self, one: _Release, other: _Release, mine: str, theirs: str) -> None:
        self._releases = one, other
        self._learned = one.learned(mine), other.learned(theirs)
        self._shared = list(self._in_both())
        self._readings: dict[tuple[str, int, int], JointReading] = {
            (attack, side, j): JointReading(
                release.stream.schema.qis[j].name in release.stream.lasting
            )
            for side, release in enumerate(self._releases)
            for attack in (_alone(release), TOGETHER, CONTROL)
            for j in self._learned[side]
        }

    def run(self, rng: np.random.Generator) -> int:
        """Attack all windows that overlap; return their number."""
        n = 0
        one, other = self._releases
        for span, labels, joined in one.windows():
            for other_span, other_labels, other_joined in other.windows():
                if span[0] < other_span[1] and other_span[0] < span[1]:
                    pairs = (labels, joined), (other_labels, other_joined)
                    n += self._take(pairs, same=span == other_span, rng=rng)
        for reading in self._readings.values():
            reading.end()
        return n

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

    def _take(
        self,
        windows: tuple[tuple[list[ReleasedLabels], Joined], tuple[list[ReleasedLabels], Joined]],
        *,
        same: bool,
        rng: np.random.Generator,
    ) -> int:
        """Attack the vehicles of two windows; return 1 if some are in both releases."""
        (_, first), (_, second) = windows
        row_of = {vehicle: i for i, vehicle in enumerate(second.vehicle)}
        both = [(i, row_of[v]) for i, v in enumerate(first.vehicle) if v in row_of]
        if not both:
            return 0
        rows = np.array(both)
        sides = [
            Side(
                release.stream.schema.qis,
                labels,
                joined.cells[rows[:, side], : len(release.stream.schema.qis)],
                self._learned[side],
            )
            for side, (release, (labels, joined)) in enumerate(
                zip(self._releases, windows, strict=True)
            )
        ]
        out = sides[0].published() & sides[1].published()
        vehicles = [first.vehicle[i] for i in rows[out, 0].tolist()]
        one, other = (side.only(out) for side in sides)
        shared = [
            (i, j)
            for i, j in self._shared
            if same
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
        return 1

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


def _alone(release: _Release) -> str:
    return f"{release.stream.settings.name} alone"
