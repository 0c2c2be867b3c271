"""A sample of live traffic as input of an audit: a trace, a release, whose pseudonyms these are."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.findings import AuditReport
from anonymizer.audit.stream_audit import audit_release
from anonymizer.domain.arrays import IntArray, starts_of
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTick, SampledTraffic
from anonymizer.settings import BrokerSettings, HttpSettings, KafkaSettings, Settings, TripSettings

_SAMPLED = 1000
"""Pseudonyms for the expensive attacks, as `anonymizer audit stream` draws them."""


@discreet
class Sampled(NamedTuple):
    """A sample as `audit_release` takes it."""

    trace: Trace
    released: Released
    device_of: IntArray


def attacked(
    traffic: SampledTraffic,
    network: RoadNetwork,
    settings: Settings,
    *,
    so_far: Callable[[AuditReport], None] = lambda _report: None,
) -> AuditReport:
    """Return what the attacks of `anonymizer audit stream` find in a sample.

    Parameters
    ----------
    settings
        Those of the gateway. Trip ends and privacy zones do not count: what was held back is not
        in the sample, and who was in a zone is where they counted.
    so_far
        See `audit_release`.
    """
    trace, released, device_of = sampled(traffic)
    unknown = [f"values of {each.name}" for each in settings.readings if each.per_pseudonym]
    unknown += ["zone attacks"] if settings.zones or settings.device_zones.enabled else []

    def named(report: AuditReport) -> AuditReport:
        return report.model_copy(update={"left_out": (*report.left_out, *unknown)})

    report = audit_release(
        trace,
        released,
        network,
        for_attacks(settings),
        device_of=device_of,
        mode=settings.region.mode,
        tick_s=settings.tick.interval_s,
        sample=_SAMPLED,
        seed=0,
        so_far=lambda report: so_far(named(report)),
    )
    return named(report)


def for_attacks(settings: Settings) -> Settings:
    """Return what attacks on a sample need of the settings: no secret, and no place."""
    return settings.model_copy(
        update={
            "broker": BrokerSettings(),
            "http": HttpSettings(),
            "kafka": KafkaSettings(),
            "trips": TripSettings(),
            "zones": (),
        }
    )


def sampled(traffic: SampledTraffic) -> Sampled:
    """Return a sample as a trace, a release and the device of each pseudonym.

    A report counts from the end of its tick on: the gateway knew no more, and promised no more.
    """
    released, of_reports = traffic.released, traffic.reports
    keys = np.unique(
        _joined(
            [each.device for each in of_reports] + [each.member_device for each in released],
            np.uint64,
        )
    )
    n_reports = [len(each.node) for each in of_reports]
    trace = Trace(
        device_id=tuple(map(str, range(len(keys)))),
        device_of=np.searchsorted(keys, _joined((each.device for each in of_reports), np.uint64)),
        ts=np.repeat(np.array([each.event_s for each in of_reports], np.float64), n_reports),
        lat=np.full(sum(n_reports), np.nan),
        lon=np.full(sum(n_reports), np.nan),
        located=_joined((each.node for each in of_reports), np.int32),
    )
    device = np.searchsorted(keys, _joined((each.member_device for each in released), np.uint64))
    version = _joined((each.release.version for each in released), np.int64)
    n_members = np.array([len(each.member_device) for each in released], np.int64)
    tick_of = np.repeat(np.arange(len(released)), n_members)
    group_of, region_of_group, first_node_of, node = _regions(released)
    _, pseudonym = np.unique(np.stack([device, version]), axis=1, return_inverse=True)
    order = np.lexsort((tick_of, pseudonym))
    first = starts_of(np.bincount(pseudonym))
    observed = Observed(
        time=np.array([each.event_s for each in released], np.float64),
        first_record_of=first,
        tick_of=tick_of[order],
        region_of=region_of_group[group_of][order],
        k=_joined((each.release.k for each in released), np.int64).astype(np.int64)[group_of][
            order
        ],
        first_node_of=first_node_of,
        node=node,
    )
    until = _joined((each.until_s for each in released), np.float64)[group_of][order]
    names = tuple(map(str, range(observed.n_pseudonyms)))
    n_suppressed = sum(each.n_suppressed for each in released)
    return Sampled(
        trace, Released(observed, names, n_suppressed, {}, until, {}), device[order][first[:-1]]
    )


def _joined(parts: Iterable[NDArray[Any]], of: type[np.generic] = np.int64) -> NDArray[Any]:
    """Return parts one behind the other; without any, nothing of a type."""
    found = list(parts)
    return np.concatenate(found) if found else np.zeros(0, of)


def _regions(
    released: Sequence[SampledTick],
) -> tuple[IntArray, IntArray, IntArray, NDArray[Any]]:
    """Return the group of each member, the region of each group, and the distinct regions."""
    n_groups = 0
    group_of, region_of_group = [], []
    number_of: dict[bytes, int] = {}
    nodes: list[NDArray[Any]] = []
    for each in released:
        release = each.release
        sizes = np.diff(release.first_member_of)
        group_of.append(n_groups + np.repeat(np.arange(release.n_groups), sizes))
        n_groups += release.n_groups
        for region in np.split(release.node, release.first_node_of[1:-1]):
            number = number_of.setdefault(region.tobytes(), len(nodes))
            if number == len(nodes):
                nodes.append(region)
            region_of_group.append(number)
    first_node_of = starts_of(np.array([len(each) for each in nodes], np.int64))
    return _joined(group_of), np.array(region_of_group, np.int64), first_node_of, _joined(nodes)
