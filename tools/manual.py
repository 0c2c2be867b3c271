"""Generated pages of the documentation: settings, metrics, alerts and attacks.

`make docs` writes them into `docs`, with the schema of the settings and the contract of the topics:
the repository and its readers have them, too. A test fails when one of them differs from what the
code would generate. `python -m tools.manual alerts` prints a page.
"""

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped]
from prometheus_client import Metric
from prometheus_client.registry import CollectorRegistry

from anonymizer.app.contract import asyncapi
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.audit.attack import Question, Subject
from anonymizer.audit.registry import attacks_on
from anonymizer.cluster.bridge_metrics import BridgeCollector, Passed
from anonymizer.cluster.resident import Input, Place, Resident, StageEvents
from anonymizer.cluster.stage import Stage
from anonymizer.cluster.worker_metrics import StageAccounts, WorkDone, WorkerCollector
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.observe.metrics import new_registry
from anonymizer.outputs.output import Figure
from anonymizer.outputs.output_metrics import OutputCollector
from anonymizer.outputs.registry import OUTPUTS, output_in
from anonymizer.pipeline.ledger import Ledger
from anonymizer.settings import Settings
from anonymizer.settings.json_schema import comments_of, json_schema, tables
from anonymizer.settings.tiers import ESSENTIAL
from experiments.blur_experiment import Blurred
from experiments.blur_results import page as blur_page

_STREAM: Mapping[str, Any] = {
    "name": "STREAM",
    "sources": [{"name": "all", "tells": ["speed"]}],
    "attributes": [{"name": "speed", "lo": 0, "hi": 9}],
}
_OWN = "anonymizer_"
_ATTACKS_HEAD = """\
# Attacks

What the audits, `anonymizer report` and the watch of a gateway try: the rows of the
[threat model](threat-model.md), which says what was found. This page is generated from the code.
An attack without a bar is reported, beside its control. Those on positions are also mounted by
`anonymizer experiment adversaries --attack audit`.
"""
_WORKER_HEAD = """
## Workers of a cluster

Each worker exports the accounts and events of the stages that it owns at the moment; add them up
over all workers. When a stage moves, its counts move with it, so use `sum` rather than `rate`.
Without the token there are neither accounts nor counts of messages, and no lag.
Workers export no age of information and no latency: a stage reads no clock, since it takes its
inputs again after a crash, and no stage sees the regions of all districts. A subscriber can tell
the age: `releases.ages()` of [the client](analyst.md).

| metric | kind | labels | meaning |
|---|---|---|---|"""
_BRIDGE_HEAD = """
## Bridges of a cluster

Bridges also export the metrics of their connections, `in` and `out`, as a gateway does
(`anonymizer_broker_*`). Without the token there are no counts of messages.

| metric | kind | labels | meaning |
|---|---|---|---|"""
_SETTINGS_HEAD = """\
# Settings

The settings are one TOML file: `anonymizer init` writes a first one, and `anonymizer check --config
FILE` checks whether the gateway would start with it. Units are in the names. Paths are relative to
the folder in which the gateway is started.

`ANONYMIZER__TABLE__KEY=value` in the environment overrides `key` in `[table]`. A name that matches
no setting is an error, in the environment as in the file. Secrets belong in the environment or in
files of their own.

[`settings.schema.json`](settings.schema.json), also printed by `anonymizer schema`, lets an editor
complete and check the file: put `#:schema ./settings.schema.json` on its first line (Taplo, Even
Better TOML). [The command line](command-line.md#reload) lists the settings that change without a
restart.

Defaults are right until you know why not. *(experimental)* marks keys whose
meaning may change between two versions.

## The ones that matter

Each is described with its table below.
"""
_METRICS_HEAD = """\
# Metrics

Prometheus scrapes `/metrics`. No label carries anything
about a single device. Counters end in `_total`; histograms have `_bucket`, `_sum` and `_count`.
[Alerts](alerts.md) says what to do when one of them raises one.

Exact counts of positions and records are for the bearer of the token (`http.token_file`) alone.
Everybody else gets [public figures](threat-model.md#public-figures): what the published messages
and classes tell anyway, and of how many devices something could not be used, in multiples of the
largest k that the settings can ask for. Whatever else a device or vehicle can change is left out:
what is received, held and suppressed, how long anything takes, and the process itself.

`outcome` and `reason` are those of the [accounting](concepts.md#everything-is-accounted-for). The
usual metrics of the process and of Python are exported with the token.

| metric | kind | labels | meaning |
|---|---|---|---|"""

