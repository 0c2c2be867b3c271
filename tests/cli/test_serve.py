"""`anonymizer check` and `serve` before anything is connected; the files in deploy/."""

import re
import socket
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from anonymizer.networks import load_network
from anonymizer.settings import (
    HttpSettings,
    InputSettings,
    PromiseSettings,
    ReadingSettings,
    Settings,
    SourceSettings,
    StreamSettings,
    ZoneSettings,
)
from tests.brokers import Certificates
from tests.cli.support import anonymizer

EXAMPLE = Path(__file__).parents[2] / "deploy" / "gateway.toml"

MISTAKES = {
    "not TOML": ("[broker\nurl = 1", "is not TOML"),
    "unknown table": ("[brokers]\n", "brokers: "),
    "unknown key": ('[broker]\nadress = "mqtt://x"', "broker.adress: "),
    "wrong type": ('[tick]\ninterval_s = "fast"', "tick.interval_s: "),
    "out of range": ("[adka]\nk_floor = 1", "adka.k_floor: "),
    "not a broker": ('[broker]\nurl = "http://broker"', "broker.url: "),
    "credentials in the address": ('[broker]\nurl = "mqtt://a:b@c"', "broker.url: "),
    "two passwords": ('[broker]\npassword = "a"\npassword_file = "b"', "broker: "),
    "unknown codec": ('[[inputs]]\ncodec = "morse"', "inputs (no. 1).codec: "),
    "no device in the topic": ('[[inputs]]\ntopic = "positions/+"', "inputs (no. 1): topic: "),
    "k that rises": ("[adka]\nk_values = [2, 5, 10]", "adka: "),
    "wildcard to publish to": ('[output]\ntopic = "cloaked/#"', "output.topic: "),
    "unknown mode": ('[region]\nmode = "circle"', "region.mode: "),
    "late beyond presence": ("[presence]\nmax_behind_s = 500", "presence: "),
    "no such network": ('[network]\nsource = "nowhere.osm"', "network.source: nowhere.osm: "),
    "no such grid": ('[network]\nsource = "grid:0x5"', "network.source: grid:0x5: "),
    "no such password file": ('[broker]\npassword_file = "nowhere"', "broker.password_file: "),
    "no such authority": ('[broker]\nca_file = "nowhere"', "broker.ca_file: "),
    "no authority": (
        '[broker]\nurl = "mqtts://x"\nca_file = "gateway.toml"',
        "broker.ca_file cannot be used",
    ),
}


@pytest.mark.parametrize(("text", "about"), MISTAKES.values(), ids=MISTAKES)
def test_a_bad_settings_file_is_exit_2_and_one_line_that_names_file_and_key(
    text: str, about: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gateway.toml").write_text(text)
    told = anonymizer("check", "-c", "gateway.toml")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"anonymizer: gateway.toml: {about}")
    assert told.stderr.count("\n") == 1


