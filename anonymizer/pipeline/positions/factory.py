"""Factory of the cloaking operator: from settings to the operator that they describe."""

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import (
    BfsCloak,
    Cloak,
    Epochs,
    SessionCloak,
    SnapshotCloak,
)
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.regions import Atoms, cut_into_atoms
from anonymizer.algorithms.positions.spanning_forest import road_metres, spanning_forest
from anonymizer.algorithms.positions.verification import Transcripts
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings


def density_rule(settings: Settings) -> DensityRule:
    """Return ADKA's rule for k."""
    adka = settings.adka
    return DensityRule(adka.density_steps, adka.k_values, adka.k_floor)


def cloaking_operator(settings: Settings, network: RoadNetwork) -> CloakingOperator:
    """Return the operator of the positions flow."""
    return CloakingOperator(
        network,
        _cloak(settings, network),
        ttl_s=settings.presence.ttl_s,
        k_floor=settings.adka.k_floor,
        transcripts=Transcripts() if settings.region.mode == "session" else None,
    )


def public_atoms(network: RoadNetwork, settings: Settings) -> Atoms:
    """Return the atoms of `session`, which anybody can compute from the network and settings."""
    return cut_into_atoms(
        spanning_forest(network),
        min_nodes=settings.region.min_nodes,
        metres_at=road_metres(network),
        min_metres=settings.region.min_road_m,
    )


def _cloak(settings: Settings, network: RoadNetwork) -> Cloak:
    rule, region = density_rule(settings), settings.region
    rotate_s = settings.pseudonym.rotate_s
    if region.mode == "bfs":
        return BfsCloak(rule, max_nodes=region.max_nodes, rotate_s=rotate_s)
    if region.mode == "snapshot":
        return SnapshotCloak(
            spanning_forest(network),
            rule,
            min_nodes=region.min_nodes,
            max_nodes=region.max_nodes,
            metres_at=road_metres(network),
            min_metres=region.min_road_m,
            rotate_s=rotate_s,
            k_extra=region.k_extra,
        )
    session = settings.session
    return SessionCloak(
        network,
        public_atoms(network, settings),
        rule=rule,
        epochs=Epochs(session.epoch_s, session.cells, session.settle_s),
        ttl_s=settings.presence.ttl_s,
        max_nodes=region.max_nodes,
        k_extra=region.k_extra,
    )
