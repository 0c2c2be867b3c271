"""Membership: was somebody in this release? Asked at low false-positive rates.

The adversary knows what is to be found (the true path, or the true row) and makes shadow releases,
each of a random half of a pool of others and of the target or not. What a release says where the
target would be has one distribution with it and another one without it; their likelihood ratio is
the score [1]_. The success is the true-positive rate at a false-positive rate of 1 % or 0.1 %, over
all targets: an attack that is certain about a few is found by that, and not by an average [1]_.

References
----------
.. [1] N. Carlini, S. Chien, M. Nasr, S. Song, A. Terzis, F. Tramèr, "Membership inference attacks
   from first principles", IEEE Symposium on Security and Privacy, 2022.
"""

import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.audit import Case
from anonymizer.audit.publications import (
    Traffic,
    counting_times,
    last_records,
    true_traffic,
)
from anonymizer.audit.read_counts import NoisyCounts, exact_counts, read_safe
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.settings import CountSettings, Settings
from experiments.broken_releases import raw_release
from experiments.scores import Score
from experiments.tracking_experiment import drive, released

RATES = (0.01, 0.001)
"""False-positive rates at which the success is read."""
SECONDS = 600
REPORT_S = 10.0
EVERY_S = 60.0
_PRIOR_SHADOWS = 20.0
"""Shadows that what is usual of all targets weighs as much as, in what is usual of one."""
_FOLDS = 2
_READERS = 4
_AREAS = 8
"""Areas between which trips are counted."""

Features: TypeAlias = tuple[FloatArray, BoolArray]
"""What each shadow release says where each target would be, shape (shadows, targets, numbers); and
which target is in which shadow, shape (shadows, targets)."""


