"""Findings in groups: nothing is lost, and the worst comes first."""

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.attack import name_of
from anonymizer.audit.findings import Finding
from anonymizer.audit.grouped_findings import grouped_findings
from tests.audit.made_findings import finding, findings


@given(st.lists(findings(), max_size=80))
def test_each_finding_is_in_the_group_of_its_question_and_verdict(found: list[Finding]) -> None:
    groups = grouped_findings(found)
    assert sorted(id(each) for group in groups for each in group.findings) == sorted(map(id, found))
    for group in groups:
        assert {each.verdict for each in group.findings} == {group.worst.verdict}
        assert {name_of(each.attack) for each in group.findings} == {group.question}
    assert len({(group.question, group.worst.verdict) for group in groups}) == len(groups)


@given(st.lists(findings(), max_size=80))
def test_what_fails_comes_before_all_else(found: list[Finding]) -> None:
    fails = [group.worst.fails for group in grouped_findings(found)]
    assert fails == sorted(fails, reverse=True)


def test_more_success_of_an_attack_is_worse() -> None:
    shares = (0.1, 0.4, None, 0.2)
    found = [finding("prosecutor", {"guess": 0.9, "average": share}) for share in shares]
    [group] = grouped_findings(found)
    assert [each.figures["average"] for each in group.findings] == [0.4, 0.2, 0.1, None]
    assert (group.figures, group.following) == ({"average": 0.4, "guess": 0.9}, 0.2)


def test_less_that_a_class_reaches_is_worse() -> None:
    found = [finding("l", {"values_min": n, "n_classes_broken": 0}) for n in (5, 3, 4)]
    [group] = grouped_findings(found)
    assert [each.figures["values_min"] for each in group.findings] == [3, 4, 5]
    assert not group.are_equal


def test_more_rows_in_the_wrong_are_worse() -> None:
    found = [finding("labels", {"n_rows_outside": n}, attribute=f"{n}") for n in (0, 7, 0)]
    [group] = grouped_findings(found)
    assert [each.attribute for each in group.findings] == ["7", "0", "0"]


def test_findings_of_equal_figures_are_equal_and_one_alone_is_not() -> None:
    one = finding("truth", {"n_rows_changed": 0})
    assert grouped_findings([one, one])[0].are_equal
    assert not grouped_findings([one])[0].are_equal
