"""A slim installation works, and what it lacks is one line; --help and the gateway load little."""

import asyncio
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from anonymizer.extras import (
    DISTRIBUTION,
    EXTRAS,
    SPARK_EXTRAS,
    MissingExtraError,
    extra,
    require,
)
from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import running_mosquitto
from simulator.toll_exits import MADE, settings_for
from tests.end_to_end import (
    AS_OPERATOR,
    DEADLINE_S,
    TOKEN,
    Gateway,
    client,
    http_client,
    quick,
    running,
    send,
    witness,
    write_settings,
)
from tests.preloaded import ran

ROOT = Path(__file__).parents[1]
ALL = ",".join(EXTRAS)
GRID = load_network("grid:5x5")
HEAVY = frozenset(
    {
        "numpy", "numba", "scipy", "networkx", "msgspec", "fastapi", "starlette", "uvicorn",
        "structlog", "prometheus_client", "paho", "google", "asyncio",
        *(module for each in EXTRAS.values() for module in each.modules),
    }
)  # fmt: skip
"""Packages that no --help needs; typer itself imports rich and, for the options, pydantic."""
COMMANDS = {
    "anonymizer": (
        "demo", "serve", "check", "init", "schema", "cloak", "anonymize", "tune", "mcp", "backup",
        "clock", "bridge", "worker",
        "audit stream", "audit table", "experiment adka", "experiment multisource",
        "experiment tracking",
    ),
    "simulator": ("run", "trace", "replay", "records", "tolls"),
}  # fmt: skip


