"""Encoding of classes as messages. Nothing in a message is in the order of arrival."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalized_values import whole
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.records import Attribute, Records
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import mean_of


@discreet
class ClassMessage(msgspec.Struct, rename={"class_": "class"}):
    """One equivalence class.

    `stream`, `window` and `class` identify it; `message` is a rising number within the stream.
    A message that is sent twice is the same to the byte. `measures` are present if any are
    declared: how many records have a value, their sum and mean; null where fewer than k vehicles
    have one.
    """

    stream: str
    window: tuple[float, float]
    class_: int
    of: int
    message: int
    k: int
    count: int
    qis: Mapping[str, Any]
    sensitive: Mapping[str, Sequence[str | float | None]]
    measures: Mapping[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Numbers(NamedTuple):
    """Numbers of classes in their window."""

    of_class: Sequence[int]
    n_classes: int
    first_message: int


def contents_of(
    stream: Stream,
    records: Records,
    classes: Classes,
    values: Sequence[Mapping[str, Any]],
    *,
    sensitive: Int32Array,
    totals: Sequence[Mapping[str, Total | None]],
    extra_fields: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Return what the message of each class says of it, in their order.

    `values`: generalized, of each class, by the names of the QIs; `sensitive`: codes, shape (n,
    attributes).
    """
    contents: list[Mapping[str, Any]] = []
    for c in range(len(classes)):
        member = classes[c]
        content: dict[str, Any] = {
            "k": len(np.unique(records.person[member])),
            "count": len(member),
            "qis": values[c],
            "sensitive": {
                attribute.name: _values(attribute, np.sort(sensitive[member, j]).tolist())
                for j, attribute in enumerate(stream.sensitive)
            },
        }
        if measured := {name: _measured(total) for name, total in totals[c].items()}:
            content["measures"] = measured
        contents.append({**content, **extra_fields[c]})
    return contents


def encode(
    stream: Stream,
    contents: Sequence[Mapping[str, Any]],
    *,
    span: tuple[float, float],
    numbers: Numbers,
) -> list[Outgoing]:
    """Return a message for each class, in their order."""
    encoder = msgspec.json.Encoder()
    window = (whole(span[0]), whole(span[1]))
    messages = []
    for number, content in zip(numbers.of_class, contents, strict=True):
        head = {
            "stream": stream.settings.name,
            "window": window,
            "class": number,
            "of": numbers.n_classes,
            "message": numbers.first_message + number,
        }
        messages.append(Outgoing(stream.settings.output_topic, encoder.encode({**head, **content})))
    return messages


def _measured(total: Total | None) -> dict[str, float] | None:
    if total is None:
        return None
    return {"n": total.n, "sum": whole(total.sum), "mean": whole(mean_of(total) or 0.0)}


def _values(attribute: Attribute, codes: Sequence[int]) -> list[str | float | None]:
    """Return the values of codes, None for the missing marker."""
    return [None if code == attribute.missing else _value(attribute, code) for code in codes]


def _value(attribute: Attribute, code: int) -> str | float:
    if attribute.numeric:
        return whole(attribute.position[code].item())
    return attribute.label[code]
