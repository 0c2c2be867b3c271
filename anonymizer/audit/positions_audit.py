"""Audit of positions with records of the same vehicles: what their releases reveal together.

From recordings alone: the messages that the gateway received and those that it published.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.app.tuning.recording import RecordedMessage, joined_windows, key_of, read_messages
from anonymizer.audit.findings import Finding, WindowsAuditReport
from anonymizer.audit.mathematics.joint_releases import (
    JointReading,
    Side,
    left_alone,
    left_together,
)
from anonymizer.audit.mathematics.places_of_records import PLACE, seen_in, side_of_positions
from anonymizer.audit.publications import grid_cells
from anonymizer.audit.windows_audit import check_labels, published_labels
from anonymizer.codecs import CODECS
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.fixes import Fix
from anonymizer.domain.network import NodeIndex, RoadNetwork
from anonymizer.domain.trace import check_one_network
from anonymizer.errors import InputError, SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.topics import KEY_BYTES
from anonymizer.settings import InputSettings, Settings
from anonymizer.settings.base import is_field

TOGETHER, CONTROL = "positions with records", "positions of another vehicle"
POSITIONS = "positions alone"
SIDE = 16
"""Rows and columns of the grid whose cells the adversary tells apart."""


class _Region(msgspec.Struct):
    """What the audit reads of a published region."""

    time: float
    region: list[int | str]
    pseudonyms: list[str] = []
    until: float = 0.0

    def __repr__(self) -> str:
        """Return no content."""
        return "_Region(...)"


class _Window(NamedTuple):
    """The span of a window, what was published of it, and what was received."""

    span: tuple[float, float]
    labels: list[ReleasedLabels]
    joined: Joined


class _Track(NamedTuple):
    """Times and nodes of one vehicle, the oldest first."""

    ts: FloatArray
    node: Int32Array


def audit_positions(
    stream: Stream,
    settings: Settings,
    network: RoadNetwork,
    *,
    published: Path,
    truth: Path,
    seed: int = 0,
) -> WindowsAuditReport:
    """Attack the published windows of a stream and the published regions together.

    `published` is also of the topic of regions, `truth` of positions, else as for `audit_windows`.
    `seed`: of the control, the records of each victim with the positions of another one. InputError
    if a file or a message cannot be read, or no window has a vehicle that is in both releases;
    SettingsError if the stream cannot be attacked, or no input has positions that the audit can
    read.

    Notes
    -----
    The adversary knows where the victim is in the middle of a window, what all sources but one
    reported of it, and in which cells each value occurs: of that, more than anybody can know,
    because it is taken from the recording, the victim included. Nothing is promised of the two
    together, so the findings have no bar.
    """
    check_labels(stream)
    tracks = _tracks(settings, network, read_messages(truth))
    regions = _Regions(settings, network, read_messages(published))
    labels_of = published_labels(published, stream)
    recorded = joined_windows(stream, read_messages(truth), limits=settings.limits)
    windows = [
        _Window(stream.rule.span(number), labels_of[number], joined)
        for number, joined in zip(recorded.number, recorded.windows, strict=True)
        if number in labels_of
    ]
    rng = np.random.default_rng(seed)
    findings: list[Finding] = []
    n_windows = 0
    for source in stream.settings.sources:
        learned = [j for j, qi in enumerate(stream.schema.qis) if qi.name in source.tells]
        if learned:
            attack = _Attack(stream, learned, grid_cells(network, SIDE), windows, tracks)
            n_windows = max(n_windows, attack.run(regions, rng))
            findings += attack.findings(source.name)
    if not n_windows:
        raise InputError(f"{published}: no window has a vehicle in a class and in a region")
    return WindowsAuditReport(
        stream=f"{stream.settings.name}, positions",
        holds=True,
        n_windows=n_windows,
        n_classes=sum(len(labels[0].first_of) - 1 for labels in labels_of.values()),
        left_out=recorded.left_out,
        findings=tuple(findings),
    )


def _tracks(
    settings: Settings, network: RoadNetwork, messages: Iterable[RecordedMessage]
) -> dict[bytes, _Track]:
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
        tracks[key_of(device, limits=settings.limits)] = _Track(ts[node >= 0], node[node >= 0])
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


class _Regions:
    """Published regions, the oldest first."""

    def __init__(
        self, settings: Settings, network: RoadNetwork, messages: Iterable[RecordedMessage]
    ) -> None:
        decode = msgspec.json.Decoder(_Region).decode
        index = NodeIndex(network.node_id)
        self._found: list[tuple[_Region, IntArray]] = []
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


class _Attack:
    """The attack of an adversary who does not know what one source reported."""

    def __init__(
        self,
        stream: Stream,
        learned: Sequence[int],
        cell_of: IntArray,
        windows: Sequence[_Window],
        tracks: Mapping[bytes, _Track],
    ) -> None:
        self._stream, self._learned, self._cell_of = stream, learned, cell_of
        self._windows, self._tracks = windows, tracks
        self._alone = f"{stream.settings.name} alone"
        self._names = [stream.schema.qis[j].name for j in learned]
        self._readings = {
            (attack, name): JointReading(lasting=name in stream.lasting)
            for attack in (self._alone, POSITIONS, TOGETHER, CONTROL)
            for name in (*self._names, PLACE)
            if not (attack == self._alone and name == PLACE)
        }

    def run(self, regions: _Regions, rng: np.random.Generator) -> int:
        """Attack all windows; return how many had victims."""
        seen = self._seen()
        n = sum(self._take(window, regions, seen, rng) for window in self._windows)
        for reading in self._readings.values():
            reading.end()
        return n

    def findings(self, source: str) -> Iterator[Finding]:
        """Yield what is read of each attribute and of the place: alone, together, and by chance.

        The place is read by who does not know what this source said.
        """
        for (attack, name), read in sorted(self._readings.items(), key=lambda each: each[0][1]):
            yield Finding(
                attack=attack,
                attribute=f"{PLACE} ({source})" if name == PLACE else name,
                figures={
                    "n_vehicles": read.n_victims,
                    "n_read": read.n_left_of.get(1, 0),
                    "share_read": read.n_left_of.get(1, 0) / max(read.n_victims, 1),
                    "values_left": read.mean_left,
                },
            )

    def _cells(self, vehicle: bytes, span: tuple[float, float]) -> BoolArray:
        """Return the cells in which a vehicle was in a window."""
        ts, node = self._tracks[vehicle]
        within = node[(ts >= span[0]) & (ts < span[1])]
        return np.bincount(self._cell_of[within], minlength=SIDE * SIDE) > 0

    def _seen(self) -> list[BoolArray]:
        """Return in which cells each value of each learned attribute is seen in the recording."""
        codes, cells = [], []
        for span, _, joined in self._windows:
            for i, vehicle in enumerate(joined.vehicle):
                if vehicle[:KEY_BYTES] in self._tracks:
                    codes.append(joined.cells[i])
                    cells.append(self._cells(vehicle[:KEY_BYTES], span))
        if not codes:
            return [
                np.zeros((self._stream.schema.qis[j].size, SIDE * SIDE)) > 0 for j in self._learned
            ]
        every = np.stack(codes)
        return [
            seen_in(every[:, j], np.stack(cells), self._stream.schema.qis[j].size)
            for j in self._learned
        ]

    def _take(
        self,
        window: _Window,
        regions: _Regions,
        seen: list[BoolArray],
        rng: np.random.Generator,
    ) -> int:
        """Attack the vehicles of a window; return 1 if some are in both releases."""
        span, labels, joined = window
        middle = sum(span) / 2
        now, cells = regions.at(middle, span, self._cell_of)
        rows, known, last = [], [], []
        for i, vehicle in enumerate(joined.vehicle):
            ts, node = self._tracks.get(vehicle[:KEY_BYTES], _NOWHERE)
            before, end = np.searchsorted(ts, [middle, span[1]])
            if before and ts[before - 1] >= span[0]:
                rows.append(i)
                known.append(node[before - 1])
                last.append(self._cell_of[node[end - 1]])
        if not rows or not now:
            return 0
        qis = self._stream.schema.qis
        codes = joined.cells[rows][:, : len(qis)]
        records = Side(qis, labels, codes, self._learned)
        positions = side_of_positions(
            regions=now,
            cells=cells,
            known=np.array(known, np.int32),
            last_cell=np.array(last, np.int32),
            attributes=[
                (qis[j], each, codes[:, j]) for j, each in zip(self._learned, seen, strict=True)
            ],
            n_nodes=len(self._cell_of),
        )
        out = records.published() & positions.published()
        vehicles = [joined.vehicle[rows[i]] for i in np.flatnonzero(out).tolist()]
        if not vehicles:
            return 0
        records, positions = records.only(out), positions.only(out)
        shared = [(j, 2 + i) for i, j in enumerate(self._learned)]
        stranger = positions.only(rng.permutation(len(vehicles)))
        self._note(self._alone, vehicles, records, left_alone(records), shared)
        self._note(POSITIONS, vehicles, positions, left_alone(positions), [])
        for attack, other in ((TOGETHER, positions), (CONTROL, stranger)):
            first, second = left_together(records, other, shared)
            self._note(attack, vehicles, records, first, shared)
            self._readings[attack, PLACE].take(vehicles, second[1], other.codes[:, 1])
        return 1

    def _note(
        self,
        attack: str,
        vehicles: list[bytes],
        of: Side,
        left: Mapping[int, BoolArray],
        shared: Sequence[tuple[int, int]],
    ) -> None:
        """Take in what is left, of the side of the records, or else of that of the positions."""
        at = {name: j for name, (j, _) in zip(self._names, shared, strict=False)}
        at = at or {PLACE: 1} | {name: 2 + i for i, name in enumerate(self._names)}
        for name, j in at.items():
            self._readings[attack, name].take(vehicles, left[j], of.codes[:, j])


_NOWHERE = _Track(np.zeros(0), np.zeros(0, np.int32))
