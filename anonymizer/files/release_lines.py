"""Release files and auditor's maps, as JSON lines: readers and writers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

import msgspec
import numpy as np

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ledger import NOT_PUBLISHED
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import DeviceMessage
from anonymizer.pipeline.positions.tick.engine import TickRelease

_LINES_PER_REPORT = 50_000

Line = TypeVar("Line")


class _ReleaseLine(msgspec.Struct, frozen=True, gc=False):
    pseudonym: str
    time: float
    region: msgspec.Raw
    k: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    readings: dict[str, dict[str, float | None] | None] | None = None
    values: dict[str, float | None] | None = None
    until: float | None = None
    network: str | None = None


class _MapLine(msgspec.Struct, frozen=True, gc=False):
    pseudonym: str
    device: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Released:
    """A release file."""

    observed: Observed
    """What it publishes."""
    pseudonym: tuple[str, ...]
    """Name of each pseudonym of `observed`, in the order of the file."""
    n_suppressed: int
    """Lines with region []. They count suppressed positions. The live service publishes nothing for
    these, so no attack uses them."""
    values: Mapping[str, FloatArray]
    """Readings published with pseudonyms, by attribute: one for each record of `observed`, NaN for
    none, shape (records,)."""
    until: FloatArray
    """Unix seconds until which each record of `observed` holds, infinite where the file does not
    say, shape (records,)."""
    means: Mapping[str, FloatArray]
    """Mean readings of the group of each record, by attribute, as `values`."""


def read_release(
    path: str | Path,
    network: RoadNetwork,
    *,
    content: bytes | None = None,
    progress: Callable[[int], None] = lambda _lines: None,
) -> Released:
    """Read PUB.jsonl: lines `{"pseudonym", "time", "region": [node ids], "k"}`, in any order.

    A line may have `"values": {attribute: number or null}` and `"readings": {attribute:
    {statistic: number}}`, of which the means are read, and `"network": version`, which older files
    lack: of them it is only checked that the network has their nodes. Other fields are ignored.

    Parameters
    ----------
    network
        Its `node_id` names the nodes.
    content
        What such a file contains; `path` is then only a name for messages. None: read the file.
    progress
        Called with the number of lines read since the previous call.

    Raises
    ------
    InputError
        If the file cannot be read, contains no region, is of another network, names a node twice
        in a region or one that the network lacks, or if a pseudonym publishes twice at one time.
        The message gives the line or a count, never the content.

    Notes
    -----
    About 2 µs per line: a region is decoded once and then recognized by its bytes.
    """
    path = Path(path)
    read = _Columns(_Regions(network))
    version = network_version(network)
    n_suppressed = 0
    for number, line in _lines(path, _ReleaseLine, content):
        if number % _LINES_PER_REPORT == 0:
            progress(_LINES_PER_REPORT)
        if line.network not in {None, version}:
            raise InputError(
                f"{path}: line {number}: is of another network, version {line.network}; the one "
                f"given has version {version}. Name the one that it was cloaked with, and the mode "
                "(adka knows junctions alone)"
            )
        try:
            region = read.regions.number_of(line.region)
        except KeyError:
            raise InputError(
                f"{path}: line {number}: names a node that the network lacks: the release is of "
                "another network, or of another mode (adka knows junctions alone)"
            ) from None
        except (ValueError, TypeError):
            raise InputError(
                f"{path}: line {number}: region is not a list of distinct nodes"
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
    return Released(
        observed,
        tuple(read.pseudonym_number),
        n_suppressed,
        read.in_columns(read.values, order),
        np.array(read.until)[order],
        read.in_columns(read.means, order),
    )


def read_auditor_map(
    path: str | Path,
    *,
    pseudonym: Sequence[str],
    device_id: Sequence[str],
    content: bytes | None = None,
) -> IntArray:
    """Read MAP.jsonl: lines `{"pseudonym", "device"}`; return the device of each pseudonym.

    Parameters
    ----------
    pseudonym
        Pseudonyms to look up; the file may contain more.
    device_id
        Names of the devices; the result contains indices into it.
    content
        As for `read_release`.

    Raises
    ------
    InputError
        If the file cannot be read, a pseudonym is missing or has two devices, or a device is not
        in `device_id`. The message gives counts, never names.
    """
    path = Path(path)
    device_of: dict[str, str] = {}
    for number, line in _lines(path, _MapLine, content):
        device = plain_id(line.device)
        if device_of.setdefault(line.pseudonym, device) != device:
            raise InputError(f"{path}: line {number}: a pseudonym is two devices")
    index = {name: i for i, name in enumerate(device_id)}
    found = [index.get(device_of[name], -1) if name in device_of else None for name in pseudonym]
    if n_missing := found.count(None):
        raise InputError(f"{path}: lacks {n_missing} of {len(found)} pseudonyms of the release")
    if n_unknown := found.count(-1):
        raise InputError(f"{path}: names {n_unknown} devices that the trace lacks")
    return np.array(found, np.int64)


class _Regions:
    """Numbers of distinct regions, in the order of their first appearance."""

    def __init__(self, network: RoadNetwork) -> None:
        self.nodes: list[tuple[int, ...]] = []
        self._node_of = {name: i for i, name in enumerate(network.node_id.tolist())}
        self._number_of_bytes: dict[bytes, int | None] = {}
        self._number_of_nodes: dict[tuple[int, ...], int] = {}

    def number_of(self, raw: msgspec.Raw) -> int | None:
        """Return the number of a region, None for an empty one.

        Raises ValueError, KeyError or TypeError if it is not a list of distinct nodes.
        """
        key = bytes(raw)
        if key not in self._number_of_bytes:
            names = msgspec.json.decode(key, type=list[int | str])
            nodes = tuple(self._node_of[name] for name in names)
            if len(set(nodes)) < len(nodes):
                raise ValueError("a region contains a node twice")
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
    until: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    """By attribute, up to the last line that has a value."""
    means: dict[str, list[float]] = field(default_factory=dict)

    def append(self, line: _ReleaseLine, region: int) -> None:
        number = self.pseudonym_number.setdefault(line.pseudonym, len(self.pseudonym_number))
        self.pseudonym.append(number)
        self.time.append(line.time)
        self.region.append(region)
        self.k.append(line.k)
        self.until.append(math.inf if line.until is None else line.until)
        for name, value in (line.values or {}).items():
            self._note(self.values, name, value)
        for name, statistics in (line.readings or {}).items():
            self._note(self.means, name, (statistics or {}).get("mean"))

    def _note(self, columns: dict[str, list[float]], name: str, value: float | None) -> None:
        column = columns.setdefault(name, [])
        column += [np.nan] * (len(self.k) - 1 - len(column))
        column.append(np.nan if value is None else value)

    def by_pseudonym_and_time(self) -> IntArray:
        return np.lexsort((self.time, self.pseudonym))

    def in_columns(self, columns: dict[str, list[float]], order: IntArray) -> dict[str, FloatArray]:
        return {
            name: np.array(column + [np.nan] * (len(order) - len(column)))[order]
            for name, column in columns.items()
        }

    def observed(self, order: IntArray) -> Observed:
        time, tick_of = np.unique(np.array(self.time), return_inverse=True)
        pseudonym = np.array(self.pseudonym, np.int64)
        nodes = self.regions.nodes
        return Observed(
            time=time,
            first_record_of=starts_of(np.bincount(pseudonym)),
            tick_of=tick_of[order].astype(np.int64),
            region_of=np.array(self.region, np.int64)[order],
            k=np.array(self.k, np.int64)[order],
            first_node_of=starts_of(np.array([len(region) for region in nodes], np.int64)),
            node=np.array([node for region in nodes for node in region], np.int32),
        )


def _lines(path: Path, form: type[Line], content: bytes | None) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a file, or of its content, numbered from 1."""
    decode = msgspec.json.Decoder(form).decode
    number = 0
    try:
        with path.open("rb") if content is None else BytesIO(content) as lines:
            for number, text in enumerate(lines, 1):
                yield number, decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # may quote the line
        raise InputError(f"{path}: line {number}: is not a line of such a file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


class ReleaseWriter:
    """Writes the lines of a release file, one per pseudonym and tick.

    Parameters
    ----------
    seed
        Key of the pseudonyms.
    auditor
        Notes the device behind each pseudonym.
    """

    def __init__(self, device_id: Sequence[str], *, seed: int, auditor: "AuditorMapWriter") -> None:
        secret = blake2b(str(seed).encode()).digest()
        self._devices = DeviceTable(secret=secret, max_devices=len(device_id))
        for name in device_id:
            self._devices.slot(name)  # slots are assigned in order: slot i is device_id[i]
        self._device_id = device_id
        self._auditor = auditor

    def lines(self, tick: TickRelease, messages: Sequence[Outgoing]) -> list[bytes]:
        """Return the lines of one tick, sorted: their order must not reveal the groups.

        A suppressed position is a line without a pseudonym.

        `messages`: those about the groups of the tick, one for each pseudonym.
        """
        lines = [message.payload.rstrip() for message in messages]  # the spaces are for brokers
        # Without a pseudonym: it would say, to whoever gets its key, whom the release is silent on.
        nobody = DeviceMessage("", round(tick.published_s, 3), (), 0)
        lines += [msgspec.json.encode(nobody)] * int(NOT_PUBLISHED[tick.outcome].sum())
        return [line + b"\n" for line in sorted(lines)]

    def pseudonyms(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        """Return the pseudonym of each slot in a version, and note whose it is."""
        names = self._devices.pseudonyms(slots, versions)
        self._auditor.note(names, [self._device_id[slot] for slot in slots])
        return names


class AuditorMapWriter:
    """Writes the device of each pseudonym, once; for the auditor only."""

    def __init__(self, lines: BinaryIO | None) -> None:
        self._lines = lines
        self._noted: set[str] = set()

    def note(self, names: Sequence[str], devices: Sequence[str]) -> None:
        """Write the devices of these pseudonyms, unless written before."""
        if self._lines is None:
            return
        for name, device in zip(names, devices, strict=True):
            if name not in self._noted:
                self._noted.add(name)
                line = {"pseudonym": name, "device": device}
                self._lines.write(msgspec.json.encode(line) + b"\n")
