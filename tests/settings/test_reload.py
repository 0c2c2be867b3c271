"""A changed settings file is applied whole while the gateway runs, or not at all."""

import pickle
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.evidence.live_sample import for_attacks
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings, load_settings
from anonymizer.settings.base import Group
from anonymizer.settings.example import settings_text
from anonymizer.settings.reload import change, mark_of
from tests.app.gateway.records import toml
from tests.examples import many
from tests.settings.test_json_schema import uncommented

STRONG = """\
inputs = [{ topic = "raw/{device}" }]
[network]
source = "grid:5x5"
[adka]
k_floor = 4
density_steps = [6, 20]
k_values = [20, 12, 8]
[region]
k_extra = 13
place_devices = 6
min_nodes = 12
[session]
beat_s = 60.0
epoch_s = 100.0
[trips]
enabled = true
[presence]
max_behind_s = 10.5
[limits]
max_payload_bytes = 10000
[http]
token = "s3cret"
[counts]
privacy = "k"
k = 25
[[zones]]
circle = { lat = 60.17, lon = 24.94, radius_m = 300.0 }
[log]
level = "error"
"""
"""Every key that may change, and some of each other protection, none of them at its default."""


def settings(**tables: Any) -> Settings:  # noqa: ANN401  any settings
    return Settings.model_validate(tables)


def parsed(text: str) -> Settings:
    return Settings.model_validate(tomllib.loads(text))


def protection(of: Settings) -> list[float]:
    """Return figures of which each is the higher the more is protected, by what they are for."""
    ks = [
        max(
            of.adka.k_floor,
            [k for k, low in zip(of.adka.k_values, lows, strict=True) if low <= n][-1],
        )
        for n in range(40)
        for lows in [(0, *of.adka.density_steps)]
    ]
    low_is_strong = (of.presence.max_behind_s, of.limits.max_payload_bytes)
    return [
        *ks,
        of.region.k_extra,
        *(-each for each in low_is_strong),
    ]


def test_the_same_settings_change_nothing() -> None:
    came = change(parsed(STRONG), parsed(STRONG))
    assert came == (parsed(STRONG), {})


def test_what_may_change_does() -> None:
    wanted = settings(log={"level": "debug"}, region={"k_extra": 3})
    came = change(Settings(), wanted)
    assert came.settings == wanted
    assert came.changed == {"log.level": ("info", "debug"), "region.k_extra": (0, 3)}


def test_what_needs_a_restart_refuses_the_whole_file_by_name_alone() -> None:
    wanted = settings(
        log={"level": "debug", "format": "text"},
        region={"k_extra": 3, "mode": "snapshot"},
        broker={"password": "s3cret"},
        inputs=[{"topic": "raw/{device}"}],
    )
    with pytest.raises(SettingsError) as refused:
        change(Settings(), wanted)
    assert str(refused.value) == (
        "broker.password, inputs, region.mode, log.format: cannot change while the gateway runs."
        " Nothing has changed; a restart applies it all"
    )


def test_a_file_cut_off_before_its_k_is_refused_in_one_line_that_names_all_it_lacks() -> None:
    lines = STRONG.splitlines(keepends=True)
    cut = "".join(lines[: lines.index("k_values = [20, 12, 8]\n")]).replace("density_steps", "#")
    with pytest.raises(SettingsError) as refused:
        change(parsed(STRONG), parsed(cut))
    said = str(refused.value)
    protected = (
        *("adka.k_values", "adka.density_steps", "region.k_extra", "region.place_devices"),
        *("session.beat_s", "session.epoch_s", "trips.enabled", "zones", "http.token"),
        *("counts.privacy", "counts.k", "presence.max_behind_s", "log.level"),
    )
    assert all(key in said for key in protected)
    assert "a restart" in said
    assert "\n" not in said
    assert "s3cret" not in said
    assert "20" not in said