def test_serve_refuses_what_check_refuses(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[network]\nsource = "nowhere.osm"')
    for command in ("check", "serve"):
        told = anonymizer(command, "-c", config, environment={"ANONYMIZER__LOG__LEVEL": "error"})
        assert (told.returncode, told.stderr.count("\n")) == (2, 1)
        assert told.stderr.startswith(f"anonymizer: {config}: network.source: nowhere.osm: ")


def test_a_mistake_in_the_environment_is_put_down_to_it() -> None:
    told = anonymizer("check", environment={"ANONYMIZER__TICK__INTERVAL": "1"})
    assert told.returncode == 2
    assert told.stderr.startswith("anonymizer: environment: tick.interval: ")


def test_a_taken_http_port_is_exit_2_and_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = tmp_path / "gateway.toml"
        port = taken.getsockname()[1]
        config.write_text(f'[network]\nsource = "grid:5x5"\n[http]\nport = {port}\n')
        told = anonymizer("serve", "-c", config, environment={"ANONYMIZER__LOG__LEVEL": "error"})
    assert told.returncode == 2
    assert told.stderr == (
        f"anonymizer: {config}: http.host, http.port: cannot listen: Address already in use\n"
    )


def test_good_files_of_every_kind_pass(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    config = tmp_path / "gateway.toml"
    config.write_text(
        f'network.source = "grid:5x5"\n[broker]\nurl = "mqtts://broker.example"\n'
        f'username = "gateway"\npassword_file = "{tmp_path / "password"}"\n'
        f'ca_file = "{certificates.ca}"\ncert_file = "{certificates.client}"\n'
        f'key_file = "{certificates.client_key}"\n'
    )
    told = anonymizer("check", "-c", config)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[0] == f"{config}: fine; a network of 25 nodes and 40 roads"


def test_check_tells_where_the_network_is_and_what_it_covers(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text('network.source = "grid:5x5"\nnetwork.snap_limit_m = 25')
    grid = load_network("grid:5x5")
    told = anonymizer("check", "-c", tmp_path / "gateway.toml")
    assert told.returncode == 0
    latitudes = f"{grid.lat.min():.4f} to {grid.lat.max():.4f}"
    longitudes = f"{grid.lon.min():.4f} to {grid.lon.max():.4f}"
    assert told.stdout.splitlines()[1:] == [
        "k: 2 to 10, by density",
        f"area: latitude {latitudes}, longitude {longitudes}",
        "roads: 1 part, of which the largest has 100.0% of the nodes",
        # Blocks are 100 m wide: a quarter of each is farther than 25 m from its four roads.
        "covered: 75% of that area is within 25 m of a road",
    ]


def test_check_tells_what_short_ids_cost(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(
        'network.source = "grid:5x5"\ntrips.enabled = true\n'
        '[[inputs]]\ntopic = "bsm/{device}"\nids_change_s = 60\n'
    )
    told = anonymizer("check", "-c", config)
    assert (told.returncode, told.stderr) == (0, "")
    assert "none is company" in told.stdout.splitlines()[-3]
    assert "groups live for 60 s" in told.stdout.splitlines()[-2]
    assert "trips.enabled hides both ends" in told.stdout.splitlines()[-1]


def test_check_tells_which_share_of_a_trace_is_off_the_graph(tmp_path: Path) -> None:
    config, trace = tmp_path / "gateway.toml", tmp_path / "trace.csv"
    config.write_text('network.source = "grid:5x5"\nnetwork.snap_limit_m = 25')
    grid = load_network("grid:5x5")
    middle = grid.lat[:2].mean() - 0.00045, grid.lon[:2].mean()
    places = [(grid.lat[7], grid.lon[7])] * 2 + [middle, (0.5, 0.5)]
    rows = [f"a,{i},{lat},{lon}" for i, (lat, lon) in enumerate(places)]
    trace.write_text("\n".join(["device_id,ts,lat,lon", *rows]))
    told = anonymizer("check", "-c", config, "--trace", trace)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[-1] == (
        f"{trace}: 50.00% of 4 positions are off the graph; "
        "25.00% are outside the area of the network"
    )
    config.write_text('network.source = "city:100"')
    city = load_network("city:100")
    rows = [f"a,{i},{city.lon[i]},{city.lat[i]}" for i in range(9)]
    trace.write_text("\n".join(["device_id,ts,lat,lon", *rows]))
    told = anonymizer("check", "-c", config, "--trace", trace)
    assert told.stdout.splitlines()[-1] == (
        f"{trace}: 100.00% of 9 positions are off the graph; 100.00% are outside the area of the "
        "network; in one of them, latitude and longitude are exchanged"
    )
    trace.write_text("device_id,ts,node\na,1,0\n")
    told = anonymizer("check", "-c", config, "--trace", trace)
    assert told.returncode == 2
    assert told.stderr == (
        f"anonymizer: {trace}: the trace names nodes; a check needs lat and lon\n"
    )


def test_the_example_in_deploy_passes() -> None:
    told = anonymizer("check", "-c", EXAMPLE)
    assert (told.returncode, told.stderr) == (0, "")


def test_the_example_states_every_key_and_the_defaults_as_they_are() -> None:
    text = EXAMPLE.read_text()
    # The shipped broker publishes how many messages it drops, and lets the gateway probe its queue;
    # others need not. The default of k_floor is that of the published algorithm.
    chosen = {
        "broker": {
            "drops_topic": "$SYS/broker/publish/messages/dropped",
            "max_backlog_s": 10.0,
        },
        "adka": {"k_floor": 5},
    }
    assert Settings.model_validate(tomllib.loads(text)) == Settings.model_validate(chosen)
    several: dict[str, type[BaseModel]] = {
        "inputs": InputSettings,
        "readings": ReadingSettings,
        "streams": StreamSettings,
        "zones": ZoneSettings,
    }
    for table, field in Settings.model_fields.items():
        header = f"[[{table}]]" if table in several else f"[{table}]"
        _, _, after = re.sub(r"^# ", "", text, flags=re.MULTILINE).partition(f"\n{header}")
        stated = set(re.findall(r"^(\w+) = ", after.split("\n[", 1)[0], re.MULTILINE))
        keys = set(several.get(table, type(field.get_default())).model_fields)
        # Secrets have no place in such a file, what is a table of its own has one further down,
        # and a target is for another model.
        left_out = {"password", "token", "promise", "sources", "attributes", "target"}
        assert stated == keys - left_out, table


def uncommented(table: str) -> str:
    """Return the example of a table that is commented out, and of those in it."""
    text = EXAMPLE.read_text()
    start = text.index(f"# [[{table}]]")
    return re.sub(r"^# ?", "", text[start : text.index("\n\n", start)], flags=re.MULTILINE)


def test_the_stream_of_the_example_can_be_declared_and_states_the_defaults() -> None:
    # The key for topics without a vehicle excludes the topics of the example.
    example = re.sub(r"(?m)^vehicle = .*\n", "", uncommented("streams"))
    [stream] = Settings.model_validate(tomllib.loads(example)).streams
    [source] = stream.sources
    assert source == SourceSettings(name="telemetry", tells=source.tells)
    assert stream.promise.promise == PromiseSettings(t=0.5, min_spread={"speed": 10.0}).promise
    plain = StreamSettings(name="fleet", sources=stream.sources, attributes=stream.attributes)
    said = {"promise": stream.promise, "idle_s": plain.silence_s}
    assert plain.enforces
    said["cumulative"] = "enforce"
    assert stream == plain.model_copy(update=said)
    for header, model in (
        ("[streams.promise]", PromiseSettings),
        ("[[streams.sources]]", SourceSettings),
    ):
        after = uncommented("streams").partition(header)[2].split("\n[", 1)[0]
        assert set(re.findall(r"^(\w+) = ", after, re.MULTILINE)) == set(model.model_fields)


def test_a_backup_is_not_printed() -> None:
    told = anonymizer("backup", "--out", "-")
    assert told.returncode == 2
    assert "-: cannot be written: standard output is no file; name one" in told.stderr


@pytest.mark.parametrize(
    ("http", "missing"),
    [
        ("", False),
        ('token = "0123456789"\nhost = "0.0.0.0"', True),
        ('allowed_hosts = ["map.example"]', True),
        ('token = "0123456789"\nhost = "0.0.0.0"\nmap = "none"', False),
        ('allowed_hosts = ["map.example"]\nrun_by = "City of X"', False),
    ],
)
def test_check_says_what_visitors_of_a_public_map_see_and_are_not_told(
    tmp_path: Path, *, http: str, missing: bool
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(f'[network]\nsource = "grid:5x5"\n[http]\n{http}\n')
    told = anonymizer("check", "-c", config)
    assert told.returncode == 0, told.stderr
    assert ("http.run_by is empty" in told.stdout) == missing
    open_to_all = "_hosts" in http
    assert ("whatever the broker's rules: set http.token_file" in told.stdout) == open_to_all


@pytest.mark.parametrize("line", ["a\nb", "a\x1b[2Jb", "a\u2028b", "x" * 301])
def test_what_visitors_are_told_is_one_line_of_bounded_length(line: str) -> None:
    with pytest.raises(ValueError, match="run_by"):
        HttpSettings(run_by=line)
    assert HttpSettings(run_by=" Büro für Verkehr, büro@x.example ").run_by.startswith("Büro")
