"""Published releases and the auditor's map: JSON lines in, arrays out.

The lines of a release file, and of the auditor's map that goes with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

import msgspec
import numpy as np

from anonymizer.algorithms.attacks.observed import Observed, starts
from anonymizer.algorithms.positions.protection import round_time
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.errors import InputError
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.encoding import DeviceMessage, ReleaseEncoder
from anonymizer.pipeline.positions.group_readings import GroupValues
from anonymizer.settings import Settings

_LINES_A_REPORT = 50_000

Line = TypeVar("Line")


class _ReleaseLine(msgspec.Struct, frozen=True, gc=False):
    pseudonym: str
    time: float
    region: msgspec.Raw
    k: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    values: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET


class _MapLine(msgspec.Struct, frozen=True, gc=False):
    pseudonym: str
    device: str


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A release file.

    Attributes
    ----------
    observed
        What it publishes.
    pseudonym
        Name of each pseudonym of `observed`, in the order of the file.
    n_suppressed
        Lines with region []. They keep account of what was not published: on the wire there
        is nothing, so no attack sees them.
    values
        Readings that stand beside pseudonyms, by attribute: one for each record of `observed`,
        NaN for none, shape (records,).
    """

    observed: Observed
    pseudonym: tuple[str, ...]
    n_suppressed: int
    values: Mapping[str, FloatArray]

    def __repr__(self) -> str:
        """Say nothing of who or where."""
        return f"Released({self.observed.n_records} records, {self.n_suppressed} suppressed)"


def read_release(
    path: str | Path, network: RoadNetwork, *, progress: Callable[[int], None] = lambda _lines: None
) -> Released:
    """Read PUB.jsonl: `{"pseudonym", "time", "region": [node ids], "k"}` a line, in any order.

    A line may have `"values": {attribute: number or null}`; what else it has is ignored.

    Parameters
    ----------
    network
        Names the nodes.
    progress
        Told how many lines were read since the last time.

    Raises
    ------
    InputError
        If the file cannot be read, holds no region at all, names a node twice in a region or
        one that the network lacks, or if a pseudonym publishes twice at one time. The message
        says in which line or how many, never what.

    Notes
    -----
    About 2 µs a line: a region is decoded the first time it is seen, then known by its bytes.
    """
    path = Path(path)
    read = _Columns(_Regions(network))
    n_suppressed = 0
    for number, line in _lines(path, _ReleaseLine):
        if number % _LINES_A_REPORT == 0:
            progress(_LINES_A_REPORT)
        try:
            region = read.regions.number_of(line.region)
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}: line {number}: region is not a list of distinct nodes of the network"
            ) from None
        if region is None:
            n_suppressed += 1
        elif line.k < 1 or not np.isfinite(line.time):
            raise InputError(f"{path}: line {number}: a published region has a time and a k >= 1")
        else:
            read.append(line, region)
    if not read.time:
        raise InputError(f"{path}: publishes no region, there is nothing to audit")
    order = read.by_pseudonym_and_time()
    observed = read.observed(order)
    one_pseudonym = np.diff(observed.pseudonym_of) == 0
    n_twice = int((one_pseudonym & (np.diff(observed.tick_of) == 0)).sum())
    if n_twice:
        raise InputError(f"{path}: a pseudonym publishes twice at one time, {n_twice} times")
    return Released(observed, tuple(read.pseudonym_number), n_suppressed, read.values_of(order))


def read_auditor_map(
    path: str | Path, *, pseudonym: Sequence[str], device_id: Sequence[str]
) -> IntArray:
    """Read MAP.jsonl: `{"pseudonym", "device"}` a line; return the device of each pseudonym.

    Parameters
    ----------
    pseudonym
        Whom to look up; the file may name more.
    device_id
        Names of the devices; the result counts in this order.

    Raises
    ------
    InputError
        If the file cannot be read, a pseudonym is missing or two devices, or a device is not
        among `device_id`. The message says how many, never who.
    """
    path = Path(path)
    device_of: dict[str, str] = {}
    for number, line in _lines(path, _MapLine):
        if device_of.setdefault(line.pseudonym, line.device) != line.device:
            raise InputError(f"{path}: line {number}: a pseudonym is two devices")
    index = {name: i for i, name in enumerate(device_id)}
    found = [index.get(device_of[name], -1) if name in device_of else None for name in pseudonym]
    if n_missing := found.count(None):
        raise InputError(f"{path}: lacks {n_missing} of {len(found)} pseudonyms of the release")
    if n_strange := found.count(-1):
        raise InputError(f"{path}: names {n_strange} devices that the trace lacks")
    return np.array(found, np.int64)