@pytest.mark.parametrize(
    ("table", "key", "weaker", "stronger"),
    [
        ("adka", "k_values", (20, 12, 7), (20, 13, 8)),
        ("adka", "k_values", (19, 12, 8), (20, 20, 20)),
        ("adka", "density_steps", (6, 19), (7, 20)),
        ("adka", "density_steps", (5, 20), (6, 21)),
        ("region", "k_extra", 12, 14),
        ("presence", "max_behind_s", 60.0, 5.0),
        ("limits", "max_payload_bytes", 10001, 9000),
    ],
)
def test_a_protection_may_rise_and_never_fall(
    table: str, key: str, weaker: object, stronger: object
) -> None:
    running = parsed(STRONG)

    def wanted(value: object) -> Settings:
        other = getattr(running, table).model_copy(update={key: value})
        return running.model_copy(update={table: other, "log": settings().log})

    with pytest.raises(SettingsError, match=rf"^{table}\.{key}: would protect less"):
        change(running, wanted(weaker).model_copy(update={"log": running.log}))
    came = change(running, wanted(stronger).model_copy(update={"log": running.log}))
    assert getattr(getattr(came.settings, table), key) == stronger


def test_k_is_compared_at_every_density_not_number_by_number() -> None:
    running = settings(adka={"density_steps": [4, 10], "k_values": [10, 5, 2], "k_floor": 3})
    for steps, ks in (([], [10]), ([4], [10, 5]), ([3, 20], [12, 10, 2]), ([4, 10], [10, 5, 3])):
        wanted = settings(adka={"density_steps": steps, "k_values": ks, "k_floor": 3})
        assert change(running, wanted).settings == wanted
    for steps, ks in (([], [9]), ([3], [10, 5]), ([4, 10, 11], [10, 4, 4, 4])):
        with pytest.raises(SettingsError, match="would protect less"):
            change(running, settings(adka={"density_steps": steps, "k_values": ks, "k_floor": 3}))


def test_a_key_that_is_no_longer_stated_is_refused_even_where_its_default_protects_more() -> None:
    running = settings(presence={"max_behind_s": 100.0}, log={"level": "debug"})
    with pytest.raises(SettingsError, match=r"^presence.max_behind_s, log.level: no longer stated"):
        change(running, Settings())
    assert change(running, settings(presence={"max_behind_s": 60.0}, log={"level": "info"}))


def test_what_is_left_to_the_gateway_stays_so_after_a_reload() -> None:
    running = Settings()
    assert running.follows_intervals
    wanted = settings(presence={"max_behind_s": 30.0})
    assert change(running, wanted).settings.follows_intervals


@pytest.mark.parametrize("key", ["presence.ttl_s", "session.epoch_s"])
def test_to_state_a_default_that_means_more_than_its_value_needs_a_restart(key: str) -> None:
    table, _, name = key.partition(".")
    default = getattr(getattr(Settings(), table), name)
    left_out, stated = Settings(), settings(**{table: {name: default}})
    assert left_out.follows_intervals > stated.follows_intervals
    for running, wanted in ((left_out, stated), (stated, left_out)):
        with pytest.raises(SettingsError, match=rf"^{key}: cannot change while"):
            change(running, wanted)
        assert change(running, running).changed == {}


@pytest.mark.parametrize("mode", ["session", "adka"])
@pytest.mark.parametrize("stated", [{}, {"epoch_s": 60.0}])
def test_what_was_left_out_stays_so_in_every_copy(mode: str, stated: dict[str, float]) -> None:
    made = settings(region={"mode": mode}, session=stated)
    assert made.session.rotate_s == (60.0 if stated else 300.0)
    copies = [pickle.loads(pickle.dumps(made)), for_attacks(made), made.model_copy(deep=True)]  # noqa: S301  our own
    copies.append(change(made, made).settings)
    copies.append(Settings.model_validate(made.model_dump(exclude_unset=True)))
    for copy in copies:
        assert copy.session.rotate_s == made.session.rotate_s
        assert copy.follows_intervals == made.follows_intervals


def every_key() -> Iterator[tuple[str, str]]:
    for name in Settings.model_fields:
        table = getattr(Settings(), name)
        if isinstance(table, Group):
            yield from ((name, key) for key in type(table).model_fields)


