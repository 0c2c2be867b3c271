"""Factory of the positions flow: from settings to operators, and to what engines need to know."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from anonymizer import plugins
from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company, Levels, cut_into_levels
from anonymizer.algorithms.positions.cloaks import (
    BfsCloak,
    Cloak,
    Epochs,
    Serials,
    SessionCloak,
    SnapshotCloak,
)
from anonymizer.algorithms.positions.district import District
from anonymizer.algorithms.positions.district_operator import (
    DistrictOperator,
    Keys,
    slots_as_keys,
)
from anonymizer.algorithms.positions.districts import (
    Districts,
    Folds,
    cut_into_districts,
    without_borders,
)
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import (
    SpanningForest,
    road_metres,
    spanning_forest,
)
from anonymizer.algorithms.positions.verification import Transcripts
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.encoding import Contract, contract_of
from anonymizer.pipeline.positions.engine import EngineParameters
from anonymizer.pipeline.positions.fleet import FleetParameters
from anonymizer.pipeline.positions.intake import IntakeParameters

if TYPE_CHECKING:
    from anonymizer.settings import DeviceZoneSettings, Settings

Operator: TypeAlias = CloakingOperator | DistrictOperator
_MakeCloak: TypeAlias = Callable[[int, Pace], Cloak]

_GROUPS_PER_DISTRICT = 16
"""A district is led by itself if so many of the largest groups could be formed in it."""
_LEAST_PLACES = 16
"""A piece of a district has room for so many of the smallest places."""
_LEAST_CAP = 1000
"""Nodes that a region may have even where they are more than half of the network."""
_HALO_HOPS = 1
"""The density of a node counts its neighbours."""
_BFS_HALO_HOPS = 3
"""A region of `bfs` also grows over the border, as if there were no devices beyond the halo."""

_OF_DISTRICTS = ("confine", "lasting", "bound_until")
"""What a cloak needs in districts alone; plug-ins may be without."""


def density_rule(settings: "Settings") -> DensityRule:
    """Return ADKA's rule for k."""
    adka = settings.adka
    return DensityRule(adka.density_steps, adka.k_values, adka.k_floor)


def cloaking_operator(
    settings: "Settings", network: RoadNetwork, *, keys: Keys = slots_as_keys
) -> Operator:
    """Return the operator of the positions flow.

    Parameters
    ----------
    keys
        Names the devices where the network is cut into districts.

    Raises
    ------
    SettingsError
        If the network is too small for so many districts, or a plug-in does not fit.
    """
    n = settings.region.districts
    if n == 1:
        pace = pace_of(settings)
        return _operator(settings, network, _cloaks(settings, network)(0, pace), pace)
    districts = districts_of(settings, network)
    return DistrictOperator(
        network,
        districts,
        list(map(district_maker(settings, network, districts), range(n))),
        folds=folds_of(settings),
        pace=pace_of(settings),
        keys=keys,
    )


def district_maker(
    settings: "Settings", network: RoadNetwork, districts: Districts
) -> Callable[[int], District]:
    """Return a function that makes the district of a number; all share what never changes."""
    make_cloak = _cloaks(settings, network, districts)

    def make(number: int) -> District:
        pace = pace_of(settings)
        operator = _operator(settings, network, make_cloak(number, pace), pace)
        return District(number, districts, operator)

    return make


def districts_of(settings: "Settings", network: RoadNetwork) -> Districts:
    """Return the cut of the network, which anybody can compute.

    Raises
    ------
    SettingsError
        If the network is too small for so many districts.
    """
    region = settings.region
    try:
        return cut_into_districts(
            network,
            region.districts,
            least_nodes=_LEAST_PLACES * region.min_nodes,
            halo_hops=_BFS_HALO_HOPS if region.mode == "bfs" else _HALO_HOPS,
        )
    except ValueError as error:
        raise SettingsError(f"region.districts: {error}") from error


def folds_of(settings: "Settings") -> Folds:
    """Return the rule by which districts with too few devices are led by others."""
    largest = max(settings.adka.k_values) + settings.region.k_extra
    return Folds(
        settings.region.districts,
        least=_GROUPS_PER_DISTRICT * largest,
        epoch_s=settings.session.epoch_s,
    )


def public_levels(network: RoadNetwork, settings: "Settings") -> Levels:
    """Return the atoms that regions are made of, which anybody can compute."""
    cut = None if settings.region.districts == 1 else districts_of(settings, network)
    return _levels(network, _forest(network, cut), settings, cut)


def most_nodes(settings: "Settings", network: RoadNetwork) -> int:
    """Return how many nodes a region has at most."""
    return settings.region.max_nodes or _half_of(network)


