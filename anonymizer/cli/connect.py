"""Command `anonymizer connect`: a known source of positions, from its broker to an analyst."""

import re
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonymizer.cli.completion import codec_names, reader_names
from anonymizer.cli.init import RECOMMENDED, checked_text, why_wrong
from anonymizer.errors import AnonymizerError, SettingsError

if TYPE_CHECKING:
    from anonymizer.app.connect.broker_files import Certificate
    from anonymizer.app.connect.ecosystems import Ecosystem
    from anonymizer.domain.network import RoadNetwork
    from anonymizer.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SETTINGS = "gateway.toml"
_NOT_DEVICES = ("gateway", "analyst", "public")


def ecosystem_names() -> list[str]:
    """Return the names of all ecosystems, for completion."""
    from anonymizer.app.connect.ecosystems import NAMES

    return list(NAMES)


def connect(
    ecosystem: Annotated[
        str | None,
        typer.Argument(
            help="owntracks, traccar, home-assistant, meshtastic, ttn, hsl or kafka.",
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
        typer.Option(
            metavar="URL",
            help="A broker that runs already; try it, configure none. Of Kafka: host:port.",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificate authority of that broker.")
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            autocompletion=reader_names,
            help="public: a user who reads where about how many are, coarse and late. own: each"
            " device may read what it sends, exact. Repeat it.",
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="Of Kafka: the topic of raw positions.", show_default="positions"),
    ] = None,
    codec: Annotated[
        str | None,
        typer.Option(
            help="Of Kafka: their format.", autocompletion=codec_names, show_default="native"
        ),
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

        anonymizer connect owntracks --network city.osm.pbf --reader public --reader own

        anonymizer connect traccar --try

        anonymizer connect kafka --network city.osm.pbf --broker kafka.example:9093
    """
    from anonymizer.app.connect.ecosystems import KAFKA, ecosystem_of

    name = ecosystem or _asked_ecosystem()
    folder = out or Path(name)
    if name == KAFKA:
        if device or certificate or key or reader:
            raise SettingsError("--device, --reader, --certificate and --key: are for Mosquitto")
        _connect_kafka(folder, network, broker, topic, codec, ca_file, again=try_again)
        return
    known = ecosystem_of(name)
    if topic or codec:
        raise SettingsError(f"--topic and --codec: are for {KAFKA}")
    roads = None
    if not try_again:
        network = _network_for(folder, network)
        users = _users(known, device or _asked_devices(known))
        roads = _write(
            folder,
            known,
            network=network,
            users=users,
            broker=broker or f"mqtt://127.0.0.1:{port}",
            ca_file=ca_file,
            port=None if broker else port,
            tls=_certificate(certificate, key),
            readers=_readers(known, reader or []),
        )
    settings = _settings(folder)
    try:
        typer.echo(_tried(folder, settings, known, roads, here=broker is None and not try_again))
    except AnonymizerError as error:
        if try_again:
            raise
        again = f"anonymizer connect {name} --out {folder} --try"
        raise type(error)(f"{error}; the files are written: then {again}") from None
    for line in _next(folder, settings, known):
        typer.echo(line)


def _connect_kafka(
    folder: Path,
    network: str | None,
    servers: str | None,
    topic: str | None,
    codec: str | None,
    ca_file: Path | None,
    *,
    again: bool,
) -> None:
    """Write all files for Kafka, or try what is in a folder."""
    from anonymizer.cli.connect_kafka import try_kafka, write_kafka

    if again:
        try_kafka(folder)
        return
    write_kafka(
        folder,
        network=_network_for(folder, network),
        servers=servers or _setting("kafka", "servers", "Kafka (host:port)", "127.0.0.1:9092"),
        topic=topic or _answer("Topic of raw positions", "positions", _why_no_topic),
        codec=codec or _setting("inputs", "codec", "Their format", "native"),
        ca_file=ca_file,
    )


def _network_for(folder: Path, network: str | None) -> str:
    """Return the network for the settings in a folder; SettingsError if some are there."""
    if (folder / _SETTINGS).exists():
        raise SettingsError(f"{folder / _SETTINGS}: already exists; --try tries what is there")
    found = network or _setting("network", "source", "Road network (a file, PREFIX or city:N)", "")
    if not found:
        raise SettingsError("--network: state a file of the roads, or for a trial city:2500")
    return found


def _setting(table: str, key: str, question: str, default: str) -> str:
    """Return the answer to a question for a setting."""
    return _answer(question, default, lambda said: why_wrong(table, key, said))


def _why_no_topic(said: str) -> str | None:
    from anonymizer.settings.kafka import check_kafka_topic

    try:
        check_kafka_topic(said)
    except ValueError as error:
        return str(error)
    return None


def _answer(question: str, default: str, wrong: Callable[[str], str | None]) -> str:
    """Ask on a terminal until nothing is wrong; the default where nobody can be asked."""
    if not sys.stdin.isatty():
        return default
    while True:
        said = str(typer.prompt(question, default=default or None))
        why = wrong(said)
        if why is None:
            return said
        typer.echo(why, err=True)


def _asked_ecosystem() -> str:
    from anonymizer.app.connect.ecosystems import NAMES

    names = ", ".join(NAMES)
    said = _answer(
        f"Positions come from ({names})",
        "",
        lambda said: None if said in NAMES else f"{said}: must be one of {names}",
    )
    if not said:
        raise SettingsError(f"name an ecosystem: {names}")
    return said


def _asked_devices(known: "Ecosystem") -> list[str]:
    """Return the devices that are users, if each is one."""
    if not known.has_users:
        return []

    def wrong(said: str) -> str | None:
        try:
            _users(known, said.split())
        except SettingsError as error:
            return str(error)
        return None

    return _answer("Devices, with spaces in between", known.publisher, wrong).split()


def _users(known: "Ecosystem", devices: list[str] | None) -> list[str]:
    """Return the names of the users that publish; SettingsError if one cannot be a name."""
    if devices and not known.has_users:
        raise SettingsError(f"--device: all positions come from one user, {known.publisher}")
    users = devices or [known.publisher]
    for each in users:
        if not _NAME.fullmatch(each) or each in _NOT_DEVICES:
            raise SettingsError(
                f"--device: {each}: must be letters, digits, ., - and _, not {_or(_NOT_DEVICES)}"
            )
    return users


def _readers(known: "Ecosystem", readers: list[str]) -> list[str]:
    """Return the further readers; SettingsError if there is no such kind."""
    from anonymizer.app.connect.broker_files import OWN, PUBLIC

    for each in readers:
        if each not in {PUBLIC, OWN}:
            raise SettingsError(f"--reader: {each}: must be {PUBLIC} or {OWN}")
        if each == OWN and not known.has_users:
            raise SettingsError(f"--reader: {OWN}: all positions come from one user")
    return readers


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _certificate(certificate: Path | None, key: Path | None) -> "Certificate | None":
    from anonymizer.app.connect.broker_files import Certificate

    if (certificate is None) != (key is None):
        raise SettingsError("--certificate and --key belong together")
    for each in (certificate, key):
        if each is not None and not each.is_file():
            raise SettingsError(f"{each}: there is no such file")
    if certificate is None or key is None:
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):  # an encrypted key is one that Mosquitto asks about
        raise SettingsError(
            f"{certificate} and {key}: are not a certificate and its key, unencrypted, in PEM"
        ) from None
    return Certificate(certificate, key)


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
    readers: list[str],
) -> "RoadNetwork":
    """Write all files; `port` is that of a broker here, None: it runs elsewhere."""
    from anonymizer.app.connect import broker_files as files
    from anonymizer.app.connect.whole_folder import kept_password, startable, write_folder

    chosen: dict[tuple[str, str], Any] = {
        ("network", "source"): network,
        ("broker", "url"): broker,
        ("broker", "username"): files.GATEWAY,
        ("broker", "password_file"): str(_password_file(folder, files.GATEWAY)),
        **({("broker", "ca_file"): str(ca_file.resolve())} if ca_file else {}),
        **({("broker", "drops_topic"): files.DROPS} if port else {}),
        **{("inputs", key): value for key, value in known.input.items()},
        ("inputs", "ids_change_s"): 0,  # ids are those of logins, or of hardware
        **({("output", "forms"): ["density"]} if files.PUBLIC in readers else {}),
        **RECOMMENDED,
    }
    text = checked_text(chosen)
    ready = startable(text)
    public = [files.PUBLIC] if files.PUBLIC in readers else []
    password_of = {
        each: kept_password(_password_file(folder, each))
        for each in (files.GATEWAY, files.ANALYST, *public, *users)
    }
    lines = list(files.mosquitto_lines(folder.resolve(), port=port, tls=tls)) if port else []
    lines += known.bridge
    private = {
        **({"mosquitto.conf": lines} if lines else {}),
        "mosquitto.acl": list(files.rules(ready.settings, known, readers)),
        "passwords": files.passwords_lines(password_of),
    }
    words = {f"{user}.password": [password] for user, password in password_of.items()}
    write_folder(folder, {_SETTINGS: text.splitlines()}, private | words)
    shown = ", ".join([_SETTINGS, *private])
    typer.echo(f"{folder}: {shown} and {len(words)} *.password written")
    return ready.network


def _password_file(folder: Path, user: str) -> Path:
    return folder.resolve() / f"{user}.password"


def _settings(folder: Path) -> "Settings":
    from anonymizer.settings import load_settings

    return load_settings(folder / _SETTINGS)


def _publisher(folder: Path, known: "Ecosystem") -> str:
    """Return the name of a user that publishes: one whose password is in the folder."""
    found = _publishers(folder)
    if not found:
        raise SettingsError(f"{folder}: there is no password of a device")
    return known.publisher if known.publisher in found else found[0]


def _publishers(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.glob("*.password")} - {*_NOT_DEVICES})


def _tried(
    folder: Path,
    settings: "Settings",
    known: "Ecosystem",
    roads: "RoadNetwork | None",
    *,
    here: bool,
) -> str:
    """Try the users and rules; return what was tried; `here`: in a Mosquitto of this command.

    `roads`: those that the settings name, None: they are to be read.
    """
    import asyncio

    from anonymizer.app.connect.broker_files import PUBLIC, reads_own
    from anonymizer.app.connect.trial import try_out
    from anonymizer.app.gateway.preflight import check_files
    from anonymizer.transport.local_brokers import find_mosquitto

    if here and find_mosquitto() is None:
        return "not tried: there is no Mosquitto on this machine"
    roads = roads or check_files(settings).network
    has_public = _password_file(folder, PUBLIC).exists()
    has_own = reads_own((folder / "mosquitto.acl").read_text().splitlines())

    def user(name: str, url: str) -> dict[str, Any]:
        return {"url": url, "username": name, "password_file": _password_file(folder, name)}

    async def trial(url: str) -> None:
        stated, publisher = settings.broker, _publisher(folder, known)
        others = [each for each in _publishers(folder) if each != publisher]
        await try_out(
            settings.model_copy(update={"broker": stated.model_copy(update={"url": url})}),
            roads,
            known,
            device=stated.model_copy(update=user(publisher, url)),
            analyst=stated.model_copy(update=user("analyst", url)),
            public=stated.model_copy(update=user(PUBLIC, url)) if has_public else None,
            reads_own=has_own,
            another=stated.model_copy(update=user(others[0], url)) if others else None,
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
        + "; public reads its copy alone" * has_public
        + "; a device reads what it sends alone" * has_own
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
    config = folder / "mosquitto.conf"
    is_open = config.exists() and "certfile" in config.read_text()
    words = known.words.format(
        user=publisher,
        password=folder / f"{publisher}.password",
        host="the name in the certificate" if is_open else parts.hostname,
        port=8883 if is_open else parts.port or 8883,
    )
    yield f"there: {words}"
    if is_open and known.has_users:
        yield "  each phone or tracker as a user of its own: two of one would throw each other out"
    if not known.has_users:
        yield f"  {publisher} speaks for all devices: whoever has its password can make up as many"
    yield "here:"
    if parts.hostname == "127.0.0.1":
        yield f"  mosquitto -c {config}"
    yield f"  anonymizer serve --config {folder / _SETTINGS}"
