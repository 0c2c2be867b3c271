"""Base class of all tables of the settings file, and the types that several tables share."""

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)


class Group(BaseModel):
    """A table of the settings file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401  any value
        # Python takes it for 1.
        stated = value if isinstance(value, list | tuple) else [value]
        field = cls.model_fields[info.field_name or ""]
        if any(isinstance(each, bool) for each in stated) and not _may_be_true(field.annotation):
            raise ValueError("must not be true or false")
        return value


def _may_be_true(annotation: Any) -> bool:  # noqa: ANN401  any type there is
    if get_origin(annotation) is Literal:
        return all(isinstance(each, str) for each in get_args(annotation))  # refused by itself
    return annotation is bool or any(map(_may_be_true, get_args(annotation)))


class Reloadable(NamedTuple):
    """Marks a key that may change while the gateway runs; any other changes at a restart alone."""

    weakens: Callable[[Any, Any, str], bool]
    """Whether a change lowers a protection, given the table before and after it, and the key."""


def _is_lower(old: Group, new: Group, key: str) -> bool:
    return bool(getattr(new, key) < getattr(old, key))


def _is_higher(old: Group, new: Group, key: str) -> bool:
    return bool(getattr(new, key) > getattr(old, key))


LESS_IS_WEAKER = Reloadable(_is_lower)
MORE_IS_WEAKER = Reloadable(_is_higher)
NEVER_WEAKER = Reloadable(lambda _old, _new, _key: False)
"""Only for a key on which no protection depends."""

AtLeastOne = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]

NonEmpty = Annotated[str, Field(min_length=1)]
FieldName = Annotated[str, Field(min_length=1, max_length=64)]
"""Name of a field in a payload or message."""
_WORDING: dict[str, str] = {}


def like(pattern: str, words: str) -> Any:  # noqa: ANN401  as `Field`
    """Return the constraint that text matches a pattern, described by words."""
    _WORDING[pattern] = words
    return Field(min_length=1, pattern=pattern)


def wording_of(pattern: str) -> str:
    """Return what a text must be to match a pattern."""
    return _WORDING.get(pattern, f"must match {pattern}")


def nearest(value: object, names: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the name that is like a value, or an empty text."""
    of = {name.casefold(): name for name in names}
    near = get_close_matches(str(value).casefold(), of, n=1)
    return f'; did you mean "{of[near[0]]}"?' if near else ""


Name = Annotated[
    str, like(r"^[A-Za-z0-9_.-]{1,64}$", "must be 1 to 64 letters, digits, dots, _ and -")
]
"""Name that becomes a part of topics, labels and file names."""
OutputTopic = Annotated[str, like(r"^[^+#\x00]+$", "must be a topic, without + and #")]
"""MQTT topic without wildcards."""
Qos = Literal[0, 1]


class OwnTopics(NamedTuple):
    """Topics that follow from those of the settings: see `Settings.topics`."""

    fixed: str
    public: str
    density: str
    current: str
    counts: str
    entities: str
    network: str
    rejected: str
    probe: str
    state: str
    trips: str


PSEUDONYM = "{pseudonym}"
HostName = Annotated[
    str,
    like(
        r"^(\*|[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?)$",
        "must be the name of a host, without scheme and port, or *",
    ),
]
"""Name of a host, without a port; `*` stands for any."""


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address means this machine, without resolving it."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _is_range(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("must be an IP address or a network, such as 10.0.0.0/24") from None
    return text


Stated = TypeVar("Stated")
_FIELD = re.compile(r"\{[a-z][a-z0-9_]*\}")
_SHARED = ("$share", "$queue")
_OF_NO_DEVICE = ("$SYS", "$exclusive", "$delayed")


def is_field(level: str) -> bool:
    """Return whether a level of a topic filter stands for a part of an id, such as `{device}`."""
    return _FIELD.fullmatch(level) is not None


def id_levels(topic: str) -> list[int]:
    """Return which levels of a topic, counted from 0, together are an id."""
    return [i for i, level in enumerate(topic.split("/")) if is_field(level)]


def id_names(topic: str) -> list[str]:
    """Return the names of these levels, in their order."""
    return [level for level in topic.split("/") if is_field(level)]


def overlap(one: str, other: str) -> bool:
    """Return whether a topic may match both of two filters, `{device}` standing for any level."""
    first, second = (["+" if is_field(x) else x for x in each.split("/")] for each in (one, other))
    for a, b in ((first, second), (second, first)):
        if a[0] in {"+", "#"} and b[0].startswith("$"):
            return False
    for x, y in zip(first, second, strict=False):
        if "#" in {x, y}:
            return True
        if x != y and "+" not in {x, y}:
            return False
    n = min(len(first), len(second))
    return first[n:] + second[n:] in ([], ["#"])


