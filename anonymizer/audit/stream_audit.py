"""Audit of a stream: all attacks on a release, checked against the promises of its mode."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from anonymizer.algorithms.positions.map_matching import LayeredLocator
from anonymizer.algorithms.positions.protection import TripEnds
from anonymizer.algorithms.positions.trip_classes import n_cells_of
from anonymizer.algorithms.positions.trust import Trust
from anonymizer.algorithms.releases.observed import Observed, extent_m
from anonymizer.app.trace_trust import TraceClaims
from anonymizer.audit.case import Case, Placebo, Reports, RevealedValues, TripsCase
from anonymizer.audit.counts_attack import positions_with_counts
from anonymizer.audit.days_attack import homes, leaving
from anonymizer.audit.findings import AuditReport, Finding, Mode, RegionStatistics
from anonymizer.audit.habits_attack import habits
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.presence import covered_in_zones
from anonymizer.audit.mathematics.truth import follow_devices, follow_in_districts
from anonymizer.audit.mathematics.value_linking import last_sensed
from anonymizer.audit.pseudonym_attacks import (
    lasting,
    linking,
    session,
    subtraction,
    values,
    velocity,
)
from anonymizer.audit.region_attacks import density_leak, inversion, k_reached, roots, soundness
from anonymizer.audit.timing_attack import timing
from anonymizer.audit.tracking_attack import tracking
from anonymizer.audit.trips_attack import trips
from anonymizer.audit.zone_attacks import discs_of, zone_drops, zone_ends, zone_holes
from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.fixes import check_coordinates
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace, layers_of, named_nodes
from anonymizer.errors import fault_of
from anonymizer.files.release_lines import Released
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.outputs.trips.trip_windows import published_rule
from anonymizer.outputs.windows import promised_k
from anonymizer.pipeline.positions.decode.headings import headings_in
from anonymizer.pipeline.positions.tick.factory import districts_of, pace_of, public_places
from anonymizer.settings import CountSettings, Settings, zones_of

_ADKA = frozenset({"soundness", "k", "trip owner"})
_SNAPSHOT = _ADKA | {"centre", "prefix", "inversion"}
_SESSION = _SNAPSHOT | {"session", "intersection", "matching", "re-identification", "linking"}
PROMISED: dict[Mode, frozenset[str]] = {"adka": _ADKA, "snapshot": _SNAPSHOT, "session": _SESSION}
"""The attacks that each mode promises to resist."""

ATTACKS: tuple[tuple[str, bool, Callable[[Case], list[Finding]]], ...] = (
    ("soundness", True, soundness),
    ("k", False, k_reached),
    ("centre and prefix", True, roots),
    ("inversion", False, inversion),
    ("session", False, session),
    ("intersection and matching, on air", False, partial(lasting, adversary="on_air")),
    ("intersection and matching, off air", False, partial(lasting, adversary="off_air")),
    ("linking", True, linking),
    ("velocity", False, velocity),
    ("tracking", False, tracking),
    ("timing", True, timing),
    ("subtraction", True, subtraction),
    ("density leak", True, density_leak),
    ("zone holes", False, zone_holes),
    ("zone drops", False, zone_drops),
    ("zone ends", True, zone_ends),
    ("homes", False, homes),
    ("leaving", False, leaving),
    ("habits", True, habits),
    ("values", True, values),
    ("positions with counts", True, positions_with_counts),
    ("trips", True, trips),
)
"""Name of each step, whether it needs the auditor's map, and its function."""

SUMMARY: tuple[tuple[str, bool, Callable[[Case], list[Finding]]], ...] = (
    *ATTACKS[:8],
    ("tracking", False, partial(tracking, n_starts=1, adversaries=("none", "placebo", "followed"))),
    ATTACKS[-1],
)
"""The steps of a summary: whatever a mode promises to resist, and where a device is, in short."""

_NEED_MAP = (
    "soundness",
    "centre",
    "prefix",
    "matching",
    "re-identification",
    "linking",
    "timing",
    "subtraction",
    "density leak",
    "habits",
)