def _half_of(network: RoadNetwork) -> int:
    return max(_LEAST_CAP, network.n_nodes // 2)


def _operator(
    settings: "Settings", network: RoadNetwork, cloak: Cloak, pace: Pace
) -> CloakingOperator:
    return CloakingOperator(
        network,
        cloak,
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


def _forest(network: RoadNetwork, districts: Districts | None) -> SpanningForest:
    return spanning_forest(network, part_of=None if districts is None else districts.of_node)


def _levels(
    network: RoadNetwork, forest: SpanningForest, settings: "Settings", districts: Districts | None
) -> Levels:
    """Return the atoms, none of which crosses the border of a district.

    The largest are such that k of them are half of the network. `max_nodes` does not count: a cap
    suppresses regions, and must not buy smaller places.
    """
    half = _half_of(network)
    k = max(settings.adka.k_floor, *settings.adka.k_values) + settings.region.k_extra
    if districts is not None:
        network = without_borders(network, districts.of_node)
        forest = forest.cut(districts.of_node)
    return cut_into_levels(
        network,
        forest,
        min_nodes=settings.region.min_nodes,
        metres_at=road_metres(network),
        min_metres=settings.region.min_road_m,
        max_nodes=half / k,
    )


def _plugged_cloak(settings: "Settings", network: RoadNetwork, name: str) -> Cloak:
    """Return the cloak of another distribution.

    Raises
    ------
    SettingsError
        If there is none, or if it does not even claim what mode and districts need.
    """
    cloak: Cloak = plugins.load_plugin(plugins.CLOAKS, name)(network, settings)
    if settings.region.mode != "bfs" and not cloak.reciprocal:
        problem = 'its members do not hide each other, so it is for mode = "bfs" alone'
        raise SettingsError(f"region.cloak: {name}: {problem}")
    if settings.region.districts > 1:
        if settings.region.mode == "session":
            # Each district verifies lives of pseudonyms by itself; two could use the same one.
            raise SettingsError(f'region.cloak: {name}: not with districts and mode = "session"')
        missing = [method for method in _OF_DISTRICTS if not hasattr(cloak, method)]
        if missing:
            problem = f"it has no {', '.join(missing)}, which districts need"
            raise SettingsError(f"region.cloak: {name}: {problem}")
    return cloak


def _cloaks(
    settings: "Settings", network: RoadNetwork, districts: Districts | None = None
) -> _MakeCloak:
    """Return a function that makes the cloak of each district."""
    name, region = settings.region.cloak, settings.region
    if name is not None:
        return lambda _number, _pace: _plugged_cloak(settings, network, name)
    rule, rotate_s = density_rule(settings), settings.pseudonym.rotate_s
    if region.mode == "bfs":
        return lambda _number, _pace: BfsCloak(
            rule, max_nodes=most_nodes(settings, network), rotate_s=rotate_s
        )
    forest = _forest(network, districts)
    levels = _levels(network, forest, settings, districts)
    company = Company(region.place_devices, region.area_devices)
    if region.mode == "snapshot":
        return lambda _number, _pace: SnapshotCloak(
            network,
            forest,
            levels,
            rule,
            max_nodes=most_nodes(settings, network),
            rotate_s=rotate_s,
            k_extra=region.k_extra,
            company=company,
        )
    session = settings.session
    cloak = SessionCloak(
        network,
        levels,
        rule=rule,
        epochs=Epochs(session.cells, session.settle_s),
        pace=pace_of(settings),
        max_nodes=most_nodes(settings, network),
        k_extra=region.k_extra,
        beat_s=session.beat_s,
        company=company,
        parked_s=settings.presence.parked_s,
    )
    return lambda number, pace: cloak.sibling(Serials(number, region.districts), pace)


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
    )


def intake_parameters(settings: "Settings") -> IntakeParameters:
    """Return what an intake needs to know."""
    return IntakeParameters(settings.trips, settings.network.snap_limit_m, settings.tick.interval_s)


def mobile_fleet(settings: "Settings", network: RoadNetwork) -> FleetParameters:
    """Return what the fleet of mobile devices needs to know."""
    zones = settings.device_zones if settings.device_zones.enabled else None
    contract = contract_of(settings, network, settings.shapes.regions)
    return _fleet(settings, network, settings.output.topic, contract, zones)


def fixed_fleet(settings: "Settings", network: RoadNetwork) -> FleetParameters:
    """Return what the fleet of cloaked fixed devices needs to know.

    They make no trips, state no zones, and are too few to be cut into districts.
    """
    fixed = settings.fixed
    contract = contract_of(settings, network, settings.shapes.regions)
    settings = settings.model_copy(
        update={
            "presence": settings.presence.model_copy(update={"ttl_s": fixed.ttl_s}),
            "session": settings.session.model_copy(update={"epoch_s": fixed.epoch_s}),
            "trips": settings.trips.model_copy(update={"enabled": False}),
            "region": settings.region.model_copy(update={"districts": 1}),
        }
    )
    return _fleet(settings, network, settings.topics.fixed, contract, None)


def _fleet(
    settings: "Settings",
    network: RoadNetwork,
    topic: str,
    contract: Contract,
    zones: "DeviceZoneSettings | None",
) -> FleetParameters:
    form = settings.output.form
    engine = engine_parameters(settings, network, topic=topic, form=form, contract=contract)
    return FleetParameters(settings.presence, intake_parameters(settings), engine, zones)