def covers(one: str, other: str) -> bool:
    """Return whether all topics that match the filter `other` match `one`, too; as `overlap`."""
    first, second = (["+" if is_field(x) else x for x in each.split("/")] for each in (one, other))
    if first[0] in {"+", "#"} and second[0].startswith("$"):
        return False
    if second == ["#"]:
        second = ["+", "#"]
    if first[-1] == "#":
        first, second = first[:-1], second[: len(first) - 1]
    return len(first) == len(second) and all(
        x == y or (x == "+" and y != "#") for x, y in zip(first, second, strict=True)
    )


def check_filter(topic: str, field: str) -> None:
    """Check the topic filter of an input; `field` is the usual name of a level of the id.

    Raises `ValueError` if it is no filter, a shared subscription, or not of a topic of devices.
    """
    levels = topic.split("/")
    if levels[0] in _SHARED:
        # Two releases of the same devices together promise less than each of them.
        raise ValueError(
            "topic: a shared subscription would give a part of the messages of each device to each"
            " gateway of the group, and each would hide its devices among a part of the others;"
            f" leave {levels[0]}/... out, and let one gateway read the topic"
        )
    if levels[0] in _OF_NO_DEVICE:
        why = f"no message of a device arrives under a topic that begins with {levels[0]}/"
        raise ValueError(f"topic: {why}; state the topic on which devices publish")
    for i, level in enumerate(levels):
        whole = level == "+" or is_field(level) or (level == "#" and i == len(levels) - 1)
        if not whole and re.search(r"[+#{}\x00]", level):
            raise ValueError(f"topic: level {i + 1} is neither plain, +, {{{field}}} nor a final #")


def _is_echo_topic(topic: str) -> str:
    levels = topic.split("/")
    if levels.count(PSEUDONYM) > 1 or re.search(r"[{}]", "".join(topic.split(PSEUDONYM))):
        raise ValueError(f"must be a topic, in which one level may be {PSEUDONYM}")
    if topic.count(PSEUDONYM) != levels.count(PSEUDONYM):
        raise ValueError(f"{PSEUDONYM} must be a whole level")
    return topic


EchoTopic = Annotated[OutputTopic, AfterValidator(_is_echo_topic)]
"""MQTT topic without wildcards, in which one level may stand for a pseudonym."""
AddressRange = Annotated[str, AfterValidator(_is_range)]
"""An IP address, or a network in CIDR notation without host bits."""


class TopicFilters(Generic[Stated]):
    """Filters by their levels, to find those that overlap with one without trying each.

    `stated`: what the filters stand for that end here; `below`: the filters by their next level.
    """

    def __init__(self) -> None:
        self.stated: list[Stated] = []
        self.below: dict[str, TopicFilters[Stated]] = {}

    def add(self, topic: str, stated: Stated) -> None:
        """Add a filter."""
        here = self
        for level in topic.split("/"):
            here = here.below.setdefault("+" if is_field(level) else level, TopicFilters())
        here.stated.append(stated)

    def overlapping(self, topic: str) -> Iterator[Stated]:
        """Yield what the filters stand for that `overlap` with this one."""
        levels = ["+" if is_field(level) else level for level in topic.split("/")]
        for name, below in self.may_match(levels):  # wildcards do not stand for `$SYS`
            any_level = {"+", "#"} & {name, levels[0]}
            if not (any_level and "$" in {name[:1], levels[0][:1]}):
                yield from _overlapping(name, below, levels)

    def may_match(self, levels: list[str]) -> Iterator[tuple[str, "TopicFilters[Stated]"]]:
        """Yield what is below that may match the first of some levels, by its name."""
        for name in self.below if {"+", "#"} & {*levels[:1]} else (*levels[:1], "+", "#"):
            if name in self.below:
                yield name, self.below[name]


def _overlapping(name: str, below: TopicFilters[Stated], levels: list[str]) -> Iterator[Stated]:
    """Yield what lies below a level of that name and may match these levels."""
    level, *rest = levels or [""]
    if name == "#" or level == "#":
        yield from below.stated
        for next_name, each in below.may_match(levels):
            yield from _overlapping(next_name, each, levels)
    elif levels and (name == level or "+" in {name, level}):
        if not rest or rest == ["#"]:
            yield from below.stated
        for next_name, each in below.may_match(rest):
            yield from _overlapping(next_name, each, rest)
