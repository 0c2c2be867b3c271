"""Settings as users get them wrong: each is refused in one sentence that says what to write."""

# ruff: noqa: E501  what is said, whole

import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymizer.app.gateway.preflight import check_files
from anonymizer.codecs import CODECS, encoders
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from anonymizer.settings.base import TopicFilters, covers, overlap
from anonymizer.settings.inputs import ANY_JSON
from anonymizer.settings.mistakes import REMOVED
from anonymizer.settings.toml_file import load_settings, validated

NETWORK = '[network]\nsource = "grid:5x5"\n'
WRONG = [
    (
        '[inputs]\ntopic="a/{device}"\n',
        "inputs: write [[inputs]], with two brackets, above each: there may be several",
    ),
    (
        "[zones]\ncircle={lat=1,lon=2,radius_m=3}\n",
        "zones: write [[zones]], with two brackets, above each: there may be several",
    ),
    (
        '[[broker]]\nurl="mqtt://localhost"\n',
        "broker: write [broker], in single brackets: there is only one",
    ),
    (
        '[session]\nepoch_s="60s"\n',
        "session.epoch_s: must be a number, without quotes or a unit: the unit is in the name",
    ),
    (
        "[tick]\ninterval_s=100ms\n",
        'is not TOML: Expected newline or end of document after a statement (at line 4, column 15); write a number alone, without a unit, or text in quotes: "..."',
    ),
    (
        "[tick]\ninterval_s=0,1\n",
        'is not TOML: Expected newline or end of document after a statement (at line 4, column 13); write a number alone, without a unit, or text in quotes: "..."',
    ),
    ("[region]\nk_extra=2.5\n", "region.k_extra: must be a whole number"),
    ("[region]\nk_extra=true\n", "region.k_extra: must not be true or false"),
    ("[tick]\ninterval_s=true\n", "tick.interval_s: must not be true or false"),
    (
        "[trips]\nenabled=yes\n",
        'is not TOML: Invalid value (at line 4, column 9); text needs straight quotes, "...", and true and false are in small letters',
    ),
    (
        '[[inputs]]\ncodec="hfp"\necho="cloaked/hfp"\n',
        "inputs (no. 1): echo: messages of this codec cannot be written, only of "
        + ", ".join(sorted({*encoders(), ANY_JSON})),
    ),
    (
        '[[inputs]]\ncodec="owntracks"\necho="cloaked/own"\n',
        "inputs (no. 1): echo: {pseudonym} is needed, because the payloads name no device",
    ),
    (
        '[[inputs]]\ncodec="json"\npayload={lat="a",lon="b"}\necho="cloaked/own"\n',
        "inputs (no. 1): echo: {pseudonym} is needed, because the payloads name no device",
    ),
    (
        '[[inputs]]\ncodec="json"\npayload={lat="4000",lon="0"}\necho="cloaked/{pseudonym}"\n',
        "inputs (no. 1): payload: a place in an array must be below 1,000",
    ),
    (
        '[[inputs]]\nkind="public"\necho="cloaked/own"\n',
        'inputs (no. 1): echo: what is published of kind = "public" is not coarse',
    ),
    (
        '[[inputs]]\necho="cloaked/x-{pseudonym}"\n',
        "inputs (no. 1).echo: {pseudonym} must be a whole level",
    ),
    (
        '[[inputs]]\necho="cloaked/{device}"\n',
        "inputs (no. 1).echo: must be a topic, in which one level may be {pseudonym}",
    ),
    (
        '[[inputs]]\necho="cloaked/plain"\n',
        "inputs: echo needs output.qos = 1: it is a message for each pseudonym, and at QoS 0 nobody knows which of a group a lost connection has delivered",
    ),
    (
        '[output]\nqos=1\n[[inputs]]\necho="cloaked/positions/plain"\n',
        "inputs: echo must be a topic on which nothing else is published, not another echo either: each tells of all devices",
    ),
    (
        '[output]\nqos=1\n[[inputs]]\ntopic="a/{device}"\necho="cloaked/{pseudonym}"\n[[inputs]]\ntopic="b/{device}"\necho="cloaked/b"\n',
        "inputs: echo must be a topic on which nothing else is published, not another echo either: each tells of all devices",
    ),
    ('[trips]\nenabled="maybe"\n', "trips.enabled: must be true or false, without quotes"),
    (
        '[[inputs]]\ntopic="a/{device}"\ncodec="owntrack"\n',
        f'inputs (no. 1).codec: must be one of {", ".join(sorted({*CODECS, ANY_JSON}))}; did you mean "owntracks"?',
    ),
    (
        '[region]\nmode="sesion"\n',
        'region.mode: must be "adka", "snapshot" or "session"; did you mean "session"?',
    ),
    (
        '[log]\nlevel="warn"\n',
        'log.level: must be "debug", "info", "warning" or "error"; did you mean "warning"?',
    ),
    (
        '[region]\nmode: "session"\n',
        "is not TOML: Expected '=' after a key in a key/value pair (at line 4, column 5); write key = value",
    ),
    (
        '{"network": {"source": "grid:5x5"}}\n',
        "is not TOML: Invalid statement (at line 1, column 1); write [table], key = value, or a comment after #",
    ),
    (
        "; comment\n",
        "is not TOML: Invalid statement (at line 3, column 1); write [table], key = value, or a comment after #",
    ),
    (
        "[network]\nsource = “grid:5x5”\n",
        'is not TOML: Invalid value (at line 2, column 10); text needs straight quotes, "...", and true and false are in small letters',
    ),
    (
        '[network]\nsource = "C:\\Users\\me\\map.osm"\n',
        "is not TOML: Invalid hex value (at line 2, column 15); write paths with / or in single quotes",
    ),
    (
        "[tick]\ninterval_s=1\ninterval_s=2\n",
        "is not TOML: Cannot overwrite a value (at line 5, column 13); a key may be there once",
    ),
    (
        "[tick]\ninterval_s=1\n[tick]\ninterval_s=2\n",
        "is not TOML: Cannot declare ('tick',) twice (at line 5, column 6); a table may be there once",
    ),
    ("[adka]\nk_values=10\n", "adka.k_values: must be a list, in brackets: [...]"),
    ('[adka]\nk_values="10,5,2"\n', "adka.k_values: must be a list, in brackets: [...]"),
    (
        '[adka]\nk_values=[10,"five",2]\n',
        "adka.k_values (no. 2): must be a whole number, without quotes or a unit: the unit is in the name",
    ),
    ("[adka]\nk_floor=1\n", "adka.k_floor: must be at least 2"),
    ("[region]\nk_extra=-1\n", "region.k_extra: must be at least 0"),
    ("[region]\nk=5\n", "region.k: there is no such setting; did you mean adka.k_values?"),
    (
        "[tick]\ninterval-s=1\n",
        "tick.interval-s: there is no such setting; did you mean tick.interval_s?",
    ),
    ("[Tick]\ninterval_s=1\n", "Tick: there is no such setting; did you mean [tick]?"),
    (
        "[broker]\nreceive_maximum=9\n",
        "broker.receive_maximum: there is no such setting; it is 2000: delete it",
    ),
    (
        "[tick]\nInterval_S=1\n",
        "tick.Interval_S: there is no such setting; did you mean tick.interval_s?",
    ),
    (
        "[tick]\ninterval_ms=100\n",
        "tick.interval_ms: there is no such setting; did you mean tick.interval_s?",
    ),
    (
        "[tick]\ninterval=1\n",
        "tick.interval: there is no such setting; did you mean tick.interval_s?",
    ),
    (
        '[broker]\nhost="x"\nport=1883\n',
        "broker.host: there is no such setting; did you mean broker.url? (and 1 more)",
    ),
    (
        '[broker]\nurl="localhost:1883"\n',
        "broker.url: must be mqtt://host[:port] or mqtts://host[:port], or ws:// or wss://",
    ),
    ("[http]\nport=80800\n", "http.port: must be at most 65535"),
    ("[broker]\npassword=1234\n", "broker.password: must be text in quotes"),
    ("[broker]\nversion=5\n", 'broker.version: must be "5" or "3.1.1"; did you mean "5"?'),
    (
        '[[inputs]]\ntopic="pos/+"\n',
        'inputs (no. 1): topic: {device} is needed, unless device_from = "payload"',
    ),
    (
        '[[inputs]]\ntopic="pos/#/x"\n',
        "inputs (no. 1): topic: level 2 is neither plain, +, {device} nor a final #",
    ),
    (
        '[[inputs]]\ntopics=["a","b"]\n',
        "inputs (no. 1).topics: there is no such setting; did you mean inputs.topic?",
    ),
    (
        '[[inputs]]\ntopic="cloaked/{device}"\n',
        'inputs (no. 1): topic: lies where the gateway publishes (output.topic), so analysts could read raw data there; choose another one, such as "raw/{device}"',
    ),
    (
        '[[inputs]]\ntopic="+/{device}"\n',
        'inputs (no. 1): topic: lies where the gateway publishes (broker.status_topic), so analysts could read raw data there; choose another one, such as "raw/{device}"',
    ),
    (
        '[[inputs]]\ntopic="{device}/#"\n',
        'inputs (no. 1): topic: lies where the gateway publishes (broker.status_topic), so analysts could read raw data there; choose another one, such as "raw/{device}"',
    ),
    (
        '[[inputs]]\ntopic="raw/{device}"\n[output]\ntopic="raw/x"\n',
        'inputs (no. 1): topic: lies where the gateway publishes (output.topic), so analysts could read raw data there; choose another one, such as "raw/{device}"',
    ),
    (
        'inputs=["a/{device}"]\n',
        "network.inputs: there is no such setting; did you mean [[inputs]]?",
    ),
    (
        '[[inputs]]\ncodec="json"\n[inputs.payload]\nlatitude="a"\nlongitude="b"\n',
        "inputs (no. 1).payload.latitude: there is no such setting; did you mean inputs.payload.lat? (and 1 more)",
    ),
    (
        '[[inputs]]\ncodec="json"\n[[inputs.payload]]\nlat="a"\nlon="b"\n',
        "inputs (no. 1).payload: write [inputs.payload], in single brackets: there is only one",
    ),
    (
        '[[inputs]]\ncodec="json"\n[inputs.payload]\nlat="a"\nlon="b"\nwhere="x=1"\n',
        "inputs (no. 1).payload.where: must be a table: { key = value }",
    ),
    ("[[zones]]\n", "zones (no. 1): must have either circle or polygon"),
    (
        "[[zones]]\ncircle={lat=124,lon=2,radius_m=3}\n",
        "zones (no. 1).circle.lat: must be at most 90.0",
    ),
    (
        "[[zones]]\ncircle={lat=12,lon=2,radius=3}\n",
        "zones (no. 1).circle.radius: there is no such setting; did you mean zones.circle.radius_m? (and 1 more)",
    ),
    (
        "[[zones]]\npolygon=[[1,2,3],[2,3,4],[4,5,6]]\n",
        "zones (no. 1).polygon (no. 1): must have at most 2 values (and 2 more)",
    ),
    (
        "[[zones]]\nlat=1\nlon=2\nradius_m=3\n",
        "zones (no. 1).lat: there is no such setting; did you mean zones.circle.lat? (and 2 more)",
    ),
    (
        "[[zones]]\ncircle=[1,2,3]\n",
        "zones (no. 1).circle: write [zones.circle], in single brackets: there is only one",
    ),
    ('[[streams]]\nname="a"\n', "streams (no. 1).sources: must be stated (and 1 more)"),
    (
        '[[streams]]\nname = "fleet"\n[streams.sources]\nname = "t"\ntells = ["speed"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1).sources: write [[streams.sources]], with two brackets, above each: there may be several",
    ),
    (
        '[[streams]]\nname = "fleet"\nmodel = "kl"\n[[streams.sources]]\nname = "t"\ntells = ["speed"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        'streams (no. 1).model: must be "kd", "kld", "kaca" or "cells"; did you mean "kld"?',
    ),
    (
        '[[streams]]\nname = "fleet"\nk = 5\n[[streams.sources]]\nname = "t"\ntells = ["speed"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1).k: there is no such setting; did you mean streams.promise.k?",
    ),
    (
        '[[streams]]\nname = "fleet"\nwindow="5m"\n[[streams.sources]]\nname = "t"\ntells = ["speed"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1).window: there is no such setting; did you mean streams.window_s?",
    ),
    (
        '[[streams]]\nname = "my fleet"\n[[streams.sources]]\nname = "t"\ntells = ["speed"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1).name: must be 1 to 64 letters, digits, dots, _ and -",
    ),
    (
        '[[streams]]\nname = "fleet"\n[[streams.sources]]\nname = "t"\ntells = "speed"\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1).sources (no. 1).tells: must be a list, in brackets: [...] (and 1 more)",
    ),
    (
        '[[streams]]\nname = "fleet"\n[[streams.sources]]\nname = "t"\ntells = ["sped"]\n[[streams.attributes]]\nname = "speed"\nlo = 0\nhi = 60\n',
        "streams (no. 1): sources (no. 1).tells: contains an attribute that is not declared",
    ),
    ('[[readings]]\nname="speed"\n', "readings (no. 1).lo: must be stated (and 1 more)"),
    (
        '[[readings]]\nname="speed"\nlo=0\nhi=1\nstatistics=["avg"]\n',
        (
            "readings (no. 1).statistics (no. 1): must be count, mean, min, max, p1 to p99, or"
            " each (and 1 more)"
        ),
    ),
    (
        "[http]\nport=2026-01-01\n",
        "http.port: must be a whole number, without quotes or a unit: the unit is in the name",
    ),
    ('network="grid:5x5"\n', "network: is a table: write [network] on a line, and its keys below"),
    ("[network]\nsource=5\n", "network.source: must be text in quotes"),
    ("[tick]\ninterval_s=nan\n", "tick.interval_s: must be a finite number"),
    ("tick.interval_s=1\n", "network.tick: there is no such setting; did you mean [tick]?"),
    (
        '[broker]\nurl="mqtt://localhost"\nnetwork.source="grid:5x5"\n',
        "broker.network: there is no such setting; did you mean [network]?",
    ),
    (
        '[broker]\nsource="grid:5x5"\n',
        "broker.source: there is no such setting; did you mean network.source?",
    ),
    ("ANONYMIZER__HTTP__PORT=80\n", "network.ANONYMIZER__HTTP__PORT: there is no such setting"),
    (
        '[network]\nsource="grid:5x5\n',
        "is not TOML: Illegal character '\\n' (at line 2, column 17); text ends with a quote on its own line",
    ),
    (
        '[network\nsource="grid:5x5"\n',
        "is not TOML: Expected ']' at the end of a table declaration (at line 1, column 9)",
    ),
    ('[http]\nallowed_hosts="a"\n', "http.allowed_hosts: must be a list, in brackets: [...]"),
    (
        '[http]\nallowed_hosts=["https://a"]\n',
        "http.allowed_hosts (no. 1): must be the name of a host, without scheme and port, or *",
    ),
]