def may_change(table: str, key: str) -> bool:
    return mark_of(type(getattr(Settings(), table)), key) is not None


@pytest.mark.parametrize(("table", "key"), list(every_key()), ids=".".join)
def test_a_key_without_a_mark_does_not_change(table: str, key: str) -> None:
    running = Settings()
    other = getattr(running, table).model_copy(update={key: object()})
    if may_change(table, key):
        assert f"{key} = " in STRONG, "what may change is tested here, with a value of its own"
        return
    with pytest.raises(SettingsError, match=rf"^{table}\.{key}: cannot change"):
        change(running, running.model_copy(update={table: other}))


@pytest.mark.parametrize("name", ["inputs", "zones", "readings", "streams"])
def test_tables_of_which_there_may_be_several_do_not_change(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{name}: cannot change"):
        change(Settings(), Settings().model_copy(update={name: (object(),)}))


def test_the_manual_lists_what_may_change_and_none_of_it_is_a_secret() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    rows = [line for line in page.partition("## Reload")[2].splitlines() if line.startswith("| `")]
    listed = {key for row in rows for key in row.split("|")[1].split("`")[1::2]}
    found = [path for path in every_key() if may_change(*path)]
    assert listed == {".".join(path) for path in found}
    for name, key in found:
        assert isinstance(getattr(getattr(Settings(), name), key), int | float | str | tuple)


def everything_stated() -> str:
    """Return a file that states every key there is a value for, those of `STRONG` with theirs."""
    stated, strong = uncommented(settings_text({})), tomllib.loads(STRONG)
    del stated["readings"]  # they cannot be published where trips are protected
    lines = []
    for name, table in stated.items():
        for each in table if isinstance(table, list) else [table | strong.get(name, {})]:
            lines.append(f"[[{name}]]" if isinstance(table, list) else f"[{name}]")
            lines += [f"{key} = {toml(value)}" for key, value in each.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("text", [STRONG, everything_stated()], ids=["strong", "everything"])
def test_a_file_cut_off_at_any_byte_changes_nothing(text: str, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    running = load_settings(file, {}, whole=True)
    content = text.encode()
    for end in range(len(content)):
        file.write_bytes(content[:end])
        try:
            came = change(running, load_settings(file, {}, whole=True))
        except SettingsError:
            continue
        assert (came.settings, came.changed) == (running, {}), end


def test_whatever_a_cut_leaves_of_a_number_nothing_weaker_is_in_force() -> None:
    running = parsed(STRONG)
    n_loaded = 0
    for end in range(len(STRONG)):
        try:
            wanted = parsed(STRONG[:end])
        except ValueError:
            continue
        n_loaded += 1
        try:
            came = change(running, wanted).settings
        except SettingsError:
            continue
        now, before = protection(came), protection(running)
        assert all(a >= b for a, b in zip(now, before, strict=True)), end
    assert n_loaded > 60


K = st.integers(2, 12)


@st.composite
def some_settings(draw: st.DrawFn) -> Settings:
    n = draw(st.integers(0, 3))
    steps = draw(st.lists(st.integers(1, 12), min_size=n, max_size=n, unique=True))
    ks = draw(st.lists(K, min_size=n + 1, max_size=n + 1))
    few = st.integers(1, 3)
    return settings(
        adka={"density_steps": sorted(steps), "k_values": sorted(ks, reverse=True), "k_floor": 4},
        region={"k_extra": draw(few)},
        presence={"max_behind_s": draw(few)},
        limits={
            "max_payload_bytes": 20 + draw(few),
        },
    )


@many(3)
@given(some_settings(), some_settings())
def test_a_file_is_applied_if_it_protects_no_less_and_refused_if_it_does(
    running: Settings, wanted: Settings
) -> None:
    pairs = zip(protection(wanted), protection(running), strict=True)
    if all(new >= old for new, old in pairs):
        assert change(running, wanted).settings == wanted
    else:
        with pytest.raises(SettingsError, match="would protect less"):
            change(running, wanted)
