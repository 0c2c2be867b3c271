"""`anonymizer connect kafka`: positions that are in Kafka, from their fleet to an analyst."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from anonymizer.cli.init import RECOMMENDED, checked_text
from anonymizer.errors import InputError, SettingsError

if TYPE_CHECKING:
    from anonymizer.settings import Settings

SETTINGS = "gateway.toml"
_SETUP = "setup.sh"


def write_kafka(
    folder: Path, *, network: str, servers: str, topic: str, codec: str, ca_file: Path | None
) -> None:
    """Write settings, logins and an administrator's script, and say what is next."""
    from anonymizer.app.connect import kafka_files as files
    from anonymizer.app.connect.broker_files import ANALYST, GATEWAY, new_password
    from anonymizer.app.connect.whole_folder import startable, write_folder

    if ca_file is not None and not ca_file.is_file():
        raise SettingsError(f"--ca-file: {ca_file}: there is no such file")
    password_of = {user: new_password() for user in files.USERS}
    options_of = {
        user: files.login(user, password, servers=servers, ca_file=ca_file)
        for user, password in password_of.items()
    }
    chosen: dict[tuple[str, str], Any] = {
        ("network", "source"): network,
        ("inputs", "topic"): f"kafka:{topic}",
        ("inputs", "codec"): codec,
        ("output", "topic"): f"kafka:{files.REGIONS}",
        ("kafka", "servers"): servers,
        ("kafka", "options"): options_of[GATEWAY],
        **RECOMMENDED,
    }
    text = checked_text(chosen)
    settings = startable(text).settings
    logins = {
        f"{user}.properties": files.properties_lines(options_of[user], servers=servers)
        for user in (files.FLEET, ANALYST)
    }
    setup = list(files.setup_lines(settings, password_of))
    write_folder(folder, {}, {_SETUP: setup, **logins, SETTINGS: text.splitlines()})
    typer.echo(f"{folder}: {SETTINGS}, {_SETUP}, fleet.properties and analyst.properties written")
    typer.echo(f"there: sh {folder / _SETUP} ADMIN.properties makes topics, users and rules once;")
    typer.echo(
        f"  the fleet writes to {topic}, with the device as the key, as {folder}/fleet.properties,"
        " whose password speaks for all devices"
    )
    for line in (f"connect kafka --out {folder} --try", f"serve --config {folder / SETTINGS}"):
        typer.echo(f"{'here:' if '--try' in line else '     '} anonymizer {line}")


def try_kafka(folder: Path) -> None:
    """Try what is in a folder, where its Kafka runs, and say so."""
    from anonymizer.app.connect import kafka_files as files
    from anonymizer.app.connect.broker_files import ANALYST
    from anonymizer.app.connect.kafka_trial import try_out

    settings = _settings(folder)
    if len(settings.inputs) != 1 or not settings.in_kafka:
        raise SettingsError(f"{folder / SETTINGS}: is not of one input of Kafka, and regions there")
    options = []
    for user in (files.FLEET, ANALYST):
        path = _properties(folder, user)
        try:
            options.append(files.read_properties(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    sent = try_out(settings, fleet=options[0], analyst=options[1])
    typer.echo(
        f"tried at {settings.kafka.servers}: fleet writes, gateway "
        + ("receives" if sent else "may read (this format cannot be written here)")
        + "; analyst reads what is published, and nothing raw; nobody else publishes"
    )


def _properties(folder: Path, user: str) -> Path:
    return folder / f"{user}.properties"


def _settings(folder: Path) -> "Settings":
    from anonymizer.settings import load_settings

    return load_settings(folder / SETTINGS)