def said_of(content: bytes, tmp_path: Path) -> str:
    file = tmp_path / "gateway.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        check_files(load_settings(file, {}))
    said = str(refused.value).replace(f"{file}: ", "")
    assert "\n" not in said
    return said


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_file_is_refused_in_a_sentence_that_says_what_to_write(
    text: str, said: str, tmp_path: Path
) -> None:
    whole = text if "[network" in text or "network" in text[:12] else NETWORK + text
    assert said_of(whole.encode(), tmp_path) == said


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"], ids=lambda name: name
)
def test_a_file_in_another_encoding_is_refused_with_the_one_to_use(
    encoding: str, tmp_path: Path
) -> None:
    mark = "\ufeff" if encoding[-1] == "e" else ""
    said = said_of((mark + NETWORK).encode(encoding), tmp_path)
    assert said == "begins with a byte-order mark: save it as UTF-8 without one"


@pytest.mark.parametrize("text", ["", "# nothing\n", "[network]\nsnap_limit_m = 50\n", "[log]\n"])
def test_a_file_that_states_no_network_does_not_get_a_generated_city(
    text: str, tmp_path: Path
) -> None:
    said = said_of(text.encode(), tmp_path)
    assert said.startswith("network.source: must be stated")


def test_settings_without_positions_need_no_network() -> None:
    stream = {
        "name": "fleet",
        "sources": [{"name": "t", "tells": ["speed"]}],
        "attributes": [{"name": "speed", "lo": 0, "hi": 60}],
    }
    settings = Settings.model_validate({"inputs": [], "streams": [stream]})
    assert check_files(settings).network.n_nodes


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("a/{device}", "a/b/#", True),
        ("a/{device}", "a/b/c/#", False),
        ("a/b/c", "a/#", True),
        ("a", "a/#", True),
        ("a/+/c", "a/b/#", True),
        ("#", "a/b", True),
        ("+/b", "a/#", True),
        ("+/b/c", "a/b", False),
        ("b/#", "a/#", False),
        ("a/+", "a", False),
        ("a/+", "a/b/c", False),
        ("+/x", "$SYS/#", False),
        ("#", "$SYS/#", False),
        ("$SYS/x", "$SYS/#", True),
    ],
)
def test_filters_overlap_where_a_topic_matches_both(one: str, other: str, together: bool) -> None:  # noqa: FBT001  of a case
    assert overlap(one, other) is together
    assert overlap(other, one) is together


