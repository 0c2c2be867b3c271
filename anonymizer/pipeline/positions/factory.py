"""Factory of the cloaking operator: from settings to the operator that they describe."""

from anonymizer import plugins
from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company, Levels, cut_into_levels
from anonymizer.algorithms.positions.cloaks import (
    BfsCloak,
    Cloak,
    Epochs,
    SessionCloak,
    SnapshotCloak,
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
from anonymizer.settings import Settings


def density_rule(settings: Settings) -> DensityRule:
    """Return ADKA's rule for k."""
    adka = settings.adka
    return DensityRule(adka.density_steps, adka.k_values, adka.k_floor)


def cloaking_operator(settings: Settings, network: RoadNetwork) -> CloakingOperator:
    """Return the operator of the positions flow."""
    pace = Pace(
        ttl_s=settings.presence.ttl_s,
        epoch_s=settings.session.epoch_s if settings.region.mode == "session" else 0.0,
        follows=settings.follows_intervals,
    )
    return CloakingOperator(
        network,
        _cloak(settings, network, pace),
        pace=pace,
        k_floor=settings.adka.k_floor,
        transcripts=Transcripts() if settings.region.mode == "session" else None,
    )


def public_levels(network: RoadNetwork, settings: Settings) -> Levels:
    """Return the atoms that regions are made of, which anybody can compute."""
    return _levels(network, spanning_forest(network), settings)


def _levels(network: RoadNetwork, forest: SpanningForest, settings: Settings) -> Levels:
    region = settings.region
    return cut_into_levels(
        network,
        forest,
        min_nodes=region.min_nodes,
        metres_at=road_metres(network),
        min_metres=region.min_road_m,
    )


def _plugged_cloak(settings: Settings, network: RoadNetwork, name: str) -> Cloak:
    """Return the cloak of another distribution.

    Raises
    ------
    SettingsError
        If there is none, or if it does not even claim what the mode promises.
    """
    cloak: Cloak = plugins.load_plugin(plugins.CLOAKS, name)(network, settings)
    if settings.region.mode != "bfs" and not cloak.reciprocal:
        problem = 'its members do not hide each other, so it is for mode = "bfs" alone'
        raise SettingsError(f"region.cloak: {name}: {problem}")
    return cloak


def _cloak(settings: Settings, network: RoadNetwork, pace: Pace) -> Cloak:
    if settings.region.cloak is not None:
        return _plugged_cloak(settings, network, settings.region.cloak)
    rule, region = density_rule(settings), settings.region
    rotate_s = settings.pseudonym.rotate_s
    if region.mode == "bfs":
        return BfsCloak(rule, max_nodes=region.max_nodes, rotate_s=rotate_s)
    forest = spanning_forest(network)
    levels = _levels(network, forest, settings)
    company = Company(region.place_devices, region.area_devices)
    if region.mode == "snapshot":
        return SnapshotCloak(
            network,
            forest,
            levels,
            rule,
            max_nodes=region.max_nodes,
            rotate_s=rotate_s,
            k_extra=region.k_extra,
            company=company,
        )
    session = settings.session
    return SessionCloak(
        network,
        levels,
        rule=rule,
        epochs=Epochs(session.cells, session.settle_s),
        pace=pace,
        max_nodes=region.max_nodes,
        k_extra=region.k_extra,
        beat_s=session.beat_s,
        company=company,
        parked_s=settings.presence.parked_s,
    )
