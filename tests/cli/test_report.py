"""Command `anonymizer report`: one page from audits, its exit code, and its signature."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anonymizer.cli.main import app
from anonymizer.errors import GuaranteeError, InputError

KEYGEN = shutil.which("ssh-keygen")


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Return the audit of a small table that keeps its promise."""
    table = tmp_path / "people.csv"
    rows = [f"{20 + i % 4},{1000 + i % 2},{'flu' if i % 3 else 'cold'}" for i in range(40)]
    table.write_text("\n".join(["age,zip,illness", *rows]) + "\n")
    names = ("--qi", "age,zip", "--sa", "illness", "-k", "4")
    made = ("--out", tmp_path / "pub.csv", "--auditor-map", tmp_path / "map.csv")
    run("anonymize", table, *names, *made)
    release = (table, tmp_path / "pub.csv", "--auditor-map", tmp_path / "map.csv")
    run("audit", "table", *release, *names, "--json", tmp_path / "audit.json")
    return tmp_path / "audit.json"


def test_a_table_is_reported_on_a_page_and_as_json(audit: Path) -> None:
    out = audit.with_name("report.html")
    printed = run("report", audit, "--file", audit.with_name("pub.csv"), "--out", out)
    assert "singling out: every attack that has a bar stays below it" in printed
    assert "No promise is broken." in out.read_text()
    report = json.loads(out.with_suffix(".json").read_text())
    assert report["holds"] is True
    assert report["audited"][0]["kind"] == "table"
    assert list(report["files"]) == ["pub.csv"]


def test_a_broken_promise_is_an_exit_code_and_the_page_is_written(audit: Path) -> None:
    found = json.loads(audit.read_text())
    [of_k] = [each for each in found["findings"] if each["attack"] == "k"]
    of_k["holds"] = False
    audit.write_text(json.dumps(found))
    out = audit.with_name("report.html")
    with pytest.raises(GuaranteeError, match="a promise is broken: k"):
        run("report", audit, "--out", out)
    assert "A promise is broken: somebody can be told apart from all others." in out.read_text()


def test_an_audit_that_is_given_twice_is_not_counted_twice(audit: Path) -> None:
    copy = audit.with_name("copy.json")
    copy.write_bytes(audit.read_bytes())
    for again in (audit, copy):
        with pytest.raises(InputError, match=f"{again}: this audit is given twice"):
            run("report", audit, again, "--out", audit.with_name("report.html"))


def test_a_file_is_not_written_over(audit: Path) -> None:
    before = audit.read_bytes()
    with pytest.raises(InputError, match="is named twice"):
        run("report", audit, "--out", audit.with_suffix(".html"))
    assert audit.read_bytes() == before


