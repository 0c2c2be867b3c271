"""The case of a stream: what was published of positions, and what was true."""

from dataclasses import replace
from functools import partial

import numpy as np

from anonymizer.algorithms.positions.map_matching import LayeredLocator
from anonymizer.algorithms.positions.protection import TripEnds
from anonymizer.algorithms.positions.trip_classes import n_cells_of
from anonymizer.algorithms.positions.trust import Trust
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.app.trace_trust import TraceClaims
from anonymizer.audit.attacks.zones import discs_of
from anonymizer.audit.case import Case, Placebo, Reports, RevealedValues, TripsCase
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.presence import covered_in_zones
from anonymizer.audit.mathematics.truth import follow_devices, follow_in_districts
from anonymizer.audit.mathematics.value_linking import last_sensed
from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.fixes import check_coordinates
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace, layers_of, named_nodes
from anonymizer.files.release_lines import Released
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.outputs.windows import promised_k
from anonymizer.pipeline.positions.decode.headings import headings_in
from anonymizer.pipeline.positions.tick.factory import districts_of, pace_of, public_places
from anonymizer.settings import CountSettings, Settings, zones_of


def case_of(
    trace: Trace,
    released: Released,
    network: RoadNetwork,
    settings: Settings,
    *,
    device_of: IntArray | None,
    tick_s: float,
    sample: int = 0,
    seed: int = 0,
    earlier: Observed | None = None,
    placebo: Released | None = None,
) -> Case:
    """Return what the attacks need; the arguments are those of `audit_release`."""
    observed = released.observed
    reports = reports_of(trace, network, settings)
    far = far_from_trip_ends(trace, network, settings, tick_s=tick_s)[is_valid(trace)]
    follow = partial(
        follow_devices,
        observed,
        n_devices=trace.n_devices,
        ttl_s=settings.presence.ttl_s,
        device_of=device_of,
    )
    far_reports = reports.only(far)
    believed = _believed(trace, network, settings, tick_s=tick_s)[far]
    believed_reports = far_reports if believed.all() else far_reports.only(believed)
    truth = local = counted = follow(**far_reports._asdict())
    if settings.region.districts > 1:
        in_districts = partial(
            follow_in_districts,
            observed,
            district_of_node=districts_of(settings, network).of_node,
            ttl_s=settings.presence.ttl_s,
            device_of=device_of,
        )
        local = in_districts(**believed_reports._asdict())
    elif believed_reports is not far_reports:
        local = follow(**believed_reports._asdict())
    counts = believed & (far_reports.node >= 0)
    if settings.region.districts > 1:
        counted = in_districts(**far_reports.only(counts)._asdict(), leave=False)
    elif not counts.all():
        counted = follow(**far_reports.only(counts)._asdict())
    if settings.zones and network.has_coordinates:
        zone_of = with_zones(network, zones_of(settings.zones)).zone_of
        truth, local, counted = (
            covered_in_zones(each, observed, network, zone_of) for each in (truth, local, counted)
        )
    drawn = np.random.default_rng(seed).permutation(observed.n_pseudonyms)[: sample or None]
    return Case(
        observed=observed,
        truth=truth,
        local=local,
        counted=counted,
        network=network,
        class_of=indistinguishable_classes(observed),
        sampled=np.sort(drawn),
        piece_of=public_pieces(network, settings),
        density_steps=settings.adka.density_steps,
        tick_s=tick_s,
        reports=reports,
        seed=seed,
        values=_values(trace, released, settings, device_of),
        zones=discs_of(zone.shape for zone in settings.zones) if network.has_coordinates else (),
        earlier=earlier,
        until=released.until,
        placebo=None if placebo is None else _placebo(placebo, observed),
        counts=_safe_counts(settings),
        trips=_published_trips(settings, network, reports, far),
    )


def _believed(
    trace: Trace, network: RoadNetwork, settings: Settings, *, tick_s: float
) -> BoolArray:
    """Return which valid positions the gateway believes, shape (n,)."""
    valid = np.flatnonzero(is_valid(trace))
    order = np.argsort(np.ceil(trace.ts[valid] / tick_s), kind="stable")
    trust = Trust(kept_s=pace_of(settings).longest_ttl_s + settings.tick.interval_s)
    believed = np.ones(len(valid), np.bool_)
    outcome = TraceClaims(trace, network, settings).judge(valid[order], trust, now=0.0)
    believed[order] = outcome == Outcome.HELD
    return believed


