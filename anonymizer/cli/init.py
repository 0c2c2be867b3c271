"""Commands `anonymizer init` and `anonymizer schema`: a first settings file, and its schema."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from anonymizer.cli.completion import codec_names, mode_names
from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.errors import SettingsError
from anonymizer.files.atomic_write import whole_file

_STDOUT = Path("-")
RECOMMENDED: Mapping[tuple[str, str], Any] = {("adka", "k_floor"): 5}
"""Written in place of the defaults, except for `adka`, which is to be ADKA as published."""
_NETWORK = ("network", "source")
"""Always written: the gateway starts with no other network than its file states."""
_QUESTIONS: Mapping[tuple[str, str], str] = {
    _NETWORK: "Road network (a file, PREFIX, grid:RxC or city:N)",
    ("broker", "url"): "MQTT broker (mqtts://host[:port]; mqtt:// on this machine)",
    ("inputs", "topic"): "Topic of the raw positions; {device} names the device",
    ("inputs", "codec"): "Format of the payloads",
    ("region", "mode"): "Regions: session, snapshot or adka",
    ("http", "run_by"): "Who runs it, and a contact, for visitors of its map (may stay empty)",
}
"""Questions on a terminal, for options that are not given."""


def init(
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write; -: print it.")] = Path(
        "gateway.toml"
    ),
    network: Annotated[
        str | None, typer.Option(metavar="NET", help="Road network; see `anonymizer cloak`.")
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", help="mqtts://host[:port], or mqtt:// on this machine."),
    ] = None,
    username: Annotated[
        str | None, typer.Option(help="User name of the gateway at the broker.")
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="File whose first line is the password.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificate authority of the broker.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic of raw positions; {device} names the device.")
    ] = None,
    codec: Annotated[
        str | None, typer.Option(help="Format of the payloads.", autocompletion=codec_names)
    ] = None,
    device_from: Annotated[
        str | None, typer.Option(help="Where a device is named: topic or payload.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="Regions: session, snapshot or adka.", autocompletion=mode_names),
    ] = None,
    http_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the map and metrics; 0: any.")
    ] = None,
    run_by: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="Who runs it, and a contact, for visitors of its map."),
    ] = None,
    yes: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option("--yes", "-y", help="Ask nothing; use defaults for all other options.")
    ] = False,
    everything: Annotated[  # noqa: FBT002  likewise
        bool,
        typer.Option(
            "--all",
            help="Also write sensors, and a stream of records for each method: kd, kld, cells, "
            "and kaca with the toll API. `simulator run --all` sends what they take.",
        ),
    ] = False,
    all_keys: Annotated[  # noqa: FBT002  likewise
        bool, typer.Option("--all-keys", help="Write every key with its meaning and its default.")
    ] = False,
    force: Annotated[  # noqa: FBT002  likewise
        bool, typer.Option("--force", help="Overwrite the file.")
    ] = False,
) -> None:
    """Write a first settings file: what is needed, and the settings that every operator meets.

    It sets adka.k_floor to 5: the default of 2 is that of the published algorithm.

    On a terminal, it asks for options that are not given. `anonymizer connect` also writes what the
    broker needs.

    [bold]Examples[/bold]

        anonymizer init

        anonymizer init --network city.osm.pbf --broker mqtts://broker.example --out gateway.toml

        anonymizer init --yes --out -

        anonymizer init --yes --all --network city:2500
    """
    from anonymizer.settings import NetworkSettings
    from anonymizer.settings.all_methods import ALL_METHODS

    if out != _STDOUT and out.exists() and not force:
        raise SettingsError(f"{out}: already exists; --force overwrites it")
    given: dict[tuple[str, str], Any] = {
        _NETWORK: network,
        ("broker", "url"): broker,
        ("broker", "username"): username,
        ("broker", "password_file"): password_file and str(password_file),
        ("broker", "ca_file"): ca_file and str(ca_file),
        ("inputs", "topic"): topic,
        ("inputs", "codec"): codec,
        ("inputs", "device_from"): device_from,
        ("region", "mode"): mode,
        ("http", "port"): http_port,
        ("http", "run_by"): run_by,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    if sys.stdin.isatty() and not yes:
        chosen = {**_answers(chosen, _ask), **chosen}
    if chosen.get(("region", "mode")) != "adka":
        chosen = {**RECOMMENDED, **chosen}
    chosen = {_NETWORK: NetworkSettings().source} | chosen
    text = checked_text(chosen, all_keys=all_keys)
    if everything:
        text = f"{text}\n{ALL_METHODS}"
    _write(out, text)


def _write(out: Path, text: str) -> None:
    if out == _STDOUT:
        typer.echo(text, nl=False)
        return
    with whole_file(out) as file:
        file.write(text.encode())
    typer.echo(f"{out}: written; try it with: anonymizer check --config {out}")


def schema(
    asyncapi: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option("--asyncapi", help="Print the topics and messages as AsyncAPI 3 instead."),
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Print the JSON Schema of the settings file, with which editors complete and check it.

    With --asyncapi: all topics of a gateway with these settings, in and out, with a JSON Schema
    (draft 2020-12) of each message.

    [bold]Examples[/bold]

        anonymizer schema > settings.schema.json

        anonymizer schema --asyncapi --config gateway.toml > asyncapi.json
    """
    if asyncapi or config is not None:
        settings = settings_of(config)
    if asyncapi:
        from anonymizer.app import contract

        typer.echo(json.dumps(contract.asyncapi(settings), indent=2))
        return
    from anonymizer.settings.json_schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def _answers(
    given: Mapping[tuple[str, str], Any], ask: Callable[[str, str], str]
) -> dict[tuple[str, str], str]:
    """Return the answers to the open questions; a default that is accepted is left out."""
    from anonymizer.settings import InputSettings, Settings

    settings = Settings()
    answers = {}
    for (table, key), question in _QUESTIONS.items():
        if (table, key) in given:
            continue
        group = InputSettings() if table == "inputs" else getattr(settings, table)
        default = str(getattr(group, key))
        answer = ask(question, default)
        while (wrong := why_wrong(table, key, answer)) is not None:
            typer.echo(wrong, err=True)
            answer = ask(question, default)
        if answer != default:
            answers[table, key] = answer
    return answers


def _ask(question: str, default: str) -> str:
    return str(typer.prompt(question, default=default))


def why_wrong(table: str, key: str, answer: str) -> str | None:
    """Return why an answer is no value of a setting, None if it is one."""
    try:
        checked_text({(table, key): answer}, source="")
    except SettingsError as error:
        return str(error)
    return None


def checked_text(
    chosen: Mapping[tuple[str, str], Any], *, source: str = "command line", all_keys: bool = False
) -> str:
    """Return the settings file; SettingsError if the gateway would reject it."""
    from anonymizer.settings.example import settings_text
    from anonymizer.settings.toml_file import validated

    tables: dict[str, dict[str, Any]] = {}
    for (table, key), value in chosen.items():
        tables.setdefault(table, {})[key] = value
    inputs = {"inputs": [tables["inputs"]]} if "inputs" in tables else {}
    validated(tables | inputs, source)
    return settings_text(tables, all_keys=all_keys)
