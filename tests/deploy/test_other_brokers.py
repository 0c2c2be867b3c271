"""The rules for other brokers allow what `mosquitto.acl` allows, and no more."""

import re
from collections import defaultdict
from typing import TypeAlias

from tests.deploy.files import DEPLOY

Rules: TypeAlias = dict[tuple[str, str], set[str]]
"""Topics by user (devices: `device`) and activity."""

EMQX, HIVEMQ = ((DEPLOY / name).read_text() for name in ("emqx-acl.conf", "hivemq-roles.xml"))


def of_mosquitto() -> Rules:
    rules: Rules = defaultdict(set)
    user = ""
    for line in (DEPLOY / "mosquitto.acl").read_text().splitlines():
        match line.split():
            case ["user", name]:
                user = name
            case ["topic", "read" | "write" as access, topic] if not topic.startswith("$SYS"):
                rules[user, access].add(topic)
            case ["pattern", access, topic]:
                rules["device", access].add(topic.replace("%u", "ME"))
    return {key: topics for key, topics in rules.items() if key[0] != "simulator"}


def test_those_for_emqx() -> None:
    rules: Rules = {}
    allowed = r'\{allow, (?:\{username, "(\w+)"\}|all), (\w+), \[(.*?)\]\}'
    for user, action, topics in re.findall(allowed, EMQX, re.DOTALL):
        access = {"subscribe": "read", "publish": "write"}[action]
        found = set(re.findall(r'"([^"]+)"', topics.replace("${username}", "ME")))
        rules[user or "device", access] = found
    assert rules == of_mosquitto()
    assert EMQX.strip().endswith("{deny, all}.")
    # Rules are tried in their order: one for everybody must not reach the gateway or analysts.
    before = EMQX.partition("{allow, all")[0]
    for user in ("gateway", "analyst"):
        assert f'{{deny, {{username, "{user}"}}, all, ["#"]}}.' in before


def test_those_for_hivemq() -> None:
    rules: Rules = defaultdict(set)
    for name, permissions in re.findall(r"<role><id>(\w+)</id>(.*?)</role>", HIVEMQ, re.DOTALL):
        granted = r"<topic>(\S+)</topic><activity>(\w+)</activity>"
        for topic, activity in re.findall(granted, permissions):
            access = {"SUBSCRIBE": "read", "PUBLISH": "write"}[activity]
            rules[name, access].add(topic.replace("${{username}}", "ME"))
    assert rules == of_mosquitto()
