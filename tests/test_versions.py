"""What states a version states the same one: package, citation, changelog, formats."""

import re

import yaml  # type: ignore[import-untyped]

from anonymizer import __version__
from anonymizer.cluster.resident import SNAPSHOT_FORMAT
from anonymizer.outputs.message_kind import CONTRACT_VERSION
from anonymizer.store.sqlite_file import READABLE, VERSION
from tests.console import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_and_the_newest_release_of_the_changelog_are_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.findall(r"^## ([\d.]+) - (\S+)$", CHANGELOG, re.MULTILINE)[0]
    assert newest == (__version__, str(citation["date-released"]))
    assert citation["version"] == __version__


def test_the_changelog_states_the_formats_of_today() -> None:
    [store, stages, messages] = re.findall(
        r"^\| [\w. ]+ \| (.+) \| (.+) \| (.+) \|$", CHANGELOG, re.MULTILINE
    )[1]
    assert store == f"{VERSION}; converts {READABLE[0]}"
    assert (stages, messages) == (str(SNAPSHOT_FORMAT), str(CONTRACT_VERSION))