def audit_release(
    trace: Trace,
    released: Released,
    network: RoadNetwork,
    settings: Settings,
    *,
    device_of: IntArray | None,
    mode: Mode,
    tick_s: float,
    sample: int,
    seed: int,
    earlier: Observed | None = None,
    placebo: Released | None = None,
    every_attack: bool = True,
    progress: Callable[[str], None] = lambda _step: None,
    so_far: Callable[[AuditReport], None] = lambda _report: None,
) -> AuditReport:
    """Audit a release against the true positions.

    `settings` are those of the gateway that published; zones are attacked if there are any. Without
    `device_of` (as `read_auditor_map` returns it) the attacks that need it are left out, and silent
    devices are not known to be published. `mode`: whose promises are required. `tick_s`: the
    adversary searches for successors within a few ticks. `sample`: number of random pseudonyms that
    the centre, prefix and velocity attacks use; 0: all. `earlier`: a release from before the zones
    were declared. `placebo`: one of other devices on the same network, as long as this one.
    `every_attack`: otherwise only the steps of `SUMMARY`, a fifth of the time.
    `progress` is called with the name of each step before it begins, and `so_far` after it with the
    report in which those that follow are not reached. An attack that ends with an error costs no
    other one. InputError if the trace cannot be located on the network.

    Notes
    -----
    10,000 devices over 300 ticks, 3 million records of 5 to 30 nodes, take about 8 s and 1 GB
    on one core, and about as long to read; tracking comes on top. At most 100 devices are tracked,
    for five minutes each.
    """
    progress("following the devices")
    case = case_of(
        trace,
        released,
        network,
        settings,
        device_of=device_of,
        tick_s=tick_s,
        sample=sample,
        seed=seed,
        earlier=earlier,
        placebo=placebo,
    )
    mounted = ATTACKS if every_attack else SUMMARY
    steps = [step for step in mounted if case.has_map or not step[1]]
    left = {step for step, *_ in ATTACKS} - {step for step, *_ in mounted}
    not_asked = tuple(step for step, *_ in ATTACKS if step in left)
    report = _nothing_found(trace, released, case, mode).model_copy(update={"not_asked": not_asked})
    if not case.observed.n_records:
        nothing = tuple(f"{step} (nothing was published)" for step, *_ in steps)
        return report.model_copy(update={"left_out": report.left_out + nothing})
    findings: list[Finding] = []
    failed: list[str] = []
    for i, (step, _, attack) in enumerate(steps):
        progress(step)
        try:
            findings += attack(case)
        except Exception as error:  # noqa: BLE001  one attack must not cost what others find
            failed.append(f"{step}: {fault_of(error)}")
        marked = tuple(
            each.model_copy(update={"required": each.attack in PROMISED[mode]}) for each in findings
        )
        to_come = [f"{step}: not reached" for step, *_ in steps[i + 1 :]]
        report = report.model_copy(
            update={
                "holds": not any(finding.fails for finding in marked),
                "findings": marked,
                "failed": (*failed, *to_come),
            }
        )
        so_far(report)
    return report


def _nothing_found(trace: Trace, released: Released, case: Case, mode: Mode) -> AuditReport:
    """Return a report without findings."""
    observed = case.observed
    n_lines = observed.n_records + released.n_suppressed
    return AuditReport(
        mode=mode,
        holds=True,
        n_records=observed.n_records,
        n_suppressed=released.n_suppressed,
        suppressed_share=released.n_suppressed / max(n_lines, 1),
        n_pseudonyms=observed.n_pseudonyms,
        n_devices=trace.n_devices,
        n_ticks=len(observed.time),
        n_sampled=len(case.sampled),
        regions=_region_statistics(observed, case.network),
        findings=(),
        left_out=_left_out(released, case),
    )


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
    if not counts.all():
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
        published_rule(settings),
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


def _left_out(released: Released, case: Case) -> tuple[str, ...]:
    """Return the attacks that lack what they need."""
    need_map = (*_NEED_MAP, *(("zone ends",) if case.zones else ()))
    return (() if case.has_map else need_map) + _unmeasured(released, case)


def _unmeasured(released: Released, case: Case) -> tuple[str, ...]:
    measured = {each.attribute.name for each in case.values}
    return tuple(f"values of {name}" for name in released.values if name not in measured)


def _region_statistics(observed: Observed, network: RoadNetwork) -> RegionStatistics:
    if not observed.n_records:
        return RegionStatistics(
            nodes_mean=0.0,
            nodes_median=0.0,
            nodes_max=0,
            extent_m_mean=None,
            extent_m_median=None,
            extent_m_max=None,
        )
    size = observed.region_size[observed.region_of]
    metres = None
    if network.has_coordinates:
        metres = extent_m(observed, network)[observed.region_of]
    return RegionStatistics(
        nodes_mean=float(size.mean()),
        nodes_median=float(np.median(size)),
        nodes_max=int(size.max()),
        extent_m_mean=None if metres is None else float(metres.mean()),
        extent_m_median=None if metres is None else float(np.median(metres)),
        extent_m_max=None if metres is None else float(metres.max()),
    )
