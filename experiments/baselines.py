"""Other ways to publish the same traffic: safe counts, planar Laplace noise, central noise."""

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.spatial import cKDTree

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit.case import Reports
from anonymizer.audit.publications import EVERY_S, NodeDivision, PlaceReading, Traffic, read_devices
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.counts.counted_devices import CountedDevices
from anonymizer.outputs.counts.safe_messages import CountsMessage, SafeMessages
from anonymizer.settings import CountSettings
from experiments.noisy_density import NoisyDensity

_HOUR_S = 3600.0
_COUNT_TICK_S = 1.0


class SafeCounts:
    """Reads what `[counts]` publishes by default about the reports."""

    def __init__(self, reports: Reports, network: RoadNetwork, times: FloatArray) -> None:
        settings = CountSettings(privacy="k", every_s=EVERY_S)
        self.messages = safe_counts(reports, network, times, settings)
        self.cell_of_node = compact_parts(network, settings.cells)

    def read(self, division: NodeDivision) -> PlaceReading:
        """Spread the devices of each run of cells evenly over its nodes."""
        n_places = division.share.shape[1]
        n_at = np.zeros((len(self.messages) if division.side else 1, n_places))
        total, weight = np.zeros((2, n_places))
        for t, message in enumerate(self.messages):
            if message is None:
                continue
            for each in message.counts:
                cell = self.cell_of_node
                inside = (cell >= each.first) & (cell <= each.last)
                # Numbers are rounded down to multiples of k.
                n = (inside @ division.share) / inside.sum() * (each.devices + (message.k - 1) / 2)
                n_at[t if division.side else 0] += n
                if not isinstance(each.speed_mps, msgspec.UnsetType):
                    total, weight = total + n * each.speed_mps, weight + n
        speed = np.divide(total, weight, out=np.full(n_places, np.nan), where=weight > 0)
        return PlaceReading(n_at, speed_mps=speed)


def safe_counts(
    reports: Reports, network: RoadNetwork, times: FloatArray, settings: CountSettings
) -> list[CountsMessage | None]:
    """Return what a gateway with `[counts]` publishes at each time, None for nothing."""
    devices = CountedDevices(settings, network)
    safe = SafeMessages(settings, topic="", version="")
    order = np.argsort(reports.ts, kind="stable")
    slot, ts = reports.device[order].astype(np.int32), reports.ts[order]
    node = reports.node[order]
    ends = np.arange(ts[0] // _COUNT_TICK_S, times[-1] // _COUNT_TICK_S + 1) * _COUNT_TICK_S
    published: dict[float, CountsMessage] = {}
    done = 0
    for now, end in zip(ends.tolist(), np.searchsorted(ts, ends).tolist(), strict=True):
        rows = slice(done, end)
        ended = devices.tick(slot[rows], ts[rows], node[rows], now=now)
        done = end
        if ended is not None and ended.is_whole:
            message = safe.message(ended.tally(), ended.end_s)
            body = msgspec.json.decode(message.payload, type=CountsMessage)
            published[body.time] = body
    return [published.get(time) for time in times.tolist()]


class NamedPlaces:
    """Places with names, one a minute, that noise moved.

    Parameters
    ----------
    times
        As in `Traffic`.
    node_xy_m
        The nodes in metres, shape (nodes, 2).
    xy_m
        Published place of each name at each time, NaN for none, shape (times, names, 2).
    scale_m
        The probability of a place falls by a factor of e within this distance.
    """

    def __init__(
        self, times: FloatArray, node_xy_m: FloatArray, xy_m: FloatArray, *, scale_m: float
    ) -> None:
        self.scale_m = scale_m
        self.node_x_m, self.node_y_m = node_xy_m.T
        self.x_m, self.y_m = xy_m[..., 0], xy_m[..., 1]
        self.there = ~np.isnan(self.x_m)
        place = np.full(self.there.shape, -1, np.int32)
        place[self.there] = cKDTree(node_xy_m).query(xy_m[self.there])[1]
        way = np.hypot(np.diff(self.x_m, axis=0), np.diff(self.y_m, axis=0))
        speed = np.full(self.there.shape, np.nan)
        speed[1:] = way / EVERY_S
        self._shown = Traffic(times, place, speed)

    def read(self, division: NodeDivision) -> PlaceReading:
        """Take each device to be at the node nearest to its published place."""
        return read_devices(self._shown, division)

    def deconvolved(self, divisions: Sequence[NodeDivision]) -> list[PlaceReading]:
        """Undo the noise: spread each device by the density that explains all published places."""
        there = self.there
        found = NoisyDensity(
            self.node_x_m,
            self.node_y_m,
            self.x_m[there],
            self.y_m[there],
            scale_m=self.scale_m,
        )
        row = np.cumsum(there).reshape(there.shape) - 1
        tables = [
            np.zeros((len(there) if each.side else 1, each.share.shape[1])) for each in divisions
        ]
        for t, known in enumerate(there):
            n = found.expected(row[t, known])
            for table, division in zip(tables, divisions, strict=True):
                table[t if division.side else 0] += n @ division.share
        return [PlaceReading(table) for table in tables]


class PlanarLaplace(NamedPlaces):
    """Positions with names and planar Laplace noise (geo-indistinguishability), one a minute."""

    def __init__(
        self, traffic: Traffic, network: RoadNetwork, *, scale_m: float, rng: np.random.Generator
    ) -> None:
        nodes = np.stack(tangent_plane(network), axis=1)
        radius = rng.gamma(2.0, scale_m, traffic.place.shape)
        angle = rng.uniform(0.0, 2 * np.pi, traffic.place.shape)
        moved = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        xy_m = np.where(traffic.place[..., None] >= 0, nodes[traffic.place] + moved, np.nan)
        super().__init__(traffic.times, nodes, xy_m, scale_m=scale_m)


def central_noise(
    traffic: Traffic, division: NodeDivision, *, epsilon: float, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Return the counts of each minute with Laplace noise, and the scale of the noise.

    A device is in one place at each time, so that the budget of a device for an hour is divided by
    the counts of an hour. On roads, where it is at most on all that meet at a node, likewise.
    """
    scale = _HOUR_S / EVERY_S / epsilon
    n_nodes = division.share.shape[0]
    noisy = np.stack(
        [
            np.bincount(place[place >= 0], minlength=n_nodes) @ division.share
            for place in traffic.place
        ]
    )
    return noisy + rng.laplace(0.0, scale, noisy.shape), scale


def read_noisy(noisy: FloatArray, division: NodeDivision) -> PlaceReading:
    """Take noisy counts as they are, but for those below 0."""
    return _of_table(np.maximum(noisy, 0.0), division)


def read_shrunk(noisy: FloatArray, scale: float, division: NodeDivision) -> PlaceReading:
    """Shrink noisy counts towards the mean of their place, as far as noise explains them."""
    mean = np.maximum(noisy.mean(axis=0), 0.0)
    noise = 2 * scale**2
    varied = max(float(((noisy - noisy.mean(axis=0)) ** 2).mean()) - noise, 0.0)
    shrunk = mean + (noisy - mean) * varied / (varied + noise)
    return _of_table(np.maximum(shrunk, 0.0), division)


def _of_table(table: FloatArray, division: NodeDivision) -> PlaceReading:
    return PlaceReading(table if division.side else table.sum(axis=0, keepdims=True))
