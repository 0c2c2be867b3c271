"""Reports of simulated devices, each with its own phase and with receiver noise."""

import math

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import FloatArray
from simulator.reports import Reports
from simulator.traffic import Traffic

_DECIMALS = 7
"""Decimal places of a degree, about 1 cm, as receivers state it."""
_NOISE_STREAM = 0x6E6F697365
_MIN_COSINE = 0.01
"""Lower bound, because near a pole a metre can be any number of degrees of longitude."""


class FleetSource:
    """A source in which every device reports `rate_hz` times a second.

    Report m is due at m / (devices * rate) and comes from device m of a shuffled round. So the
    load is as even as possible, and each device keeps its phase.

    Parameters
    ----------
    traffic
        The devices and their movement.
    rate_hz
        Reports of each device per second.
    duration_s
        When to end, in seconds; None: never.
    noise_m
        Standard deviation of a reported position, to the north and to the east.
    seed
        Seed of the phases and of the noise.
    """

    def __init__(
        self,
        traffic: Traffic,
        *,
        rate_hz: float,
        duration_s: float | None = None,
        noise_m: float = 3.0,
        seed: int = 0,
    ) -> None:
        n = traffic.n_devices
        self.device_id = tuple(f"veh-{i:06d}" for i in range(n))
        self.rate_per_s = n * rate_hz
        self.n_total = None if duration_s is None else max(1, round(duration_s * self.rate_per_s))
        self._traffic = traffic
        self._noise_m = noise_m
        self._seed = seed
        self._round = np.random.default_rng([seed, _NOISE_STREAM]).permutation(n)
        self._first = 0

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        over = self.n_total is not None and self._first >= self.n_total
        return math.inf if over else self._first / self.rate_per_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, at most the oldest `limit`."""
        stop = min(math.floor(until_s * self.rate_per_s) + 1, self._first + limit)
        if self.n_total is not None:
            stop = min(stop, self.n_total)
        number = np.arange(self._first, max(stop, self._first))
        device = self._round[number % len(self._round)]
        due_s = number / self.rate_per_s
        lat, lon = self._traffic.move(device, due_s)
        lat, lon = self._with_noise(lat, lon)
        self._first += len(number)
        return Reports(device, due_s, lat.round(_DECIMALS), lon.round(_DECIMALS))

    def _with_noise(self, lat: FloatArray, lon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add Gaussian noise that depends only on the number of the report (Box-Muller).

        One step of the Philox counter yields four numbers, of which a report uses two. So the
        noise is the same however the reports are divided into batches.
        """
        bits = np.random.Philox(key=np.array([self._seed, _NOISE_STREAM], np.uint64))
        draw = np.random.Generator(bits.advance(self._first)).random((len(lat), 4))
        radius_m = self._noise_m * np.sqrt(-2 * np.log1p(-draw[:, 0]))
        angle = 2 * np.pi * draw[:, 1]
        north, east = radius_m * np.sin(angle), radius_m * np.cos(angle)
        cosine = np.maximum(np.cos(np.radians(lat)), _MIN_COSINE)
        noisy_lat = np.clip(lat + np.degrees(north / EARTH_RADIUS_M), -90.0, 90.0)
        noisy_lon = lon + np.degrees(east / (EARTH_RADIUS_M * cosine))
        return noisy_lat, (noisy_lon + 180.0) % 360.0 - 180.0
