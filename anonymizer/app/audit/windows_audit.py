"""Audit of a stream of records: what its published windows reveal together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.attacks.known_company import KnownCompany
from anonymizer.algorithms.attacks.released_classes import ReleasedLabels
from anonymizer.algorithms.attacks.window_intersection import Read, WindowIntersection
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.app.audit.findings import Finding, WindowsAuditReport
from anonymizer.app.tuning.recording import RecordedMessage, joined_windows, read_messages
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import readers
from anonymizer.pipeline.records.window_model import label_cost_of
from anonymizer.settings import LimitSettings


class _Class(msgspec.Struct):
    """What the audit reads of a published class."""

    window: tuple[float, float]
    qis: Mapping[str, Any]

    def __repr__(self) -> str:
        """Return no content."""
        return "_Class(...)"


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
    published; SettingsError if no quasi-identifier lasts, or what the stream publishes cannot be
    attacked: representatives, which do not say what a class holds, and domains that every window
    has anew.

    Notes
    -----
    A vehicle counts as published in a window if a class covers its record. `Finding.required` is
    true where the stream enforces the promise over windows. Streams of cohorts are attacked by who
    knows the company, too.
    """
    _check(stream)
    labels_of = published_labels(published, stream)
    recorded = joined_windows(stream, read_messages(truth), limits=limits)
    attack = WindowIntersection(stream.schema, stream.lasting, d=stream.settings.promise.d)
    every = sorted({vehicle for joined in recorded.windows for vehicle in joined.vehicle})
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
    n_windows = 0
    for number, joined in zip(recorded.number, recorded.windows, strict=True):
        if labels := labels_of.get(number):
            n_windows += 1
            attack.window(labels, joined.vehicle, joined.cells[:, :n_qis])
            if in_company:
                for company in (by_company, by_owner)[: 1 + bool(n_owned)]:
                    company.window(labels, joined.vehicle, joined.cells[:, :n_qis])
    if not n_windows:
        raise InputError(f"{published}: no window of {stream.settings.name} is also in {truth}")
    findings = tuple(_finding("windows together", read, stream) for read in attack.read())
    if in_company:
        findings += tuple(_finding("known company", read, stream) for read in by_company.read())
    if in_company and n_owned:
        margin = stream.settings.promise.k_extra >= n_owned
        findings += tuple(
            _finding(f"known company, {n_owned} its own", read, stream, required=margin)
            for read in by_owner.read()
        )
    return WindowsAuditReport(
        stream=stream.settings.name,
        holds=not any(finding.fails for finding in findings),
        n_windows=n_windows,
        n_classes=sum(len(labels[0].first_of) - 1 for labels in labels_of.values()),
        left_out=recorded.left_out,
        findings=findings,
    )


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


def _check(stream: Stream) -> None:
    if not any(qi.name in stream.lasting for qi in stream.schema.qis):
        where = f"streams: {stream.settings.name}: "
        raise SettingsError(f"{where}no quasi-identifier lasts, so windows reveal nothing together")
    check_labels(stream)


def _classes(published: Path, stream: Stream) -> dict[int, list[_Class]]:
    """Return the classes of each window, each once."""
    decode = msgspec.json.Decoder(_Class).decode
    found: dict[int, dict[bytes, _Class]] = {}
    for message in _of_topic(read_messages(published), stream.settings.output_topic):
        try:
            each = decode(message.payload)
        except msgspec.DecodeError:
            raise InputError(f"{published}: has a message that is no class") from None
        window = stream.rule.window_of(sum(each.window) / 2)
        found.setdefault(window, {})[message.payload] = each  # a class may be sent again
    return {window: list(classes.values()) for window, classes in found.items()}


def _of_topic(messages: Iterable[RecordedMessage], topic: str) -> Iterable[RecordedMessage]:
    return (message for message in messages if message.topic == topic)


def _labels(
    classes: list[_Class], readers: Mapping[str, ValueReader], schema: Schema
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
