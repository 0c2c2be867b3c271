"""Streams of records: who tells what of a vehicle, in which windows, under which promise."""

import re
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from anonymizer.domain.promises import Promise, bounded_shares, check_cells_promise
from anonymizer.settings.base import Group, Name, NotNegative, Positive, Qos, Share
from anonymizer.settings.stream_attributes import AttributeSettings

METHODS = {
    "kd": ("hilbert", "best"),
    "kld": ("hilbert", "best"),
    "kaca": ("kmeans", "fast"),
    "cells": ("tree",),
}
"""Of each model, besides `auto`."""


class SourceSettings(Group):
    """One topic that tells a part of each vehicle's record."""

    name: Name
    topic: str = "records/{source}/{vehicle}"
    """Topic filter: `{source}` is the name of this source, `{vehicle}` the level that names the
    vehicle (several are joined by `/`), `+` and a last `#` stand for anything."""
    qos: Qos = 1
    time: Annotated[str, Field(min_length=1, max_length=64)] = "ts"
    """What the payload calls the time: unix seconds, or ISO 8601 text."""
    tells: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of attributes; each is told by one source."""
    needed: bool = False
    """Whether a vehicle's record is suppressed when this source told nothing of it. Otherwise
    its attributes are missing from the record."""

    @model_validator(mode="after")
    def _topic_is_a_filter(self) -> Self:
        levels = self.filter_topic.split("/")
        for i, level in enumerate(levels):
            whole = level in {"+", "{vehicle}"} or (level == "#" and i == len(levels) - 1)
            if not whole and re.search(r"[+#{}\x00]", level):
                raise ValueError(
                    f"topic: level {i + 1} is neither plain, +, {{vehicle}} nor last #"
                )
        if "{vehicle}" not in levels:
            raise ValueError("topic: {vehicle} is needed")
        return self

    @property
    def filter_topic(self) -> str:
        """The topic with the name of the source put in."""
        return self.topic.replace("{source}", self.name)


class PromiseSettings(Group):
    """What every published class keeps; see `anonymizer.domain.promises.Promise`."""

    k: Annotated[int, Field(ge=2)] = 10
    """Distinct vehicles."""
    d: Annotated[int, Field(ge=1)] = 2
    """Distinct values of every quasi-identifier that are really there."""
    l: Annotated[int, Field(ge=1)] = 1  # noqa: E741  the field's name for it
    """Distinct values of every sensitive attribute."""
    max_share: Share | None = None
    """Largest share of the vehicles of a class that any one value of a QI may have. None: 0.995
    where d is 2 or more."""
    max_source_share: Share | None = None
    """Likewise for all QIs of one source together. None: 0.95 where d is 2 or more."""
    min_spread: dict[str, NotNegative] = Field(default={})
    """Least distance between the ends of a numeric QI, by its name."""
    entropy_l: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    """The entropy of every sensitive attribute is at least log(entropy_l)."""
    t: Positive | None = None
    """Most that a sensitive attribute's distribution may differ from that of the window. None:
    no bound."""

    @property
    def bounds_sensitive(self) -> bool:
        """Whether anything is asked of the sensitive attributes."""
        return self.l > 1 or self.entropy_l > 1 or self.t is not None

    @property
    def promise(self) -> Promise:
        """What the algorithms know of it."""
        max_share, max_source_share = bounded_shares(self.d, self.max_share, self.max_source_share)
        return Promise(
            k=self.k,
            d=self.d,
            l=self.l,
            max_share=max_share,
            max_source_share=max_source_share,
            min_spread=dict(self.min_spread),
            entropy_l=self.entropy_l,
            t=inf if self.t is None else self.t,
        )


class StreamSettings(Group):
    """One `[[streams]]` table: records of vehicles, joined and published in windows."""

    name: Name
    sources: Annotated[tuple[SourceSettings, ...], Field(min_length=1)]
    attributes: Annotated[tuple[AttributeSettings, ...], Field(min_length=1)]
    promise: PromiseSettings = PromiseSettings()
    topic: Annotated[str, Field(min_length=1, pattern=r"^[^+#\x00]+$")] = "anonymized/{stream}"
    """Where classes are published, at QoS 1."""
    per: Literal["vehicle", "record"] = "vehicle"
    """`vehicle`: the parts of a vehicle in a window are one record; `record`: each is a record of
    its own, as exits from a motorway are (k counts vehicles all the same)."""
    window_s: Positive = 300.0
    """Length of a window of event time."""
    utc_offset_h: Annotated[float, Field(ge=-14, le=14)] = 0.0
    """By how much local time is ahead of UTC: that of texts without an offset, of the time of day,
    and of the days that windows are aligned to."""
    offset_s: NotNegative | None = None
    """Windows begin at multiples of `window_s`, this much later. None: so that local days begin
    with a window."""
    lateness_s: NotNegative = 30.0
    """A window closes when every source that is alive has told of a time so much after its end."""
    idle_s: Positive | None = None
    """A source that is silent for so long by the clock on the wall is waited for no more; when
    all are, every window closes. None: `window_s + lateness_s`."""
    max_ahead_s: NotNegative = 5.0
    """How far a vehicle's clock may run ahead of the gateway's."""
    max_open_windows: Annotated[int, Field(ge=1, le=10_000)] = 8
    max_records: Annotated[int, Field(ge=1, le=50_000_000)] = 200_000
    """In all open windows together; further vehicles are refused as overload."""
    model: Literal["kd", "kld", "kaca", "cells"] = "kd"
    """`kd`: k vehicles and d values; `kld`: and l sensitive values; `kaca`: k vehicles (`d` is 1
    unless set), clustered first and generalized afterwards; `cells`: k vehicles and l sensitive
    values (`d` and `l` are 1 unless set, l is at most k) in each cell of a decision tree."""
    method: Literal["hilbert", "best", "auto", "kmeans", "fast", "tree"] = "auto"
    """`hilbert`: the algorithm as published, a few milliseconds; `best`: a search as long as
    `budget_s`; `auto`: `best` where the window is small enough for it. Of `kaca`: `kmeans`, as
    published, slow beyond some 10,000 records; `fast`; `auto`: `fast`. Of `cells`: `tree`."""
    target: Annotated[str, Field(max_length=64)] | None = None
    """The attribute, sensitive or a measure, that a model is to learn from what is published: the
    tree of `cells` follows it. Empty: none, cells are only small. None: the first sensitive one
    where the promise bounds it (`l`, `entropy_l` or `t`), else none."""
    labels: Literal["representative", "range"] = "representative"
    """What stands for the values of a class of `cells`: the median, of a category the most
    frequent; or what is there, as `kd` tells it."""
    budget_s: Positive = 2.0
    """Seconds of search a window."""
    cost: Literal["range", "set", "taxonomy"] = "range"
    """The information loss that is kept low, and with `taxonomy` the form of what is published."""
    cumulative: Literal["report", "enforce"] = "report"
    """What is done about a vehicle whose published classes, intersected over the windows, leave
    fewer than d values of a lasting QI, or l of a lasting sensitive attribute."""
    forget_after: Annotated[int, Field(ge=1)] = 1000
    """Windows after which a vehicle that was not published is forgotten."""
    count_as: Annotated[str, Field(min_length=1, max_length=64)] = "truck_count"
    """What messages of `kaca` call the number of vehicles of a class."""
    language: Literal["zh", "en"] = "zh"
    """Of the labels in messages of `kaca`."""

    @property
    def begin_s(self) -> float:
        """`offset_s`, or what it is by default."""
        if self.offset_s is None:
            return -self.utc_offset_h * 3600 % self.window_s
        return self.offset_s

    @property
    def silence_s(self) -> float:
        """`idle_s`, or what it is by default."""
        return self.window_s + self.lateness_s if self.idle_s is None else self.idle_s

    @property
    def output_topic(self) -> str:
        """The topic with the name of the stream put in."""
        return self.topic.replace("{stream}", self.name)

    @property
    def learned(self) -> str | None:
        """The attribute that the tree of `cells` learns; None: none."""
        sensitive = [a.name for a in self.attributes if a.role == "sensitive"]
        if self.target is None and sensitive and self.promise.bounds_sensitive:
            return sensitive[0]
        return self.target or None

    @model_validator(mode="before")
    @classmethod
    def _some_ask_for_k_alone(cls, said: Any) -> Any:  # noqa: ANN401  whatever is in the file
        if isinstance(said, dict) and said.get("model") in {"kaca", "cells"}:
            promise = said.get("promise", {})
            if isinstance(promise, dict):
                unbounded = {"max_share": 1.0, "max_source_share": 1.0}
                alone = {"d": 1, **(unbounded if said["model"] == "kaca" else {})}
                return said | {"promise": alone | promise}
        return said

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [attribute.name for attribute in self.attributes]
        told = [name for source in self.sources for name in source.tells]
        _each_once("attributes", names)
        _each_once("sources", [source.name for source in self.sources])
        _each_once("sources: tells", told)
        shown = [self.count_as, *(attribute.shown_as for attribute in self.attributes)]
        _each_once("attributes: published_as", shown)
        by_time = {attribute.name for attribute in self.attributes if attribute.time_of_day}
        for i, source in enumerate(self.sources):
            if not set(source.tells) <= set(names):
                raise ValueError(f"sources.{i}.tells: names an attribute that is not declared")
            if source.time in set(source.tells) - by_time:
                told_twice = f"sources.{i}.tells: {source.time} is the time of a part, no attribute"
                raise ValueError(told_twice)
        if set(told) != set(names):
            raise ValueError("every attribute must be told by a source")
        if self.begin_s >= self.window_s:
            raise ValueError("offset_s must be below window_s")
        if self.per == "record" and (
            len(self.sources) > 1 or any(a.lasting for a in self.attributes)
        ):
            raise ValueError('per: "record" is for one source, and for nothing that is lasting')
        return self

    @model_validator(mode="after")
    def _promise_fits(self) -> Self:
        sensitive = [a for a in self.attributes if a.role == "sensitive"]
        if not any(a.role == "qi" for a in self.attributes):
            raise ValueError("attributes: at least one must be a quasi-identifier")
        p = self.promise
        if not sensitive and p.bounds_sensitive:
            raise ValueError("promise: l, entropy_l and t need a sensitive attribute")
        if self.model == "kld" and p.l < 2:
            raise ValueError('model: "kld" needs promise.l of 2 or more')
        if self.method != "auto" and self.method not in METHODS[self.model]:
            raise ValueError(
                "method: hilbert and best are for kd and kld, kmeans and fast for kaca, tree for"
                " cells"
            )
        shares = (p.promise.max_share, p.promise.max_source_share)
        if self.model == "kaca" and (
            (*shares, p.entropy_l, p.t, p.min_spread) != (1, 1, 1, None, {})
        ):
            raise ValueError('promise: "kaca" keeps k, d and l, no other bound')
        if self.model == "kaca" and self.cumulative == "enforce":
            raise ValueError('cumulative: "enforce" is for kd, kld and cells')
        numeric = {a.name for a in self.attributes if a.numeric and a.role == "qi"}
        if not set(p.min_spread) <= numeric:
            raise ValueError("promise.min_spread: must name numeric quasi-identifiers")
        return self

    @model_validator(mode="after")
    def _cells_fit(self) -> Self:
        if self.model != "cells":
            if self.target is not None:
                raise ValueError(f'target: "{self.model}" does not look at one')
            if self.labels != "representative":
                raise ValueError(f'labels: "{self.model}" has its own')
            return self

        p = self.promise
        try:
            check_cells_promise(p.promise)
        except ValueError as wrong:
            raise ValueError(f"promise: {wrong}") from None
        role_of = {a.name: a.role for a in self.attributes}
        if self.target and role_of.get(self.target, "qi") == "qi":
            raise ValueError("target: must be a sensitive attribute or a measure")
        if self.target and role_of[self.target] == "sensitive" and not p.bounds_sensitive:
            raise ValueError("target: is sensitive: needs promise.l of 2 or more, entropy_l or t")
        least = {a.role: p.d if a.role == "qi" else p.l for a in self.attributes if a.lasting}
        if self.cumulative == "enforce" and 1 in least.values():
            raise ValueError(
                'cumulative: "enforce" needs promise.d of 2 or more for a lasting'
                " quasi-identifier, promise.l for what is sensitive"
            )
        return self


class StoreSettings(Group):
    """Where the records of streams are kept from their arrival to their publication."""

    path: Path = Path("anonymizer-records.sqlite")
    """A file that the service's user alone may read; made when it is not there."""
    keep_published_s: NotNegative = 2_592_000.0
    """How long published classes are kept for queries."""
    max_unpublished: Annotated[int, Field(ge=1)] = 1_000_000
    """Classes that may wait for the broker; windows that close beyond it are suppressed."""


def _each_once(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: must name each once")


def _apart(streams: tuple[StreamSettings, ...]) -> tuple[StreamSettings, ...]:
    _each_once("streams", [stream.name for stream in streams])
    # One part in two streams would be in two releases, which together promise less than each.
    _each_once("sources: topic", [s.filter_topic for stream in streams for s in stream.sources])
    return streams


DeclaredStreams = Annotated[tuple[StreamSettings, ...], AfterValidator(_apart)]
"""All `[[streams]]` tables."""