_ALERTS_HEAD = """\
# Alerts

What to do when an alert fires: the `description` of the rules in `deploy/alerts.yml` and, for
[several machines](scaling.md), `deploy/alerts-cluster.yml`.
[How to report a defect](security.md#report-a-weakness).
"""
_DEPLOY = Path(__file__).parents[1] / "deploy"
_BLUR = Path(__file__).parents[1] / "docs" / "blur.json"
"""What `anonymizer experiment blur` found."""
GENERATED = frozenset({"settings.md", "metrics.md", "alerts.md", "attacks.md", "blur.md"})
"""The pages of `docs` that nobody writes by hand."""


def kept() -> dict[str, str]:
    """Return the generated files that are kept in `docs`, by name."""
    return {
        **{f"{name}.md": text for name, text in pages().items()},
        "settings.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        "asyncapi.json": json.dumps(asyncapi(Settings()), indent=2) + "\n",
    }


def pages() -> dict[str, str]:
    """Return the generated pages, by name."""
    return {
        "settings": settings_page(json_schema()),
        "metrics": metrics_page(),
        "alerts": alerts_page(),
        "attacks": attacks_page(),
        "blur": blur_page(
            msgspec.json.decode(_BLUR.read_bytes(), type=list[Blurred]), folder="images/"
        ),
    }


def settings_page(schema: Mapping[str, Any]) -> str:
    """Return the reference of all settings, as Markdown."""
    lines = [_SETTINGS_HEAD, *_essentials(schema)]
    for name, (table, several) in tables(schema).items():
        lines += _table(schema, name, table, several=several, level=2)
    return "\n".join(lines) + "\n"


