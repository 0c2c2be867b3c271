"""Payload codecs: bytes in, fixes or reasons for refusal out. One module for each format.

A codec never raises, whatever the bytes. It returns one entry for each position in the message,
and exactly one entry when it refuses the whole message. It is strict: a number must be a number,
not text or a boolean, unless the format itself writes it so. It ignores fields that it does not
need.

Most formats have a writer too, of coarse points: see `codecs.coarse`. Whatever else settings and
readers must know of a format is in its `FORMAT`.

Sensor values are returned as readings, under the names that each codec documents. A bad reading
is left out; it does not invalidate the position.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from anonymizer.codecs._fields import Codec
from anonymizer.codecs.coarse import CoarsePoint, Encoder
from anonymizer.codecs.format import Format

__all__ = ["CODECS", "FORMATS", "CoarsePoint", "Codec", "Encoder", "Format", "encoders"]

MODULES = [
    f"{__name__}.{name}"
    for name in (
        "native", "msgpack", "owntracks", "traccar", "home_assistant", "gtfs_rt_json", "gtfs_rt",
        "j2735", "etsi_cam", "meshtastic", "ngsi_ld", "senml", "hfp", "ttn",
    )
]  # fmt: skip
"""The modules with a `FORMAT`; settings name it by the last part of the module's name."""

_Part = TypeVar("_Part")


class _PartOfEach(Mapping[str, _Part]):
    """A part of the format of each module; a module is imported when its part is asked for."""

    def __init__(self, part_of: Callable[[Format], _Part]) -> None:
        self._part_of = part_of

    def __getitem__(self, codec: str) -> _Part:
        for module in MODULES:
            if _name_of(module) == codec:
                return self._part_of(import_module(module).FORMAT)
        raise KeyError(codec)

    def __iter__(self) -> Iterator[str]:
        return map(_name_of, MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def _name_of(module: str) -> str:
    return module.rpartition(".")[2]


FORMATS = _PartOfEach[Format](lambda each: each)
CODECS = _PartOfEach[Codec](lambda each: each.decode)


def encoders() -> dict[str, Encoder]:
    """Return the writers of coarse points by the names of codecs; imports all of them."""
    return {name: each.encode for name, each in FORMATS.items() if each.encode is not None}
