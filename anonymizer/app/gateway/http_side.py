"""What a gateway answers over HTTP."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI

from anonymizer.app.gateway.own_metrics import OwnMetrics
from anonymizer.app.gateway.readiness import Readiness
from anonymizer.app.live_map.frames import Viewer, map_routes
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.publication import geojson
from anonymizer.outputs.file_routes import file_routes
from anonymizer.outputs.one_process import Outputs
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import Settings
from anonymizer.web import create_application
from anonymizer.web.token import read_token

if TYPE_CHECKING:  # what attacks load is more than all the rest, and few gateways have them
    from anonymizer.app.gateway.own_evidence import OwnEvidence


def application(
    settings: Settings,
    network: RoadNetwork,
    streams: Sequence[Stream],
    *,
    viewer: Viewer,
    demo: bool,
    current: Callable[[], Settings],
    metrics: OwnMetrics,
    readiness: Readiness,
    evidence: "OwnEvidence | None",
    outputs: Outputs,
    acknowledge: Callable[[], None] | None,
) -> FastAPI:
    """Return the application of a gateway.

    Parameters
    ----------
    evidence
        Attacks on its own traffic; None: it mounts none.
    acknowledge
        Called when the operator has seen that records were lost; None: there are no records.

    Raises
    ------
    SettingsError
        If the token file cannot be used.
    """
    token, routes = read_token(settings.http), []
    if settings.http.map != "none" and settings.inputs:
        windows = None
        if streams:
            from anonymizer.app.gateway.api import last_windows  # noqa: PLC0415  only for records

            windows = partial(last_windows, settings, streams)
        shown = partial(map_routes, viewer, network, current, demo=demo, windows=windows)
        routes.append(shown(streets=bool(settings.counts.streets_s)))
    if settings.public_network.enabled and settings.inputs:
        from anonymizer.web.network_file import network_router  # noqa: PLC0415  few ask for it

        routes.append(network_router(lambda: geojson(network), token=token))
    routes += file_routes(settings, outputs.newest, token=token)
    if evidence and token is not None:
        from anonymizer.web.evidence import evidence_router  # noqa: PLC0415  few ask for it

        routes.append(evidence_router(evidence.page, ask=evidence.ask, token=token))
    if streams:
        from anonymizer.app.gateway.api import api_routes  # noqa: PLC0415  only for records

        routes.append(api_routes(settings, streams))
    return create_application(
        metrics.public,
        exact=metrics.exact,
        token=token,
        alive=readiness.why_dead,
        ready=readiness.why_not_ready,
        notes=readiness.notes,
        acknowledge=acknowledge,
        more=routes,
    )
