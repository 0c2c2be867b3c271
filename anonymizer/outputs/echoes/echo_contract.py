"""Echoes in the contract."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from anonymizer.codecs import CoarsePoint
from anonymizer.outputs.message_kind import MessageKind, Schema, object_of
from anonymizer.settings import PSEUDONYM, InputSettings


def echo_kind(input_: InputSettings) -> MessageKind:
    """Return the message of an echo, described by an example in the format of the input."""
    topic = (input_.echo or "").replace(PSEUDONYM, _ECHOED.pseudonym)
    written = input_.make_encoder()(_ECHOED._replace(topic=topic))
    kind = input_.codec
    if input_.payload is not None:  # each input declares another format
        kind += f"_{blake2b(input_.model_dump_json().encode(), digest_size=4).hexdigest()}"
    name, summary = f"Echo_{kind}", f"A pseudonym in its region, in the format {input_.codec}."
    media = _MEDIA.get(input_.codec)
    if media is not None:
        return MessageKind(name, summary, None, content_type=media)
    example = msgspec.json.decode(written)
    return MessageKind(name, summary, _schema_like(example), example)


_ECHOED = CoarsePoint(60.1699, 24.9384, 412, 1800000000.3, "3nG0cQ9kPqAz", "")
_MEDIA = {"gtfs_rt": "application/x-protobuf", "msgpack": "application/msgpack"}
"""Media types of what is not JSON."""


def _schema_like(value: Any) -> Schema:  # noqa: ANN401  any JSON
    """Return the schema of values that have the fields of one, and their types."""
    if isinstance(value, dict):
        return object_of({name: _schema_like(each) for name, each in value.items()}, *value)
    if isinstance(value, list):
        places = [_schema_like(each) for each in value]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(value)}
    return {"type": _TYPE_OF[type(value)]}


_TYPE_OF: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}
