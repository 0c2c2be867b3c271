"""The JSON Schema of the settings, and the example that is made of it."""

import re
import tomllib
from typing import Any

from anonymizer.settings import Settings
from anonymizer.settings.example import settings_text
from anonymizer.settings.json_schema import json_schema, tables
from anonymizer.settings.tiers import ESSENTIAL, EXPERIMENTAL


def uncommented(text: str) -> dict[str, Any]:
    """Return what a settings file would say without the `# ` in front of its defaults."""
    return tomllib.loads(re.sub(r"^# ", "", text, flags=re.MULTILINE))


def test_every_key_has_its_text_in_the_schema_where_it_has_one_in_the_code() -> None:
    schema = json_schema()
    broker = schema["$defs"]["BrokerSettings"]
    assert broker["properties"]["username"]["description"].endswith("Not set: anonymous.")
    assert broker["properties"]["password"]["writeOnly"] is True
    said = schema["$defs"]["TripSettings"]["properties"]["enabled"]["description"]
    assert said.startswith("Whether trip ends")


def test_the_schema_knows_no_null_which_toml_cannot_say_and_no_unknown_key() -> None:
    schema = json_schema()
    assert "'null'" not in str(schema)
    assert "None:" not in str(schema)
    for definition in [schema, *schema["$defs"].values()]:
        assert definition["additionalProperties"] is False


def test_the_schema_has_every_table_of_the_settings() -> None:
    schema = json_schema()
    assert list(schema["properties"]) == list(Settings.model_fields)
    assert list(tables(schema)) == list(Settings.model_fields)
    several = {name for name, table in tables(schema).items() if table.several}
    assert several == {"inputs", "zones", "readings", "streams"}


def test_an_example_with_nothing_chosen_is_the_default_settings() -> None:
    text = settings_text({})
    assert Settings.model_validate(tomllib.loads(text)) == Settings()


def test_an_example_states_what_was_chosen_and_nothing_else() -> None:
    chosen = {"region": {"mode": "adka"}, "inputs": {"codec": "hfp"}, "broker": {"username": "ü"}}
    read = {name: table for name, table in tomllib.loads(settings_text(chosen)).items() if table}
    assert read == {**chosen, "inputs": [{"codec": "hfp"}]}


def test_what_is_commented_out_are_the_defaults_and_examples_that_are_right() -> None:
    settings = Settings.model_validate(uncommented(settings_text({})))
    assert (len(settings.zones), len(settings.readings), len(settings.streams)) == (1, 1, 1)
    without: dict[str, Any] = {"zones": (), "readings": (), "streams": ()}
    assert settings.model_copy(update=without) == Settings()


def test_every_key_with_a_default_is_in_the_example() -> None:
    stated = uncommented(settings_text({}))
    schema = json_schema()
    for name, (table, several) in tables(schema).items():
        if name in {"zones", "readings", "streams"}:
            continue
        keys = {key for key, value in table["properties"].items() if "default" in value}
        assert keys == set(stated[name][0] if several else stated[name]), name


def test_every_tier_names_keys_that_there_are_and_the_schema_marks_them() -> None:
    schema = json_schema()
    marked: dict[str, set[str]] = {"essential": set(), "experimental": set()}
    for name, (table, _) in tables(schema).items():
        for key, part in table["properties"].items():
            if "x-tier" in part:
                marked[part["x-tier"]].add(f"{name}.{key}")
    assert marked["essential"] == set(ESSENTIAL)
    whole = {key.partition(".")[0] for key in marked["experimental"]}
    assert marked["experimental"] | whole >= set(EXPERIMENTAL)


def test_a_short_file_has_the_essential_keys_and_what_was_chosen_and_is_as_good() -> None:
    chosen: dict[str, dict[str, Any]] = {
        "network": {"source": "grid:5x5"},
        "limits": {"max_payload_bytes": 7000},
    }
    text = settings_text(chosen, all_keys=False)
    assert len(text.splitlines()) < 100
    shown = {f"{t}.{k}" for t, keys in uncommented(text).items() for k in _keys(keys)}
    without_default = {
        "broker.username",
        "broker.password_file",
        "broker.ca_file",
        "http.token_file",
    }
    assert shown == set(ESSENTIAL) - without_default | {"limits.max_payload_bytes"}
    expected = Settings.model_validate(chosen)
    assert Settings.model_validate(tomllib.loads(text)) == expected
    assert Settings.model_validate(uncommented(text)) == expected


def _keys(table: Any) -> list[str]:  # noqa: ANN401  any TOML
    return list(table[0] if isinstance(table, list) else table)
