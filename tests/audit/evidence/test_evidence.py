"""Evidence: each finding under its criterion, beside its control, with its interval."""

import json
import re
from pathlib import Path

import pytest
from scipy.stats import binomtest

from anonymizer import audit
from anonymizer.algorithms.records.verification import PARTS
from anonymizer.audit.evidence import Conclusion, Criterion, evidence_of, page
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.registry import question_of
from anonymizer.audit.stream_summary import wilson
from anonymizer.errors import InputError
from tests.audit.evidence.written import MADE, of, written
from tests.audit.questions import every_question


def attacks_in_the_code() -> set[str]:
    """Return the names of attacks that stand in the source of the audit."""
    names = r'(?:attack=|guessing\(|_finding\((?:case, )?|required\()"([^"]+)"'
    source = "".join(path.read_text() for path in Path(audit.__path__[0]).glob("attacks/*.py"))
    return set(re.findall(names, re.sub(r"\s*\n\s*", "", source)))


def test_every_attack_of_the_audit_is_read() -> None:
    found = attacks_in_the_code()
    assert {"soundness", "tracking", "zone ends", "homogeneity", "re-identification"} <= found
    parts = {part.replace("max_", "").replace("min_", "").replace("_", " ") for part in PARTS}
    roots = {"centre", "prefix", "linkability (age)", "known company, 3 its own"}
    controls = {each.control_finding for each in every_question()}
    found -= controls
    assert {each for each in found | parts | roots if not question_of(each)} == set()


@pytest.mark.parametrize("attack", [each.name for each in every_question()])
def test_a_broken_promise_is_told_first_and_under_its_own_criterion(
    attack: str, tmp_path: Path
) -> None:
    broken = Finding(attack=attack, figures={}, bar="none", holds=False, required=True)
    found = of(tmp_path, Finding(attack="velocity", figures={}), broken)
    [mine] = {each.criterion for each in every_question() if each.name == attack}
    assert not found.holds
    assert found.answers[mine] is Conclusion.BROKEN
    assert [each for each in found.answers.values() if each is Conclusion.BROKEN] == [
        Conclusion.BROKEN
    ]
    assert found.results[0].attack == attack
    html = page(found)
    assert html.index("A promise is broken") < html.index("class=answers")
    kept = of(tmp_path, broken.model_copy(update={"holds": True}))
    assert kept.holds
    assert "A promise is broken" not in page(kept)


def test_an_attack_above_a_bar_that_nobody_promised_is_told_too(tmp_path: Path) -> None:
    found = of(tmp_path, Finding(attack="tracking", figures={}, bar="<= 2", holds=False))
    assert found.holds
    assert found.answers == {
        Criterion.SINGLING_OUT: Conclusion.OPEN,
        Criterion.LINKABILITY: Conclusion.OPEN,
        Criterion.INFERENCE: Conclusion.ABOVE,
        Criterion.TRUTH: Conclusion.OPEN,
    }


def test_success_stands_beside_its_control_with_an_interval(tmp_path: Path) -> None:
    figures: dict[str, Figure] = {"success": 0.2, "expected": 0.1, "sigma": 0.01, "n": 50}
    [found] = of(tmp_path, Finding(attack="linking", figures=figures)).results
    interval = binomtest(10, 50).proportion_ci(method="wilson")
    assert (found.success, found.control, found.n) == (0.2, 0.1, 50)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-4)
    assert found.gain == pytest.approx(0.1)
    assert wilson(0.0, 5)[0] == 0
    assert wilson(1.0, 5)[1] == pytest.approx(1)


def test_the_largest_of_several_successes_and_controls_counts(tmp_path: Path) -> None:
    figures: dict[str, Figure] = {
        "success": 0.3,
        "one_in_n": 0.1,
        "by_traffic": 0.25,
        "n_places": 10,
    }
    tracking: dict[str, Figure] = {
        "belief_followed_5min": 0.1,
        "belief_hindsight_5min": 0.2,
        "belief_none_5min": None,
    }
    centre, followed = of(
        tmp_path,
        Finding(attack="centre", figures=figures),
        Finding(attack="tracking", figures=tracking),
    ).results
    assert (centre.success, centre.control) == (0.3, 0.25)
    assert (followed.success, followed.control, followed.low) == (0.2, None, None)


def test_the_control_of_a_joint_attack_is_the_one_of_the_same_attribute(tmp_path: Path) -> None:
    def read(attack: str, attribute: str, share: float) -> Finding:
        figures: dict[str, Figure] = {"share_read": share, "n_vehicles": 100}
        return Finding(attack=attack, attribute=attribute, figures=figures)

    results = of(
        tmp_path,
        read("releases together", "type", 0.5),
        read("releases of two vehicles", "type", 0.4),
        read("releases together", "fuel", 0.3),
        read("fleet alone", "type", 0.2),
    ).results
    assert [(each.attack, each.attribute, each.control) for each in results] == [
        ("releases together", "type", 0.4),
        ("releases together", "fuel", None),
        ("fleet alone", "type", None),
    ]


def test_an_attack_of_somebody_s_own_is_not_left_out(tmp_path: Path) -> None:
    finding = Finding(attack="by the moon", figures={}, bar="x", holds=False, required=True)
    found = of(tmp_path, finding)
    assert found.answers[Criterion.INFERENCE] is Conclusion.BROKEN
    assert "by the moon" in page(found)


def test_the_page_loads_nothing_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    finding = Finding(attack="values", attribute="<b>speed</b>", figures={"success": 0.1})
    html = page(of(tmp_path, finding))
    assert "<b>speed" not in html
    assert not re.search(r"https?:|\bsrc=|@import|url\(", html)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"holds": true}', "\x00"])
def test_what_is_no_report_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is no report of `anonymizer audit` as JSON"):
        evidence_of([path], made=MADE)
    path.write_text("[]")
    with pytest.raises(InputError, match="reports no attack"):
        evidence_of([path], made=MADE)
    with pytest.raises(InputError, match="No such file"):
        evidence_of([tmp_path / "missing"], made=MADE)
    with pytest.raises(InputError, match="no report"):
        evidence_of([], made=MADE)


def test_counts_and_figures_of_utility_are_read_as_well(tmp_path: Path) -> None:
    membership = Finding(attack="aggregate membership", figures={"auc": 0.6, "n_targets": 40})
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps([membership.model_dump(mode="json")]))
    positions = written(tmp_path, Finding(attack="soundness", figures={}, bar="all", holds=True))
    positions.write_text(json.dumps(json.loads(positions.read_text()) | {"utility": []}))
    found = evidence_of([counts, positions], made=MADE, settings=counts)
    assert [each.kind for each in found.audited] == ["counts", "positions"]
    assert found.results[0].control == 0.5
    assert found.files == {"counts.json": found.audited[0].sha256}
