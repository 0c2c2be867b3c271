"""Paths into JSON: chosen values of an object, read by a decoder that is compiled once."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from anonymizer.codecs._fields import Stated, read, read_part, too_many
from anonymizer.domain.outcomes import Outcome

Scalar: TypeAlias = str | bool | int | float
Conditions: TypeAlias = Mapping["JsonPath", Sequence[Scalar]]
"""The values that a field may have for a message to be selected, by the path of the field."""

_WHOLE_MESSAGE = "$"
_OF_TEXTS = (Raw, Any, float | str, str)
"""Types of values that may be parts of a text."""
_MOST_PLACES = 1000
_NOWHERE = "nowhere"
"""Field of a slot without a path."""
_STRING = Decoder(str)
_MOST_DIGITS = 64
_LEAST_BYTES = 20
"""Of an object among many that are searched."""
_OBJECTS: Decoder[Any] = Decoder(list[Raw] | None)
_INDEX = re.compile(r"[0-9]{1,6}")
_SEARCH = re.compile(r"([^\[\]]+)\[([^\[\]=]+)=([^\[\]]+)\]")
_NO_KEY = re.compile(r"[\x00-\x1f\"\\]")
"""What a decoder cannot look for."""
_DOT = re.compile(r"\.(?![^\[\]]*\])")
"""A dot that is not in brackets."""


class ArraySearch(NamedTuple):
    """The first object of an array that has a value under a key; numbers by their digits.

    An object in place of the array counts as an array of one.
    """

    key: str
    value: str

    def __str__(self) -> str:
        """Return the search as text."""
        return f"[{self.key}={self.value}]"


Step: TypeAlias = str | int | ArraySearch


class JsonPath(NamedTuple):
    """The way to a value: keys of objects, and places in arrays, from 0 or by search.

    `of_message` tells paths from the whole message from those inside one of its positions.
    """

    parts: tuple[Step, ...]
    of_message: bool = False

    @classmethod
    def of(cls, stated: str | Sequence[str | int]) -> "JsonPath":
        """Return the path that settings state.

        `gps.latitude`, `coordinates.1` and `data[key=Location].value` are texts;
        `["gps.latitude"]` is a list, also written as text, for keys that have dots or brackets or
        are digits. `$` in front means the whole message.

        Raises `ValueError` if a part is empty, there is none, one can be no key, or a search is the
        last one.
        """
        if isinstance(stated, str) and stated.startswith("["):
            stated = _listed(stated)
        if isinstance(stated, str):
            parts: list[Step] = [step for part in _DOT.split(stated) for step in _steps(part)]
        else:
            parts = list(stated)
        of_message = bool(parts) and parts[0] == _WHOLE_MESSAGE
        parts = parts[of_message:]
        if not parts or any(part == "" or (type(part) is int and part < 0) for part in parts):
            raise ValueError("must be keys separated by dots, such as gps.latitude")
        if any(isinstance(part, str) and _NO_KEY.search(part) for part in parts):
            raise ValueError(
                "keys have no quotes and backslashes: a key with dots is a list, "
                """["gps.latitude"], where a text is needed '["gps.latitude"]'"""
            )
        if isinstance(stated, str) and any(
            str(part).startswith("-") and str(part)[1:].isdigit() for part in parts
        ):
            raise ValueError("places in an array are counted from its begin, 0; see positions")
        if isinstance(parts[-1], ArraySearch):
            raise ValueError("must name a key of what it searches for: data[key=a].value")  # noqa: TRY004  likewise
        return cls(tuple(parts), of_message)

    def __str__(self) -> str:
        """Return the path as text."""
        return ".".join(map(str, ("$",) * self.of_message + self.parts)).replace(".[", "[")


def _listed(text: str) -> Sequence[str | int]:
    """Return the keys of a list in a text, which names one with dots where only texts can be."""
    try:
        return msgspec.json.decode(text, type=list[str | int])
    except msgspec.DecodeError:
        raise ValueError("""is no list of keys such as '["gps.latitude"]'""") from None


def _steps(part: str) -> list[Step]:
    """Return what the text between two dots stands for."""
    found = _SEARCH.fullmatch(part)
    if found is not None:
        return [found[1], ArraySearch(found[2], found[3])]
    return [int(part) if _INDEX.fullmatch(part) else part]


class PathReader:
    """Reads the values at some paths of a JSON value.

    Parameters
    ----------
    wanted
        Each path, and the type of its value for msgspec. Except for `Raw`, a value may be null.
        None in place of a path: the value is always missing.
    beside
        The type of what may stand at a path that no value is taken from, and `dec_hook` judges.
    dec_hook
        Of msgspec, for types that are not its own.

    Raises
    ------
    ValueError
        If a path leads through the value of another one, two paths to one value differ in its
        type, a part of the message would have to be an object and an array at once, or a place in
        an array is not below 1,000.
    """

    def __init__(
        self,
        wanted: Sequence[tuple[JsonPath | None, Any]],
        *,
        beside: Mapping[JsonPath, Any] | None = None,
        dec_hook: Callable[[type, Any], Any] | None = None,
    ) -> None:
        tree: dict[Step, Any] = {}
        for slot, (path, kind) in enumerate(wanted):
            if path is not None:
                _plant(tree, path, slot, kind)
        for path, kind in (beside or {}).items():
            _plant_beside(tree, path, kind)
        self._blank: list[Any] = [UNSET] * len(wanted)
        self._root = _node(tree, dec_hook)
        self._flat = _flat_getter(self._root, len(wanted))
        self._decoder: Decoder[Any] = Decoder(self._root.kind, dec_hook=dec_hook)
        self._decoder_of_all: Decoder[Any] = Decoder(list[self._root.kind], dec_hook=dec_hook)  # type: ignore[name-defined]

    def read(self, payload: bytes) -> list[Any] | Outcome:
        """Return the values of a whole payload, or why there are none. Never raises.

        A value is UNSET if it is missing, and None if it or something above it is null.
        """
        return self._values(read(self._decoder, payload), self._blank)

    def read_part(self, part: Raw, *, known: list[Any] | None = None) -> list[Any] | Outcome:
        """Do the same for a part of a payload that has been read.

        `known` are the values in place of missing ones, which are not changed.
        """
        return self._values(read_part(self._decoder, part), known or self._blank)

    def read_items(self, array: Raw) -> list[Any] | Outcome:
        """Return all items of an array for `values_of`, or why not all of them can be decoded."""
        return read_part(self._decoder_of_all, array)

    def values_of(self, item: Any, *, known: list[Any] | None = None) -> list[Any] | Outcome:  # noqa: ANN401  of a type made here
        """Return the values of an item, see `read_part`."""
        return self._values(item, known or self._blank)

    def _values(self, root: Any, blank: list[Any]) -> list[Any] | Outcome:  # noqa: ANN401  of a type made here
        if isinstance(root, Outcome):
            return root
        if self._flat is not None and blank is self._blank:
            return list(self._flat(root))
        values = blank.copy()
        wrong = self._root.fill(root, values)
        return values if wrong is None else wrong


class _Leaf(NamedTuple):
    """A wanted value, and the slots that take it."""

    kind: Any
    slots: list[int]

    def fill(self, value: Any, values: list[Any]) -> Outcome | None:  # noqa: ANN401  any JSON
        for slot in self.slots:
            values[slot] = value
        return None


class _Parts(NamedTuple):
    """An object or array on the way to wanted values, as a struct with the fields that lead on.

    An array may also be a text with commas: `texts` are place and slot of the values that texts can
    be, and whether it takes them raw. None of an object.
    """

    kind: Any
    slots: list[int]
    leaves: Sequence[tuple[str, int]]
    children: Sequence[tuple[str, "_Node"]]
    texts: Sequence[tuple[int, int, bool]]

    def fill(self, value: Any, values: list[Any]) -> Outcome | None:  # noqa: ANN401  a struct
        if isinstance(value, str):
            return self._fill_from(value, values)
        for field, slot in self.leaves:  # inlined, because most payloads have nothing else
            part = getattr(value, field)
            if part is not UNSET:
                values[slot] = part
        for field, child in self.children:
            part = getattr(value, field)
            if part is UNSET:
                continue
            if part is None:
                for slot in child.slots:
                    values[slot] = None
            elif (wrong := child.fill(part, values)) is not None:
                return wrong
        return None

    def _fill_from(self, text: str, values: list[Any]) -> None:
        """Take the parts of a text with commas, as trackers write a pair of coordinates."""
        parts = [part.strip() for part in text.split(",", _MOST_PLACES)]
        for place, slot, is_raw in self.texts:
            if place < len(parts):
                part = parts[place]
                values[slot] = Raw(msgspec.json.encode(part)) if is_raw else part


class _Searched(NamedTuple):
    """An array on the way to wanted values, in which only objects with a certain value count.

    `keys` decodes all keys that are searched for into `fields`, named with their keys.
    """

    kind: Any
    slots: list[int]
    keys: Decoder[Any]
    fields: Sequence[tuple[str, str]]
    children: Sequence[tuple[ArraySearch, Decoder[Any], "_Node"]]

    def fill(self, value: Any, values: list[Any]) -> Outcome | None:  # noqa: ANN401  Raw
        begin = bytes(memoryview(value)[:1])
        parts = [value] if begin == b"{" else read_part(_OBJECTS, value)
        if isinstance(parts, Outcome):
            return parts
        if parts is None:
            for slot in self.slots:
                values[slot] = None
            return None
        if too_many(len(parts), len(memoryview(value)), least=_LEAST_BYTES):
            return Outcome.INVALID__SCHEMA
        part_of = self._first_parts(parts)
        for search, decoder, child in self.children:
            part = part_of.get(search)
            if part is None:
                continue
            found = read_part(decoder, part)
            if isinstance(found, Outcome):
                return found
            if (wrong := child.fill(found, values)) is not None:
                return wrong
        return None

    def _first_parts(self, parts: Sequence[Raw]) -> dict[ArraySearch, Raw]:
        """Return the first object that has a value under a key; each is decoded once."""
        found: dict[ArraySearch, Raw] = {}
        for part in parts:
            if bytes(memoryview(part)[:1]) != b"{":
                continue
            members = read_part(self.keys, part)
            if isinstance(members, Outcome):
                continue
            for field, key in self.fields:
                member = getattr(members, field)
                if member is not UNSET and (value := _searched_value(member)) is not None:
                    found.setdefault(ArraySearch(key, value), part)
        return found


def _searched_value(part: Raw) -> str | None:
    """Return a text, or the digits of a whole number; None for anything else."""
    if bytes(memoryview(part)[:1]) == b'"':
        text = read_part(_STRING, part)
        return text if isinstance(text, str) else None
    digits = bytes(memoryview(part)[:_MOST_DIGITS])
    return digits.decode() if digits.removeprefix(b"-").isdigit() else None


_Node: TypeAlias = _Leaf | _Parts | _Searched


def _flat_getter(root: _Node, n_slots: int) -> Callable[[Any], Iterable[Any]] | None:
    """Return what takes the values of all slots from an object without further levels at once."""
    if not isinstance(root, _Parts) or root.children or n_slots < 2:  # of one it takes no tuple
        return None
    field_of = {slot: field for field, slot in root.leaves}
    return attrgetter(*(field_of.get(slot, _NOWHERE) for slot in range(n_slots)))


def _plant(tree: dict[Step, Any], path: JsonPath, slot: int, kind: Any) -> None:  # noqa: ANN401  a type
    """Add a wanted value to the tree of all paths."""
    for part in path.parts[:-1]:
        tree = tree.setdefault(part, {})
        if isinstance(tree, _Leaf):
            raise ValueError(f"{path} leads through a value that is used itself")  # noqa: TRY004  see above
    leaf = tree.setdefault(path.parts[-1], _Leaf(kind, []))
    if not isinstance(leaf, _Leaf):
        raise ValueError(f"{path} is on the way to other values")  # noqa: TRY004  likewise
    if leaf.kind != kind:
        raise ValueError(f"{path} is used for values of different types")
    leaf.slots.append(slot)


def _plant_beside(tree: dict[Step, Any], path: JsonPath, kind: Any) -> None:  # noqa: ANN401  a type
    """Add a value that is only judged, if there is an object for it, and no other at its path."""
    for part in path.parts[:-1]:
        tree = tree[part]
    tree.setdefault(path.parts[-1], _Leaf(kind, []))


def _node(tree: Mapping[Step, Any] | _Leaf, dec_hook: Any = None) -> _Node:  # noqa: ANN401  see above
    if isinstance(tree, _Leaf):
        return tree
    children = [(key, _node(below, dec_hook)) for key, below in tree.items()]
    slots = [slot for _, child in children for slot in child.slots]
    searches = {key: child for key, child in children if isinstance(key, ArraySearch)}
    if children and len(searches) == len(children):
        return _searched(searches, slots, dec_hook)
    kinds = {type(key) for key, _ in children}
    if kinds - {str} and kinds - {int}:
        raise ValueError(
            "a part of the message cannot be an object and an array: arrays in arrays are not"
            " read, so let the sender write one position, or one array of them, a message"
        )
    kind = _struct_of_array(children) if kinds == {int} else _struct_of_object(children)
    fields = [(_field(key, i), child) for i, (key, child) in enumerate(children)]
    leaves = [
        (name, slot) for name, child in fields if isinstance(child, _Leaf) for slot in child.slots
    ]
    below = [each for each in fields if not isinstance(each[1], _Leaf)]
    return _Parts(kind, slots, leaves, below, _texts_of(children) if kinds == {int} else ())


def _texts_of(children: Sequence[tuple[Step, _Node]]) -> list[tuple[int, int, bool]]:
    return [
        (place, slot, child.kind is Raw)
        for place, child in children
        if isinstance(place, int) and isinstance(child, _Leaf) and child.kind in _OF_TEXTS
        for slot in child.slots
    ]


def _field(key: Step, i: int) -> str:
    """Return how a struct calls a part: by its place in an array, by a number in an object."""
    return f"f{key if isinstance(key, int) else i}"


def _struct_of_object(children: Sequence[tuple[Step, _Node]]) -> Any:  # noqa: ANN401  a type
    names = {_field(key, i): str(key) for i, (key, _) in enumerate(children)}
    fields = [
        (name, _kind_of(child) | UnsetType, UNSET)
        for name, (_, child) in zip(names, children, strict=True)
    ]
    return _struct(fields, rename=names)


def _struct_of_array(children: Sequence[tuple[Step, _Node]]) -> Any:  # noqa: ANN401  a type
    """Return a struct whose fields are the first places of an array, as far as one is wanted."""
    kind_of = {int(str(place)): _kind_of(child) | UnsetType for place, child in children}
    last = max(kind_of)
    if last >= _MOST_PLACES:
        raise ValueError(f"a place in an array must be below {_MOST_PLACES:,}")
    fields = [(f"f{place}", kind_of.get(place, Raw), UNSET) for place in range(last + 1)]
    return _struct(fields, array_like=True)


def _struct(fields: Sequence[tuple[str, Any, Any]], **how: Any) -> Any:  # noqa: ANN401  a type
    nowhere = {_NOWHERE: UNSET}
    return msgspec.defstruct("Part", fields, bases=(Stated,), namespace=nowhere, gc=False, **how)


def _searched(
    children: Mapping[ArraySearch, _Node],
    slots: list[int],
    dec_hook: Any,  # noqa: ANN401  see above
) -> _Searched:
    keys = sorted({search.key for search in children})
    names = {f"f{i}": key for i, key in enumerate(keys)}
    kind = msgspec.defstruct(
        "Keyed", [(name, Raw, UNSET) for name in names], bases=(Stated,), rename=names, gc=False
    )
    found = [
        (search, Decoder(child.kind, dec_hook=dec_hook), child)
        for search, child in children.items()
    ]
    return _Searched(Raw, slots, Decoder(kind), list(names.items()), found)


def _kind_of(node: _Node) -> Any:  # noqa: ANN401  a type
    """Return the type of what is there: null is always allowed, a text where it can be an array."""
    kind = node.kind | str if isinstance(node, _Parts) and node.texts else node.kind
    return kind if kind in {Raw, Any} else kind | None


class Selector:
    """Whether a message is one of those that conditions select.

    `where`: all of these must hold. A missing field has no value.
    """

    def __init__(self, where: Conditions) -> None:
        self._reader = PathReader([(path, Any) for path in where])
        self._allowed = [{_key(value) for value in values} for values in where.values()]

    def refuses(self, payload: bytes) -> Outcome | None:
        """Return why a whole payload is not selected; None if it is. Never raises."""
        return self._refuses(self._reader.read(payload))

    def refuses_part(self, part: Raw) -> Outcome | None:
        """Do the same for a part of a payload that has been read."""
        return self._refuses(self._reader.read_part(part))

    def _refuses(self, values: Sequence[Any] | Outcome) -> Outcome | None:
        if isinstance(values, Outcome):
            # Where the way to a field is another one, the message is of another kind.
            other = values is Outcome.INVALID__SCHEMA
            return Outcome.INVALID__NOT_SELECTED if other else values
        for value, allowed in zip(values, self._allowed, strict=True):
            if not isinstance(value, Scalar) or _key(value) not in allowed:
                return Outcome.INVALID__NOT_SELECTED
        return None


def _key(value: Scalar) -> tuple[bool, Scalar]:
    """Return what tells values apart: true is not 1, but 1.0 is."""
    return isinstance(value, bool), value


def written(values: Sequence[tuple[JsonPath, Any]]) -> Any:  # noqa: ANN401  any JSON
    """Return the smallest JSON value with these values at their paths; arrays are filled with null.

    What a path searches for is there to be found. Of two values at one path the later one counts.

    Raises `ValueError` if a path leads through the value of another one, or a part would have to be
    an object and an array at once, or an array would have more than 1,000 places.
    """
    tree: dict[Step, Any] = {}
    for path, value in values:
        at = tree
        for part in path.parts[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise ValueError(f"{path} leads through a value that is used itself")  # noqa: TRY004  of settings
        if isinstance(at.get(path.parts[-1]), dict):
            raise ValueError(f"{path} is on the way to other values")  # noqa: TRY004  likewise
        at[path.parts[-1]] = value
    return _json_of(tree)


def _json_of(tree: Any) -> Any:  # noqa: ANN401  any JSON
    if not isinstance(tree, dict):
        return tree
    parts = {key: _json_of(below) for key, below in tree.items()}
    if all(isinstance(key, str) for key in parts):
        return parts
    if all(isinstance(key, ArraySearch) for key in parts):
        return [{key.key: key.value} | below for key, below in parts.items()]
    if not all(isinstance(key, int) for key in parts):
        raise ValueError("a part of the message cannot be an object and an array")
    n = max(int(key) for key in parts) + 1
    if n > _MOST_PLACES:
        raise ValueError(f"no array of more than {_MOST_PLACES:,} places is written")
    return [parts.get(index) for index in range(n)]