def python(*arguments: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python with the tests importable."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def loaded(code: str) -> set[str]:
    """Return the names of all modules that code loads."""
    done = python("-c", f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))")
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def slim(
    extras: str, program: str, *arguments: str | Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program without some extras."""
    return ran(program, *arguments, folder=folder, without=extras.split(","))


def test_every_extra_is_declared_with_the_distributions_of_its_modules() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = declared["optional-dependencies"]
    assert set(EXTRAS) | set(SPARK_EXTRAS) == set(optional) - {"all"}
    assert declared["name"] == DISTRIBUTION
    assert optional["all"] == [f"{DISTRIBUTION}[{','.join(sorted(EXTRAS))}]"]
    for name, (_, modules) in {**EXTRAS, **SPARK_EXTRAS}.items():
        assert len(optional[name]) == len(modules)


def test_only_an_extras_own_modules_are_put_down_to_it() -> None:
    with pytest.raises(MissingExtraError) as caught, extra("osm"):
        raise ModuleNotFoundError(name="osmium.filter")
    assert str(caught.value) == (
        "networks from OpenStreetMap need the extra \"osm\": pip install 'anonymizer-gateway[osm]'"
    )
    with pytest.raises(ModuleNotFoundError, match="another"), extra("osm"):
        raise ModuleNotFoundError("another", name="another")
    with pytest.raises(ImportError, match="broken"), extra("osm"):
        raise ImportError("broken", name="osmium")
    require(*EXTRAS)  # all of them are here


def test_a_slim_installation_imports_what_serves_and_simulates() -> None:
    modules = loaded(
        f"from tests.slim import remove; remove({list(EXTRAS)!r})\n"
        "import anonymizer.app.gateway.service, anonymizer.app.gateway.preflight\n"
        "import anonymizer.app.gateway.recorder, anonymizer.app.gateway.api, anonymizer.web.map\n"
        "import anonymizer.app.demo, anonymizer.cli.main, anonymizer.store\n"
        "import simulator.__main__, simulator.playing, simulator.traffic, simulator.fleet\n"
        "import simulator.trace_replay, simulator.record_fleet, simulator.toll_exits"
    )
    assert "anonymizer.app.gateway.gateway" in modules


async def test_a_slim_installation_serves(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    async with running_mosquitto() as url, witness(url) as seen:
        write_settings(config, quick(url, network={"source": "grid:5x5", "snap_limit_m": 60}))
        checked = await asyncio.to_thread(
            slim, ALL, "anonymizer", "check", "-c", config, folder=ROOT
        )
        assert (checked.returncode, checked.stderr) == (0, "")
        assert "a network of 25 nodes" in checked.stdout
        command = (sys.executable, "-m", "tests.slim", ALL, "anonymizer", "serve", "-c", config)
        environment = {"PYTHONPATH": str(ROOT), "ANONYMIZER__HTTP__TOKEN": TOKEN}
        async with running(*command, environment=environment) as program:
            http_url = (await program.logged("listening"))["url"]
            async with http_client(http_url, headers=AS_OPERATOR) as http:
                gateway = Gateway(program, http)
                await gateway.until_ready()
                async with client(url, "devices") as devices:
                    await send(devices, [report(i) for i in range(40)], qos=1)
                # The first tick has few devices.
                await gateway.until(lambda now: now.outcomes.get("published", 0) >= 20)
                assert (await gateway.get("/")).status_code == 200
        await seen.until(lambda: seen.n_pseudonyms >= 20)


def report(device: int) -> tuple[str, bytes]:
    """Return a position at some node of the grid."""
    node = device % GRID.n_nodes
    fix = {"lat": float(GRID.lat[node]), "lon": float(GRID.lon[node]), "ts": time.time()}
    return f"positions/tram-{device}", json.dumps(fix).encode()


REPLAY = ("replay", "trace.csv", "--broker", "mqtt://127.0.0.1:1")
ANONYMIZE = ("anonymize", "t.csv", "--qi", "age", "-k", "5", "--out", "o.csv")
TUNE = ("tune", "t.csv", "--qi", "age", "--out", "o")
AUDIT = ("t.csv", "o.csv", "--auditor-map", "m.csv", "--qi", "age")
CASES = [
    ("demo", "anonymizer", ("demo", "--broker", "embedded", "--headless")),
    ("learn", "anonymizer", ("demo", "--headless")),
    ("h3", "anonymizer", ("check", "-c", "h3.toml")),
    ("learn", "anonymizer", (*ANONYMIZE, "--model", "kaca", "--method", "kmeans")),
    ("learn", "anonymizer", TUNE),
    ("learn", "anonymizer", ("serve", "-c", "kmeans.toml")),
    ("mcp", "anonymizer", ("mcp", "-c", "kmeans.toml")),
    ("osm", "anonymizer", ("check", "-c", "osm.toml")),
    ("osm", "simulator", ("run", "--network", "net.osm.pbf")),
    ("owntracks", "anonymizer", ("check", "-c", "phones.toml")),
    ("plots", "anonymizer", (*ANONYMIZE, "--page", "page.html")),
    ("plots", "anonymizer", TUNE),
    ("plots", "anonymizer", ("experiment", "adka", "--out", "o")),
    ("plots", "anonymizer", ("experiment", "multisource", "--out", "o")),
    ("plots", "anonymizer", ("experiment", "tracking", "--out", "o")),
    ("skops", "anonymizer", (*TUNE, "--target", "well", "--estimator", "mine.skops")),
    ("sumo", "anonymizer", ("check", "-c", "sumo.toml")),
    ("tables", "anonymizer", ANONYMIZE),
    ("tables", "anonymizer", TUNE),
    ("tables", "anonymizer", ("cloak", "t.csv", "--network", "grid:3x3", "--out", "o")),
    ("tables", "anonymizer", ("audit", "table", *AUDIT)),
    ("tables", "anonymizer", ("audit", "stream", "t.csv", "o.jsonl", "--network", "grid:3x3")),
    ("tables", "anonymizer", ("experiment", "multisource", "--out", "o")),
    ("tables", "anonymizer", ("check", "-c", "tables.toml")),
    ("websockets", "anonymizer", ("check", "-c", "websocket.toml")),
    ("websockets", "simulator", ("run", "--network", "grid:3x3", "--broker", "ws://127.0.0.1:1")),
    ("tables", "anonymizer", ("audit", "windows", "t.csv", "o.jsonl")),
    ("tables", "anonymizer", ("check", "-c", "watched.toml")),
    ("tables", "anonymizer", ("report", "t.csv", "--out", "o.html")),
    ("tables", "simulator", REPLAY),
    ("tables", "simulator", ("run", "--network", "grid:3x3", "--record", "t.csv")),
    ("tables", "simulator", ("trace", "t.csv", "--network", "grid:3x3", "--duration", "1")),
]
"""What is missing, and a command that needs it; files that are named are empty or settings."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slim")
    for name in ("net.osm.pbf", "net.net.xml", "net_edges.csv", "trace.csv", "t.csv"):
        (folder / name).touch()
    for name, source in (("osm", "net.osm.pbf"), ("sumo", "net.net.xml"), ("tables", "net")):
        write_settings(folder / f"{name}.toml", {"network": {"source": source}})
    toll = settings_for(list(MADE.section))
    clusters = toll.replace('model = "kaca"', 'model = "kaca"\nmethod = "kmeans"')
    (folder / "kmeans.toml").write_text(f"{clusters}\n[http]\nport = 0\n")
    (folder / "keys").write_text("open sesame")
    phones = [{"codec": "owntracks", "key_file": str(folder / "keys")}]
    write_settings(folder / "phones.toml", {"inputs": phones})
    write_settings(folder / "websocket.toml", {"broker": {"url": "ws://localhost"}})
    write_settings(folder / "watched.toml", {"watch": {"evidence_s": 60, "reports": str(folder)}})
    write_settings(folder / "h3.toml", {"shapes": {"regions": "h3"}})
    return folder


