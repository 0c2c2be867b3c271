"""The streams that settings declare, with their hierarchies; loads nothing that closes windows."""

from collections.abc import Sequence

from anonymizer.algorithms.records.attributes import Branch
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.hierarchies import read_hierarchies, read_hierarchy
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.settings import AttributeSettings, Settings, StreamSettings


def declared_streams(settings: Settings) -> list[Stream]:
    """Return the declared streams of the settings, with their hierarchies.

    Raises `SettingsError` if a hierarchy cannot be read, or a stream cannot be declared.
    """
    return [declare(stream, branches=_branches(stream)) for stream in settings.streams]


def _branches(stream: StreamSettings) -> dict[str, Sequence[Branch]]:
    return {a.name: _read(stream, a) for a in stream.attributes if a.hierarchy is not None}


def _read(stream: StreamSettings, attribute: AttributeSettings) -> Sequence[Branch]:
    path = attribute.hierarchy
    assert path is not None  # noqa: S101  the caller asked
    where = f"streams: {stream.name}: attributes: {attribute.name}: hierarchy"
    try:
        if path.suffix != ".json":
            return read_hierarchy(path)
        trees = read_hierarchies(path)
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None
    if attribute.name not in trees:
        raise SettingsError(f"{where}: {path}: has none of this name")
    return trees[attribute.name]
