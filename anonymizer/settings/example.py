"""Example settings file: the chosen settings, and defaults as comments."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from anonymizer.algorithms.models.registry import MODELS, USUAL
from anonymizer.settings.json_schema import json_schema, tables
from anonymizer.settings.tiers import ESSENTIAL

_HEAD = """\
## Settings of the gateway. `anonymizer check` checks them, `anonymizer serve` starts the gateway.
## Settings that are commented out have the default shown. Units are in the names; paths are
## relative to the folder in which the gateway is started. ANONYMIZER__BROKER__URL=... in the
## environment overrides `url` in [broker], and so on. Keep secrets there or in files of their own.
"""
_MORE = """\
## These are the settings that every operator meets. `anonymizer init --all-keys` writes all of
## them down; the manual's page on settings explains them.
"""
_EXAMPLES: Mapping[str, str] = {
    "zones": """
        [[zones]]
        circle = { lat = 60.17, lon = 24.94, radius_m = 300.0 }
        """,
    "readings": """
        [[readings]]
        name = "speed_mps"
        lo = 0.0
        hi = 60.0
        step = 1.0
        """,
    "streams": """
        [[streams]]
        name = "fleet"
        window_s = 300.0
        model = "$ONE"                       # or $OTHERS
        promise = { k = 10, d = 2 }

        [[streams.sources]]
        name = "telemetry"
        topic = "records/{source}/{vehicle}"
        tells = ["type", "speed"]

        [[streams.attributes]]
        name = "type"
        values = ["car", "van", "truck", "bus"]

        [[streams.attributes]]
        name = "speed"
        lo = 0.0
        hi = 60.0
        """.replace("$ONE", USUAL).replace("$OTHERS", ", ".join([*MODELS][1:])),
}
"""Examples of tables that may occur several times or not at all; the manual lists all keys."""
_WIDTH = 96


def settings_text(chosen: Mapping[str, Mapping[str, Any]], *, all_keys: bool = True) -> str:
    """Return a settings file that sets the keys of `chosen`, by table.

    `inputs` means the first `[[inputs]]` table. The other keys follow as comments: all, with
    examples of tables that may be missing, or the essential ones alone. The file is also valid with
    the `# ` in front of examples and defaults removed; it then differs only by the examples.
    """
    schema = json_schema()
    lines = [_HEAD] if all_keys else [_HEAD + _MORE]
    for name, (table, several) in tables(schema).items():
        if not all_keys:
            shown = [
                key
                for key in table["properties"]
                if f"{name}.{key}" in ESSENTIAL or key in chosen.get(name, {})
            ]
            if not shown:
                continue
            table["properties"] = {key: table["properties"][key] for key in shown}
        elif name in _EXAMPLES:
            lines += [*_comment(table["description"]), *_commented(_EXAMPLES[name]), ""]
            continue
        lines.append(f"[[{name}]]" if several else f"[{name}]")
        lines += _keys(table, chosen.get(name, {}))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _keys(table: Mapping[str, Any], chosen: Mapping[str, Any]) -> Iterator[str]:
    yield from _comment(table["description"])
    for key, part in table["properties"].items():
        yield from _comment(part["description"]) if "description" in part else ()
        if key in chosen:
            yield f"{key} = {_toml(chosen[key])}"
        elif "default" in part:
            yield f"# {key} = {json.dumps(part['default'])}"
        else:
            yield f"## ({key} is not set)"


def _toml(value: Any) -> str:  # noqa: ANN401  of a setting
    """Return a value, on one line as TOML wants its tables there."""
    if not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    pairs = [f"{json.dumps(key)} = {_toml(below)}" for key, below in value.items()]
    return f"{{ {', '.join(pairs)} }}"


def _comment(text: str) -> list[str]:
    return [f"## {line}" for line in textwrap.wrap(text, _WIDTH)]


def _commented(example: str) -> list[str]:
    """Return the lines of an example as comments."""
    return [f"# {line}".rstrip() for line in textwrap.dedent(example).strip().splitlines()]
