"""Factory of the positions flow: from settings to operators, and to what engines need to know."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from anonymizer import plugins
from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import WIDER, Company, Levels, cut_into_levels
from anonymizer.algorithms.positions.cloaks import (
    AdkaCloak,
    Cloak,
    Epochs,
    Serials,
    SessionCloak,
    SnapshotCloak,
)
from anonymizer.algorithms.positions.device_keys import Keys, slots_as_keys
from anonymizer.algorithms.positions.district import District
from anonymizer.algorithms.positions.district_operator import DistrictOperator
from anonymizer.algorithms.positions.districts import (
    Districts,
    cut_into_districts,
    expected_load,
    joined_levels,
    network_of,
)
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import (
    SpanningForest,
    road_metres,
    spanning_forest,
)
from anonymizer.algorithms.positions.verification import Transcripts
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.out.encoding import Contract, contract_of
from anonymizer.pipeline.positions.tick.engine import EngineParameters
from anonymizer.pipeline.positions.tick.fleet import AdmissionParameters, FleetParameters
from anonymizer.pipeline.positions.tick.intake import IntakeParameters
from anonymizer.pipeline.positions.tick.meaning import formed_under

if TYPE_CHECKING:
    from anonymizer.settings import Settings

Operator: TypeAlias = CloakingOperator | DistrictOperator

_LEAST_PLACES = 4
"""A piece of a district has room for so many of the smallest places."""
_MOST_DEMANDED = 4
"""A device may demand so many times the largest usual k: a cell with an epoch has as many."""
_LEAST_CAP = 1000
"""Nodes that a region may have even where they are more than half of the network."""


def density_rule(settings: "Settings") -> DensityRule:
    """Return ADKA's rule for k."""
    adka = settings.adka
    return DensityRule(adka.density_steps, adka.k_values, adka.k_floor)


def cloaking_operator(
    settings: "Settings", network: RoadNetwork, *, keys: Keys = slots_as_keys
) -> Operator:
    """Return the operator of the positions flow.

    Raises `SettingsError` if the network is too small for so many districts, or a plug-in does not
    fit.
    """
    n = settings.region.districts
    if n == 1:
        alone = _operator(settings, network, Serials())
        alone.name_devices(keys)
        return alone
    districts = districts_of(settings, network)
    return DistrictOperator(
        network,
        districts,
        list(map(district_maker(settings, network, districts), range(n))),
        pace=pace_of(settings),
        keys=keys,
    )


def district_maker(
    settings: "Settings", network: RoadNetwork, districts: Districts
) -> Callable[[int], District]:
    """Return a function that makes the district of a number."""

    def make(number: int) -> District:
        alone = network_of(network, districts, number)
        operator = _operator(settings, alone, Serials(number, districts.n))
        return District(number, districts, operator)

    return make


def districts_of(settings: "Settings", network: RoadNetwork) -> Districts:
    """Return the cut of the network, which anybody can compute.

    Raises `SettingsError` if the network is too small for so many districts.
    """
    region = settings.region
    try:
        return cut_into_districts(
            network,
            region.districts,
            load=expected_load(network),
            least_nodes=_LEAST_PLACES * region.min_nodes,
        )
    except ValueError as error:
        raise SettingsError(f"region.districts: {error}") from error


def public_places(network: RoadNetwork, settings: "Settings") -> IntArray:
    """Return the atom of each node at each level, which anybody can compute.

    Regions are made of them; shape (levels, nodes).
    """
    if settings.region.districts == 1:
        return _levels(network, spanning_forest(network), settings).at.astype(np.int64)
    districts = districts_of(settings, network)
    alone = [network_of(network, districts, number) for number in range(districts.n)]
    return joined_levels(
        districts, [_levels(each, spanning_forest(each), settings) for each in alone]
    )


def most_nodes(settings: "Settings", network: RoadNetwork) -> int:
    """Return how many nodes a region has at most."""
    return settings.region.max_nodes or network.n_nodes


