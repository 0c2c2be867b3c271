"""The list of all parts names what the image has, each with a licence, in equal bytes."""

import json
from datetime import UTC, datetime

from anonymizer import __version__
from tests.console import ROOT
from tools.dependencies import allowed, pins
from tools.parts import listed

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def test_every_requirement_and_vendored_folder_is_listed_with_a_licence_that_may_be_used() -> None:
    told = json.loads(listed(NOW))
    assert told["metadata"]["component"]["version"] == __version__
    licences_of = {
        part["name"]: [
            each.get("expression") or each["license"].get("id") or each["license"]["name"]
            for each in part["licenses"]
        ]
        for part in told["components"]
    }
    pinned = {name for name, _ in pins((ROOT / "requirements.txt").read_text())}
    vendored = {folder.name for folder in (ROOT / "anonymizer").rglob("vendor/*")}
    assert vendored
    assert licences_of.keys() == pinned | vendored
    for name, licences in licences_of.items():
        assert all(map(allowed, licences)), name


def test_equal_files_and_a_moment_give_equal_bytes() -> None:
    assert listed(NOW) == listed(NOW)
    assert listed(NOW) != listed(NOW.replace(year=2027))
