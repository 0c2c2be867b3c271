"""Reading what is in deploy/."""

import json
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def read_yaml(name: str) -> Any:  # noqa: ANN401  of YAML
    """Return the one document of a file in deploy/."""
    return yaml.safe_load((DEPLOY / name).read_text())


ALERTS = ("alerts.yml", "alerts-cluster.yml")


def alert_rules() -> dict[str, dict[str, Any]]:
    """Return the alert rules by name."""
    groups = [group for file in ALERTS for group in read_yaml(file)["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    return {rule["alert"]: rule for rule in rules}


def dashboards() -> dict[str, Any]:
    """Return the dashboards by the name of their file."""
    files = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    return {file.stem: json.loads(file.read_text()) for file in files}


def dashboard_queries(*names: str) -> list[tuple[str, str]]:
    """Return where each query of some dashboards stands, and the query."""
    return [
        (f"{name}: {panel['title']}: {target['refId']}", target["expr"])
        for name, dashboard in dashboards().items()
        if name in names
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]