LEVELS = st.sampled_from(["a", "b", "$a", "+", "{device}", ""])
FILTERS = st.tuples(st.lists(LEVELS, min_size=1, max_size=4), st.booleans()).map(
    lambda drawn: "/".join(drawn[0] + ["#"] * drawn[1])
) | st.just("#")


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a topic matches a filter, level by level as the standard says."""
    levels = ["+" if level == "{device}" else level for level in topic_filter.split("/")]
    names = topic.split("/")
    if levels[0] in {"+", "#"} and names[0].startswith("$"):
        return False
    for i, level in enumerate(levels):
        if level == "#" or i == len(names):
            return level == "#"
        if level not in {"+", names[i]}:
            return False
    return len(levels) == len(names)


TOPICS = [
    "/".join(names) for n in (1, 2, 3, 4) for names in product(["a", "b", "c", "$a"], repeat=n)
]


@given(st.lists(LEVELS.filter(bool), min_size=1, max_size=3), st.booleans(), FILTERS)
def test_a_filter_covers_another_if_it_matches_all_of_its_topics(
    levels: list[str],
    rest: bool,  # noqa: FBT001  drawn
    other: str,
) -> None:
    one = "/".join(levels + ["#"] * rest)
    assume("$a" not in one[1:] + other[1:] and "//" not in f"/{other}/")
    assert covers(one, other) is all(
        matches(one, topic) for topic in TOPICS if matches(other, topic)
    )


@pytest.mark.parametrize("first", ["positions/#", "positions/+", "positions/{device}"])
def test_an_input_that_nothing_reaches_is_refused(first: str) -> None:
    inputs: list[dict[str, Any]] = [{"topic": first}, {"topic": "positions/{device}"}]
    if "{device}" not in first:
        inputs[0]["device_from"] = "payload"
    with pytest.raises(SettingsError, match=r"no. 2\): no message would reach it: no. 1"):
        validated({"inputs": inputs}, "")
    if first.endswith("#"):
        validated({"inputs": inputs[::-1]}, "")


@given(st.lists(FILTERS, max_size=6), FILTERS)
def test_filters_by_their_levels_find_those_that_overlap(filters: list[str], one: str) -> None:
    by_level = TopicFilters[int]()
    for i, each in enumerate(filters):
        by_level.add(each, i)
    found = list(by_level.overlapping(one))
    assert sorted(found) == [i for i, each in enumerate(filters) if overlap(each, one)]


@pytest.mark.parametrize("key", REMOVED)
def test_a_setting_of_an_earlier_version_is_refused_with_what_holds_in_its_place(key: str) -> None:
    *path, name = key.split(".")
    table: dict[str, object] = {name: 1}
    if path[:1] == ["streams"]:
        attribute: dict[str, object] = {"name": "a", "lo": 0, "hi": 1}
        stream: dict[str, object] = {
            "name": "s",
            "attributes": [attribute],
        }
        source: dict[str, object] = {"name": "t", "tells": ["a"]}
        promise: dict[str, object] = {}
        stream |= {"sources": [source], "promise": promise}
        tables = {"attributes": attribute, "promise": promise, "sources": source}
        tables.get(path[-1], stream)[name] = 1
        table = {"streams": [stream]}
    elif path == ["inputs", "payload"]:
        table = {"inputs": [{"codec": "json", "payload": {"lat": "a", "lon": "b"} | table}]}
    elif path == ["readings"]:
        table = {"readings": [{"name": "a", "lo": 0, "hi": 1} | table]}
    elif path == ["inputs"]:
        table = {"inputs": [table]}
    elif path:
        table = {path[0]: table}
    with pytest.raises(SettingsError, match="there is no such setting; ") as caught:
        validated(table, "")
    assert REMOVED[key] in str(caught.value)


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ('[[inputs]]\ntopic = "x/{device}"\n[output]\ntopic = "x/y"', "inputs (no. 1): "),
        ('[[inputs]]\ntopic = "x/y/{device}"\n[output]\ntopic = "x/y"', "inputs (no. 1): "),
        ('[[inputs]]\ntopic = "x/y"\ndevice_from = "payload"\n[output]\ntopic = "x/y"', "inputs"),
        ('[[inputs]]\ntopic = "cloaked/raw/{device}"', "inputs (no. 1): "),
        ('[[inputs]]\ntopic = "anonymizer/raw/{device}"', "inputs (no. 1): "),
        ('[[inputs]]\ntopic = "ok/{device}"\n[[inputs]]\ntopic = "+/+/{device}"', "inputs (no. 2)"),
        ('[device_zones]\ntopic = "public/{device}"', "device_zones: "),
        ('[broker]\nstatus_topic = "positions/gateway"', "inputs (no. 1): "),
        (
            '[[inputs]]\ntopic = "own/{device}"\n[broker]\nstatus_topic = "own/status"',
            "inputs (no. 1): ",
        ),
        ('[[inputs]]\ntopic = "out/{device}"\n[output]\ntopic = "out/regions"', "inputs (no. 1): "),
        ('[[inputs]]\necho = "positions/{pseudonym}"\n[output]\nqos = 1', "inputs (no. 1): "),
        ('[[inputs]]\necho = "positions"\n[output]\nqos = 1', "inputs (no. 1): "),
    ],
)
def test_raw_data_is_not_read_where_the_gateway_publishes(
    tables: str, key: str, tmp_path: Path
) -> None:
    said = said_of((NETWORK + tables + "\n").encode(), tmp_path)
    assert said.startswith(key)
    assert "topic: lies where the gateway publishes" in said


def test_records_are_not_read_where_their_classes_are_published(tmp_path: Path) -> None:
    stream = """
        inputs = []
        [[streams]]
        name = "fleet"
        topic = "records/all/{stream}"
        [[streams.sources]]
        name = "all"
        tells = ["speed"]
        [[streams.attributes]]
        name = "speed"
        lo = 0
        hi = 60
        """
    said = said_of(stream.encode(), tmp_path)
    assert said.startswith("streams (no. 1).sources (no. 1): topic: lies where")


@pytest.mark.parametrize("topic", ["raw/{device}", "a/cloaked/{device}", "/cloaked/{device}"])
def test_other_topics_are_free(topic: str) -> None:
    assert Settings.model_validate({"inputs": [{"topic": topic}]}).inputs[0].topic == topic


def test_a_level_of_a_site_may_be_shared_by_raw_data_and_outputs() -> None:
    tables = {"inputs": [{"topic": "site/raw/{device}"}], "output": {"topic": "site/cloaked"}}
    assert Settings.model_validate(tables).output.topic == "site/cloaked"


def test_a_misspelt_variable_is_answered_likewise() -> None:
    with pytest.raises(SettingsError, match=r"^environment: broker.ulr: .*did you mean broker.url"):
        load_settings(None, {"ANONYMIZER__BROKER__ULR": "mqtt://localhost"})


def test_whole_numbers_stand_for_no_truth_and_truth_for_no_number() -> None:
    for text in ("[tick]\ninterval_s = true", "[adka]\nk_values = [9, 5, true]"):
        with pytest.raises(ValueError, match="must not be true or false"):
            Settings.model_validate(tomllib.loads(text))