@pytest.mark.skipif(KEYGEN is None, reason="needs ssh-keygen of OpenSSH")
def test_a_signature_is_that_of_the_json_and_of_nothing_else(audit: Path) -> None:
    key, out = audit.with_name("key"), audit.with_name("report.html")
    words = [str(KEYGEN), "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(words, check=True)
    run("report", audit, "--out", out, "--sign", key)
    allowed = audit.with_name("allowed")
    allowed.write_text(f"officer {key.with_suffix('.pub').read_text()}")
    verify = [
        str(KEYGEN), "-Y", "verify", "-f", str(allowed), "-I", "officer", "-n", "anonymizer",
        "-s", str(out.with_suffix(".json.sig")),
    ]  # fmt: skip
    text = out.with_suffix(".json").read_bytes()
    assert subprocess.run(verify, input=text, capture_output=True, check=False).returncode == 0
    changed = text.replace(b"true", b"false", 1)
    assert subprocess.run(verify, input=changed, capture_output=True, check=False).returncode != 0
    with pytest.raises(InputError, match="is no private key"):
        run("report", audit, "--out", out, "--sign", audit)


def test_an_assessment_is_begun_from_settings_and_findings(audit: Path) -> None:
    config, out = audit.with_name("gateway.toml"), audit.with_name("report.html")
    config.write_text("[adka]\nk_floor = 7\n")
    begun = audit.with_name("assessment.md")
    printed = run("report", audit, "-c", config, "--out", out, "--assessment", begun)
    text = begun.read_text()
    assert f"{begun}: {text.count('- [ ] ')} questions are open" in printed
    assert "k is 7 to 10" in text
    digest = json.loads(out.with_suffix(".json").read_text())["files"]["gateway.toml"]
    assert digest in text
    with pytest.raises(InputError, match="is named twice"):
        run("report", audit, "-c", config, "--out", out, "--assessment", config)
    with pytest.raises(InputError, match="is named twice"):
        run("report", audit, "--out", out, "--assessment", out)


def test_what_a_gateway_found_since_a_day_is_one_page(audit: Path) -> None:
    folder, out = audit.with_name("evidence"), audit.with_name("report.html")
    folder.mkdir()
    for day in (3, 4, 5):
        (folder / f"audit-2026-11-0{day}T120000Z.json").write_bytes(audit.read_bytes())
    (folder / "evidence-2026-11-04.json").write_text("{}")
    config = audit.with_name("gateway.toml")
    config.write_text(f'[watch]\nevidence_s = 3600\nreports = "{folder}"\n')
    printed = run("report", "-c", config, "--since", "2026-11-04", "--out", out)
    report = json.loads(out.with_suffix(".json").read_text())
    assert [each["source"][6:16] for each in report["audited"]] == ["2026-11-04", "2026-11-05"]
    assert f"{len(report['results'])} attacks" in printed
    assert {each["source"] for each in report["results"]} == {"2 audits"}
    assert "It was attacked 2 times" in out.read_text()
    for since, wrong in (("2026-11-06", "no audit since then"), ("2026-11-04", "named twice")):
        page = out if wrong == "no audit since then" else folder / "audit-2026-11-04T120000Z.html"
        with pytest.raises(InputError, match=wrong):
            run("report", "-c", config, "--since", since, "--out", page)


@pytest.mark.parametrize("words", [(), ("AUDIT", "--since", "2026-11-04")])
def test_a_report_is_of_audits_or_of_a_gateway(words: tuple[str, ...], audit: Path) -> None:
    named = [audit if each == "AUDIT" else each for each in words]
    with pytest.raises(InputError, match="name reports of `anonymizer audit`, or --since and -c"):
        run("report", *named, "--out", audit.with_name("report.html"))
    with pytest.raises(InputError, match="since: needs settings"):
        run("report", "--since", "2026-11-04", "--out", audit.with_name("report.html"))


def test_one_command_goes_from_a_table_and_its_release_to_the_page(audit: Path) -> None:
    folder = audit.parent
    names = ("--qi", "age,zip", "--sa", "illness", "-k", "4", "--auditor-map", folder / "map.csv")
    command = ("audit", "table", folder / "people.csv", folder / "pub.csv", *names)
    run(*command, "--page", folder / "page.html")
    told = json.loads((folder / "page.json").read_text())
    by_two = folder / "two.html"
    run("report", audit, "--file", folder / "pub.csv", "--out", by_two)
    expected = json.loads(by_two.with_suffix(".json").read_text())
    assert told["results"] == [{**each, "source": "audit"} for each in expected["results"]]
    assert [told[each] for each in ("holds", "answers", "files")] == [
        expected[each] for each in ("holds", "answers", "files")
    ]
    assert "No promise is broken." in (folder / "page.html").read_text()
    with pytest.raises(InputError, match="named twice"):
        run(*command, "--json", folder / "page.json", "--page", folder / "page.html")
    with pytest.raises(GuaranteeError):
        run(*("30" if each == "4" else each for each in command), "--page", folder / "broken.html")
    assert "A promise is broken: somebody can be told apart" in (folder / "broken.html").read_text()
