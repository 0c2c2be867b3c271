"""Audit of a stream of records: whether windows keep the promise, and what they tell together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from pathlib import Path

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import any_state, joined_windows, read_messages
from anonymizer.audit.attack import Subject
from anonymizer.audit.findings import WindowsAuditReport
from anonymizer.audit.registry import mounted
from anonymizer.audit.window_releases import (
    WindowRelease,
    WindowsCase,
    check_labels,
    classes_of,
    published_labels,
    says_what_it_holds,
)
from anonymizer.errors import InputError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import LimitSettings


def audit_windows(
    stream: Stream,
    *,
    published: Path,
    truth: Path,
    limits: LimitSettings,
    n_owned: int = 0,
    seed: int = 0,
) -> WindowsAuditReport:
    """Attack the published windows of a stream.

    `published`, `truth`: recordings of the topics on which the stream publishes and of those of its
    sources, as `read_messages` reads them; they may be one file. `n_owned`: number of vehicles,
    drawn by `seed`, whose values a third adversary knows because they are its own; the second one,
    who owns none, is its control. InputError if a file or a class cannot be read, or nothing was
    published; SettingsError if a quasi-identifier lasts, but what the stream publishes cannot be
    intersected: representatives, which do not say what a class holds, and domains that every window
    has anew.

    Notes
    -----
    A vehicle counts as published in a window if a class covers its record. `Finding.required` is
    true where the stream enforces the promise over windows. Streams of cohorts are attacked by who
    knows the company, too. Each class is attacked alone as well, see `own_vehicles`; what its
    owner of `n_owned` finds is required to be nothing where `k_extra` is as large.
    """
    classes = classes_of(published, stream)
    recorded = joined_windows(stream, read_messages(truth), limits=limits)
    numbered = zip(recorded.number, recorded.windows, strict=True)
    windows = [(number, joined) for number, joined in numbered if number in classes]
    if not windows:
        raise InputError(f"{published}: no window of {stream.settings.name} is also in {truth}")
    labels: dict[int, list[ReleasedLabels]] = {}
    if says_what_it_holds(stream):
        labels = published_labels(published, stream)
    elif stream.lasting:
        check_labels(stream)
    whole = {*recorded.without_ends().number}
    states = any_state(stream, read_messages(truth), limits=limits)
    state_of = dict(zip(states.number, states.windows, strict=True))
    seen = [
        WindowRelease(classes[w], labels.get(w, ()), joined, state_of[w], w in whole)
        for w, joined in windows
    ]
    findings = mounted(Subject.WINDOWS, WindowsCase(stream, seen, n_owned, seed))
    return WindowsAuditReport(
        stream=stream.settings.name,
        holds=not any(finding.fails for finding in findings),
        n_windows=len(windows),
        n_classes=sum(map(len, classes.values())),
        left_out=recorded.left_out,
        findings=findings,
    )
