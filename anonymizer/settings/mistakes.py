"""Mistakes in settings, each in one sentence that says what to write, never what was written."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from anonymizer.settings.base import Group, nearest, wording_of
from anonymizer.settings.json_schema import groups_in
from anonymizer.settings.model import Settings

_LIKENESS = 0.6
_NUMBER = "without quotes or a unit: the unit is in the name"
_SENTENCE_OF = {
    "bool_parsing": "must be true or false, without quotes",
    "bool_type": "must be true or false, without quotes",
    "dict_type": "must be a table: {{ key = value }}",
    "extra_forbidden": "there is no such setting",
    "finite_number": "must be a finite number",
    "float_parsing": f"must be a number, {_NUMBER}",
    "float_type": f"must be a number, {_NUMBER}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_parsing": f"must be a whole number, {_NUMBER}",
    "int_type": f"must be a whole number, {_NUMBER}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "missing": "must be stated",
    "path_type": "must be text in quotes",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be text in quotes",
    "too_long": "must have at most {max_length} values",
    "too_short": "must have at least {min_length} values",
    "tuple_type": "must be a list, in brackets: [...]",
}
"""Sentences for the kinds of mistakes that pydantic finds, with its figures."""


def sentence(error: ValidationError) -> tuple[str, str]:
    """Return the key of the first mistake, and a sentence about it."""
    found = error.errors(include_url=False)
    first = found[0]
    place = _known(first["loc"])
    if first["type"] == "missing":
        # A misspelt key is also one that is missing.
        beside = [each for each in found if each["loc"][:-1] == first["loc"][:-1]]
        first = next((each for each in beside if each["type"] == "extra_forbidden"), first)
        place = _known(first["loc"])
    more = len(found) - 1
    return key_of(place), _said(first, place) + (f" (and {more} more)" if more else "")


def variable_for(name: str, text: str) -> str:
    """Return the variable that one with fewer underscores stands for; empty: it is none of ours.

    For a service `anonymizer-http` Kubernetes sets ANONYMIZER_HTTP_PORT to an address.
    """
    if name.endswith("_PORT") and "://" in text:
        return ""
    meant = (f"ANONYMIZER__{'__'.join(path).upper()}" for path in _keys(Settings))
    return next((each for each in meant if each.replace("__", "_") == name.replace("__", "_")), "")


def key_of(place: Sequence[int | str]) -> str:
    """Return the name of a place in the settings; what is in a list is counted from one."""
    name = ""
    for part in place:
        name += f" (no. {part + 1})" if isinstance(part, int) else f".{part}" if name else part
    return name


def _said(error: Mapping[str, Any], place: Sequence[int | str]) -> str:
    kind, figures = error["type"], error.get("ctx", {})
    header = ".".join(part for part in place if isinstance(part, str))
    match kind:
        case "tuple_type" if _group_at(header.split(".")) is not None:
            said = f"write [[{header}]], with two brackets, above each: there may be several"
        case "model_type" | "model_attributes_type" if isinstance(error["input"], list | tuple):
            said = f"write [{header}], in single brackets: there is only one"
        case "model_type" | "model_attributes_type":
            said = f"is a table: write [{header}] on a line, and its keys below"
        case "literal_error":
            expected = figures["expected"].replace("'", '"')
            choices = expected.replace('"', "").replace(" or ", ", ").split(", ")
            said = f"must be {expected}{nearest(error['input'], choices)}"
        case "string_pattern_mismatch":
            said = wording_of(figures["pattern"])
        case "extra_forbidden":
            said = _SENTENCE_OF[kind] + _meant(place)
        case _ if kind in _SENTENCE_OF:
            said = _SENTENCE_OF[kind].format_map(figures)
        case _:
            said = str(error["msg"]).removeprefix("Value error, ")
    return said


def _known(place: Sequence[int | str]) -> list[int | str]:
    """Return a place without what pydantic appends for the kinds of a value that has several."""
    group: type[Group] | None = Settings
    known: list[int | str] = []
    for part in place:
        known.append(part)
        if isinstance(part, int):
            continue
        if group is None or part not in group.model_fields:
            break
        inner = groups_in(group.model_fields[part].annotation)
        if not inner:
            at = len(known)
            known += [each for each in place[at : at + 1] if isinstance(each, int)]
            break
        group = inner[0]
    return known


def _meant(place: Sequence[int | str]) -> str:
    """Return a hint for a key that does not exist, `; did you mean ...?`, or an empty text.

    A key of its own table is proposed if one is similar. Otherwise the only key of the same name
    in the tables below or anywhere, a table of this name before a key, or the only similar one.
    """
    *tables, key = [part for part in place if isinstance(part, str)] or [""]
    own = _group_at(tables)
    path = ".".join([*tables, key])
    if path in REMOVED:
        return f"; {REMOVED[path]}"
    usual = _USUAL.get(path) or _USUAL.get(key)
    if usual:
        return f"; did you mean {usual}?"
    near = _near(key, own.model_fields if own else ())
    if near:
        return f"; did you mean {_shown([*tables, near])}?"
    below = [path for path in (_keys(own) if own else ()) if path[-1] == key]
    if len(below) == 1:
        return f"; did you mean {_shown([*tables, *below[0]])}?"
    others = [path for path in _keys(Settings) if path[-1] == key]
    others = [path for path in others if len(path) == 1] or others
    if not others:
        names = {path[-1] for path in _keys(Settings)}
        close = get_close_matches(key, sorted(names), n=1, cutoff=0.8)
        others = [path for path in _keys(Settings) if path[-1] in close]
    return f"; did you mean {_shown(others[0])}?" if len(others) == 1 else ""


_USUAL = {
    "broker.host": "broker.url",
    "broker.port": "broker.url",
    "k": "adka.k_values",
    "k_min": "adka.k_floor",
    "min_k": "adka.k_floor",
    "streams.k": "streams.promise.k",
    "streams.d": "streams.promise.d",
    "streams.l": "streams.promise.l",
}
"""What is meant by names that other programs use."""

REMOVED = {
    "broker.receive_maximum": "it is 2000: delete it",
    "broker.reconnect_max_s": "it is keepalive_s: write that, or delete this",
    "broker.reconnect_min_s": "it is a sixtieth of keepalive_s: delete it",
    "http.enabled": 'write host = "" for no HTTP, or delete it',
    "http.raw_view": 'write map = "raw"',
    "http.requests_per_minute": "it is 300: delete it",
    "http.tiles": "the map draws the roads: delete it",
    "http.tiles_attribution": "the map draws the roads: delete it",
    "http.toll_stream": "the first stream that suits answers: put it first, and delete this",
    "limits.max_device_id_chars": "it is 256: delete it",
    "limits.max_positions": "it is 10000: delete it",
    "output.form": 'write forms = ["device"] for "device", or delete it',
    "output.rejected_every_s": "it is a hundred ticks, at most 10 s: delete it",
    "output.rejected_topic": "it is beside broker.status_topic: delete it",
    "presence.max_ahead_s": "it is 5: delete it",
    "pseudonym": "write epoch_s in [session], or delete it: it is 300 outside the mode session",
    "readings.per_pseudonym": 'write "each" among the statistics',
    "session.cells": "it is 8, fewer where devices are few: delete it",
    "session.settle_s": "it is beat_s, at most 5: delete it",
    "store.max_unpublished": "it is 1000000: delete it",
    "streams.attributes.published_as": "write it as name, and where the value is as path",
    "streams.attributes.scale": "values are compared by their order, or as label says: delete it",
    "streams.attributes.time_of_day": 'write values = "time_of_day"',
    "streams.attributes.weight": "it is 1: delete it",
    "streams.count_as": "it is truck_count: delete it",
    "streams.sources.qos": "it is 1: delete it",
    "streams.attributes.periods": "the parts of the day are four of six hours: delete it",
    "streams.attributes.prefix_chars": "the whole common prefix is told: delete it",
    "streams.forget_after": "it is 1000: delete it",
    "streams.max_ahead_s": "it is 5: delete it",
    "streams.max_open_windows": "it follows from window_s and lateness_s: delete it",
    "streams.offset_s": "windows begin with the local day, see utc_offset_h: delete it",
    "tick.drain_s": "it is a hundred ticks, at most 10 s: delete it",
    "tick.queue_limit": "it is a tenth of presence.max_devices: delete it",
    "trips.end_m": "write ends_m, for starts and ends; delay_s = 0: starts alone",
    "trips.end_s": "write ends_s, for starts and ends; delay_s = 0: starts alone",
    "trips.start_m": "write ends_m, for starts and ends; delay_s = 0: starts alone",
    "trips.start_s": "write ends_s, for starts and ends; delay_s = 0: starts alone",
    "trips.dwell_m": "it is 50: delete it",
    "trips.max_held": "ten reports a second may wait: delete it",
    "watch.sample": "write evidence_s, for attacks on all traffic of so long, or delete it",
}
"""Sentences about settings of earlier versions: what has replaced them."""


def _near(key: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """Return the similar name, or the one that abbreviates the key; empty: there is none."""
    close = get_close_matches(key, names, n=1, cutoff=_LIKENESS)
    short = [name for name in names if len(name) > 2 and key.startswith(name)]
    return (close or short or [""])[0]


def _shown(path: Sequence[str]) -> str:
    """Return a key, or a table as its head is written."""
    group = _group_at(path[:-1])
    field = None if group is None else group.model_fields.get(path[-1])
    if len(path) > 1 or field is None:
        return ".".join(path)
    return f"[[{path[0]}]]" if isinstance(field.default, tuple) else f"[{path[0]}]"


def _group_at(tables: Sequence[str]) -> type[Group] | None:
    """Return the table that a path leads to; None if there is none."""
    group: type[Group] = Settings
    for name in tables:
        field = group.model_fields.get(name)
        inner = [] if field is None else groups_in(field.annotation)
        if not inner:
            return None
        group = inner[0]
    return group


def _keys(group: type[Group], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key in a table and the tables in it."""
    for name, field in group.model_fields.items():
        yield (*path, name)
        for inner in groups_in(field.annotation):
            yield from _keys(inner, (*path, name))
