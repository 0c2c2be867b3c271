"""The lines of a release file, and of the auditor's map that goes with it."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from anonymizer.algorithms.positions.protection import round_time
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.encoding import DeviceMessage, ReleaseEncoder
from anonymizer.pipeline.positions.group_readings import Told
from anonymizer.settings import Settings


class Scribe:
    """Writes the lines of a release file, one for every pseudonym of a tick."""

    def __init__(
        self,
        device_id: Sequence[str],
        network: RoadNetwork,
        settings: Settings,
        *,
        seed: int,
        auditor: "AuditorMap",
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
        self, release: Release, refused: Int32Array, told: Told | None, *, now: float
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


class AuditorMap:
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
