"""Command `anonymizer connect`: a known source of positions, from its broker to an analyst."""

import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonymizer.cli.init import RECOMMENDED, checked_text
from anonymizer.errors import InputError, SettingsError

if TYPE_CHECKING:
    from anonymizer.app.connect.broker_files import Certificate
    from anonymizer.app.connect.ecosystems import Ecosystem
    from anonymizer.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SETTINGS = "gateway.toml"


def ecosystem_names() -> list[str]:
    """Return the names of all ecosystems, for completion."""
    from anonymizer.app.connect.ecosystems import ECOSYSTEMS

    return list(ECOSYSTEMS)


def connect(
    ecosystem: Annotated[
        str | None,
        typer.Argument(
            help="owntracks, traccar, home-assistant, meshtastic, ttn or hsl.",
            autocompletion=ecosystem_names,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write.", show_default="its name"),
    ] = None,
    network: Annotated[
        str | None, typer.Option(metavar="NET", help="Road network; see `anonymizer cloak`.")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A device that is a user of the broker; repeat it."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the broker here.")] = 1883,
    certificate: Annotated[
        Path | None, typer.Option(help="The broker's certificate (PEM), for devices elsewhere.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A broker that runs already; try it, configure none."),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificate authority of that broker.")
    ] = None,
    try_again: Annotated[  # noqa: FBT002  typer's flag
        bool, typer.Option("--try", help="Write nothing: try what is in the folder, where it runs.")
    ] = False,
) -> None:
    """Connect a known source of positions: write all files, and try them end to end.

    It writes gateway.toml; passwords of the gateway, an analyst and the devices; and Mosquitto's
    configuration, passwords and access rules. Then it publishes as a device, receives as the
    gateway, reads as the analyst and tries what must be denied: in a Mosquitto of its own, or at
    --broker. What is missing it says in a sentence.

    [bold]Examples[/bold]

        anonymizer connect owntracks --network city.osm.pbf --device alice --device bob

        anonymizer connect traccar --network city.osm.pbf --broker mqtts://broker.example

        anonymizer connect traccar --try
    """
    from anonymizer.app.connect.ecosystems import ecosystem_of

    asks = sys.stdin.isatty()
    if ecosystem is None:
        if not asks:
            raise SettingsError(f"name an ecosystem: {', '.join(ecosystem_names())}")
        ecosystem = str(typer.prompt(f"Positions come from ({', '.join(ecosystem_names())})"))
    known = ecosystem_of(ecosystem)
    folder = out or Path(ecosystem)
    if not try_again:
        if (folder / _SETTINGS).exists():
            raise SettingsError(f"{folder / _SETTINGS}: already exists; --try tries what is there")
        if network is None and asks:
            network = str(typer.prompt("Road network (a file, PREFIX, grid:RxC or city:N)"))
        if network is None:
            raise SettingsError("--network: state a file of the roads, or for a trial city:2500")
        users = _users(known, device)
        _write(
            folder,
            known,
            network=network,
            users=users,
            broker=broker or f"mqtt://127.0.0.1:{port}",
            ca_file=ca_file,
            port=None if broker else port,
            tls=_certificate(certificate, key),
        )
    settings = _settings(folder)
    typer.echo(_tried(folder, settings, known, here=broker is None and not try_again))
    for line in _next(folder, settings, known):
        typer.echo(line)


def _users(known: "Ecosystem", devices: list[str] | None) -> list[str]:
    """Return the names of the users that publish; SettingsError if one cannot be a name."""
    if devices and not known.has_users:
        raise SettingsError(f"--device: all positions come from one user, {known.publisher}")
    users = devices or [known.publisher]
    for each in users:
        if not _NAME.fullmatch(each) or each in {"gateway", "analyst"}:
            raise SettingsError(
                f"--device: {each}: must be letters, digits, ., - and _, not gateway or analyst"
            )
    return users


def _certificate(certificate: Path | None, key: Path | None) -> "Certificate | None":
    from anonymizer.app.connect.broker_files import Certificate

    if (certificate is None) != (key is None):
        raise SettingsError("--certificate and --key belong together")
    for each in (certificate, key):
        if each is not None and not each.is_file():
            raise SettingsError(f"{each}: there is no such file")
    return None if certificate is None or key is None else Certificate(certificate, key)