def _essentials(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from ("| key | default | meaning |", "|---|---|---|")
    for each in ESSENTIAL:
        name, _, key = each.partition(".")
        part = tables(schema)[name].table["properties"][key]
        yield f"| `{each}` | {_default(part)} | {_meaning(part).partition('. ')[0]} |"


def _default(part: Mapping[str, Any]) -> str:
    return f"`{json.dumps(part['default'])}`" if "default" in part else ""


def _meaning(part: Mapping[str, Any]) -> str:
    told = str(part.get("description", "")).replace("|", "\\|")
    return f"*(experimental)* {told}" if part.get("x-tier") == "experimental" else told


def _table(
    schema: Mapping[str, Any], name: str, table: Mapping[str, Any], *, several: bool, level: int
) -> Iterator[str]:
    title = f"[[{name}]]" if several else f"[{name}]"
    yield from ("", f"{'#' * level} `{title}`", "", str(table["description"]), "")
    yield from ("| key | value | default | meaning |", "|---|---|---|---|")
    inner = tables(schema, table)
    for key, part in table["properties"].items():
        shown = _default(part)
        if key in table.get("required", ()):
            shown = "must be given"
        elif key in inner:
            shown = ""
        yield f"| `{key}` | {_kind(part, table=key in inner)} | {shown} | {_meaning(part)} |"
    for key, (deeper, many) in inner.items():
        yield from _table(schema, f"{name}.{key}", deeper, several=many, level=level + 1)


def _kind(part: Mapping[str, Any], *, table: bool) -> str:
    if table:
        return "tables, below" if part.get("type") == "array" else "table, below"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(each)}`" for each in part["enum"])
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    kind = str(part.get("type", "any"))
    if kind == "array":
        items = part.get("items", {})
        return f"list of {_kind(items, table=False)}"
    if kind == "object":
        return f"table of {_kind(part.get('additionalProperties', {}), table=False)}"
    names = {"string": "text", "boolean": "`true`, `false`", "integer": "whole number"}
    format_name = {"path": "path", "password": "secret text"}.get(part.get("format", ""))
    return f"{format_name or names.get(kind, kind)}{_bounds(part)}"


def _bounds(part: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {part[key]:,g}" for key, sign in signs.items() if key in part]
    return ", " + ", ".join(bounds) if bounds else ""


def metrics_page() -> str:
    """Return the reference of all metrics, as Markdown."""
    lines = [_METRICS_HEAD, *map(_row, _families())]
    lines += [_WORKER_HEAD, *map(_row, _worker_families())]
    lines += [_BRIDGE_HEAD, *map(_row, _bridge_families())]
    lines += ["", "## Outcomes and reasons", "", "| outcome | reason | meaning |", "|---|---|---|"]
    meaning_of = comments_of(Outcome)
    for outcome in Outcome:
        name, reason = outcome.label
        if outcome is not Outcome.HELD:
            lines.append(f"| {name} | {reason} | {meaning_of.get(outcome.name, '')} |")
    return "\n".join(lines) + "\n"


def alerts_page() -> str:
    """Return what to do about each alert, as Markdown."""
    files = [(_DEPLOY / name).read_text() for name in ("alerts.yml", "alerts-cluster.yml")]
    groups = [group for file in files for group in yaml.safe_load(file)["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    names = "|".join(rule["alert"] for rule in rules)
    lines = [_ALERTS_HEAD]
    for rule in rules:
        told, name = rule["annotations"], rule["alert"]
        what = re.sub(rf"\b({names})\b", _link, told["description"])
        severity = rule["labels"]["severity"].capitalize()
        lines += [f"## {name}", "", f"*{severity}: {told['summary']}*", "", what, ""]
    return "\n".join(lines)


def attacks_page() -> str:
    """Return what each attack asks, beside what, and what must hold, as Markdown."""
    lines = [_ATTACKS_HEAD]
    for evidence in Subject:
        lines += [f"## On {evidence}", ""]
        lines += ["| attack | asks | beside | must hold | promised by |", "|---|---|---|---|---|"]
        each = (question for attack in attacks_on(evidence) for question in attack.questions)
        lines += [_attack_row(question) for question in dict.fromkeys(each)]
        lines.append("")
    return "\n".join(lines)


def _attack_row(question: Question) -> str:
    has_control = question.control or question.chance is not None or question.borrows
    beside = question.against if has_control or question.control_finding else ""
    modes = ", ".join(f"`{mode}`" for mode in question.promised_by)
    return f"| `{question.name}` | {question.asks} | {beside} | {question.bar} | {modes} |"


def _link(found: re.Match[str]) -> str:
    return f"[{found[0]}](#{found[0].lower()})"


def _row(family: Metric) -> str:
    labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
    name = f"{family.name}_total" if family.type == "counter" else family.name
    named = ", ".join(f"`{label}`" for label in labels)
    return f"| `{name}` | {family.type} | {named} | {family.documentation} |"


def _worker_families() -> list[Metric]:
    """Return the metrics of a worker of a cluster that has one partition."""
    topic, partition = "topic", 0
    resident = Resident(_no_stage, _NoJournal(), lambda *_: [], StageEvents())
    observed = WorkDone(
        n_taken={topic: 0},
        n_sent=Counter({"lane": 0}),
        lag={(topic, partition): 0},
        residents={(topic, partition, b""): resident},
    )
    events = {("source", "ticks"): 0}
    accounts = StageAccounts(0, 0, dict.fromkeys(Outcome, 0), events, [("", Ledger(), 0)])
    return _own(new_registry(WorkerCollector(observed, lambda: accounts)))


def _bridge_families() -> list[Metric]:
    """Return the metrics of a bridge of a cluster."""
    bridge = BridgeCollector(
        Passed(),
        connected=lambda: False,
        lag=lambda: 0,
        owned=lambda: 0,
        releases_lag=lambda: 0,
        waited_s=lambda: 0.0,
    )
    return _own(new_registry(bridge))


class _NoJournal:
    """A journal that nobody asks."""

    name = ""

    def place(self) -> Place:
        return Place("", 0)

    def between(self, _after: int, _before: int) -> Iterator[Input]:
        return iter(())

    def stored(self) -> Mapping[str, bytes]:
        return {}

    def store(self, _name: str, _value: bytes | None) -> None:
        raise AssertionError("nothing is taken, so nothing is stored")


def _no_stage() -> Stage:
    raise AssertionError("a stage is made for its first input, and the manual has none")


def _families() -> list[Metric]:
    """Return the metrics of a gateway with every feature enabled, before its first message."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate(
            {
                "network": {"source": "grid:3x3"},
                "region": {"mode": "adka"},
                "streams": [_STREAM],
                "store": {"path": f"{folder}/records.sqlite"},
                "readings": [{"name": "speed_mps", "lo": 0, "hi": 60}],
                "http": {"host": ""},
            }
        )
        gateway = Gateway(settings, load_network("grid:3x3"), declared_streams(settings))
        try:
            return _own(gateway.registry, new_registry(OutputCollector(_nothing_published)))
        finally:
            if gateway.records:
                gateway.records.store.close()


def _nothing_published() -> dict[Figure, dict[str, int]]:
    """Return the figures of all outputs."""
    figures = [output_in(module).figure for module in OUTPUTS]
    return {each: dict.fromkeys(each.reasons, 0) for each in figures}


def _own(*registries: CollectorRegistry) -> list[Metric]:
    found = {
        family.name: family
        for registry in registries
        for family in registry.collect()
        if family.name.startswith(_OWN)
    }
    return [found[name] for name in sorted(found)]


def main(asked: str) -> None:
    """Print the page of this name, or write what is kept to the folder of this name."""
    if asked in pages():
        print(pages()[asked], end="")  # noqa: T201  what it is for
        return
    for name, text in kept().items():
        (Path(asked) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
