"""Ten releases broken on purpose, ten sound ones, and what the first screen says of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from anonymizer.audit import Mode
from anonymizer.audit.evidence import Conclusion, Criterion, EvidenceReport, evidence_of, page
from anonymizer.audit.findings import AuditReport, TableAuditReport
from anonymizer.domain.promises import Promise
from tests.app.worlds import CONTROLS, Paper, ideal_sessions, wandering
from tests.audit.audited import WORLD, audit_of
from tests.audit.evidence.test_evidence_page import first_screen
from tests.audit.evidence.written import MADE, of
from tests.audit.released import Release
from tests.audit.test_counts_attack import gathered

ONE, LINK, LEARN, TRUE = Criterion

WORDS = {
    ONE: "somebody can be told apart from all others",
    LINK: "two records can be recognized as those of one person",
    LEARN: "something can be learned about a person",
    TRUE: "part of what is published is not true",
}
"""What a headline says, which names no attack."""

Audit = Callable[[Path], AuditReport | TableAuditReport]


def positions(control: str, mode: Mode = "session") -> Audit:
    return lambda folder: audit_of(CONTROLS[control](WORLD), folder, mode=mode)


def spoilt(spoil: Callable[[Paper], object], mode: Mode = "session") -> Audit:
    def audit(folder: Path) -> AuditReport:
        paper = ideal_sessions(WORLD)
        spoil(paper)
        return audit_of(paper, folder, mode=mode)

    return audit


def sessions(seed: int, mode: Mode = "session") -> Audit:
    def audit(folder: Path) -> AuditReport:
        world = wandering(n_devices=150, n_ticks=40, seed=seed)
        return audit_of(ideal_sessions(world, seed=seed), folder, world=world, mode=mode)

    return audit


def table(made: Promise, asked: Promise, **cells: str) -> Audit:
    """Audit by one promise what was made for another one, with cells of all rows changed."""

    def audit(folder: Path) -> TableAuditReport:
        release = Release(folder, promise=made)
        if cells:
            release.spoil(release.out, lambda rows: [row.update(cells) for row in rows])
        return release.audit(asked)

    return audit


def leave(paper: Paper) -> None:
    paper.lines[0]["region"] = [(paper.lines[0]["region"][0] + 210) % 400]


def boast(paper: Paper) -> None:
    for line in paper.lines:
        line["k"] = 151


BROKEN: dict[str, tuple[Audit, set[Criterion]]] = {
    "pseudonyms that never change": (positions("fixed pseudonyms"), {ONE}),
    "pseudonyms that change one by one": (positions("rotating alone"), {ONE, LINK}),
    "silent members that are left out": (positions("without ghosts"), {ONE}),
    "a region that its device has left": (spoilt(leave), {ONE, TRUE}),
    "k stated higher than it is": (spoilt(boast, "adka"), {ONE}),
    "a table with k lowered": (table(Promise(k=2, l=2), Promise(k=9)), {ONE}),
    "a table with identifiers": (table(Promise(k=3), Promise(k=3), name="x"), {ONE}),
    "a table with one value of a quasi-identifier": (
        table(Promise(k=2, d=1, l=2), Promise(k=2, d=3)),
        {LINK},
    ),
    # Who holds the quasi-identifiers learns what the other source says: both are so.
    "a table with one sensitive value": (
        table(Promise(k=2, d=0, l=1), Promise(k=2, d=0, l=3)),
        {LINK, LEARN},
    ),
    "a table with wrong sensitive values": (
        table(Promise(k=3), Promise(k=3), illness="gout"),
        {TRUE},
    ),
}
SOUND: dict[str, Audit] = {
    **{f"sessions, seed {seed}": sessions(seed) for seed in range(3)},
    **{f"sessions as snapshot, seed {seed}": sessions(seed, "snapshot") for seed in range(3)},
    "a table with k": table(Promise(k=3), Promise(k=3)),
    "a table with k and d": table(Promise(k=3, d=2), Promise(k=3, d=2)),
    "a table with k and l": table(Promise(k=4, l=2), Promise(k=4, l=2)),
    "a table with k, d and l": table(Promise(k=3, d=2, l=2), Promise(k=3, d=2, l=2)),
}


def reported(audit: Audit, folder: Path) -> EvidenceReport:
    path = folder / "audit.json"
    path.write_text(audit(folder).model_dump_json())
    return evidence_of([path], made=MADE)


@pytest.mark.parametrize(("audit", "criteria"), BROKEN.values(), ids=BROKEN)
def test_a_release_that_is_broken_is_told_under_the_right_question(
    audit: Audit, criteria: set[Criterion], tmp_path: Path
) -> None:
    found = reported(audit, tmp_path)
    html = page(found)
    said = html.split("<h2>")[0].split("A promise is broken: ")[1].split(".</p>")[0]
    assert said == "; ".join(WORDS[each] for each in Criterion if each in criteria)
    told = {
        each for each, card in first_screen(html).items() if "Broken in the tables below: " in card
    }
    assert told == criteria
    assert told == {each for each, answer in found.answers.items() if answer is Conclusion.BROKEN}


@pytest.mark.parametrize("audit", SOUND.values(), ids=SOUND)
def test_a_sound_release_raises_no_alarm(audit: Audit, tmp_path: Path) -> None:
    html = page(reported(audit, tmp_path))
    assert "No promise is broken." in html.split("<h2>")[0]
    assert "Broken in the tables" not in html
    assert 'class="bad"' not in html


def test_what_succeeds_and_is_not_promised_is_no_broken_promise_and_no_good_news(
    tmp_path: Path,
) -> None:
    found = reported(positions("fixed pseudonyms", "snapshot"), tmp_path)
    first = page(found).split("<h2>")[0]
    said = "No promise is broken. But attacks succeed against which nothing is promised: "
    assert f'<p class="verdict bad">{said}somebody can be told apart from all others.</p>' in first
    assert "session" not in first
    assert "more than the limit; nothing is promised" in first_screen(page(found))[ONE]


@pytest.mark.parametrize(("cells", "k", "told"), [(16, 2, True), (16, 100, False)])
def test_counts_that_tell_where_in_a_region_devices_are_are_told_on_the_first_screen(
    cells: int, k: int, tmp_path: Path, *, told: bool
) -> None:
    finding = gathered(tmp_path, cells=cells, k=k)
    (tmp_path / "audit.json").unlink(missing_ok=True)
    found = of(tmp_path, finding)
    first = page(found).split("<h2>")[0]
    assert ("These two must not both be public: positions and counts of" in first) is told
    assert found.answers[LEARN] is (Conclusion.ABOVE if told else Conclusion.HELD)
