"""An Avro schema from the JSON Schema of a message: the same fields, in the same order.

A field that may be absent is null. Objects without named fields become maps.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

Schema: TypeAlias = Any
"""A schema of either kind, as JSON has it."""

_PRIMITIVES: Mapping[str, str] = {
    "number": "double",
    "integer": "long",
    "string": "string",
    "boolean": "boolean",
    "null": "null",
}
_NAMESPACE = "anonymizer"


def avro_schema(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the Avro schema of messages that a JSON Schema describes.

    Parameters
    ----------
    schema
        An object with named fields, by a reference or not. It may use what `contract_messages`
        does: `type`, `properties`, `items`, `prefixItems` of one type, `anyOf`, `const`, `$ref`.
    name
        Of the record.

    Raises
    ------
    ValueError
        If it says anything else.
    """
    found = _Translation(schema.get("$defs", {})).of(schema, name)
    if not isinstance(found, dict) or found["type"] != "record":
        raise ValueError("only messages with named fields have an Avro schema")
    return found | {"namespace": _NAMESPACE}


class _Translation:
    """Names must be unique in an Avro schema: those of records inside are numbered."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._numbers = count(1)

    def of(self, part: Mapping[str, Any], name: str) -> Schema:
        """Return the Avro schema of a part."""
        if "$ref" in part:
            return self.of(self._definitions[part["$ref"].rpartition("/")[2]], name)
        if "anyOf" in part:
            return self._union(part["anyOf"], name)
        kind = part.get("type", "string" if isinstance(part.get("const"), str) else None)
        if kind == "array":
            return self._array(part, name)
        if kind == "object" and "properties" in part:
            return self._record(part, name)
        if kind == "object" and isinstance(part.get("additionalProperties"), dict):
            return {"type": "map", "values": self.of(part["additionalProperties"], name)}
        if kind not in _PRIMITIVES:
            raise ValueError("this part of a JSON Schema has no Avro schema")
        return _PRIMITIVES[kind]

    def _array(self, part: Mapping[str, Any], name: str) -> Schema:
        items = part.get("items") or part["prefixItems"][0]
        if any(each != items for each in part.get("prefixItems", ())):
            raise ValueError("items of several types have no Avro schema")
        return {"type": "array", "items": self.of(items, name)}

    def _union(self, parts: Sequence[Mapping[str, Any]], name: str) -> Schema:
        found = [self.of(each, name) for each in parts]
        return sorted(found, key=lambda each: each != "null")

    def _record(self, part: Mapping[str, Any], name: str) -> dict[str, Any]:
        fields = []
        for field, of_field in part["properties"].items():
            schema = self.of(of_field, f"{name}{next(self._numbers)}")
            stated: dict[str, Any] = {"name": field, "type": schema}
            if field not in part.get("required", ()):
                stated |= {"type": ["null", schema], "default": None}
            if "description" in of_field:
                stated["doc"] = of_field["description"]
            fields.append(stated)
        about = {"doc": part["description"]} if "description" in part else {}
        return {"type": "record", "name": name, **about, "fields": fields}
