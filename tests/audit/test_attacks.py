"""Every attack: on nothing, one and many; its control, its bar and its words; and a new one."""

from dataclasses import replace
from html import escape
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from anonymizer.audit.attack import Attack, Question, Subject, name_of
from anonymizer.audit.case import Case
from anonymizer.audit.evidence import evidence_from, page
from anonymizer.audit.evidence.live_sample import attacked as attacked_live
from anonymizer.audit.findings import Finding
from anonymizer.audit.registry import ATTACKS, attacks_on, every_attack
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments import audited
from experiments.audited import RAW, run_audit
from experiments.broken_releases import raw_release
from experiments.tracking_experiment import attacked, drive
from tests.audit import parked_alone
from tests.audit.evidence.sampled import WATCH
from tests.audit.evidence.test_every_configuration import JOINT, sample_of
from tests.audit.evidence.written import MADE, written
from tests.audit.questions import every_question
from tests.audit.tracked import tracked_once
from tests.pipeline.positions.support import NETWORK, flow_settings
from tools import manual

TOWN = load_network("city:200")
WORDS = [pytest.param(question, id=question.name) for question in every_question()]
ON_POSITIONS = [pytest.param(each, id=each.name) for each in attacks_on(Subject.POSITIONS)]


TICK_S = 10.0
CLAIMED_K = 5


@pytest.fixture(scope="module")
def telling() -> list[Case]:
    """Return releases that say much: single nodes said to be of five, a seed's, and wrong ones."""
    trace = drive(TOWN, 40, seconds=330, seed=1)
    day, minute = (
        raw_release(trace, TOWN, tick_s=TICK_S, name_s=name_s, seed=1)[0]
        for name_s in (86_400.0, 60.0)
    )
    claiming = [
        replace(
            case, observed=replace(case.observed, k=np.full(case.observed.n_records, CLAIMED_K))
        )
        for case in (day, minute)
    ]
    wrong = np.roll(day.observed.region_of, 1)
    settings = Settings.model_validate({"region": {"mode": "adka"}})
    return [
        *claiming,
        attacked(trace, TOWN, settings, tick_s=TICK_S, seed=1),
        replace(day, observed=replace(day.observed, region_of=wrong)),
    ]


@pytest.fixture(scope="module")
def product() -> Case:
    """Return a release of the same fleet by the product."""
    trace = drive(TOWN, 40, seconds=330, seed=1)
    return attacked(trace, TOWN, Settings(), tick_s=TICK_S, seed=1)


@pytest.fixture
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    where = [*ATTACKS[Subject.POSITIONS], "tests.audit.parked_alone:ATTACK"]
    monkeypatch.setitem(ATTACKS, Subject.POSITIONS, where)


def test_no_two_attacks_share_a_name_or_ask_different_questions_of_one_name() -> None:
    names = [each.name for each in every_attack()]
    assert len(set(names)) == len(names)
    asked = [each.name for each in every_question()]
    assert len(set(asked)) == len(asked)
    assert all(name_of(name) == name for name in asked)


@pytest.mark.parametrize("question", WORDS)
def test_words_of_an_attack_stand_in_the_report_and_on_the_page_of_attacks(
    question: Question, tmp_path: Path
) -> None:
    assert "?" in question.asks
    finding = Finding(attack=question.name, figures=dict.fromkeys(question.success, 0.5))
    path = written(tmp_path, finding)
    evidence = evidence_from([(path, path.read_bytes())], made=MADE)
    [result] = evidence.results
    assert result.criterion is question.criterion
    assert f"`{question.name}` | {question.asks} |" in manual.attacks_page()
    assert escape(result.asks) in page(evidence)


@pytest.mark.parametrize("question", WORDS)
def test_a_success_stands_beside_a_control_or_a_bar(question: Question) -> None:
    controls = question.control, question.control_finding, question.borrows
    if question.success:
        assert any(controls) or question.chance is not None or question.bar
    if question.promised_by:
        assert question.bar


@pytest.mark.parametrize("attack", ON_POSITIONS)
def test_what_is_promised_holds_of_the_product_and_fails_where_a_release_says_much(
    attack: Attack[Case], telling: list[Case], product: Case
) -> None:
    asked = {each.name: each for each in attack.questions}
    promised = {each.name for each in attack.questions if "session" in each.promised_by}
    with tracked_once():
        found = list(attack.mount(product))
        # What no release promises need not fail anywhere; tracking takes seconds for each of them.
        told = [list(attack.mount(case)) for case in (telling if promised else telling[:1])]
    assert not {each.attack for each in found if each.holds is False} & promised
    failed = {each.attack for more in told for each in more if each.holds is False}
    found += chain.from_iterable(told)
    if attack.applies(product):
        assert promised <= failed
    for finding in found:
        question = asked[name_of(finding.attack)].at(finding.figures)
        named = {*question.success, *question.control, question.n, question.exposed}
        assert named | {question.exposed_control} <= {*finding.figures, ""}
        assert bool(finding.bar) == bool(question.bar)


@pytest.mark.parametrize("n_devices", [0, 1, 30])
@pytest.mark.usefixtures("_one_more")
def test_every_attack_runs_on_none_one_and_many_and_a_new_one_is_in_the_watch(
    n_devices: int,
) -> None:
    tables = {**JOINT, "region": {"mode": "session", "min_nodes": 2}}
    report = attacked_live(
        sample_of(tables, n_devices, 40), NETWORK, flow_settings(**WATCH, **tables)
    )
    assert report.failed == ()
    told = {each.attack for each in report.findings} | set(report.left_out)
    assert any(each.startswith(parked_alone.NAME) for each in told)
    if n_devices == 30:
        [mine] = [each for each in report.findings if each.attack == parked_alone.NAME]
        assert mine.required
        evidence = evidence_from([(Path("a"), report.model_dump_json().encode())], made=MADE)
        assert parked_alone.ASKS in page(evidence)


@pytest.mark.usefixtures("_one_more")
def test_a_new_attack_is_on_the_page_of_attacks_and_in_the_experiment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert f"| `{parked_alone.NAME}` | {parked_alone.ASKS} |" in manual.attacks_page()
    monkeypatch.setitem(ATTACKS, Subject.POSITIONS, ATTACKS[Subject.POSITIONS][-1:])
    monkeypatch.setattr(audited, "MODES", ("session",))
    rows = [each.row() for each in run_audit(TOWN, n_devices=40, seed=1)]
    mine = {row["release"]: row for row in rows if row["attack"] == parked_alone.NAME}
    assert mine[RAW]["success"] == 1.0
    assert mine["session"]["success"] == 0.0
    assert mine["session"]["control"] is not None