class _Regions:
    """Numbers distinct regions in the order of their first appearance."""

    def __init__(self, network: RoadNetwork) -> None:
        self.nodes: list[tuple[int, ...]] = []
        self._node_of = {name: i for i, name in enumerate(network.node_id.tolist())}
        self._number_of_bytes: dict[bytes, int | None] = {}
        self._number_of_nodes: dict[tuple[int, ...], int] = {}

    def number_of(self, raw: msgspec.Raw) -> int | None:
        """Return the number of a region, None for an empty one.

        Raises ValueError, KeyError or TypeError for what is not distinct nodes of the network.
        """
        key = bytes(raw)
        if key not in self._number_of_bytes:
            names = msgspec.json.decode(key, type=list[int | str])
            nodes = tuple(self._node_of[name] for name in names)
            if len(set(nodes)) < len(nodes):
                raise ValueError("a node stands twice in a region")
            self._number_of_bytes[key] = self._number(nodes) if nodes else None
        return self._number_of_bytes[key]

    def _number(self, nodes: tuple[int, ...]) -> int:
        number = self._number_of_nodes.setdefault(nodes, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(nodes)
        return number


@dataclass(slots=True)
class _Columns:
    """The published lines, column by column."""

    regions: _Regions
    pseudonym_number: dict[str, int] = field(default_factory=dict)
    pseudonym: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    region: list[int] = field(default_factory=list)
    k: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    """By attribute, as far as the last line that has it."""

    def append(self, line: _ReleaseLine, region: int) -> None:
        number = self.pseudonym_number.setdefault(line.pseudonym, len(self.pseudonym_number))
        self.pseudonym.append(number)
        self.time.append(line.time)
        self.region.append(region)
        self.k.append(line.k)
        for name, value in (line.values or {}).items():
            column = self.values.setdefault(name, [])
            column += [np.nan] * (len(self.k) - 1 - len(column))
            column.append(np.nan if value is None else value)

    def by_pseudonym_and_time(self) -> IntArray:
        return np.lexsort((self.time, self.pseudonym))

    def values_of(self, order: IntArray) -> dict[str, FloatArray]:
        return {
            name: np.array(column + [np.nan] * (len(order) - len(column)))[order]
            for name, column in self.values.items()
        }

    def observed(self, order: IntArray) -> Observed:
        time, tick_of = np.unique(np.array(self.time), return_inverse=True)
        pseudonym = np.array(self.pseudonym, np.int64)
        nodes = self.regions.nodes
        return Observed(
            time=time,
            first_record_of=starts(np.bincount(pseudonym)),
            tick_of=tick_of[order].astype(np.int64),
            region_of=np.array(self.region, np.int64)[order],
            k=np.array(self.k, np.int64)[order],
            first_node_of=starts(np.array([len(region) for region in nodes], np.int64)),
            node=np.array([node for region in nodes for node in region], np.int32),
        )


def _lines(path: Path, form: type[Line]) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a file, numbered from 1."""
    decode = msgspec.json.Decoder(form).decode
    number = 0
    try:
        with path.open("rb") as lines:
            for number, text in enumerate(lines, 1):
                yield number, decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # their messages may quote the line
        raise InputError(f"{path}: line {number}: is not what such a file holds") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


class ReleaseWriter:
    """Writes the lines of a release file, one for every pseudonym of a tick."""

    def __init__(
        self,
        device_id: Sequence[str],
        network: RoadNetwork,
        settings: Settings,
        *,
        seed: int,
        auditor: "AuditorMapWriter",
    ) -> None:
        secret = blake2b(str(seed).encode()).digest()
        self._devices = DeviceTable(secret=secret, max_devices=len(device_id))
        for name in device_id:
            self._devices.slot(name)  # slots are given in order: slot i is device_id[i]
        self._device_id = device_id
        self._n_ticks = 0
        self._step_s = settings.output.time_step_s
        self._encoder = ReleaseEncoder(network, topic=settings.output.topic, form="device")
        self._auditor = auditor

    def lines(
        self, release: Release, refused: Int32Array, told: GroupValues | None, *, now: float
    ) -> list[bytes]:
        """Return the lines of one tick, by pseudonym: the order of groups is nobody's business."""
        messages, _ = self._encoder.encode(
            release, time=round_time(now, self._step_s), pseudonyms=self._names, told=told
        )
        lines = [message.payload for message in messages]
        self._n_ticks += 1
        # A name that is never used again: a life of its own would be one to follow.
        once = [-self._n_ticks] * len(refused)
        lines += [
            msgspec.json.encode(DeviceMessage(name, round(round_time(now, self._step_s), 3), (), 0))
            for name in self._names(refused.tolist(), once)
        ]
        return [line + b"\n" for line in sorted(lines)]

    def _names(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        names = self._devices.pseudonyms(slots, versions)
        self._auditor.note(names, [self._device_id[slot] for slot in slots])
        return names


class AuditorMapWriter:
    """Writes down, once each, which device a pseudonym was; for the auditor alone."""

    def __init__(self, lines: BinaryIO | None) -> None:
        self._lines = lines
        self._noted: set[str] = set()

    def note(self, names: Sequence[str], devices: Sequence[str]) -> None:
        """Take note of the devices behind some pseudonyms."""
        if self._lines is None:
            return
        for name, device in zip(names, devices, strict=True):
            if name not in self._noted:
                self._noted.add(name)
                line = {"pseudonym": name, "device": device}
                self._lines.write(msgspec.json.encode(line) + b"\n")
