"""Proposal: the recommended configuration as a settings file for `anonymizer serve`."""

import json
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

import numpy as np
from pydantic import ValidationError

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.app.tuning.space import Configuration
from anonymizer.domain.criteria.registry import BY_D
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Attribute, Schema
from anonymizer.errors import SettingsError
from anonymizer.settings import StreamSettings
from anonymizer.settings.stream_attributes import RESERVED

_MOST_STEPS = 1000
"""Most steps in the domain of a number that is not whole."""


def proposal_for_stream(
    settings: StreamSettings,
    configuration: Configuration,
    promise: Promise,
    *,
    target: str | None = None,
) -> str:
    """Return the settings of a stream with the recommended promise.

    `target`: the target of the search; None: there was none.

    Raises `SettingsError` if a stream cannot have it.
    """
    fields = settings.model_dump(mode="json", exclude_unset=True)
    if not MODELS[settings.model].forms_classes_like(MODELS[configuration.model]):
        for key in ("method", "target", "labels"):
            fields.pop(key, None)  # other models do not have it
    if MODELS[configuration.model].learns and target is not None:
        fields["target"] = target
    for attribute in fields["attributes"]:
        if attribute.get("values") == "time_of_day":  # this declares its domain
            for key in ("lo", "hi"):
                attribute.pop(key, None)
    return _proposal(fields, configuration, promise, note=())


def proposal_for_table(
    schema: Schema,
    *,
    name: str,
    configuration: Configuration,
    promise: Promise,
    target: str | None = None,
    banded: Sequence[str] = (),
) -> str:
    """Return the settings of a stream whose records are like the rows of a table.

    Parameters
    ----------
    schema
        Schema of the published quasi-identifiers and the sensitive attributes.
    target
        Target column of the search; None: there was none.
    banded
        Numeric sensitive attributes whose codes are bands.

    Raises
    ------
    SettingsError
        If a stream cannot have such attributes.
    """
    qis = [_attribute(qi, "qi") for qi in schema.qis]
    sensitive = [_attribute(each, "sensitive") for each in schema.sensitive]
    tells = [[_name(schema.qis[j].name) for j in source] for source in schema.sources]
    tells[-1] += [_name(each.name) for each in schema.sensitive]
    fields: dict[str, Any] = {
        "name": "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:64] or "table",
        "sources": [
            {"name": f"source-{i}", "tells": names} for i, names in enumerate(tells, start=1)
        ],
        "attributes": [*qis, *sensitive],
    }
    notes = [
        "Domains that were not declared are those of the values in the table: check them.",
        *(f"{each}: sources must send the number of its band, from 0." for each in banded),
    ]
    if MODELS[configuration.model].learns:
        known = target in {each.name for each in schema.sensitive}
        fields["target"] = _name(target) if target is not None and known else ""
        if target is not None and not known:
            notes.append("The target is not an attribute here: the tree learns nothing.")
    return _proposal(fields, configuration, promise, note=notes)


def _proposal(
    fields: Mapping[str, Any],
    configuration: Configuration,
    promise: Promise,
    *,
    note: Sequence[str],
) -> str:
    notes = ["The settings that `anonymizer tune` recommends.", *note]
    left_out = set(map(_name, configuration.without))
    stream = {
        **fields,
        "model": configuration.model,
        "promise": {**fields.get("promise", {}), **_promise(promise)},
        "attributes": [each for each in fields["attributes"] if each["name"] not in left_out],
        "sources": [
            {**source, "tells": [name for name in source["tells"] if name not in left_out]}
            for source in fields["sources"]
            if set(source["tells"]) - left_out
        ],
    }
    try:
        StreamSettings.model_validate(stream)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{key}: {first['msg'].removeprefix('Value error, ')}") from None
    lines = [
        *(f"# {each}" for each in notes),
        "",
        "# No positions. Delete this line if there are inputs of positions.",
    ]
    return "\n".join([*lines, "inputs = []", "", *_tables(["streams"], [stream])]) + "\n"


def _promise(promise: Promise) -> dict[str, Any]:
    by_d = {each.name: getattr(promise, each.name) for each in BY_D if promise.d > 1}
    return {"k": promise.k, "d": promise.d, "l": promise.l, **by_d}


def _name(column: str) -> str:
    """Return the name of a column in a stream, whose messages have fields of their own."""
    return f"{column}_" if column in RESERVED else column


def _attribute(attribute: Attribute, role: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": _name(attribute.name), "role": role}
    if attribute.name in RESERVED:
        fields["path"] = [attribute.name]
    real = np.arange(attribute.size) != attribute.missing
    if attribute.written:  # a stream takes times for categories
        return {**fields, "values": list(attribute.written)}
    if not attribute.numeric:
        labels = [label for label, is_real in zip(attribute.label, real, strict=True) if is_real]
        if attribute.missing != NO_CODE:
            fields["missing"] = attribute.label[attribute.missing]
        return {**fields, "values": labels}
    position = attribute.position[real]
    lo, hi, step = float(position[0]), float(position[-1]), _step(attribute)
    first, last = floor(lo / step + 1e-9), ceil(hi / step - 1e-9)
    last = max(last, first + 1)
    return {**fields, "lo": _short(first * step), "hi": _short(last * step), "step": _short(step)}


def _step(attribute: Attribute) -> float:
    """Return 1 for whole numbers, otherwise a step that divides the domain finely enough."""
    real = attribute.position[np.arange(attribute.size) != attribute.missing]
    gaps = np.diff(real)
    if not len(gaps) or (real == np.round(real)).all():
        return 1.0
    finest = max(float(gaps.min()), float(real[-1] - real[0]) / _MOST_STEPS)
    return float(10.0 ** floor(log10(finest)))


def _short(number: float) -> float:
    return float(f"{number:.12g}")


def _tables(path: Sequence[str], tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of an array of tables: plain keys first, then nested tables."""
    lines = []
    for table in tables:
        lines.append(f"[[{'.'.join(path)}]]")
        inner = {key: value for key, value in table.items() if _is_array_of_tables(value)}
        lines += [f"{key} = {_value(value)}" for key, value in table.items() if key not in inner]
        lines.append("")
        for key, value in inner.items():
            lines += _tables([*path, key], value)
    return lines


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: object) -> str:
    """Return a value as TOML, with tables inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, str):  # the one character that JSON text allows and TOML does not
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