def run_membership(
    network: RoadNetwork,
    *,
    n_devices: int,
    n_shadows: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Attack positions, counts and trip counts of random halves of a fleet.

    Parameters
    ----------
    n_devices
        In the pool; half of them are in each release.
    """
    pool = drive(network, n_devices, seconds=SECONDS, seed=seed)
    pool = _some(pool, (pool.ts - pool.ts[0]) % REPORT_S == 0)
    reports = reports_of(pool, network, Settings())
    times = counting_times(pool.ts, every_s=EVERY_S)
    traffic = true_traffic(reports, network, times, present_s=EVERY_S)
    rng = np.random.default_rng(seed)
    is_in = rng.random((n_shadows, n_devices)) < 1 / 2
    for name, publish in cloaked_and_raw(network).items():
        progress(f"membership: {name}")
        begun = time.process_time()
        said = [
            read_positions(*publish(_some(pool, row[pool.device_of]), seed + s), traffic)
            for s, row in enumerate(is_in)
        ]
        yield from scores_of(name, (np.stack(said), is_in), begun)
    for name, read in _counts(network, traffic).items():
        progress(f"membership: {name}")
        begun = time.process_time()
        yield from scores_of(name, (np.stack([read(row) for row in is_in]), is_in), begun)


_Publish: TypeAlias = Callable[[Trace, int], tuple[Case, FloatArray]]


def cloaked_and_raw(network: RoadNetwork) -> dict[str, _Publish]:
    """Return the ways to publish positions."""

    def cloaked(mode: str) -> _Publish:
        settings = Settings.model_validate({"region": {"mode": mode}})

        def publish(trace: Trace, seed: int) -> tuple[Case, FloatArray]:
            case, release = released(trace, network, settings, tick_s=REPORT_S, seed=seed)
            return case, release.until

        return publish

    def raw(trace: Trace, seed: int) -> tuple[Case, FloatArray]:
        case, release = raw_release(trace, network, tick_s=REPORT_S, name_s=EVERY_S, seed=seed)
        return case, release.until

    return {"session": cloaked("session"), "snapshot": cloaked("snapshot"), "raw, no names": raw}


def read_positions(case: Case, until: FloatArray, traffic: Traffic) -> FloatArray:
    """Return what a release says where each device of a pool would be, shape (devices, numbers).

    Of the times at which it would be present: how many of them are in a region, the expected
    devices at its node, the same for its smallest region, and the published pseudonyms.
    """
    observed, place = case.observed, traffic.place
    n_devices = place.shape[1]
    found = np.zeros((n_devices, _READERS))
    n = np.zeros(n_devices)
    size = observed.region_size
    for t, records in enumerate(last_records(observed, traffic.times, until)):
        region = observed.region_of[records[records >= 0]]
        at, n_of = np.unique(region, return_counts=True)
        density, smallest = np.zeros(case.network.n_nodes), np.zeros(case.network.n_nodes)
        for r, many in zip(at.tolist(), n_of.tolist(), strict=True):
            nodes = observed.node[observed.first_node_of[r] : observed.first_node_of[r + 1]]
            density[nodes] += many / size[r]
            smallest[nodes] = np.maximum(smallest[nodes], 1.0 / size[r])
        there = place[t] >= 0
        node = place[t, there]
        found[there] += np.stack(
            [smallest[node] > 0, density[node], smallest[node], np.full(len(node), len(region))],
            axis=1,
        )
        n += there
    shares: FloatArray = found / np.maximum(n, 1)[:, None]
    return shares


_Reader: TypeAlias = Callable[[IntArray], FloatArray]
"""Publishes counts of devices by time and cell, given the cell of each over time."""


def _counts(network: RoadNetwork, traffic: Traffic) -> dict[str, Callable[[BoolArray], FloatArray]]:
    """Return readers of counts: of a random half, at the cells of each device over time."""
    k = CountSettings(privacy="k", every_s=EVERY_S)
    dp = CountSettings(every_s=EVERY_S, privacy="dp", period_s=3600.0)
    trips = dp.model_copy(update={"trip_areas": _AREAS})
    cell_of = compact_parts(network, k.cells).astype(np.int64)
    cell = np.where(traffic.place >= 0, cell_of[traffic.place], -1).T
    area = np.where(cell >= 0, cell * _AREAS // k.cells, -1)
    before, now = area[:, :-1], area[:, 1:]
    pair = np.where((before >= 0) & (now >= 0), before * _AREAS + now, -1)

    def at(where: IntArray, read: _Reader) -> Callable[[BoolArray], FloatArray]:
        time_of = np.arange(where.shape[1])

        def said(row: BoolArray) -> FloatArray:
            counts = read(np.where(row[:, None], where, -1))
            found: FloatArray = np.where(where >= 0, counts[time_of, where], 0.0)
            return found

        return said

    noisy, noisy_trips = NoisyCounts(dp, traffic.times, 1), NoisyCounts(trips, traffic.times, 2)
    return {
        "safe counts": at(cell, lambda each: read_safe(each, k)),
        "counts, ε = 1 an hour": at(cell, noisy.read),
        "trip counts, ε = 1 an hour": at(
            pair, lambda each: noisy_trips.with_noise(each, _AREAS * _AREAS)
        ),
        "exact counts": at(cell, lambda each: exact_counts(each, k.cells).astype(np.float64)),
    }


def scores_of(name: str, features: Features, begun: float) -> Iterator[Score]:
    """Yield the rows of a release: CPU time is that of the shadows, too, since `begun`."""
    said, is_in = features
    # The control asks of each target whether another one is in.
    other = np.roll(is_in, 1, axis=1)
    ratio, control = likelihood_ratio(said, is_in), likelihood_ratio(said, other)
    trained, trained_control = train(said, is_in), train(said, other)
    cpu_s = time.process_time() - begun
    for rate in RATES:
        at = f"at FPR {100 * rate:g} %"
        yield Score(
            f"membership: ratio, {at}", name, found_at(ratio, is_in, rate),
            found_at(control, other, rate), cpu_s, rate,
        )  # fmt: skip
        yield Score(
            f"membership: trained, {at}", name, found_at(trained, is_in, rate),
            found_at(trained_control, other, rate), cpu_s, rate,
        )  # fmt: skip


def likelihood_ratio(said: FloatArray, is_in: BoolArray) -> FloatArray:
    """Return the log-likelihood ratio of each target in each shadow, given all other shadows.

    What is said is normal with a mean of each target's own, with it and without it, and with one
    covariance. The difference of the means is drawn to that of all targets. Shape of `is_in`.
    """
    n_shadows, _, n_numbers = said.shape
    scale = said.std(axis=0)
    varies = scale > 0
    unit = np.where(varies, (said - said.mean(axis=0)) / np.where(varies, scale, 1.0), 0.0)
    weight = is_in[:, :, None].astype(np.float64)
    ratio = np.zeros(is_in.shape)
    for s in range(n_shadows):
        others = np.arange(n_shadows) != s
        w, x = weight[others], unit[others]
        n_in = w.sum(axis=0)
        n_out = len(x) - n_in
        inside = (w * x).sum(axis=0) / np.maximum(n_in, 1)
        outside = ((1 - w) * x).sum(axis=0) / np.maximum(n_out, 1)
        apart = inside - outside
        share = len(x) / (len(x) + _PRIOR_SHADOWS)
        apart = share * apart + (1 - share) * apart.mean(axis=0)
        rest = (x - np.where(w > 0, inside, outside)).reshape(-1, n_numbers)
        inverse = np.linalg.pinv(rest.T @ rest / len(rest) + 1e-6 * np.eye(n_numbers))
        middle = (inside + outside) / 2
        ratio[s] = np.einsum("vi,ij,vj->v", unit[s] - middle, inverse, apart)
    return ratio


def train(said: FloatArray, is_in: BoolArray) -> FloatArray:
    """Return the scores of a model that is trained on the other half of the shadows."""
    n_shadows = len(said)
    fold = np.arange(n_shadows) % _FOLDS
    found = np.zeros(is_in.shape)
    for each in range(_FOLDS):
        known = fold != each
        mean, scale = said[known].mean(axis=0), said[known].std(axis=0) + 1e-9
        unit = np.concatenate([(said - mean) / scale, np.broadcast_to(mean, said.shape)], axis=2)
        model = HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.06, max_leaf_nodes=8, min_samples_leaf=80, random_state=0
        )
        asked = unit[~known]
        with threadpool_limits(1):  # more threads wait for each other longer than they work
            model.fit(unit[known].reshape(-1, unit.shape[2]), is_in[known].ravel())
            said_of = model.decision_function(asked.reshape(-1, unit.shape[2]))
        found[~known] = said_of.reshape(asked.shape[:2])
    return found


def found_at(score: FloatArray, is_in: BoolArray, rate: float) -> FloatArray:
    """Return the share of each target's releases that are found, at a false-positive rate of all.

    Shape (targets,), NaN for a target that is in none. Scores equal to the bound are not found.
    """
    out = np.sort(score[~is_in])[::-1]
    bound = out[int(rate * len(out))]
    hit = ((score > bound) & is_in).sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares: FloatArray = hit / is_in.sum(axis=0)
    return shares


def _some(trace: Trace, kept: BoolArray) -> Trace:
    return Trace(
        trace.device_id, trace.device_of[kept], trace.ts[kept], trace.lat[kept], trace.lon[kept]
    )
