"""Reports of simulated devices, each with its own phase and with receiver noise."""

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M, haversine_m
from anonymizer.domain.arrays import FloatArray
from simulator.reports import Reports, Rounds, Turns, uniform_draws
from simulator.traffic import Traffic

_DECIMALS = 7
"""Decimal places of a degree, about 1 cm, as receivers state it."""
_NOISE_STREAM = 0x6E6F697365
_MIN_COSINE = 0.01
"""Lower bound, because near a pole a metre can be any number of degrees of longitude."""


class FleetSource:
    """A source in which every device reports `rate_hz` times a second, see `Rounds`.

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
    states_speed
        Whether reports state the mean speed since the previous one, without noise.
    """

    def __init__(
        self,
        traffic: Traffic,
        *,
        rate_hz: float,
        duration_s: float | None = None,
        noise_m: float = 3.0,
        seed: int = 0,
        states_speed: bool = False,
    ) -> None:
        n = traffic.n_devices
        self._speeds = Speeds(n) if states_speed else None
        self.device_id = tuple(f"veh-{i:06d}" for i in range(n))
        order = np.random.default_rng([seed, _NOISE_STREAM]).permutation(n)
        self._rounds = Rounds(order, rate_hz=rate_hz, duration_s=duration_s)
        self.rate_per_s = self._rounds.rate_per_s
        self.n_total = self._rounds.n_total
        self._traffic = traffic
        self._noise_m = noise_m
        self._seed = seed

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        return self._rounds.next_due_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, at most the oldest `limit`."""
        turns = self._rounds.take(until_s, limit=limit)
        true = self._traffic.move(turns.device, turns.due_s)
        lat, lon = (each.round(_DECIMALS) for each in self._with_noise(turns, *true))
        speed = None if self._speeds is None else self._speeds.since(turns, *true)
        return Reports(turns.device, turns.due_s, lat, lon, speed_mps=speed)

    def _with_noise(
        self, turns: Turns, lat: FloatArray, lon: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add Gaussian noise that depends only on the number of the report (Box-Muller)."""
        draw = uniform_draws((self._seed, _NOISE_STREAM), turns, n_each=2)
        radius_m = self._noise_m * np.sqrt(-2 * np.log1p(-draw[:, 0]))
        angle = 2 * np.pi * draw[:, 1]
        north, east = radius_m * np.sin(angle), radius_m * np.cos(angle)
        cosine = np.maximum(np.cos(np.radians(lat)), _MIN_COSINE)
        noisy_lat = np.clip(lat + np.degrees(north / EARTH_RADIUS_M), -90.0, 90.0)
        noisy_lon = lon + np.degrees(east / (EARTH_RADIUS_M * cosine))
        return noisy_lat, (noisy_lon + 180.0) % 360.0 - 180.0


class Speeds:
    """The mean speed of each device since its previous report, by the places where it was.

    Parameters
    ----------
    n_devices
        Number of devices.
    """

    def __init__(self, n_devices: int) -> None:
        self._at = np.full((n_devices, 3), np.nan)
        """Latitude, longitude and seconds of the newest report of each device."""

    def since(self, turns: Turns, lat: FloatArray, lon: FloatArray) -> FloatArray:
        """Return the speed of each turn in metres per second, NaN at the first, shape (m,)."""
        order = np.argsort(turns.device, kind="stable")
        device = turns.device[order]
        now = np.column_stack([lat, lon, turns.due_s])[order]
        before = np.empty_like(now)
        before[1:] = now[:-1]
        first = np.ones(len(device), np.bool_)
        first[1:] = device[1:] != device[:-1]
        before[first] = self._at[device[first]]
        last = np.ones(len(device), np.bool_)
        last[:-1] = first[1:]
        self._at[device[last]] = now[last]
        speed = np.empty(len(device))
        moved_m = haversine_m(before[:, 0], before[:, 1], now[:, 0], now[:, 1])
        took_s = now[:, 2] - before[:, 2]
        speed[order] = np.divide(
            moved_m, took_s, out=np.full(len(device), np.nan), where=took_s > 0
        )
        return speed