@pytest.mark.parametrize(
    ("name", "program", "arguments"), CASES, ids=[" ".join((n, *a[:2])) for n, _, a in CASES]
)
def test_a_missing_extra_is_one_line_and_exit_2(
    name: str, program: str, arguments: tuple[str, ...], folder: Path
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = slim(name, program, *arguments, folder=folder)
    assert done.returncode == 2, done.stderr
    assert not done.stdout or arguments[0] == "serve"  # which says at once that it begins
    [line] = [each for each in done.stderr.splitlines() if not each.startswith("{")]  # a log's
    assert line.startswith(f"{program}: ")
    install = (
        f"{EXTRAS[name].needed_by} need the extra \"{name}\": pip install '{DISTRIBUTION}[{name}]'"
    )
    assert line.endswith(install)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("main", ["anonymizer.cli.main", "simulator.__main__"])
def test_whatever_a_command_lacks_is_one_line_and_exit_2(main: str) -> None:
    modules = [module for each in EXTRAS.values() for module in each.modules]
    done = python(
        "-c",
        f"""\
import {main} as main
def lacking(**_): raise ModuleNotFoundError(name=lacks + ".inner")
main.app = lacking
for lacks in {modules!r}:
    try: main.main()
    except SystemExit as end: assert end.code == 2""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pip install") == len(done.stderr.splitlines()) == len(modules)


def test_every_public_name_is_there_or_says_which_extra_it_needs() -> None:
    done = python(
        "-c",
        f"""\
from tests.slim import remove; remove({list(EXTRAS)!r})
import anonymizer, anonymizer.client
from anonymizer.extras import MissingExtraError
for package in (anonymizer, anonymizer.client):
    for name in package.__all__:
        try: getattr(package, name)
        except MissingExtraError: pass""",
    )
    assert done.returncode == 0, done.stderr


def test_the_estimators_without_their_extra_are_an_import_error() -> None:
    done = python(
        "-c",
        "from tests.slim import remove; remove(['learn'])\n"
        "try: import anonymizer.estimators\n"
        "except ImportError as error: print(error)",
    )
    assert "pip install 'anonymizer-gateway[learn]'" in done.stdout


def test_the_package_itself_loads_nothing() -> None:
    assert not packages(loaded("import anonymizer")) & (HEAVY | {"typer", "rich", "pydantic"})


@pytest.mark.parametrize("program", COMMANDS)
def test_help_loads_nothing_that_only_the_work_needs(program: str) -> None:
    code = f"""\
import contextlib, io
from {program}.__main__ import main
for command in ["", *{COMMANDS[program]!r}]:
    sys.argv = [{program!r}, *command.split(), "--help"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        main()
    assert "Usage" in out.getvalue(), command
"""
    assert not packages(loaded(code)) & HEAVY


@pytest.mark.parametrize("program", COMMANDS)
def test_a_program_ends_without_a_last_search_for_garbage(program: str) -> None:
    code = f"""\
import atexit, gc, sys
from {program}.__main__ import main
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 0))
sys.argv = [{program!r}, "--help"]
main()"""
    assert python("-c", code).stdout.endswith("frozen True\n")


def test_a_gateway_loads_only_what_it_has() -> None:
    modules = loaded("import anonymizer.app.gateway.service")
    optional = {module for each in EXTRAS.values() for module in each.modules}
    assert not packages(modules) & {*optional, "networkx", "fastapi", "uvicorn"}
    assert not {name for name in modules if name.startswith("anonymizer.algorithms.kaca")}
    assert "anonymizer.app.gateway.recorder" not in modules
    modules = loaded("import anonymizer.app.gateway.http_side, anonymizer.app.gateway.service")
    attacks = ("anonymizer.audit.", "scipy.stats")
    assert not {name for name in modules if name.startswith(attacks)}
