"""Published windows of a stream, and what was received: what attacks on records are mounted on."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import RecordedMessage, read_messages
from anonymizer.domain.discreet import discreet
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.window_models import WINDOW_MODELS


@discreet
class PublishedClass(msgspec.Struct):
    """What an audit reads of a published class."""

    window: tuple[float, float]
    qis: Mapping[str, Any]
    of: int = 0
    k: int = 0
    count: int = 0
    sensitive: Mapping[str, Sequence[str | float | None]] = {}
    measures: Mapping[str, Mapping[str, float] | None] = {}


@discreet
class WindowRelease(NamedTuple):
    """The classes of a window, what their labels allow (empty if they do not say), and records.

    `states`: the records as they were after any part, see `any_state`; `whole`: whether all that
    was received and published of the window is there.
    """

    classes: Sequence[PublishedClass]
    labels: Sequence[ReleasedLabels]
    joined: Joined
    states: Joined
    whole: bool


@discreet
class WindowsCase(NamedTuple):
    """The windows of a stream.

    `n_owned`: vehicles of the adversary's own, drawn by `seed`.
    """

    stream: Stream
    windows: Sequence[WindowRelease]
    n_owned: int
    seed: int

    @property
    def classes(self) -> list[PublishedClass]:
        """The classes of all windows."""
        return [each for window in self.windows for each in window.classes]


def says_what_it_holds(stream: Stream) -> bool:
    """Return whether labels say what a class holds, and mean the same in every window."""
    return not stream.settings.by_representatives and not stream.open_columns


def check_labels(stream: Stream) -> None:
    """Check that what a stream publishes can be attacked.

    Raises `SettingsError` if it cannot: representatives, and domains that every window has anew.
    """
    settings = stream.settings
    where = f"streams: {settings.name}: "
    if settings.by_representatives:
        raise SettingsError(f"{where}the labels of {settings.model} do not say what a class holds")
    if stream.open_columns:
        raise SettingsError(f'{where}values = "any" has other codes in every window')


def published_labels(published: Path, stream: Stream) -> dict[int, list[ReleasedLabels]]:
    """Return what the labels of the classes allow of each quasi-identifier, by window.

    Raises `InputError` if the file or a class cannot be read.
    """
    each = WINDOW_MODELS[stream.settings.model](stream).readers()
    reader_of = {qi.name: reader for qi, reader in zip(stream.schema.qis, each, strict=True)}
    return {
        window: _labels(classes, reader_of, stream.schema)
        for window, classes in classes_of(published, stream).items()
    }


def classes_of(published: Path, stream: Stream) -> dict[int, list[PublishedClass]]:
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
