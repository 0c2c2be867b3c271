"""Audits of two publications about the same vehicles: what their releases reveal together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from pathlib import Path

from anonymizer.app.tuning.recording import joined_windows, read_messages
from anonymizer.audit.attack import Subject
from anonymizer.audit.findings import WindowsAuditReport
from anonymizer.audit.joint_cases import (
    RecordedRegions,
    ReleasesCase,
    StreamRelease,
    VehiclesCase,
    tracks_of,
)
from anonymizer.audit.registry import mounted
from anonymizer.audit.window_releases import check_labels, published_labels
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import LimitSettings, Settings, StreamSettings


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
    if not one.settings.topics_shared_with(other.settings):
        raise SettingsError(
            f"streams: {one.settings.name} and {other.settings.name} read no topic in common"
        )
    for stream in (one, other):
        check_labels(stream)
    _check_alike(one.settings, other.settings)
    releases = [
        StreamRelease(
            stream,
            published_labels(published, stream),
            joined_windows(stream, read_messages(truth), limits=limits),
        )
        for stream in (one, other)
    ]
    case = ReleasesCase(releases[0], releases[1], seed)
    if not case.overlaps:
        raise InputError(
            f"{published}: no window of {one.settings.name} overlaps with one of"
            f" {other.settings.name}"
        )
    findings = mounted(Subject.RELEASES, case)
    return WindowsAuditReport(
        stream=f"{one.settings.name}, {other.settings.name}",
        holds=not any(finding.fails for finding in findings),
        n_windows=len(case.overlaps),
        n_classes=sum(each.n_classes for each in releases),
        left_out={
            reason: n + releases[1].recorded.left_out.get(reason, 0)
            for reason, n in releases[0].recorded.left_out.items()
        },
        findings=findings,
    )


def _check_alike(one: StreamSettings, other: StreamSettings) -> None:
    for i, j in one.same_values(other):
        if one.attributes[i].domain_as_declared != other.attributes[j].domain_as_declared:
            raise SettingsError(
                f"streams: {one.name} and {other.name} declare different values of"
                f" {one.attributes[i].name}, so what they leave of it cannot be compared"
            )


def audit_positions(
    stream: Stream,
    settings: Settings,
    network: RoadNetwork,
    *,
    published: Path,
    truth: Path,
    seed: int = 0,
) -> WindowsAuditReport:
    """Attack the published windows of a stream and the published regions together.

    `published` is also of the topic of regions, `truth` of positions, else as for `audit_windows`.
    `seed`: of the control, the records of each victim with the positions of another one. InputError
    if a file or a message cannot be read, or no window has a vehicle that is in both releases;
    SettingsError if the stream cannot be attacked, or no input has positions that the audit can
    read.

    Notes
    -----
    The adversary knows where the victim is in the middle of a window, what all sources but one
    reported of it, and in which cells each value occurs: of that, more than anybody can know,
    because it is taken from the recording, the victim included. Nothing is promised of the two
    together, so the findings have no bar.
    """
    check_labels(stream)
    tracks = tracks_of(settings, network, read_messages(truth))
    regions = RecordedRegions(settings, network, read_messages(published))
    release = StreamRelease(
        stream,
        published_labels(published, stream),
        joined_windows(stream, read_messages(truth), limits=settings.limits),
    )
    findings = mounted(
        Subject.POSITIONS_AND_RECORDS,
        case := VehiclesCase(release, tracks, regions, network, seed),
    )
    if not case.attacked:
        raise InputError(f"{published}: no window has a vehicle in a class and in a region")
    return WindowsAuditReport(
        stream=f"{stream.settings.name}, positions",
        holds=not any(finding.fails for finding in findings),
        n_windows=len(case.attacked),
        n_classes=release.n_classes,
        left_out=release.recorded.left_out,
        findings=findings,
    )
