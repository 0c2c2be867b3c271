"""Tracking through noise: exact places give a device away, very noisy ones say nothing."""

import numpy as np
import pytest

from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit.mathematics.motion import Motion, learn_motion
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.networks import load_network
from experiments.noisy_tracking import NoisyPlaces, track_noisy

NETWORK = load_network("grid:6x6")
X_M, Y_M = tangent_plane(NETWORK)
N_STEPS = 6


def wandering() -> Int32Array:
    """Return the nodes of 8 devices at each step."""
    rng = np.random.default_rng(5)
    node = rng.choice(NETWORK.n_nodes, 8, replace=False).astype(np.int32)
    place = [node]
    for _ in range(N_STEPS - 1):
        first, degree = NETWORK.first_arc_of[node], np.diff(NETWORK.first_arc_of)[node]
        node = NETWORK.neighbour_of[first + rng.integers(0, degree)]
        place.append(node)
    return np.stack(place)


PLACE = wandering()
MOTION: Motion = learn_motion(NETWORK, PLACE, learned_from=np.ones(8, bool), tick_s=10.0)
AT = np.array([2, N_STEPS - 1])


def believed(scale_m: float, *, published: tuple[int, ...] = tuple(range(N_STEPS))) -> FloatArray:
    """Return the belief in the true nodes of all devices, shape (devices, len(AT))."""
    rng = np.random.default_rng(1)
    radius, angle = rng.gamma(2.0, scale_m, PLACE.shape), rng.uniform(0, 2 * np.pi, PLACE.shape)
    x_m = np.full(PLACE.shape, np.nan)
    y_m = x_m.copy()
    for step in published:
        x_m[step] = X_M[PLACE[step]] + radius[step] * np.cos(angle[step])
        y_m[step] = Y_M[PLACE[step]] + radius[step] * np.sin(angle[step])
    places = NoisyPlaces(x_m, y_m, scale_m, X_M, Y_M)
    belief = track_noisy(places, MOTION, start=PLACE[0].astype(np.int64), at=AT)
    assert belief.sum(axis=2) == pytest.approx(1)
    found: FloatArray = np.take_along_axis(belief, PLACE[AT].T[:, :, None], axis=2)[:, :, 0]
    return found


def test_exact_places_give_every_device_away() -> None:
    assert believed(0.01).min() > 0.99


def test_more_noise_says_less_and_very_much_says_nothing() -> None:
    nothing = believed(1.0, published=())
    little, much, most = (believed(scale_m).mean() for scale_m in (30.0, 100.0, 1e7))
    assert little > much > nothing.mean()
    assert most == pytest.approx(nothing.mean(), abs=0.02)


def test_places_published_later_find_the_name_of_a_device_that_can_have_come_there() -> None:
    """One device alone in its corner: its name is known from the first place on."""
    found = believed(0.01, published=(2, 5))
    assert found[:, 1].mean() > believed(1.0, published=())[:, 1].mean() * 2


def test_a_place_that_contradicts_the_belief_replaces_it() -> None:
    x_m, y_m = np.full((3, 1), np.nan), np.full((3, 1), np.nan)
    x_m[:, 0], y_m[:, 0] = X_M[[0, 0, 35]], Y_M[[0, 0, 35]]
    places = NoisyPlaces(x_m, y_m, 1.0, X_M, Y_M)
    belief = track_noisy(places, MOTION, start=np.array([0]), at=np.array([2]))
    assert belief[0, 0, 35] > 0.9
