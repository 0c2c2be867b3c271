"""From classes to messages, in which nothing is in the order of arrival."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalized_values import whole
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import mean_of


class ClassMessage(msgspec.Struct, rename={"class_": "class"}):
    """One equivalence class.

    `stream`, `window` and `class` name it; `message` is a number of the stream's own that rises.
    A message that comes twice is the same to the byte. `measures` are there where any are
    declared: how many records have a value, the sum and the mean of these; null where fewer than
    k vehicles have one.
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

    def __repr__(self) -> str:
        """Say nothing of what is in it."""
        return "ClassMessage(...)"


def encode(
    stream: Stream,
    records: Records,
    classes: Classes,
    told: Sequence[Mapping[str, Any]],
    *,
    sensitive: Int32Array,
    totals: Sequence[Mapping[str, Total | None]],
    beside: Sequence[Mapping[str, Any]],
    span: tuple[float, float],
    first_message: int,
) -> list[Outgoing]:
    """Return a message for each class, in their order.

    Parameters
    ----------
    told
        Of the quasi-identifiers of each class.
    sensitive
        Codes of the sensitive attributes, shape (n, attributes).
    totals
        Of the measures of each class.
    beside
        What else each message says.
    span
        Beginning and end of the window.
    first_message
        Number of the first of them.
    """
    encoder = msgspec.json.Encoder()
    window = (whole(span[0]), whole(span[1]))
    messages = []
    for c in range(len(classes)):
        member = classes[c]
        message = ClassMessage(
            stream=stream.settings.name,
            window=window,
            class_=c,
            of=len(classes),
            message=first_message + c,
            k=len(np.unique(records.person[member])),
            count=len(member),
            qis=told[c],
            sensitive={
                attribute.name: _values(attribute, np.sort(sensitive[member, j]).tolist())
                for j, attribute in enumerate(stream.sensitive)
            },
            measures={name: _measured(total) for name, total in totals[c].items()} or msgspec.UNSET,
        )
        said = msgspec.to_builtins(message) | beside[c] if beside[c] else message
        messages.append(Outgoing(stream.settings.output_topic, encoder.encode(said)))
    return messages


def _measured(total: Total | None) -> dict[str, float] | None:
    if total is None:
        return None
    return {"n": total.n, "sum": whole(total.sum), "mean": whole(mean_of(total) or 0.0)}


def _values(attribute: Attribute, codes: Sequence[int]) -> list[str | float | None]:
    """Return the values behind codes, null for the missing marker."""
    return [None if code == attribute.missing else _value(attribute, code) for code in codes]


def _value(attribute: Attribute, code: int) -> str | float:
    if attribute.numeric:
        return whole(attribute.position[code].item())
    return attribute.label[code]
