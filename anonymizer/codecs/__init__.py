"""Payload codecs: bytes in, fixes or reasons for refusal out. One module for each format.

A codec never raises, whatever the bytes. It returns one entry for each position in the message,
and exactly one entry when it refuses the whole message. It is strict: a number must be a number,
not text or a boolean, unless the format itself writes it so. It ignores fields that it does not
need.

Most formats have a writer too, of coarse points: see `codecs.coarse`.

Sensor values are returned as readings, under the names that each codec documents. A bad reading
is left out; it does not invalidate the position.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from anonymizer.codecs._fields import Codec
from anonymizer.codecs.coarse import CoarsePoint, Encoder

__all__ = ["CODECS", "ENCODERS", "NAMED_BY_TOPIC", "CoarsePoint", "Codec", "Encoder"]

_Kind = TypeVar("_Kind")
_WRITTEN = (
    "native", "msgpack", "owntracks", "traccar", "home_assistant", "gtfs_rt_json", "gtfs_rt",
    "j2735", "etsi_cam", "meshtastic", "ngsi_ld", "senml",
)  # fmt: skip


class _Functions(Mapping[str, _Kind]):
    """A function of each of the modules below; a module is imported when it is first used."""

    def __init__(self, name: str, modules: tuple[str, ...]) -> None:
        self._name = name
        self._modules = modules

    def __getitem__(self, module: str) -> _Kind:
        if module not in self._modules:
            raise KeyError(module)
        function: _Kind = getattr(import_module(f"anonymizer.codecs.{module}"), self._name)
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


# What else may be said of a format: `NAMED_BY_TOPIC` below, how late it may be and whether its ids
# last (`settings/inputs.py`), how it looks in arrays (`layouts.py`), what it is without a place
# (`placeless.py`).
CODECS = _Functions[Codec]("decode", (*_WRITTEN, "hfp", "ttn"))
ENCODERS = _Functions[Encoder]("encode", _WRITTEN)
"""Writers of coarse points, by the names of the codecs; the other formats cannot be written."""
NAMED_BY_TOPIC = frozenset({"owntracks", "home_assistant"})
"""Formats whose messages leave it to their topic to name the device."""