def _write(
    folder: Path,
    known: "Ecosystem",
    *,
    network: str,
    users: list[str],
    broker: str,
    ca_file: Path | None,
    port: int | None,
    tls: "Certificate | None",
) -> None:
    """Write all files; `port` is that of a broker here, None: it runs elsewhere."""
    from anonymizer.app.connect import broker_files as files

    chosen: dict[tuple[str, str], Any] = {
        ("network", "source"): network,
        ("broker", "url"): broker,
        ("broker", "username"): files.GATEWAY,
        ("broker", "password_file"): str(_password_file(folder, files.GATEWAY)),
        **({("broker", "ca_file"): str(ca_file.resolve())} if ca_file else {}),
        **({("broker", "drops_topic"): files.DROPS} if port else {}),
        **{("inputs", key): value for key, value in known.input.items()},
        **RECOMMENDED,
    }
    text = checked_text(chosen)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        password_of = {}
        for each in (files.GATEWAY, files.ANALYST, *users):
            path = _password_file(folder, each)
            password_of[each] = (
                path.read_text().splitlines()[0] if path.exists() else files.new_password()
            )
            files.write_private(path, [password_of[each]])
        (folder / _SETTINGS).write_text(text, encoding="utf-8")
        absolute = folder.resolve()
        files.write_private(folder / "passwords", files.passwords_lines(password_of))
        rules = list(files.rules(_settings(folder), known))
        files.write_private(folder / "mosquitto.acl", rules)
        lines = list(files.mosquitto_lines(absolute, port=port, tls=tls)) if port else []
        lines += known.bridge
        if lines:
            files.write_private(folder / "mosquitto.conf", lines)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    shown = ["gateway.toml", *["mosquitto.conf"] * bool(lines), "mosquitto.acl", "passwords"]
    typer.echo(f"{folder}: {', '.join(shown)} and {len(password_of)} *.password written")


def _password_file(folder: Path, user: str) -> Path:
    return folder.resolve() / f"{user}.password"


def _settings(folder: Path) -> "Settings":
    from anonymizer.settings import load_settings

    return load_settings(folder / _SETTINGS)


def _publisher(folder: Path, known: "Ecosystem") -> str:
    """Return the name of a user that publishes: one whose password is in the folder."""
    found = {path.stem for path in folder.glob("*.password")} - {"gateway", "analyst"}
    if not found:
        raise SettingsError(f"{folder}: there is no password of a device")
    return known.publisher if known.publisher in found else min(found)


def _tried(folder: Path, settings: "Settings", known: "Ecosystem", *, here: bool) -> str:
    """Try the users and rules; return what was tried; `here`: in a Mosquitto of this command."""
    import asyncio

    from anonymizer.app.connect.trial import try_out
    from anonymizer.app.gateway.preflight import check_files
    from anonymizer.transport.local_brokers import find_mosquitto

    if here and find_mosquitto() is None:
        return "not tried: there is no Mosquitto on this machine"
    checked = check_files(settings)

    def user(name: str, url: str) -> dict[str, Any]:
        return {"url": url, "username": name, "password_file": _password_file(folder, name)}

    async def trial(url: str) -> None:
        stated, publisher = settings.broker, _publisher(folder, known)
        await try_out(
            settings.model_copy(update={"broker": stated.model_copy(update={"url": url})}),
            checked.network,
            known,
            device=stated.model_copy(update=user(publisher, url)),
            analyst=stated.model_copy(update=user("analyst", url)),
        )

    if here:
        asyncio.run(_in_own_broker(folder.resolve(), trial))
        where = "in a Mosquitto with these files"
    else:
        asyncio.run(trial(settings.broker.url))
        where = f"at {settings.broker.url}"
    return (
        f"tried {where}: a device publishes, gateway receives; analyst reads the network and what"
        " is published, and nothing raw; nobody speaks for another"
    )


async def _in_own_broker(folder: Path, trial: Callable[[str], Awaitable[None]]) -> None:
    """Run a Mosquitto with the files of a folder, without the bridge, and try it."""
    from anonymizer.transport.local_brokers import mosquitto

    with tempfile.TemporaryDirectory(prefix="anonymizer-") as state:
        started = mosquitto(
            Path(state),
            "allow_anonymous false",
            f"password_file {folder / 'passwords'}",
            f"acl_file {folder / 'mosquitto.acl'}",
        )
        await started.start()
        try:
            await trial(started.url)
        finally:
            await started.stop()


def _next(folder: Path, settings: "Settings", known: "Ecosystem") -> Iterator[str]:
    """Say what is to be done next."""
    from urllib.parse import urlsplit

    parts = urlsplit(settings.broker.url)
    publisher = _publisher(folder, known)
    words = known.words.format(
        user=publisher,
        password=folder / f"{publisher}.password",
        host=parts.hostname,
        port=parts.port or 8883,
    )
    yield f"there: {words}"
    yield "here:"
    if parts.hostname == "127.0.0.1":
        yield f"  mosquitto -c {folder / 'mosquitto.conf'}"
    yield f"  anonymizer serve --config {folder / _SETTINGS}"
