"""The page of evidence: what its first screen tells, what is drawn, and whom it can be read by."""

import re
from itertools import product
from pathlib import Path

import pytest

from anonymizer.audit import Mode
from anonymizer.audit.evidence import Criterion, Result, evidence_of, page
from anonymizer.audit.evidence.evidence_page import DARK, LIGHT
from anonymizer.audit.evidence.evidence_plot import drawing, gauge, lanes
from anonymizer.audit.evidence.evidence_words import ASKS, gained, percent
from anonymizer.audit.findings import Figure, Finding
from tests.app.worlds import CONTROLS
from tests.audit.audited import WORLD, audit_of
from tests.audit.evidence.written import MADE, of
from tests.web.browsing import opened_browser

GUESSED: dict[str, Figure] = {"success": 0.3, "expected": 0.1, "n": 100}
TRACKED: dict[str, Figure] = {
    "belief_followed_5min": 0.2, "belief_none_5min": 0.15, "n_tracks": 80,
    "tenth_followed_5min": 0.8, "tenth_none_5min": 0.7,
}  # fmt: skip
NARROW, WIDE = 380, 1280


def result(folder: Path, attack: str, **figures: Figure) -> Result:
    return of(folder, Finding(attack=attack, figures=figures)).results[0]


def first_screen(html: str) -> dict[Criterion, str]:
    """Return what stands above the drawings, by criterion."""
    cards = html.split("<ul class=answers>")[1].split("</ul>", maxsplit=1)[0].split("<li ")[1:]
    return {each: card for each in Criterion for card in cards if ASKS[each] in card}


@pytest.mark.parametrize("attack", ["k", "linking", "homogeneity", "soundness"])
def test_the_first_screen_names_what_is_broken_under_its_own_question(
    attack: str, tmp_path: Path
) -> None:
    broken = Finding(attack=attack, figures={}, bar="none", holds=False, required=True)
    found = of(tmp_path, broken)
    told = first_screen(page(found))
    assert [each for each, card in told.items() if "Broken in the tables below: " in card] == [
        found.results[0].criterion
    ]
    assert f"Broken in the tables below: {attack}." in told[found.results[0].criterion]


def test_the_first_screen_says_how_much_is_gained_and_how_sure_that_is(tmp_path: Path) -> None:
    told = first_screen(page(of(tmp_path, Finding(attack="linking", figures=GUESSED))))
    card = told[Criterion.LINKABILITY]
    assert "Yes in 30.0% of the cases (a blind guess among those who look alike: 10.0%)" in card
    assert "more than chance explains: after 100 tries" in card
    assert "between 21.9% and 39.6% (95% sure). No limit is set for that." in card
    assert "not tried" in told[Criterion.SINGLING_OUT]


def test_a_broken_promise_is_told_before_an_attack_that_gains_more(tmp_path: Path) -> None:
    few: dict[str, Figure] = {"share_below_k": 0.01}
    broken = Finding(attack="k", figures=few, holds=False, required=True)
    larger = Finding(attack="values", figures={"success": 0.9, "expected": 0.1, "n": 9})
    card = first_screen(page(of(tmp_path, broken, larger)))[Criterion.SINGLING_OUT]
    assert "Yes in 1.0% of the cases, in place of none. Every case was looked at" in card
    assert "90.0%" not in card


def test_an_attack_above_its_bar_is_told_before_one_that_gains_more(tmp_path: Path) -> None:
    low: dict[str, Figure] = {"success": 0.2, "one_in_n": 0.1, "n_records": 9}
    above = Finding(attack="subtraction", figures=low, bar="x", holds=False)
    card = told_of_checks(tmp_path, above, Finding(attack="tracking", figures=TRACKED))
    assert "Yes in 20.0% of the cases (a blind guess: 10.0%)" in card
    assert "Above the limit in the tables below: subtraction." in card


def test_what_tells_of_a_crowd_is_told_only_if_there_is_nothing_about_a_device(
    tmp_path: Path,
) -> None:
    crowd = Finding(
        attack="density leak", figures={"accuracy": 0.9, "base_rate": 0.2, "n_records": 9}
    )
    tracked = Finding(attack="tracking", figures=TRACKED)
    assert "Does the size of an area tell" in told_of_checks(tmp_path, crowd)
    card = told_of_checks(tmp_path, crowd, tracked)
    assert "Is a device followed" in card
    assert "Does the size of an area tell" not in card


def test_what_breaks_a_promise_without_a_figure_is_told_before_a_figure(tmp_path: Path) -> None:
    broken = Finding(attack="identifiers", figures={}, holds=False, required=True)
    larger = Finding(attack="values", figures={"success": 0.9, "expected": 0.1, "n": 9})
    card = told_of_checks(tmp_path, broken, larger)
    assert card.index("column of identifiers? Yes; that breaks a promise.") < card.index("90.0%")


