"""Format of messages of positions: its codec, and what else is to be known of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from anonymizer.codecs._fields import Codec, Number, StatedId
from anonymizer.codecs.coarse import Encoder

if TYPE_CHECKING:
    from anonymizer.codecs.layouts import Layout

ReadingsAlone: TypeAlias = tuple[Number | None, StatedId, Mapping[str, float]]
"""Time, device and readings of a message that states no position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What a module of a codec says of its format."""

    decode: Codec
    """Reads a message."""
    encode: Encoder | None = None
    """Writes a coarse point; None: the format cannot be written."""
    is_json: bool = True
    """Whether messages are JSON, for which unpacked CBOR, lines and structs can stand."""
    named_by_topic: bool = False
    """Whether messages leave it to their topic to name the device."""
    oldest_s: float = 0.0
    """How old positions may be by the rules of the format; 0: it has none."""
    ids_live_s: float = 0.0
    """How long vehicles keep the ids in payloads, where a standard makes them temporary; 0: it does
    not."""
    layout: "Layout | None" = None
    """Its usual message, for a reader that is compiled; None: there is none."""
    readings_of: Callable[[bytes], ReadingsAlone | None] | None = None
    """Reads a message without a position; None: such a message is an object of numbers."""
