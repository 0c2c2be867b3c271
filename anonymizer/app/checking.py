"""Would these settings start? What can be told without a broker."""

from pathlib import Path

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from anonymizer.transport.dialling import read_access


def check_files(settings: Settings) -> RoadNetwork:
    """Read every file that the settings name; return the network, which takes the longest.

    Raises
    ------
    SettingsError
        Naming the key of the first that cannot be used.
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
    try:
        read_access(broker)
    except TransportError as error:
        raise SettingsError(str(error)) from None
    return _network(settings.network.source)


def _readable(key: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise SettingsError(f"{key}: {path}: cannot be read: {error.strerror}") from None


def _network(source: str) -> RoadNetwork:
    try:
        network = load_network(source)
    except InputError as error:
        raise SettingsError(f"network.source: {error}") from None
    if not network.has_coordinates:
        raise SettingsError(f"network.source: {source}: has no coordinates to locate positions by")
    return network
