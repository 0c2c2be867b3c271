"""The stages as a keyed function of PyFlink, for `job.py`.

A stage is in memory. Its state in Flink is a journal of its packed inputs, and a snapshot in place
of the earlier ones, under the rule of `anonymizer.cluster.resident`. There are no timers: the clock
of a stage is that of its inputs, and bridges state every tick.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packed import FIRST, SECOND, Packed
from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

from anonymizer.app.compilation import compile_kernels
from anonymizer.app.gateway.preflight import check_files
from anonymizer.cluster.kafka import worker_secret
from anonymizer.cluster.records.stream_stage import warm_up_stages
from anonymizer.cluster.stage import Stage, UnreadableError
from anonymizer.cluster.worker import stage_makers
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.settings import load_settings, zones_of

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_LEAST_BYTES, _MOST_AGE_S, _INPUT_BYTES = 1 << 20, 300.0, 64


class _Resident:
    """A stage in memory, and how much its journal has grown since its snapshot."""

    def __init__(self, stage: Stage, n_snapshot_bytes: int, at_s: float) -> None:
        self.stage, self.n_snapshot_bytes, self.snapshot_at_s = stage, n_snapshot_bytes, at_s
        self.n_bytes = 0

    def passed(self, given: Packed) -> None:
        """Count an input that is in the journal."""
        self.n_bytes += len(given.value) + _INPUT_BYTES

    def is_due(self, at_s: float) -> bool:
        """Return whether a snapshot is to take the place of the journal."""
        return (
            self.n_bytes > max(_LEAST_BYTES, self.n_snapshot_bytes)
            or at_s - self.snapshot_at_s > _MOST_AGE_S
        )


class StageFunction(KeyedProcessFunction):
    """Runs stages of some kinds, by their keys; what is for others is passed on."""

    def __init__(self, config: str, kinds: frozenset[str]) -> None:
        self._config, self._kinds = config, kinds

    def open(self, runtime_context: RuntimeContext) -> None:
        """Read the settings, and compile what is not on the disk."""
        settings = load_settings(Path(self._config))
        network, streams = check_files(settings)
        compile_kernels()
        warm_up_stages(streams)
        zoned = with_zones(network, zones_of(settings.zones))
        makers = stage_makers(settings, zoned, streams, worker_secret(settings))
        self._make = {str(kind): make for kind, make in makers.items()}
        self._residents: dict[tuple[str, int], _Resident] = {}
        self._snapshot = runtime_context.get_state(ValueStateDescriptor("snapshot", BYTES))
        self._journal = runtime_context.get_list_state(ListStateDescriptor("journal", BYTES))

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        """Let a stage take an input, and yield what it sends."""
        del ctx  # it has the key, which is in the message as well
        given = read(value)
        if given is None:
            return
        if given.kind not in self._kinds:
            yield value
            return
        for send in self._taken(given, value):
            yield bytes(Packed(send.to, send.number, given.at_s, send.value))

    def _taken(self, given: Packed, value: bytes) -> list[Any]:
        """Return what a stage sends; nothing if it cannot read the input, or fails at it."""
        place = given.kind, given.number
        resident = self._residents.get(place) or self._restored(given)
        self._residents[place] = resident
        try:
            sends = resident.stage.take(given.value, at_s=given.at_s)
        except UnreadableError:
            return []
        except Exception:  # noqa: BLE001  whatever an input of others makes fail
            self._residents[place] = self._restored(given)
            return []
        self._journal.add(value)
        resident.passed(given)
        if resident.is_due(given.at_s):
            self._save(resident, given.at_s)
        return sends

    def _restored(self, given: Packed) -> _Resident:
        """Return a stage as its snapshot and its journal leave it."""
        stored = self._snapshot.value()
        resident = _Resident(self._make[given.kind](given.number), 0, given.at_s)
        if stored is not None:
            said = Packed.of(bytes(stored))
            resident.stage.restore(said.value)
            resident.n_snapshot_bytes, resident.snapshot_at_s = len(said.value), said.at_s
        for each in self._journal.get() or ():
            before = Packed.of(bytes(each))
            resident.stage.take(before.value, at_s=before.at_s)
            resident.passed(before)
        return resident

    def _save(self, resident: _Resident, at_s: float) -> None:
        snapshot = resident.stage.snapshot()
        self._snapshot.update(bytes(Packed("source", 0, at_s, snapshot)))
        self._journal.clear()
        resident.n_bytes, resident.n_snapshot_bytes = 0, len(snapshot)
        resident.snapshot_at_s = at_s


def read(value: bytes) -> Packed | None:
    """Return a message, or None for what is none and for what is only published."""
    try:
        return Packed.of(bytes(value))
    except ValueError:
        return None


def is_for_stages(value: bytes) -> bool:
    """Return whether a message is for a stage: others are published."""
    given = read(value)
    return given is not None and given.kind in FIRST | SECOND