def _half_of(network: RoadNetwork) -> int:
    return max(_LEAST_CAP, network.n_nodes // 2)


def _largest_k(settings: "Settings") -> int:
    return max(settings.adka.k_floor, *settings.adka.k_values)


def _operator(settings: "Settings", network: RoadNetwork, serials: Serials) -> CloakingOperator:
    pace = pace_of(settings)
    return CloakingOperator(
        network,
        _cloak(settings, network, pace, serials),
        pace=pace,
        k_floor=settings.adka.k_floor,
        transcripts=Transcripts() if settings.region.mode == "session" else None,
        slack_s=settings.tick.interval_s,
    )


def pace_of(settings: "Settings") -> Pace:
    """Return how long devices count as present."""
    return Pace(
        ttl_s=settings.presence.ttl_s,
        epoch_s=settings.session.epoch_s if settings.region.mode == "session" else 0.0,
        follows=settings.follows_intervals,
    )


def _levels(network: RoadNetwork, forest: SpanningForest, settings: "Settings") -> Levels:
    """Return the atoms of a network.

    The largest are such that k of them are half of the network, those for few devices are half as
    large again. Under a cap, groups of `session` are formed in windows; elsewhere it suppresses
    regions, and must not buy smaller places.
    """
    half = _half_of(network)
    k = _largest_k(settings) + settings.region.k_extra
    return cut_into_levels(
        network,
        forest,
        min_nodes=settings.region.min_nodes,
        metres_at=road_metres(network),
        min_metres=settings.region.min_road_m,
        max_nodes=half / k,
        cap=most_nodes(settings, network) if settings.region.mode == "session" else math.inf,
        wider=WIDER,
    )


def _plugged_cloak(settings: "Settings", network: RoadNetwork, name: str) -> Cloak:
    """Return the cloak of another distribution.

    Raises `SettingsError` if there is none, or if it does not even claim what mode and districts
    need.
    """
    cloak: Cloak = plugins.load_plugin(plugins.CLOAKS, name)(network, settings)
    if settings.region.mode != "adka" and not cloak.reciprocal:
        problem = 'its members do not hide each other, so it is for mode = "adka" alone'
        raise SettingsError(f"region.cloak: {name}: {problem}")
    if settings.region.districts > 1 and settings.region.mode == "session":
        # Each district verifies lives of pseudonyms by itself; two could use the same one.
        raise SettingsError(f'region.cloak: {name}: not with districts and mode = "session"')
    return cloak


def _cloak(settings: "Settings", network: RoadNetwork, pace: Pace, serials: Serials) -> Cloak:
    """Return the cloak of a network, or of a district."""
    region, rotate_s = settings.region, settings.session.rotate_s
    if region.cloak is not None:
        return _plugged_cloak(settings, network, region.cloak)
    rule, max_nodes = density_rule(settings), most_nodes(settings, network)
    if region.mode == "adka":
        return AdkaCloak(rule, max_nodes=max_nodes, rotate_s=rotate_s)
    forest = spanning_forest(network)
    levels = _levels(network, forest, settings)
    company = Company(region.place_devices, region.area_devices)
    if region.mode == "snapshot":
        return SnapshotCloak(
            network,
            forest,
            levels,
            rule,
            max_nodes=max_nodes,
            rotate_s=rotate_s,
            k_extra=region.k_extra,
            company=company,
        )
    session = settings.session
    return SessionCloak(
        network,
        levels,
        rule=rule,
        epochs=Epochs(session.n_cells, session.settle_s),
        pace=pace,
        max_nodes=max_nodes,
        k_extra=region.k_extra,
        beat_s=session.beat_s,
        company=company,
        parked_s=settings.presence.parked_s,
        serials=serials,
        formed_under=formed_under(settings),
    )


def engine_parameters(
    settings: "Settings",
    network: RoadNetwork,
    *,
    topic: str = "",
    form: Literal["group", "device"] = "device",
    contract: Contract | None = None,
) -> EngineParameters:
    """Return what an engine needs to know; by default one that writes lines of a file."""
    return EngineParameters(
        make_operator=lambda keys: cloaking_operator(settings, network, keys=keys),
        groups_last=settings.region.mode == "session",
        readings=settings.readings,
        topic=topic,
        form=form,
        contract=contract,
        time_step_s=settings.output.time_step_s,
        formed_under=formed_under(settings),
    )


def intake_parameters(settings: "Settings", *, watches_ids: bool = True) -> IntakeParameters:
    """Return what an intake needs to know.

    An id that has outlived the time to live is no company for the one that followed it for longer
    than any silent device is.
    """
    stay = all(each.ids_change_s == 0 for each in settings.inputs if each.kind == "mobile")
    return IntakeParameters(
        settings.trips,
        settings.tick.interval_s,
        settings.presence.max_devices,
        watches_ids,
        settings.presence.ttl_s,
        0.0 if stay else settings.presence.ttl_s,
    )


def admission_parameters(settings: "Settings", *, watches_ids: bool) -> AdmissionParameters:
    """Return what the admission of mobile devices needs to know."""
    zones = settings.device_zones if settings.device_zones.enabled else None
    intake = intake_parameters(settings, watches_ids=watches_ids)
    return AdmissionParameters(
        settings.presence,
        intake,
        settings.inputs,
        zones,
        layer_of_input=settings.layer_of_input,
    )


def mobile_fleet(settings: "Settings", network: RoadNetwork) -> FleetParameters:
    """Return what the fleet of mobile devices needs to know."""
    admission = admission_parameters(settings, watches_ids=True)
    region = settings.region
    several = region.districts > 1 or len(network.layers) > 1  # companions would be elsewhere
    if region.mode != "session" or region.cloak is not None or several:
        return _fleet(settings, network, settings.output.topic, admission)
    k = _largest_k(settings)
    admission = replace(admission, most_k=_MOST_DEMANDED * k)
    fleet = _fleet(settings, network, settings.output.topic, admission)
    return replace(fleet, demands_shared_by=k)


def fixed_fleet(settings: "Settings", network: RoadNetwork) -> FleetParameters:
    """Return what the fleet of cloaked fixed devices needs to know.

    They make no trips, state no zones, and are too few to be cut into districts.
    """
    fixed = settings.fixed
    settings = settings.model_copy(
        update={
            "presence": settings.presence.model_copy(update={"ttl_s": fixed.ttl_s}),
            "session": settings.session.model_copy(update={"epoch_s": fixed.epoch_s})
            if settings.region.mode == "session"
            else settings.session,
            "trips": settings.trips.model_copy(update={"enabled": False, "learn_days": 0}),
            "region": settings.region.model_copy(update={"districts": 1}),
        }
    )
    admission = AdmissionParameters(
        settings.presence,
        replace(intake_parameters(settings, watches_ids=False), ttl_s=None, stays_after_s=0.0),
        settings.inputs,
        layer_of_input=settings.layer_of_input,
    )
    return _fleet(settings, network, settings.topics.fixed, admission)


def _fleet(
    settings: "Settings", network: RoadNetwork, topic: str, admission: AdmissionParameters
) -> FleetParameters:
    form, contract = settings.output.form, contract_of(settings, network)
    engine = engine_parameters(settings, network, topic=topic, form=form, contract=contract)
    return FleetParameters(admission, engine, settings.network.snap_limit_m)
