"""Simulated sensors that stand still: air quality and temperature at junctions of a road network.

Temperature follows the day; nitrogen dioxide follows the rush hours and depends on the place.
Everything is a pure function of network, seed, time and the number of the report.
"""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np

from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import whole_file
from anonymizer.pipeline.ports import Outgoing
from simulator.encoding import topic_level
from simulator.reports import Rounds, Turns, uniform_draws

READINGS = {"no2_ugm3": (0.0, 400.0), "temperature_c": (-40.0, 60.0)}
"""Lowest and highest value of each reading."""
_STREAM = 0x73656E736F7273
_DAY_S = 86400.0
_MEAN_C, _SWING_C = 12.0, 6.0
_WARMEST_S = 15 * 3600.0
_RUSH_S = (8 * 3600.0, 17.5 * 3600.0)
_RUSH_WIDTH_S = 5400.0


class SensorNetwork:
    """A source in which every sensor reports `rate_hz` times a second, at its own phase.

    Parameters
    ----------
    network
        Sensors stand at random nodes, at distinct ones as far as there are enough.
    n_sensors
        Number of sensors.
    rate_hz
        Reports of each sensor per second.
    duration_s
        When to end, in seconds; None: never.
    topic
        Topic with the placeholder `{device}`.
    states_position
        Whether messages state the position. Otherwise they contain readings alone, and a gateway
        needs the registry that `write_registry` writes.
    seed
        Seed of places and readings.

    Raises
    ------
    InputError
        If the network has no nodes or no coordinates.
    """

    def __init__(
        self,
        network: RoadNetwork,
        n_sensors: int,
        *,
        rate_hz: float,
        duration_s: float | None = None,
        topic: str = "sensors/{device}",
        states_position: bool = True,
        seed: int = 0,
    ) -> None:
        if not network.n_nodes or not network.has_coordinates:
            raise InputError("the network has no nodes with coordinates: nothing can stand on it")
        self.device_id = tuple(f"sensor-{i:04d}" for i in range(n_sensors))
        rng = np.random.default_rng([seed, _STREAM])
        self._rounds = Rounds(rng.permutation(n_sensors), rate_hz=rate_hz, duration_s=duration_s)
        self.rate_per_s = self._rounds.rate_per_s
        self.n_total = self._rounds.n_total
        node = rng.choice(network.n_nodes, n_sensors, replace=n_sensors > network.n_nodes)
        self._lat, self._lon = network.lat[node], network.lon[node]
        self._traffic = rng.lognormal(0.0, 0.4, n_sensors)
        self._shade_c = rng.normal(0.0, 0.7, n_sensors)
        self._topics = [topic.replace("{device}", topic_level(each)) for each in self.device_id]
        self._states_position = states_position
        self._seed = seed

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        return self._rounds.next_due_s

    def take(self, until_s: float, *, limit: int) -> Turns:
        """Return the reports due up to a moment, at most the oldest `limit`."""
        return self._rounds.take(until_s, limit=limit)

    def encode(self, reports: Turns, ts: FloatArray) -> list[Outgoing]:
        """Return the reports as messages: native positions with readings, or readings alone."""
        device = reports.device
        sensed = self._sensed(reports, ts)
        form = b'"no2_ugm3":%.1f,"temperature_c":%.1f}'
        columns: tuple[FloatArray, ...] = (ts, *sensed)
        if self._states_position:
            columns = (ts, self._lat[device], self._lon[device], *sensed)
            form = b'"lat":%.7f,"lon":%.7f,"readings":{' + form + b"}"
        form = b'{"ts":%.3f,' + form
        topics = [self._topics[each] for each in device.tolist()]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Outgoing(topic, form % row) for topic, row in zip(topics, rows, strict=True)]

    def write_registry(self, path: Path) -> None:
        """Write where the sensors stand: csv with `device_id`, `lat` and `lon`.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        places = zip(self.device_id, self._lat.tolist(), self._lon.tolist(), strict=True)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("device_id", "lat", "lon"))
        writer.writerows((each, f"{lat:.7f}", f"{lon:.7f}") for each, lat, lon in places)
        with whole_file(path) as file:
            file.write(text.getvalue().encode())

    def _sensed(self, reports: Turns, ts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return nitrogen dioxide in µg/m³ and temperature in °C, shape (m,) each."""
        noise = uniform_draws((self._seed, _STREAM), reports, n_each=2) - 0.5
        at_s = ts % _DAY_S
        rush = sum(np.exp(-(((at_s - peak_s) / _RUSH_WIDTH_S) ** 2)) for peak_s in _RUSH_S)
        no2 = self._traffic[reports.device] * (15.0 + 35.0 * rush) * (1.0 + 0.2 * noise[:, 0])
        wave = np.cos(2 * math.pi * (at_s - _WARMEST_S) / _DAY_S)
        temperature = _MEAN_C + _SWING_C * wave + self._shade_c[reports.device] + noise[:, 1]
        return (
            np.clip(no2, *READINGS["no2_ugm3"]),
            np.clip(temperature, *READINGS["temperature_c"]),
        )


def settings_text(network: str, topic: str, registry: Path | None) -> str:
    """Return settings of a gateway that takes mobile devices and these sensors.

    Parameters
    ----------
    network
        Where both are.
    topic
        Topic of the sensors, with the placeholder `{device}`.
    registry
        The registry that was written, None if the messages state positions.
    """
    lines = [
        "# Settings for `simulator run` and `simulator sensors`: anonymizer serve --config FILE",
        "[network]",
        f"source = {json.dumps(network)}",
        "\n[[inputs]]",
        'topic = "positions/{device}"',
        "\n[[inputs]]",
        f"topic = {json.dumps(topic)}",
        'kind = "fixed"                     # cloaked; or "public": as they are',
    ]
    if registry is not None:
        lines.append(f"registry = {json.dumps(str(registry))}")
    for name, (lo, hi) in READINGS.items():
        lines += ["\n[[readings]]", f'name = "{name}"', f"lo = {lo}", f"hi = {hi}", "step = 1.0"]
    return "\n".join(lines) + "\n"
