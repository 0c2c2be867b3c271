"""Audit of a stream of records: what its published windows reveal together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import RecordedMessage, joined_windows, read_messages
from anonymizer.audit.classes_attack import (
    PublishedClass,
    list_findings,
    member_findings,
    weight_findings,
)
from anonymizer.audit.findings import Finding, WindowsAuditReport
from anonymizer.audit.mathematics.known_company import KnownCompany
from anonymizer.audit.mathematics.window_intersection import Read, WindowIntersection
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.kaca_model import readers
from anonymizer.pipeline.records.window_model import label_cost_of
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
    knows the company, too. Each class is attacked alone as well, see `classes_attack`; what its
    owner of `n_owned` finds is required to be nothing where `k_extra` is as large.
    """
    classes_of = _classes(published, stream)
    recorded = joined_windows(stream, read_messages(truth), limits=limits)
    numbered = zip(recorded.number, recorded.windows, strict=True)
    windows = [(number, joined) for number, joined in numbered if number in classes_of]
    if not windows:
        raise InputError(f"{published}: no window of {stream.settings.name} is also in {truth}")
    every = [each for number, _ in windows for each in classes_of[number]]
    findings = [*weight_findings(every)]
    if n_owned:
        findings += list_findings(every, stream, n_owned)
    if _says_what_it_holds(stream):
        labels_of = published_labels(published, stream)
        seen = [(classes_of[number], labels_of[number], joined) for number, joined in windows]
        if n_owned:
            findings += member_findings(seen, stream, n_owned)
        if any(qi.name in stream.lasting for qi in stream.schema.qis):
            windows_seen = [(labels, joined) for _, labels, joined in seen]
            findings = [*_together(windows_seen, stream, n_owned, seed), *findings]
    elif stream.lasting:
        check_labels(stream)
    return WindowsAuditReport(
        stream=stream.settings.name,
        holds=not any(finding.fails for finding in findings),
        n_windows=len(windows),
        n_classes=sum(map(len, classes_of.values())),
        left_out=recorded.left_out,
        findings=tuple(findings),
    )


def _together(
    windows: Sequence[tuple[Sequence[ReleasedLabels], Joined]],
    stream: Stream,
    n_owned: int,
    seed: int,
) -> Iterator[Finding]:
    """Intersect the windows of each vehicle, as who knows little, the company, or owns some."""
    attack = WindowIntersection(stream.schema, stream.lasting, d=stream.settings.promise.d)
    every = sorted({vehicle for _, joined in windows for vehicle in joined.vehicle})
    chosen = np.random.default_rng(seed).permutation(len(every))[:n_owned].tolist()
    by_company, by_owner = (
        KnownCompany(
            stream.schema,
            stream.lasting,
            d=stream.settings.promise.d,
            by_hierarchy=label_cost_of(stream) is Cost.TAXONOMY,
            owned=owned,
        )
        for owned in ((), [every[i] for i in chosen])
    )
    in_company = stream.in_cohorts and stream.settings.enforces
    n_qis = len(stream.schema.qis)
    for labels, joined in windows:
        attack.window(labels, joined.vehicle, joined.cells[:, :n_qis])
        if in_company:
            for company in (by_company, by_owner)[: 1 + bool(n_owned)]:
                company.window(labels, joined.vehicle, joined.cells[:, :n_qis])
    yield from (_finding("windows together", read, stream) for read in attack.read())
    if in_company:
        yield from (_finding("known company", read, stream) for read in by_company.read())
    if in_company and n_owned:
        margin = stream.settings.promise.k_extra >= n_owned
        for read in by_owner.read():
            yield _finding(f"known company, {n_owned} its own", read, stream, required=margin)


def _says_what_it_holds(stream: Stream) -> bool:
    settings = stream.settings
    of_one = settings.model == "cells" and settings.labels == "representative"
    return not of_one and not stream.open_columns


def check_labels(stream: Stream) -> None:
    """Check that what a stream publishes can be attacked.

    Raises
    ------
    SettingsError
        If it cannot: representatives, and domains that every window has anew.
    """
    settings = stream.settings
    where = f"streams: {settings.name}: "
    if settings.model == "cells" and settings.labels == "representative":
        raise SettingsError(f"{where}the labels of cells do not say what a class holds")
    if stream.open_columns:
        raise SettingsError(f'{where}values = "any" has other codes in every window')


def published_labels(published: Path, stream: Stream) -> dict[int, list[ReleasedLabels]]:
    """Return what the labels of the classes allow of each quasi-identifier, by window.

    Raises
    ------
    InputError
        If the file or a class cannot be read.
    """
    qis, of_kaca = stream.schema.qis, stream.settings.model == "kaca"
    each = readers(stream) if of_kaca else [ValueReader(qi) for qi in qis]
    reader_of = {qi.name: reader for qi, reader in zip(qis, each, strict=True)}
    return {
        window: _labels(classes, reader_of, stream.schema)
        for window, classes in _classes(published, stream).items()
    }


def _classes(published: Path, stream: Stream) -> dict[int, list[PublishedClass]]:
    """Return the classes of each window, each once."""
    decode = msgspec.json.Decoder(PublishedClass).decode
    found: dict[int, dict[bytes, PublishedClass]] = {}
    for message in _of_topic(read_messages(published), stream.settings.output_topic):
        try:
            each = decode(message.payload)
        except (msgspec.DecodeError, RecursionError):
            raise InputError(f"{published}: has a message that is no class") from None
        window = stream.rule.window_of(sum(each.window) / 2)
        found.setdefault(window, {})[message.payload] = each  # a class may be sent again
    return {window: list(classes.values()) for window, classes in found.items()}


def _of_topic(messages: Iterable[RecordedMessage], topic: str) -> Iterable[RecordedMessage]:
    return (message for message in messages if message.topic == topic)


def _labels(
    classes: list[PublishedClass], readers: Mapping[str, ValueReader], schema: Schema
) -> list[ReleasedLabels]:
    try:
        return [
            ReleasedLabels.of([readers[qi.name].runs(each.qis[qi.name]) for each in classes])
            for qi in schema.qis
        ]
    except (KeyError, ValueError):
        raise InputError("a published class does not fit the declared attributes") from None


def _finding(attack: str, read: Read, stream: Stream, *, required: bool = True) -> Finding:
    required &= stream.settings.enforces
    return Finding(
        attack=attack,
        attribute=read.attribute,
        figures={
            "n_vehicles": read.n_victims,
            "n_read": read.n_read,
            "n_below_d": read.n_short,
            "share_read": read.share,
        },
        bar=f"{stream.settings.promise.d} values left of each" if required else None,
        holds=read.n_short == 0 if required else None,
        required=required,
    )
