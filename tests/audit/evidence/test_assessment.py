"""The template of an impact assessment: what is filled in, what stays open, what does not fit."""

import re
from pathlib import Path

import pytest

from anonymizer.audit.evidence import assessed
from anonymizer.audit.evidence.assessment import OPEN, mismatches
from anonymizer.audit.evidence.outputs import kept, outputs_of
from anonymizer.audit.findings import Finding
from anonymizer.settings import Settings
from anonymizer.settings.all_methods import all_methods
from anonymizer.settings.toml_file import validated
from tests.audit.evidence.written import of

SOUND = Finding(attack="soundness", figures={}, bar="all", holds=True, required=True)
BROKEN = Finding(attack="k", figures={"share_below_k": 0.5}, holds=False, required=True)


def settings(**tables: object) -> Settings:
    return validated(tables, "test")


def test_all_parts_of_article_35_7_are_there_and_ask_what_only_the_operator_knows(
    tmp_path: Path,
) -> None:
    text = assessed(of(tmp_path, SOUND), Settings())
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    for point in "abcd":
        [part] = [each for each in parts if f"35(7)({point})" in each.splitlines()[0]]
        assert OPEN in part
    for asked in ("legal basis", "35(2)", "35(9)", "36(1)", "35(11)", "Recital 26", "recipients"):
        assert any(asked in line for line in text.splitlines() if line.startswith(OPEN))


def test_a_broken_promise_is_told_with_its_figures(tmp_path: Path) -> None:
    text = assessed(of(tmp_path, BROKEN), Settings())
    assert "**A promise is broken: k.**" in text
    assert "### Singling out: a promise is broken" in text
    assert re.search(r"\| \*\*k\*\*: .* \| 50.0% \|.*promise broken", text)


def test_without_settings_what_is_published_stays_open(tmp_path: Path) -> None:
    text = assessed(of(tmp_path, SOUND), None)
    assert text.count("No settings file was given") == 2
    assert "What goes out" not in text


@pytest.mark.parametrize("mode", ["adka", "snapshot", "session"])
def test_an_output_says_what_its_mode_promises_and_what_not(mode: str) -> None:
    found = outputs_of(settings(region={"mode": mode}, adka={"k_floor": 5}))[0]
    assert mode in found.name
    assert "k is 5 to 10" in found.promise
    assert {
        "adka": "anything against somebody who knows the algorithm",
        "snapshot": "cannot be intersected over time",
        "session": "days of profiling",
    }[mode] in found.not_promised


def test_every_output_of_the_settings_is_named_with_its_topic() -> None:
    chosen = settings(
        inputs=[
            {"topic": "raw/{device}", "codec": "owntracks", "echo": "echo/{pseudonym}/x"},
            {"topic": "still/{device}", "kind": "public"},
            {"topic": "hidden/{device}", "kind": "fixed"},
        ],
        output={"qos": 1},
        current={"every_s": 10},
        counts={"privacy": "dp", "epsilon": 0.5},
        readings=[{"name": "speed_mps", "lo": 0, "hi": 50, "statistics": ["mean", "each"]}],
    )
    found = {each.name: each for each in outputs_of(chosen)}
    topics = " ".join(each.where for each in found.values())
    for topic in ("cloaked/positions", "echo/{pseudonym}/x", "cloaked/current", "public/fixed",
                  "cloaked/fixed", "cloaked/counts", "anonymizer/rejected"):  # fmt: skip
        assert f"`{topic}`" in topics
    assert "for 86400 s: ε = 0.5, δ = 1e-06" in found["counts by place"].promise
    sliding = settings(counts={"privacy": "w-event"})
    assert any("for any 86400 s: ε = 1" in each.promise for each in outputs_of(sliding))
    assert kept(sliding)["spent budget of counts"] == kept(chosen)["spent budget of counts"]
    assert "can undo the anonymity" in found["reading `speed_mps`"].not_promised
    assert found["fixed devices as they are"].promise == "none"
    assert {each.kind for each in found.values()} == {"positions", "counts", None}


def test_streams_are_named_with_their_promises_and_what_is_kept_of_them() -> None:
    chosen = validated(all_methods(), "test")
    found = {each.stream: each for each in outputs_of(chosen) if each.kind == "records"}
    assert list(found) == [each.name for each in chosen.streams]
    for stream in chosen.streams:
        promise = stream.promise
        assert f"at least {promise.k} vehicles in each class" in found[stream.name].promise
        assert f"`{stream.output_topic}`" == found[stream.name].where
        assert (f"{promise.l} values of each sensitive" in found[stream.name].promise) == (
            promise.l > 1
        )
        assert f"records of `{stream.name}`" in kept(chosen)


def test_what_was_not_audited_and_what_was_audited_of_others_is_told(tmp_path: Path) -> None:
    found = of(tmp_path, SOUND)  # positions, of mode session
    assert mismatches(found, Settings()) == []
    counted = settings(counts={"privacy": "k"})
    assert mismatches(found, counted) == ["counts by place: published, and not audited"]
    [other] = mismatches(found, settings(region={"mode": "snapshot"}))
    assert other == (
        "audit.json: audits the promise of mode `session`, and the settings have `snapshot`"
    )
    [none] = mismatches(found, settings(inputs=[{"kind": "fixed"}]))
    assert none == "audit.json: audits positions that these settings do not publish"
    assert f"- **{other}**" in assessed(found, settings(region={"mode": "snapshot"}))


def test_text_of_files_is_no_markup(tmp_path: Path) -> None:
    named = Finding(attack="values", attribute="a|b\n\n<script>", figures={"success": 0.1})
    text = assessed(of(tmp_path, named), Settings())
    assert "<script>" not in text
    assert "a\\|b &lt;script>" in text


def test_switches_are_told_as_they_are(tmp_path: Path) -> None:
    found = of(tmp_path, SOUND)
    text = assessed(found, Settings())
    assert "| first and last parts of trips are held back | **off** |" in text
    assert "**off**, but it is on this machine" in text
    text = assessed(found, settings(trips={"enabled": True}, broker={"url": "mqtts://b.example"}))
    assert "| first and last parts of trips are held back | on |" in text
    assert "| encrypted connection to the MQTT broker | on |" in text
    assert "all for 120 s while trip ends are protected" in text
