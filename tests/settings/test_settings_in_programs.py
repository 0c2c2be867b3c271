"""Settings that programs beside the package write: no test runs them all, so their keys are read.

By syntax tree: every text with a head of a table of the settings is read as TOML, with 1 wherever
the program puts something in; and every table that is written out where settings are made of it.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from anonymizer.settings import Settings
from anonymizer.settings.base import Group
from anonymizer.settings.json_schema import groups_in
from tests.console import ROOT

FOLDERS = ("benchmarks", "experiments", "simulator", "tests/cluster")
_HEAD = re.compile(rf"^ *\[\[?({'|'.join(Settings.model_fields)})[].]", re.MULTILINE)
_LINES = re.compile(r"^ *\{[a-z_]\w*\}", re.MULTILINE)
"""What a program puts in at the beginning of a line are lines."""
_PUT_IN = re.compile(r"\{[a-z_][\w.]*\}|(?<== )[A-Z]+$", re.MULTILINE)


def keys_of(stated: Mapping[str, Any], group: type[Group], path: str = "") -> Iterator[str]:
    """Yield the keys that a table states, and `?` behind one that there is not."""
    for key, value in stated.items():
        name = f"{path}{key}"
        field = group.model_fields.get(key)
        inner = [] if field is None else groups_in(field.annotation)
        each = value if isinstance(value, list) else [value]
        deeper = [table for table in each if inner and isinstance(table, dict)]
        for table in deeper:
            yield from keys_of(table, inner[0], f"{name}.")
        if not deeper:
            yield name if field is not None else f"{name}?"


def settings_in(program: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of each settings text, and of each call that makes settings of a table."""
    tree = ast.parse(program)
    formed = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    within = {part for node in formed for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from _read("".join(_literal(part) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in within:
            text = node.value
            if "{{" in text:
                text = text.replace("{{", "{").replace("}}", "}")
            yield from _read(_PUT_IN.sub("1", _LINES.sub("", text)))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Settings.model_validate":
            yield from (_written_out(each) for each in node.args if isinstance(each, ast.Dict))


def _literal(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "1"


def _read(text: str) -> Iterator[Mapping[str, Any]]:
    if _HEAD.search(text):
        yield tomllib.loads(re.sub(r"(?m)^ *1 *$", "", text))


def _written_out(table: ast.Dict) -> dict[str, Any]:
    """Return what a table says, None for what is not written out in it."""
    return {
        str(key.value): _written_out(value) if isinstance(value, ast.Dict) else None
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant)
    }


def stated_in(program: str) -> list[str]:
    return [key for tables in settings_in(program) for key in keys_of(tables, Settings)]


@pytest.fixture(scope="module")
def keys_in() -> dict[str, list[str]]:
    """The keys that each program states, if it states any."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    keys = {str(path.relative_to(ROOT)): stated_in(path.read_text()) for path in found}
    return {path: stated for path, stated in keys.items() if stated}


def test_programs_state_keys_that_there_are(keys_in: dict[str, list[str]]) -> None:
    wrong = {path: [key for key in keys if key.endswith("?")] for path, keys in keys_in.items()}
    assert {path: keys for path, keys in wrong.items() if keys} == {}


def test_programs_of_every_kind_are_read(keys_in: dict[str, list[str]]) -> None:
    assert keys_in.keys() >= {
        "benchmarks/bus.py",
        "benchmarks/end_to_end.py",
        "benchmarks/members.py",
        "benchmarks/stages.py",
        "simulator/toll_exits.py",
        "tests/cluster/fleet.py",
    }


@pytest.mark.parametrize(
    ("program", "keys"),
    [
        ('A = """[tick]\nqueue_limit = {queue}\n"""', ["tick.queue_limit?"]),
        (
            'A = f"""[broker]\nurl = "{url}"\n{more}\n[pseudonym]\nx = 1\n"""',
            ["broker.url", "pseudonym?"],
        ),
        (
            'A = """[[streams]]\nname = "a"\nsources = [{{ name = "b", kafka = "c" }}]\n"""',
            ["streams.name", "streams.sources.name", "streams.sources.kafka?"],
        ),
        (
            'Settings.model_validate({"tick": {"interval_s": s, "drain_s": 1}, "inputs": []})',
            ["tick.interval_s", "tick.drain_s?", "inputs"],
        ),
        ('A = """[project]\nname = "a"\n"""', []),
    ],
)
def test_a_key_that_there_is_not_is_found(program: str, keys: list[str]) -> None:
    assert stated_in(program) == keys