@pytest.mark.parametrize(
    ("mode", "not_promised"),
    [
        ("session", "Not promised: to hide roughly where a device is"),
        ("snapshot", "Not promised: that this lasts."),
        ("adka", "Not promised: that a device is hidden among these."),
    ],
)
def test_the_first_screen_says_what_a_mode_does_not_promise(
    mode: Mode, not_promised: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit.json"
    path.write_text(
        audit_of(CONTROLS["fixed pseudonyms"](WORLD), tmp_path, mode=mode).model_dump_json()
    )
    first = page(evidence_of([path], made=MADE)).split("<ul class=answers>")[0]
    assert f"Promised ({mode}): " in first
    assert not_promised in first


@pytest.mark.parametrize(
    ("success", "sure"),
    [(0.12, "no more than chance explains"), (0.3, "more than chance"), (0.01, "less than chance")],
)
def test_chance_is_told_from_a_find(success: float, sure: str, tmp_path: Path) -> None:
    told = gained(result(tmp_path, "linking", success=success, expected=0.1, n=100))
    assert f"That is {sure}" in told


def test_the_probability_of_a_name_is_compared_with_one_in_k(tmp_path: Path) -> None:
    matching = Finding(
        attack="matching",
        adversary="on_air",
        figures={"posterior_of_truth_mean": 0.05, "n_pseudonyms": 9},
    )
    guess = Finding(attack="re-identification", adversary="on_air", figures=GUESSED)
    found = {each.attack: each.control for each in of(tmp_path, matching, guess).results}
    assert found == {"matching": 0.1, "re-identification": 0.1}
    assert of(tmp_path, matching).results[0].control is None


def test_a_short_recording_is_read_at_the_longest_time_that_it_has(tmp_path: Path) -> None:
    short: dict[str, Figure] = {name.replace("5min", "1min"): x for name, x in TRACKED.items()}
    for name in TRACKED:
        short.setdefault(name, None)
    found = result(tmp_path, "tracking", **short)
    assert (found.success, found.control, found.exposed, found.exposed_control) == (
        0.2, 0.15, 0.8, 0.7,
    )  # fmt: skip
    assert "one minute later" in found.asks
    assert "five minutes later" in result(tmp_path, "tracking", **TRACKED).asks


def test_a_drawing_tells_in_words_all_that_it_shows(tmp_path: Path) -> None:
    linking = result(tmp_path, "linking", **GUESSED)
    svg = drawing([*lanes([linking])], title="Linkability")
    assert (
        'aria-label="Linkability: linking: 30.0%, between 21.9% and 39.6%, '
        'a blind guess among those who look alike 10.0%"'
    ) in svg
    assert svg.count('class="success"') == svg.count('class="control"') == 1
    assert svg.count('class="interval"') == 1
    assert ">50%</text>" in svg  # the scale ends above all marks
    assert ">100%</text>" in gauge(next(lanes([linking])))


def test_marks_stand_where_their_shares_are(tmp_path: Path) -> None:
    lane = next(lanes([result(tmp_path, "linking", success=0.5, expected=0.0, n=100)]))
    svg = gauge(lane._replace(low=0.25, high=1.0))
    assert '<circle cx="50.00%"' in svg
    assert '<line x1="2.00%" x2="2.00%"' in svg
    assert '<rect x="26.00%" y="8" width="72.00%"' in svg


def test_the_most_exposed_tenth_is_drawn_beside_its_own_control(tmp_path: Path) -> None:
    drawn = [*lanes([result(tmp_path, "tracking", **TRACKED)])]
    assert [(lane.name, lane.success, lane.control) for lane in drawn] == [
        ("tracking", 0.2, 0.15),
        ("tracking, most exposed tenth", 0.8, 0.7),
    ]


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_have_the_contrast_of_wcag(colours: dict[str, str]) -> None:
    for use, ground in product(("ink", "bad", "good"), ("paper", "soft")):
        assert contrast(colours[use], colours[ground]) >= 4.5, (use, ground)
    for use, ground in product(("success", "control"), ("paper", "soft")):
        assert contrast(colours[use], colours[ground]) >= 3, (use, ground)
    assert contrast(colours["success"], colours["interval"]) >= 1.8


def test_the_page_fits_screens_and_paper_and_each_drawing_has_a_name(tmp_path: Path) -> None:
    findings = [
        Finding(attack="linking", figures=GUESSED),
        Finding(attack="tracking", figures=TRACKED),
        Finding(attack="values", attribute=" + ".join(["a long name"] * 9), figures=GUESSED),
    ]
    path = tmp_path / "report.html"
    path.write_text(page(of(tmp_path, *findings)))
    with opened_browser() as viewer:
        viewer.open(path.as_uri())
        for width in (NARROW, WIDE):
            viewer.screen(width, 900, mobile=width == NARROW)
            assert viewer.script("return document.documentElement.scrollWidth") == width
        roles = viewer.script("return [...document.querySelectorAll('svg.drawing')].length")
        tree = viewer.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        images = [node for node in tree if node.get("role", {}).get("value") in {"image", "img"}]
        assert len(images) == roles == 6
        assert all(re.search(r"\d%", node["name"]["value"]) for node in images)
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        for medium, paper in (("screen", DARK["paper"]), ("print", LIGHT["paper"])):
            viewer.driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"media": medium, "features": [dark]}
            )
            ground = viewer.script("return getComputedStyle(document.body).backgroundColor")
            rgb = ", ".join(str(int(paper[i : i + 2], 16)) for i in (1, 3, 5))
            assert ground == f"rgb({rgb})"
        assert viewer.complaints() == []
        assert all(url.startswith("file:") for url in viewer.asked())


