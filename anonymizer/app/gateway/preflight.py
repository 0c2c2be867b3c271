"""Preflight check: whether the settings would start, as far as possible without a broker."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.codecs.owntracks import KEY_BYTES
from anonymizer.domain.fixes import Places
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.extras import MissingExtraError, require
from anonymizer.files.device_registry import read_registry
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import network_for
from anonymizer.plugins import CLOAKS, load_plugin
from anonymizer.settings import NetworkSettings, Settings
from anonymizer.transport.connecting import read_access
from anonymizer.web.token import read_token

if TYPE_CHECKING:
    from anonymizer.pipeline.records.declaration import Stream

_NO_NETWORK = "grid:2x2"
"""Used if the settings have no positions to locate."""


class Checked(NamedTuple):
    """The network and streams that the settings name."""

    network: RoadNetwork
    streams: "list[Stream]"


def check_files(settings: Settings) -> Checked:
    """Read every file that the settings name.

    Raises `SettingsError` if one cannot be used; the message names its key.
    """
    broker = settings.broker
    for key, path in (
        ("broker.password_file", broker.password_file),
        ("broker.ca_file", broker.ca_file),
        ("broker.cert_file", broker.cert_file),
        ("broker.key_file", broker.key_file),
    ):
        if path is not None:
            _readable(key, path)
    _check_extras(settings)
    _check_counts(settings)
    try:
        read_access(broker)
    except TransportError as error:
        raise SettingsError(str(error)) from None
    _check_token(settings)
    read_registries(settings)
    _check_formats_and_cloak(settings)
    streams = _declared(settings) if settings.streams else []
    if streams and not settings.store.path.absolute().parent.is_dir():
        raise SettingsError(f"store.path: {settings.store.path}: there is no such folder")
    named = settings.network if settings.inputs else NetworkSettings(source=_NO_NETWORK)
    network = network_for(settings.region.mode, _network(named))
    if settings.inputs:
        _check_zones(settings, network)
    return Checked(network, streams)


def _check_zones(settings: Settings, network: RoadNetwork) -> None:
    """Refuse a zone that protects nothing: no road is in it, or near it."""
    from anonymizer.app.gateway.coverage import exchanged, n_inside, touches  # noqa: PLC0415  numba

    for number, zone in enumerate(settings.zones, start=1):
        if touches(zone.shape, network, limit_m=settings.network.snap_limit_m):
            continue
        why = f"zones (no. {number}): there is no road of the network in it, so it protects nothing"
        n = n_inside(exchanged(zone.shape), network)
        hint = f"; with latitude and longitude exchanged it would hold {n:,} nodes" if n else ""
        raise SettingsError(f"{why}{hint}")


def _check_extras(settings: Settings) -> None:
    needed = (
        ("broker.url", "websockets", settings.broker.url.startswith("ws")),
        ("output.topic", "kafka", settings.output.kafka is not None),
        ("streams.topic", "kafka", any(each.kafka for each in settings.streams)),
        ("watch.evidence_s", "tables", bool(settings.watch.evidence_s)),
        ("shapes", "h3", settings.shapes.regions.startswith("h3")),
    )
    for key, name, is_needed in needed:
        try:
            require(*[name] * is_needed)
        except MissingExtraError as error:
            raise SettingsError(f"{key}: {error}") from None


def _check_counts(settings: Settings) -> None:
    counts = settings.counts
    if not counts.enabled or not counts.has_noise:
        return
    try:
        require("dp")
    except MissingExtraError as error:
        raise SettingsError(f"counts.privacy: {error}") from None
    path = settings.store.budget_path
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"store.path: {path.parent}: there is no such folder")
    if not path.exists() and Path(path.name).exists():
        # Earlier versions kept it there; a budget must not be forgotten.
        raise SettingsError(f"store.path: move {path.name} from this folder to {path.parent}")


def read_registries(settings: Settings) -> Mapping[Path, Places]:
    """Return where the fixed devices stand, by the registry of their input.

    Raises `SettingsError` if a registry cannot be used.
    """
    try:
        return {
            path: read_registry(path)
            for path in {each.registry for each in settings.inputs}
            if path is not None
        }
    except InputError as error:
        raise SettingsError(f"inputs: registry: {error}") from None


def read_secrets(settings: Settings) -> Mapping[Path, Sequence[bytes]]:
    """Return the secrets of encrypted payloads, by the key file of their input.

    Raises `SettingsError` if a file cannot be used.
    """
    found = {}
    for path in {each.key_file for each in settings.inputs} - {None}:
        assert path is not None  # noqa: S101  for type checkers
        _readable("inputs: key_file", path)
        secrets = [line.strip() for line in path.read_bytes().splitlines() if line.strip()]
        if not secrets:
            raise SettingsError(f"inputs: key_file: {path}: is empty")
        if max(map(len, secrets)) > KEY_BYTES:
            raise SettingsError(f"inputs: key_file: {path}: has a line of over {KEY_BYTES} bytes")
        found[path] = secrets
    return found


def _check_formats_and_cloak(settings: Settings) -> None:
    secrets = read_secrets(settings)
    for each in settings.inputs:
        try:
            each.make_codec(secrets[each.key_file] if each.key_file else ())
        except SettingsError as error:
            raise SettingsError(f"inputs: codec: {error}") from None
    if settings.region.cloak is not None:
        try:
            load_plugin(CLOAKS, settings.region.cloak)
        except SettingsError as error:
            raise SettingsError(f"region.cloak: {error}") from None


def _check_token(settings: Settings) -> None:
    if settings.http.enabled or settings.http.token_file is not None:
        read_token(settings.http)


def _declared(settings: Settings) -> "list[Stream]":
    for stream in settings.streams:
        try:
            require(*MODELS[stream.model].extras_of(stream.method))
        except MissingExtraError as error:
            raise SettingsError(f"streams: {stream.name}: {error}") from None

    return declared_streams(settings)


def _readable(key: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise SettingsError(f"{key}: {path}: cannot be read: {error.strerror}") from None


def _network(settings: NetworkSettings) -> RoadNetwork:
    source = settings.source
    if "source" not in settings.model_fields_set:
        # Else everything would be located in a generated city.
        raise SettingsError(
            "network.source: must be stated: a file of the roads, or for a trial city:10000"
        )
    try:
        network = load_network(source)
    except (InputError, MissingExtraError) as error:
        raise SettingsError(f"network.source: {error}") from None
    if not network.has_coordinates:
        raise SettingsError(
            f"network.source: {source}: has no coordinates to locate positions by;"
            " nodes of GraphML have them as y and x, or lat and lon, tables in PREFIX_nodes"
        )
    return network
