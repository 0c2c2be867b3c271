"""Public ways to blur positions, as the frontier publishes and reads: each device once a minute."""

from typing import NamedTuple

import numpy as np

from anonymizer.audit.foreign.release import BareRelease, CountRelease, plane_of
from anonymizer.audit.publications import NodeDivision, PlaceReading, Traffic
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from experiments.baselines import NamedPlaces
from experiments.blur_schemes import BlurScheme

LEAST_NOISE_M = 0.01
"""Scale of the noise of exact places, so that one attack serves all."""


class SchemePlaces(NamedTuple):
    """What a scheme publishes."""

    places: NamedPlaces
    """Their scale is half of the mean distance to the true places, which the adversary knows."""
    owner: IntArray | None
    """Device of each name, shape (names,); None: there are no names but runs that were joined."""
    change_m: float
    """Scale of the noise that is new from minute to minute, likewise."""

    @property
    def is_exact(self) -> bool:
        """Whether places are true."""
        return self.places.scale_m <= LEAST_NOISE_M

    @property
    def is_steady(self) -> bool:
        """Whether less than half of the noise is new each minute."""
        return self.change_m < self.places.scale_m / 2

    def read(self, divisions: tuple[NodeDivision, ...]) -> list[PlaceReading]:
        """Return what is read: noise is undone as that of planar Laplace is."""
        if self.is_exact:
            return [self.places.read(each) for each in divisions]
        return self.places.deconvolved(divisions)


def published(
    scheme: BlurScheme, traffic: Traffic, network: RoadNetwork, rng: np.random.Generator
) -> SchemePlaces | None:
    """Publish the places of all devices with a scheme; None: it publishes counts."""
    trace = _once_a_minute(traffic, network)
    release, owner = scheme.publish(trace, rng)
    if isinstance(release, CountRelease):
        return None
    shown = release.trace
    plane = plane_of(trace)
    nodes = plane.of(network.lat, network.lon)
    xy_m = plane.of(shown.lat, shown.lon)
    at = np.searchsorted(traffic.times, shown.ts)
    if isinstance(release, BareRelease):
        device = trace.device_of  # each row of the trace is one of the release
    else:
        owner = np.arange(trace.n_devices) if owner is None else owner
        device = owner[shown.device_of]
    placed = np.full((len(traffic.times), shown.n_devices, 2), np.nan)
    placed[at, shown.device_of] = xy_m
    moved_m = xy_m - nodes[traffic.place[at, device]]
    order = np.lexsort((shown.ts, shown.device_of))
    change_m = np.diff(moved_m[order], axis=0)[np.diff(shown.device_of[order]) == 0]
    places = NamedPlaces(traffic.times, nodes, placed, scale_m=_scale_m(moved_m))
    return SchemePlaces(places, owner, _scale_m(change_m))


def _once_a_minute(traffic: Traffic, network: RoadNetwork) -> Trace:
    time, device = np.nonzero(traffic.place >= 0)
    node = traffic.place[time, device]
    names = tuple(f"{number}" for number in range(traffic.place.shape[1]))
    return Trace(names, device, traffic.times[time], network.lat[node], network.lon[node])


def _scale_m(metres: FloatArray) -> float:
    """Return the scale of planar Laplace noise that is as far in the mean; it has twice its scale.

    `metres`: shape (n, 2).
    """
    far_m = np.hypot(*metres.T)
    return max(float(far_m.mean()) / 2, LEAST_NOISE_M) if len(far_m) else LEAST_NOISE_M