TOGETHER: dict[str, Figure] = {
    "belief_together": 0.4, "belief_alone": 0.1, "belief_control": 0.1, "n_victims": 50,
}  # fmt: skip


@pytest.mark.parametrize("holds", [True, False])
def test_what_must_not_both_be_public_is_said_first(tmp_path: Path, *, holds: bool) -> None:
    finding = Finding(attack="positions with counts", figures=TOGETHER, bar="x", holds=holds)
    found = of(tmp_path, finding)
    said = "These two must not both be public: positions and counts of audit.json."
    assert (said in page(found).split("<h2>")[0]) is not holds
    assert bool(found.apart) is not holds
    assert found.holds  # it was not promised


@pytest.mark.parametrize(
    ("alone", "control", "told"), [(0.0, 0.0, True), (0.5, 0.0, False), (0.0, 0.45, False)]
)
def test_two_streams_are_kept_apart_if_they_tell_more_together_than_each_or_chance(
    tmp_path: Path, *, alone: float, control: float, told: bool
) -> None:
    def read(attack: str, share: float) -> Finding:
        return Finding(
            attack=attack, attribute="age", figures={"share_read": share, "n_vehicles": 100}
        )

    found = of(
        tmp_path,
        read("bus alone", alone),
        read("releases together", 0.5),
        read("releases of two vehicles", control),
    )
    assert bool(found.apart) is told


def told_of_checks(folder: Path, *findings: Finding) -> str:
    found = of(folder, *findings)
    (criterion,) = {each.criterion for each in found.results}
    return first_screen(page(found))[criterion]


def test_checks_are_told_in_plain_words_each_once_and_the_broken_first(tmp_path: Path) -> None:
    kept = [
        Finding(attack="d", attribute=name, figures={}, bar=">= 2", holds=True, required=True)
        for name in ("age", "job")
    ]
    told = told_of_checks(tmp_path, *kept)
    assert (
        told.count("Do rows that look the same agree too much in what another source knows?") == 1
    )
    assert "No, as promised." in told
    assert "bar" not in told
    broken = Finding(attack="share", attribute="age", figures={}, holds=False, required=True)
    told = told_of_checks(tmp_path, *kept, broken)
    assert told.index("Yes; that breaks a promise.") < told.index("No, as promised.")
    reported = Finding(attack="share", figures={}, holds=False)
    assert "Yes; that is not promised." in told_of_checks(tmp_path, reported)


def test_of_many_checks_some_are_told_and_the_others_counted(tmp_path: Path) -> None:
    names = ("d", "share", "source share", "linkability")
    kept = [Finding(attack=each, figures={"n": 1}, holds=True) for each in names]
    assert "1 more is below." in told_of_checks(tmp_path, *kept)


def test_what_should_be_true_is_answered_the_other_way_round(tmp_path: Path) -> None:
    inside = Finding(attack="soundness", figures={}, holds=True, required=True)
    assert "Yes, as promised." in told_of_checks(tmp_path, inside)
    never = Finding(attack="homogeneity", figures={"share_of_people": 0})
    assert "Never." in told_of_checks(tmp_path, never)
    unknown = Finding(attack="velocity", figures={})
    assert "Measured below; no limit was asked for." in told_of_checks(tmp_path, unknown)
    found = of(tmp_path, unknown)
    assert "none is about a promise." in page(found).split("<h2>")[0]


def test_a_small_share_is_not_written_like_none() -> None:
    assert (percent(0.0), percent(0.0004), percent(0.001)) == ("0.0%", "less than 0.1%", "0.1%")