def _safe_counts(settings: Settings) -> CountSettings | None:
    """Return how counts are made that are published beside the positions; None for none."""
    counts = settings.counts
    if not counts.enabled or counts.privacy != "k":
        return None
    return counts.model_copy(update={"k": promised_k(settings)})


def _published_trips(
    settings: Settings, network: RoadNetwork, reports: Reports, far: BoolArray
) -> TripsCase | None:
    """Return how trips are published beside the positions; None for not at all."""
    out = settings.trips_out
    if not out.every_s:
        return None
    return TripsCase(
        settings.trips.published_rule,
        out.every_s,
        promised_k(settings),
        n_cells_of(network, settings.counts.k),
        Reports(reports.device[far], reports.ts[far], reports.node[far]),
    )


def _placebo(other: Released, observed: Observed) -> Placebo:
    """Return a release of other devices as if it had begun when this one did."""
    shift_s = float(observed.time[0] - other.observed.time[0])
    moved = replace(other.observed, time=other.observed.time + shift_s)
    return Placebo(moved, other.until + shift_s)


def reports_of(trace: Trace, network: RoadNetwork, settings: Settings) -> Reports:
    """Return the reports of a trace with valid coordinates, at their nodes."""
    node = named_nodes(trace, network)
    if node is None:
        locator = LayeredLocator(network, limit_m=settings.network.snap_limit_m)
        layer = layers_of(trace, network)
        node = locator.locate(trace.lat, trace.lon, headings_in(trace), layer)
    valid = is_valid(trace)
    return Reports(trace.device_of[valid], trace.ts[valid], node[valid])


def far_from_trip_ends(
    trace: Trace, network: RoadNetwork, settings: Settings, *, tick_s: float
) -> BoolArray:
    """Return which rows protected trip ends do not hold back, shape (rows,).

    Whoever knows a trip knows which of its positions are held back, and that the device is covered
    where it was before them. All rows are far if trip ends are not protected.
    """
    if not settings.trips.enabled:
        return np.ones(trace.n_rows, bool)
    node, valid = named_nodes(trace, network), np.flatnonzero(is_valid(trace))
    lat, lon = (trace.lat, trace.lon) if node is None else (network.lat[node], network.lon[node])
    ends, far = TripEnds(settings.trips.rule), np.zeros(trace.n_rows, bool)
    number = np.ceil(trace.ts / tick_s)
    rows = valid[np.argsort(number[valid], kind="stable")]
    first = np.flatnonzero(np.diff(number[rows], prepend=-np.inf))
    closes_at = [*(number[rows[first]] * tick_s).tolist(), np.inf]
    for some, now in zip([*np.split(rows, first)[1:], rows[:0]], closes_at, strict=True):
        slot = trace.device_of[some].astype(np.int32)
        tag = some.astype(np.float64)
        tick = ends.tick(slot, trace.ts[some], lat[some], lon[some], tag=tag, now=now)
        far[tick.passed["tag"].astype(np.int64)] = True
    return far


def public_pieces(network: RoadNetwork, settings: Settings) -> IntArray | None:
    """Return the public pieces that regions are made of, as in `Case`."""
    if settings.region.mode == "adka":
        return None
    return public_places(network, settings)


def is_valid(trace: Trace) -> BoolArray:
    """Return which rows have valid coordinates, or tell a node, shape (rows,)."""
    if trace.node is not None or trace.located is not None:
        return np.ones(trace.n_rows, bool)
    valid: BoolArray = check_coordinates(trace.lat, trace.lon) == Outcome.HELD
    return valid


def _values(
    trace: Trace, released: Released, settings: Settings, device_of: IntArray | None
) -> tuple[RevealedValues, ...]:
    """Return the published values whose true values are known."""
    declared = [
        reading.attribute
        for reading in settings.readings
        if reading.name in released.values and reading.name in trace.readings
    ]
    if device_of is None or not declared:
        return ()
    rows = is_valid(trace)
    sensed = last_sensed(
        released.observed,
        attributes=declared,
        device=trace.device_of[rows],
        ts=trace.ts[rows],
        value=np.stack([trace.readings[each.name][rows] for each in declared], axis=1),
        device_of=device_of,
        ttl_s=settings.presence.ttl_s,
    )
    return tuple(
        RevealedValues(attribute, released.values[attribute.name], column)
        for attribute, column in zip(declared, sensed.T, strict=True)
    )
