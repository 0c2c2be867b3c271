"""Cases of two publications about the same vehicles: two streams, or records and positions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import RecordedMessage, RecordedWindows, key_of
from anonymizer.codecs import CODECS
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import Fix
from anonymizer.domain.network import NodeIndex, RoadNetwork
from anonymizer.domain.trace import check_one_network
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.settings import InputSettings, Settings
from anonymizer.settings.base import is_field

SIDE = 16
"""Rows and columns of the grid whose cells the adversary tells apart."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreamRelease:
    """A stream, what it has published in each window, and what it had received."""

    stream: Stream
    labels: dict[int, list[ReleasedLabels]]
    recorded: RecordedWindows

    def windows(self) -> Iterator[tuple[tuple[float, float], list[ReleasedLabels], Joined]]:
        """Yield span, labels and records of each window that was published."""
        for number, joined in zip(self.recorded.number, self.recorded.windows, strict=True):
            if number in self.labels:
                yield self.stream.rule.span(number), self.labels[number], joined

    def learned(self, source: str) -> list[int]:
        """Return the quasi-identifiers that a source tells."""
        [tells] = [s.tells for s in self.stream.settings.sources if s.name == source]
        return [j for j, qi in enumerate(self.stream.schema.qis) if qi.name in tells]

    @property
    def n_classes(self) -> int:
        """How many classes were published."""
        return sum(len(labels[0].first_of) - 1 for labels in self.labels.values())


@discreet
class Overlap(NamedTuple):
    """Two windows with vehicles in both, their rows in each, and whether they have one span."""

    sides: tuple[tuple[list[ReleasedLabels], Joined], tuple[list[ReleasedLabels], Joined]]
    rows: IntArray
    is_same: bool


@dataclass(frozen=True, eq=False, repr=False)
class ReleasesCase:
    """Two streams that read one topic; `seed`: of the control."""

    one: StreamRelease
    other: StreamRelease
    seed: int

    @cached_property
    def overlaps(self) -> list[Overlap]:
        """The windows that overlap, and have vehicles in both."""
        found = []
        for span, labels, joined in self.one.windows():
            for other_span, other_labels, other_joined in self.other.windows():
                if span[0] >= other_span[1] or other_span[0] >= span[1]:
                    continue
                row_of = {vehicle: i for i, vehicle in enumerate(other_joined.vehicle)}
                both = [(i, row_of[v]) for i, v in enumerate(joined.vehicle) if v in row_of]
                if both:
                    sides = (labels, joined), (other_labels, other_joined)
                    found.append(Overlap(sides, np.array(both), span == other_span))
        return found


@discreet
class _PublishedRegion(msgspec.Struct):
    """What the audit reads of a published region."""

    time: float
    region: list[int | str]
    pseudonyms: list[str] = []
    until: float = 0.0


class Track(NamedTuple):
    """Times and nodes of one vehicle, the oldest first."""

    ts: FloatArray
    node: Int32Array


@dataclass(frozen=True, eq=False, repr=False)
class VehiclesCase:
    """A stream, and regions about the same vehicles."""

    release: StreamRelease
    tracks: Mapping[bytes, Track]
    """Where each vehicle truly was."""
    regions: "RecordedRegions"
    network: RoadNetwork
    seed: int
    """Of the control."""
    attacked: set[tuple[float, float]] = field(default_factory=set)
    """Spans of the windows that had victims; an attack adds them."""


def tracks_of(
    settings: Settings, network: RoadNetwork, messages: Iterable[RecordedMessage]
) -> dict[bytes, Track]:
    """Return where each vehicle truly was."""
    inputs = [each for each in settings.inputs if each.kind == "mobile" and each.codec in CODECS]
    inputs = [each for each in inputs if each.device_from != "payload"]
    check_one_network(network)
    if not inputs:
        raise SettingsError("inputs: none has positions that the audit can read")
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for message in messages:
        for each in inputs:
            device = _device(each, message.topic)
            if device:
                fixes = CODECS[each.codec](message.payload)
                found[device] += [
                    (fix.ts, fix.lat, fix.lon)
                    for fix in fixes
                    if isinstance(fix, Fix) and fix.ts is not None
                ]
                break
    locator = NodeLocator(network, limit_m=settings.network.snap_limit_m)
    tracks = {}
    for device, rows in found.items():
        ts, lat, lon = np.array(sorted(rows)).reshape(-1, 3).T
        node = locator.locate(lat, lon)
        tracks[key_of(device, limits=settings.limits)] = Track(ts[node >= 0], node[node >= 0])
    return tracks


def _device(each: InputSettings, topic: str) -> str:
    """Return the id in a topic; empty if it is none of the input."""
    pattern, levels = each.topic.split("/"), topic.split("/")
    if len(pattern) != len(levels):
        return ""
    pairs = list(zip(pattern, levels, strict=True))
    if any(want not in {"+", level} and not is_field(want) for want, level in pairs):
        return ""
    return "/".join(level for want, level in pairs if is_field(want))


class RecordedRegions:
    """Published regions, the oldest first."""

    def __init__(
        self, settings: Settings, network: RoadNetwork, messages: Iterable[RecordedMessage]
    ) -> None:
        decode = msgspec.json.Decoder(_PublishedRegion).decode
        index = NodeIndex(network.node_id)
        self._found: list[tuple[_PublishedRegion, IntArray]] = []
        for message in messages:
            if message.topic != settings.output.topic:
                continue
            try:
                each = decode(message.payload)
            except (msgspec.DecodeError, RecursionError):
                raise InputError("a published region cannot be read") from None
            names: NDArray[Any] = np.array(each.region, network.node_id.dtype)
            nodes = index.find(names)
            if each.pseudonyms:
                self._found.append((each, nodes[nodes >= 0]))

    def at(
        self, moment: float, span: tuple[float, float], cell_of: IntArray
    ) -> tuple[list[IntArray], BoolArray]:
        """Return the regions that hold at a moment, and the cells of their groups in a window."""
        newest: dict[str, int] = {}
        cells_of: dict[str, BoolArray] = {}
        n_cells = SIDE * SIDE
        for i, (each, nodes) in enumerate(self._found):
            if each.time < span[1] and each.until > span[0]:
                cells = np.bincount(cell_of[nodes], minlength=n_cells) > 0
                for name in each.pseudonyms:
                    cells_of[name] = cells_of.get(name, False) | cells
                    if each.time <= moment < each.until:
                        newest[name] = i
        groups: dict[int, BoolArray] = {}
        for name, i in newest.items():
            groups[i] = groups.get(i, False) | cells_of[name]
        rows = list(groups.values())
        cells = np.stack(rows) if rows else np.zeros((0, n_cells), np.bool_)
        return [self._found[i][1] for i in groups], cells
